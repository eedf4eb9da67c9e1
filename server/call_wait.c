// SPDX-License-Identifier: MIT
/* Waits, none of which holds a lane: a mark in the stream, or a thread of its own where the driver only knows how to block. */
#include <stdlib.h>
#include <string.h>
#include "server/call_wait.h"

#define STREAMS_ASKED 64 /* a context with more of them is waited for by a thread */

struct srv_mark *mark_new(struct srv_ctx *x, CUstream stream, CUresult *r)
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

void mark_put(struct srv_ctx *x, struct srv_mark *m)
{
	pthread_mutex_lock(&x->lock);
	m->next = x->marks;
	x->marks = m;
	pthread_mutex_unlock(&x->lock);
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

int32_t wait_ready(struct srv_call *c)
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
static void say_text(struct srv_call *c, int32_t status)
{
	struct rep_STREAM_SYNC r = {.text = session_has_text(c->session)};

	(void)status;
	memcpy(c->out, &r, sizeof(r));
}

_Static_assert(sizeof(struct rep_STREAM_SYNC) == sizeof(struct rep_CTX_SYNC), "one answer for all waits");
_Static_assert(sizeof(struct rep_STREAM_SYNC) == sizeof(struct rep_EVENT_SYNC), "one answer for all waits");

static void begin_answer(struct srv_call *c)
{
	c->out_len = sizeof(struct rep_STREAM_SYNC);
	memset(c->out, 0, c->out_len);
}

void srv_STREAM_SYNC(struct srv_call *c)
{
	struct rec_STREAM_SYNC a;
	struct srv_ctx *x;
	void *stream;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_enter(c, a.ctx))
		return;
	begin_answer(c);
	r = drv_cuda.cuStreamQuery(stream);
	if (r != CUDA_ERROR_NOT_READY) {
		srv_fail(c, r);
		say_text(c, r);
		return;
	}
	wait_for_stream(c, x, stream, say_text, NULL);
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

static int32_t event_ready(struct srv_call *c)
{
	struct rec_EVENT_SYNC a;
	int32_t status;

	memcpy(&a, c->body, sizeof(a));
	status = wait_ask_event(c, a.hEvent);
	if (status != SRV_PENDING)
		say_text(c, status);
	return status;
}

void srv_EVENT_SYNC(struct srv_call *c)
{
	struct rec_EVENT_SYNC a;
	int32_t status;
	void *event;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_event, a.hEvent, &event) || !srv_enter(c, a.ctx))
		return;
	begin_answer(c);
	status = event_ready(c);
	if (status == SRV_PENDING)
		c->ready = event_ready;
	else
		srv_fail(c, status);
}

/* A thread that blocks in the driver. */
struct blocked {
	struct srv_ctx *x;
	atomic_bool done;
	CUresult status;
};

static void *block(void *arg)
{
	struct blocked *b = arg;

	/* It is not destroyed meanwhile: that would wait for the same work. */
	pthread_rwlock_rdlock(&b->x->life);
	b->status = b->x->dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED : ctx_enter(b->x);
	if (!b->status)
		b->status = drv_cuda.cuCtxSynchronize();
	pthread_rwlock_unlock(&b->x->life);
	atomic_store(&b->done, true);
	return NULL;
}

static int32_t blocked_ready(struct srv_call *c)
{
	struct blocked *b = c->ready_arg;
	int32_t status;

	if (!atomic_load(&b->done))
		return SRV_PENDING;
	status = b->status;
	free(b);
	say_text(c, status);
	return status;
}

static void sync_by_thread(struct srv_call *c, struct srv_ctx *x)
{
	struct blocked *b = calloc(1, sizeof(*b));
	pthread_attr_t attr;
	pthread_t t;
	int err = 1;

	if (b) {
		b->x = x;
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		err = pthread_create(&t, &attr, block, b);
		pthread_attr_destroy(&attr);
	}
	if (err) {
		free(b);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	c->ready_arg = b;
	c->ready = blocked_ready;
}

/* Marks each of the streams that is not idle. streams_lock is held: another lane may be about to destroy one. */
static void sync_by_marks(struct srv_call *c, struct srv_ctx *x, const CUstream *stream, unsigned n)
{
	struct waits *w = calloc(1, sizeof(*w) + n * sizeof(*w->mark));
	CUresult r = w ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (w) {
		w->x = x;
		w->done = say_text;
	}
	for (unsigned i = 0; i < n && !r; i++) {
		r = drv_cuda.cuStreamQuery(stream[i]);
		if (r != CUDA_ERROR_NOT_READY)
			continue;
		w->mark[w->n] = mark_new(x, stream[i], &r);
		w->n += !r;
	}
	if (r) {
		for (unsigned i = 0; w && i < w->n; i++)
			mark_put(x, w->mark[i]);
		free(w);
		srv_fail(c, r);
		say_text(c, r);
		return;
	}
	answer(c, w);
}

void srv_CTX_SYNC(struct srv_call *c)
{
	CUstream stream[STREAMS_ASKED + 1];
	struct rec_CTX_SYNC a;
	struct srv_ctx *x;
	unsigned n;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx))
		return;
	begin_answer(c);
	pthread_mutex_lock(&x->streams_lock);
	n = x->unlisted ? STREAMS_ASKED + 1 : x->nstreams;
	if (n <= STREAMS_ASKED && n)
		memcpy(stream, x->stream, n * sizeof(*stream));
	if (n <= STREAMS_ASKED && !atomic_load(&c->session->per_thread)) {
		stream[n++] = NULL; /* the legacy stream */
		sync_by_marks(c, x, stream, n);
		pthread_mutex_unlock(&x->streams_lock);
		return;
	}
	pthread_mutex_unlock(&x->streams_lock);
	sync_by_thread(c, x);
}
