/* SPDX-License-Identifier: MIT */
/* Kernels looked at and tuned: attributes, cache preferences, parameter tables, occupancy. */
#include "shim/cudart/cudart.h"
#include <string.h>

cudaError_t cudart_function(const void *func, CUfunction *f)
{
	cudaError_t e = cudart_context();
	CUkernel k;

	if (!e)
		e = cudart_kernel(func, &k);
	return e ? e : cudart_error(drv.cuKernelGetFunction(f, k));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *f, const void *func)
{
	if (!f)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_fail(cudart_function(func, f));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	CUfunction f;
	int shared = 0, constant = 0, local = 0;
	const struct {
		int *to;
		CUfunction_attribute which;
		bool late; /* drivers before clusters don't know it: stays 0 */
	} want[] = {
		{&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, false},
		{&constant, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, false},
		{&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, false},
		{&attr->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, false},
		{&attr->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS, false},
		{&attr->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION, false},
		{&attr->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION, false},
		{&attr->cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, false},
		{&attr->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, false},
		{&attr->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, false},
		{&attr->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, true},
		{&attr->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, true},
		{&attr->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, true},
		{&attr->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, true},
		{&attr->nonPortableClusterSizeAllowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, true},
		{&attr->clusterSchedulingPolicyPreference, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, true},
	};

	if (!attr)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	memset(attr, 0, sizeof(*attr));
	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		CUresult r = drv.cuFuncGetAttribute(want[i].to, want[i].which, f);

		if (r && !(want[i].late && r == CUDA_ERROR_INVALID_VALUE))
			return cudart_done(r);
	}
	attr->sharedSizeBytes = shared;
	attr->constSizeBytes = constant;
	attr->localSizeBytes = local;
	return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	CUfunction f;

	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuFuncSetAttribute(f, (CUfunction_attribute)attr, value));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device)
{
	TRY(cudart_init());
	if (device < 0 || device >= cudart_ndevices())
		return cudart_fail(cudaErrorInvalidDevice);
	return cudart_done(drv.cuKernelSetAttribute((CUfunction_attribute)attr, value, kernel, device));
}

cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
	CUfunction f;

	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuFuncSetCacheConfig(f, (CUfunc_cache)config));
}

/* Bank sizes cannot be chosen since Kepler: CUDA accepts and ignores the wish. */
cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	CUfunction f;

	if ((unsigned int)config > cudaSharedMemBankSizeEightByte)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_fail(cudart_function(func, &f));
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	CUfunction f;

	if (!name)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuFuncGetName(name, f));
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t i, size_t *offset, size_t *size)
{
	CUfunction f;

	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuFuncGetParamInfo(f, i, offset, size));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func, int threads, size_t shared,
								   unsigned int flags)
{
	CUfunction f;

	if (!blocks)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, shared, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func, int threads, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, threads, shared, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *func, int blocks, int threads)
{
	CUfunction f;

	if (!shared)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	return cudart_done(drv.cuOccupancyAvailableDynamicSMemPerBlock(shared, f, blocks, threads));
}

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *c)
{
	return (CUlaunchConfig){
		.gridDimX = c->gridDim.x,
		.gridDimY = c->gridDim.y,
		.gridDimZ = c->gridDim.z,
		.blockDimX = c->blockDim.x,
		.blockDimY = c->blockDim.y,
		.blockDimZ = c->blockDim.z,
		.sharedMemBytes = (unsigned int)c->dynamicSmemBytes,
		.hStream = stream_of(c->stream),
		.attrs = (CUlaunchAttribute *)c->attrs,
		.numAttrs = c->numAttrs,
	};
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *func, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig c;
	CUfunction f;

	if (!size || !config)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	c = driver_config(config);
	return cudart_done(drv.cuOccupancyMaxPotentialClusterSize(size, f, &c));
}

cudaError_t cudaOccupancyMaxActiveClusters(int *n, const void *func, const cudaLaunchConfig_t *config)
{
	CUlaunchConfig c;
	CUfunction f;

	if (!n || !config)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_function(func, &f));
	c = driver_config(config);
	return cudart_done(drv.cuOccupancyMaxActiveClusters(n, f, &c));
}
