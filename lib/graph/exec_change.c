// SPDX-License-Identifier: MIT
/* Executable graphs changed: one node, a child graph, or all of it from a graph of the same shape. */
#include "lib/graph/exec.h"

#include <string.h>

/* ---- Changing one node ---- */

/* Our copy of a node of the graph that @x was made from, at whatever depth. With graph_lock. */
static struct gnode *copy_of(struct graph_exec *x, CUgraphNode node)
{
	struct gnode *n = ghandle_find(node, GRAPH_KIND_NODE);

	return n ? graph_origin(x->graph, n->id, true) : NULL;
}

/* What CUDA does not let an executable graph's node become. */
static bool may_become(const struct gparams *a, const struct gparams *b)
{
	switch ((int)a->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return a->kernel.ctx == b->kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return a->memcpy.ctx == b->memcpy.ctx && a->memcpy.copy.srcMemoryType == b->memcpy.copy.srcMemoryType &&
		       a->memcpy.copy.dstMemoryType == b->memcpy.copy.dstMemoryType;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return a->memset.ctx == b->memset.ctx && (a->memset.height > 1) == (b->memset.height > 1);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return a->memop.ctx == b->memop.ctx && a->memop.count == b->memop.count;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case GRAPH_NODE_GUEST:
		return gparams_equal(a, b);
	default:
		return true;
	}
}

static CUresult become(struct graph_exec *x, struct gnode *n, struct gparams *p)
{
	struct gparams old = n->p;
	CUresult r;

	if (gparams_equal(&n->p, p)) {
		gparams_free(p);
		return CUDA_SUCCESS;
	}
	n->p = *p;
	r = gb_exec_changed(x, n);
	if (r != CUDA_SUCCESS) {
		n->p = old;
		gparams_free(p);
	} else {
		gparams_free(&old);
	}
	return r;
}

static CUresult exec_set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *np)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph_exec *x;
	struct gparams p;
	struct gnode *n;

	GTRY(exec_take(exec, &x));
	pthread_mutex_lock(&graph_lock);
	n = copy_of(x, node);
	if (n && n->p.type == np->type && np->type != CU_GRAPH_NODE_TYPE_GRAPH && np->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
	    np->type != CU_GRAPH_NODE_TYPE_MEM_FREE && np->type != CU_GRAPH_NODE_TYPE_CONDITIONAL)
		r = gparams_take(&p, np, &n->p);
	if (r == CUDA_SUCCESS && !may_become(&n->p, &p)) {
		gparams_free(&p);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	graph_unlock();
	if (r == CUDA_SUCCESS)
		r = become(x, n, &p);
	return exec_leave(x, r);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return cuGraphExecChildGraphNodeSetParams(exec, node, p->graph.graph);
	return exec_set(exec, node, p);
}

#define EXEC_SET(exec, node, kind, ...)                                                                                          \
	({                                                                                                                       \
		CUgraphNodeParams np_ = {.type = kind, __VA_ARGS__};                                                             \
		exec_set(exec, node, &np_);                                                                                      \
	})

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return exec_set(exec, node, &np);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return exec_set(exec, node, &np);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return EXEC_SET(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *p});
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext ctx)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.memset, p, sizeof(*p));
	np.memset.ctx = ctx;
	return exec_set(exec, node, &np);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return EXEC_SET(exec, node, CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = p->fn, .userData = p->userData});
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return EXEC_SET(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event});
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return EXEC_SET(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event});
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return EXEC_SET(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = {p->ctx, p->count, p->paramArray, p->flags});
}

/* Only what does work can be left out. */
static bool can_be_disabled(CUgraphNodeType t)
{
	return t == CU_GRAPH_NODE_TYPE_KERNEL || t == CU_GRAPH_NODE_TYPE_MEMCPY || t == CU_GRAPH_NODE_TYPE_MEMSET;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph_exec *x;
	struct gnode *n;

	GTRY(exec_take(exec, &x));
	pthread_mutex_lock(&graph_lock);
	n = copy_of(x, node);
	graph_unlock();
	if (n && can_be_disabled(n->p.type)) {
		r = CUDA_SUCCESS;
		if (n->disabled == !!enabled) {
			n->disabled = !enabled;
			r = gb_exec_changed(x, n);
			if (r != CUDA_SUCCESS)
				n->disabled = enabled;
		}
	}
	return exec_leave(x, r);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph_exec *x;
	struct gnode *n;

	GTRY(exec_take(exec, &x));
	pthread_mutex_lock(&graph_lock);
	n = copy_of(x, node);
	graph_unlock();
	if (n && enabled && can_be_disabled(n->p.type)) {
		*enabled = !n->disabled;
		r = CUDA_SUCCESS;
	}
	return exec_leave(x, r);
}

/* ---- Updates ---- */

struct update {
	CUgraphExecUpdateResult result;
	const struct gnode *node, *from; /* of the new graph */
};

static bool differs(struct update *u, CUgraphExecUpdateResult result, const struct gnode *node, const struct gnode *from)
{
	u->result = result;
	u->node = node;
	u->from = from;
	return false;
}

/* Nodes are paired as they were added; their edges must agree, in whatever order those were. */
static bool same_edges(const struct gnode *old, const struct gnode *new, struct update *u)
{
	if (old->nin != new->nin)
		return differs(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, new, NULL);
	for (unsigned int i = 0; i < new->nin; i++) {
		bool found = false;

		for (unsigned int k = 0; k < old->nin && !found; k++)
			found = old->in[k].node->at == new->in[i].node->at &&
				!memcmp(&old->in[k].data, &new->in[i].data, sizeof(CUgraphEdgeData));
		if (!found)
			return differs(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, new, new->in[i].node);
	}
	return true;
}

static bool comparable(const struct graph *old, const struct graph *new, struct update *u);

static bool same_shape(const struct gnode *old, const struct gnode *new, struct update *u)
{
	const struct gparams *a = &old->p, *b = &new->p;

	if (a->type != b->type)
		return differs(u, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, new, NULL);
	if (!same_edges(old, new, u))
		return false;
	if (a->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return comparable(a->child, b->child, u);
	if (a->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
		if (a->cond.handle != b->cond.handle || a->cond.type != b->cond.type || a->cond.size != b->cond.size)
			return differs(u, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, new, NULL);
		for (unsigned int i = 0; i < a->cond.size; i++)
			if (!comparable(a->cond.body[i], b->cond.body[i], u))
				return false;
		return true;
	}
	if (!may_become(a, b))
		return differs(u,
			       a->type == CU_GRAPH_NODE_TYPE_KERNEL ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
								    : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
			       new, NULL);
	return true;
}

static bool comparable(const struct graph *old, const struct graph *new, struct update *u)
{
	if (old->n != new->n)
		return differs(u, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, new->n > old->n ? new->node[old->n] : NULL, NULL);
	for (unsigned int i = 0; i < old->n; i++)
		if (!same_shape(old->node[i], new->node[i], u))
			return false;
	return true;
}

static CUresult follow(struct graph_exec *x, struct graph *old, const struct graph *new)
{
	for (unsigned int i = 0; i < old->n; i++) {
		struct gnode *n = old->node[i];
		const struct gparams *to = &new->node[i]->p;
		struct gparams p;

		if (n->p.type == CU_GRAPH_NODE_TYPE_GRAPH) {
			GTRY(follow(x, n->p.child, to->child));
		} else if (n->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			for (unsigned int k = 0; k < n->p.cond.size; k++)
				GTRY(follow(x, n->p.cond.body[k], to->cond.body[k]));
		} else if (!gparams_equal(&n->p, to)) {
			GTRY(gparams_copy(&p, to, true));
			GTRY(become(x, n, &p));
		}
	}
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct update u = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	struct graph_exec *x;
	struct graph *g;
	CUresult r;

	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	GTRY(exec_take(exec, &x));
	pthread_mutex_lock(&graph_lock);
	g = ghandle_find(graph, GRAPH_KIND_GRAPH);
	if (!g) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (!comparable(x->graph, g, &u)) {
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	} else {
		u.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
		r = follow(x, x->graph, g);
		if (r != CUDA_SUCCESS)
			u.result = CU_GRAPH_EXEC_UPDATE_ERROR;
	}
	info->result = u.result;
	info->errorNode = u.node ? (CUgraphNode)(uintptr_t)u.node->h.value : NULL;
	info->errorFromNode = u.from ? (CUgraphNode)(uintptr_t)u.from->h.value : NULL;
	graph_unlock();
	return exec_leave(x, r);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error, CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info;
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (error)
		*error = info.errorNode;
	if (result)
		*result = info.result;
	return r;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph_exec *x;
	struct update u;
	struct gnode *n;
	struct graph *g;

	GTRY(exec_take(exec, &x));
	pthread_mutex_lock(&graph_lock);
	n = copy_of(x, node);
	g = ghandle_find(child, GRAPH_KIND_GRAPH);
	if (n && g && n->p.type == CU_GRAPH_NODE_TYPE_GRAPH && comparable(n->p.child, g, &u))
		r = follow(x, n->p.child, g);
	graph_unlock();
	return exec_leave(x, r);
}
