/* SPDX-License-Identifier: MIT */
/* Nodes of graphs: each kind's own calls are the general ones underneath, with the parameters in the driver's words. */
#include "shim/cudart/graph_node.h"
#include <string.h>

/* ---- Adding ---- */

static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, CUgraphNodeParams *p)
{
	return cudart_done(drv.cuGraphAddNode(node, graph, deps, NULL, n, p));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, const cudaGraphEdgeData *data,
			     size_t n, struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(node_params(&p, params));
	TRY(cudart_error(drv.cuGraphAddNode(node, graph, deps, (const CUgraphEdgeData *)data, n, &p)));
	if (p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.dptr = (void *)p.alloc.dptr;
	if (p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		params->conditional.phGraph_out = p.conditional.phGraph_out;
	return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				   const struct cudaKernelNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(kernel_params(&p, params));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				   const struct cudaMemcpy3DParms *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy3d_params(&p, params));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *dst,
				     const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy1d_params(&p, dst, src, bytes, kind));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
					   const void *symbol, const void *src, size_t bytes, size_t offset,
					   enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(to_symbol_params(&p, symbol, src, bytes, offset, kind));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
					     void *dst, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(from_symbol_params(&p, dst, symbol, bytes, offset, kind));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				   const struct cudaMemsetParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(fill_params(&p, params));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				 const struct cudaHostNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(host_params(&p, params));
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				       cudaGraph_t child)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}};

	TRY(cudart_context());
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

	TRY(cudart_context());
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
					cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);

	TRY(cudart_context());
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				      cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);

	TRY(cudart_context());
	return add(node, graph, deps, n, &p);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n,
				     struct cudaMemAllocNodeParams *params)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};

	TRY(cudart_context());
	if (!params)
		return cudart_fail(cudaErrorInvalidValue);
	memcpy(&p.alloc, params, sizeof(p.alloc));
	TRY(cudart_error(drv.cuGraphAddNode(node, graph, deps, NULL, n, &p)));
	params->dptr = (void *)p.alloc.dptr;
	return cudaSuccess;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t n, void *dptr)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {(CUdeviceptr)dptr}};

	TRY(cudart_context());
	return add(node, graph, deps, n, &p);
}

/* ---- Reading ---- */

/* A kernel is what the program knows it by: its stub. */
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *out)
{
	CUDA_KERNEL_NODE_PARAMS p;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphKernelNodeGetParams(node, &p)));
	*out = (struct cudaKernelNodeParams){
		.func = (void *)cudart_kernel_host(p.kern ? p.kern : (CUkernel)p.func),
		.gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
		.blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
		.sharedMemBytes = p.sharedMemBytes,
		.kernelParams = p.kernelParams,
	};
	return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *out)
{
	CUDA_MEMCPY3D c;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphMemcpyNodeGetParams(node, &c)));
	cudart_show3d(out, &c);
	return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *out)
{
	CUDA_MEMSET_NODE_PARAMS p;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphMemsetNodeGetParams(node, &p)));
	*out = (struct cudaMemsetParams){(void *)p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
	return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *out)
{
	CUDA_HOST_NODE_PARAMS p;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphHostNodeGetParams(node, &p)));
	*out = (struct cudaHostNodeParams){.fn = p.fn, .userData = p.userData};
	return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphChildGraphNodeGetGraph(node, graph));
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphEventRecordNodeGetEvent(node, event));
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphEventWaitNodeGetEvent(node, event));
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams *out)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p;

	TRY(cudart_context());
	if (!out)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphMemAllocNodeGetParams(node, &p)));
	_Static_assert(sizeof(*out) == sizeof(p), "node parameters differ");
	memcpy(out, &p, sizeof(*out));
	return cudaSuccess;
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphMemFreeNodeGetParams(node, dptr));
}

/* ---- Changing ---- */

static cudaError_t set(cudaGraphNode_t node, CUgraphNodeParams *p)
{
	return cudart_done(drv.cuGraphNodeSetParams(node, p));
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(node_params(&p, params));
	return set(node, &p);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(kernel_params(&p, params));
	return set(node, &p);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy3d_params(&p, params));
	return set(node, &p);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src, size_t bytes,
					   enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy1d_params(&p, dst, src, bytes, kind));
	return set(node, &p);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol, const void *src, size_t bytes,
						 size_t offset, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(to_symbol_params(&p, symbol, src, bytes, offset, kind));
	return set(node, &p);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst, const void *symbol, size_t bytes,
						   size_t offset, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(from_symbol_params(&p, dst, symbol, bytes, offset, kind));
	return set(node, &p);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(fill_params(&p, params));
	return set(node, &p);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(host_params(&p, params));
	return set(node, &p);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);

	TRY(cudart_context());
	return set(node, &p);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);

	TRY(cudart_context());
	return set(node, &p);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphKernelNodeGetAttribute(node, (CUlaunchAttributeID)attr, (CUlaunchAttributeValue *)value));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attr,
					    const cudaLaunchAttributeValue *value)
{
	TRY(cudart_context());
	return cudart_done(
		drv.cuGraphKernelNodeSetAttribute(node, (CUlaunchAttributeID)attr, (const CUlaunchAttributeValue *)value));
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphKernelNodeCopyAttributes(to, from));
}
