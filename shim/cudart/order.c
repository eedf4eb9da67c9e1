/* SPDX-License-Identifier: MIT */
/* What puts work in order on a stream: records, waits, callbacks, capture. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"
#include <stdlib.h>

cudaError_t cudaStreamQuery(cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamQuery(stream_of(s)));
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamSynchronize(stream_of(s)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamWaitEvent(stream_of(s), e, flags));
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuEventRecord(e, stream_of(s)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuEventRecordWithFlags(e, stream_of(s), flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t s, unsigned int *flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamGetFlags(stream_of(s), flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t s, int *priority)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamGetPriority(stream_of(s), priority));
}

cudaError_t cudaStreamGetId(cudaStream_t s, unsigned long long *id)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamGetId(stream_of(s), id));
}

cudaError_t cudaStreamGetDevice(cudaStream_t s, int *device)
{
	CUdevice d;

	TRY(cudart_context());
	if (!device)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuStreamGetDevice(stream_of(s), &d)));
	*device = d;
	return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
	TRY(cudart_context());
	return cudart_done(drv.cuLaunchHostFunc(stream_of(s), fn, arg));
}

struct callback {
	cudaStreamCallback_t fn;
	cudaStream_t stream; /* as the program called it */
	void *arg;
};

static void call_back(CUstream s, CUresult r, void *arg)
{
	struct callback c = *(struct callback *)arg;

	(void)s;
	free(arg);
	c.fn(c.stream, cudart_error(r), c.arg);
}

cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t fn, void *arg, unsigned int flags)
{
	struct callback *c;
	CUresult r;

	TRY(cudart_context());
	if (!fn || flags)
		return cudart_fail(cudaErrorInvalidValue);
	c = malloc(sizeof(*c));
	if (!c)
		return cudart_fail(cudaErrorMemoryAllocation);
	c->fn = fn;
	c->stream = s;
	c->arg = arg;
	r = drv.cuStreamAddCallback(stream_of(s), call_back, c, 0);
	if (r)
		free(c);
	return cudart_done(r);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamBeginCapture(stream_of(s), (CUstreamCaptureMode)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamEndCapture(stream_of(s), graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status)
{
	CUstreamCaptureStatus st;

	TRY(cudart_context());
	if (!status)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuStreamIsCapturing(stream_of(s), &st)));
	*status = (enum cudaStreamCaptureStatus)st;
	return cudaSuccess;
}
