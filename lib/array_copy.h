/* SPDX-License-Identifier: MIT */
/* Copies of bytes in one-dimensional arrays as the copies of boxes that they are. Whoever includes this has cuda.h. */
#ifndef RGPU_LIB_ARRAY_COPY_H
#define RGPU_LIB_ARRAY_COPY_H

#include <stddef.h>

static inline CUDA_MEMCPY3D copy_HtoA(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = src,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .dstArray = dst,
			       .dstXInBytes = offset,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
}

static inline CUDA_MEMCPY3D copy_AtoH(void *dst, CUarray src, size_t offset, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .srcArray = src,
			       .srcXInBytes = offset,
			       .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = dst,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
}

static inline CUDA_MEMCPY3D copy_DtoA(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			       .srcDevice = src,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .dstArray = dst,
			       .dstXInBytes = offset,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
}

static inline CUDA_MEMCPY3D copy_AtoD(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .srcArray = src,
			       .srcXInBytes = offset,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = dst,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
}

static inline CUDA_MEMCPY3D copy_AtoA(CUarray dst, size_t to, CUarray src, size_t from, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .srcArray = src,
			       .srcXInBytes = from,
			       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			       .dstArray = dst,
			       .dstXInBytes = to,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
}

#endif
