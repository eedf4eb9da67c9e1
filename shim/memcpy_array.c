// SPDX-License-Identifier: MIT
/* Copies of bytes in one-dimensional arrays: boxes of one row. */
#include "shim/cuda_api.h"
#include "lib/array_copy.h"

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return cuMemcpy3D_v2(&p);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray dst, size_t offset, const void *src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return cuMemcpy3D_v2_ptds(&p);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return cuMemcpy3DAsync_v2(&p, stream);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_HtoA(dst, offset, src, bytes);

	return cuMemcpy3DAsync_v2_ptsz(&p, stream);
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return cuMemcpy3D_v2(&p);
}

CUresult cuMemcpyAtoH_v2_ptds(void *dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return cuMemcpy3D_v2_ptds(&p);
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return cuMemcpy3DAsync_v2(&p, stream);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
	CUDA_MEMCPY3D p = copy_AtoH(dst, src, offset, bytes);

	return cuMemcpy3DAsync_v2_ptsz(&p, stream);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_DtoA(dst, offset, src, bytes);

	return cuMemcpy3D_v2(&p);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t offset, CUdeviceptr src, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_DtoA(dst, offset, src, bytes);

	return cuMemcpy3D_v2_ptds(&p);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoD(dst, src, offset, bytes);

	return cuMemcpy3D_v2(&p);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t offset, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoD(dst, src, offset, bytes);

	return cuMemcpy3D_v2_ptds(&p);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t to, CUarray src, size_t from, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoA(dst, to, src, from, bytes);

	return cuMemcpy3D_v2(&p);
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray dst, size_t to, CUarray src, size_t from, size_t bytes)
{
	CUDA_MEMCPY3D p = copy_AtoA(dst, to, src, from, bytes);

	return cuMemcpy3D_v2_ptds(&p);
}
