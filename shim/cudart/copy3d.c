/* SPDX-License-Identifier: MIT */
/* Copies of boxes in memory and arrays, and fills. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"

static bool empty(struct cudaExtent e)
{
	return !e.width || !e.height || !e.depth;
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D c;

	TRY(cudart_context());
	TRY(cudart_describe3d(&c, p));
	return empty(p->extent) ? cudaSuccess : cudart_done(drv.cuMemcpy3DAsync(&c, stream_of(stream)));
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	CUDA_MEMCPY3D c;

	TRY(cudart_context());
	TRY(cudart_describe3d(&c, p));
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
	cudaError_t r = cudaMemset3DAsync(at, value, e, DEFAULT_STREAM);

	return r || empty(e) ? r : cudart_fail(cudart_filled(at.ptr, DEFAULT_STREAM));
}

/* Between devices, whose primary contexts own what the pointers and arrays name. */
static cudaError_t describe_peer(CUDA_MEMCPY3D_PEER *c, const struct cudaMemcpy3DPeerParms *p)
{
	struct cudaMemcpy3DParms plain;
	CUDA_MEMCPY3D d;
	cudaError_t e;

	if (!p)
		return cudaErrorInvalidValue;
	plain = (struct cudaMemcpy3DParms){.srcArray = p->srcArray,
					   .srcPos = p->srcPos,
					   .srcPtr = p->srcPtr,
					   .dstArray = p->dstArray,
					   .dstPos = p->dstPos,
					   .dstPtr = p->dstPtr,
					   .extent = p->extent,
					   .kind = cudaMemcpyDeviceToDevice};
	e = cudart_describe3d(&d, &plain);
	if (e)
		return e;
	if (p->srcDevice < 0 || p->srcDevice >= cudart_ndevices() || p->dstDevice < 0 || p->dstDevice >= cudart_ndevices())
		return cudaErrorInvalidDevice;
	*c = (CUDA_MEMCPY3D_PEER){
		.srcXInBytes = d.srcXInBytes,
		.srcY = d.srcY,
		.srcZ = d.srcZ,
		.srcMemoryType = d.srcMemoryType,
		.srcDevice = d.srcDevice,
		.srcArray = d.srcArray,
		.srcContext = cudart_primary(p->srcDevice),
		.srcPitch = d.srcPitch,
		.srcHeight = d.srcHeight,
		.dstXInBytes = d.dstXInBytes,
		.dstY = d.dstY,
		.dstZ = d.dstZ,
		.dstMemoryType = d.dstMemoryType,
		.dstDevice = d.dstDevice,
		.dstArray = d.dstArray,
		.dstContext = cudart_primary(p->dstDevice),
		.dstPitch = d.dstPitch,
		.dstHeight = d.dstHeight,
		.WidthInBytes = d.WidthInBytes,
		.Height = d.Height,
		.Depth = d.Depth,
	};
	return c->srcContext && c->dstContext ? cudaSuccess : cudaErrorDevicesUnavailable;
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D_PEER c;

	TRY(cudart_context());
	TRY(describe_peer(&c, p));
	return empty(p->extent) ? cudaSuccess : cudart_done(drv.cuMemcpy3DPeerAsync(&c, stream_of(stream)));
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	CUDA_MEMCPY3D_PEER c;

	TRY(cudart_context());
	TRY(describe_peer(&c, p));
	if (empty(p->extent))
		return cudaSuccess;
#ifdef CUDART_PER_THREAD
	TRY(cudart_error(drv.cuMemcpy3DPeerAsync(&c, DEFAULT_STREAM)));
	return cudart_done(drv.cuStreamSynchronize(DEFAULT_STREAM));
#else
	return cudart_done(drv.cuMemcpy3DPeer(&c));
#endif
}
