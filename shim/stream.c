// SPDX-License-Identifier: MIT
/* Streams and events: making, ending and waiting; the calls that only travel are generated. */
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/unsupported.h"

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	struct ctx *x;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuStreamCreateWithPriority);

	if (!r && (!phStream || flags > CU_STREAM_NON_BLOCKING))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_mint(&c, KIND_stream, &wire, &obj);
	if (r)
		return r;
	/* Out of range is clamped, not refused; the greatest priority is the lowest number. */
	x = ctx_of(c.context);
	if (priority < x->greatest)
		priority = x->greatest;
	if (priority > x->least)
		priority = x->least;
	obj->field[0] = flags;
	obj->field[1] = (uint64_t)(int64_t)priority;
	r = rpc_cuStreamCreateWithPriority(&c, wire, flags, priority);
	if (!c.sent)
		rgpu_retire(obj);
	if (!r)
		*phStream = (CUstream)wire;
	return r;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuStreamDestroy_v2);

	if (!r && (uint64_t)hStream < RGPU_SENTINELS_stream)
		r = CUDA_ERROR_INVALID_HANDLE; /* the default streams cannot be destroyed */
	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &obj);
	if (r)
		return r;
	r = rpc_cuStreamDestroy_v2(&c, wire);
	if (c.sent)
		rgpu_retire(obj);
	return r;
}

CUresult cuStreamDestroy(CUstream hStream)
{
	return cuStreamDestroy_v2(hStream);
}

int stream_sync(struct rgpu_call *c, uint64_t stream)
{
	uint64_t stamp = atomic_load(&c->session->counter), order;
	uint32_t text;
	int r;

	c->op = OP_STREAM_SYNC;
	r = rpc_STREAM_SYNC(c, stream, &text);
	if (!r) {
		pinned_settled(c->context, stream, stamp);
		if (!ordered_stream(c, stream, &order))
			ordered_settled(c->context, order, stamp);
	}
	if (!r && text)
		print_fetch(c->session);
	return r;
}

static int synchronize(CUstream hStream)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_STREAM_SYNC);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &obj);
	return r ? r : stream_sync(&c, wire);
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	return synchronize(hStream);
}

CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
	return synchronize(hStream ? hStream : CU_STREAM_PER_THREAD);
}

/* The context that a stream belongs to: the current one's for the default streams. */
static int stream_context(CUstream hStream, struct rgpu_call *c, struct rgpu_obj **obj)
{
	uint64_t wire;
	int r = rgpu_enter(c, RGPU_NO_OP);

	return r ? r : rgpu_use(c, KIND_stream, hStream, true, &wire, obj);
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	int r = stream_context(hStream, &c, &obj);

	if (r || !pctx)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*pctx = (CUcontext)c.ctx;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext *pctx)
{
	return cuStreamGetCtx(hStream, pctx);
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	if (!pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	*pGreenCtx = NULL;
	return cuStreamGetCtx(hStream, pCtx);
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	return cuStreamGetCtx_v2(hStream, pCtx, pGreenCtx);
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	int r = stream_context(hStream, &c, &obj);

	if (r || !device)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*device = ctx_of(c.context)->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice *device)
{
	return cuStreamGetDevice(hStream, device);
}

static int get_id(CUstream hStream, unsigned long long *streamId)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	int r = stream_context(hStream, &c, &obj);

	if (r || !streamId)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	/* Unique in the process: a slot and its generation; the default streams by their context. */
	if ((uint64_t)hStream < RGPU_SENTINELS_stream)
		*streamId = ctx_of(c.context)->id << 2 | (hStream == CU_STREAM_PER_THREAD ? 2 : 1);
	else
		*streamId = (uint64_t)obj->gen << 32 | 1ull << 31 | obj->index;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	return get_id(hStream, streamId);
}

CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long *streamId)
{
	return get_id(hStream ? hStream : CU_STREAM_PER_THREAD, streamId);
}

/* Capture cannot be begun yet, so no stream is capturing. */
CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	int r = stream_context(hStream, &c, &obj);

	if (r || !captureStatus)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return cuStreamIsCapturing(hStream, captureStatus);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuEventCreate);

	if (!r && (!phEvent || Flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && Flags & CU_EVENT_INTERPROCESS)
		r = Flags & CU_EVENT_DISABLE_TIMING ? rgpu_unsupported("an interprocess event", NULL) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_mint(&c, KIND_event, &wire, &obj);
	if (r)
		return r;
	obj->field[0] = Flags;
	r = rpc_cuEventCreate(&c, wire, Flags);
	if (!c.sent)
		rgpu_retire(obj);
	if (!r)
		*phEvent = (CUevent)wire;
	return r;
}

CUresult cuEventDestroy(CUevent hEvent)
{
	return cuEventDestroy_v2(hEvent);
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	uint32_t text;
	int r = rgpu_enter(&c, OP_EVENT_SYNC);

	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, true, &wire, &obj);
	if (r)
		return r;
	r = rpc_EVENT_SYNC(&c, wire, &text);
	if (!r && text)
		print_fetch(c.session);
	return r;
}
