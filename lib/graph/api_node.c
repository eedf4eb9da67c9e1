// SPDX-License-Identifier: MIT
/* The calls that add nodes and that read and change what they do; each kind's own calls are the general ones underneath. */
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
	GTRY(gparams_take(&p, np, NULL, g));
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

/* ---- Reading ---- */

static CUresult get(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams *out)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gnode *n;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	n = node_of(node);
	if (n && n->p.type == type) {
		gparams_show(&n->p, out);
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_KERNEL, &np));
	memcpy(p, &np.kernel, sizeof(*p));
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_KERNEL, &np));
	memcpy(p, &np.kernel, sizeof(*p));
	/* The first edition knows no kernels of libraries by name, but a CUkernel may stand for a CUfunction. */
	if (!p->func)
		p->func = (CUfunction)np.kernel.kern;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &np));
	*p = np.memcpy.copyParams;
	return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEMSET, &np));
	memcpy(p, &np.memset, sizeof(*p));
	return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_HOST, &np));
	*p = (CUDA_HOST_NODE_PARAMS_v1){.fn = np.host.fn, .userData = np.host.userData};
	return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
	CUgraphNodeParams np;

	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_GRAPH, &np));
	*graph = np.graph.graph;
	return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
	CUgraphNodeParams np;

	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &np));
	*event = np.eventRecord.event;
	return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event)
{
	CUgraphNodeParams np;

	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &np));
	*event = np.eventWait.event;
	return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &np));
	*p = (CUDA_BATCH_MEM_OP_NODE_PARAMS){np.memOp.ctx, np.memOp.count, np.memOp.paramArray, np.memOp.flags};
	return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &np));
	memcpy(p, &np.alloc, sizeof(*p));
	return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *dptr)
{
	CUgraphNodeParams np;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, &np));
	*dptr = np.free.dptr;
	return CUDA_SUCCESS;
}

/* ---- Changing ---- */

static bool changeable(CUgraphNodeType t)
{
	return t == CU_GRAPH_NODE_TYPE_KERNEL || t == CU_GRAPH_NODE_TYPE_MEMCPY || t == CU_GRAPH_NODE_TYPE_MEMSET ||
	       t == CU_GRAPH_NODE_TYPE_HOST || t == CU_GRAPH_NODE_TYPE_WAIT_EVENT || t == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
	       t == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gparams p;
	struct gnode *n;

	GTRY(gb_enter());
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	n = node_of(node);
	if (n && changeable(params->type))
		r = gparams_take(&p, params, &n->p, n->graph);
	if (r == CUDA_SUCCESS)
		node_replace(n, &p);
	graph_unlock();
	return r;
}

#define SET(node, kind, ...)                                                                                                     \
	({                                                                                                                       \
		CUgraphNodeParams np_ = {.type = kind, __VA_ARGS__};                                                             \
		cuGraphNodeSetParams(node, &np_);                                                                                \
	})

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return cuGraphNodeSetParams(node, &np);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&np.kernel, p, sizeof(*p));
	return cuGraphNodeSetParams(node, &np);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &np));
	np.memcpy.copyParams = *p;
	return cuGraphNodeSetParams(node, &np);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1 *p)
{
	CUgraphNodeParams np;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(get(node, CU_GRAPH_NODE_TYPE_MEMSET, &np));
	np.memset = memset_v2(p, np.memset.ctx);
	return cuGraphNodeSetParams(node, &np);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1 *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return SET(node, CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = p->fn, .userData = p->userData});
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return SET(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event});
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return SET(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event});
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return SET(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = {p->ctx, p->count, p->paramArray, p->flags});
}

/* ---- A kernel node's attributes ---- */

static struct gkernel *kernel_of(CUgraphNode node)
{
	struct gnode *n = node_of(node);

	return n && n->p.type == CU_GRAPH_NODE_TYPE_KERNEL ? &n->p.kernel : NULL;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gkernel *k;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	k = kernel_of(node);
	if (k && value) {
		*value = (CUkernelNodeAttrValue){0};
		for (unsigned int i = 0; i < k->nattrs; i++)
			if (k->attr[i].id == id)
				*value = k->attr[i].value;
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

/* Checked as one launch's would be. */
static CUresult set_attr(struct gnode *n, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	struct gkernel *k = &n->p.kernel;
	CUlaunchAttribute list[k->nattrs + 1];
	struct gparams changed;
	unsigned int i = 0;
	CUresult r;

	memcpy(list, k->attr, k->nattrs * sizeof(*list));
	while (i < k->nattrs && list[i].id != id)
		i++;
	list[i] = (CUlaunchAttribute){.id = id, .value = *value};
	GTRY(gparams_copy(&changed, &n->p, false));
	r = gkernel_set_attrs(&changed.kernel, list, i < k->nattrs ? k->nattrs : k->nattrs + 1);
	if (r == CUDA_SUCCESS)
		r = gb_check(&changed);
	if (r == CUDA_SUCCESS)
		node_replace(n, &changed);
	else
		gparams_free(&changed);
	return r;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	if (kernel_of(node) && value)
		r = set_attr(node_of(node), id, value);
	graph_unlock();
	return r;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gkernel *a, *b;

	GTRY(gb_enter());
	pthread_mutex_lock(&graph_lock);
	a = kernel_of(to);
	b = kernel_of(from);
	if (a && b)
		r = a == b ? CUDA_SUCCESS : gkernel_set_attrs(a, b->attr, b->nattrs);
	graph_unlock();
	return r;
}
