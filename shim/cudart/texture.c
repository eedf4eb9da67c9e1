/* SPDX-License-Identifier: MIT */
/* Texture and surface objects: the runtime's descriptors in the driver's words and back. */
#include "shim/cudart/channel.h"
#include <string.h>

_Static_assert((int)cudaResourceTypePitch2D == (int)CU_RESOURCE_TYPE_PITCH2D, "types of resources are the driver's");
_Static_assert((int)cudaAddressModeBorder == (int)CU_TR_ADDRESS_MODE_BORDER, "so are address modes");
_Static_assert((int)cudaResViewFormatUnsignedBlockCompressed7 == (int)CU_RES_VIEW_FORMAT_UNSIGNED_BC7, "and views' formats");

static cudaError_t resource(CUDA_RESOURCE_DESC *to, const struct cudaResourceDesc *from)
{
	memset(to, 0, sizeof(*to));
	to->resType = (CUresourcetype)from->resType;
	to->flags = from->flags;
	switch (from->resType) {
	case cudaResourceTypeArray:
		to->res.array.hArray = (CUarray)from->res.array.array;
		return cudaSuccess;
	case cudaResourceTypeMipmappedArray:
		to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
		return cudaSuccess;
	case cudaResourceTypeLinear:
		to->res.linear.devPtr = (CUdeviceptr)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		return cudart_format(&from->res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
	case cudaResourceTypePitch2D:
		to->res.pitch2D.devPtr = (CUdeviceptr)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		return cudart_format(&from->res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
	default:
		return cudaErrorInvalidValue;
	}
}

static void resource_back(struct cudaResourceDesc *to, const CUDA_RESOURCE_DESC *from)
{
	memset(to, 0, sizeof(*to));
	to->resType = (enum cudaResourceType)from->resType;
	switch (from->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.array = (cudaArray_t)from->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.mipmap = (cudaMipmappedArray_t)from->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = (void *)from->res.linear.devPtr;
		to->res.linear.desc = cudart_channel_desc(from->res.linear.format, from->res.linear.numChannels);
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		break;
	default:
		to->res.pitch2D.devPtr = (void *)from->res.pitch2D.devPtr;
		to->res.pitch2D.desc = cudart_channel_desc(from->res.pitch2D.format, from->res.pitch2D.numChannels);
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
	}
}

static CUDA_TEXTURE_DESC sampler(const struct cudaTextureDesc *from)
{
	CUDA_TEXTURE_DESC to = {
		.filterMode = (CUfilter_mode)from->filterMode,
		.flags = (from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
			 (from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) | (from->sRGB ? CU_TRSF_SRGB : 0) |
			 (from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
			 (from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0),
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
	};

	for (int i = 0; i < 3; i++)
		to.addressMode[i] = (CUaddress_mode)from->addressMode[i];
	memcpy(to.borderColor, from->borderColor, sizeof(to.borderColor));
	return to;
}

static struct cudaTextureDesc sampler_back(const CUDA_TEXTURE_DESC *from)
{
	struct cudaTextureDesc to = {
		.filterMode = (enum cudaTextureFilterMode)from->filterMode,
		.readMode = from->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat,
		.sRGB = !!(from->flags & CU_TRSF_SRGB),
		.normalizedCoords = !!(from->flags & CU_TRSF_NORMALIZED_COORDINATES),
		.maxAnisotropy = from->maxAnisotropy,
		.mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode,
		.mipmapLevelBias = from->mipmapLevelBias,
		.minMipmapLevelClamp = from->minMipmapLevelClamp,
		.maxMipmapLevelClamp = from->maxMipmapLevelClamp,
		.disableTrilinearOptimization = !!(from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
		.seamlessCubemap = !!(from->flags & CU_TRSF_SEAMLESS_CUBEMAP),
	};

	for (int i = 0; i < 3; i++)
		to.addressMode[i] = (enum cudaTextureAddressMode)from->addressMode[i];
	memcpy(to.borderColor, from->borderColor, sizeof(to.borderColor));
	return to;
}

static CUDA_RESOURCE_VIEW_DESC view(const struct cudaResourceViewDesc *from)
{
	return (CUDA_RESOURCE_VIEW_DESC){
		.format = (CUresourceViewFormat)from->format,
		.width = from->width,
		.height = from->height,
		.depth = from->depth,
		.firstMipmapLevel = from->firstMipmapLevel,
		.lastMipmapLevel = from->lastMipmapLevel,
		.firstLayer = from->firstLayer,
		.lastLayer = from->lastLayer,
	};
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object, const struct cudaResourceDesc *res,
				    const struct cudaTextureDesc *tex, const struct cudaResourceViewDesc *v)
{
	CUDA_RESOURCE_VIEW_DESC dv;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC t;

	TRY(cudart_context());
	if (!object || !res || !tex)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(resource(&r, res));
	t = sampler(tex);
	if (v)
		dv = view(v);
	return cudart_done(drv.cuTexObjectCreate(object, &r, &t, v ? &dv : NULL));
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
	TRY(cudart_context());
	return object ? cudart_done(drv.cuTexObjectDestroy(object)) : cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *res, cudaTextureObject_t object)
{
	CUDA_RESOURCE_DESC r;

	TRY(cudart_context());
	if (!res)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuTexObjectGetResourceDesc(&r, object)));
	resource_back(res, &r);
	return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *tex, cudaTextureObject_t object)
{
	CUDA_TEXTURE_DESC t;

	TRY(cudart_context());
	if (!tex)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuTexObjectGetTextureDesc(&t, object)));
	*tex = sampler_back(&t);
	return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *out, cudaTextureObject_t object)
{
	CUDA_RESOURCE_VIEW_DESC v;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuTexObjectGetResourceViewDesc(&v, object)));
	*out = (struct cudaResourceViewDesc){
		.format = (enum cudaResourceViewFormat)v.format,
		.width = v.width,
		.height = v.height,
		.depth = v.depth,
		.firstMipmapLevel = v.firstMipmapLevel,
		.lastMipmapLevel = v.lastMipmapLevel,
		.firstLayer = v.firstLayer,
		.lastLayer = v.lastLayer,
	};
	return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object, const struct cudaResourceDesc *res)
{
	CUDA_RESOURCE_DESC r;

	TRY(cudart_context());
	if (!object || !res)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(resource(&r, res));
	return cudart_done(drv.cuSurfObjectCreate(object, &r));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
	TRY(cudart_context());
	return object ? cudart_done(drv.cuSurfObjectDestroy(object)) : cudaSuccess;
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *res, cudaSurfaceObject_t object)
{
	CUDA_RESOURCE_DESC r;

	TRY(cudart_context());
	if (!res)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuSurfObjectGetResourceDesc(&r, object)));
	resource_back(res, &r);
	return cudaSuccess;
}
