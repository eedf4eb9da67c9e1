// SPDX-License-Identifier: MIT
/* The calls that read and change what a node does; each kind's own calls are the general ones underneath. */
#include "lib/graph/graph.h"

#include <string.h>

static struct gnode *node_of(CUgraphNode handle)
{
	return ghandle_find(handle, GRAPH_KIND_NODE);
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
		r = gparams_take(&p, params, &n->p);
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
	np.memset = (CUDA_MEMSET_NODE_PARAMS_v2){p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, np.memset.ctx};
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
