/* SPDX-License-Identifier: MIT */
/* Graphs as a whole: made, cloned, looked at; user objects and graphs' memory. */
#include "shim/cudart/cudart.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edge data differ between runtime and driver");
_Static_assert((int)cudaGraphNodeTypeConditional == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL, "node types differ");

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphCreate(graph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphDestroy(graph));
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t original)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphClone(clone, original));
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original, cudaGraph_t clone)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphNodeFindInClone(node, original, clone));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	CUgraphNodeType t;

	TRY(cudart_context());
	if (!type)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphNodeGetType(node, &t)));
	*type = (enum cudaGraphNodeType)t;
	return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphGetNodes(graph, nodes, n));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphGetRootNodes(graph, nodes, n));
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphGetEdges(graph, from, to, (CUgraphEdgeData *)data, n));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *deps, cudaGraphEdgeData *data, size_t *n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphNodeGetDependencies(node, deps, (CUgraphEdgeData *)data, n));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphNodeGetDependentNodes(node, nodes, (CUgraphEdgeData *)data, n));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
				     const cudaGraphEdgeData *data, size_t n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphAddDependencies(graph, from, to, (const CUgraphEdgeData *)data, n));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
					const cudaGraphEdgeData *data, size_t n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphRemoveDependencies(graph, from, to, (const CUgraphEdgeData *)data, n));
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphDestroyNode(node));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned int value,
					     unsigned int flags)
{
	CUgraphConditionalHandle h;

	TRY(cudart_context());
	if (!handle)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuGraphConditionalHandleCreate(&h, graph, NULL, value, flags)));
	*handle = h;
	return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphDebugDotPrint(graph, path, flags));
}

/* ---- User objects ---- */

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy, unsigned int count,
				 unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuUserObjectCreate(object, ptr, destroy, count, flags));
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	TRY(cudart_context());
	return cudart_done(drv.cuUserObjectRetain(object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	TRY(cudart_context());
	return cudart_done(drv.cuUserObjectRelease(object, count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphRetainUserObject(graph, object, count, flags));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphReleaseUserObject(graph, object, count));
}

/* ---- Graphs' memory ---- */

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	TRY(cudart_init());
	return cudart_done(drv.cuDeviceGraphMemTrim(device));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value)
{
	TRY(cudart_init());
	return cudart_done(drv.cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void *value)
{
	TRY(cudart_init());
	return cudart_done(drv.cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value));
}
