// SPDX-License-Identifier: MIT
/* Events: a record is a place in a stream; an event is its latest record. */
#include "softgpu/graph.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "softgpu/sharedevent.h"

/* One cuEventRecord: queries, waits and times keep to it though the event may be recorded again. */
struct record {
	atomic_uint refs;
	struct stream *stream; /* a reference */
	uint64_t seq;
	atomic_ullong ns; /* when it was reached, 0 before */
};

struct event {
	struct obj obj;
	struct ctx *ctx; /* a reference */
	unsigned int flags;
	pthread_mutex_t lock;	     /* last */
	struct record *last;	     /* a reference, or NULL when never recorded */
	struct shared_event *shared; /* an interprocess event's state, instead of last */
};

struct record_op {
	struct op op;
	struct record *record; /* a reference */
};

static void record_put(struct record *rec)
{
	if (rec && atomic_fetch_sub(&rec->refs, 1) == 1) {
		obj_put(&rec->stream->obj);
		free(rec);
	}
}

static void event_release(struct obj *o)
{
	struct event *e = container_of(o, struct event, obj);

	record_put(e->last);
	shared_event_free(e->shared);
	pthread_mutex_destroy(&e->lock);
	obj_put(&e->ctx->obj);
	free(e);
}

static struct record *last_record(struct event *e)
{
	struct record *rec;

	pthread_mutex_lock(&e->lock);
	rec = e->last;
	if (rec)
		atomic_fetch_add(&rec->refs, 1);
	pthread_mutex_unlock(&e->lock);
	return rec;
}

static CUresult event_resolve(CUevent handle, struct event **out)
{
	*out = NULL;
	TRY(api_enter());
	*out = obj_get(handle, OBJ_EVENT);
	if (!*out)
		return CUDA_ERROR_INVALID_HANDLE;
	return atomic_load(&(*out)->ctx->error);
}

/* Takes @shared, also on failure. */
static CUresult event_new(struct ctx *c, unsigned int flags, struct shared_event *shared, CUevent *event)
{
	struct event *e = calloc(1, sizeof(*e));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!e) {
		shared_event_free(shared);
		return r;
	}
	obj_init(&e->obj, OBJ_EVENT, c, event_release);
	obj_ref(&c->obj);
	e->ctx = c;
	e->flags = flags;
	e->shared = shared;
	pthread_mutex_init(&e->lock, NULL);
	if (obj_publish(&e->obj)) {
		*event = (CUevent)e->obj.handle;
		r = CUDA_SUCCESS;
	}
	obj_put(&e->obj);
	return r;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	struct shared_event *shared = NULL;
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!event || flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS) {
		if (!(flags & CU_EVENT_DISABLE_TIMING))
			return CUDA_ERROR_INVALID_VALUE;
		shared = shared_event_new(c->dev->index);
		if (!shared)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return event_new(c, flags, shared, event);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	AUTO_PUT struct event *e = NULL;

	TRY(event_resolve(event, &e));
	if (!handle || !e->shared)
		return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	shared_event_handle(e->shared, handle);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	AUTO_PUT struct ctx *c = NULL;
	struct shared_event *shared;
	int device;

	TRY(ctx_enter(&c));
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	if (shared_event_is_ours(&handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	shared = shared_event_open(&handle, &device);
	if (!shared || device != c->dev->index) {
		shared_event_free(shared);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	return event_new(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, shared, event);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	AUTO_PUT struct event *e = NULL;

	TRY(api_enter());
	e = obj_get(event, OBJ_EVENT);
	if (!e || !obj_retire(&e->obj))
		return CUDA_ERROR_INVALID_HANDLE;
	graph_event_gone(event);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

static CUresult record_run(struct op *op, struct stream *s)
{
	struct record_op *r = container_of(op, struct record_op, op);
	struct timespec t;

	(void)s;
	clock_gettime(CLOCK_MONOTONIC, &t);
	atomic_store(&r->record->ns, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
	return CUDA_SUCCESS;
}

static void record_drop(struct op *op)
{
	struct record_op *r = container_of(op, struct record_op, op);

	record_put(r->record);
	free(r);
}

/* An operation on an interprocess event: its recording @n is reached, or waited for. */
struct shared_op {
	struct op op;
	struct event *event; /* a reference */
	uint64_t n;
};

static CUresult shared_record_run(struct op *op, struct stream *s)
{
	struct shared_op *o = container_of(op, struct shared_op, op);

	(void)s;
	shared_event_end(o->event->shared, o->n);
	return CUDA_SUCCESS;
}

/* Run or not. */
static void shared_record_drop(struct op *op)
{
	struct shared_op *o = container_of(op, struct shared_op, op);

	shared_event_end(o->event->shared, o->n);
	obj_put(&o->event->obj);
	free(o);
}

static void shared_wait_drop(struct op *op)
{
	struct shared_op *o = container_of(op, struct shared_op, op);

	obj_put(&o->event->obj);
	free(o);
}

static bool shared_ready(struct op *op)
{
	struct shared_op *o = container_of(op, struct shared_op, op);

	return shared_event_reached(o->event->shared, o->n);
}

static CUresult wait_run(struct op *op, struct stream *s)
{
	(void)op;
	(void)s;
	return CUDA_SUCCESS;
}

static struct shared_op *shared_op_new(struct event *e, CUresult (*run)(struct op *, struct stream *), void (*drop)(struct op *))
{
	struct shared_op *o = op_new(sizeof(*o), run, drop);

	if (!o)
		return NULL;
	o->event = e;
	obj_ref(&e->obj);
	o->op.quick = true;
	return o;
}

static CUresult shared_record(struct event *e, struct stream *s, uint64_t *seq)
{
	struct shared_op *o = shared_op_new(e, shared_record_run, shared_record_drop);

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->n = shared_event_begin(e->shared);
	o->op.always = true;
	return stream_submit(s, &o->op, seq);
}

/* No stream here can wake one that waits for another process: it asks now and then. */
static CUresult shared_wait(struct event *e, struct stream *s)
{
	uint64_t n = shared_event_last(e->shared);
	struct shared_op *o;

	if (shared_event_reached(e->shared, n))
		return CUDA_SUCCESS;
	if (!sched_can_poll())
		return CUDA_ERROR_OPERATING_SYSTEM;
	o = shared_op_new(e, wait_run, shared_wait_drop);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->n = n;
	o->op.ready = shared_ready;
	return stream_submit(s, &o->op, NULL);
}

CUresult event_record(CUevent handle, struct stream *s, uint64_t *seq)
{
	AUTO_PUT struct event *e = NULL;
	struct record *rec, *old;
	struct record_op *op;
	CUresult r;

	TRY(event_resolve(handle, &e));
	if (e->ctx != s->ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->shared)
		return shared_record(e, s, seq);
	rec = calloc(1, sizeof(*rec));
	op = op_new(sizeof(*op), record_run, record_drop);
	if (!rec || !op) {
		free(rec);
		free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_init(&rec->refs, 2); /* the operation's, and the event's or ours */
	rec->stream = s;
	obj_ref(&s->obj);
	op->record = rec;
	op->op.always = op->op.quick = true;
	/* Recording and becoming the latest are one step for other threads that record it too. */
	pthread_mutex_lock(&e->lock);
	r = stream_submit(s, &op->op, &rec->seq);
	if (r == CUDA_SUCCESS) {
		old = e->last;
		e->last = rec;
		if (seq)
			*seq = rec->seq;
	} else {
		old = rec;
	}
	pthread_mutex_unlock(&e->lock);
	record_put(old);
	return r;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	AUTO_PUT struct stream *s = NULL;
	bool capturing;

	TRY(stream_resolve(stream, &s));
	/* External records mean something in a capture only. */
	if (flags & ~CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_capturing(s, &capturing));
	if (capturing) {
		AUTO_PUT struct event *e = NULL;
		struct gstream gs = graph_stream(s);

		TRY(event_resolve(event, &e));
		return e->ctx == s->ctx ? graph_capture_record(&gs, event, flags) : CUDA_ERROR_INVALID_HANDLE;
	}
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(event_record(event, s, NULL));
	graph_event_recorded(event);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event)
{
	AUTO_PUT struct event *e = NULL;
	struct record *rec;
	bool done;

	TRY(event_resolve(event, &e));
	TRY(graph_event_check(event));
	TRY(graph_unsafe());
	if (e->shared) {
		done = shared_event_reached(e->shared, shared_event_last(e->shared));
	} else {
		rec = last_record(e);
		done = !rec || stream_reached(rec->stream, rec->seq);
		record_put(rec);
	}
	if (!done)
		return CUDA_ERROR_NOT_READY;
	return atomic_load(&e->ctx->error);
}

CUresult cuEventSynchronize(CUevent event)
{
	AUTO_PUT struct event *e = NULL;
	struct record *rec;

	TRY(event_resolve(event, &e));
	TRY(graph_event_check(event));
	if (e->shared) {
		uint64_t n = shared_event_last(e->shared);

		/* Its own context's end ends it, too; the other process may never record what it began. */
		while (!shared_event_reached(e->shared, n) && !atomic_load(&e->ctx->error))
			usleep(30);
		return atomic_load(&e->ctx->error);
	}
	rec = last_record(e);
	if (rec)
		stream_wait_seq(rec->stream, rec->seq);
	record_put(rec);
	return atomic_load(&e->ctx->error);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	AUTO_PUT struct event *a = NULL;
	AUTO_PUT struct event *b = NULL;
	struct record *ra = NULL, *rb = NULL;
	CUresult r = CUDA_SUCCESS;

	TRY(event_resolve(start, &a));
	TRY(event_resolve(end, &b));
	TRY(graph_event_check(start));
	TRY(graph_event_check(end));
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || a->ctx->dev != b->ctx->dev)
		return CUDA_ERROR_INVALID_HANDLE;
	ra = last_record(a);
	rb = last_record(b);
	if (!ra || !rb) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else {
		uint64_t ta = atomic_load(&ra->ns), tb = atomic_load(&rb->ns);

		if (ta && tb)
			*ms = (float)((double)(int64_t)(tb - ta) / 1e6);
		else
			r = CUDA_ERROR_NOT_READY;
	}
	record_put(ra);
	record_put(rb);
	return r;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	AUTO_PUT struct stream *s = NULL;
	AUTO_PUT struct event *e = NULL;
	struct gstream gs;
	struct record *rec;
	struct op *op;
	bool good, done;

	TRY(stream_resolve(stream, &s));
	if (flags & ~CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	/* An error of the event's own context does not spread to this one. */
	e = obj_get(event, OBJ_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	gs = graph_stream(s);
	TRY(graph_capture_wait(&gs, event, flags, &done));
	if (done)
		return CUDA_SUCCESS;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (e->shared)
		return shared_wait(e, s);
	rec = last_record(e);
	if (!rec)
		return CUDA_SUCCESS;
	if (rec->stream == s) {
		record_put(rec);
		return CUDA_SUCCESS;
	}
	op = op_new(sizeof(*op), wait_run, op_free);
	good = op && op_depends(op, rec->stream, rec->seq);
	record_put(rec);
	if (!good) {
		free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	op->quick = true;
	return stream_submit(s, op, NULL);
}

/* ---- In graphs ---- */

bool event_recorded(CUevent event, CUresult *r)
{
	AUTO_PUT struct event *e = NULL;
	bool recorded = false;

	*r = event_resolve(event, &e);
	if (*r == CUDA_SUCCESS) {
		pthread_mutex_lock(&e->lock);
		recorded = e->shared ? shared_event_last(e->shared) : e->last != NULL;
		pthread_mutex_unlock(&e->lock);
	}
	return recorded;
}

CUresult event_depend(struct op *op, struct stream *on, CUevent event)
{
	AUTO_PUT struct event *e = NULL;
	struct record *rec;
	bool good;

	e = obj_get(event, OBJ_EVENT);
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->shared)
		return shared_wait(e, on);
	rec = last_record(e);
	good = !rec || op_depends(op, rec->stream, rec->seq);
	record_put(rec);
	return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
