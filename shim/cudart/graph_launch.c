/* SPDX-License-Identifier: MIT */
/* Graphs in streams: launches, and what a capture is asked and told. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "instantiation parameters differ");

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphLaunch(exec, stream_of(s)));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuGraphUpload(exec, stream_of(s)));
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphInstantiateParams *params)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS p;
	CUresult r;

	TRY(cudart_context());
	if (!params)
		return cudart_fail(cudaErrorInvalidValue);
	p = (CUDA_GRAPH_INSTANTIATE_PARAMS){.flags = params->flags, .hUploadStream = stream_of(params->uploadStream)};
	r = drv.cuGraphInstantiateWithParams(exec, graph, &p);
	params->errNode_out = p.hErrNode_out;
	params->result_out = (cudaGraphInstantiateResult)p.result_out;
	return cudart_done(r);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t s, cudaGraph_t graph, const cudaGraphNode_t *deps,
					  const cudaGraphEdgeData *data, size_t n, enum cudaStreamCaptureMode mode)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamBeginCaptureToGraph(stream_of(s), graph, deps, (const CUgraphEdgeData *)data, n,
							   (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
				     cudaGraph_t *graph, const cudaGraphNode_t **deps, const cudaGraphEdgeData **data, size_t *n)
{
	CUstreamCaptureStatus st;
	cuuint64_t number = 0;

	TRY(cudart_context());
	if (!status)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuStreamGetCaptureInfo(stream_of(s), &st, &number, graph, deps, (const CUgraphEdgeData **)data, n)));
	*status = (enum cudaStreamCaptureStatus)st;
	if (id && st != CU_STREAM_CAPTURE_STATUS_NONE)
		*id = number;
	return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *deps, const cudaGraphEdgeData *data, size_t n,
						unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamUpdateCaptureDependencies(stream_of(s), deps, (const CUgraphEdgeData *)data, n, flags));
}
