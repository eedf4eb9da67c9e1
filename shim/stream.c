// SPDX-License-Identifier: MIT
/* Streams: made, ended, waited for, and asked about without a round trip while nothing changes. */
#include <pthread.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/thread.h"
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

/*
 * What is known of a stream's state, in two words: a watch, and what its context had been given (ctx.work, + 1) when the stream
 * was idle; with PENDING, when the watch began.
 */
enum { WATCH, IDLE };
#define PENDING (1ull << 63)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* those words, of all streams */

/* A made stream's are behind its flags and its priority; the legacy stream's are the context's, and the thread's own its. */
static uint64_t *words_of(const struct rgpu_call *c, struct rgpu_obj *stream, uint64_t wire)
{
	struct thread *t;

	if (wire >= RGPU_SENTINELS_stream)
		return &stream->field[2];
	if ((CUstream)wire != CU_STREAM_PER_THREAD)
		return ctx_of(c->context)->legacy;
	t = thread_get();
	if (t->own_context != c->ctx) {
		stream_forget_words(t->own);
		t->own_context = c->ctx;
	}
	return t->own;
}

void stream_forget_words(uint64_t words[2])
{
	pthread_mutex_lock(&lock);
	watch_end(&words[WATCH]);
	words[IDLE] = 0;
	pthread_mutex_unlock(&lock);
}

void stream_forget(struct rgpu_obj *stream)
{
	stream_forget_words(&stream->field[2]);
}

static enum watch_state look(uint64_t words[2], uint64_t work)
{
	enum watch_state s = WATCH_DONE;

	pthread_mutex_lock(&lock);
	if (words[IDLE] != work + 1) {
		s = watch_look(&words[WATCH]);
		/* What came after the watch, it knows nothing of. */
		if (s == WATCH_DONE && words[IDLE] == (PENDING | (work + 1)))
			words[IDLE] = work + 1;
		else if (s != WATCH_QUIET)
			s = WATCH_ASK;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

static void learn(uint64_t words[2], uint64_t idle, uint64_t watch)
{
	pthread_mutex_lock(&lock);
	watch_end(&words[WATCH]);
	words[WATCH] = watch;
	words[IDLE] = idle;
	pthread_mutex_unlock(&lock);
}

static int query(CUstream hStream)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire, work, *words;
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
	work = atomic_load(&ctx_of(c.context)->work);
	words = words_of(&c, obj, wire);
	switch (look(words, work)) {
	case WATCH_DONE:
		r = session_take_pending(c.session, c.op);
		return r || !shared_any() ? r : shared_pull(c.session, false);
	case WATCH_QUIET:
		/* The word that is waited for will not come from a server that is gone. */
		return session_dead(c.session) ? session_fail(c.session, NULL) : (int)CUDA_ERROR_NOT_READY;
	default:
		break;
	}
	c.settles = true;
	r = rpc_cuStreamQuery(&c, wire);
	if (!r)
		learn(words, work + 1, 0);
	else if (r == CUDA_ERROR_NOT_READY)
		learn(words, PENDING | (work + 1), watch_begin(&c, OP_STREAM_WATCH, wire));
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
