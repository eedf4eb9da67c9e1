// SPDX-License-Identifier: MIT
/* Launches: what is refused at the call, parameters of all shapes, attributes, printf, and what a fault does. */
#include "tests/api/serve.h"

static CUmodule m;
static CUdeviceptr d;

static CUfunction kernel(const char *name)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, m, name));
	return f;
}

static void refused(void)
{
	CUfunction fill = kernel("fill"), small = kernel("small"), shared = kernel("shared");
	int n = 1, v = 2, got = 0;
	void *p[] = {&d, &n, &v}, *holes[] = {&d, NULL, &v};
	size_t bytes = 4;
	void *extra_short[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &d, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	static const struct {
		unsigned g[3], b[3], shared;
	} bad[] = {
		{{0, 1, 1}, {1, 1, 1}, 0},	     {{1, 0, 1}, {1, 1, 1}, 0},		{{1, 1, 0}, {1, 1, 1}, 0},
		{{1, 1, 1}, {0, 1, 1}, 0},	     {{1, 1, 1}, {1, 0, 1}, 0},		{{1, 1, 1}, {1, 1, 0}, 0},
		{{0x80000000u, 1, 1}, {1, 1, 1}, 0}, {{1, 65536, 1}, {1, 1, 1}, 0},	{{1, 1, 65536}, {1, 1, 1}, 0},
		{{1, 1, 1}, {1025, 1, 1}, 0},	     {{1, 1, 1}, {1, 1025, 1}, 0},	{{1, 1, 1}, {1, 1, 65}, 0},
		{{1, 1, 1}, {64, 32, 1}, 0},	     {{1, 1, 1}, {65536, 65536, 1}, 0}, {{1, 1, 1}, {1, 1, 1}, 49153},
		{{1, 1, 1}, {1, 1, 1}, 0xffffffffu},
	};

	must(cuMemsetD32(d, 1, 1));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		is_int(cuLaunchKernel(fill, bad[i].g[0], bad[i].g[1], bad[i].g[2], bad[i].b[0], bad[i].b[1], bad[i].b[2],
				      bad[i].shared, NULL, p, NULL),
		       CUDA_ERROR_INVALID_VALUE, "grid %u %u %u, block %u %u %u, shared %u", bad[i].g[0], bad[i].g[1],
		       bad[i].g[2], bad[i].b[0], bad[i].b[1], bad[i].b[2], bad[i].shared);
	is_cu(cuLaunchKernel(small, 1, 1, 1, 65, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, holes, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra_short), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, p, extra_short), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchKernel((CUfunction)m, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, (CUstream)m, p, NULL), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_NUM_REGS, 8), CUDA_ERROR_INVALID_VALUE);
	must(cuMemcpyDtoH(&got, d, 4));
	is_int(got, 1, "nothing of it ran");
}

/* Tensor maps of windows: the soft device has none. What is wrong with one is said all the same. */
static void windows(void)
{
	const cuuint64_t dim[4] = {64, 32, 32, 4}, strides[3] = {128, 4096, 131072};
	const int lower[2] = {-1, -1}, upper[2] = {-1, -1};
	const cuuint32_t step[4] = {1, 1, 1, 1};
	CUtensorMap map;
	CUdeviceptr p;

	must(cuMemAlloc(&p, 1 << 20));
	is_cu(cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)p, dim, strides, lower, upper, 64, 32,
				      step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
				      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
	      CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuTensorMapEncodeIm2colWide(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)p, dim, strides, -1, -1, 64, 32, step,
					  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
					  CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
					  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
	      CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuTensorMapEncodeIm2col(NULL, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, (void *)p, dim, strides, lower, upper, 64, 32,
				      step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
				      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
	      CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
}

/* Tensor maps of tiles: one whose address is replaced is what it would have been with that address. */
static void tiles(void)
{
	const cuuint64_t dim[2] = {64, 32}, strides[1] = {256};
	const cuuint32_t box[2] = {16, 8}, step[2] = {1, 1};
	CUtensorMap map[3];
	CUdeviceptr p;

	must(cuMemAlloc(&p, 1 << 20));
	for (int i = 0; i < 3; i++)
		is_cu(cuTensorMapEncodeTiled(&map[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(p + (i == 1) * 65536), dim,
					     strides, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
					     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
		      CUDA_SUCCESS);
	ok(!memcmp(&map[0], &map[2], sizeof(map[0])) && memcmp(&map[0], &map[1], sizeof(map[0])),
	   "a map is its parameters' alone");
	is_cu(cuTensorMapReplaceAddress(&map[0], (void *)(p + 65536)), CUDA_SUCCESS);
	ok(!memcmp(&map[0], &map[1], sizeof(map[0])), "with another address");
	must(cuMemFree(p));
}

static void params(void)
{
	struct {
		char c;
		double d;
		short s[3];
	} o = {3, 0.25, {0, 0, 40}};
	struct __attribute__((packed)) {
		CUdeviceptr out;
		char a, pad[7];
		double b;
		char o[24];
		int c;
	} packed = {.a = 9, .b = 1.5, .c = 100};
	size_t bytes = sizeof(packed);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CUfunction f = kernel("params");
	double b = -2.5, got[5];
	char a = 'x';
	int c = 6;
	void *p[] = {&d, &a, &b, &o, &c};

	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_SUCCESS);
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	ok(got[0] == 'x' && got[1] == -2.5 && got[2] == 43.25 && got[3] == 10 && got[4] == 7,
	   "parameters of five shapes: %g %g %g %g %g", got[0], got[1], got[2], got[3], got[4]);
	packed.out = d;
	memcpy(packed.o, &o, sizeof(packed.o));
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_SUCCESS);
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	ok(got[0] == 9 && got[1] == 1.5 && got[2] == 43.25 && got[3] == 104 && got[4] == 8, "and as one buffer");
}

static void shapes(void)
{
	CUfunction fill = kernel("fill"), shared = kernel("shared");
	CUlaunchAttribute attr[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = 0},
				     {.id = CU_LAUNCH_ATTRIBUTE_IGNORE}};
	CUlaunchConfig cfg = {.gridDimX = 4,
			      .gridDimY = 1,
			      .gridDimZ = 1,
			      .blockDimX = 64,
			      .blockDimY = 1,
			      .blockDimZ = 1,
			      .attrs = attr,
			      .numAttrs = 2};
	int n = 256, v = 77, got[1024], bad = 0, blocks = 0;
	void *p[] = {&d, &n, &v}, *q[] = {&d};
	CUstream s;

	must(cuStreamCreate(&s, 0));
	cfg.hStream = s;
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	for (int i = 0; i < n; i++)
		bad += got[i] != 77;
	is_int(bad, 0, "cuLaunchKernelEx with attributes");
	attr[0].id = 4711;
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_ERROR_NOT_SUPPORTED);
	attr[0].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	attr[0].value.launchCompletionEvent.event = (CUevent)0x123;
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_ERROR_INVALID_HANDLE);
	attr[0].value.launchCompletionEvent.event = NULL;
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_ERROR_INVALID_HANDLE);
	/* It keeps no time, and is no other process's. */
	must(cuEventCreate(&attr[0].value.launchCompletionEvent.event, 0));
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuEventDestroy(attr[0].value.launchCompletionEvent.event));
	must(cuEventCreate(&attr[0].value.launchCompletionEvent.event, CU_EVENT_DISABLE_TIMING));
	attr[0].value.launchCompletionEvent.flags = CU_EVENT_RECORD_EXTERNAL;
	is_cu(cuLaunchKernelEx(&cfg, fill, p, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuEventDestroy(attr[0].value.launchCompletionEvent.event));
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	is_cu(cuLaunchKernelEx(NULL, fill, p, NULL), CUDA_ERROR_INVALID_VALUE);
	v = 78;
	is_cu(cuLaunchCooperativeKernel(fill, 2, 1, 1, 32, 1, 1, 0, s, p), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(got, d, sizeof(got)));
	ok(got[63] == 78 && got[64] == 77, "a cooperative launch");
	is_cu(cuLaunchCooperativeKernel(fill, 1 << 20, 1, 1, 1024, 1, 1, 0, s, p), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	is_cu(cuLaunchKernel(shared, 1, 1, 1, 256, 1, 1, 1024, NULL, q, NULL), CUDA_SUCCESS);
	must(cuMemcpyDtoH(got, d, 1024));
	ok(got[0] == 255 && got[255] == 0, "dynamic shared memory");
	is_cu(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000), CUDA_SUCCESS);
	is_cu(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared), CUDA_SUCCESS);
	is_int(v, 60000, "more of it, once it is allowed");
	is_cu(cuLaunchKernel(shared, 1, 1, 1, 256, 1, 1, 60000, NULL, q, NULL), CUDA_SUCCESS);
	is_cu(cuLaunchKernel(shared, 1, 1, 1, 256, 1, 1, 60001, NULL, q, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuFuncSetCacheConfig(shared, CU_FUNC_CACHE_PREFER_SHARED), CUDA_SUCCESS);
	is_cu(cuFuncSetSharedMemConfig(shared, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE), CUDA_SUCCESS);
	is_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0), CUDA_SUCCESS);
	ok(blocks >= 1, "occupancy: %d blocks", blocks);
	is_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 0, 0), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
}

/* 2,000 launches behind a wait that another call releases: none blocks, and they run in order. */
static void deep(void)
{
	CUfunction f = kernel("times3");
	unsigned k = 1, want = 1, got;
	void *p[] = {NULL, &k};
	CUstream s, other;
	CUdeviceptr x = d + 64;
	long before;

	p[0] = &x;
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32(d, 0, 1));
	must(cuMemsetD32(x, 1, 1));
	must(cuCtxSynchronize());
	before = rgpuRoundTrips(NULL);
	must(cuStreamWaitValue32(s, d, 1, CU_STREAM_WAIT_VALUE_EQ));
	for (k = 0; k < 2000; k++) {
		must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, p, NULL));
		want = want * 3 + k;
	}
	must(cuStreamWriteValue32(other, d, 1, 0));
	is_int(rgpuRoundTrips(NULL), before, "2000 launches and their release: no round trip");
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&got, x, 4));
	is_int(got, want, "in order");
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
}

/* Text of kernels is on stdout before the waiting call returns. */
static void printing(void)
{
	CUfunction f = kernel("say");
	int n = 42, out = dup(1), fd;
	void *p[] = {&n};
	char path[] = "/tmp/rgpu-say.XXXXXX", text[128] = "";

	fd = mkstemp(path);
	unlink(path);
	fflush(stdout);
	dup2(fd, 1);
	printf("before\n");
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL));
	must(cuCtxSynchronize());
	printf("after\n");
	fflush(stdout);
	dup2(out, 1);
	close(out);
	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		text[0] = 0;
	close(fd);
	is_str(text, "before\nkernel says 42\nafter\n", "device printf comes in order");
}

/* A quiet call fails at the server, behind a kernel that ended the context. */
static void fail_quietly(CUdeviceptr p)
{
	CUfunction f = kernel("wild");

	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
	usleep(200000);
	for (int i = 0; i < 10; i++)
		must(cuMemsetD32Async(p, 0, 1, NULL));
}

/* An error that ends a context is told by its own calls, and by no other context's. */
static void fault_of_another(CUcontext c)
{
	CUmodule mine = m;
	CUdeviceptr e;
	CUcontext b;
	int word;

	must(cuCtxCreate(&b, NULL, 0, 0));
	must(cuMemAlloc(&e, 4096));
	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	fail_quietly(e);
	must(cuCtxSetCurrent(c));
	is_cu(cuMemcpyDtoH(&word, d, 4), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuCtxSetCurrent(b));
	is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuMemcpyDtoH(&word, e, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	must(cuCtxDestroy(b));
	is_cu(cuCtxCreate(&b, NULL, 0, 0), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuCtxDestroy(b));
	must(cuCtxSetCurrent(c));
	m = mine;
}

/* After a reset the context is as new. */
static void reset(CUcontext c)
{
	int word = 0;

	must(cuDevicePrimaryCtxReset(0));
	must(cuCtxSetCurrent(c));
	for (int i = 0; i < 3; i++) {
		must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
		is_cu(cuMemAlloc(&d, 4096), CUDA_SUCCESS);
		is_cu(cuMemsetD32Async(d, 77 + i, 1, NULL), CUDA_SUCCESS);
		is_cu(cuMemcpyDtoH(&word, d, 4), CUDA_SUCCESS);
		is_int(word, 77 + i, "… and works");
		fail_quietly(d);
		is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
		must(cuDevicePrimaryCtxReset(0));
	}
}

static void fault(CUcontext c)
{
	CUfunction f = kernel("wild");
	CUcontext again;
	CUdeviceptr e;
	void *p[] = {&d};

	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuMemsetD32(d, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuMemAlloc(&e, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, p, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuCtxGetCurrent(&again), CUDA_SUCCESS);
	ok(again == c, "the context is still current");
}

int main(void)
{
	CUcontext c;

	serve(NULL, 1);
	c = primary();
	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	must(cuMemAlloc(&d, 4096));
	refused();
	windows();
	tiles();
	params();
	shapes();
	deep();
	printing();
	fault_of_another(c);
	fault(c);
	reset(c);
	return tap_done();
}
