// SPDX-License-Identifier: MIT
/* Stream capture: which streams capture into which graph, how that spreads by events, and what makes a capture void. */
#include "lib/graph/graph.h"

#include <stdlib.h>
#include <string.h>
#include "lib/graph/capture.h"

#define NO_STREAM UINT64_MAX

atomic_uint graph_captures, graph_captured_events;

/* All under graph_lock. */
static struct capture *captures;
static struct captured_event *events;
static cuuint64_t next_id = 1;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static _Thread_local char me; /* its address names the thread */

/* ---- Sets of nodes ---- */

bool gset_add(struct gset *s, struct gnode *n, const CUgraphEdgeData *data)
{
	struct gedge *p;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->edge[i].node == n)
			return true;
	p = realloc(s->edge, (s->n + 1) * sizeof(*p));
	if (!p)
		return false;
	s->edge = p;
	s->edge[s->n++] = (struct gedge){n, data ? *data : (CUgraphEdgeData){0}};
	return true;
}

static bool gset_join(struct gset *to, const struct gset *from)
{
	for (unsigned int i = 0; i < from->n; i++)
		if (!gset_add(to, from->edge[i].node, &from->edge[i].data))
			return false;
	return true;
}

void gset_clear(struct gset *s)
{
	free(s->edge);
	*s = (struct gset){0};
}

/* ---- Looking up ---- */

struct captured_stream *capture_find(uint64_t key, struct capture **capture)
{
	for (struct capture *c = captures; c; c = c->next)
		for (struct captured_stream *s = c->streams; s; s = s->next)
			if (s->key == key) {
				*capture = c;
				return s;
			}
	return NULL;
}

static struct captured_event *event_find(CUevent e)
{
	struct captured_event *ev = events;

	while (ev && ev->event != e)
		ev = ev->next;
	return ev;
}

static struct capture *capture_of_id(cuuint64_t id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

void capture_void(struct capture *c)
{
	c->invalid = true;
}

/* The legacy stream waits for all blocking streams of its context, so also for one that captures; work there ends the capture. */
static CUresult implicit(CUcontext ctx, bool work)
{
	CUresult r = CUDA_SUCCESS;

	for (struct capture *c = captures; c; c = c->next)
		for (struct captured_stream *s = c->streams; s; s = s->next)
			if (s->ctx == ctx && s->blocking) {
				if (work)
					capture_void(c);
				r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
			}
	return r;
}

CUresult graph_legacy_asked(const struct gstream *s)
{
	CUresult r;

	pthread_mutex_lock(&graph_lock);
	r = implicit(s->ctx, false);
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult graph_capturing(const struct gstream *s, bool *capturing)
{
	struct capture *c;
	CUresult r = CUDA_SUCCESS;

	*capturing = false;
	if (!atomic_load_explicit(&graph_captures, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	if (s->legacy) {
		r = implicit(s->ctx, true);
	} else if (capture_find(s->key, &c)) {
		*capturing = true;
		if (c->invalid)
			r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult graph_capture_refuse(const struct gstream *s)
{
	struct capture *c;

	pthread_mutex_lock(&graph_lock);
	if (capture_find(s->key, &c))
		capture_void(c);
	pthread_mutex_unlock(&graph_lock);
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---- What may not be called ---- */

/* Whether @c, by its mode and the thread's, forbids unsafe calls on this thread. */
static bool forbids(const struct capture *c)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->invalid)
		return false;
	if (c->thread == &me)
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult graph_unsafe(void)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load_explicit(&graph_captures, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	for (struct capture *c = captures; c; c = c->next)
		if (forbids(c)) {
			capture_void(c);
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult graph_unsafe_ctx(CUcontext ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!atomic_load_explicit(&graph_captures, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	for (struct capture *c = captures; c; c = c->next)
		for (struct captured_stream *s = c->streams; s; s = s->next)
			if (s->ctx == ctx) {
				capture_void(c);
				r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	GTRY(gb_enter());
	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

/* ---- Nodes ---- */

static CUresult add(struct captured_stream *st, struct capture *c, struct gparams *p)
{
	struct gset next = {0};
	struct gnode *n;

	GTRY(node_new(c->graph, p, &n));
	p->type = CU_GRAPH_NODE_TYPE_EMPTY; /* it is the node's now */
	for (unsigned int i = 0; i < st->deps.n; i++)
		GTRY(node_link(st->deps.edge[i].node, n, &st->deps.edge[i].data));
	if (!gset_add(&next, n, NULL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	gset_clear(&st->deps);
	st->deps = next;
	return CUDA_SUCCESS;
}

CUresult graph_capture(const struct gstream *s, struct gparams *p)
{
	struct captured_stream *st;
	struct capture *c;
	CUresult r;

	pthread_mutex_lock(&graph_lock);
	st = capture_find(s->key, &c);
	if (!st)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (c->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		r = add(st, c, p);
	gparams_free(p);
	graph_unlock();
	return r;
}

/* ---- Events ---- */

static void event_free(CUevent e)
{
	for (struct captured_event **at = &events; *at; at = &(*at)->next)
		if ((*at)->event == e) {
			struct captured_event *ev = *at;

			*at = ev->next;
			gset_clear(&ev->deps);
			free(ev);
			atomic_fetch_sub(&graph_captured_events, 1);
			return;
		}
}

void graph_event_recorded(CUevent e)
{
	graph_event_gone(e);
}

void graph_event_gone(CUevent e)
{
	if (!atomic_load_explicit(&graph_captured_events, memory_order_acquire))
		return;
	pthread_mutex_lock(&graph_lock);
	event_free(e);
	pthread_mutex_unlock(&graph_lock);
}

static CUresult record(const struct captured_stream *st, struct capture *c, CUevent e)
{
	struct captured_event *ev = calloc(1, sizeof(*ev));

	if (!ev || !gset_join(&ev->deps, &st->deps)) {
		free(ev);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event_free(e);
	ev->event = e;
	ev->capture = c->id;
	ev->next = events;
	events = ev;
	atomic_fetch_add(&graph_captured_events, 1);
	return CUDA_SUCCESS;
}

CUresult graph_capture_record(const struct gstream *s, CUevent e, unsigned int flags)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = e};
	struct captured_stream *st;
	struct capture *c;
	CUresult r;

	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return graph_capture(s, &p);
	pthread_mutex_lock(&graph_lock);
	st = capture_find(s->key, &c);
	r = !st ? CUDA_ERROR_ILLEGAL_STATE : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : record(st, c, e);
	pthread_mutex_unlock(&graph_lock);
	return r;
}

static CUresult join(const struct gstream *s, struct captured_stream *st, struct capture *mine, struct captured_event *ev)
{
	struct capture *c = capture_of_id(ev->capture);

	/* Its capture has ended: there is nothing left to wait for. */
	if (!c)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (c->invalid || (mine && mine->invalid))
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (mine && mine != c) {
		capture_void(mine);
		capture_void(c);
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (s->legacy) {
		capture_void(c);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (!st) {
		st = calloc(1, sizeof(*st));
		if (!st)
			return CUDA_ERROR_OUT_OF_MEMORY;
		st->key = s->key;
		st->ctx = s->ctx;
		st->blocking = s->blocking;
		/* The origin stays the first. */
		st->next = c->streams->next;
		c->streams->next = st;
	}
	return gset_join(&st->deps, &ev->deps) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult graph_capture_wait(const struct gstream *s, CUevent e, unsigned int flags, bool *done)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = e};
	struct captured_stream *st;
	struct captured_event *ev;
	struct capture *c = NULL;
	bool recorded = false;
	CUresult r = CUDA_SUCCESS;

	*done = false;
	if (!atomic_load_explicit(&graph_captures, memory_order_acquire) &&
	    !atomic_load_explicit(&graph_captured_events, memory_order_acquire))
		return CUDA_SUCCESS;
	GTRY(gb_event(e, &recorded));
	pthread_mutex_lock(&graph_lock);
	st = capture_find(s->key, &c);
	ev = event_find(e);
	*done = st || ev;
	if (st && flags & CU_EVENT_WAIT_EXTERNAL) {
		r = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : add(st, c, &p);
	} else if (ev) {
		r = join(s, st, c, ev);
	} else if (st && c->invalid) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (st && recorded) {
		/* Work outside of the capture. */
		capture_void(c);
		r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	} else if (!st && s->legacy) {
		r = implicit(s->ctx, true);
		*done = r != CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult graph_event_check(CUevent e)
{
	struct captured_event *ev;
	struct capture *c;

	if (!atomic_load_explicit(&graph_captured_events, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	ev = event_find(e);
	c = ev ? capture_of_id(ev->capture) : NULL;
	if (c)
		capture_void(c);
	pthread_mutex_unlock(&graph_lock);
	return ev ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* ---- Beginning and ending ---- */

CUresult capture_begin(const struct gstream *s, struct graph *g, bool own, CUstreamCaptureMode mode, struct captured_stream **out)
{
	struct captured_stream *st = calloc(1, sizeof(*st));
	struct capture *c = calloc(1, sizeof(*c));

	if (!st || !c) {
		free(st);
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*st = (struct captured_stream){.key = s->key, .ctx = s->ctx, .blocking = s->blocking};
	*c = (struct capture){
		.id = next_id++, .mode = mode, .thread = &me, .graph = g, .own = own, .streams = st, .next = captures};
	captures = c;
	atomic_fetch_add(&graph_captures, 1);
	*out = st;
	return CUDA_SUCCESS;
}

bool capture_is_mine(const struct capture *c)
{
	return c->thread == &me;
}

/* Marks the nodes of @s, and all that they come after, with 1. */
static bool mark_back(struct graph *g, const struct gset *s)
{
	struct gnode **todo = calloc(g->n + 1, sizeof(*todo));
	unsigned int n = 0;

	if (!todo)
		return false;
	for (unsigned int i = 0; i < g->n; i++)
		g->node[i]->mark = 0;
	for (unsigned int i = 0; i < s->n; i++) {
		s->edge[i].node->mark = 1;
		todo[n++] = s->edge[i].node;
	}
	while (n) {
		struct gnode *at = todo[--n];

		for (unsigned int i = 0; i < at->nin; i++)
			if (!at->in[i].node->mark) {
				at->in[i].node->mark = 1;
				todo[n++] = at->in[i].node;
			}
	}
	free(todo);
	return true;
}

/* What every stream did last comes before where the origin is. */
bool capture_joined(struct capture *c)
{
	if (!mark_back(c->graph, &c->streams->deps))
		return false;
	for (struct captured_stream *s = c->streams->next; s; s = s->next)
		for (unsigned int i = 0; i < s->deps.n; i++)
			if (!s->deps.edge[i].node->mark)
				return false;
	return true;
}

void capture_end(struct capture *c)
{
	struct capture **at = &captures;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	/* Events keep no nodes of a graph that may go; that they were captured is remembered. */
	for (struct captured_event *ev = events; ev; ev = ev->next)
		if (ev->capture == c->id)
			gset_clear(&ev->deps);
	while (c->streams) {
		struct captured_stream *s = c->streams;

		c->streams = s->next;
		gset_clear(&s->deps);
		free(s->shown);
		free(s->shown_data);
		free(s);
	}
	free(c);
	atomic_fetch_sub(&graph_captures, 1);
}

/* A stream that captures goes: so does what it began. Where it only took part, what it did last must still be joined. */
void graph_stream_gone(uint64_t key)
{
	struct captured_stream *s;
	struct capture *c;

	if (!atomic_load_explicit(&graph_captures, memory_order_acquire))
		return;
	pthread_mutex_lock(&graph_lock);
	s = capture_find(key, &c);
	if (s) {
		if (c->streams == s) {
			if (c->own)
				graph_free(c->graph);
			capture_end(c);
		} else {
			s->key = NO_STREAM;
		}
	}
	graph_unlock();
}

bool graph_is_captured_to(const struct graph *g)
{
	for (struct capture *c = captures; c; c = c->next)
		if (c->graph == g)
			return true;
	return false;
}
