// SPDX-License-Identifier: MIT
/* Batches of copies: each is a copy of its own in the stream; what can be told beforehand is checked before the first. */
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/session.h"

#include "lib/texel.h" /* it wants cuda.h */

/* As in CUDA, not for the legacy stream. */
static int enter(CUstream s)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r && (!s || s == CU_STREAM_LEGACY))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : rgpu_use(&c, KIND_stream, s, true, &wire, &obj);
}

static bool order_known(CUmemcpySrcAccessOrder o)
{
	return o >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && o <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
			    size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	size_t none;
	int r = enter(hStream);

	if (!failIdx)
		failIdx = &none;
	*failIdx = SIZE_MAX;
	if (!r && (!dsts || !srcs || !sizes || !count || !attrs || !attrsIdxs || !numAttrs || numAttrs > count || attrsIdxs[0]))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < numAttrs; i++)
		if (!order_known(attrs[i].srcAccessOrder) || (i && attrsIdxs[i] <= attrsIdxs[i - 1]) || attrsIdxs[i] >= count)
			r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++)
		if (!dsts[i] || !srcs[i] || !sizes[i]) {
			*failIdx = i;
			r = CUDA_ERROR_INVALID_VALUE;
		}
	for (size_t i = 0; !r && i < count; i++) {
		r = cuMemcpyAsync(dsts[i], srcs[i], sizes[i], hStream);
		if (r)
			*failIdx = i;
	}
	return r;
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
				 size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream)
{
	return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
				  hStream ? hStream : CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
			       size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
				    size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs,
				     hStream ? hStream : CU_STREAM_PER_THREAD);
}

/* An operand's place: rows and layers of 0 elements mean that they lie close; an array's element has a size. */
struct place {
	CUmemorytype type;
	CUdeviceptr ptr;
	CUarray array;
	size_t x, y, z, pitch, height, element;
};

static int place_of(const CUmemcpy3DOperand *o, const CUextent3D *e, struct place *p)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct texel_format texel;
	CUresult r;

	*p = (struct place){.element = 1};
	if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		p->type = CU_MEMORYTYPE_UNIFIED;
		p->ptr = o->op.ptr.ptr;
		p->pitch = o->op.ptr.rowLength ? o->op.ptr.rowLength : e->width;
		p->height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : e->height;
		return p->ptr ? 0 : CUDA_ERROR_INVALID_VALUE;
	}
	if (o->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuArray3DGetDescriptor_v2(&d, o->op.array.array);
	if (r)
		return r;
	p->type = CU_MEMORYTYPE_ARRAY;
	p->array = o->op.array.array;
	r = texel_format(d.Format, d.NumChannels, &texel);
	if (r)
		return r;
	p->element = texel.bytes;
	p->x = o->op.array.offset.x;
	p->y = o->op.array.offset.y;
	p->z = o->op.array.offset.z;
	return 0;
}

/* Widths are in elements of the array, when there is one, and in bytes otherwise. */
static int copy_one(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream s)
{
	CUDA_MEMCPY3D c = {0};
	struct place src, dst;
	size_t element;
	int r;

	if (!order_known(op->srcAccessOrder))
		return CUDA_ERROR_INVALID_VALUE;
	r = place_of(&op->src, &op->extent, &src);
	if (!r)
		r = place_of(&op->dst, &op->extent, &dst);
	if (r)
		return r;
	element = src.array ? src.element : dst.element;
	c.srcMemoryType = src.type;
	c.srcDevice = src.ptr;
	c.srcArray = src.array;
	c.srcXInBytes = src.x * element;
	c.srcY = src.y;
	c.srcZ = src.z;
	c.srcPitch = src.pitch * element;
	c.srcHeight = src.height;
	c.dstMemoryType = dst.type;
	c.dstDevice = dst.ptr;
	c.dstArray = dst.array;
	c.dstXInBytes = dst.x * element;
	c.dstY = dst.y;
	c.dstZ = dst.z;
	c.dstPitch = dst.pitch * element;
	c.dstHeight = dst.height;
	c.WidthInBytes = op->extent.width * element;
	c.Height = op->extent.height;
	c.Depth = op->extent.depth;
	return cuMemcpy3DAsync_v2(&c, s);
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
			      CUstream hStream)
{
	size_t none;
	int r = enter(hStream);

	if (!failIdx)
		failIdx = &none;
	*failIdx = SIZE_MAX;
	if (!r && (!numOps || !opList || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < numOps; i++) {
		r = copy_one(&opList[i], hStream);
		if (r)
			*failIdx = i;
	}
	return r;
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
				   CUstream hStream)
{
	return cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, hStream ? hStream : CU_STREAM_PER_THREAD);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
	return cuMemcpy3DBatchAsync(numOps, opList, NULL, flags, hStream);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
	return cuMemcpy3DBatchAsync_v2(numOps, opList, flags, hStream ? hStream : CU_STREAM_PER_THREAD);
}
