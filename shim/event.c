// SPDX-License-Identifier: MIT
/* Events: made, recorded, waited for, and asked about without a round trip. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/known.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/token.h"
#include "shim/watch.h"

/* An event's fields, behind its flags. */
#define WATCH 1
#define STATE 2
#define DONE  1ull /* what was recorded last has completed */
#define ASKED 2ull /* the program has asked about it: the next time that it is recorded, a watch goes along */
#define TURN  4ull /* counts what made all that void */
#define MARK  3	   /* what was recorded last, as known.h has it: three fields */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* those fields, of all events */
static atomic_bool polls; /* this program asks about events that are not ready: a new one's first recording is watched, too */

/*
 * Others record it, too: what is known here of another process's event is nothing. And what one process has done to it when its
 * call returns, the other must find: those calls are fences.
 */
static bool shared(const struct rgpu_obj *e)
{
	return e->field[0] & CU_EVENT_INTERPROCESS;
}

/* The server has done what it was given before for this event. What failed of that is told here. */
static int settle(struct rgpu_call *c, uint64_t wire)
{
	int r;

	c->op = OP_cuEventQuery;
	r = rpc_cuEventQuery(c, wire);
	return r == CUDA_ERROR_NOT_READY ? 0 : r;
}

static uint64_t state_of(const struct rgpu_obj *e)
{
	uint64_t now;

	pthread_mutex_lock(&lock);
	now = e->field[STATE];
	pthread_mutex_unlock(&lock);
	return now;
}

/* @m: where it was recorded; NULL: that is not known. */
static uint64_t recorded(struct rgpu_obj *e, const struct known_mark *m)
{
	uint64_t now;

	pthread_mutex_lock(&lock);
	watch_end(&e->field[WATCH]);
	now = e->field[STATE] = (e->field[STATE] + TURN) & ~(DONE | ASKED);
	if (m)
		memcpy(&e->field[MARK], m, sizeof(*m));
	else
		e->field[MARK] = 0;
	pthread_mutex_unlock(&lock);
	return now;
}

uint64_t event_forget(struct rgpu_obj *e)
{
	return recorded(e, NULL);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuEventCreate);

	if (!r && (!phEvent || Flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_mint(&c, KIND_event, &wire, &obj);
	if (r)
		return r;
	obj->field[0] = Flags;
	obj->field[STATE] = atomic_load(&polls) ? ASKED : 0;
	/* The server's thread that waits for it sleeps. */
	r = rpc_cuEventCreate(&c, wire, Flags | CU_EVENT_BLOCKING_SYNC);
	if (!r && shared(obj))
		r = settle(&c, wire);
	if (!c.sent || (r && shared(obj)))
		rgpu_retire(obj);
	if (!r)
		*phEvent = (CUevent)wire;
	return r;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuEventDestroy_v2);

	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, true, &wire, &obj);
	if (r)
		return r;
	r = rpc_cuEventDestroy_v2(&c, wire);
	if (c.sent) {
		event_forget(obj);
		graph_event_gone(hEvent);
		rgpu_retire(obj);
	}
	return r;
}

CUresult cuEventDestroy(CUevent hEvent)
{
	return cuEventDestroy_v2(hEvent);
}

/* Watches what was recorded as of @turn, unless that is over. When it cannot, the next question is a round trip again. */
static bool watch(const struct rgpu_call *c, struct rgpu_obj *e, uint64_t turn)
{
	uint64_t w = watch_begin(c, OP_EVENT_WATCH, e->handle);
	bool begun = w;

	pthread_mutex_lock(&lock);
	if (e->field[STATE] / TURN == turn / TURN && !(e->field[STATE] & DONE) && !e->field[WATCH])
		e->field[WATCH] = w;
	else
		watch_end(&w);
	pthread_mutex_unlock(&lock);
	return begun;
}

/*
 * What was known of it ends before the record leaves, and what others found out meanwhile when it has left: that was about the
 * recording before.
 */
static int record(CUevent hEvent, CUstream hStream, unsigned flags, uint16_t op)
{
	struct rgpu_obj *event, *stream;
	uint64_t w_event, w_stream, turn;
	struct known_mark m;
	struct rgpu_call c;
	bool asked;
	int r = rgpu_enter(&c, op);

	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, false, &w_event, &event);
	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &w_stream, &stream);
	if (!r && event->context != c.context)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r && flags > CU_EVENT_RECORD_EXTERNAL)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_capture(&c, w_stream);
	if (!r && c.capturing) {
		struct gstream s = capture_stream(&c, w_stream);

		return graph_capture_record(&s, hEvent, flags);
	}
	/* An external record means something in a capture only. */
	if (!r && flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	graph_event_recorded(hEvent);
	asked = state_of(event) & ASKED;
	event_forget(event);
	if (op == OP_cuEventRecord)
		r = rpc_cuEventRecord(&c, w_event, w_stream);
	else
		r = rpc_cuEventRecordWithFlags(&c, w_event, w_stream, flags);
	if (c.sent)
		m = known_mark(&c, w_stream);
	turn = recorded(event, c.sent ? &m : NULL);
	if (shared(event))
		return r ? r : settle(&c, w_event);
	if (c.sent && asked)
		watch(&c, event, turn);
	return r;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return record(hEvent, hStream, 0, OP_cuEventRecord);
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
	return record(hEvent, hStream ? hStream : CU_STREAM_PER_THREAD, 0, OP_cuEventRecord);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return record(hEvent, hStream, flags, OP_cuEventRecordWithFlags);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	return record(hEvent, hStream ? hStream : CU_STREAM_PER_THREAD, flags, OP_cuEventRecordWithFlags);
}

/* What was recorded as of @turn has completed, unless that is over. */
static void learn(const struct rgpu_call *c, struct rgpu_obj *e, uint64_t turn)
{
	struct known_mark m = {0};

	pthread_mutex_lock(&lock);
	if (e->field[STATE] / TURN == turn / TURN) {
		e->field[STATE] |= DONE;
		memcpy(&m, &e->field[MARK], sizeof(m));
	}
	pthread_mutex_unlock(&lock);
	if (m.stamp)
		known_mark_done(c, &m);
}

/* What is known here, whether or not the program has @asked. *turn: which recording that is about. */
static enum known_state look(const struct rgpu_call *call, struct rgpu_obj *e, bool asked, uint64_t *turn)
{
	/* Its own context, which a stream that waits for it may not be of. */
	struct rgpu_call c = {.session = call->session, .context = e->context, .ctx = e->context->handle};
	enum watch_state s = WATCH_DONE;
	struct known_mark m;
	enum known_state k;
	bool done;

	pthread_mutex_lock(&lock);
	done = e->field[STATE] & DONE || e->field[STATE] < TURN; /* never recorded */
	if (!done)
		s = watch_look(&e->field[WATCH]);
	if (asked)
		e->field[STATE] |= ASKED;
	*turn = e->field[STATE];
	memcpy(&m, &e->field[MARK], sizeof(m));
	pthread_mutex_unlock(&lock);
	if (done)
		return KNOWN_DONE;
	k = s == WATCH_DONE ? KNOWN_DONE : s == WATCH_ASK ? KNOWN_ASK : known_mark_look(&c, &m);
	/* A wait may have seen it done before the watch does. */
	if (s == WATCH_QUIET && k != KNOWN_DONE)
		return KNOWN_BUSY;
	if (k == KNOWN_DONE)
		learn(&c, e, *turn);
	return k;
}

CUresult cuEventQuery(CUevent hEvent)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire, turn;
	int r = rgpu_enter(&c, OP_cuEventQuery);

	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, true, &wire, &obj);
	if (!r)
		r = graph_event_check(hEvent);
	if (!r)
		r = graph_unsafe();
	if (r)
		return r;
	if (shared(obj) || ctx_of(c.context)->fault)
		return rpc_cuEventQuery(&c, wire);
	switch (look(&c, obj, true, &turn)) {
	case KNOWN_DONE:
		r = session_take_pending(c.session, c.op);
		return r || !shared_any() ? r : shared_pull(c.session, false);
	case KNOWN_BUSY:
		/* The word that is waited for will not come from a server that is gone. */
		return session_dead(c.session) ? session_fail(c.session, NULL) : (int)CUDA_ERROR_NOT_READY;
	case KNOWN_WATCH:
		atomic_store(&polls, true);
		if (watch(&c, obj, turn))
			return CUDA_ERROR_NOT_READY;
		break;
	case KNOWN_ASK:
		break;
	}
	c.settles = true;
	r = rpc_cuEventQuery(&c, wire);
	if (!r) {
		learn(&c, obj, turn);
	} else if (r == CUDA_ERROR_NOT_READY) {
		atomic_store(&polls, true);
		watch(&c, obj, turn);
	}
	return r;
}

bool event_was_recorded(const struct rgpu_obj *e)
{
	return state_of(e) >= TURN;
}

/* Capture spreads by a wait for a captured event; every other wait is the server's business. */
static int wait_event(CUstream hStream, CUevent hEvent, unsigned flags)
{
	struct rgpu_obj *event, *stream;
	uint64_t w_event, w_stream, turn;
	struct rgpu_call c;
	struct gstream s;
	bool done;
	int r = rgpu_enter(&c, OP_cuStreamWaitEvent);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &w_stream, &stream);
	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, false, &w_event, &event);
	if (!r && flags > CU_EVENT_WAIT_EXTERNAL)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	s = capture_stream(&c, w_stream);
	r = graph_capture_wait(&s, hEvent, flags, &done);
	if (r || done)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* Else it holds nothing. */
	if (shared(event) || look(&c, event, false, &turn) != KNOWN_DONE)
		known_gives(&c, w_stream);
	r = rpc_cuStreamWaitEvent(&c, w_stream, w_event, flags);
	return r || !shared(event) ? r : settle(&c, w_event);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	return wait_event(hStream, hEvent, Flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	return wait_event(hStream ? hStream : CU_STREAM_PER_THREAD, hEvent, Flags);
}

/*
 * A wait behind an upload that is on its way would be told of the event's end only when all of that has arrived. So such an event
 * is watched, from its next recording on, and the news comes by itself.
 */
static bool sync_by_watch(struct rgpu_call *c, struct rgpu_obj *e, int *r)
{
	struct rgpu_lane *l = session_lane(c->session, r);
	uint64_t w, turn;

	if (!l || !lane_sends(l))
		return false;
	pthread_mutex_lock(&lock);
	e->field[STATE] |= ASKED;
	w = e->field[WATCH];
	pthread_mutex_unlock(&lock);
	if (!watch_wait(&e->field[WATCH], w, l, r))
		return false;
	if (!*r && look(c, e, true, &turn) != KNOWN_DONE)
		return false;
	if (!*r)
		*r = session_take_pending(c->session, c->op);
	return true;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire, turn;
	uint32_t text;
	int r = rgpu_enter(&c, OP_EVENT_SYNC);

	if (!r)
		r = rgpu_use(&c, KIND_event, hEvent, true, &wire, &obj);
	if (!r)
		r = graph_event_check(hEvent);
	if (r)
		return r;
	if (!shared(obj) && !ctx_of(c.context)->fault && sync_by_watch(&c, obj, &r))
		return r || !shared_any() ? r : shared_pull(c.session, false);
	turn = state_of(obj);
	c.settles = true;
	r = rpc_EVENT_SYNC(&c, wire, &text);
	if (!r && turn >= TURN && !shared(obj))
		learn(&c, obj, turn);
	if (!r && text)
		print_fetch(c.session);
	return r;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct token t = token_new(TOKEN_EVENT);
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuIpcGetEventHandle);

	if (!r && !pHandle)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_use(&c, KIND_event, event, true, &wire, &obj);
	if (!r && !shared(obj))
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r)
		r = rpc_cuIpcGetEventHandle(&c, wire, t.words);
	if (!r)
		memcpy(pHandle, &t, sizeof(*pHandle));
	return r;
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	struct token t;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuIpcOpenEventHandle);

	if (!r && !phEvent)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && token_take(TOKEN_EVENT, &handle, &t))
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r)
		r = rgpu_mint(&c, KIND_event, &wire, &obj);
	if (r)
		return r;
	obj->field[0] = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	r = rpc_cuIpcOpenEventHandle(&c, wire, t.name, TOKEN_NAME);
	if (r)
		rgpu_retire(obj);
	else
		*phEvent = (CUevent)wire;
	return r;
}
