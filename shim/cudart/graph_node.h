/* SPDX-License-Identifier: MIT */
/* A node's parameters between the runtime's words and the driver's; errors that are not remembered yet. */
#ifndef RGPU_CUDART_GRAPH_NODE_H
#define RGPU_CUDART_GRAPH_NODE_H

#include "shim/cudart/cudart.h"

cudaError_t node_params(CUgraphNodeParams *to, const struct cudaGraphNodeParams *from);
cudaError_t kernel_params(CUgraphNodeParams *to, const struct cudaKernelNodeParams *p);
cudaError_t copy3d_params(CUgraphNodeParams *to, const struct cudaMemcpy3DParms *p);
cudaError_t copy1d_params(CUgraphNodeParams *to, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t to_symbol_params(CUgraphNodeParams *to, const void *symbol, const void *src, size_t bytes, size_t offset,
			     enum cudaMemcpyKind kind);
cudaError_t from_symbol_params(CUgraphNodeParams *to, void *dst, const void *symbol, size_t bytes, size_t offset,
			       enum cudaMemcpyKind kind);
cudaError_t fill_params(CUgraphNodeParams *to, const struct cudaMemsetParams *p);
cudaError_t host_params(CUgraphNodeParams *to, const struct cudaHostNodeParams *p);
CUgraphNodeParams event_params(CUgraphNodeType type, cudaEvent_t event);

#endif
