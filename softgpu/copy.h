/* SPDX-License-Identifier: MIT */
/* Copies behind the names: each checks its pointers, queues itself on a stream, and waits where CUDA waits. */
#ifndef SOFTGPU_COPY_H
#define SOFTGPU_COPY_H

#include "softgpu/graph.h"

/* One strided copy; rows and planes are 1 for a line of bytes. */
struct copy {
	uint64_t dst, src;
	size_t width, rows, planes;
	size_t dst_pitch, dst_plane, src_pitch, src_plane; /* bytes */
	bool dst_host, src_host;			   /* may be the program's own memory */
};

CUresult copy_submit(const struct copy *cp, CUstream stream, bool async);
CUresult copy_h2d(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream, bool async);
CUresult copy_d2h(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async);
CUresult copy_d2d(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async);
CUresult copy_any(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async);
CUresult copy_peer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, CUstream stream,
		   bool async);
CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async);
CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async);
CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async);

#endif
