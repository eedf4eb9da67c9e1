// SPDX-License-Identifier: MIT
/*
 * Waits. A program's own is the driver's own, on the lane's thread: only the driver knows the point in a stream that a wait began
 * at. An event put there would be work, which the legacy stream's order spreads to other streams. So events stand only behind
 * work of a record's own, to tell when that has run.
 */
#include <stdlib.h>
#include <string.h>
#include "server/call_wait.h"

static void mark_put(struct srv_ctx *x, struct srv_mark *m)
{
	pthread_mutex_lock(&x->lock);
	m->next = x->marks;
	x->marks = m;
	pthread_mutex_unlock(&x->lock);
}

static struct srv_mark *mark_new(struct srv_ctx *x, CUstream stream, CUresult *r)
{
	struct srv_mark *m;

	pthread_mutex_lock(&x->lock);
	m = x->marks;
	if (m)
		x->marks = m->next;
	pthread_mutex_unlock(&x->lock);
	if (!m) {
		m = calloc(1, sizeof(*m));
		*r = m ? drv_cuda.cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING) : CUDA_ERROR_OUT_OF_MEMORY;
		if (*r) {
			free(m);
			return NULL;
		}
	}
	*r = drv_cuda.cuEventRecord(m->event, stream);
	if (*r) {
		mark_put(x, m);
		return NULL;
	}
	return m;
}

/* Points in several streams that a call waits for. */
struct waits {
	struct srv_ctx *x;
	unsigned n;
	int32_t failed; /* the call's status already: that is its answer, but its buffers may be in use */
	void (*done)(struct srv_call *c, int32_t status);
	void *arg;
	struct srv_mark *mark[];
};

void *wait_arg(struct srv_call *c)
{
	return ((struct waits *)c->ready_arg)->arg;
}

struct srv_ctx *wait_context(struct srv_call *c)
{
	return ((struct waits *)c->ready_arg)->x;
}

static int32_t finish(struct srv_call *c, struct waits *w, int32_t status)
{
	if (w->failed)
		status = w->failed;
	if (w->done)
		w->done(c, status);
	for (unsigned i = 0; i < w->n; i++)
		mark_put(w->x, w->mark[i]);
	free(w);
	return status;
}

static int32_t ask(struct waits *w)
{
	CUresult r = ctx_enter(w->x);

	while (!r && w->n) {
		r = drv_cuda.cuEventQuery(w->mark[w->n - 1]->event);
		if (r == CUDA_ERROR_NOT_READY)
			return SRV_PENDING;
		if (!r)
			mark_put(w->x, w->mark[--w->n]);
	}
	return r;
}

static int32_t wait_ready(struct srv_call *c)
{
	struct waits *w = c->ready_arg;
	int32_t status;

	/* Being destroyed: by and by it is dead, and then all of its work has ended. */
	if (pthread_rwlock_tryrdlock(&w->x->life))
		return SRV_PENDING;
	if (w->x->dead)
		status = c->rec.flags & RGPU_REC_FENCE ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
	else
		status = ask(w);
	pthread_rwlock_unlock(&w->x->life);
	return status == SRV_PENDING ? SRV_PENDING : finish(c, w, status);
}

static void answer(struct srv_call *c, struct waits *w)
{
	int32_t status;

	c->ready_arg = w;
	status = wait_ready(c);
	if (status == SRV_PENDING)
		c->ready = wait_ready;
	else
		c->status = status;
}

void wait_for_stream(struct srv_call *c, struct srv_ctx *x, CUstream stream, void (*done)(struct srv_call *, int32_t), void *arg)
{
	struct waits *w = calloc(1, sizeof(*w) + sizeof(*w->mark));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (w) {
		w->x = x;
		w->failed = c->status;
		w->done = done;
		w->arg = arg;
		w->mark[0] = mark_new(x, stream, &r);
	}
	/* The driver may still use the call's buffers, and nothing would say when it is done with them: wait for that here. */
	if (r)
		drv_cuda.cuStreamSynchronize(stream);
	if (!w) {
		srv_fail(c, r);
		return;
	}
	w->n = !r;
	if (r) {
		c->ready_arg = w;
		c->status = finish(c, w, r);
		return;
	}
	answer(c, w);
}

/* Every wait tells the client whether there is device printf text to fetch. Its reply's layout is always this one. */
static void say_text(struct srv_call *c)
{
	struct rep_STREAM_SYNC r = {.text = session_has_text(c->session)};

	srv_answer(c, &r, sizeof(r));
}

_Static_assert(sizeof(struct rep_STREAM_SYNC) == sizeof(struct rep_CTX_SYNC), "one answer for all waits");
_Static_assert(sizeof(struct rep_STREAM_SYNC) == sizeof(struct rep_CTX_WAIT), "one answer for all waits");
_Static_assert(sizeof(struct rep_STREAM_SYNC) == sizeof(struct rep_EVENT_SYNC), "one answer for all waits");

void srv_STREAM_SYNC(struct srv_call *c)
{
	struct rec_STREAM_SYNC a;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	srv_blocks(c, true);
	srv_fail(c, drv_cuda.cuStreamSynchronize(stream));
	srv_blocks(c, false);
	say_text(c);
}

void srv_EVENT_SYNC(struct srv_call *c)
{
	struct rec_EVENT_SYNC a;
	void *event;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_event, a.hEvent, &event) || !srv_enter(c, a.ctx))
		return;
	srv_blocks(c, true);
	srv_fail(c, drv_cuda.cuEventSynchronize(event));
	srv_blocks(c, false);
	say_text(c);
}

static void block(struct srv_call *c)
{
	srv_blocks(c, true);
	srv_fail(c, drv_cuda.cuCtxSynchronize());
	srv_blocks(c, false);
	say_text(c);
}

void srv_CTX_WAIT(struct srv_call *c)
{
	struct rec_CTX_WAIT a;

	if (srv_body(c, &a, sizeof(a)) && srv_enter(c, a.ctx))
		block(c);
}

/* Asked by its handle each time, for it may be destroyed meanwhile, which ends the wait. */
int32_t wait_ask_event(struct srv_call *c, uint64_t event)
{
	struct srv_slot e, slot;
	CUresult r = CUDA_SUCCESS;
	struct srv_ctx *x;

	pthread_mutex_lock(&c->session->events_lock);
	if (session_find(c->session, KIND_event, event, &e) && session_find(c->session, KIND_context, e.ctx, &slot)) {
		x = slot.real;
		if (pthread_rwlock_tryrdlock(&x->life)) {
			pthread_mutex_unlock(&c->session->events_lock);
			return SRV_PENDING;
		}
		if (!x->dead)
			r = ctx_enter(x);
		if (!x->dead && !r)
			r = drv_cuda.cuEventQuery(e.real);
		pthread_rwlock_unlock(&x->life);
	}
	pthread_mutex_unlock(&c->session->events_lock);
	return r == CUDA_ERROR_NOT_READY ? SRV_PENDING : (int32_t)r;
}

/*
 * The client's question when a context is idle, whose lane has other things to do meanwhile. Each stream has to be seen idle
 * once; the legacy one's work includes that of the blocking ones and of the threads' own.
 */
struct idle {
	struct srv_ctx *x;
	bool legacy;		/* was seen */
	unsigned seen, changes; /* streams of the list, while that is the same */
};

/* With the list's lock. */
static CUresult ask_streams(struct idle *w)
{
	struct srv_ctx *x = w->x;
	CUresult r = CUDA_SUCCESS;

	if (!w->legacy)
		r = drv_cuda.cuStreamQuery(NULL);
	w->legacy |= !r;
	if (w->changes != x->changes)
		w->seen = 0;
	w->changes = x->changes;
	while (!r && w->seen < x->nstreams) {
		r = drv_cuda.cuStreamQuery(x->stream[w->seen]);
		w->seen += !r;
	}
	return r;
}

static CUresult ask_context(struct idle *w)
{
	CUresult r = ctx_enter(w->x);

	if (r)
		return r;
	pthread_mutex_lock(&w->x->streams_lock);
	r = w->x->capturing ? CUDA_ERROR_NOT_READY : ask_streams(w);
	pthread_mutex_unlock(&w->x->streams_lock);
	return r;
}

static int32_t idle_ready(struct srv_call *c)
{
	struct idle *w = c->ready_arg;
	CUresult r;

	if (pthread_rwlock_tryrdlock(&w->x->life))
		return SRV_PENDING;
	r = w->x->dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED : ask_context(w);
	pthread_rwlock_unlock(&w->x->life);
	if (r == CUDA_ERROR_NOT_READY)
		return SRV_PENDING;
	free(w);
	say_text(c);
	return (int32_t)r;
}

void srv_CTX_SYNC(struct srv_call *c)
{
	struct rec_CTX_SYNC a;
	struct srv_ctx *x;
	struct idle *w;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx))
		return;
	w = x->unlisted ? NULL : calloc(1, sizeof(*w));
	if (!w) {
		block(c);
		return;
	}
	w->x = x;
	c->ready_arg = w;
	c->out_len = sizeof(struct rep_CTX_SYNC);
	c->status = idle_ready(c);
	if (c->status == SRV_PENDING)
		c->ready = idle_ready;
}
