/* SPDX-License-Identifier: MIT */
/* Executable graphs: instantiated, changed, updated. What takes a stream is in graph_launch.c. */
#include "shim/cudart/graph_node.h"

_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo), "update results differ");

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphInstantiate(exec, graph, flags));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	cuuint64_t f;

	TRY(cudart_context());
	if (!flags)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphExecGetFlags(exec, &f)));
	*flags = f;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphExecDestroy(exec));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphNodeSetEnabled(exec, node, enabled));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphNodeGetEnabled(exec, node, enabled));
}

static cudaError_t set(cudaGraphExec_t exec, cudaGraphNode_t node, CUgraphNodeParams *p)
{
	return cudart_done(drv.cuGraphExecNodeSetParams(exec, node, p));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(node_params(&p, params));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
					     const struct cudaKernelNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(kernel_params(&p, params));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy3d_params(&p, params));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src,
					       size_t bytes, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(copy1d_params(&p, dst, src, bytes, kind));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol,
						     const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(to_symbol_params(&p, symbol, src, bytes, offset, kind));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *symbol,
						       size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(from_symbol_params(&p, dst, symbol, bytes, offset, kind));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(fill_params(&p, params));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *params)
{
	CUgraphNodeParams p;

	TRY(cudart_context());
	TRY(host_params(&p, params));
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = child}};

	TRY(cudart_context());
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);

	TRY(cudart_context());
	return set(exec, node, &p);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);

	TRY(cudart_context());
	return set(exec, node, &p);
}
