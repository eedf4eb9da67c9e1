// SPDX-License-Identifier: MIT
/* Modules, libraries, functions, occupancy and the limits of a launch. */
#include "tests/fidelity/fidelity.h"

static CUmodule mod;
static CUfunction store, limited, fixed;

static void loading(void)
{
	char log[1024] = "";
	CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	CUdeviceptr p = 0;
	CUfunction f;
	CUmodule m;
	size_t n = 0;

	/* Driver API, cuModuleLoad: a file that is not there */
	cu(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&m, "/nonexistent.cubin"));
	/* Driver API, cuModuleLoadData: nothing to load */
	cu(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&m, NULL));
	/* Driver API, CUresult, INVALID_PTX: PTX that does not compile */
	cu(CUDA_ERROR_INVALID_PTX,
	   cuModuleLoadData(&m, ".version 7.5\n.target sm_75\n.address_size 64\n.entry x() { nonsense; }\n"));
	/* Driver API, CUjit_option, ERROR_LOG_BUFFER: says why */
	cu(CUDA_ERROR_INVALID_PTX,
	   cuModuleLoadDataEx(&m, ".version 7.5\n.target sm_75\n.address_size 64\n.entry x() { nonsense; }\n", 2, names, values));
	probe(*log, "the log has a text");
	/* Driver API, CUresult, UNSUPPORTED_PTX_VERSION: PTX newer than the driver */
	cu(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
	   cuModuleLoadData(&m, ".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry x() { ret; }\n"));
	must(cuModuleLoadData(&mod, kernels_ptx));
	/* Driver API, cuModuleGetFunction: a name that is not there */
	cu(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&f, mod, "nothing"));
	/* Driver API, cuModuleGetFunction: no name */
	cu(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(&f, mod, NULL));
	/* Driver API, cuModuleGetGlobal: a name that is not there */
	cu(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &n, mod, "nothing"));
	/* Driver API, cuModuleGetGlobal: address and size, either may be NULL */
	cu(CUDA_SUCCESS, cuModuleGetGlobal(&p, NULL, mod, "word"));
	cu(CUDA_SUCCESS, cuModuleGetGlobal(NULL, &n, mod, "constants"));
	same(n, 16, "the size of a variable");
	/* PTX ISA, .global: initialized when the module is loaded */
	int word = 0;
	must(cuMemcpyDtoH(&word, p, 4));
	same(word, 7, "a variable's first value");
	must(cuModuleGetFunction(&store, mod, "store"));
	must(cuModuleGetFunction(&limited, mod, "limited"));
	must(cuModuleGetFunction(&fixed, mod, "fixed"));
	/* Driver API, cuModuleGetFunctionCount */
	unsigned int count = 0;
	cu(CUDA_SUCCESS, cuModuleGetFunctionCount(&count, mod));
	same(count, 4, "functions of the module");
}

static void functions(void)
{
	const char *name = NULL;
	size_t offset = 99, size = 99;
	CUmodule m = NULL;
	int v = -1;

	/* Driver API, cuFuncGetModule: the module that it is of */
	must(cuFuncGetModule(&m, store));
	probe(m == mod, "a function's module");
	/* Driver API, cuFuncGetName */
	must(cuFuncGetName(&name, store));
	probe(name && !strcmp(name, "store"), "a function's name");
	/* Driver API, cuFuncGetParamInfo: offset and size of each parameter */
	cu(CUDA_SUCCESS, cuFuncGetParamInfo(store, 1, &offset, &size));
	probe(offset == 8 && size == 4, "the second parameter lies at 8 and has 4 bytes");
	/* Driver API, cuFuncGetParamInfo: beyond the last */
	cu(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(store, 2, &offset, &size));
	/* Driver API, cuFuncGetAttribute, MAX_THREADS_PER_BLOCK: the launch bounds' */
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, limited));
	same(v, 64, "launch bounds limit the block");
	/* Driver API, cuFuncGetAttribute, SHARED_SIZE_BYTES: what the function itself has */
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fixed));
	same(v, 1024, "static shared memory");
	/* Driver API, cuFuncGetAttribute, PTX_VERSION: 10 * major + minor */
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_PTX_VERSION, store));
	same(v, 75, "the PTX's target");
	/* Driver API, cuFuncGetAttribute: an attribute that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&v, (CUfunction_attribute)999, store));
	/* Driver API, cuFuncSetAttribute: one that can only be read */
	cu(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(store, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
	/* Driver API, cuFuncSetAttribute, MAX_DYNAMIC_SHARED_SIZE_BYTES: with static memory at most the device's opt-in */
	must(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(fixed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, v));
	cu(CUDA_SUCCESS, cuFuncSetAttribute(fixed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, v - 1024));
	/* Driver API, cuFuncSetCacheConfig: a preference that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuFuncSetCacheConfig(store, (CUfunc_cache)77));
}

static void libraries(void)
{
	CUlibrary lib, of = NULL;
	CUkernel k;
	CUdeviceptr p;
	CUfunction f;
	CUmodule m;
	const char *name = NULL;
	unsigned int count = 0;
	size_t n = 0;
	int v = 0;

	must(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	/* Driver API, cuLibraryGetKernel: a name that is not there */
	cu(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&k, lib, "nothing"));
	must(cuLibraryGetKernel(&k, lib, "limited"));
	/* Driver API, cuLibraryGetKernelCount */
	must(cuLibraryGetKernelCount(&count, lib));
	same(count, 4, "kernels of the library");
	/* Driver API, cuKernelGetName, cuKernelGetLibrary */
	must(cuKernelGetName(&name, k));
	probe(name && !strcmp(name, "limited"), "a kernel's name");
	must(cuKernelGetLibrary(&of, k));
	probe(of == lib, "a kernel's library");
	/* Driver API, cuKernelGetAttribute: a device's view of it */
	must(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
	same(v, 64, "a kernel's launch bounds");
	/* Driver API, cuKernelGetFunction, cuLibraryGetModule: for the current context */
	cu(CUDA_SUCCESS, cuKernelGetFunction(&f, k));
	cu(CUDA_SUCCESS, cuLibraryGetModule(&m, lib));
	/* Driver API, cuLibraryGetGlobal: a name that is not there; one that is */
	cu(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&p, &n, lib, "nothing"));
	cu(CUDA_SUCCESS, cuLibraryGetGlobal(&p, &n, lib, "word"));
	/* Driver API, cuLibraryGetManaged: there is none */
	cu(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&p, &n, lib, "word"));
	/* Driver API, cuLaunchKernel: takes a kernel for a function */
	cu(CUDA_SUCCESS, cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, 0, NULL, NULL));
	must(cuCtxSynchronize());
	/* Driver API, cuLibraryUnload */
	cu(CUDA_SUCCESS, cuLibraryUnload(lib));
	/* Driver API, cuLibraryLoadFromFile: a file that is not there */
	cu(CUDA_ERROR_FILE_NOT_FOUND, cuLibraryLoadFromFile(&lib, "/nonexistent.cubin", NULL, NULL, 0, NULL, NULL, 0));
}

static void occupancy(void)
{
	int blocks = -1, threads = 0, grid = -1, size = -1;
	size_t room = 0;

	must(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
	/* Driver API, cuOccupancyMaxActiveBlocksPerMultiprocessor: blocks that fit at once */
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 256, 0));
	probe(blocks >= 1 && blocks * 256 <= threads, "%d blocks of 256 of %d threads", blocks, threads);
	/* Driver API, cuOccupancyMaxActiveBlocksPerMultiprocessor: no threads, no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 0, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, store, 256, 0));
	/* Driver API, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: flags that are not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, store, 256, 0, 1u << 20));
	/* Driver API, cuOccupancyMaxPotentialBlockSize: keeps to the launch bounds and to blockSizeLimit */
	must(cuOccupancyMaxPotentialBlockSize(&grid, &size, limited, NULL, 0, 0));
	probe(grid >= 1 && size >= 1 && size <= 64, "a block of %d keeps to bounds of 64", size);
	must(cuOccupancyMaxPotentialBlockSize(&grid, &size, store, NULL, 0, 128));
	probe(size >= 1 && size <= 128, "a block of %d keeps to a limit of 128", size);
	/* Driver API, cuOccupancyAvailableDynamicSMemPerBlock */
	cu(CUDA_SUCCESS, cuOccupancyAvailableDynamicSMemPerBlock(&room, store, 1, 128));
	probe(room >= 48 << 10, "one block of it can have %zu bytes", room);
}

static void launches(void)
{
	CUdeviceptr p;
	int v = 5, sms = 0, blocks = 0, got = 0;
	void *args[] = {&p, &v};
	size_t bytes = 16;
	struct {
		CUdeviceptr p;
		int v;
	} packed = {.v = 6};
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};

	must(cuMemAlloc(&p, 4));
	packed.p = p;
	/* Driver API, cuLaunchKernel: no grid, no block */
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 0, 1, 1, 1, 1, 1, 0, 0, args, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 1, 0, 1, 0, 0, args, NULL));
	/* Programming Guide, Compute Capabilities: at most 1024 threads, 64 in z, 65535 blocks in y and z */
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 1025, 1, 1, 0, 0, args, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 32, 33, 1, 0, 0, args, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 1, 1, 65, 0, 0, args, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 65536, 1, 1, 1, 1, 0, 0, args, NULL));
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 65536, 1, 1, 1, 0, 0, args, NULL));
	/* Driver API, cuFuncSetAttribute, MAX_DYNAMIC_SHARED_SIZE_BYTES: without it 48 KiB */
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, (48 << 10) + 1, 0, args, NULL));
	cu(CUDA_SUCCESS, cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 48 << 10, 0, args, NULL));
	/* Programming Guide, Launch Bounds: a launch beyond them fails; with which error is left open */
	probe(cuLaunchKernel(limited, 1, 1, 1, 65, 1, 1, 0, 0, NULL, NULL) != CUDA_SUCCESS, "launch bounds hold");
	/* Driver API, cuLaunchKernel: kernelParams and extra exclude each other */
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, 0, args, extra));
	/* Driver API, cuLaunchKernel: parameters packed by the caller */
	cu(CUDA_SUCCESS, cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, 0, NULL, extra));
	must(cuMemcpyDtoH(&got, p, 4));
	same(got, 6, "packed parameters arrive");
	/* Driver API, cuLaunchCooperativeKernel: no more blocks than fit at once */
	must(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 64, 0));
	cu(CUDA_SUCCESS, cuLaunchCooperativeKernel(store, sms * blocks, 1, 1, 64, 1, 1, 0, 0, args));
	cu(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	   cuLaunchCooperativeKernel(store, sms * blocks + 1, 1, 1, 64, 1, 1, 0, 0, args));
	must(cuCtxSynchronize());
	must(cuMemFree(p));
	/* Driver API, cuModuleUnload */
	cu(CUDA_SUCCESS, cuModuleUnload(mod));
}

int main(void)
{
	primary();
	loading();
	functions();
	libraries();
	occupancy();
	launches();
	return tap_done();
}
