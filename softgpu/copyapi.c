// SPDX-License-Identifier: MIT
/* The copy calls' names; in a plain call the stream is the calling thread's default, in _ptds its own. */
#include "softgpu/copy.h"

#include "lib/array_copy.h"

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy_any(dst, src, bytes, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy_any(dst, src, bytes, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy_any(dst, src, bytes, stream, true);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy_h2d(dst, src, bytes, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes)
{
	return copy_h2d(dst, src, bytes, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return copy_h2d(dst, src, bytes, stream, true);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy_d2h(dst, src, bytes, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes)
{
	return copy_d2h(dst, src, bytes, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy_d2h(dst, src, bytes, stream, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy_d2d(dst, src, bytes, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
	return copy_d2d(dst, src, bytes, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return copy_d2d(dst, src, bytes, stream, true);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes)
{
	return copy_peer(dst, dst_ctx, src, src_ctx, bytes, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes)
{
	return copy_peer(dst, dst_ctx, src, src_ctx, bytes, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, CUstream stream)
{
	return copy_peer(dst, dst_ctx, src, src_ctx, bytes, stream, true);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, stream, true);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
	return copy_3d_peer(copy, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *copy)
{
	return copy_3d_peer(copy, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	return copy_3d_peer(copy, stream, true);
}

/* ---- Lines of bytes in one-dimensional arrays ---- */

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return copy_3d(&p, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return copy_3d(&p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return copy_3d(&p, stream, true);
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return copy_3d(&p, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyAtoH_v2_ptds(void *dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return copy_3d(&p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return copy_3d(&p, stream, true);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_DtoA(dst, offset, src, bytes);

	return copy_3d(&p, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_DtoA(dst, offset, src, bytes);

	return copy_3d(&p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoD(dst, src, offset, bytes);

	return copy_3d(&p, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoD(dst, src, offset, bytes);

	return copy_3d(&p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t to, CUarray src, size_t from, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoA(dst, to, src, from, bytes);

	return copy_3d(&p, CU_STREAM_LEGACY, false);
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray dst, size_t to, CUarray src, size_t from, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoA(dst, to, src, from, bytes);

	return copy_3d(&p, CU_STREAM_PER_THREAD, false);
}
