// SPDX-License-Identifier: MIT
/* Graphs: put together from the client's nodes, made executable, launched with the host memory that their copies use. */
#include "server/call_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "server/call_wait.h"

#define RANGES_MAX 64u

/* ---- Life ---- */

static struct srv_graph *graph_new(struct srv_session *s, struct srv_ctx *x)
{
	struct srv_graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->refs = 1;
	g->session = s;
	g->x = x;
	pthread_mutex_init(&g->lock, NULL);
	return g;
}

void graph_put(struct srv_graph **at)
{
	struct srv_graph *g = *at;

	if (!g || --g->refs)
		return;
	for (uint32_t i = 0; i < g->n; i++)
		free(g->node[i].fn);
	for (unsigned i = 0; i < g->nold; i++)
		free(g->old[i]);
	free(g->old);
	free(g->node);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static void hold(void *real)
{
	((struct srv_graph *)real)->refs++;
}

struct srv_graph *srv_graph(struct srv_call *c, enum rgpu_kind kind, uint64_t handle)
{
	struct srv_slot slot;

	if (!session_hold(c->session, kind, handle, &slot, hold)) {
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	return slot.real;
}

/* Unlocking waits for the whole device: nobody else shall. */
static void *unlock_main(void *arg)
{
	struct host_piece *p = arg;

	drv_cuda.cuMemHostUnregister(p->p);
	munmap(p->p, p->bytes);
	free(p);
	return NULL;
}

static void piece_free(struct srv_graph *g, struct host_piece *p, bool context_gone)
{
	struct host_piece *copy;
	pthread_attr_t attr;
	pthread_t t;

	if (p->bytes <= RGPU_CHUNK_MAX) {
		locked_put(&g->x->locked, p->p, p->bytes);
		return;
	}
	copy = p->locked && !context_gone ? malloc(sizeof(*copy)) : NULL;
	if (!copy) {
		munmap(p->p, p->bytes);
		return;
	}
	*copy = *p;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, unlock_main, copy))
		unlock_main(copy);
	pthread_attr_destroy(&attr);
}

/* Nothing of it runs any more. */
void graph_drop(struct srv_graph *g, bool context_gone)
{
	pthread_mutex_lock(&g->lock);
	if (g->exec)
		drv_cuda.cuGraphExecDestroy(g->exec);
	if (g->real)
		drv_cuda.cuGraphDestroy(g->real);
	if (g->done && !context_gone)
		drv_cuda.cuEventDestroy_v2(g->done);
	g->exec = NULL;
	g->real = NULL;
	g->done = NULL;
	for (unsigned i = 0; i < g->npieces; i++)
		piece_free(g, &g->piece[i], context_gone);
	g->npieces = 0;
	pthread_mutex_unlock(&g->lock);
	graph_put(&g);
}

/* The context is current. */
CUresult graph_add_piece(struct srv_graph *g, uint64_t bytes)
{
	struct host_piece *p = &g->piece[g->npieces];

	if (g->npieces == RGPU_HOST_PIECES || bytes > RGPU_HOST_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*p = (struct host_piece){.bytes = bytes ? bytes : 1};
	if (p->bytes <= RGPU_CHUNK_MAX) {
		p->p = locked_get(&g->x->locked, p->bytes);
	} else {
		p->p = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (drv_cuda.cuMemHostRegister_v2 && drv_cuda.cuMemHostUnregister)
			p->locked = !drv_cuda.cuMemHostRegister_v2(p->p, p->bytes, 0);
	}
	if (!p->p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* What nobody has brought down yet is nobody else's. */
	if (p->bytes <= RGPU_CHUNK_MAX)
		memset(p->p, 0, p->bytes);
	g->npieces++;
	return CUDA_SUCCESS;
}

uint8_t *graph_host(struct srv_graph *g, uint64_t at, uint64_t bytes)
{
	unsigned i = RGPU_HOST_PIECE(at);
	uint64_t off = RGPU_HOST_OFF(at);

	if (i >= g->npieces || off > g->piece[i].bytes || bytes > g->piece[i].bytes - off)
		return NULL;
	return g->piece[i].p + off;
}

/* ---- Putting together ---- */

void srv_GRAPH_BEGIN(struct srv_call *c)
{
	struct rec_GRAPH_BEGIN a;
	struct srv_graph *g;
	struct srv_ctx *x;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx) ||
	    !srv_fresh(c, KIND_graph, a.graph))
		return;
	g = graph_new(c->session, x);
	if (!g) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	/* What is wrong is said when it is made executable: that call waits for it. */
	g->status = drv_cuda.cuGraphCreate && drv_cuda.cuGraphDestroy && drv_cuda.cuGraphExecDestroy
			    ? drv_cuda.cuGraphCreate(&g->real, 0)
			    : CUDA_ERROR_NOT_SUPPORTED;
	if (!g->status && a.host_bytes)
		g->status = graph_add_piece(g, a.host_bytes);
	srv_put(c, KIND_graph, a.graph, g, a.ctx);
}

void srv_GRAPH_NODE(struct srv_call *c)
{
	GRAPH_REF *g = NULL;
	struct rec_GRAPH_NODE a;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	g = srv_graph(c, a.changes ? KIND_graphexec : KIND_graph, a.owner);
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	r = a.changes ? (g->exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE) : g->status;
	if (!r) {
		r = graph_node(c, g, &a);
		if (r && !a.changes) {
			g->status = r;
			g->bad = a.node;
		}
	}
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, a.changes ? r : CUDA_SUCCESS);
}

void srv_GRAPH_MAKE(struct srv_call *c)
{
	struct rep_GRAPH_MAKE reply = {0};
	struct rec_GRAPH_MAKE a;
	struct srv_graph *g;
	void *real;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_graphexec, a.exec) ||
	    !srv_take(c, KIND_graph, a.graph, &real))
		return;
	g = real;
	pthread_mutex_lock(&g->lock);
	r = g->status;
	if (!r)
		r = drv_cuda.cuGraphInstantiateWithFlags && drv_cuda.cuGraphLaunch && drv_cuda.cuLaunchHostFunc
			    ? drv_cuda.cuGraphInstantiateWithFlags(&g->exec, g->real,
								   a.flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
			    : CUDA_ERROR_NOT_SUPPORTED;
	reply.bad = g->bad;
	pthread_mutex_unlock(&g->lock);
	if (r)
		graph_drop(g, false);
	else
		srv_put(c, KIND_graphexec, a.exec, g, a.ctx);
	srv_fail(c, r);
	srv_answer(c, &reply, sizeof(reply));
}

void srv_GRAPH_DROP(struct srv_call *c)
{
	struct rec_GRAPH_DROP a;
	void *g;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	if (srv_take(c, KIND_graph, a.graph, &g))
		graph_drop(g, false);
	c->status = 0; /* it may have gone with its context */
}

/* ---- Ending ---- */

/* Whether the last launch has ended. */
static int32_t idle(struct srv_graph *g)
{
	CUresult r = CUDA_SUCCESS;

	if (pthread_rwlock_tryrdlock(&g->x->life))
		return SRV_PENDING;
	if (!g->x->dead && g->launched && !ctx_enter(g->x))
		r = drv_cuda.cuEventQuery(g->done);
	pthread_rwlock_unlock(&g->x->life);
	return r == CUDA_ERROR_NOT_READY ? SRV_PENDING : 0;
}

static int32_t destroy_ready(struct srv_call *c)
{
	struct srv_graph *g = c->ready_arg;

	if (idle(g) == SRV_PENDING)
		return SRV_PENDING;
	graph_drop(g, g->x->dead);
	return 0;
}

void srv_GRAPH_EXEC_DESTROY(struct srv_call *c)
{
	struct rec_GRAPH_EXEC_DESTROY a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	if (!srv_take(c, KIND_graphexec, a.exec, &c->ready_arg)) {
		c->status = 0; /* it has gone with its context */
		return;
	}
	if (destroy_ready(c) == SRV_PENDING)
		c->ready = destroy_ready;
}

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
		memcpy(m->move[i].dst, m->move[i].src, m->move[i].bytes);
}

/* Behind the launch before, whatever stream that was in: its copies use the same memory. With the lock. */
static CUresult follow(struct srv_graph *g, CUstream stream, bool *busy)
{
	CUresult r = g->launched ? drv_cuda.cuEventQuery(g->done) : CUDA_SUCCESS;

	*busy = r == CUDA_ERROR_NOT_READY;
	return *busy ? drv_cuda.cuStreamWaitEvent(stream, g->done, 0) : r;
}

/* From here on the graph's memory is in use until the stream has come here. An event is of one context. */
static CUresult mark(struct srv_graph *g, CUstream stream, uint64_t ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (g->done && g->done_ctx != ctx) {
		drv_cuda.cuEventDestroy_v2(g->done);
		g->done = NULL;
	}
	if (!g->done)
		r = drv_cuda.cuEventCreate(&g->done, CU_EVENT_DISABLE_TIMING);
	g->done_ctx = ctx;
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

static CUresult launch(struct srv_graph *g, struct launch *l, CUstream stream)
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
	if (mark(g, stream, l->a.ctx) && !r)
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
	if (!r) {
		pthread_mutex_lock(&g->lock);
		r = launch(g, l, stream);
		pthread_mutex_unlock(&g->lock);
		/* Nothing is in use but what the record brought and what it takes home. */
		if (c->payload_len || l->a.inlined || c->recv_len) {
			wait_for_stream(c, x, stream, launch_done, l);
			if (r) {
				srv_fail(c, r);
				c->recv_used = 0;
			}
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
	/* A graph without host memory has no piece 0. */
	if (a.piece == 1 && !g->npieces)
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

/* One move in stream order, behind the launch before. */
static void move(struct srv_call *c, struct srv_graph *g, uint64_t ctx, CUstream stream, uint8_t *dst, const uint8_t *src,
		 uint64_t bytes)
{
	struct srv_ctx *x = srv_context(c, ctx);
	struct moves *m = moves_new(1);
	bool busy;
	CUresult r;

	if (!x || !m) {
		free(m);
		srv_fail(c, x ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	add_move(m, dst, src, bytes);
	pthread_mutex_lock(&g->lock);
	r = follow(g, stream, &busy);
	if (!r)
		r = drv_cuda.cuLaunchHostFunc(stream, make_moves, m);
	if (!r)
		r = mark(g, stream, ctx);
	pthread_mutex_unlock(&g->lock);
	if (r) {
		free(m);
		srv_fail(c, r);
		return;
	}
	wait_for_stream(c, x, stream, moved, m);
}

void srv_GRAPH_PUT(struct srv_call *c)
{
	struct rec_GRAPH_PUT a;
	GRAPH_REF *g = NULL;
	uint8_t *host;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	host = graph_host(g, a.at, a.bytes);
	if (!host || a.bytes != c->payload_len)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	else
		move(c, g, a.ctx, stream, host, c->payload, a.bytes);
}

void srv_GRAPH_GET(struct srv_call *c)
{
	struct rec_GRAPH_GET a;
	GRAPH_REF *g = NULL;
	uint8_t *host;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	host = graph_host(g, a.at, a.bytes);
	if (!host || a.bytes != c->recv_len || !srv_recv_buffer(c)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	/* A host function that the graph waits for looks at what came before it. */
	if (a.now) {
		memcpy(c->recv, host, a.bytes);
		c->recv_used = a.bytes;
		return;
	}
	if (srv_use(c, KIND_stream, a.hStream, &stream) && srv_enter(c, a.ctx))
		move(c, g, a.ctx, stream, c->recv, host, a.bytes);
}

/* Bytes that the client gives when the stream has come here: functions before may write them. */
void srv_GRAPH_PULL(struct srv_call *c)
{
	struct rec_GRAPH_PULL a;
	GRAPH_REF *g = NULL;
	struct host_fn *f;
	uint8_t *host;
	void *stream;
	bool busy;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx) ||
	    !(g = srv_graph(c, KIND_graphexec, a.exec)))
		return;
	host = graph_host(g, a.at, a.bytes);
	f = host && a.bytes <= RGPU_CHUNK_MAX ? host_fn_new(c->session, a.id, true) : NULL;
	if (!f) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	f->into = host;
	f->bytes = a.bytes;
	pthread_mutex_lock(&g->lock);
	r = follow(g, stream, &busy);
	if (!r)
		r = drv_cuda.cuLaunchHostFunc(stream, host_fn_call, f);
	if (r)
		free(f);
	else
		r = mark(g, stream, a.ctx);
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, r);
}

/* ---- Fragments ---- */

void srv_CAPTURE_BEGIN(struct srv_call *c)
{
	struct rec_CAPTURE_BEGIN a;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx))
		return;
	/* What may be called meanwhile, the client has decided. */
	srv_fail(c, drv_cuda.cuStreamBeginCapture_v2 && drv_cuda.cuStreamEndCapture
			    ? drv_cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)
			    : CUDA_ERROR_NOT_SUPPORTED);
}

void srv_CAPTURE_END(struct srv_call *c)
{
	struct rec_CAPTURE_END a;
	struct srv_graph *g;
	struct srv_ctx *x;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_graph, a.graph))
		return;
	g = graph_new(c->session, x);
	if (!g) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	g->status = drv_cuda.cuStreamEndCapture ? drv_cuda.cuStreamEndCapture(stream, &g->real) : CUDA_ERROR_NOT_SUPPORTED;
	srv_put(c, KIND_graph, a.graph, g, a.ctx);
}
