// SPDX-License-Identifier: MIT
/* Earlier editions of names that have a newer one: found by dlsym, as programs built with older headers do. */
#include <dlfcn.h>
#include <string.h>
#include "tests/api/serve.h"

static void *cuda;

#define OLD(name, ...) ((CUresult(*)())dlsym(cuda, #name))(__VA_ARGS__)

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .global .align 4 .u32 number = 5;\n"
			  ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
			  "	.reg .u64 %d; .reg .u32 %r<5>;\n"
			  "	ld.param.u64 %d, [p]; ld.param.u32 %r0, [n];\n"
			  "	atom.global.add.u32 %r1, [%d], %r0;\n	ret;\n}\n";

static void devices(void)
{
	CUuuid old, now;
	CUdevprop p = {0};
	unsigned bytes = 0;
	size_t all = 0;
	int most = 0;

	is_cu(OLD(cuDeviceGetUuid, &old, 0), CUDA_SUCCESS);
	must(cuDeviceGetUuid(&now, 0));
	ok(!memcmp(&old, &now, sizeof(old)), "a device that is not divided has one uuid");
	is_cu(OLD(cuDeviceTotalMem, &bytes, 0), CUDA_SUCCESS);
	must(cuDeviceTotalMem(&all, 0));
	is_int(bytes, all > UINT32_MAX ? UINT32_MAX : all, "as much as 32 bits say");
	is_cu(OLD(cuDeviceGetProperties, &p, 0), CUDA_SUCCESS);
	must(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
	is_int(p.maxThreadsPerBlock, most, "properties are the attributes");
}

static void contexts(CUcontext first)
{
	CUcontext c, third, got = NULL;
	CUdeviceptr d;
	CUdevice dev = 9;
	unsigned version = 0;
	int active = 7;
	unsigned flags = 9;

	is_cu(OLD(cuCtxCreate, &c, 0, 0), CUDA_SUCCESS);
	must(cuCtxGetCurrent(&got));
	ok(got == c, "a new context is current");
	is_cu(OLD(cuCtxGetDevice, &dev), CUDA_SUCCESS);
	is_int(dev, 0, "of the first device");
	is_cu(OLD(cuCtxPopCurrent, &got), CUDA_SUCCESS);
	ok(got == c, "it was on the top");
	is_cu(OLD(cuCtxPushCurrent, c), CUDA_SUCCESS);
	is_cu(OLD(cuCtxCreate_v3, &third, NULL, 0, 0, 0), CUDA_SUCCESS);
	must(cuCtxGetApiVersion(third, &version));
	ok(version >= 3020, "its API version is %u", version);
	is_cu(OLD(cuCtxDestroy, third), CUDA_SUCCESS);
	is_cu(OLD(cuCtxDestroy, c), CUDA_SUCCESS);
	is_cu(OLD(cuCtxDestroy, c), CUDA_ERROR_INVALID_CONTEXT);
	must(cuCtxSetCurrent(first));
	is_cu(OLD(cuDevicePrimaryCtxSetFlags, 0, 0xff00), CUDA_ERROR_INVALID_VALUE);
	must(cuDevicePrimaryCtxRetain(&c, 1));
	is_cu(OLD(cuDevicePrimaryCtxRelease, 1), CUDA_SUCCESS);
	must(cuDevicePrimaryCtxGetState(1, &flags, &active));
	is_int(active, 0, "the last release ends it");
	must(cuDevicePrimaryCtxRetain(&c, 1));
	must(cuCtxSetCurrent(c));
	must(cuMemAlloc(&d, 64));
	is_cu(OLD(cuDevicePrimaryCtxReset, 1), CUDA_SUCCESS);
	is_cu(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, d), CUDA_ERROR_INVALID_VALUE);
	must(cuCtxSetCurrent(first));
}

static void modules(void)
{
	unsigned d = 7, n = 7;
	CUlinkState link;
	CUmodule m;
	void *image;
	size_t bytes = 0;

	must(cuModuleLoadData(&m, ptx));
	/* No device address fits. */
	is_cu(OLD(cuModuleGetGlobal, &d, &n, m, "nothing"), CUDA_ERROR_NOT_FOUND);
	must(cuModuleUnload(m));
	is_cu(OLD(cuLinkCreate, 0, NULL, NULL, &link), CUDA_SUCCESS);
	is_cu(OLD(cuLinkAddData, link, CU_JIT_INPUT_PTX, (void *)ptx, sizeof(ptx), "add", 0, NULL, NULL), CUDA_SUCCESS);
	is_cu(OLD(cuLinkAddFile, link, CU_JIT_INPUT_PTX, "/nowhere.ptx", 0, NULL, NULL), CUDA_ERROR_FILE_NOT_FOUND);
	is_cu(cuLinkComplete(link, &image, &bytes), CUDA_SUCCESS);
	is_cu(cuModuleLoadData(&m, image), CUDA_SUCCESS);
	must(cuLinkDestroy(link));
	must(cuModuleUnload(m));
}

static void memory(void)
{
	static char page[8192] __attribute__((aligned(4096)));
	struct {
		unsigned width, height, depth;
		CUarray_format format;
		unsigned channels, flags;
	} want = {16, 4, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, got = {0};
	CUipcMemHandle nothing = {{0}};
	char up[32], down[32] = "";
	CUdeviceptr d, m;
	unsigned narrow = 0;
	CUarray a, b;
	CUstream s;
	int last = 9;

	must(cuStreamCreate(&s, 0));
	must(cuMemAlloc(&d, 256));
	is_cu(OLD(cuMemHostRegister, page, sizeof(page), 0), CUDA_SUCCESS);
	is_cu(OLD(cuMemHostGetDevicePointer, &narrow, page, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostUnregister(page), CUDA_SUCCESS);
	is_cu(OLD(cuIpcOpenMemHandle, &d, nothing, 1), CUDA_ERROR_INVALID_HANDLE);
	is_cu(OLD(cuMemcpyHtoDAsync, 0x1000, up, 16, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpyDtoHAsync, up, 0x1000, 16, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpyDtoDAsync, 0x1000, 0x2000, 16, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemsetD16, 0x1000, 1, 16), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemsetD2D8, 0x1000, 16, 1, 8, 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemsetD2D16, 0x1000, 16, 1, 8, 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpy2D, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpy2DUnaligned, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpy2DAsync, NULL, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpy3D, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpy3DAsync, NULL, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuArray3DCreate, &a, &want), CUDA_SUCCESS);
	is_cu(OLD(cuArray3DGetDescriptor, &got, a), CUDA_SUCCESS);
	ok(!memcmp(&want, &got, sizeof(got)), "an array is what was asked for");
	must(cuArrayDestroy(a));
	want.height = want.depth = 0;
	want.width = 32;
	must(OLD(cuArray3DCreate, &a, &want));
	must(OLD(cuArray3DCreate, &b, &want));
	memset(up, 6, sizeof(up));
	is_cu(OLD(cuMemcpyHtoAAsync, a, 0, up, 32, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	is_cu(OLD(cuMemcpyAtoA, b, 0, a, 0, 32), CUDA_SUCCESS);
	is_cu(OLD(cuMemcpyAtoHAsync, down, b, 0, 32, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	ok(!memcmp(up, down, 32), "bytes go through two arrays");
	is_cu(OLD(cuMemcpyDtoA, a, 0, 0x1000, 32), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpyAtoD, 0x1000, a, 0, 32), CUDA_ERROR_INVALID_VALUE);
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(b));
	must(cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
	is_cu(OLD(cuMemPrefetchAsync, m, 4096, 0, s), CUDA_SUCCESS);
	must(cuMemRangeGetAttribute(&last, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, 4096));
	is_int(last, 0, "prefetched to the first device");
	is_cu(OLD(cuMemAdvise, m, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, 0), CUDA_SUCCESS);
	must(cuMemRangeGetAttribute(&last, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 4096));
	is_int(last, 1, "advice is kept");
	must(cuMemFree(m));
	must(cuMemFree(d));
	must(cuStreamDestroy(s));
}

static void streams(CUcontext first)
{
	CUdeviceptr d;
	CUcontext got = NULL;
	CUevent a, b;
	CUstream s;
	uint64_t v = 0;
	float ms = -1;

	must(cuStreamCreate(&s, 0));
	must(cuMemAlloc(&d, 16));
	must(cuMemsetD8(d, 0, 16));
	is_cu(OLD(cuStreamGetCtx, s, &got), CUDA_SUCCESS);
	ok(got == first, "a stream knows its context");
	is_cu(OLD(cuStreamGetCtx_ptsz, s, &got), CUDA_SUCCESS);
	is_cu(OLD(cuStreamWriteValue64, s, d, 1ull << 40, 0), CUDA_SUCCESS);
	is_cu(OLD(cuStreamWaitValue64, s, d, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
	is_cu(OLD(cuStreamBatchMemOp, s, 0, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&v, d, 8));
	is_int(v, 1ull << 40, "eight bytes were written and waited for");
	must(cuEventCreate(&a, 0));
	must(cuEventCreate(&b, 0));
	must(cuEventRecord(a, s));
	must(cuEventRecord(b, s));
	must(cuStreamSynchronize(s));
	is_cu(OLD(cuEventElapsedTime, &ms, a, b), CUDA_SUCCESS);
	ok(ms >= 0 && ms < 60000, "%g ms between two events", ms);
	is_cu(OLD(cuEventDestroy, a), CUDA_SUCCESS);
	is_cu(OLD(cuEventDestroy, a), CUDA_ERROR_INVALID_HANDLE);
	must(cuEventDestroy(b));
	is_cu(OLD(cuStreamDestroy, s), CUDA_SUCCESS);
	is_cu(OLD(cuStreamDestroy, s), CUDA_ERROR_INVALID_HANDLE);
	must(cuMemFree(d));
}

static void batches(void)
{
	unsigned up = 21, down = 0;
	size_t size = 4, first = 0, failed = 9;
	CUmemcpyAttributes attr = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUdeviceptr d, from, to;
	CUstream s;

	must(cuStreamCreate(&s, 0));
	must(cuMemAlloc(&d, 4));
	from = (CUdeviceptr)&up;
	is_cu(OLD(cuMemcpyBatchAsync, &d, &from, &size, (size_t)1, &attr, &first, (size_t)1, &failed, s), CUDA_SUCCESS);
	to = (CUdeviceptr)&down;
	is_cu(OLD(cuMemcpyBatchAsync_ptsz, &to, &d, &size, (size_t)1, &attr, &first, (size_t)1, &failed, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	is_int(down, 21, "up and down in batches of one");
	is_cu(OLD(cuMemcpy3DBatchAsync, (size_t)0, NULL, &failed, 0ull, s), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(d));
	must(cuStreamDestroy(s));
}

/* A graph of three kernels in a row, made, looked at, changed and run by the first edition's calls. */
static void graphs(void)
{
	struct {
		CUfunction func;
		unsigned grid[3], block[3], shared;
		void **params, **extra;
	} k = {.grid = {1, 1, 1}, .block = {32, 1, 1}}, got;
	CUgraphExecUpdateResult result = 99;
	CUgraphNode n[3], from[4], to[4], bad;
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	unsigned add = 1, v = 0;
	CUgraphExec exec;
	CUgraph g;
	CUdeviceptr d;
	CUmodule m;
	size_t count = 4;
	void *params[] = {&d, &add};

	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&k.func, m, "add"));
	must(cuMemAlloc(&d, 4));
	must(cuMemsetD32(d, 0, 1));
	k.params = params;
	must(cuGraphCreate(&g, 0));
	is_cu(OLD(cuGraphAddKernelNode, &n[0], g, NULL, (size_t)0, &k), CUDA_SUCCESS);
	is_cu(OLD(cuGraphAddKernelNode, &n[1], g, &n[0], (size_t)1, &k), CUDA_SUCCESS);
	is_cu(OLD(cuGraphAddNode, &n[2], g, &n[0], (size_t)1, &any), CUDA_SUCCESS);
	is_cu(OLD(cuGraphGetEdges, g, from, to, &count), CUDA_SUCCESS);
	is_int(count, 2, "two edges");
	ok(from[0] == n[0] && from[1] == n[0], "both from the first node");
	is_cu(OLD(cuGraphAddDependencies, g, &n[1], &n[2], (size_t)1), CUDA_SUCCESS);
	is_cu(OLD(cuGraphRemoveDependencies, g, &n[0], &n[2], (size_t)1), CUDA_SUCCESS);
	count = 4;
	is_cu(OLD(cuGraphNodeGetDependencies, n[2], from, &count), CUDA_SUCCESS);
	ok(count == 1 && from[0] == n[1], "the third depends on the second");
	count = 4;
	is_cu(OLD(cuGraphNodeGetDependentNodes, n[0], to, &count), CUDA_SUCCESS);
	ok(count == 1 && to[0] == n[1], "and the second on the first");
	is_cu(OLD(cuGraphKernelNodeGetParams, n[1], &got), CUDA_SUCCESS);
	ok(got.func == k.func && got.block[0] == 32, "a kernel's parameters");
	k.block[0] = 2;
	is_cu(OLD(cuGraphKernelNodeSetParams, n[1], &k), CUDA_SUCCESS);
	is_cu(OLD(cuGraphInstantiate, &exec, g, &bad, NULL, (size_t)0), CUDA_SUCCESS);
	is_cu(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&v, d, 4));
	is_int(v, 34, "32 threads and two");
	k.block[0] = 3;
	is_cu(OLD(cuGraphExecKernelNodeSetParams, exec, n[0], &k), CUDA_SUCCESS);
	must(cuGraphLaunch(exec, NULL));
	must(cuMemcpyDtoH(&v, d, 4));
	is_int(v, 39, "then three and two");
	is_cu(OLD(cuGraphExecUpdate, exec, g, &bad, &result), CUDA_SUCCESS);
	is_int(result, CU_GRAPH_EXEC_UPDATE_SUCCESS, "it is as the graph again");
	must(cuGraphLaunch(exec, NULL));
	must(cuMemcpyDtoH(&v, d, 4));
	is_int(v, 73, "32 and two again");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuMemFree(d));
	must(cuModuleUnload(m));
}

static void capture(void)
{
	CUstreamCaptureStatus status = 9;
	const CUgraphNode *deps = NULL;
	cuuint64_t id = 0, again = 0;
	size_t ndeps = 9, nodes = 9;
	CUgraph g, whole = NULL;
	CUdeviceptr d;
	CUstream s;

	must(cuStreamCreate(&s, 0));
	must(cuMemAlloc(&d, 4));
	is_cu(OLD(cuStreamBeginCapture, s), CUDA_SUCCESS);
	must(cuMemsetD32Async(d, 1, 1, s));
	is_cu(OLD(cuStreamGetCaptureInfo, s, &status, &id), CUDA_SUCCESS);
	is_int(status, CU_STREAM_CAPTURE_STATUS_ACTIVE, "it captures");
	is_cu(OLD(cuStreamGetCaptureInfo_v2, s, &status, &again, &whole, &deps, &ndeps), CUDA_SUCCESS);
	ok(again == id && whole && ndeps == 1, "one number, a graph, one node that comes last");
	is_cu(OLD(cuStreamUpdateCaptureDependencies, s, NULL, (size_t)0, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
	must(OLD(cuStreamGetCaptureInfo_v2, s, &status, &again, &whole, &deps, &ndeps));
	is_int(ndeps, 0, "the next one depends on nothing");
	must(cuMemsetD32Async(d, 2, 1, s));
	must(cuStreamEndCapture(s, &g));
	must(cuGraphGetRootNodes(g, NULL, &nodes));
	is_int(nodes, 2, "so there are two roots");
	must(cuGraphDestroy(g));
	must(cuMemFree(d));
	must(cuStreamDestroy(s));
}

static void texrefs(void)
{
	CUtexref t;
	unsigned d = 9, offset = 9;

	must(cuTexRefCreate(&t));
	is_cu(OLD(cuTexRefSetAddress, &offset, t, 0x1000, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuTexRefSetAddress2D, t, NULL, 0x1000, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuTexRefSetAddress2D_v2, t, NULL, (CUdeviceptr)0x1000, (size_t)64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuTexRefGetAddress, &d, t), CUDA_ERROR_INVALID_VALUE);
	must(cuTexRefDestroy(t));
}

int main(void)
{
	CUcontext first;

	serve(NULL, 2);
	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	first = primary();
	devices();
	contexts(first);
	modules();
	memory();
	streams(first);
	batches();
	graphs();
	capture();
	texrefs();
	return tap_done();
}
