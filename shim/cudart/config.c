/* SPDX-License-Identifier: MIT */
/* The launch configuration of <<<…>>>, on its way from the caller to the kernel's stub, and the check of its dimensions. */
#include "shim/cudart/cudart.h"
#include <stdlib.h>

/* Nested when an argument of a launch launches something itself. */
#define DEPTH 16

static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} stack[DEPTH];
static _Thread_local unsigned int depth;

CUDART_API unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (depth == DEPTH) {
		cudart_fail(cudaErrorLaunchMaxDepthExceeded);
		return 1; /* the caller then skips the launch */
	}
	stack[depth].grid = grid;
	stack[depth].block = block;
	stack[depth].shared = shared;
	stack[depth].stream = stream;
	depth++;
	return 0;
}

CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!depth)
		return cudart_fail(cudaErrorMissingConfiguration);
	depth--;
	*grid = stack[depth].grid;
	*block = stack[depth].block;
	*shared = stack[depth].shared;
	*(cudaStream_t *)stream = stack[depth].stream;
	return cudaSuccess;
}

static bool in_limit(CUdevice dev, CUdevice_attribute attr, uint64_t n)
{
	int limit = 0;

	return !drv.cuDeviceGetAttribute(&limit, attr, dev) && n && n <= (uint64_t)limit;
}

static bool good_dimensions(dim3 grid, dim3 block)
{
	int dev;

	if (cudart_device(&dev))
		return true;
	return in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid.x) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, grid.y) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, grid.z) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block.x) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, block.y) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, block.z) &&
	       in_limit(dev, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (uint64_t)block.x * block.y * block.z);
}

cudaError_t cudart_launched(CUresult r, dim3 grid, dim3 block)
{
	/* The driver has one error for every bad argument; the runtime tells dimensions apart. */
	if (r == CUDA_ERROR_INVALID_VALUE && !good_dimensions(grid, block))
		return cudart_fail(cudaErrorInvalidConfiguration);
	return cudart_done(r);
}
