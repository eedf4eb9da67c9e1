/* SPDX-License-Identifier: MIT */
/* What a copy of a box is to the driver, from the runtime's words for it; and back. */
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

cudaError_t cudart_describe3d(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p)
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

/* Positions in arrays count elements here, bytes there. */
void cudart_show3d(struct cudaMemcpy3DParms *p, const CUDA_MEMCPY3D *c)
{
	bool from = c->srcMemoryType == CU_MEMORYTYPE_ARRAY, to = c->dstMemoryType == CU_MEMORYTYPE_ARRAY;
	CUDA_ARRAY3D_DESCRIPTOR d;
	size_t texel = 1;

	if (from || to)
		cudart_array((cudaArray_t)(from ? c->srcArray : c->dstArray), &d, &texel);
	*p = (struct cudaMemcpy3DParms){
		.extent = {c->WidthInBytes / texel, c->Height, c->Depth},
		.srcPos = {from ? c->srcXInBytes / texel : c->srcXInBytes, c->srcY, c->srcZ},
		.dstPos = {to ? c->dstXInBytes / texel : c->dstXInBytes, c->dstY, c->dstZ},
	};
	if (from)
		p->srcArray = (cudaArray_t)c->srcArray;
	else
		p->srcPtr = (struct cudaPitchedPtr){c->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)c->srcHost
											   : (void *)c->srcDevice,
						    c->srcPitch, c->WidthInBytes, c->srcHeight};
	if (to)
		p->dstArray = (cudaArray_t)c->dstArray;
	else
		p->dstPtr = (struct cudaPitchedPtr){c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : (void *)c->dstDevice,
						    c->dstPitch, c->WidthInBytes, c->dstHeight};
	p->kind = c->srcMemoryType == CU_MEMORYTYPE_HOST
			  ? c->dstMemoryType == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
		  : c->dstMemoryType == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost
							   : cudaMemcpyDeviceToDevice;
}
