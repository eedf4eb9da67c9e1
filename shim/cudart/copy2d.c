/* SPDX-License-Identifier: MIT */
/* Pitched copies, and managed and pooled memory on a stream. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"

static cudaError_t describe(CUDA_MEMCPY2D *c, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
			    size_t height, enum cudaMemcpyKind kind)
{
	kind = cudart_kind(dst, src, kind);
	if (width > dpitch || width > spitch)
		return cudaErrorInvalidPitchValue;
	*c = (CUDA_MEMCPY2D){
		.srcHost = src,
		.srcDevice = (CUdeviceptr)src,
		.srcPitch = spitch,
		.dstHost = dst,
		.dstDevice = (CUdeviceptr)dst,
		.dstPitch = dpitch,
		.WidthInBytes = width,
		.Height = height,
	};
	switch (kind) {
	case cudaMemcpyHostToDevice:
		c->srcMemoryType = CU_MEMORYTYPE_HOST;
		c->dstMemoryType = CU_MEMORYTYPE_DEVICE;
		return cudaSuccess;
	case cudaMemcpyDeviceToHost:
		c->srcMemoryType = CU_MEMORYTYPE_DEVICE;
		c->dstMemoryType = CU_MEMORYTYPE_HOST;
		return cudaSuccess;
	case cudaMemcpyDeviceToDevice:
		c->srcMemoryType = c->dstMemoryType = CU_MEMORYTYPE_DEVICE;
		return cudaSuccess;
	case cudaMemcpyHostToHost:
		c->srcMemoryType = c->dstMemoryType = CU_MEMORYTYPE_HOST;
		return cudaSuccess;
	default:
		return cudaErrorInvalidMemcpyDirection;
	}
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
			      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D c;

	TRY(cudart_context());
	if (!width || !height)
		return cudaSuccess;
	TRY(describe(&c, dst, dpitch, src, spitch, width, height, kind));
	return cudart_done(drv.cuMemcpy2DAsync(&c, stream_of(stream)));
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
			 enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY2D c;

	TRY(cudart_context());
	if (!width || !height)
		return cudaSuccess;
	TRY(describe(&c, dst, dpitch, src, spitch, width, height, kind));
#ifdef CUDART_PER_THREAD
	TRY(cudart_error(drv.cuMemcpy2DAsync(&c, DEFAULT_STREAM)));
	return cudart_done(drv.cuStreamSynchronize(DEFAULT_STREAM));
#else
	return cudart_done(drv.cuMemcpy2DUnaligned(&c));
#endif
}

cudaError_t cudaMallocAsync(void **ptr, size_t n, cudaStream_t stream)
{
	TRY(cudart_context());
	if (!ptr)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuMemAllocAsync((CUdeviceptr *)ptr, n, stream_of(stream)));
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t n, cudaMemPool_t pool, cudaStream_t stream)
{
	TRY(cudart_context());
	if (!ptr)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, n, pool, stream_of(stream)));
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemFreeAsync((CUdeviceptr)ptr, stream_of(stream)));
}

cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t n, struct cudaMemLocation where, unsigned int flags, cudaStream_t stream)
{
	CUmemLocation at = {.type = (CUmemLocationType)where.type, .id = where.id};

	TRY(cudart_context());
	return cudart_done(drv.cuMemPrefetchAsync((CUdeviceptr)ptr, n, at, flags, stream_of(stream)));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t n, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamAttachMemAsync(stream_of(stream), (CUdeviceptr)ptr, n, flags));
}
