// SPDX-License-Identifier: MIT
/* Attributes of streams, which the driver keeps, and batches of memory operations. */
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/session.h"

#define VALUE_WORDS 8
_Static_assert(sizeof(CUstreamAttrValue) == VALUE_WORDS * sizeof(uint64_t), "a value travels as words");

static int enter(struct rgpu_call *c, uint16_t op, CUstream hStream, struct rgpu_obj **obj, uint64_t *wire)
{
	int r = rgpu_enter(c, op);

	return r ? r : rgpu_use(c, KIND_stream, hStream, true, wire, obj);
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	uint64_t wire, words[VALUE_WORDS];
	struct rgpu_obj *obj;
	struct rgpu_call c;
	int r = enter(&c, OP_cuStreamSetAttribute, hStream, &obj, &wire);

	if (!r && !value)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	memcpy(words, value, sizeof(words));
	r = rpc_cuStreamSetAttribute(&c, wire, attr, VALUE_WORDS, words, VALUE_WORDS);
	/* cuStreamGetPriority asks nobody. */
	if (!r && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY && (uint64_t)hStream >= RGPU_SENTINELS_stream) {
		struct ctx *x = ctx_of(c.context);
		int p = value->priority < x->greatest ? x->greatest : value->priority > x->least ? x->least : value->priority;

		obj->field[1] = (uint64_t)(int64_t)p;
	}
	return r;
}

CUresult cuStreamSetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	return cuStreamSetAttribute(hStream ? hStream : CU_STREAM_PER_THREAD, attr, value);
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	uint64_t wire, words[VALUE_WORDS];
	struct rgpu_obj *obj;
	struct rgpu_call c;
	int r = enter(&c, OP_cuStreamGetAttribute, hStream, &obj, &wire);

	if (!r && !value)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rpc_cuStreamGetAttribute(&c, wire, attr, words);
	if (!r)
		memcpy(value, words, sizeof(words));
	return r;
}

CUresult cuStreamGetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	return cuStreamGetAttribute(hStream ? hStream : CU_STREAM_PER_THREAD, attr, value);
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	static const CUstreamAttrID all[] = {
		CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
		CU_LAUNCH_ATTRIBUTE_PRIORITY,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
		CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
	};
	CUstreamAttrValue v;
	CUresult r = CUDA_SUCCESS;

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all) && !r; i++) {
		r = cuStreamGetAttribute(src, all[i], &v);
		if (!r)
			r = cuStreamSetAttribute(dst, all[i], &v);
	}
	return r;
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
	return cuStreamCopyAttributes(dst ? dst : CU_STREAM_PER_THREAD, src ? src : CU_STREAM_PER_THREAD);
}

/* Each operation as the call that does it alone: a batch keeps their order, and promises no more. */
static CUresult one(CUstream s, const CUstreamBatchMemOpParams *p)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return cuStreamWaitValue32_v2(s, p->waitValue.address, p->waitValue.value, p->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return cuStreamWaitValue64_v2(s, p->waitValue.address, p->waitValue.value64, p->waitValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return cuStreamWriteValue32_v2(s, p->writeValue.address, p->writeValue.value, p->writeValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return cuStreamWriteValue64_v2(s, p->writeValue.address, p->writeValue.value64, p->writeValue.flags);
	case CU_STREAM_MEM_OP_BARRIER:
		/* Writes of a stream are seen in its order as it is. */
		return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default: /* remote writes cannot be flushed, as the device's attribute says */
		return p->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t wire;
	int r = enter(&c, RGPU_NO_OP, stream, &obj, &wire);

	if (!r && (!params || !count || count > 256 || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !r; i++)
		r = one(stream, &params[i]);
	return r;
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream ? stream : CU_STREAM_PER_THREAD, count, params, flags);
}
