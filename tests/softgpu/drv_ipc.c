// SPDX-License-Identifier: MIT
/* Memory and events that two processes share: exported by one, opened by the other. */
#include "tests/softgpu/drv.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB (1ull << 20)

static CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

struct message {
	CUipcEventHandle event;
	int step;
};

static void put(int sock, struct message *m, int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	struct iovec v = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&c.h), &fd, sizeof(fd));
		h.msg_control = &c;
		h.msg_controllen = sizeof(c);
	}
	if (sendmsg(sock, &h, 0) != sizeof(*m))
		exit(1);
}

/* A descriptor that came along, or −1. The other process's end ends this one. */
static int get(int sock, struct message *m)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec v = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	int fd = -1;

	if (recvmsg(sock, &h, 0) != sizeof(*m))
		exit(1);
	if (CMSG_FIRSTHDR(&h))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	return fd;
}

static CUdeviceptr place(CUmemGenericAllocationHandle h)
{
	CUdeviceptr p;

	must(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
	must(cuMemMap(p, 4 * MIB, 0, h, 0));
	must(cuMemSetAccess(p, 4 * MIB, &rw, 1));
	return p;
}

/* The other process: waits in a stream for what the first recorded, changes the memory, records itself. */
static int other(int sock)
{
	CUmemGenericAllocationHandle h;
	struct message m;
	CUdeviceptr p;
	CUevent e;
	CUstream s;
	int fd = get(sock, &m);

	drv_start();
	must(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	p = place(h);
	must(cuIpcOpenEventHandle(&e, m.event));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* The first process's stream is held: so is what comes behind it here. */
	if (cuEventQuery(e) != CUDA_ERROR_NOT_READY)
		return 2;
	must(cuStreamWaitEvent(s, e, 0));
	must(cuMemsetD32Async(p + 8, 0x22222222, 1, s));
	put(sock, &m, -1);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&m.step, p, 4));
	if (m.step != 0x11111111)
		return 3;
	must(cuEventRecord(e, s));
	put(sock, &m, -1);
	/* Recorded again, and this process goes while that is not reached: it is killed. */
	get(sock, &m);
	must(cuStreamWaitValue32(s, p + 16, 99, CU_STREAM_WAIT_VALUE_EQ));
	must(cuEventRecord(e, s));
	put(sock, &m, -1);
	pause();
	return 0;
}

int main(void)
{
	CUmemGenericAllocationHandle h, plain, again;
	CUmemAllocationProp bare = prop, got;
	size_t free0, free1, total;
	struct message m = {0};
	int pair[2], fd, status;
	CUipcEventHandle none = {{0}};
	CUdeviceptr p;
	uint32_t word;
	CUstream s;
	CUevent e, f;
	pid_t pid;

	setenv("RGPU_SOFTGPU_MEM_MIB", "64", 1);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 1;
	pid = fork();
	if (!pid) {
		close(pair[0]);
		_exit(other(pair[1]));
	}
	close(pair[1]);
	drv_start();
	must(cuMemGetInfo(&free0, &total));

	bare.requestedHandleTypes = 0;
	must(cuMemCreate(&plain, 2 * MIB, &bare, 0));
	gives(cuMemExportToShareableHandle(&fd, plain, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
	bare.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	gives(cuMemCreate(&h, 2 * MIB, &bare, 0), CUDA_ERROR_NOT_SUPPORTED);
	must(cuMemRelease(plain));
	gives(cuMemImportFromShareableHandle(&h, (void *)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);

	works(cuMemCreate(&h, 4 * MIB, &prop, 0));
	works(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	gives(ftruncate(fd, 0), -1);
	works(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	works(cuMemGetAllocationPropertiesFromHandle(&got, again));
	is_int(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "imported memory may be exported on");
	must(cuMemRelease(again));
	must(cuMemGetInfo(&free1, &total));
	is_int(free0 - free1, 4 * MIB, "memory is on the account of who made it, once");
	p = place(h);
	must(cuMemsetD32(p, 0, 8));

	gives(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	works(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	gives(cuIpcGetEventHandle(&m.event, f), CUDA_ERROR_INVALID_HANDLE);
	works(cuIpcGetEventHandle(&m.event, e));
	gives(cuIpcOpenEventHandle(&f, m.event), CUDA_ERROR_INVALID_CONTEXT);
	gives(cuIpcOpenEventHandle(&f, none), CUDA_ERROR_INVALID_HANDLE);
	works(cuEventQuery(e));

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(s, p + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemsetD32Async(p, 0x11111111, 1, s));
	works(cuEventRecord(e, s));
	gives(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	put(pair[0], &m, fd);
	close(fd);
	get(pair[0], &m);
	must(cuMemcpyDtoH(&word, p + 8, 4));
	is_int(word, 0, "the other process's stream waits for the event");
	must(cuMemsetD32(p + 4, 1, 1));
	get(pair[0], &m);
	works(cuEventSynchronize(e));
	must(cuMemcpyDtoH(&word, p + 8, 4));
	is_int(word, 0x22222222, "then it wrote into the memory that both have");

	put(pair[0], &m, -1);
	get(pair[0], &m);
	gives(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status), "the other process was killed");
	works(cuEventSynchronize(e));
	must(cuMemUnmap(p, 4 * MIB));
	must(cuMemRelease(h));
	must(cuMemGetInfo(&free1, &total));
	is_int(free1, free0, "all memory came back");
	works(cuEventDestroy(e));
	return tap_done();
}
