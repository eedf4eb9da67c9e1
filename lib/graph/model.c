// SPDX-License-Identifier: MIT
/* Graphs, nodes and edges: made, copied, walked, taken apart. */
#include "lib/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static uint64_t next_id = 1; /* graph_lock */

struct graph *graph_new(void)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (g)
		g->id = next_id++;
	return g;
}

CUresult graph_handle(struct graph *g)
{
	return g->h.value ? CUDA_SUCCESS : ghandle_new(&g->h, GRAPH_KIND_GRAPH);
}

void graph_free(struct graph *g)
{
	while (g->n)
		node_free(g->node[g->n - 1]);
	guses_free(g);
	for (unsigned int i = 0; i < g->ncond; i++)
		gb_cond_free(g->cond[i]);
	free(g->cond);
	ghandle_drop(&g->h);
	free(g->node);
	free(g);
}

/* The graphs inside of a node are its own. */
static void adopt(struct gnode *n)
{
	if (n->p.type == CU_GRAPH_NODE_TYPE_GRAPH)
		n->p.child->owner = n;
	for (unsigned int i = 0; n->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->p.cond.size; i++)
		n->p.cond.body[i]->owner = n;
}

CUresult node_new(struct graph *g, struct gparams *p, struct gnode **out)
{
	struct gnode *n = calloc(1, sizeof(*n));

	if (g->n == g->room) {
		unsigned int room = g->room ? g->room * 2 : 16;
		struct gnode **list = realloc(g->node, room * sizeof(*list));

		if (!list) {
			free(n);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		g->node = list;
		g->room = room;
	}
	if (!n || (!g->exec &&
		   (ghandle_new(&n->h, GRAPH_KIND_NODE) || (p->type == CU_GRAPH_NODE_TYPE_GRAPH && graph_handle(p->child))))) {
		if (n)
			ghandle_drop(&n->h);
		free(n);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	n->graph = g;
	n->id = next_id++;
	n->at = g->n;
	n->p = *p;
	g->node[g->n++] = n;
	adopt(n);
	*out = n;
	return CUDA_SUCCESS;
}

void node_replace(struct gnode *n, struct gparams *p)
{
	gparams_free(&n->p);
	n->p = *p;
	adopt(n);
}

static void cut(struct gedge *list, unsigned int *n, const struct gnode *node)
{
	for (unsigned int i = 0; i < *n; i++)
		if (list[i].node == node) {
			memmove(&list[i], &list[i + 1], (*n - i - 1) * sizeof(*list));
			(*n)--;
			return;
		}
}

void node_free(struct gnode *n)
{
	struct graph *g = n->graph;

	for (unsigned int i = 0; i < n->nin; i++)
		cut(n->in[i].node->out, &n->in[i].node->nout, n);
	for (unsigned int i = 0; i < n->nout; i++)
		cut(n->out[i].node->in, &n->out[i].node->nin, n);
	memmove(&g->node[n->at], &g->node[n->at + 1], (g->n - n->at - 1) * sizeof(*g->node));
	g->n--;
	for (unsigned int i = n->at; i < g->n; i++)
		g->node[i]->at = i;
	ghandle_drop(&n->h);
	gparams_free(&n->p);
	free(n->in);
	free(n->out);
	free(n);
}

/* ---- Edges ---- */

static bool room_for(struct gedge **list, unsigned int n, unsigned int *room)
{
	unsigned int more = *room ? *room * 2 : 4;
	struct gedge *p;

	if (n < *room)
		return true;
	p = realloc(*list, more * sizeof(*p));
	if (!p)
		return false;
	*list = p;
	*room = more;
	return true;
}

static bool same_edge(const CUgraphEdgeData *a, const CUgraphEdgeData *b)
{
	return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type;
}

/* The ports are those of kernels: another node has only its beginning and its end. */
static bool valid(const struct gnode *from, const struct gnode *to, const CUgraphEdgeData *d)
{
	static const unsigned char none[sizeof(d->reserved)];
	bool kernels = from->p.type == CU_GRAPH_NODE_TYPE_KERNEL && to->p.type == CU_GRAPH_NODE_TYPE_KERNEL;

	if (d->to_port || memcmp(d->reserved, none, sizeof(none)) || d->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ||
	    d->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER)
		return false;
	if (d->from_port && from->p.type != CU_GRAPH_NODE_TYPE_KERNEL)
		return false;
	return d->type != CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC || (kernels && d->from_port);
}

CUresult node_link(struct gnode *from, struct gnode *to, const CUgraphEdgeData *data)
{
	CUgraphEdgeData none = {0};

	if (!data)
		data = &none;
	if (from == to || from->graph != to->graph || !valid(from, to, data))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < to->nin; i++)
		if (to->in[i].node == from && same_edge(&to->in[i].data, data))
			return CUDA_ERROR_INVALID_VALUE;
	if (!room_for(&from->out, from->nout, &from->out_room) || !room_for(&to->in, to->nin, &to->in_room))
		return CUDA_ERROR_OUT_OF_MEMORY;
	from->out[from->nout++] = (struct gedge){to, *data};
	to->in[to->nin++] = (struct gedge){from, *data};
	return CUDA_SUCCESS;
}

static bool unlink_one(struct gedge *list, unsigned int *n, const struct gnode *node, const CUgraphEdgeData *data)
{
	for (unsigned int i = 0; i < *n; i++)
		if (list[i].node == node && same_edge(&list[i].data, data)) {
			memmove(&list[i], &list[i + 1], (*n - i - 1) * sizeof(*list));
			(*n)--;
			return true;
		}
	return false;
}

bool node_unlink(struct gnode *from, struct gnode *to, const CUgraphEdgeData *data)
{
	CUgraphEdgeData none = {0};

	if (!data)
		data = &none;
	return unlink_one(from->out, &from->nout, to, data) && unlink_one(to->in, &to->nin, from, data);
}

/* ---- The whole ---- */

CUresult graph_copy(const struct graph *from, bool exec, struct graph **out)
{
	struct graph *g = graph_new();
	CUresult r = g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	struct gnode *n;

	if (!g)
		return r;
	g->origin = from->id;
	g->exec = exec;
	for (unsigned int i = 0; i < from->n && r == CUDA_SUCCESS; i++) {
		struct gparams p;

		r = gparams_copy(&p, &from->node[i]->p, exec);
		if (r != CUDA_SUCCESS)
			break;
		r = node_new(g, &p, &n);
		if (r != CUDA_SUCCESS)
			gparams_free(&p);
		else
			n->origin = from->node[i]->id;
	}
	for (unsigned int i = 0; i < from->n && r == CUDA_SUCCESS; i++)
		for (unsigned int k = 0; k < from->node[i]->nin && r == CUDA_SUCCESS; k++) {
			const struct gedge *e = &from->node[i]->in[k];

			r = node_link(g->node[e->node->at], g->node[i], &e->data);
		}
	if (r == CUDA_SUCCESS)
		r = guses_copy(from, g);
	if (r != CUDA_SUCCESS) {
		graph_free(g);
		return r;
	}
	*out = g;
	return CUDA_SUCCESS;
}

static struct gnode *origin_inside(struct gnode *n, uint64_t origin)
{
	struct gnode *found = NULL;

	if (n->p.type == CU_GRAPH_NODE_TYPE_GRAPH)
		return graph_origin(n->p.child, origin, true);
	for (unsigned int i = 0; n->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && i < n->p.cond.size && !found; i++)
		found = graph_origin(n->p.cond.body[i], origin, true);
	return found;
}

struct gnode *graph_origin(struct graph *g, uint64_t origin, bool deep)
{
	struct gnode *found = NULL;

	for (unsigned int i = 0; i < g->n; i++)
		if (g->node[i]->origin == origin)
			return g->node[i];
	for (unsigned int i = 0; deep && i < g->n && !found; i++)
		found = origin_inside(g->node[i], origin);
	return found;
}

bool graph_has(const struct graph *g, CUgraphNodeType type)
{
	bool has = false;

	for (unsigned int i = 0; i < g->n && !has; i++) {
		const struct gparams *p = &g->node[i]->p;

		has = p->type == type;
		if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
			has = has || graph_has(p->child, type);
		for (unsigned int k = 0; p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < p->cond.size && !has; k++)
			has = graph_has(p->cond.body[k], type);
	}
	return has;
}

bool graph_sort(const struct graph *g, struct gnode **order)
{
	unsigned int done = 0, n = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		g->node[i]->mark = g->node[i]->nin;
		if (!g->node[i]->nin)
			order[n++] = g->node[i];
	}
	for (; done < n; done++)
		for (unsigned int k = 0; k < order[done]->nout; k++)
			if (!--order[done]->out[k].node->mark)
				order[n++] = order[done]->out[k].node;
	return n == g->n;
}
