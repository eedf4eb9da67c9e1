/* SPDX-License-Identifier: MIT */
/* Kernel launches. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"
#include <string.h>

#ifdef CUDART_PER_THREAD
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

/* Both enums and both unions are one layout: an attribute goes to the driver as it is. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "launch attributes differ between runtime and driver");
_Static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value), "launch attributes differ");

static cudaError_t launch(CUkernel k, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	if (shared > UINT32_MAX)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_launched(drv.cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
						  (unsigned int)shared, stream_of(stream), args, NULL),
			       grid, block);
}

CUDART_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
					  cudaStream_t stream)
{
	TRY(cudart_context());
	if (!kernel)
		return cudart_fail(cudart_why_null());
	return launch(kernel, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	CUkernel k;

	TRY(cudart_context());
	TRY(cudart_kernel(func, &k));
	return launch(k, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	CUkernel k;

	TRY(cudart_context());
	TRY(cudart_kernel(func, &k));
	if (shared > UINT32_MAX)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_launched(drv.cuLaunchCooperativeKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
							     (unsigned int)shared, stream_of(stream), args),
			       grid, block);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	CUlaunchConfig c = {0};
	CUkernel k;

	TRY(cudart_context());
	if (!config || config->dynamicSmemBytes > UINT32_MAX)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_kernel(func, &k));
	c.gridDimX = config->gridDim.x;
	c.gridDimY = config->gridDim.y;
	c.gridDimZ = config->gridDim.z;
	c.blockDimX = config->blockDim.x;
	c.blockDimY = config->blockDim.y;
	c.blockDimZ = config->blockDim.z;
	c.sharedMemBytes = (unsigned int)config->dynamicSmemBytes;
	c.hStream = stream_of(config->stream);
	c.attrs = (CUlaunchAttribute *)config->attrs;
	c.numAttrs = config->numAttrs;
	return cudart_launched(drv.cuLaunchKernelEx(&c, (CUfunction)k, args, NULL), config->gridDim, config->blockDim);
}
