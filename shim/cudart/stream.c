/* SPDX-License-Identifier: MIT */
/* Streams and events: made, destroyed, waited for. What depends on the default stream's variant is in order.c. */
#include "shim/cudart/cudart.h"

cudaError_t cudaStreamCreate(cudaStream_t *s)
{
	return cudaStreamCreateWithFlags(s, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned int flags)
{
	TRY(cudart_context());
	if (!s)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuStreamCreate(s, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned int flags, int priority)
{
	TRY(cudart_context());
	if (!s)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuStreamCreateWithPriority(s, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	TRY(cudart_context());
	return cudart_done(drv.cuStreamDestroy(s));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	CUstreamCaptureMode m;

	TRY(cudart_init());
	if (!mode)
		return cudart_fail(cudaErrorInvalidValue);
	m = (CUstreamCaptureMode)*mode;
	TRY(cudart_error(drv.cuThreadExchangeStreamCaptureMode(&m)));
	*mode = (enum cudaStreamCaptureMode)m;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
	return cudaEventCreateWithFlags(e, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned int flags)
{
	TRY(cudart_context());
	if (!e)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuEventCreate(e, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	TRY(cudart_context());
	return cudart_done(drv.cuEventDestroy(e));
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	TRY(cudart_context());
	return cudart_done(drv.cuEventQuery(e));
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	TRY(cudart_context());
	return cudart_done(drv.cuEventSynchronize(e));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	TRY(cudart_context());
	if (!ms)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuEventElapsedTime(ms, start, end));
}
