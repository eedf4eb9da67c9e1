// SPDX-License-Identifier: MIT
/* The null driver's modules, functions and launches: any image, any name, real parameter layouts where there is PTX. */
#include "tests/nulldrv/nulldrv.h"

#include <stdlib.h>
#include <string.h>
#include "lib/fatbin.h"

static char *ptx_of(const void *image)
{
	struct fatbin_entry e;
	const void *data = image;
	char *text = NULL;
	size_t len;

	switch (image_kind(image, SIZE_MAX)) {
	case IMAGE_PTX:
		return strdup(image);
	case IMAGE_WRAPPER:
		data = fatbin_unwrap(image);
		/* fall through */
	case IMAGE_FATBIN:
		if (data && fatbin_pick(data, SIZE_MAX, FATBIN_PTX, 99, 0, &e) > 0)
			fatbin_unpack(&e, &text, &len);
		return text;
	default:
		return NULL;
	}
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	struct null_module *m = calloc(1, sizeof(*m));

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&m->lock, NULL);
	m->ptx = ptx_of(image);
	*module = (CUmodule)m;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n, CUjit_option *option, void **value)
{
	(void)n;
	(void)option;
	(void)value;
	return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
	struct null_module *m = (struct null_module *)module;

	while (m->functions) {
		struct null_function *f = m->functions;

		m->functions = f->next;
		free(f->params);
		free(f->name);
		free(f);
	}
	pthread_mutex_destroy(&m->lock);
	free(m->ptx);
	free(m);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	struct null_module *m = (struct null_module *)module;
	struct null_function *f;

	pthread_mutex_lock(&m->lock);
	for (f = m->functions; f; f = f->next)
		if (!strcmp(f->name, name))
			break;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f)
			f->name = strdup(name);
		if (f && f->name) {
			f->module = m;
			f->busy = !strcmp(name, "null_busy");
			null_params(f);
			f->next = m->functions;
			m->functions = f;
		}
	}
	pthread_mutex_unlock(&m->lock);
	*function = (CUfunction)f;
	return f ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* It keeps no variables. */
CUresult cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
	(void)ptr;
	(void)bytes;
	(void)module;
	(void)name;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *bytes, CUlibrary library, const char *name)
{
	return cuModuleGetGlobal_v2(ptr, bytes, (CUmodule)library, name);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

/* The functions of the PTX, in its order. */
static unsigned int each_function(CUmodule module, CUfunction *out, unsigned int n)
{
	struct null_module *m = (struct null_module *)module;
	const char *p = m->ptx;
	unsigned int count = 0;

	while (p && (p = strstr(p, ".entry"))) {
		char name[1024];
		size_t len;

		p += strlen(".entry");
		p += strspn(p, " \t\r\n");
		len = strcspn(p, " \t\r\n(");
		if (!len || len >= sizeof(name))
			continue;
		memcpy(name, p, len);
		name[len] = 0;
		if (count < n)
			cuModuleGetFunction(&out[count], module, name);
		count++;
	}
	return count;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
	*count = each_function(module, NULL, 0);
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int n, CUmodule module)
{
	each_function(module, functions, n);
	return CUDA_SUCCESS;
}

/* Libraries are modules, and kernels functions. */
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_option, void **jit_value, unsigned int njit,
			   CUlibraryOption *option, void **value, unsigned int n)
{
	(void)jit_option;
	(void)jit_value;
	(void)njit;
	(void)option;
	(void)value;
	(void)n;
	return cuModuleLoadData((CUmodule *)library, code);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)library);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
	return cuModuleGetFunctionCount(count, (CUmodule)library);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int n, CUlibrary library)
{
	return cuModuleEnumerateFunctions((CUfunction *)kernels, n, (CUmodule)library);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	*module = (CUmodule)library;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
	struct null_function *f = (struct null_function *)function;

	if (index >= f->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->params[index].offset;
	if (bytes)
		*bytes = f->params[index].size;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	return cuFuncGetParamInfo((CUfunction)kernel, index, offset, bytes);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	*name = ((struct null_function *)function)->name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	*module = (CUmodule)((struct null_function *)function)->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction function)
{
	(void)function;
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 32;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = 75;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = 48 << 10;
		break;
	default:
		*value = 0;
	}
	return attr < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)
{
	(void)dev;
	return cuFuncGetAttribute(value, attr, (CUfunction)kernel);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attr, int value)
{
	(void)function;
	(void)attr;
	(void)value;
	return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev)
{
	(void)attr;
	(void)value;
	(void)kernel;
	(void)dev;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	(void)function;
	(void)config;
	return CUDA_SUCCESS;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	(void)kernel;
	(void)config;
	(void)dev;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	(void)function;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int threads, size_t dyn_shared)
{
	(void)func;
	(void)dyn_shared;
	*blocks = threads > 0 ? 1536 / threads : 0;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func, int threads, size_t dyn_shared,
							      unsigned int flags)
{
	(void)flags;
	return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, func, threads, dyn_shared);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra)
{
	const struct null_function *fn = (const struct null_function *)f;
	uint32_t us = 0;

	(void)shared;
	if (fn->busy && params)
		memcpy(&us, params[0], sizeof(us));
	else if (fn->busy && extra && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
		memcpy(&us, extra[1], sizeof(us));
	if (us)
		null_busy(stream, us);
	return gx && gy && gz && bx && by && bz ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
			      c->sharedMemBytes, c->hStream, params, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, NULL);
}
