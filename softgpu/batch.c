// SPDX-License-Identifier: MIT
/* Batches of copies: each a copy in stream order, checked before the first is queued. */
#include "softgpu/copy.h"

/* Every order that the attributes can name is kept: a pageable source is read at the call. */
static CUresult check(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count,
		      const CUmemcpyAttributes *attrs, const size_t *idxs, size_t nattrs, size_t *fail)
{
	*fail = SIZE_MAX;
	if (!dsts || !srcs || !sizes || !count || !attrs || !idxs || !nattrs || nattrs > count || idxs[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < nattrs; i++)
		if (attrs[i].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
		    attrs[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY || (i && idxs[i] <= idxs[i - 1]) || idxs[i] >= count)
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!dsts[i] || !srcs[i] || !sizes[i]) {
			*fail = i;
			return CUDA_ERROR_INVALID_VALUE;
		}
	return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
			    size_t *idxs, size_t nattrs, size_t *fail, CUstream stream)
{
	size_t at;

	TRY(api_enter());
	/* As in CUDA, not for the NULL stream. */
	if (!stream || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fail)
		fail = &at;
	TRY(check(dsts, srcs, sizes, count, attrs, idxs, nattrs, fail));
	for (size_t i = 0; i < count; i++) {
		*fail = i;
		TRY(copy_any(dsts[i], srcs[i], sizes[i], stream, true));
	}
	*fail = SIZE_MAX;
	return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
			       size_t *idxs, size_t nattrs, CUstream stream)
{
	return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, idxs, nattrs, NULL, stream);
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
				 size_t *idxs, size_t nattrs, size_t *fail, CUstream stream)
{
	return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, idxs, nattrs, fail, stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
				    size_t *idxs, size_t nattrs, CUstream stream)
{
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, idxs, nattrs, stream ? stream : CU_STREAM_PER_THREAD);
}
