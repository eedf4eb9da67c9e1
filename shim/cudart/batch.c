/* SPDX-License-Identifier: MIT */
/* Batches of copies and attributes of streams; the structures are the driver's under other names. Compiled twice: see cudart.h.
 */
#include "shim/cudart/cudart.h"

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes), "one structure");
_Static_assert(sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP), "one structure");
_Static_assert(offsetof(struct cudaMemcpy3DBatchOp, extent) == offsetof(CUDA_MEMCPY3D_BATCH_OP, extent), "one structure");
_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "one union");

cudaError_t cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
				 struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemcpyBatchAsync((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, (size_t *)sizes, count,
						  (CUmemcpyAttributes *)attrs, attrsIdxs, numAttrs, stream_of(s)));
}

cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp *opList, unsigned long long flags, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemcpy3DBatchAsync(numOps, (CUDA_MEMCPY3D_BATCH_OP *)opList, flags, stream_of(s)));
}

/* Of managed memory. The driver has none of them where devices and the host cannot use it at the same time. */
cudaError_t cudaMemPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs, size_t *locIdxs,
				      size_t numLocs, unsigned long long flags, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemPrefetchBatchAsync((CUdeviceptr *)ptrs, sizes, count, (CUmemLocation *)locs, locIdxs, numLocs,
						       flags, stream_of(s)));
}

cudaError_t cudaMemDiscardBatchAsync(void **ptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemDiscardBatchAsync((CUdeviceptr *)ptrs, sizes, count, flags, stream_of(s)));
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locs,
						size_t *locIdxs, size_t numLocs, unsigned long long flags, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *)ptrs, sizes, count, (CUmemLocation *)locs,
								 locIdxs, numLocs, flags, stream_of(s)));
}

cudaError_t cudaStreamSetAttribute(cudaStream_t s, cudaStreamAttrID attr, const cudaStreamAttrValue *value)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamSetAttribute(stream_of(s), (CUstreamAttrID)attr, (const CUstreamAttrValue *)value));
}

cudaError_t cudaStreamGetAttribute(cudaStream_t s, cudaStreamAttrID attr, cudaStreamAttrValue *value)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamGetAttribute(stream_of(s), (CUstreamAttrID)attr, (CUstreamAttrValue *)value));
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamCopyAttributes(stream_of(dst), stream_of(src)));
}
