/* SPDX-License-Identifier: MIT */
/* Arrays and mipmapped arrays: allocate, free, describe. */
#include "shim/cudart/channel.h"

/* The flags have the driver's values. */
static cudaError_t describe(CUDA_ARRAY3D_DESCRIPTOR *d, const struct cudaChannelFormatDesc *desc, struct cudaExtent e,
			    unsigned int flags)
{
	*d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = e.width, .Height = e.height, .Depth = e.depth, .Flags = flags};
	return desc ? cudart_format(desc, &d->Format, &d->NumChannels) : cudaErrorInvalidValue;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
			      unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	TRY(cudart_context());
	if (!array)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(describe(&d, desc, extent, flags));
	return cudart_done(drv.cuArray3DCreate((CUarray *)array, &d));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
			    unsigned int flags)
{
	return cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	TRY(cudart_context());
	return array ? cudart_done(drv.cuArrayDestroy((CUarray)array)) : cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned int *flags,
			     cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	size_t texel;

	TRY(cudart_context());
	TRY(cudart_array(array, &d, &texel));
	if (desc)
		*desc = cudart_channel_desc(d.Format, d.NumChannels);
	if (extent)
		*extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
	if (flags)
		*flags = d.Flags;
	return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	if (!desc)
		return cudart_fail(cudaErrorInvalidValue);
	return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)array);
}

cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned int index)
{
	TRY(cudart_context());
	return cudart_done(drv.cuArrayGetPlane((CUarray *)plane, (CUarray)array, index));
}

/* These structures are the driver's with other names. */

cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *out, cudaArray_t array)
{
	TRY(cudart_context());
	return cudart_done(drv.cuArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)out, (CUarray)array));
}

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out, cudaArray_t array, int device)
{
	TRY(cudart_context());
	return cudart_done(drv.cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)out, (CUarray)array, device));
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *desc,
				     struct cudaExtent extent, unsigned int levels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	TRY(cudart_context());
	if (!array)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(describe(&d, desc, extent, flags));
	return cudart_done(drv.cuMipmappedArrayCreate((CUmipmappedArray *)array, &d, levels));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	TRY(cudart_context());
	return array ? cudart_done(drv.cuMipmappedArrayDestroy((CUmipmappedArray)array)) : cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level, cudaMipmappedArray_const_t array, unsigned int index)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMipmappedArrayGetLevel((CUarray *)level, (CUmipmappedArray)array, index));
}

cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *out, cudaMipmappedArray_t array)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)out, (CUmipmappedArray)array));
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out, cudaMipmappedArray_t array,
						    int device)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)out,
								     (CUmipmappedArray)array, device));
}
