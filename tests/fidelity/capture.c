// SPDX-License-Identifier: MIT
/* Stream capture: what it prohibits, with which error, and what is left of it afterwards. */
#include "tests/fidelity/fidelity.h"

static CUstream s, t;
static CUdeviceptr mem;

static void begin(CUstreamCaptureMode mode)
{
	must(cuStreamBeginCapture(s, mode));
}

/* Ends a capture that may have been invalidated. */
static void drop(void)
{
	CUgraph g = NULL;

	cuStreamEndCapture(s, &g);
	if (g)
		cuGraphDestroy(g);
}

static void rules(void)
{
	CUstreamCaptureStatus st = 99;
	CUgraph g = (CUgraph)1;
	size_t n = 99;

	/* Driver API, cuStreamBeginCapture: not on the legacy stream */
	cu(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
	/* Driver API, cuStreamBeginCapture: a mode that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture(s, (CUstreamCaptureMode)77));
	/* Driver API, cuStreamIsCapturing: NONE before, ACTIVE during */
	cu(CUDA_SUCCESS, cuStreamIsCapturing(s, &st));
	same(st, CU_STREAM_CAPTURE_STATUS_NONE, "not capturing");
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuStreamIsCapturing(s, &st));
	same(st, CU_STREAM_CAPTURE_STATUS_ACTIVE, "capturing");
	/* Driver API, cuStreamIsCapturing: of the legacy stream while a blocking stream captures; that capture goes on */
	cu(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CU_STREAM_LEGACY, &st));
	must(cuStreamIsCapturing(s, &st));
	same(st, CU_STREAM_CAPTURE_STATUS_ACTIVE, "still capturing");
	/* Driver API, cuStreamEndCapture: the graph of what was given */
	must(cuMemsetD32Async(mem, 1, 1, s));
	must(cuMemsetD32Async(mem, 2, 1, s));
	cu(CUDA_SUCCESS, cuStreamEndCapture(s, &g));
	must(cuGraphGetNodes(g, NULL, &n));
	same(n, 2, "nodes captured");
	must(cuGraphGetEdges(g, NULL, NULL, NULL, &n));
	same(n, 1, "edges captured: the stream's order");
	must(cuGraphDestroy(g));
}

/* Each of these in a capture gives an error, and the capture is over. */
static void prohibited(void)
{
	CUstreamCaptureStatus st = 99;
	CUgraph g = (CUgraph)1;
	CUdeviceptr p = 0;
	CUevent e, outside;

	must(cuEventCreate(&e, 0));
	must(cuEventCreate(&outside, 0));
	/* Programming Guide, Prohibited and Unhandled Operations: waiting for a stream that captures */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
	/* Programming Guide, Invalidation: the capture is invalidated */
	must(cuStreamIsCapturing(s, &st));
	same(st, CU_STREAM_CAPTURE_STATUS_INVALIDATED, "the capture is invalidated");
	/* Programming Guide, Invalidation: more work on it gives an error */
	cu(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(mem, 1, 1, s));
	/* Programming Guide, Invalidation: cuStreamEndCapture gives an error and a NULL graph */
	cu(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
	probe(!g, "the graph is NULL");
	/* Driver API, cuStreamEndCapture: and the stream can be used again */
	cu(CUDA_SUCCESS, cuStreamSynchronize(s));
	/* Programming Guide, Prohibited and Unhandled Operations: asking whether the stream is done */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(s));
	drop();
	/* Programming Guide, Prohibited and Unhandled Operations: waiting for an event of the capture */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuEventRecord(e, s));
	cu(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(e));
	drop();
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuEventRecord(e, s));
	cu(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
	drop();
	/* Programming Guide, Prohibited and Unhandled Operations: waiting for the context, which has a capturing stream */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
	drop();
	/* Driver API, cuThreadExchangeStreamCaptureMode: cuMemAlloc is potentially unsafe, and so prohibited */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&p, 16));
	drop();
	/* Driver API, cuThreadExchangeStreamCaptureMode: not in a relaxed capture */
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	cu(CUDA_SUCCESS, cuMemAlloc(&p, 16));
	drop();
	must(cuMemFree(p));
	/* Programming Guide, Prohibited and Unhandled Operations: the legacy stream while a blocking stream captures */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(mem, 1, 1, CU_STREAM_LEGACY));
	drop();
	/* Programming Guide, Cross-stream Dependencies and Events: an event recorded outside of the capture */
	must(cuEventRecord(outside, t));
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	cu(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, outside, 0));
	drop();
	/* Programming Guide, Cross-stream Dependencies and Events: a fork that was not joined */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuMemsetD32Async(mem, 1, 1, t));
	cu(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &g));
	/* Driver API, cuStreamEndCapture: on the stream that it was begun on */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	cu(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &g));
	drop();
	/* Programming Guide, Prohibited and Unhandled Operations: merging two captures */
	begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
	must(cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuEventRecord(e, s));
	cu(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(t, e, 0));
	drop();
	cuStreamEndCapture(t, &g);
	must(cuEventDestroy(e));
	must(cuEventDestroy(outside));
}

static int ended;

static void *ends(void *arg)
{
	CUgraph g;

	must(cuCtxSetCurrent(arg));
	ended = cuStreamEndCapture(s, &g);
	return NULL;
}

static void threads(CUcontext c)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	pthread_t th;

	/* Driver API, cuStreamEndCapture: from the thread that began it, unless it is relaxed */
	begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	pthread_create(&th, NULL, ends, c);
	pthread_join(th, NULL);
	same(ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "another thread can't end it");
	drop();
	begin(CU_STREAM_CAPTURE_MODE_RELAXED);
	pthread_create(&th, NULL, ends, c);
	pthread_join(th, NULL);
	same(ended, CUDA_SUCCESS, "a relaxed one ends on any thread");
	/* Driver API, cuThreadExchangeStreamCaptureMode: a thread begins as global; the old mode comes back */
	cu(CUDA_SUCCESS, cuThreadExchangeStreamCaptureMode(&mode));
	same(mode, CU_STREAM_CAPTURE_MODE_GLOBAL, "a thread's first mode");
	cuThreadExchangeStreamCaptureMode(&mode);
	same(mode, CU_STREAM_CAPTURE_MODE_RELAXED, "the mode set before");
}

int main(void)
{
	CUcontext c = primary();

	must(cuStreamCreate(&s, 0));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&mem, 64));
	rules();
	prohibited();
	threads(c);
	return tap_done();
}
