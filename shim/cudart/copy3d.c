/* SPDX-License-Identifier: MIT */
/* Copies and fills of boxes in linear memory. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"

static cudaError_t describe(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p)
{
	enum cudaMemcpyKind kind;

	if (!p)
		return cudaErrorInvalidValue;
	if (p->srcArray || p->dstArray)
		return cudaErrorNotSupported; /* there is no way to make one yet */
	if (!p->srcPtr.ptr || !p->dstPtr.ptr)
		return cudaErrorInvalidValue;
	if (p->srcPos.x + p->extent.width > p->srcPtr.pitch || p->dstPos.x + p->extent.width > p->dstPtr.pitch)
		return cudaErrorInvalidPitchValue;
	kind = cudart_kind(p->dstPtr.ptr, p->srcPtr.ptr, p->kind);
	if ((unsigned int)kind > cudaMemcpyDeviceToDevice)
		return cudaErrorInvalidMemcpyDirection;
	*c = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcPos.x,
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
												: CU_MEMORYTYPE_DEVICE,
		.srcHost = p->srcPtr.ptr,
		.srcDevice = (CUdeviceptr)p->srcPtr.ptr,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x,
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
												: CU_MEMORYTYPE_DEVICE,
		.dstHost = p->dstPtr.ptr,
		.dstDevice = (CUdeviceptr)p->dstPtr.ptr,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = p->extent.width,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
	return cudaSuccess;
}

static bool empty(struct cudaExtent e)
{
	return !e.width || !e.height || !e.depth;
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D c;

	TRY(cudart_context());
	TRY(describe(&c, p));
	return empty(p->extent) ? cudaSuccess : cudart_done(drv.cuMemcpy3DAsync(&c, stream_of(stream)));
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;

	TRY(cudart_context());
	TRY(describe(&c, p));
	if (empty(p->extent))
		return cudaSuccess;
#ifdef CUDART_PER_THREAD
	TRY(cudart_error(drv.cuMemcpy3DAsync(&c, DEFAULT_STREAM)));
	return cudart_done(drv.cuStreamSynchronize(DEFAULT_STREAM));
#else
	return cudart_done(drv.cuMemcpy3D(&c));
#endif
}

/* Layer by layer, or at once where the layers lie without a gap. */
cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr at, int value, struct cudaExtent e, cudaStream_t stream)
{
	CUdeviceptr layer = (CUdeviceptr)at.ptr;

	TRY(cudart_context());
	if (empty(e))
		return cudaSuccess;
	if (e.width > at.pitch || e.height > at.ysize)
		return cudart_fail(cudaErrorInvalidValue);
	if (e.height == at.ysize && e.depth <= SIZE_MAX / e.height) {
		e.height *= e.depth;
		e.depth = 1;
	}
	for (size_t z = 0; z < e.depth; z++, layer += at.pitch * at.ysize)
		TRY(cudart_error(
			drv.cuMemsetD2D8Async(layer, at.pitch, (unsigned char)value, e.width, e.height, stream_of(stream))));
	return cudaSuccess;
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr at, int value, struct cudaExtent e)
{
	return cudaMemset3DAsync(at, value, e, DEFAULT_STREAM);
}
