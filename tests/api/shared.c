// SPDX-License-Identifier: MIT
/* Memory that program and kernels share: mapped, registered and managed. */
#include <time.h>
#include "tests/api/serve.h"

#define BIG (3 << 20) /* of ints: more than travels in one piece */

static CUfunction add, answer;

static void load(void)
{
	static char text[1 << 20];
	CUmodule m;
	int fd = open(built("tests/api/kernels.ptx"), O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) <= 0)
		exit(1);
	must(cuModuleLoadData(&m, text));
	must(cuModuleGetFunction(&add, m, "add"));
	must(cuModuleGetFunction(&answer, m, "answer"));
}

/* p[i] += v on the device, which nobody waits for. */
static void plus(CUdeviceptr p, long long n, int v, CUstream s)
{
	void *args[] = {&p, &n, &v};

	must(cuLaunchKernel(add, 32, 1, 1, 128, 1, 1, 0, s, args, NULL));
}

static long sum_wrong(const int *p, long n, int first, int step)
{
	long bad = 0;

	for (long i = 0; i < n; i++)
		bad += p[i] != first + step * (int)i;
	return bad;
}

static void attributes(void)
{
	int v = 0;

	must(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0));
	is_int(v, 1, "host memory can be mapped");
	must(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
	is_int(v, 1, "memory can be managed");
	must(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
	is_int(v, 0, "but is the program's only while the device is idle");
	must(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 0));
	is_int(v, 0, "registered memory has another address on the device");
}

static void mapped(void)
{
	unsigned flags = 0, type = 0;
	CUdeviceptr d = 0, other;
	void *host = NULL;
	int *p;

	is_cu(cuMemHostAlloc((void **)&p, BIG * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
	is_cu(cuMemHostGetDevicePointer(&d, p, 0), CUDA_SUCCESS);
	ok(d == (CUdeviceptr)p, "one address for both");
	is_cu(cuMemHostGetFlags(&flags, p + 5), CUDA_SUCCESS);
	is_int(flags, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE, "its flags");
	must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 4));
	is_int(type, CU_MEMORYTYPE_HOST, "it is host memory");
	must(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, d + 4));
	ok(host == p + 1, "with an address of the host's");
	for (int i = 0; i < BIG; i++)
		p[i] = i;
	plus(d, BIG, 7, NULL);
	must(cuCtxSynchronize());
	is_int(sum_wrong(p, BIG, 7, 1), 0, "all that the program wrote was there, and what the kernel made of it is here");
	p[1000] = -7;
	plus(d, BIG, 1, NULL);
	must(cuStreamSynchronize(NULL));
	is_int(p[1000], -6, "again, for one word");
	is_int(p[BIG - 1], BIG + 7, "and the rest");
	/* In stream order behind a kernel, though the host's copy is old at the call. */
	must(cuMemAlloc(&other, BIG * sizeof(int)));
	plus(d, BIG, 1, NULL);
	is_cu(cuMemcpyHtoDAsync(other, p, BIG * sizeof(int), NULL), CUDA_SUCCESS);
	plus(other, BIG, 1000, NULL);
	is_cu(cuMemcpyDtoH(p, other, BIG * sizeof(int)), CUDA_SUCCESS);
	is_int(p[2], 2 + 9 + 1000, "a copy from there and back");
	is_int(p[BIG - 1], BIG - 1 + 9 + 1000, "to the end");
	is_cu(cuMemsetD32(d + 40, 3, 2), CUDA_SUCCESS);
	ok(p[9] == 9 + 1009 && p[10] == 3 && p[11] == 3 && p[12] == 12 + 1009, "a memset has happened when it returns");
	is_cu(cuMemFreeHost(p + 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFreeHost(p), CUDA_SUCCESS);
	is_cu(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(other));
}

/* Many small ones, of which each is its own. */
static void many(void)
{
	enum { N = 300 };
	static int *p[N];
	long bad = 0;

	for (int i = 0; i < N; i++) {
		must(cuMemHostAlloc((void **)&p[i], 4 + i, CU_MEMHOSTALLOC_DEVICEMAP));
		*p[i] = i;
	}
	for (int i = 0; i < N; i += 3)
		plus((CUdeviceptr)p[i], 1, 1000, NULL);
	must(cuCtxSynchronize());
	for (int i = 0; i < N; i++) {
		bad += *p[i] != (i % 3 ? i : i + 1000);
		must(cuMemFreeHost(p[i]));
	}
	is_int(bad, 0, "three hundred small ones");
}

static void registered(void)
{
	int *mine = malloc(BIG * sizeof(int)), *at = mine + 3;
	CUdeviceptr d = 0, again = 0;
	void *pinned;

	for (int i = 0; i < BIG; i++)
		mine[i] = 2 * i;
	is_cu(cuMemHostGetDevicePointer(&d, at, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister(at, (BIG - 10) * sizeof(int), CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
	is_cu(cuMemHostGetDevicePointer(&d, at, 0), CUDA_SUCCESS);
	is_cu(cuMemHostGetDevicePointer(&again, at + 100, 0), CUDA_SUCCESS);
	ok(d && again == d + 400, "an inner address has its own");
	plus(d, BIG - 10, 5, NULL);
	must(cuCtxSynchronize());
	is_int(sum_wrong(at, BIG - 10, 6 + 5, 2), 0, "the kernel worked on it");
	ok(mine[2] == 4 && mine[BIG - 7] == 2 * (BIG - 7), "and on nothing beside it");
	at[8] = 1;
	plus(d, 20, 1, NULL);
	must(cuCtxSynchronize());
	is_int(at[8], 2, "what was written since is there");
	is_cu(cuMemHostUnregister(at), CUDA_SUCCESS);
	is_cu(cuMemHostUnregister(at), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(mine);
	must(cuMemHostAlloc(&pinned, 4096, 0));
	is_cu(cuMemHostGetDevicePointer(&d, pinned, 0), CUDA_SUCCESS);
	*(int *)pinned = 40;
	plus(d, 1, 2, NULL);
	must(cuCtxSynchronize());
	is_int(*(int *)pinned, 42, "page-locked memory, mapped when somebody asked");
	ok(d == (CUdeviceptr)pinned, "at its own address");
	is_cu(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

/* Rows of 10 ints, 16 apart: from the program's memory to the device by each kind of copy that can. */
enum form { ROWS, BOX, UNIFIED, ARRAY, CAPTURED, NODE, FORMS };

static void copy_rows(enum form form, CUdeviceptr to, CUarray array, const int *from, CUstream s)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = from,
			   .srcPitch = 64,
			   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = to,
			   .dstPitch = 64,
			   .WidthInBytes = 40,
			   .Height = 5,
			   .Depth = 1};
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = from,
			      .srcPitch = 64,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = to,
			      .dstPitch = 64,
			      .WidthInBytes = 40,
			      .Height = 5};
	CUgraphExec exec;
	CUgraphNode n;
	CUgraph g;

	switch (form) {
	case ROWS:
		must(cuMemcpy2DAsync(&rows, s));
		return;
	case BOX:
		must(cuMemcpy3DAsync(&c, s));
		return;
	case UNIFIED:
		c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.srcDevice = (CUdeviceptr)from;
		must(cuMemcpy3DAsync(&c, s));
		return;
	case ARRAY:
		rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		rows.dstArray = array;
		must(cuMemcpy2DAsync(&rows, s));
		rows.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		rows.srcArray = array;
		rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
		must(cuMemcpy2DAsync(&rows, s));
		return;
	case CAPTURED:
		must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		must(cuMemcpy2DAsync(&rows, s));
		must(cuStreamEndCapture(s, &g));
		break;
	default:
		must(cuGraphCreate(&g, 0));
		must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, NULL));
	}
	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	must(cuGraphLaunch(exec, s));
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

/* What a kernel before it in the stream makes of the memory is what a copy takes, whatever the copy and whatever the memory. */
static void in_order(const char *what, int *p, CUdeviceptr d)
{
	static const char *const forms[] = {"rows",	   "a box",	    "a box by address",
					    "to an array", "captured rows", "a graph's node"};
	CUDA_ARRAY_DESCRIPTOR shape = {.Width = 10, .Height = 5, .Format = CU_AD_FORMAT_SIGNED_INT32, .NumChannels = 1};
	CUstream s, other;
	CUdeviceptr to, flag;
	CUarray array;
	int got[80];

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&to, sizeof(got)));
	must(cuMemAlloc(&flag, 4));
	must(cuArrayCreate(&array, &shape));
	for (int form = 0; form < FORMS; form++) {
		int bad = 0;

		for (int i = 0; i < 80; i++)
			p[i] = i;
		must(cuMemsetD32(flag, 0, 1));
		must(cuMemsetD8(to, 0, sizeof(got)));
		must(cuCtxSynchronize());
		must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		plus(d, 80, 1000, s);
		copy_rows(form, to, array, p, s);
		must(cuStreamWriteValue32(other, flag, 1, 0));
		must(cuStreamSynchronize(s));
		must(cuMemcpyDtoH(got, to, sizeof(got)));
		for (int i = 0; i < 80; i++)
			bad += got[i] != (i % 16 < 10 ? i + 1000 : 0);
		is_int(bad, 0, "%s: %s come after the kernel", what, forms[form]);
	}
	must(cuArrayDestroy(array));
	must(cuMemFree(to));
	must(cuMemFree(flag));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
}

static void copied(void)
{
	static int mine[100];
	CUdeviceptr d;
	int *p;

	must(cuMemHostRegister(mine + 3, 80 * sizeof(int), CU_MEMHOSTREGISTER_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&d, mine + 3, 0));
	in_order("registered", mine + 3, d);
	must(cuMemHostUnregister(mine + 3));
	must(cuMemHostAlloc((void **)&p, 80 * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP));
	in_order("mapped", p, (CUdeviceptr)p);
	must(cuMemFreeHost(p));
	must(cuMemAllocHost((void **)&p, 80 * sizeof(int)));
	in_order("page-locked", p, (CUdeviceptr)p);
	must(cuMemFreeHost(p));
	must(cuMemAllocManaged(&d, 80 * sizeof(int), CU_MEM_ATTACH_GLOBAL));
	in_order("managed", (int *)d, d);
	must(cuMemFree(d));
}

/* What a graph's nodes touch goes up before each launch, and comes down after it. */
static void graph(void)
{
	int v = 3, *p, *q;
	long long n = 100;
	CUdeviceptr d, e;
	void *args[] = {&e, &n, &v};
	CUDA_KERNEL_NODE_PARAMS node = {.func = add,
					.gridDimX = 1,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = 128,
					.blockDimY = 1,
					.blockDimZ = 1,
					.kernelParams = args};
	CUgraphExec exec;
	CUgraphNode at;
	CUstream s;
	CUgraph g;

	must(cuMemAllocManaged(&d, 4000, CU_MEM_ATTACH_GLOBAL));
	must(cuMemAllocHost((void **)&q, 4000));
	p = (int *)d;
	e = (CUdeviceptr)q;
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	plus(d, 100, 1, s);
	plus(d, 100, 1, s);
	must(cuStreamEndCapture(s, &g));
	must(cuGraphAddKernelNode(&at, g, NULL, 0, &node));
	must(cuGraphInstantiate(&exec, g, 0));
	for (int i = 0; i < 100; i++)
		p[i] = q[i] = i;
	for (int k = 0; k < 3; k++) {
		p[k] = -2;
		must(cuGraphLaunch(exec, s));
		must(cuStreamSynchronize(s));
	}
	if (!ok(p[0] == 4 && p[1] == 2 && p[2] == 0 && p[99] == 105, "a graph launched three times, and changes in between"))
		printf("# %d %d %d %d\n", p[0], p[1], p[2], p[99]);
	is_int(q[50], 59, "page-locked memory that only a node names");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
	must(cuMemFreeHost(q));
}

/* The watcher of memory that was here before makes these, too, until it has seen all work done: on a busy machine that is late.
 */
static long trips_of_ours(void)
{
	return rgpuRoundTrips(NULL) - rgpuRoundTrips("SHARE_DOWN") - rgpuRoundTrips("CTX_SYNC");
}

/* Page-locked memory whose host pointer goes to a kernel: with unified addressing nobody need say more. */
static void unified(void)
{
	enum { N = 300000 };
	long twins = rgpuRoundTrips("SHARE"), before;
	CUdeviceptr dev, at = 0;
	int *p, *q;

	must(cuMemAlloc(&dev, N * sizeof(int)));
	must(cuMemAllocHost((void **)&p, N * sizeof(int)));
	must(cuMemAllocHost((void **)&q, N * sizeof(int)));
	for (int i = 0; i < N; i++)
		p[i] = q[i] = i;
	is_cu(cuPointerGetAttribute(&at, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, (CUdeviceptr)p + 8), CUDA_SUCCESS);
	is_int(at, (CUdeviceptr)p + 8, "its device address is its own");
	must(cuMemcpyHtoDAsync(dev, p, N * sizeof(int), NULL));
	plus(dev, N, 1, NULL);
	before = trips_of_ours();
	must(cuMemcpyDtoHAsync(p, dev, N * sizeof(int), NULL));
	must(cuStreamSynchronize(NULL));
	is_int(trips_of_ours() - before, 1, "copies to and from it cost what they did");
	is_int(sum_wrong(p, N, 1, 1), 0, "and bring the bytes");
	is_int(rgpuRoundTrips("SHARE"), twins, "it has no twin");
	plus((CUdeviceptr)p, N, 10, NULL);
	plus((CUdeviceptr)(q + 5), 1, 10, NULL);
	must(cuCtxSynchronize());
	is_int(rgpuRoundTrips("SHARE"), twins + 2, "given to a kernel it gets one");
	is_int(sum_wrong(p, N, 11, 1), 0, "and the kernel's work is here");
	ok(q[4] == 4 && q[5] == 15 && q[6] == 6, "in the middle of one, too");
	must(cuMemcpyDtoDAsync(dev, (CUdeviceptr)p, N * sizeof(int), NULL));
	plus(dev, N, 1, NULL);
	must(cuMemcpyDtoH(q, dev, N * sizeof(int)));
	is_int(sum_wrong(q, N, 12, 1), 0, "copies from there");
	is_cu(cuMemsetD8((CUdeviceptr)p, 0, N * sizeof(int) + 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFreeHost(p), CUDA_SUCCESS);
	is_cu(cuMemFreeHost(q), CUDA_SUCCESS);
	is_cu(cuMemFreeHost(q), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(dev));
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Until *p is @want, or for a minute: no time is asserted. */
static bool comes(volatile int *p, int want)
{
	for (int i = 0; i < 600000 && *p != want; i++)
		nap();
	return *p == want;
}

static void polled(void)
{
	volatile int *ask;
	CUdeviceptr a, b;
	int rounds = 20, good = 0;
	void *args[] = {&a, &b, &rounds};
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemHostAlloc((void **)&ask, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	a = (CUdeviceptr)ask;
	b = a + 4; /* the two ends write words side by side */
	ask[0] = ask[1] = 0;
	must(cuLaunchKernel(answer, 1, 1, 1, 1, 1, 1, 0, s, args, NULL));
	for (int i = 1; i <= rounds; i++) {
		ask[0] = i;
		good += comes(&ask[1], 10 * i);
	}
	is_int(good, rounds, "a kernel that runs and the program, in turns");
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	/* The same with streams instead of kernels. */
	for (good = 0; good < 100; good++) {
		ask[0] = ask[1] = 0;
		must(cuStreamWaitValue32(s, a, 3, CU_STREAM_WAIT_VALUE_EQ));
		must(cuStreamWriteValue32(s, b, 4, 0));
		if (cuStreamQuery(s) != CUDA_ERROR_NOT_READY)
			break;
		ask[0] = 3;
		if (!comes(&ask[1], 4))
			break;
		must(cuStreamSynchronize(s));
	}
	is_int(good, 100, "a stream that waits for a flag, and sets one");
	must(cuMemFreeHost((void *)ask));
	must(cuStreamDestroy(s));
}

static int seen;

static void CUDA_CB look(void *p)
{
	seen = *(int *)p;
	*(int *)p = 50;
}

static void managed(void)
{
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
	int by[3] = {9, 9, 9}, v = 9, yes = 0;
	CUdeviceptr d, small;
	CUevent e;
	CUstream s;
	int *p;

	is_cu(cuMemAllocManaged(&d, 16, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAllocManaged(&d, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAllocManaged(&d, BIG * sizeof(int), CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	is_cu(cuMemAllocManaged(&small, 64, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	must(cuPointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_IS_MANAGED, d + 8));
	is_int(yes, 1, "a pointer knows that it is managed");
	p = (int *)d;
	for (int i = 0; i < BIG; i++)
		p[i] = 3 * i;
	is_cu(cuMemPrefetchAsync(d, BIG * sizeof(int), here, 0, NULL), CUDA_SUCCESS);
	plus(d, BIG, 1, NULL);
	plus(d, BIG, 1, NULL);
	must(cuCtxSynchronize());
	is_int(sum_wrong(p, BIG, 2, 3), 0, "two kernels on what the program wrote");
	/* A call that is no work lies between what the program writes. */
	must(cuFuncSetCacheConfig(add, CU_FUNC_CACHE_PREFER_L1));
	p[5] = 0;
	plus(d, BIG, 1, NULL);
	must(cuEventCreate(&e, 0));
	must(cuEventRecord(e, NULL));
	while ((yes = cuEventQuery(e)) == CUDA_ERROR_NOT_READY)
		nap();
	is_int(yes, 0, "asked for until it is done");
	ok(p[5] == 1 && p[6] == 21, "then the values are there");
	/* A host function between two kernels. */
	*(int *)small = 1;
	must(cuStreamCreate(&s, 0));
	plus(small, 1, 9, s);
	must(cuLaunchHostFunc(s, look, (void *)small));
	plus(small, 1, 9, s);
	must(cuStreamSynchronize(s));
	is_int(seen, 10, "a host function sees what came before it");
	is_int(*(int *)small, 59, "and what comes after it sees the function's");
	is_cu(cuStreamAttachMemAsync(s, small, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS);
	is_cu(cuStreamAttachMemAsync(NULL, small, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamAttachMemAsync(s, small + 4, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	plus(d, BIG, 1, NULL);
	*(int *)small = 5;
	plus(small, 1, 1, s);
	must(cuStreamSynchronize(s));
	is_int(*(int *)small, 6, "attached to a stream it is the program's while others work");
	is_cu(cuMemAdvise(d, BIG * sizeof(int), CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_SUCCESS);
	is_cu(cuMemAdvise(d, BIG * sizeof(int), CU_MEM_ADVISE_SET_ACCESSED_BY, here), CUDA_SUCCESS);
	is_cu(cuMemAdvise(d, BIG * sizeof(int), CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host), CUDA_SUCCESS);
	is_cu(cuMemAdvise(d, BIG * sizeof(int) + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, d, BIG), CUDA_SUCCESS);
	is_int(v, 1, "read mostly");
	is_cu(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, d, BIG), CUDA_SUCCESS);
	is_int(v, CU_DEVICE_CPU, "preferred on the host");
	is_cu(cuMemRangeGetAttribute(by, sizeof(by), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, d, BIG), CUDA_SUCCESS);
	ok(by[0] == 0 && by[1] == CU_DEVICE_INVALID && by[2] == CU_DEVICE_INVALID, "accessed by one device");
	is_cu(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, d, BIG), CUDA_SUCCESS);
	is_int(v, 0, "prefetched to it");
	is_cu(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, (CUdeviceptr)&v, 4), CUDA_ERROR_INVALID_VALUE);
	{
		CUmem_range_attribute what[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
						CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION};
		int mostly = 9, last = 9;
		void *where[] = {&mostly, &last};
		size_t sizes[] = {4, 4};

		is_cu(cuMemRangeGetAttributes(where, sizes, what, 2, d, BIG), CUDA_SUCCESS);
		must(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, d, BIG));
		is_int(mostly, v, "two at once: the one");
		must(cuMemRangeGetAttribute(&v, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, d, BIG));
		is_int(last, v, "and the other");
		is_cu(cuMemRangeGetAttributes(where, sizes, what, 0, d, BIG), CUDA_ERROR_INVALID_VALUE);
	}
	is_cu(cuMemFree(d), CUDA_SUCCESS);
	is_cu(cuMemFree(d), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFree(small), CUDA_SUCCESS);
	must(cuStreamDestroy(s));
}

/* Without such memory nothing is asked for its sake. */
static void free_of_charge(void)
{
	CUdeviceptr d;
	long before;

	must(cuMemAlloc(&d, 4096));
	must(cuMemsetD32(d, 0, 1024));
	must(cuCtxSynchronize());
	before = rgpuRoundTrips(NULL);
	plus(d, 4, 1, NULL);
	must(cuCtxSynchronize());
	is_int(rgpuRoundTrips(NULL) - before, 1, "launch and wait: one round trip");
	is_int(rgpuRoundTrips("SHARE_DOWN"), 0, "none of them about shared memory");
	must(cuMemFree(d));
}

/* A variable is shared when its module says that it is managed. */
static void variables(void)
{
	static const char ptx[] =
		".version 7.0\n.target sm_75\n.address_size 64\n"
		".visible .global .attribute(.managed) .align 4 .u32 both = 5;\n"
		".visible .global .align 4 .u32 plain = 6;\n"
		".visible .entry add()\n{\n	.reg .u32 %r;\n	atom.global.add.u32 %r, [both], 2;\n	ret;\n}\n";
	CUdeviceptr d = 0, again = 0;
	size_t bytes = 0;
	CUlibrary lib;
	CUkernel k;

	must(cuLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0));
	is_cu(cuLibraryGetManaged(&d, &bytes, lib, "plain"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuLibraryGetManaged(&d, &bytes, lib, "nothing"), CUDA_ERROR_NOT_FOUND);
	is_cu(cuLibraryGetGlobal(&d, &bytes, lib, "plain"), CUDA_SUCCESS);
	is_cu(cuLibraryGetManaged(&d, &bytes, lib, "both"), CUDA_SUCCESS);
	is_int(bytes, 4, "four bytes that both sides have");
	must(cuLibraryGetGlobal(&again, NULL, lib, "both"));
	ok(again == d, "at the variable's one address");
	is_int(*(unsigned *)d, 5, "with the value of the image");
	must(cuLibraryGetKernel(&k, lib, "add"));
	must(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	must(cuCtxSynchronize());
	is_int(*(unsigned *)d, 7, "and what a kernel added");
	must(cuLibraryUnload(lib));
}

int main(void)
{
	serve(NULL, 2);
	primary();
	load();
	attributes();
	free_of_charge();
	managed();
	mapped();
	many();
	registered();
	copied();
	unified();
	graph();
	polled();
	variables();
	return tap_done();
}
