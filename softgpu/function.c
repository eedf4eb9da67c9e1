// SPDX-License-Identifier: MIT
/* What functions and kernels say about themselves: attributes, parameters, names. */
#include "softgpu/library.h"

#include <stdlib.h>

/* ---- Resolving ---- */

CUresult kernel_get(CUkernel handle, struct kernel **out)
{
	*out = NULL;
	TRY(api_enter());
	*out = obj_get(handle, OBJ_KERNEL);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_resolve(CUfunction handle, struct ctx *c, struct function **out)
{
	AUTO_PUT struct kernel *k = NULL;

	*out = obj_get(handle, OBJ_FUNCTION);
	if (*out)
		return CUDA_SUCCESS;
	k = obj_get(handle, OBJ_KERNEL);
	return k ? kernel_function(k, c, out) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult function_enter(CUfunction handle, struct function **out)
{
	AUTO_PUT struct ctx *c = NULL;

	*out = NULL;
	TRY(ctx_enter(&c));
	return function_resolve(handle, c, out);
}

/* ---- Attributes ---- */

static CUresult fixed_attribute(int *value, CUfunction_attribute attr, const struct ptx_func_info *info)
{
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: {
		/* As a GPU would: the registers of a block must fit. */
		unsigned int by_regs = info->regs ? REGS_SM / info->regs / 32 * 32 : THREADS_BLOCK;
		unsigned int max = info->max_threads < THREADS_BLOCK ? info->max_threads : THREADS_BLOCK;

		*value = (int)(by_regs < max ? by_regs : max);
		return CUDA_SUCCESS;
	}
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)info->shared_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*value = (int)info->const_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)info->local_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)info->regs;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = (int)info->target;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = SOFTGPU_CC_MAJOR * 10 + SOFTGPU_CC_MINOR;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		*value = 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*value = info->explicit_cluster;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult function_attribute(int *value, CUfunction_attribute attr, const struct function *f)
{
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = atomic_load(&f->max_dyn_shared);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = atomic_load(&f->carveout);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*value = atomic_load(&f->cluster[attr - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = atomic_load(&f->nonportable);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*value = atomic_load(&f->cluster_policy);
		return CUDA_SUCCESS;
	default:
		return fixed_attribute(value, attr, f->info);
	}
}

static CUresult settable(CUfunction_attribute attr, int value, const struct ptx_func_info *info)
{
	bool good;

	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		good = value >= 0 && info->shared_bytes <= SMEM_BLOCK_OPTIN &&
		       (unsigned int)value <= SMEM_BLOCK_OPTIN - info->shared_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		good = value >= -1 && value <= 100;
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		if (info->cluster[0])
			return CUDA_ERROR_NOT_PERMITTED; /* the kernel was compiled for its clusters */
		good = value >= 0;
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		good = value == 0 || value == 1;
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		good = value >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT && value <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
		break;
	default:
		good = false;
	}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult function_set_attribute(struct function *f, CUfunction_attribute attr, int value)
{
	TRY(settable(attr, value, f->info));
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		atomic_store(&f->max_dyn_shared, value);
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		atomic_store(&f->carveout, value);
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		atomic_store(&f->cluster[attr - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value);
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		atomic_store(&f->nonportable, value);
		break;
	default:
		atomic_store(&f->cluster_policy, value);
	}
	return CUDA_SUCCESS;
}

CUresult function_cluster(const struct function *f, const uint32_t asked[3], uint32_t out[3])
{
	uint32_t must[3];

	for (int d = 0; d < 3; d++)
		must[d] = (uint32_t)atomic_load(&f->cluster[d]);
	/* Set on the kernel: all three or none. */
	if (must[0] || must[1] || must[2]) {
		for (int d = 0; d < 3; d++)
			if (!must[d] || (asked[0] && asked[d] != must[d]))
				return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		asked = must;
	}
	if (!ptx_cluster_shape(f->info, asked, out))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	if (out[0] * out[1] * out[2] > (atomic_load(&f->nonportable) ? CLUSTER_MOST : CLUSTER_PORTABLE))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attr, CUfunction function)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	return value ? function_attribute(value, attr, f) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attr, int value)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	return function_set_attribute(f, attr, value);
}

/* Preferences between caches that a CPU doesn't have: checked, and of no effect, as on many GPUs. */
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- The rest of cuFunc* ---- */

CUresult function_param(const struct ptx_func_info *info, size_t index, size_t *offset, size_t *bytes)
{
	if (!offset || index >= info->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = info->params[index].offset;
	if (bytes)
		*bytes = info->params[index].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	return function_param(f->info, index, offset, bytes);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = f->info->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	*module = (CUmodule)f->module->obj.handle;
	return CUDA_SUCCESS;
}

/* Everything is lowered at load. */
CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	AUTO_PUT struct function *f = NULL;

	TRY(function_enter(function, &f));
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	AUTO_PUT struct function *f = NULL;

	return function_enter(function, &f);
}

/* ---- Kernels ---- */

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	AUTO_PUT struct kernel *k = NULL;
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;

	TRY(ctx_enter(&c));
	TRY(kernel_get(kernel, &k));
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(kernel_function(k, c, &f));
	*function = (CUfunction)f->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = k->name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	return function_param(&k->info, index, offset, bytes);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	return kernel_attribute(value, attr, k, dev);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(settable(attr, value, &k->info));
	return kernel_set_attribute(k, attr, value, dev);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	AUTO_PUT struct kernel *k = NULL;

	TRY(kernel_get(kernel, &k));
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
