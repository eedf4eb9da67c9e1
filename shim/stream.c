// SPDX-License-Identifier: MIT
/* Streams: made, ended, waited for, and asked about without a round trip. */
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/known.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/watch.h"

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
	obj->data = known_new();
	if (!obj->data) {
		rgpu_retire(obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Out of range is clamped, not refused; the greatest priority is the lowest number. */
	x = ctx_of(c.context);
	if (priority < x->greatest)
		priority = x->greatest;
	if (priority > x->least)
		priority = x->least;
	obj->field[0] = flags;
	obj->field[1] = (uint64_t)(int64_t)priority;
	r = rpc_cuStreamCreateWithPriority(&c, wire, flags, priority);
	if (!c.sent) {
		stream_forget(obj);
		rgpu_retire(obj);
	}
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
	if (c.sent) {
		graph_stream_gone(wire);
		stream_forget(obj);
		rgpu_retire(obj);
	}
	return r;
}

CUresult cuStreamDestroy(CUstream hStream)
{
	return cuStreamDestroy_v2(hStream);
}

int stream_sync(struct rgpu_call *c, uint64_t stream)
{
	struct known_point now = known_point(c, stream);
	bool settles = c->settles;
	uint32_t text;
	uint64_t order;
	int r;

	c->op = OP_STREAM_SYNC;
	c->settles = true;
	r = rpc_STREAM_SYNC(c, stream, &text);
	c->settles = settles;
	if (!r) {
		known_reached(&now);
		if (!ordered_stream(c, stream, &order)) {
			pinned_settled(c->context, order, now.stamp);
			ordered_settled(c->context, order, now.stamp);
		}
	}
	if (!r && text)
		print_fetch(c->session);
	return r;
}

int ordered_sync(struct rgpu_call *c, uint64_t stream)
{
	uint64_t own;
	int r = 0;

	if (!stream || handle_find(KIND_stream, stream))
		return stream_sync(c, stream);
	r = ordered_stream(c, (uint64_t)CU_STREAM_PER_THREAD, &own);
	if (r)
		return r;
	return stream == own ? stream_sync(c, (uint64_t)CU_STREAM_PER_THREAD) : ctx_sync(c);
}

static int synchronize(CUstream hStream)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_STREAM_SYNC);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &obj);
	if (!r)
		r = rgpu_capture(&c, wire);
	if (!r && c.capturing)
		r = rgpu_capture_refuse(&c);
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

void stream_forget(struct rgpu_obj *stream)
{
	known_free(stream->data, stream->context);
}

static int query(CUstream hStream)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	struct known_point now;
	uint64_t wire, watch;
	int r = rgpu_enter(&c, OP_cuStreamQuery);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &obj);
	if (!r)
		r = rgpu_capture(&c, wire);
	if (!r && c.capturing)
		r = rgpu_capture_refuse(&c);
	if (!r)
		r = graph_unsafe();
	if (r)
		return r;
	if (ctx_of(c.context)->fault)
		return rpc_cuStreamQuery(&c, wire);
	now = known_point(&c, wire);
	switch (known_look(&c, &now)) {
	case KNOWN_DONE:
		r = session_take_pending(c.session, c.op);
		return r || !shared_any() ? r : shared_pull(c.session, false);
	case KNOWN_BUSY:
		/* The word that is waited for will not come from a server that is gone. */
		return session_dead(c.session) ? session_fail(c.session, NULL) : (int)CUDA_ERROR_NOT_READY;
	case KNOWN_WATCH:
		watch = watch_begin(&c, OP_STREAM_WATCH, wire);
		known_watch(&now, watch);
		if (watch)
			return CUDA_ERROR_NOT_READY;
		break;
	case KNOWN_ASK:
		break;
	}
	c.settles = true;
	r = rpc_cuStreamQuery(&c, wire);
	if (!r)
		known_reached(&now);
	else if (r == CUDA_ERROR_NOT_READY)
		known_watch(&now, watch_begin(&c, OP_STREAM_WATCH, wire));
	return r;
}

CUresult cuStreamQuery(CUstream hStream)
{
	return query(hStream);
}

CUresult cuStreamQuery_ptsz(CUstream hStream)
{
	return query(hStream ? hStream : CU_STREAM_PER_THREAD);
}
