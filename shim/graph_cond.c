// SPDX-License-Identifier: MIT
/* Conditions of graphs: their handles are the server's, because kernels use them, so a graph with some has one there before it is
 * sent. */
#include <stdlib.h>
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/session.h"

/* A client's graph with conditions. All under graph_lock. */
struct reserved {
	struct reserved *next;
	uint64_t id; /* the graph's */
	struct rgpu_session *session;
	struct rgpu_obj *graph; /* the server's; NULL once it was made executable */
	unsigned handles;
};

struct condition {
	struct condition *next;
	CUgraphConditionalHandle handle;
	struct reserved *of;
};

static struct reserved *all;
static struct condition *conditions;

static struct condition **find(CUgraphConditionalHandle h)
{
	struct condition **at = &conditions;

	while (*at && (*at)->handle != h)
		at = &(*at)->next;
	return at;
}

static struct reserved *reserve(struct rgpu_call *c, uint64_t id, int *r)
{
	struct reserved *v = all;

	while (v && v->id != id)
		v = v->next;
	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	*r = CUDA_ERROR_OUT_OF_MEMORY;
	if (v)
		v->graph = handle_new(KIND_graph, c->context);
	if (!v || !v->graph) {
		free(v);
		return NULL;
	}
	c->op = OP_GRAPH_BEGIN;
	*r = rpc_GRAPH_BEGIN(c, v->graph->handle, 0);
	if (*r) {
		rgpu_retire(v->graph);
		free(v);
		return NULL;
	}
	v->id = id;
	v->session = c->session;
	v->next = all;
	all = v;
	return v;
}

/* It has no condition, or none any more. */
static void forget(struct reserved *of)
{
	struct reserved **v = &all;

	while (*v != of)
		v = &(*v)->next;
	*v = of->next;
	if (of->graph) {
		struct rgpu_call c = {.op = OP_GRAPH_DROP, .session = of->session};

		rpc_GRAPH_DROP(&c, of->graph->handle);
		rgpu_retire(of->graph);
	}
	free(of);
}

CUresult gb_cond_new(CUcontext ctx, struct graph *g, unsigned int value, unsigned int flags, CUgraphConditionalHandle *out)
{
	struct condition *n = calloc(1, sizeof(*n));
	struct reserved *v;
	struct rgpu_call c;
	uint64_t handle;
	int r = rgpu_enter(&c, OP_GRAPH_COND);

	if (!r)
		r = ctx_use(&c, ctx);
	v = r || !n ? NULL : reserve(&c, g->id, &r);
	if (!r && (!v || !v->graph))
		r = v ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		c.op = OP_GRAPH_COND;
		r = rpc_GRAPH_COND(&c, v->graph->handle, value, flags, &handle);
	}
	if (r) {
		free(n);
		if (v && !v->handles)
			forget(v);
		return r;
	}
	*n = (struct condition){.next = conditions, .handle = handle, .of = v};
	conditions = n;
	v->handles++;
	*out = handle;
	return CUDA_SUCCESS;
}

void gb_cond_free(CUgraphConditionalHandle h)
{
	struct condition **at = find(h), *n = *at;
	struct reserved *of;

	if (!n)
		return;
	*at = n->next;
	of = n->of;
	free(n);
	if (!--of->handles)
		forget(of);
}

bool cond_known(CUgraphConditionalHandle h)
{
	return *find(h);
}

int cond_adopt(CUgraphConditionalHandle h, struct rgpu_obj **graph)
{
	struct condition *n;

	pthread_mutex_lock(&graph_lock);
	n = *find(h);
	*graph = n ? n->of->graph : NULL;
	if (n)
		n->of->graph = NULL;
	pthread_mutex_unlock(&graph_lock);
	if (!*graph)
		rgpu_err("a graph with conditional nodes can be made executable once");
	return *graph ? 0 : CUDA_ERROR_NOT_SUPPORTED;
}
