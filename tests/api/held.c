// SPDX-License-Identifier: MIT
/*
 * A program of one thread holds a stream, by a value or by a function of its own, gives it and others work, and opens it later.
 * No call that is asynchronous waits for that, nor does a synchronous one that has nothing to do with the stream; and what each
 * copy reads in host memory is what the work before it wrote there. Each case is a process: one that hangs is killed.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/api/serve.h"

#define MIB (1u << 20)

static CUcontext ctx;
static CUstream s, other;
static CUdeviceptr dev; /* 7 in its first MiB, 0 behind it */
static uint8_t *pinned; /* 1 */
static uint8_t pageable[4096];
static volatile uint32_t *flag; /* mapped */
static CUdeviceptr dflag;
static atomic_int open_gate;

static void hold(void)
{
	must(cuStreamWaitValue32(s, dflag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void let_go(void)
{
	*flag = 1;
	must(cuStreamSynchronize(s));
}

static void *open_later(void *arg)
{
	usleep(50000);
	*flag = 1;
	return arg;
}

static void CUDA_CB wait_gate(void *write)
{
	while (!open_gate)
		usleep(1000);
	if (write)
		*(uint8_t *)write = 33;
}

static int byte_at(uint64_t off)
{
	uint8_t b;

	must(cuMemcpyDtoH(&b, dev + off, 1));
	return b;
}

static CUgraphExec copy_graph(CUmemorytype from, CUmemorytype to, void *host, CUdeviceptr d, size_t bytes)
{
	CUDA_MEMCPY3D p = {.srcMemoryType = from,
			   .srcHost = host,
			   .srcDevice = d,
			   .dstMemoryType = to,
			   .dstHost = host,
			   .dstDevice = d,
			   .WidthInBytes = bytes,
			   .Height = 1,
			   .Depth = 1};
	CUgraphExec e;
	CUgraphNode n;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &p, ctx));
	must(cuGraphInstantiate(&e, g, 0));
	return e;
}

static CUgraphExec up_graph(void *from, uint64_t off, size_t bytes)
{
	return copy_graph(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, from, dev + off, bytes);
}

static CUgraphExec down_graph(void *to, size_t bytes)
{
	return copy_graph(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, to, dev, bytes);
}

static CUarray array(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {1024, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CUarray a;

	must(cuArrayCreate(&a, &d));
	return a;
}

static int array_byte(CUarray a, uint64_t x, uint64_t y)
{
	uint8_t b = 0;
	CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			   .srcArray = a,
			   .srcXInBytes = x,
			   .srcY = y,
			   .dstMemoryType = CU_MEMORYTYPE_HOST,
			   .dstHost = &b,
			   .WidthInBytes = 1,
			   .Height = 1};

	must(cuMemcpy2D(&p));
	return b;
}

/* ---- The cases: true where all is as it should be ---- */

static bool graph_behind_download(void)
{
	CUgraphExec e = up_graph(pinned, 2 * MIB, 4096);

	hold();
	must(cuMemcpyDtoHAsync(pinned, dev, 4096, s));
	must(cuGraphLaunch(e, s));
	let_go();
	return byte_at(2 * MIB + 4095) == 7;
}

static bool graph_behind_graph(void)
{
	CUgraphExec down = down_graph(pageable, sizeof(pageable)), up = up_graph(pageable, 2 * MIB, sizeof(pageable));

	hold();
	must(cuGraphLaunch(down, s));
	must(cuGraphLaunch(up, s));
	let_go();
	return byte_at(2 * MIB + 4095) == 7 && pageable[4095] == 7;
}

static bool between_downloads(void)
{
	hold();
	must(cuMemcpyDtoHAsync(pinned, dev, 4096, s));
	must(cuMemcpyDtoHAsync(pinned + 3 * MIB, dev, 4096, s));
	pinned[MIB] = 9;
	must(cuMemcpyHtoD(dev + 2 * MIB, pinned + MIB, 4096));
	let_go();
	return byte_at(2 * MIB) == 9 && pinned[0] == 7;
}

static bool graph_between_downloads(void)
{
	CUgraphExec e = up_graph(pinned + MIB, 2 * MIB, 4096);

	hold();
	must(cuMemcpyDtoHAsync(pinned, dev, 4096, s));
	must(cuMemcpyDtoHAsync(pinned + 3 * MIB, dev, 4096, s));
	pinned[MIB] = 9;
	must(cuGraphLaunch(e, other));
	must(cuStreamSynchronize(other));
	let_go();
	return byte_at(2 * MIB) == 9;
}

static bool array_behind_download(void)
{
	CUarray a = array();

	hold();
	must(cuMemcpyDtoHAsync(pinned, dev, 512, s));
	must(cuMemcpyHtoAAsync(a, 0, pinned, 1024, s));
	let_go();
	return array_byte(a, 511, 0) == 7 && array_byte(a, 512, 0) == 1;
}

static bool array_behind_function(void)
{
	CUarray a = array();
	CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = pinned,
			   .srcPitch = 256,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .dstArray = a,
			   .dstXInBytes = 3,
			   .WidthInBytes = 100,
			   .Height = 4};

	pinned[3 * 256 + 99] = 44;
	must(cuLaunchHostFunc(s, wait_gate, pinned));
	must(cuMemcpy2DAsync(&p, s));
	open_gate = 1;
	must(cuStreamSynchronize(s));
	return array_byte(a, 3, 0) == 33 && array_byte(a, 102, 3) == 44;
}

static bool short_rows(void)
{
	CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcDevice = dev,
			   .srcPitch = 256,
			   .dstMemoryType = CU_MEMORYTYPE_HOST,
			   .dstHost = pinned,
			   .dstPitch = 128,
			   .WidthInBytes = 100,
			   .Height = 1000};

	hold();
	must(cuMemcpy2DAsync(&p, s));
	let_go();
	return pinned[999 * 128 + 99] == 7 && pinned[998 * 128 + 100] == 1;
}

static bool registered(void)
{
	enum { SIZE = 3 * MIB };
	uint8_t *r = malloc(SIZE);
	bool good;

	memset(r, 2, SIZE);
	must(cuMemHostRegister(r, SIZE, 0));
	hold();
	must(cuMemsetD8Async(dev, 8, MIB, s));
	must(cuMemcpyDtoHAsync(r + 1, dev, MIB, s));
	must(cuMemcpyHtoDAsync(dev + 2 * MIB, r, MIB + 2, s));
	good = r[1] == 2;
	let_go();
	good = good && r[0] == 2 && r[1] == 8 && r[MIB] == 8 && r[MIB + 1] == 2 && byte_at(2 * MIB) == 2 &&
	       byte_at(3 * MIB) == 8 && byte_at(3 * MIB + 1) == 2;
	must(cuMemHostUnregister(r));
	return good;
}

/* Its bytes are there when it is the program's alone again, or they never come. */
static bool unregistered(void)
{
	uint8_t *r = malloc(MIB);
	pthread_t t;
	bool good;

	must(cuMemHostRegister(r, MIB, 0));
	hold();
	must(cuMemcpyDtoHAsync(r, dev, MIB, s));
	pthread_create(&t, NULL, open_later, NULL);
	must(cuMemHostUnregister(r));
	good = r[MIB - 1] == 7;
	memset(r, 5, MIB);
	pthread_join(t, NULL);
	must(cuCtxSynchronize());
	return good && r[0] == 5 && r[MIB - 1] == 5;
}

/* Nothing comes of it any more, and the session goes on. */
static bool context_gone(void)
{
	uint8_t *r = malloc(MIB);
	CUcontext c;
	CUstream mine;
	CUdeviceptr d;
	bool good;

	memset(r, 2, MIB);
	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&d, MIB));
	must(cuMemHostRegister(r, MIB, 0));
	must(cuStreamWaitValue32(mine, dflag, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemcpyDtoHAsync(r, d, MIB, mine));
	must(cuMemcpyDtoHAsync(r, d, 100, mine));
	must(cuCtxDestroy(c));
	must(cuMemcpyDtoHAsync(r, dev, 100, other));
	must(cuStreamSynchronize(other));
	good = r[99] == 7 && r[100] == 2;
	must(cuMemHostUnregister(r));
	free(r);
	return good && byte_at(0) == 7;
}

static bool copies_beside_function(void)
{
	bool good = true;

	must(cuLaunchHostFunc(s, wait_gate, NULL));
	for (int i = 2; i < 5; i++) {
		memset(pinned, i, 100000);
		must(cuMemcpyHtoDAsync(dev, pinned, 100000, other));
		must(cuMemcpyDtoHAsync(pinned + MIB, dev, 100000, other));
		must(cuStreamSynchronize(other));
		good = good && pinned[MIB + 99999] == i;
	}
	open_gate = 1;
	must(cuStreamSynchronize(s));
	return good;
}

static bool graph_beside_function(void)
{
	CUgraphExec e = up_graph(pinned, 2 * MIB, 100000);

	must(cuLaunchHostFunc(s, wait_gate, NULL));
	must(cuGraphLaunch(e, other));
	must(cuStreamSynchronize(other));
	open_gate = 1;
	must(cuStreamSynchronize(s));
	return byte_at(2 * MIB + 99999) == 1;
}

/* "A stream sync is performed before the copy is initiated": that of what the legacy stream orders. */
static bool sync_behind_graph(void)
{
	CUgraphExec down = down_graph(pageable, sizeof(pageable));
	CUstream blocking;
	pthread_t t;

	must(cuStreamCreate(&blocking, 0));
	must(cuStreamWaitValue32(blocking, dflag, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuGraphLaunch(down, blocking));
	pthread_create(&t, NULL, open_later, NULL);
	must(cuMemcpyHtoD(dev + 2 * MIB, pageable, sizeof(pageable)));
	pthread_join(t, NULL);
	return byte_at(2 * MIB + 4095) == 7;
}

static const struct {
	bool (*run)(void);
	const char *what;
} cases[] = {
	{graph_behind_download, "a graph reads page-locked memory that a held copy brings down"},
	{graph_behind_graph, "a graph reads ordinary memory that a held graph brings down"},
	{between_downloads, "a synchronous copy reads page-locked memory between the targets of held copies"},
	{graph_between_downloads, "a graph does, on another stream"},
	{array_behind_download, "a copy to an array reads memory that a held copy brings down"},
	{array_behind_function, "a copy to an array reads memory that a held function writes"},
	{short_rows, "many short rows come down"},
	{registered, "copies down to registered memory and up from it"},
	{unregistered, "memory is unregistered with a copy to it on its way"},
	{context_gone, "a context ends with copies to registered memory on their way"},
	{copies_beside_function, "copies go on beside a function that blocks"},
	{graph_beside_function, "a graph's copies go on beside a function that blocks"},
	{sync_behind_graph, "a synchronous copy reads memory that an earlier graph brings down"},
};

static int child(unsigned i)
{
	alarm(60);
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&ctx, 0));
	must(cuCtxSetCurrent(ctx));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemHostAlloc((void **)&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	must(cuMemHostGetDevicePointer(&dflag, (void *)flag, 0));
	must(cuMemAlloc(&dev, 4 * MIB));
	must(cuMemAllocHost((void **)&pinned, 4 * MIB));
	memset(pinned, 1, 4 * MIB);
	must(cuMemsetD8(dev, 7, MIB));
	must(cuMemsetD8(dev + MIB, 0, 3 * MIB));
	must(cuCtxSynchronize());
	return cases[i].run() ? 0 : 1;
}

int main(void)
{
	serve(NULL, 1);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int status = -1;
		pid_t pid = fork();

		if (!pid)
			_exit(child(i));
		waitpid(pid, &status, 0);
		ok(!status, "%s", cases[i].what);
		if (status)
			printf("# %s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "other bytes");
	}
	return tap_done();
}
