// SPDX-License-Identifier: MIT
/* Executable graphs: made of a graph, launched, and ended. */
#include "lib/graph/exec.h"

#include <stdlib.h>

#define FLAGS                                                                                                                    \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |                                  \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

static struct graph *graph_by_id(struct graph_exec *x)
{
	struct graph *g = ghandle_find(x->from, GRAPH_KIND_GRAPH);

	return g && g->id == x->source ? g : NULL;
}

static void exec_put(struct graph_exec *x)
{
	struct graph *g;

	if (atomic_fetch_sub(&x->refs, 1) != 1)
		return;
	/* What it still does is the backend's to wait for: only then may memory and user objects go. */
	if (x->priv)
		gb_exec_free(x);
	pthread_mutex_lock(&graph_lock);
	g = graph_by_id(x);
	if (g)
		g->execs--;
	if (x->graph)
		graph_free(x->graph);
	graph_unlock();
	pthread_mutex_destroy(&x->lock);
	free(x);
}

CUresult exec_take(CUgraphExec handle, struct graph_exec **out)
{
	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	*out = ghandle_find(handle, GRAPH_KIND_EXEC);
	if (*out)
		atomic_fetch_add(&(*out)->refs, 1);
	graph_unlock();
	if (!*out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&(*out)->lock);
	return CUDA_SUCCESS;
}

CUresult exec_leave(struct graph_exec *x, CUresult r)
{
	pthread_mutex_unlock(&x->lock);
	exec_put(x);
	return r;
}

/* ---- Instantiation ---- */

/* All levels can be put in an order. */
static bool acyclic(const struct graph *g)
{
	struct gnode **order = calloc(g->n + 1, sizeof(*order));
	bool good = order && graph_sort(g, order);

	free(order);
	for (unsigned int i = 0; i < g->n && good; i++) {
		const struct gparams *p = &g->node[i]->p;

		if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
			good = acyclic(p->child);
		for (unsigned int k = 0; p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < p->cond.size && good; k++)
			good = acyclic(p->cond.body[k]);
	}
	return good;
}

static CUresult prepare(struct graph_exec *x, CUgraph handle, CUgraphInstantiateResult *result)
{
	struct graph *g = ghandle_find(handle, GRAPH_KIND_GRAPH);

	if (!g)
		return CUDA_ERROR_INVALID_VALUE;
	/* Addresses and conditions belong to one executable graph at a time. */
	if (g->execs && (graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
			 graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL)))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!acyclic(g)) {
		*result = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		return CUDA_ERROR_INVALID_VALUE;
	}
	GTRY(graph_copy(g, true, &x->graph));
	x->source = g->id;
	x->from = handle;
	g->execs++;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags, CUgraphNode *error,
			    CUgraphInstantiateResult *result)
{
	struct gnode *bad = NULL, *original = NULL;
	struct graph_exec *x;
	CUresult r;

	*error = NULL;
	*result = CUDA_GRAPH_INSTANTIATE_ERROR;
	GTRY(gb_enter());
	if (!out || flags & ~(cuuint64_t)FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
		gb_log("a graph for launches from the device: not supported");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_init(&x->refs, 1);
	pthread_mutex_init(&x->lock, NULL);
	x->flags = flags;
	pthread_mutex_lock(&graph_lock);
	r = prepare(x, graph, result);
	graph_unlock();
	if (r == CUDA_SUCCESS)
		r = gb_exec_new(x, &bad);
	pthread_mutex_lock(&graph_lock);
	if (r == CUDA_SUCCESS)
		r = ghandle_new(&x->h, GRAPH_KIND_EXEC);
	else if (bad && x->source && graph_by_id(x))
		for (unsigned int i = 0; i < graph_by_id(x)->n; i++)
			if (graph_by_id(x)->node[i]->id == bad->origin)
				original = graph_by_id(x)->node[i];
	if (original)
		*error = (CUgraphNode)(uintptr_t)original->h.value;
	if (r == CUDA_SUCCESS)
		*out = (CUgraphExec)(uintptr_t)x->h.value;
	graph_unlock();
	if (r != CUDA_SUCCESS)
		exec_put(x);
	else
		*result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return r;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	CUgraphInstantiateResult result;
	CUgraphNode error;

	/* Uploading wants a stream to do it in. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(out, graph, flags, &error, &result);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes)
{
	CUgraphInstantiateResult result;
	CUgraphNode bad;
	CUresult r = instantiate(out, graph, 0, &bad, &result);

	if (error)
		*error = bad;
	if (log && bytes)
		*log = 0;
	return r;
}

CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error, char *log, size_t bytes)
{
	return cuGraphInstantiate_v2(out, graph, error, log, bytes);
}

static CUresult instantiate_with(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p, CUstream upload)
{
	CUresult r;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	r = instantiate(out, graph, p->flags, &p->hErrNode_out, &p->result_out);
	if (r == CUDA_SUCCESS && p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		r = cuGraphUpload(*out, upload);
	return r;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return instantiate_with(out, graph, p, p ? p->hUploadStream : NULL);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
	return instantiate_with(out, graph, p, p && p->hUploadStream ? p->hUploadStream : CU_STREAM_PER_THREAD);
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	struct graph_exec *x;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(exec_take(exec, &x));
	*flags = x->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	return exec_leave(x, CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct graph_exec *x;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	x = ghandle_find(exec, GRAPH_KIND_EXEC);
	if (x)
		ghandle_drop(&x->h);
	graph_unlock();
	if (!x)
		return CUDA_ERROR_INVALID_VALUE;
	exec_put(x);
	return CUDA_SUCCESS;
}

/* ---- Launches ---- */

static CUresult launch(CUgraphExec exec, CUstream stream)
{
	struct gstream s = {0};
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	struct graph_exec *x;
	bool capturing;
	CUresult r;

	GTRY(exec_take(exec, &x));
	r = gb_stream(stream, &s);
	if (r == CUDA_SUCCESS)
		r = graph_capturing(&s, &capturing);
	if (r == CUDA_SUCCESS && capturing) {
		/* What is captured is a child graph. */
		pthread_mutex_lock(&graph_lock);
		r = graph_has(x->graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || graph_has(x->graph, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
				    graph_has(x->graph, CU_GRAPH_NODE_TYPE_CONDITIONAL)
			    ? CUDA_ERROR_NOT_SUPPORTED
			    : graph_copy(x->graph, false, &p.child);
		graph_unlock();
		if (r == CUDA_SUCCESS)
			r = graph_capture(&s, &p);
		return exec_leave(x, r);
	}
	if (r == CUDA_SUCCESS) {
		pthread_mutex_lock(&graph_lock);
		r = galloc_launch(x);
		graph_unlock();
	}
	if (r == CUDA_SUCCESS)
		r = gb_exec_launch(x, stream);
	return exec_leave(x, r);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return launch(exec, stream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return launch(exec, stream ? stream : CU_STREAM_PER_THREAD);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	struct gstream s = {0};
	struct graph_exec *x;
	bool capturing;
	CUresult r;

	GTRY(exec_take(exec, &x));
	r = gb_stream(stream, &s);
	if (r == CUDA_SUCCESS)
		r = graph_capturing(&s, &capturing);
	if (r == CUDA_SUCCESS)
		r = capturing ? graph_capture_refuse(&s) : gb_exec_upload(x, stream);
	return exec_leave(x, r);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	return cuGraphUpload(exec, stream ? stream : CU_STREAM_PER_THREAD);
}
