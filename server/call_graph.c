// SPDX-License-Identifier: MIT
/* Graphs: put together from the client's nodes, made executable, ended; and what the driver captures of libraries. */
#include "server/call_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "server/call_wait.h"

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
	free(g->body);
	free(g->cond);
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

struct unlock {
	struct srv_ctx *x;
	struct host_piece piece;
};

/* Unlocking waits for the whole device: nobody else shall. */
static void *unlock_main(void *arg)
{
	struct unlock *u = arg;

	pthread_rwlock_rdlock(&u->x->life);
	if (!u->x->dead && !ctx_enter(u->x))
		drv_cuda.cuMemHostUnregister(u->piece.p);
	pthread_rwlock_unlock(&u->x->life);
	munmap(u->piece.p, u->piece.bytes);
	free(u);
	return NULL;
}

static void piece_free(struct srv_graph *g, struct host_piece *p, bool context_gone)
{
	struct unlock *u;
	pthread_attr_t attr;
	pthread_t t;

	atomic_fetch_sub(&g->session->graph_bytes, p->bytes);
	if (p->bytes <= RGPU_CHUNK_MAX) {
		locked_put(&g->x->locked, p->p, p->bytes);
		return;
	}
	u = p->locked && !context_gone ? malloc(sizeof(*u)) : NULL;
	if (!u) {
		munmap(p->p, p->bytes);
		return;
	}
	*u = (struct unlock){.x = g->x, .piece = *p};
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, unlock_main, u))
		unlock_main(u);
	pthread_attr_destroy(&attr);
}

/* With the lock. Nothing of it runs any more, unless its context is about to go. */
static void drop_locked(struct srv_graph *g, bool context_gone)
{
	/* The driver ends a context when its work has ended; the host memory of that work goes here, and before. */
	if (g->launched && !g->done_x->dead && drv_cuda.cuEventSynchronize && !ctx_enter(g->done_x))
		drv_cuda.cuEventSynchronize(g->done);
	g->launched = false;
	g->status = CUDA_ERROR_INVALID_HANDLE; /* for a lane that has just found it */
	if (g->exec)
		drv_cuda.cuGraphExecDestroy(g->exec);
	if (g->real)
		drv_cuda.cuGraphDestroy(g->real);
	if (g->done && !g->done_x->dead)
		drv_cuda.cuEventDestroy_v2(g->done);
	g->exec = NULL;
	g->real = NULL;
	g->done = NULL;
	for (unsigned i = 0; i < g->npieces; i++)
		piece_free(g, &g->piece[i], context_gone);
	g->npieces = 0;
}

void graph_drop(struct srv_graph *g, bool context_gone)
{
	pthread_mutex_lock(&g->lock);
	drop_locked(g, context_gone);
	pthread_mutex_unlock(&g->lock);
	graph_put(&g);
}

/* The context is current. */
CUresult graph_add_piece(struct srv_graph *g, uint64_t bytes)
{
	struct host_piece *p = &g->piece[g->npieces];

	if (g->npieces == RGPU_HOST_PIECES || bytes > RGPU_HOST_MAX ||
	    atomic_load(&g->session->graph_bytes) + bytes > SRV_HOST_MAX)
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
	atomic_fetch_add(&g->session->graph_bytes, p->bytes);
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

void srv_GRAPH_COND(struct srv_call *c)
{
	struct rep_GRAPH_COND reply = {0};
	CUgraphConditionalHandle h = 0, *cond;
	struct rec_GRAPH_COND a;
	GRAPH_REF *g = NULL;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !(g = srv_graph(c, KIND_graph, a.graph)))
		return;
	pthread_mutex_lock(&g->lock);
	r = g->status;
	cond = realloc(g->cond, (g->nconds + 1) * sizeof(*cond));
	if (cond)
		g->cond = cond;
	else
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = drv_cuda.cuGraphConditionalHandleCreate
			    ? drv_cuda.cuGraphConditionalHandleCreate(&h, g->real, g->x->real, a.value, a.flags)
			    : CUDA_ERROR_NOT_SUPPORTED;
	if (!r)
		g->cond[g->nconds++] = h;
	pthread_mutex_unlock(&g->lock);
	reply.handle = h;
	srv_fail(c, r);
	srv_answer(c, &reply, sizeof(reply));
}

void srv_GRAPH_ADOPT(struct srv_call *c)
{
	struct rec_GRAPH_ADOPT a;
	struct srv_graph *g;
	struct srv_ctx *x;
	void *from;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx) ||
	    !srv_fresh(c, KIND_graph, a.graph) || !srv_take(c, KIND_graph, a.from, &from))
		return;
	g = from;
	pthread_mutex_lock(&g->lock);
	if (!g->status && a.host_bytes && !g->npieces)
		g->status = graph_add_piece(g, a.host_bytes);
	pthread_mutex_unlock(&g->lock);
	srv_put(c, KIND_graph, a.graph, g, a.ctx);
}

void srv_GRAPH_NODE(struct srv_call *c)
{
	GRAPH_REF *g = NULL;
	struct rec_GRAPH_NODE a;
	bool changes;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	changes = a.changes & RGPU_NODE_CHANGES;
	g = srv_graph(c, changes ? KIND_graphexec : KIND_graph, a.owner);
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	r = changes ? (g->exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE) : g->status;
	if (!r) {
		r = graph_node(c, g, &a);
		if (r && !changes) {
			g->status = r;
			g->bad = a.node;
		}
	}
	pthread_mutex_unlock(&g->lock);
	srv_fail(c, changes ? r : CUDA_SUCCESS);
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

bool graph_runs(struct srv_graph *g)
{
	CUresult r = CUDA_SUCCESS;

	if (!g->launched)
		return false;
	/* Being destroyed: by and by it is dead, and then all of its work has ended. */
	if (pthread_rwlock_tryrdlock(&g->done_x->life))
		return true;
	if (!g->done_x->dead && !ctx_enter(g->done_x))
		r = drv_cuda.cuEventQuery(g->done);
	pthread_rwlock_unlock(&g->done_x->life);
	return r == CUDA_ERROR_NOT_READY;
}

static int32_t destroy_ready(struct srv_call *c)
{
	struct srv_graph *g = c->ready_arg;
	bool runs;

	/* Another lane may be in the driver with it. */
	if (pthread_mutex_trylock(&g->lock))
		return SRV_PENDING;
	runs = graph_runs(g);
	if (!runs)
		drop_locked(g, g->x->dead);
	pthread_mutex_unlock(&g->lock);
	if (runs)
		return SRV_PENDING;
	graph_put(&g);
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

/* ---- Fragments ---- */

void srv_CAPTURE_BEGIN(struct srv_call *c)
{
	struct rec_CAPTURE_BEGIN a;
	struct srv_ctx *x;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_use(c, KIND_stream, a.hStream, &stream) ||
	    !srv_enter(c, a.ctx))
		return;
	if (!drv_cuda.cuStreamBeginCapture_v2 || !drv_cuda.cuStreamEndCapture) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	/* What may be called meanwhile, the client has decided. */
	pthread_mutex_lock(&x->streams_lock);
	srv_fail(c, drv_cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	x->capturing += !c->status;
	pthread_mutex_unlock(&x->streams_lock);
}

static void end_capture(struct srv_call *c, const struct rec_CAPTURE_END *a, struct srv_ctx *x)
{
	struct srv_graph *g;
	void *stream;

	if (!srv_use(c, KIND_stream, a->hStream, &stream) || !srv_enter(c, a->ctx) || !srv_fresh(c, KIND_graph, a->graph))
		return;
	g = graph_new(c->session, x);
	if (!g) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	g->status = drv_cuda.cuStreamEndCapture ? drv_cuda.cuStreamEndCapture(stream, &g->real) : CUDA_ERROR_NOT_SUPPORTED;
	srv_put(c, KIND_graph, a->graph, g, a->ctx);
}

void srv_CAPTURE_END(struct srv_call *c)
{
	struct rec_CAPTURE_END a;
	struct srv_ctx *x;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)))
		return;
	pthread_mutex_lock(&x->streams_lock);
	end_capture(c, &a, x);
	/* Also where it could not be ended: the client says this once for each beginning. */
	x->capturing -= x->capturing > 0;
	pthread_mutex_unlock(&x->streams_lock);
}
