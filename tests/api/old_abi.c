// SPDX-License-Identifier: MIT
/* Names of CUDA before 64-bit addresses: found by dlsym, as old programs do. */
#include <dlfcn.h>
#include "tests/api/serve.h"

static void *cuda;

#define OLD(name, ...) ((CUresult(*)())dlsym(cuda, #name))(__VA_ARGS__)

static void memory(void)
{
	unsigned int d = 9, pitch = 0, n = 0, total = 0;
	CUdeviceptr wide;
	char host[64];
	void *p = NULL;

	is_cu(OLD(cuMemAlloc, &d, 1024), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(OLD(cuMemAlloc, NULL, 1024), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemAllocPitch, &d, &pitch, 100, 4, 4), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(OLD(cuMemsetD32, 0x1000, 1, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemFree, 0x1000), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemFree, 0), CUDA_SUCCESS);
	is_cu(OLD(cuMemGetAddressRange, &d, &n, 0x1000), CUDA_ERROR_NOT_FOUND);
	is_cu(OLD(cuMemGetInfo, &n, &total), CUDA_SUCCESS);
	ok(n > 0 && n <= total, "%u of %u bytes are free, as far as 32 bits say", n, total);
	is_cu(OLD(cuMemcpyHtoD, 0x1000, host, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpyDtoH, host, 0x1000, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemcpyDtoD, 0x1000, 0x2000, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemsetD8, 0x1000, 0, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemsetD2D32, 0x1000, 64, 0, 4, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuMemAllocHost, &p, 4096), CUDA_SUCCESS);
	ok(p != NULL, "host memory has an address of any width");
	must(cuMemFreeHost(p));
	must(cuMemAlloc(&wide, 16)); /* the leak check: what was refused was freed */
	must(cuMemFree(wide));
}

static void stream_operations(void)
{
	CUdeviceptr d;
	unsigned int v = 0;
	CUstream s;

	must(cuMemAlloc(&d, 16));
	must(cuStreamCreate(&s, 0));
	is_cu(OLD(cuStreamWriteValue32, s, d, 7u, 0u), CUDA_SUCCESS);
	is_cu(OLD(cuStreamWaitValue32, s, d, 7u, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&v, d, 4));
	is_int(v, 7, "the first edition's operations are the second's");
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

/* A kernel of (pointer, int) that adds to an int. */
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry add(.param .u64 p, .param .u32 n)\n{\n"
			  "	.reg .u64 %d; .reg .u32 %r<5>;\n"
			  "	ld.param.u64 %d, [p]; ld.param.u32 %r0, [n];\n"
			  "	atom.global.add.u32 %r1, [%d], %r0;\n	ret;\n}\n";

static void launch(void)
{
	CUdeviceptr d;
	CUfunction f;
	CUmodule m;
	int v = -1;

	must(cuModuleLoadData(&m, ptx));
	must(cuModuleGetFunction(&f, m, "add"));
	must(cuMemAlloc(&d, 4));
	must(cuMemsetD32(d, 0, 1));
	is_cu(OLD(cuFuncSetBlockShape, f, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuFuncSetBlockShape, f, 8, 2, 1), CUDA_SUCCESS);
	is_cu(OLD(cuFuncSetSharedSize, f, 0), CUDA_SUCCESS);
	is_cu(OLD(cuParamSetv, f, 0, &d, 8), CUDA_SUCCESS);
	/* By the program's own prototype: a float stays one. */
	is_cu(((CUresult(*)(CUfunction, int, float))dlsym(cuda, "cuParamSetf"))(f, 8, 1.5f), CUDA_SUCCESS);
	is_cu(OLD(cuParamSeti, f, 8, 3), CUDA_SUCCESS);
	is_cu(OLD(cuParamSetv, f, 5000, &d, 8), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuParamSetSize, f, 12), CUDA_SUCCESS);
	is_cu(OLD(cuLaunch, f), CUDA_SUCCESS);
	is_cu(OLD(cuLaunchGrid, f, 2, 2), CUDA_SUCCESS);
	is_cu(OLD(cuLaunchGridAsync, f, 1, 1, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	is_cu(OLD(cuLaunchGrid, f, 0, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuLaunch, (CUfunction)ptx), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&v, d, 4));
	is_int(v, 6 * 16 * 3, "six blocks of sixteen threads added three each");
	must(cuMemFree(d));
	must(cuModuleUnload(m));
}

static void arrays(void)
{
	struct {
		unsigned int width, height;
		CUarray_format format;
		unsigned int channels;
	} want = {32, 4, CU_AD_FORMAT_FLOAT, 1}, got = {0};
	char up[128], down[128] = "";
	CUarray a;

	memset(up, 5, sizeof(up));
	is_cu(OLD(cuArrayCreate, &a, &want), CUDA_SUCCESS);
	is_cu(OLD(cuArrayGetDescriptor, &got, a), CUDA_SUCCESS);
	ok(!memcmp(&want, &got, sizeof(got)), "an array is what was asked for");
	is_cu(OLD(cuMemcpyHtoA, a, 0, up, 128), CUDA_SUCCESS);
	is_cu(OLD(cuMemcpyAtoH, down, a, 0, 128), CUDA_SUCCESS);
	ok(!memcmp(up, down, 128), "bytes come back from it");
	must(cuArrayDestroy(a));
}

static void contexts(void)
{
	CUcontext c, same = NULL, before;

	must(cuCtxGetCurrent(&before));
	must(cuCtxCreate(&c, NULL, 0, 0));
	is_cu(OLD(cuCtxAttach, &same, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(OLD(cuCtxAttach, &same, 0), CUDA_SUCCESS);
	ok(same == c, "attached to the current one");
	is_cu(OLD(cuCtxDetach, c), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	is_cu(OLD(cuCtxDetach, c), CUDA_SUCCESS);
	is_cu(cuCtxSetCurrent(c), CUDA_ERROR_INVALID_CONTEXT);
	must(cuCtxSetCurrent(before));
}

int main(void)
{
	serve(NULL, 1);
	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	primary();
	memory();
	stream_operations();
	launch();
	arrays();
	contexts();
	return tap_done();
}
