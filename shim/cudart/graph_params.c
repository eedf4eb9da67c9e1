/* SPDX-License-Identifier: MIT */
/* What a node of a graph is to do, from the runtime's words to the driver's. */
#include "shim/cudart/graph_node.h"
#include <string.h>

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams), "node parameters differ");
_Static_assert(sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2), "node parameters differ");
_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "pool properties differ");

cudaError_t kernel_params(CUgraphNodeParams *to, const struct cudaKernelNodeParams *p)
{
	CUkernel k;
	cudaError_t e;

	if (!p)
		return cudaErrorInvalidValue;
	e = cudart_kernel(p->func, &k);
	if (e)
		return e;
	*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL,
				  .kernel = {.gridDimX = p->gridDim.x,
					     .gridDimY = p->gridDim.y,
					     .gridDimZ = p->gridDim.z,
					     .blockDimX = p->blockDim.x,
					     .blockDimY = p->blockDim.y,
					     .blockDimZ = p->blockDim.z,
					     .sharedMemBytes = p->sharedMemBytes,
					     .kernelParams = p->kernelParams,
					     .extra = p->extra,
					     .kern = k}};
	return cudaSuccess;
}

cudaError_t copy3d_params(CUgraphNodeParams *to, const struct cudaMemcpy3DParms *p)
{
	*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	return cudart_describe3d(&to->memcpy.copyParams, p);
}

cudaError_t copy1d_params(CUgraphNodeParams *to, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D *c = &to->memcpy.copyParams;

	*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	if (!dst || !src)
		return cudaErrorInvalidValue;
	kind = cudart_kind(dst, src, kind);
	if ((unsigned int)kind > cudaMemcpyDeviceToDevice)
		return cudaErrorInvalidMemcpyDirection;
	*c = (CUDA_MEMCPY3D){.WidthInBytes = bytes, .Height = 1, .Depth = 1};
	c->srcMemoryType =
		kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c->dstMemoryType =
		kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c->srcHost = src;
	c->srcDevice = (CUdeviceptr)src;
	c->dstHost = dst;
	c->dstDevice = (CUdeviceptr)dst;
	return cudaSuccess;
}

static cudaError_t symbol_at(const void *symbol, size_t bytes, size_t offset, char **at)
{
	CUdeviceptr d;
	size_t size;
	cudaError_t e = cudart_symbol(symbol, &d, &size);

	if (!e && (offset > size || bytes > size - offset))
		e = cudaErrorInvalidValue;
	*at = (char *)d + offset;
	return e;
}

/* The other side is the host's or a device's, as the direction says. */
cudaError_t to_symbol_params(CUgraphNodeParams *to, const void *symbol, const void *src, size_t bytes, size_t offset,
			     enum cudaMemcpyKind kind)
{
	char *at;
	cudaError_t e = symbol_at(symbol, bytes, offset, &at);

	if (!e && kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		e = cudaErrorInvalidMemcpyDirection;
	return e ? e : copy1d_params(to, at, src, bytes, kind);
}

cudaError_t from_symbol_params(CUgraphNodeParams *to, void *dst, const void *symbol, size_t bytes, size_t offset,
			       enum cudaMemcpyKind kind)
{
	char *at;
	cudaError_t e = symbol_at(symbol, bytes, offset, &at);

	if (!e && kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		e = cudaErrorInvalidMemcpyDirection;
	return e ? e : copy1d_params(to, dst, at, bytes, kind);
}

cudaError_t fill_params(CUgraphNodeParams *to, const struct cudaMemsetParams *p)
{
	if (!p)
		return cudaErrorInvalidValue;
	*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
				  .memset = {.dst = (CUdeviceptr)p->dst,
					     .pitch = p->pitch,
					     .value = p->value,
					     .elementSize = p->elementSize,
					     .width = p->width,
					     .height = p->height}};
	return cudaSuccess;
}

cudaError_t host_params(CUgraphNodeParams *to, const struct cudaHostNodeParams *p)
{
	if (!p)
		return cudaErrorInvalidValue;
	*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = p->fn, .userData = p->userData}};
	return cudaSuccess;
}

CUgraphNodeParams event_params(CUgraphNodeType type, cudaEvent_t event)
{
	CUgraphNodeParams p = {.type = type};

	if (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		p.eventWait.event = event;
	else
		p.eventRecord.event = event;
	return p;
}

cudaError_t node_params(CUgraphNodeParams *to, const struct cudaGraphNodeParams *from)
{
	if (!from)
		return cudaErrorInvalidValue;
	switch (from->type) {
	case cudaGraphNodeTypeKernel:
		return kernel_params(to, (const struct cudaKernelNodeParams *)&from->kernel);
	case cudaGraphNodeTypeMemcpy:
		return from->memcpy.flags ? cudaErrorInvalidValue : copy3d_params(to, &from->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		return fill_params(to, (const struct cudaMemsetParams *)&from->memset);
	case cudaGraphNodeTypeConditional:
		*to = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
					  .conditional = {.handle = from->conditional.handle,
							  .type = (CUgraphConditionalNodeType)from->conditional.type,
							  .size = from->conditional.size}};
		return cudaSuccess;
	default: /* the others lie alike */
		memcpy(to, from, sizeof(*to));
		return cudaSuccess;
	}
}
