// SPDX-License-Identifier: MIT
/* The calls that make graphs, clone them, and look at their nodes and edges. */
#include "lib/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static struct graph *graph_of(CUgraph handle)
{
	return ghandle_find(handle, GRAPH_KIND_GRAPH);
}

static struct gnode *node_of(CUgraphNode handle)
{
	return ghandle_find(handle, GRAPH_KIND_NODE);
}

static CUgraphNode name_of(const struct gnode *n)
{
	return (CUgraphNode)(uintptr_t)n->h.value;
}

CUresult cuGraphCreate(CUgraph *out, unsigned int flags)
{
	struct graph *g;
	CUresult r;

	GTRY(gb_enter());
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = graph_new();
	r = g ? graph_handle(g) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		*out = (CUgraph)(uintptr_t)g->h.value;
	else if (g)
		graph_free(g);
	graph_unlock();
	return r;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph *g;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	g = graph_of(graph);
	if (g && !g->owner && !graph_is_captured_to(g)) {
		graph_free(g);
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphClone(CUgraph *out, CUgraph original)
{
	struct graph *g, *copy = NULL;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	g = graph_of(original);
	if (g && out) {
		/* Their addresses and handles belong to one graph. */
		if (graph_has(g, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || graph_has(g, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
		    graph_has(g, CU_GRAPH_NODE_TYPE_CONDITIONAL))
			r = CUDA_ERROR_NOT_SUPPORTED;
		else
			r = graph_copy(g, false, &copy);
		if (r == CUDA_SUCCESS)
			r = graph_handle(copy);
		if (r == CUDA_SUCCESS)
			*out = (CUgraph)(uintptr_t)copy->h.value;
		else if (copy)
			graph_free(copy);
	}
	graph_unlock();
	return r;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gnode *n, *found;
	struct graph *g;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	g = graph_of(clone);
	n = node_of(original);
	found = g && n && out ? graph_origin(g, n->id, false) : NULL;
	if (found) {
		*out = name_of(found);
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gnode *n;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	n = node_of(node);
	if (n && type) {
		*type = n->p.type == GRAPH_NODE_GUEST ? CU_GRAPH_NODE_TYPE_KERNEL : n->p.type;
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *num, bool roots)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	size_t n = 0, room;
	struct graph *g;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	g = graph_of(graph);
	if (g && num) {
		room = *num;
		for (unsigned int i = 0; i < g->n; i++) {
			if (roots && g->node[i]->nin)
				continue;
			if (nodes && n < room)
				nodes[n] = name_of(g->node[i]);
			n++;
		}
		for (size_t i = n; nodes && i < room; i++)
			nodes[i] = NULL;
		*num = nodes && n > room ? room : n;
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *num)
{
	return list_nodes(graph, nodes, num, false);
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *num)
{
	return list_nodes(graph, nodes, num, true);
}

/* ---- Edges ---- */

static bool is_plain(const CUgraphEdgeData *d)
{
	return !d->from_port && !d->to_port && !d->type;
}

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *num)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool lossy = false;
	size_t n = 0, room;
	struct graph *g;

	GTRY(gb_enter());
	if (!num || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = graph_of(graph);
	if (g) {
		room = *num;
		for (unsigned int i = 0; i < g->n; i++)
			for (unsigned int k = 0; k < g->node[i]->nout; k++, n++) {
				const struct gedge *e = &g->node[i]->out[k];

				lossy = lossy || !is_plain(&e->data);
				if (!from || n >= room)
					continue;
				from[n] = name_of(g->node[i]);
				to[n] = name_of(e->node);
				if (data)
					data[n] = e->data;
			}
		for (size_t i = n; from && i < room; i++)
			from[i] = to[i] = NULL;
		*num = from && n > room ? room : n;
		r = from && !data && lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *num)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, num);
}

static CUresult neighbours(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *num, bool in)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool lossy = false;
	struct gnode *n;
	size_t room;

	GTRY(gb_enter());
	if (!num || (data && !out))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	n = node_of(node);
	if (n) {
		const struct gedge *e = in ? n->in : n->out;
		size_t count = in ? n->nin : n->nout;

		room = *num;
		for (size_t i = 0; i < count; i++) {
			lossy = lossy || !is_plain(&e[i].data);
			if (!out || i >= room)
				continue;
			out[i] = name_of(e[i].node);
			if (data)
				data[i] = e[i].data;
		}
		for (size_t i = count; out && i < room; i++)
			out[i] = NULL;
		*num = out && count > room ? room : count;
		r = out && !data && lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *data, size_t *num)
{
	return neighbours(node, deps, data, num, true);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *num)
{
	return neighbours(node, deps, NULL, num, true);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *num)
{
	return neighbours(node, nodes, data, num, false);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *num)
{
	return neighbours(node, nodes, NULL, num, false);
}

/* A graph with memory of its own, or in a conditional, is not taken apart. */
static bool fixed(const struct gnode *n)
{
	return n->p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->p.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

static CUresult change_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t n,
			     bool add)
{
	CUresult r = CUDA_SUCCESS;
	struct gnode *a, *b;
	struct graph *g;
	size_t done = 0;

	GTRY(gb_enter());
	if (n && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = graph_of(graph);
	if (!g)
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		a = node_of(from[i]);
		b = node_of(to[i]);
		if (!a || !b || a->graph != g || b->graph != g)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (!add && (fixed(a) || fixed(b)))
			r = CUDA_ERROR_NOT_SUPPORTED;
	}
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		const CUgraphEdgeData *d = data ? &data[i] : NULL;

		a = node_of(from[i]);
		b = node_of(to[i]);
		if (add)
			r = node_link(a, b, d);
		else
			r = node_unlink(a, b, d) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		done += r == CUDA_SUCCESS;
	}
	/* All or none. */
	while (r != CUDA_SUCCESS && done--) {
		const CUgraphEdgeData *d = data ? &data[done] : NULL;

		if (add)
			node_unlink(node_of(from[done]), node_of(to[done]), d);
		else
			node_link(node_of(from[done]), node_of(to[done]), d);
	}
	graph_unlock();
	return r;
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
				   size_t n)
{
	return change_edges(graph, from, to, data, n, true);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return change_edges(graph, from, to, NULL, n, true);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
				      size_t n)
{
	return change_edges(graph, from, to, data, n, false);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
	return change_edges(graph, from, to, NULL, n, false);
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gnode *n;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	n = node_of(node);
	if (n && fixed(n)) {
		r = CUDA_ERROR_NOT_SUPPORTED;
	} else if (n && !graph_is_captured_to(n->graph)) {
		node_free(n);
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph graph, CUcontext ctx, unsigned int value,
					unsigned int flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	CUgraphConditionalHandle *p;
	struct graph *g;

	GTRY(gb_enter());
	if (!out || flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(gb_context(&ctx));
	pthread_mutex_lock(&graph_lock);
	g = graph_of(graph);
	if (g) {
		p = realloc(g->cond, (g->ncond + 1) * sizeof(*p));
		r = p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (p)
			g->cond = p;
		if (r == CUDA_SUCCESS)
			r = gb_cond_new(ctx, g, value, flags, out);
		if (r == CUDA_SUCCESS)
			g->cond[g->ncond++] = *out;
	}
	graph_unlock();
	return r;
}
