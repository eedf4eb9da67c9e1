// SPDX-License-Identifier: MIT
/* Memory, pools and events that two client processes of one server share, and what another client's key is refused. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include "server/share.h"
#include "tests/api/serve.h"

#define MIB   (1ull << 20)
#define TYPE  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define WORDS 64
#define NAME  8 /* where a handle has the name of what it is of: shim/token.h */

static CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = TYPE | CU_MEM_HANDLE_TYPE_FABRIC,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
};
static CUmemAccessDesc here = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* What goes between the processes: handles as bytes, descriptors as such, and numbers. */
struct message {
	CUipcMemHandle mem, second;
	CUipcEventHandle event;
	CUmemFabricHandle fabric;
	CUmemPoolPtrExportData pointer;
	int status;
	unsigned word;
};

static void put(int sock, const struct message *m, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec v = {(void *)m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

	if (fd >= 0) {
		h.msg_control = room;
		h.msg_controllen = sizeof(room);
		*CMSG_FIRSTHDR(&h) = (struct cmsghdr){CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof(fd));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) != sizeof(*m)) {
		ok(false, "the other process is there");
		exit(tap_done());
	}
}

static int get(int sock, struct message *m)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct iovec v = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	int fd = -1;

	if (recvmsg(sock, &h, 0) != sizeof(*m)) {
		ok(false, "the other process answers");
		exit(tap_done());
	}
	if (CMSG_FIRSTHDR(&h))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	return fd;
}

/* In the other process, where a failure is its exit status: a line of this file. */
#define need(call)                                                                                                               \
	do {                                                                                                                     \
		int got_ = (int)(call);                                                                                          \
		if (got_) {                                                                                                      \
			fprintf(stderr, "# in the other process: line %d: %s: %s\n", __LINE__, #call, error_name(got_));         \
			_exit(1);                                                                                                \
		}                                                                                                                \
	} while (0)
#define hold(x) need(!(x))

static unsigned word_at(CUdeviceptr p)
{
	unsigned w = 0;

	need(cuMemcpyDtoH(&w, p, 4));
	return w;
}

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
	CUdeviceptr p;

	need(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
	need(cuMemMap(p, 2 * MIB, 0, h, 0));
	need(cuMemSetAccess(p, 2 * MIB, &here, 1));
	return p;
}

/* ---- The other process ---- */

static void other_memory(int sock)
{
	CUdeviceptr p, again, q;
	struct message m;
	CUipcMemHandle bad;
	size_t bytes;
	int capable;

	get(sock, &m);
	bad = m.mem;
	bad.reserved[20] ^= 1;
	hold(cuIpcOpenMemHandle(&p, bad, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_HANDLE);
	need(cuIpcOpenMemHandle(&p, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	hold(word_at(p) == 0x11111111);
	hold(word_at(p + 4 * (WORDS - 1)) == 0x11111111);
	hold(cuMemcpyDtoH(&m.word, p + 4 * WORDS, 4) == CUDA_ERROR_INVALID_VALUE);
	need(cuMemGetAddressRange(&q, &bytes, p + 8));
	hold(q == p && bytes == 4 * WORDS);
	need(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	hold(!capable);
	/* Counted. */
	need(cuIpcOpenMemHandle(&again, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	hold(again == p);
	need(cuIpcCloseMemHandle(p));
	hold(word_at(p) == 0x11111111);
	/* A second allocation of the same lease. */
	need(cuIpcOpenMemHandle(&q, m.second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	hold(word_at(q) == 0x77777777);
	hold(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
	need(cuMemsetD32(p, 0x22222222, WORDS));
	need(cuCtxSynchronize());
	need(cuIpcCloseMemHandle(p));
	hold(cuIpcCloseMemHandle(p) == CUDA_ERROR_INVALID_VALUE);
	hold(cuMemcpyDtoH(&m.word, p, 4) == CUDA_ERROR_INVALID_VALUE);
	need(cuIpcCloseMemHandle(q));
	put(sock, &m, -1);
}

static void other_physical(int sock)
{
	CUmemGenericAllocationHandle h, f;
	CUmemAllocationProp got;
	struct message m;
	CUdeviceptr p, q;
	int fd = get(sock, &m);

	need(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, TYPE));
	hold(cuMemImportFromShareableHandle(&f, (void *)(intptr_t)sock, TYPE) == CUDA_ERROR_INVALID_VALUE);
	close(fd);
	need(cuMemImportFromShareableHandle(&f, &m.fabric, CU_MEM_HANDLE_TYPE_FABRIC));
	need(cuMemGetAllocationPropertiesFromHandle(&got, h));
	hold(got.location.id == 0 && (int)got.requestedHandleTypes == (int)prop.requestedHandleTypes);
	p = map(h);
	q = map(f);
	hold(word_at(p) == 0x33333333);
	need(cuMemsetD32(q, 0x44444444, 1));
	hold(word_at(p) == 0x44444444);
	need(cuCtxSynchronize());
	put(sock, &m, -1);
	/* The process that made it lets it go: here it stays. */
	get(sock, &m);
	hold(word_at(q) == 0x44444444);
	hold(cuMemImportFromShareableHandle(&f, &m.fabric, CU_MEM_HANDLE_TYPE_FABRIC) == CUDA_ERROR_INVALID_VALUE);
	put(sock, &m, -1);
}

static void other_pool(int sock)
{
	struct message m;
	CUmemoryPool pool, of;
	CUdeviceptr p, q;
	CUstream s;
	int fd = get(sock, &m);

	need(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, TYPE, 0));
	close(fd);
	need(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	hold(cuMemAllocFromPoolAsync(&p, 64, pool, s) == CUDA_ERROR_INVALID_VALUE);
	hold(cuDeviceSetMemPool(0, pool) == CUDA_ERROR_INVALID_VALUE);
	need(cuMemPoolImportPointer(&p, pool, &m.pointer));
	hold(word_at(p) == 0x55555555);
	need(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	hold(of == pool);
	need(cuMemsetD32Async(p, 0x66666666, WORDS, s));
	need(cuMemFreeAsync(p, s));
	hold(cuMemcpyDtoH(&m.word, p, 4) == CUDA_ERROR_INVALID_VALUE);
	need(cuMemPoolImportPointer(&q, pool, &m.pointer));
	hold(word_at(q) == 0x66666666);
	need(cuMemFree(q));
	m.pointer.reserved[63] ^= 1; /* another pool's */
	hold(cuMemPoolImportPointer(&q, pool, &m.pointer) == CUDA_ERROR_INVALID_VALUE);
	put(sock, &m, -1);
}

struct other_wait {
	CUcontext ctx;
	CUevent e;
};

static void *wait_for_event(void *arg)
{
	const struct other_wait *w = arg;

	need(cuCtxSetCurrent(w->ctx));
	hold(cuEventSynchronize(w->e) != CUDA_SUCCESS);
	return NULL;
}

/* The process that recorded it may never get there: the end of the waiting thread's own context ends the wait. */
static void given_up(CUipcEventHandle held)
{
	struct other_wait w;
	CUcontext before;
	pthread_t t;

	need(cuCtxGetCurrent(&before));
	need(cuCtxCreate(&w.ctx, NULL, 0, 0));
	need(cuIpcOpenEventHandle(&w.e, held));
	need(cuCtxSetCurrent(before));
	pthread_create(&t, NULL, wait_for_event, &w);
	usleep(50000);
	need(cuCtxDestroy(w.ctx));
	alarm(60);
	pthread_join(t, NULL);
	alarm(0);
}

static void other_event(int sock)
{
	struct message m;
	CUdeviceptr p;
	CUevent e;
	CUstream s;

	get(sock, &m);
	need(cuIpcOpenMemHandle(&p, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	need(cuIpcOpenEventHandle(&e, m.event));
	need(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* It was recorded before the message was sent, in a stream that is held. */
	hold(cuEventQuery(e) == CUDA_ERROR_NOT_READY);
	given_up(m.event);
	need(cuStreamWaitEvent(s, e, 0));
	need(cuMemcpyDtoDAsync(p + 8, p, 4, s));
	hold(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
	put(sock, &m, -1);
	need(cuStreamSynchronize(s));
	hold(word_at(p + 8) == 0x11111111);
	need(cuEventQuery(e));
	/* The other way: recorded here, waited for there. */
	need(cuStreamWaitValue32(s, p + 12, 1, CU_STREAM_WAIT_VALUE_EQ));
	need(cuMemsetD32Async(p + 8, 0x22222222, 1, s));
	need(cuEventRecord(e, s));
	put(sock, &m, -1);
	get(sock, &m);
	need(cuEventDestroy(e));
	need(cuIpcCloseMemHandle(p));
	put(sock, &m, -1);
}

static void other_process(int sock)
{
	primary();
	other_memory(sock);
	other_physical(sock);
	other_pool(sock);
	other_event(sock);
	_exit(0);
}

/* Of another client: the names are of no use to it. */
static void stranger(int sock)
{
	CUmemGenericAllocationHandle h;
	struct message m;
	CUdeviceptr p;
	CUevent e;

	setenv("RGPU_KEY", serve_other_key, 1);
	primary();
	get(sock, &m);
	hold(cuIpcOpenMemHandle(&p, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_ERROR_INVALID_HANDLE);
	hold(cuMemImportFromShareableHandle(&h, &m.fabric, CU_MEM_HANDLE_TYPE_FABRIC) == CUDA_ERROR_INVALID_VALUE);
	hold(cuIpcOpenEventHandle(&e, m.event) == CUDA_ERROR_INVALID_HANDLE);
	_exit(0);
}

static pid_t start(void (*fn)(int), int *sock)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		exit(1);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		fn(pair[1]);
	}
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

static bool ended_well(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* ---- This one ---- */

static CUdeviceptr first, second; /* two allocations of one lease */
static CUmemGenericAllocationHandle kept;

static void memory(int sock, struct message *m)
{
	CUdeviceptr p;
	unsigned char pinned;
	int can;

	must(cuMemAlloc(&first, 4 * WORDS));
	must(cuMemAlloc(&second, 4));
	must(cuMemsetD32(first, 0x11111111, WORDS));
	must(cuMemsetD32(second, 0x77777777, 1));
	must(cuCtxSynchronize());
	must(cuPointerGetAttribute(&can, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, first));
	is_int(can, 1, "memory of cuMemAlloc can be shared");
	is_cu(cuIpcGetMemHandle(&m->mem, (CUdeviceptr)&pinned), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuIpcGetMemHandle(NULL, first), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuIpcGetMemHandle(&m->mem, first), CUDA_SUCCESS);
	is_cu(cuIpcGetMemHandle(&m->second, second), CUDA_SUCCESS);
	is_cu(cuIpcOpenMemHandle(&p, m->mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuIpcOpenMemHandle(&p, m->mem, 8), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuIpcCloseMemHandle(first), CUDA_ERROR_INVALID_VALUE);
	put(sock, m, -1);
	get(sock, m);
	is_int(word_at(first), 0x22222222, "the other process wrote into it");
}

static void physical(int sock, struct message *m)
{
	CUmemAllocationProp bare = prop;
	CUmemGenericAllocationHandle h;
	unsigned long long types;
	CUdeviceptr p;
	int fd, can;

	must(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	is_int(can, 1, "descriptors are there");
	must(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0));
	is_int(can, 1, "fabric handles, too");
	bare.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
	is_cu(cuMemCreate(&h, 2 * MIB, &bare, 0), CUDA_ERROR_NOT_SUPPORTED);
	bare.requestedHandleTypes = TYPE;
	must(cuMemCreate(&h, 2 * MIB, &bare, 0));
	is_cu(cuMemExportToShareableHandle(&m->fabric, h, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemExportToShareableHandle(&fd, h, TYPE, 1), CUDA_ERROR_INVALID_VALUE);
	must(cuMemRelease(h));
	must(cuMemCreate(&kept, 2 * MIB, &prop, 0));
	p = map(kept);
	must(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p));
	is_int(types, TYPE | CU_MEM_HANDLE_TYPE_FABRIC, "a pointer knows what its memory may be exported as");
	must(cuMemsetD32(p, 0x33333333, 1));
	must(cuCtxSynchronize());
	is_cu(cuMemExportToShareableHandle(&fd, kept, TYPE, 0), CUDA_SUCCESS);
	is_cu(cuMemExportToShareableHandle(&m->fabric, kept, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_SUCCESS);
	/* In the same process it is the same memory once more. */
	is_cu(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, TYPE), CUDA_SUCCESS);
	is_int(word_at(map(h)), 0x33333333, "imported where it was exported");
	put(sock, m, fd);
	close(fd);
	get(sock, m);
	is_int(word_at(p), 0x44444444, "the other process wrote into it, under its other handle");
}

static void let_go(int sock, struct message *m)
{
	CUmemGenericAllocationHandle h;

	must(cuMemCreate(&h, 2 * MIB, &prop, 0));
	must(cuMemExportToShareableHandle(&m->fabric, h, CU_MEM_HANDLE_TYPE_FABRIC, 0));
	must(cuMemRelease(h));
	must(cuCtxSynchronize());
	put(sock, m, -1);
	get(sock, m);
	ok(true, "memory that was let go cannot be imported any more, what was imported stays");
}

static void pool(int sock, struct message *m)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = TYPE,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	CUmemoryPool p, plain;
	CUdeviceptr a;
	CUstream s;
	int fd, types;

	must(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
	is_int(types & TYPE, TYPE, "pools can be shared by descriptors");
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuDeviceGetDefaultMemPool(&plain, 0));
	is_cu(cuMemPoolExportToShareableHandle(&fd, plain, TYPE, 0), CUDA_ERROR_INVALID_VALUE);
	must(cuMemAllocAsync(&a, 4, s));
	is_cu(cuMemPoolExportPointer(&m->pointer, a), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuIpcGetMemHandle(&m->mem, a), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFreeAsync(a, s));
	is_cu(cuMemPoolCreate(&p, &props), CUDA_SUCCESS);
	is_cu(cuMemPoolExportToShareableHandle(&fd, p, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemPoolExportToShareableHandle(&fd, p, TYPE, 0), CUDA_SUCCESS);
	must(cuMemAllocFromPoolAsync(&a, 4 * WORDS, p, s));
	must(cuMemsetD32Async(a, 0x55555555, WORDS, s));
	must(cuStreamSynchronize(s));
	is_cu(cuMemPoolExportPointer(&m->pointer, a), CUDA_SUCCESS);
	is_cu(cuMemPoolImportPointer(&a, p, &m->pointer), CUDA_ERROR_INVALID_VALUE);
	put(sock, m, fd);
	close(fd);
	get(sock, m);
	is_int(word_at(a), 0x66666666, "the other process wrote into an allocation of the pool");
	must(cuMemFreeAsync(a, s));
	must(cuMemPoolDestroy(p));
}

static void event(int sock, struct message *m)
{
	CUstream s, t;
	CUevent e, f;
	int can;

	must(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
	is_int(can, 1, "events can be shared");
	must(cuMemsetD32(first, 0, WORDS));
	must(cuIpcGetMemHandle(&m->mem, first));
	is_cu(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	must(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	is_cu(cuIpcGetEventHandle(&m->event, f), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuIpcGetEventHandle(&m->event, e), CUDA_SUCCESS);
	is_cu(cuIpcOpenEventHandle(&f, m->event), CUDA_ERROR_INVALID_CONTEXT);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(s, first + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemsetD32Async(first, 0x11111111, 1, s));
	is_cu(cuEventRecord(e, s), CUDA_SUCCESS);
	put(sock, m, -1);
	get(sock, m);
	must(cuMemsetD32Async(first + 4, 1, 1, t));
	get(sock, m);
	/* What the other process recorded is what is waited for. */
	is_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	is_cu(cuStreamWaitEvent(s, e, 0), CUDA_SUCCESS);
	must(cuMemcpyDtoDAsync(first + 16, first + 8, 4, s));
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	must(cuMemsetD32Async(first + 12, 1, 1, t));
	is_cu(cuEventSynchronize(e), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	is_int(word_at(first + 16), 0x22222222, "a stream here waited for the other process's");
	put(sock, m, -1);
	get(sock, m);
	is_cu(cuEventQuery(e), CUDA_SUCCESS);
	must(cuEventDestroy(e));
}

/* What the worker says of the name in a handle to a process of another key: -EACCES while it is offered. */
static int offered(const void *handle)
{
	struct share_item item;
	int fd, err = share_find((const uint8_t *)handle + NAME, &item, &fd);

	if (fd >= 0)
		close(fd);
	return err;
}

/* Lines of the server's log that have @text. */
static int said(const char *text)
{
	char path[sizeof(serve_dir) + 8], line[512];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", serve_dir);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	if (f)
		fclose(f);
	return n;
}

/* Nothing is offered longer than it lives: else a program that shares one event after another fills the worker. */
static void withdrawn(void)
{
	CUmemGenericAllocationHandle h;
	CUmemFabricHandle memory;
	CUipcEventHandle a, b;
	CUcontext before, c;
	CUevent e;

	share_init("nobody");
	must(cuCtxGetCurrent(&before));
	must(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	must(cuIpcGetEventHandle(&a, e));
	must(cuIpcGetEventHandle(&b, e));
	ok(!memcmp(&a, &b, sizeof(a)), "an event keeps its name");
	is_int(offered(&a), -EACCES, "… and is offered while it lives");
	for (int i = 0; i < 10; i++)
		offered(&a);
	is_int(said("a client with key nobody has a name"), 1, "the log tells once of one who may not have it");
	b.reserved[NAME + SHARE_NAME - 1] ^= 1;
	is_int(offered(&b), -ENOENT, "who knows where it is but not its secret gets nothing");
	must(cuEventDestroy(e));
	must(cuCtxSynchronize());
	is_int(offered(&a), -ENOENT, "a destroyed event is not offered any more");
	must(cuCtxCreate_v4(&c, NULL, 0, 0));
	must(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	must(cuIpcGetEventHandle(&a, e));
	must(cuCtxDestroy(c));
	must(cuCtxSetCurrent(before));
	must(cuCtxSynchronize());
	is_int(offered(&a), -ENOENT, "nor is an event whose context was destroyed");
	must(cuMemCreate(&h, 2 * MIB, &prop, 0));
	must(cuMemExportToShareableHandle(&memory, h, CU_MEM_HANDLE_TYPE_FABRIC, 0));
	is_int(offered(&memory), -EACCES, "memory is offered while it lives");
	must(cuMemRelease(h));
	must(cuCtxSynchronize());
	is_int(offered(&memory), -ENOENT, "… and not longer");
}

int main(void)
{
	struct message m = {0};
	int sock, apart;
	pid_t pid, strange;

	serve(NULL, 2);
	pid = start(other_process, &sock);
	strange = start(stranger, &apart);
	primary();
	memory(sock, &m);
	physical(sock, &m);
	let_go(sock, &m);
	pool(sock, &m);
	event(sock, &m);
	ok(ended_well(pid), "the other process found all as it should be");
	/* Names of living things. */
	must(cuIpcGetMemHandle(&m.mem, first));
	must(cuMemExportToShareableHandle(&m.fabric, kept, CU_MEM_HANDLE_TYPE_FABRIC, 0));
	{
		CUevent e;

		must(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
		must(cuIpcGetEventHandle(&m.event, e));
	}
	put(apart, &m, -1);
	ok(ended_well(strange), "another client's key opens none of it");
	withdrawn();
	is_cu(cuIpcGetMemHandle(&m.mem, first), CUDA_SUCCESS);
	return tap_done();
}
