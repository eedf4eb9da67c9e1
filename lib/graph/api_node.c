// SPDX-License-Identifier: MIT
/* The calls that add nodes: each kind's own is the general one underneath. */
#include "lib/graph/graph.h"

#include <string.h>

static struct gnode *node_of(CUgraphNode handle)
{
	return ghandle_find(handle, GRAPH_KIND_NODE);
}

/* ---- Adding ---- */

static CUresult link_all(struct gnode *n, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct gnode *from = node_of(deps[i]);

		GTRY(from && from->graph == n->graph ? node_link(from, n, data ? &data[i] : NULL) : CUDA_ERROR_INVALID_VALUE);
	}
	return CUDA_SUCCESS;
}

/* A child graph that was to be moved stays what it was when that fails. */
static CUresult add_to(struct graph *g, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *np,
		       struct gnode **out)
{
	bool moves = np->type == CU_GRAPH_NODE_TYPE_GRAPH && np->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	struct gparams p;
	CUresult r;

	if (np->type == CU_GRAPH_NODE_TYPE_GRAPH && ghandle_find(np->graph.graph, GRAPH_KIND_GRAPH) == g)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(gparams_take(&p, np, NULL));
	r = node_new(g, &p, out);
	if (r != CUDA_SUCCESS) {
		if (!moves)
			gparams_free(&p);
		return r;
	}
	r = link_all(*out, deps, data, count);
	if (r != CUDA_SUCCESS) {
		if (moves) {
			(*out)->p.child->owner = NULL;
			(*out)->p.type = CU_GRAPH_NODE_TYPE_EMPTY;
		}
		node_free(*out);
		return r;
	}
	if (np->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		np->alloc.dptr = p.alloc.p.dptr;
	if (np->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		np->conditional.phGraph_out = p.cond.handles;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t count,
			   CUgraphNodeParams *params)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gnode *n;
	struct graph *g;

	GTRY(gb_enter());
	if (!out || !params || (count && !deps) || params->reserved0[0] || params->reserved0[1] || params->reserved0[2] ||
	    params->reserved2)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = ghandle_find(graph, GRAPH_KIND_GRAPH);
	if (g)
		r = add_to(g, deps, data, count, params, &n);
	if (r == CUDA_SUCCESS)
		*out = (CUgraphNode)(uintptr_t)n->h.value;
	graph_unlock();
	return r;
}

CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(out, graph, deps, NULL, count, params);
}

#define ADD(out, graph, deps, count, kind, ...)                                                                                  \
	({                                                                                                                       \
		CUgraphNodeParams np_ = {.type = kind, __VA_ARGS__};                                                             \
		cuGraphAddNode_v2(out, graph, deps, NULL, count, &np_);                                                          \
	})

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
				 const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return cuGraphAddNode_v2(out, graph, deps, NULL, count, &np);
}

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3), "two editions of one structure");

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
			      const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return cuGraphAddNode_v2(out, graph, deps, NULL, count, &np);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, const CUDA_MEMCPY3D *p,
			      CUcontext ctx)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *p});
}

static CUDA_MEMSET_NODE_PARAMS_v2 memset_v2(const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext ctx)
{
	return (CUDA_MEMSET_NODE_PARAMS_v2){p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, ctx};
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
			      const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext ctx)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_MEMSET, .memset = memset_v2(p, ctx));
}

CUresult cuGraphAddHostNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
			    const CUDA_HOST_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = p->fn, .userData = p->userData});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, CUgraph child)
{
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child});
}

CUresult cuGraphAddEmptyNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count)
{
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_EMPTY);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, CUevent event)
{
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event});
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, CUevent event)
{
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event});
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
				  const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
		   .memOp = {p->ctx, p->count, p->paramArray, p->flags});
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count,
				CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	_Static_assert(sizeof(*p) == sizeof(np.alloc), "two editions of one structure");
	memcpy(&np.alloc, p, sizeof(*p));
	GTRY(cuGraphAddNode_v2(out, graph, deps, NULL, count, &np));
	p->dptr = np.alloc.dptr;
	return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t count, CUdeviceptr dptr)
{
	return ADD(out, graph, deps, count, CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {dptr});
}
