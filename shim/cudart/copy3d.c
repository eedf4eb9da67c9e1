/* SPDX-License-Identifier: MIT */
/* Copies of boxes in memory and arrays, and fills. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/channel.h"

/* One side as the driver wants it: in an array positions count elements, in memory bytes. */
struct end {
	CUmemorytype type;
	size_t x, texel; /* bytes; texel 0: memory */
};

static cudaError_t end_of(struct end *e, cudaArray_t array, struct cudaPos pos, const struct cudaPitchedPtr *p)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	*e = (struct end){.x = pos.x};
	if (array) {
		cudaError_t r = p->ptr ? cudaErrorInvalidValue : cudart_array(array, &d, &e->texel);

		e->type = CU_MEMORYTYPE_ARRAY;
		e->x *= e->texel;
		return r;
	}
	return p->ptr ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t check_pitch(const struct end *e, const struct cudaPitchedPtr *p, size_t width)
{
	return !e->texel && (e->x > p->pitch || width > p->pitch - e->x) ? cudaErrorInvalidPitchValue : cudaSuccess;
}

/* With an array in it a copy's width counts its elements; *width: in bytes. */
static cudaError_t width_of(const struct end *src, const struct end *dst, size_t elements, size_t *width)
{
	size_t texel = src->texel ? src->texel : dst->texel ? dst->texel : 1;

	if (src->texel && dst->texel && src->texel != dst->texel)
		return cudaErrorInvalidValue;
	return __builtin_mul_overflow(elements, texel, width) ? cudaErrorInvalidValue : cudaSuccess;
}

/* Whether memory on each side is the host's; the kind must not say that of an array. */
static cudaError_t set_types(struct end *src, struct end *dst, const void *from, const void *to, enum cudaMemcpyKind kind)
{
	bool host;

	if ((unsigned int)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	host = kind == cudaMemcpyDefault ? !src->texel && cudart_memory_type(from) == CU_MEMORYTYPE_HOST
					 : kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
	if (host && src->texel)
		return cudaErrorInvalidMemcpyDirection;
	if (!src->texel)
		src->type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	host = kind == cudaMemcpyDefault ? !dst->texel && cudart_memory_type(to) == CU_MEMORYTYPE_HOST
					 : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
	if (host && dst->texel)
		return cudaErrorInvalidMemcpyDirection;
	if (!dst->texel)
		dst->type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	return cudaSuccess;
}

static cudaError_t describe(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p)
{
	struct end src, dst;
	size_t width;
	cudaError_t e;

	if (!p)
		return cudaErrorInvalidValue;
	e = end_of(&src, p->srcArray, p->srcPos, &p->srcPtr);
	if (!e)
		e = end_of(&dst, p->dstArray, p->dstPos, &p->dstPtr);
	if (!e)
		e = width_of(&src, &dst, p->extent.width, &width);
	if (!e)
		e = check_pitch(&src, &p->srcPtr, width);
	if (!e)
		e = check_pitch(&dst, &p->dstPtr, width);
	if (!e)
		e = set_types(&src, &dst, p->srcPtr.ptr, p->dstPtr.ptr, p->kind);
	if (e)
		return e;
	*c = (CUDA_MEMCPY3D){
		.srcXInBytes = src.x,
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = src.type,
		.srcHost = p->srcPtr.ptr,
		.srcDevice = (CUdeviceptr)p->srcPtr.ptr,
		.srcArray = (CUarray)p->srcArray,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = dst.x,
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType = dst.type,
		.dstHost = p->dstPtr.ptr,
		.dstDevice = (CUdeviceptr)p->dstPtr.ptr,
		.dstArray = (CUarray)p->dstArray,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = width,
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
	e = describe(&d, &plain);
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
