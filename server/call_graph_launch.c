// SPDX-License-Identifier: MIT
/* Launches of graphs, with the host memory that their copies use: bytes go in before, and out behind, in stream order. */
#include <stdlib.h>
#include <string.h>
#include "server/call_graph.h"
#include "server/call_wait.h"

#define RANGES_MAX 64u

/* ---- Launching ---- */

/* Bytes that are moved when the stream comes there, by a thread of the driver. */
struct moves {
	unsigned n;
	struct {
		uint8_t *dst;
		const uint8_t *src;
		uint64_t bytes;
	} move[];
};

static struct moves *moves_new(unsigned n)
{
	struct moves *m = malloc(sizeof(*m) + n * sizeof(*m->move));

	if (m)
		m->n = 0;
	return m;
}

static void add_move(struct moves *m, uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
	m->move[m->n].dst = dst;
	m->move[m->n].src = src;
	m->move[m->n++].bytes = bytes;
}

static void CUDA_CB make_moves(void *arg)
{
	const struct moves *m = arg;

	for (unsigned i = 0; i < m->n; i++)
		if (m->move[i].bytes)
			memcpy(m->move[i].dst, m->move[i].src, m->move[i].bytes);
}

/* Behind the launch before, whatever stream that was in: its copies use the same memory. With the lock. */
static CUresult follow(struct srv_graph *g, CUstream stream, bool *busy)
{
	CUresult r;

	/* With its context all that ran there has ended. */
	if (g->done && g->done_x->dead) {
		g->done = NULL;
		g->launched = false;
	}
	r = g->launched ? drv_cuda.cuEventQuery(g->done) : CUDA_SUCCESS;
	*busy = r == CUDA_ERROR_NOT_READY;
	return *busy ? drv_cuda.cuStreamWaitEvent(stream, g->done, 0) : r;
}

/* From here on the graph's memory is in use until the stream has come here. An event is of one context. */
static CUresult mark(struct srv_graph *g, CUstream stream, struct srv_ctx *x)
{
	CUresult r = CUDA_SUCCESS;

	if (g->done && g->done_x != x) {
		drv_cuda.cuEventDestroy_v2(g->done);
		g->done = NULL;
	}
	if (!g->done)
		r = drv_cuda.cuEventCreate(&g->done, CU_EVENT_DISABLE_TIMING);
	g->done_x = x;
	if (!r)
		r = drv_cuda.cuEventRecord(g->done, stream);
	g->launched = !r;
	return r;
}

struct launch {
	struct rec_GRAPH_LAUNCH a;
	struct rgpu_wire_range range[RANGES_MAX];
	const uint8_t *src;
	struct moves *up, *down;
};

static bool read_launch(struct srv_call *c, struct launch *l)
{
	uint32_t at = sizeof(l->a), n = l->a.up + l->a.down;
	uint64_t up = 0, down = 0;
	const void *p;

	if (l->a.up > RANGES_MAX || l->a.down > RANGES_MAX || n > RANGES_MAX)
		return false;
	p = srv_bytes(c, &at, n * sizeof(*l->range));
	if (!p)
		return false;
	memcpy(l->range, p, n * sizeof(*l->range));
	l->src = l->a.inlined ? srv_bytes(c, &at, l->a.inlined) : c->payload;
	for (uint32_t i = 0; i < n; i++) {
		if (l->range[i].bytes > RGPU_CHUNK_MAX)
			return false;
		*(i < l->a.up ? &up : &down) += l->range[i].bytes;
	}
	return (!up || l->src) && up == (l->a.inlined ? l->a.inlined : c->payload_len) &&
	       down + (l->a.tagged ? sizeof(l->a.tag) : 0) == c->recv_len;
}

static CUresult plan_moves(struct srv_call *c, struct srv_graph *g, struct launch *l)
{
	const uint8_t *src = l->src;
	uint8_t *to = c->recv_len ? srv_recv_buffer(c) : NULL;

	l->up = moves_new(l->a.up);
	l->down = moves_new(l->a.down);
	if (!l->up || !l->down || (c->recv_len && !to))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < l->a.up + l->a.down; i++) {
		uint8_t *host = graph_host(g, l->range[i].at, l->range[i].bytes);

		if (!host)
			return CUDA_ERROR_INVALID_VALUE;
		if (i < l->a.up) {
			add_move(l->up, host, src, l->range[i].bytes);
			src += l->range[i].bytes;
		} else {
			add_move(l->down, to, host, l->range[i].bytes);
			to += l->range[i].bytes;
		}
	}
	if (l->a.tagged)
		memcpy(to, &l->a.tag, sizeof(l->a.tag));
	return CUDA_SUCCESS;
}

static CUresult launch(struct srv_graph *g, struct launch *l, struct srv_ctx *x, CUstream stream)
{
	bool busy;
	CUresult r;

	if (!g->exec)
		return CUDA_ERROR_INVALID_HANDLE;
	r = follow(g, stream, &busy);
	if (!r && l->up->n) {
		if (busy)
			r = drv_cuda.cuLaunchHostFunc(stream, make_moves, l->up);
		else
			make_moves(l->up);
	}
	if (!r)
		r = drv_cuda.cuGraphLaunch(g->exec, stream);
	if (!r && l->down->n)
		r = drv_cuda.cuLaunchHostFunc(stream, make_moves, l->down);
	/* Whatever was given may still run. */
	if (mark(g, stream, x) && !r)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r;
}

static void launch_done(struct srv_call *c, int32_t status)
{
	struct launch *l = wait_arg(c);

	c->recv_used = status ? 0 : c->recv_len;
	free(l->up);
	free(l->down);
	free(l);
}

/* The client expects each to be called. */
static void refuse_functions(struct srv_graph *g)
{
	pthread_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->n; i++)
		if (g->node[i].fn)
			host_refused(g->session, g->node[i].fn->id);
	pthread_mutex_unlock(&g->lock);
}

void srv_GRAPH_LAUNCH(struct srv_call *c)
{
	struct launch *l = calloc(1, sizeof(*l));
	GRAPH_REF *g = NULL;
	struct srv_ctx *x;
	void *stream;
	CUresult r;

	if (!l || !srv_body(c, &l->a, sizeof(l->a)) || !(x = srv_context(c, l->a.ctx)) ||
	    !srv_use(c, KIND_stream, l->a.hStream, &stream) || !srv_enter(c, l->a.ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, l->a.exec))) {
		if (!l)
			srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		free(l);
		return;
	}
	r = read_launch(c, l) ? plan_moves(c, g, l) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		refuse_functions(g);
	if (!r) {
		pthread_mutex_lock(&g->lock);
		r = launch(g, l, x, stream);
		pthread_mutex_unlock(&g->lock);
		if (r)
			refuse_functions(g);
		/* Nothing is in use but what the record brought and what it takes home. */
		if (l->up->n || l->down->n || c->recv_len) {
			srv_fail(c, r);
			wait_for_stream(c, x, stream, launch_done, l);
			return;
		}
	}
	free(l->up);
	free(l->down);
	free(l);
	srv_fail(c, r);
}

void srv_GRAPH_UPLOAD(struct srv_call *c)
{
	struct rec_GRAPH_UPLOAD a;
	GRAPH_REF *g = NULL;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	pthread_mutex_lock(&g->lock);
	srv_fail(c, g->exec && drv_cuda.cuGraphUpload ? drv_cuda.cuGraphUpload(g->exec, stream) : CUDA_ERROR_NOT_SUPPORTED);
	pthread_mutex_unlock(&g->lock);
}

void srv_GRAPH_ENABLE(struct srv_call *c)
{
	struct rec_GRAPH_ENABLE a;
	GRAPH_REF *g = NULL;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	pthread_mutex_lock(&g->lock);
	if (!g->exec || a.node >= g->n)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (g->node[a.node].type == CU_GRAPH_NODE_TYPE_EMPTY)
		r = CUDA_SUCCESS; /* a copy of nothing */
	else
		r = drv_cuda.cuGraphNodeSetEnabled ? drv_cuda.cuGraphNodeSetEnabled(g->exec, g->node[a.node].real, a.enabled)
						   : CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, r);
}

/* ---- Host memory by itself ---- */

void srv_GRAPH_HOST(struct srv_call *c)
{
	struct rec_GRAPH_HOST a;
	GRAPH_REF *g = NULL;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	pthread_mutex_lock(&g->lock);
	if (!g->exec)
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
	/* A graph without host memory has no piece 0. */
	else if (a.piece == 1 && !g->npieces)
		srv_fail(c, graph_add_piece(g, 1));
	if (!c->status)
		srv_fail(c, a.piece == g->npieces ? graph_add_piece(g, a.bytes) : CUDA_ERROR_INVALID_VALUE);
	pthread_mutex_unlock(&g->lock);
}

static void moved(struct srv_call *c, int32_t status)
{
	c->recv_used = status ? 0 : c->recv_len;
	free(wait_arg(c));
}

/* One move in stream order, behind the launch before: of the payload, or into what the client receives. */
static void move(struct srv_call *c, struct srv_graph *g, uint64_t ctx, CUstream stream, uint64_t at, uint64_t bytes)
{
	struct srv_ctx *x = srv_context(c, ctx);
	struct moves *m = x ? moves_new(1) : NULL;
	bool busy, given = false;
	uint8_t *host;
	CUresult r;

	if (!m) {
		srv_fail(c, x ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	pthread_mutex_lock(&g->lock);
	host = g->exec ? graph_host(g, at, bytes) : NULL;
	r = host ? follow(g, stream, &busy) : CUDA_ERROR_INVALID_VALUE;
	if (!r) {
		add_move(m, c->recv ? c->recv : host, c->recv ? host : c->payload, bytes);
		r = drv_cuda.cuLaunchHostFunc(stream, make_moves, m);
		given = !r;
	}
	if (!r)
		r = mark(g, stream, x);
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, r);
	if (given)
		wait_for_stream(c, x, stream, moved, m);
	else
		free(m);
}

void srv_GRAPH_PUT(struct srv_call *c)
{
	struct rec_GRAPH_PUT a;
	GRAPH_REF *g = NULL;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	if (!a.bytes || a.bytes != c->payload_len || c->recv_len)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	else
		move(c, g, a.ctx, stream, a.at, a.bytes);
}

void srv_GRAPH_GET(struct srv_call *c)
{
	struct rec_GRAPH_GET a;
	GRAPH_REF *g = NULL;
	uint8_t *host;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	if (!a.bytes || a.bytes != c->recv_len || !srv_recv_buffer(c)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (!a.now) {
		if (srv_use(c, KIND_stream, a.hStream, &stream) && srv_enter(c, a.ctx))
			move(c, g, a.ctx, stream, a.at, a.bytes);
		return;
	}
	/* A host function that the graph waits for looks at what came before it. */
	pthread_mutex_lock(&g->lock);
	host = g->exec ? graph_host(g, a.at, a.bytes) : NULL;
	if (host)
		memcpy(c->recv, host, a.bytes);
	pthread_mutex_unlock(&g->lock);
	c->recv_used = host ? a.bytes : 0;
	srv_fail(c, host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* Bytes that the client gives when the stream has come here: functions before may write them. */
static bool pull(struct srv_call *c, const struct rec_GRAPH_PULL *a)
{
	GRAPH_REF *g = NULL;
	struct host_fn *f;
	struct srv_ctx *x;
	void *stream;
	bool busy, given = false;
	CUresult r;

	if (!(x = srv_context(c, a->ctx)) || !srv_use(c, KIND_stream, a->hStream, &stream) || !srv_enter(c, a->ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, a->exec)))
		return false;
	f = a->bytes <= RGPU_CHUNK_MAX ? host_fn_new(c->session, a->id, true) : NULL;
	if (!f) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	pthread_mutex_lock(&g->lock);
	f->into = g->exec ? graph_host(g, a->at, a->bytes) : NULL;
	f->bytes = a->bytes;
	r = f->into ? follow(g, stream, &busy) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r) {
		free(f);
	} else {
		given = true;
		r = mark(g, stream, x);
	}
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, r);
	return given;
}

void srv_GRAPH_PULL(struct srv_call *c)
{
	struct rec_GRAPH_PULL a;

	if (srv_body(c, &a, sizeof(a)) && !pull(c, &a))
		host_refused(c->session, a.id);
}
