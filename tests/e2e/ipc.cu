// SPDX-License-Identifier: MIT
// Two processes share an allocation, an allocation of a pool, and an event, as the samples simpleIPC and streamOrderedAllocationIPC do.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cuda_runtime.h>
#include "e2e.h"

#define N 4096

struct message {
	cudaIpcMemHandle_t mem;
	cudaIpcEventHandle_t event;
	struct cudaMemPoolPtrExportData pointer;
};

__global__ void spin_then(int *p, int add, long long cycles)
{
	long long begin = clock64();

	while (clock64() - begin < cycles)
		;
	for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < N; i += gridDim.x * blockDim.x)
		p[i] += add;
}

static void put(int sock, const struct message *m, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec v = {(void *)m, sizeof(*m)};
	struct msghdr h = {};

	h.msg_iov = &v;
	h.msg_iovlen = 1;
	if (fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)room;

		h.msg_control = room;
		h.msg_controllen = sizeof(room);
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) != sizeof(*m))
		die("the other process is gone");
}

static int get(int sock, struct message *m)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec v = {m, sizeof(*m)};
	struct msghdr h = {};
	int fd = -1;

	h.msg_iov = &v;
	h.msg_iovlen = 1;
	h.msg_control = room;
	h.msg_controllen = sizeof(room);
	if (recvmsg(sock, &h, 0) != sizeof(*m))
		die("the other process is gone");
	if (CMSG_FIRSTHDR(&h))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	return fd;
}

static void all_are(const int *d, int want, const char *what)
{
	static int h[N];

	RT(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		if (h[i] != want)
			die("%s: element %d is %d, not %d", what, i, h[i], want);
}

static int second(int sock)
{
	struct message m;
	cudaMemPool_t pool;
	cudaStream_t s;
	cudaEvent_t e;
	int *p, *q, fd = get(sock, &m);

	RT(cudaIpcOpenMemHandle((void **)&p, m.mem, cudaIpcMemLazyEnablePeerAccess));
	RT(cudaIpcOpenEventHandle(&e, m.event));
	RT(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, cudaMemHandleTypePosixFileDescriptor, 0));
	RT(cudaMemPoolImportPointer((void **)&q, pool, &m.pointer));
	RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	// The first process's kernel may still run: this stream waits for it, and adds to what it wrote.
	RT(cudaStreamWaitEvent(s, e, 0));
	spin_then<<<2, 64, 0, s>>>(p, 100, 1000000);
	spin_then<<<2, 64, 0, s>>>(q, 1000, 0);
	RT(cudaEventRecord(e, s));
	put(sock, &m, -1);
	RT(cudaStreamSynchronize(s));
	RT(cudaFreeAsync(q, s));
	RT(cudaEventDestroy(e));
	RT(cudaIpcCloseMemHandle(p));
	put(sock, &m, -1);
	return 0;
}

int main()
{
	struct cudaMemPoolProps props = {};
	struct message m;
	cudaMemPool_t pool;
	cudaStream_t s;
	cudaEvent_t e;
	int *p, *q, fd, pair[2], status = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		die("no sockets");
	pid = fork();
	if (!pid) {
		close(pair[0]);
		_exit(second(pair[1]));
	}
	close(pair[1]);
	RT(cudaMalloc((void **)&p, N * sizeof(*p)));
	RT(cudaMemset(p, 0, N * sizeof(*p)));
	RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeDevice;
	RT(cudaMemPoolCreate(&pool, &props));
	RT(cudaMallocFromPoolAsync((void **)&q, N * sizeof(*q), pool, s));
	RT(cudaMemsetAsync(q, 0, N * sizeof(*q), s));
	RT(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	spin_then<<<2, 64, 0, s>>>(p, 1, 20000000);
	spin_then<<<2, 64, 0, s>>>(q, 10, 0);
	RT(cudaEventRecord(e, s));
	RT(cudaIpcGetMemHandle(&m.mem, p));
	RT(cudaIpcGetEventHandle(&m.event, e));
	RT(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	RT(cudaMemPoolExportPointer(&m.pointer, q));
	put(pair[0], &m, fd);
	close(fd);
	get(pair[0], &m);
	// Now the other process has recorded it.
	RT(cudaEventSynchronize(e));
	all_are(p, 101, "the allocation");
	all_are(q, 1010, "the pool's allocation");
	get(pair[0], &m);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		die("the other process failed");
	RT(cudaFreeAsync(q, s));
	RT(cudaEventDestroy(e));
	RT(cudaFree(p));
	RT(cudaDeviceSynchronize());
	printf("ipc: ok\n");
	return 0;
}
