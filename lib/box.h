/* SPDX-License-Identifier: MIT */
/* What a copy of a box says without its contexts. Included behind cuda.h, to which the shims give their visibility. */
#ifndef RGPU_LIB_BOX_H
#define RGPU_LIB_BOX_H

static inline CUDA_MEMCPY3D copy_of_peer(const CUDA_MEMCPY3D_PEER *p)
{
	return (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
			       .srcY = p->srcY,
			       .srcZ = p->srcZ,
			       .srcLOD = p->srcLOD,
			       .srcMemoryType = p->srcMemoryType,
			       .srcHost = p->srcHost,
			       .srcDevice = p->srcDevice,
			       .srcArray = p->srcArray,
			       .srcPitch = p->srcPitch,
			       .srcHeight = p->srcHeight,
			       .dstXInBytes = p->dstXInBytes,
			       .dstY = p->dstY,
			       .dstZ = p->dstZ,
			       .dstLOD = p->dstLOD,
			       .dstMemoryType = p->dstMemoryType,
			       .dstHost = p->dstHost,
			       .dstDevice = p->dstDevice,
			       .dstArray = p->dstArray,
			       .dstPitch = p->dstPitch,
			       .dstHeight = p->dstHeight,
			       .WidthInBytes = p->WidthInBytes,
			       .Height = p->Height,
			       .Depth = p->Depth};
}

#endif
