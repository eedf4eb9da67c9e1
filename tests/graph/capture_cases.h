/* SPDX-License-Identifier: MIT */
/* What capture promises: how it spreads and ends, and what makes it void. A part of cases.h. */
#ifndef TESTS_GRAPH_CAPTURE_CASES_H
#define TESTS_GRAPH_CAPTURE_CASES_H

static void fork_and_join(void)
{
	CUstreamCaptureStatus status;
	CUgraphNode nodes[8], from[8], to[8];
	const CUgraphNode *deps;
	CUevent fork, join;
	CUgraph g, same;
	size_t n = 8, edges = 8;
	cuuint64_t id = 0, id2 = 0;
	CUstream a, b;
	CUgraphExec x;

	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	poke(gmem, 1);
	poke(gmem + 4, 1);
	must(cuStreamIsCapturing(a, &status));
	is_int(status, CU_STREAM_CAPTURE_STATUS_NONE, "no capture yet");
	is_cu(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	is_cu(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
	launch_axpb(a, gmem, 2, 0);
	is_cu(cuEventRecord(fork, a), CUDA_SUCCESS);
	is_cu(cuStreamWaitEvent(b, fork, 0), CUDA_SUCCESS);
	must(cuStreamGetCaptureInfo(a, &status, &id, &same, &deps, NULL, &n));
	ok(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && same && n == 1, "what a capturing stream says of itself");
	must(cuStreamGetCaptureInfo(b, &status, &id2, NULL, NULL, NULL, NULL));
	ok(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id == id2, "capture spreads by an event");
	launch_axpb(b, gmem + 4, 5, 1);
	launch_axpb(a, gmem, 1, 3);
	must(cuEventRecord(join, b));
	must(cuStreamWaitEvent(a, join, 0));
	must(cuMemsetD32Async(gmem + 8, 77, 1, a));
	is_cu(cuStreamEndCapture(a, &g), CUDA_SUCCESS);
	must(cuStreamIsCapturing(b, &status));
	is_int(status, CU_STREAM_CAPTURE_STATUS_NONE, "the end is everybody's");
	ok(g == same, "the graph is the one that was shown");
	n = 8;
	must(cuGraphGetNodes(g, nodes, &n));
	must(cuGraphGetEdges(g, from, to, NULL, &edges));
	ok(n == 4 && edges == 4, "four nodes, four edges (%zu, %zu)", n, edges);
	is_int(peek(gmem), 1, "nothing has run");
	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphLaunch(x, b));
	must(cuGraphLaunch(x, a));
	must(cuStreamSynchronize(a));
	ok(peek(gmem) == 13 && peek(gmem + 4) == 31 && peek(gmem + 8) == 77, "two replays: %u %u %u", peek(gmem), peek(gmem + 4),
	   peek(gmem + 8));
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(fork));
	must(cuEventDestroy(join));
	must(cuStreamDestroy(a));
	must(cuStreamDestroy(b));
}

/* Begins a capture on @s and makes it void with the call in between. */
#define SPOILS(s, mode, call, want)                                                                                              \
	do {                                                                                                                     \
		CUgraph g_;                                                                                                      \
		must(cuStreamBeginCapture(s, mode));                                                                             \
		launch_axpb(s, gmem, 1, 1);                                                                                      \
		is_cu(call, want);                                                                                               \
		is_cu(cuStreamEndCapture(s, &g_), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);                                        \
		ok(!g_, "and there is no graph");                                                                                \
	} while (0)

static void *end_elsewhere(void *stream)
{
	CUgraph g;

	must(cuCtxSetCurrent(gctx));
	return (void *)(intptr_t)cuStreamEndCapture((CUstream)stream, &g);
}

static void capture_rules(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUevent e, outside, unused;
	CUstream a, b, blocking, gone;
	CUdeviceptr d = 0;
	pthread_t t;
	uint32_t v;
	CUgraph g;
	void *r;

	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&unused, CU_EVENT_DISABLE_TIMING));
	must(cuEventRecord(outside, b));
	is_cu(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_cu(cuStreamBeginCapture(a, 3), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamEndCapture(a, &g), CUDA_ERROR_ILLEGAL_STATE);

	SPOILS(a, CU_STREAM_CAPTURE_MODE_GLOBAL, cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SPOILS(a, CU_STREAM_CAPTURE_MODE_GLOBAL, cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SPOILS(a, CU_STREAM_CAPTURE_MODE_GLOBAL, cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SPOILS(a, CU_STREAM_CAPTURE_MODE_GLOBAL, cuMemAlloc(&d, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SPOILS(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, cuMemAlloc(&d, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	SPOILS(a, CU_STREAM_CAPTURE_MODE_GLOBAL, cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	SPOILS(blocking, CU_STREAM_CAPTURE_MODE_RELAXED, cuMemcpyDtoH(&v, gmem, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	SPOILS(blocking, CU_STREAM_CAPTURE_MODE_RELAXED, cuMemsetD32(gmem, 1, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);

	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
	launch_axpb(a, gmem, 1, 1);
	is_cu(cuMemAlloc(&d, 4096), CUDA_SUCCESS);
	must(cuMemFree(d));
	is_cu(cuStreamWaitEvent(a, unused, 0), CUDA_SUCCESS);
	must(cuEventRecord(e, a));
	is_cu(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
	is_cu(cuStreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	is_cu(cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT);
	must(cuEventRecord(e, a));
	is_cu(cuEventSynchronize(e), CUDA_SUCCESS);

	must(cuThreadExchangeStreamCaptureMode(&mode));
	is_int(mode, CU_STREAM_CAPTURE_MODE_GLOBAL, "a thread's mode to begin with");
	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_cu(cuMemAlloc(&d, 4096), CUDA_SUCCESS);
	must(cuThreadExchangeStreamCaptureMode(&mode));
	is_int(mode, CU_STREAM_CAPTURE_MODE_RELAXED, "and then");
	is_cu(cuStreamEndCapture(a, &g), CUDA_SUCCESS);
	must(cuGraphDestroy(g));
	must(cuMemFree(d));

	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuEventRecord(e, a));
	must(cuStreamWaitEvent(b, e, 0));
	launch_axpb(b, gmem, 1, 1);
	is_cu(cuStreamEndCapture(b, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	is_cu(cuStreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

	must(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuEventRecord(e, a));
	must(cuStreamWaitEvent(gone, e, 0));
	launch_axpb(gone, gmem, 1, 1);
	must(cuEventRecord(e, gone));
	must(cuStreamWaitEvent(a, e, 0));
	is_cu(cuStreamDestroy(gone), CUDA_SUCCESS);
	is_cu(cuStreamEndCapture(a, &g), CUDA_SUCCESS);
	must(cuGraphDestroy(g));

	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuStreamBeginCapture(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch_axpb(a, gmem, 1, 1);
	must(cuEventRecord(e, a));
	is_cu(cuStreamWaitEvent(b, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	is_cu(cuStreamEndCapture(a, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	is_cu(cuStreamEndCapture(b, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	pthread_create(&t, NULL, end_elsewhere, a);
	pthread_join(t, &r);
	is_int((intptr_t)r, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "another thread may not end it");
	must(cuStreamEndCapture(a, &g));
	must(cuGraphDestroy(g));
	must(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
	pthread_create(&t, NULL, end_elsewhere, a);
	pthread_join(t, &r);
	is_int((intptr_t)r, CUDA_SUCCESS, "a relaxed one may be");
	poke(gmem, 5);
	is_int(peek(gmem), 5, "after all that, work runs");
	must(cuEventDestroy(e));
	must(cuEventDestroy(outside));
	must(cuEventDestroy(unused));
	must(cuStreamDestroy(a));
	must(cuStreamDestroy(b));
	must(cuStreamDestroy(blocking));
}

#endif
