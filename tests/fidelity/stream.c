// SPDX-License-Identifier: MIT
/* Streams and events: arguments, defaults, order and time. */
#include "tests/fidelity/fidelity.h"

static CUcontext ctx;
static CUdeviceptr mem;

static CUstream stream(unsigned int flags)
{
	CUstream s;

	must(cuStreamCreate(&s, flags));
	return s;
}

static CUevent event(unsigned int flags)
{
	CUevent e;

	must(cuEventCreate(&e, flags));
	return e;
}

/* Puts a gate into @s; the stream's work before it is done on return. */
static struct gate *hold(CUstream s)
{
	struct gate *g = calloc(1, sizeof(*g));

	must(cuLaunchHostFunc(s, gate_wait, g));
	while (!atomic_load(&g->reached))
		usleep(1000);
	return g;
}

static void release(struct gate *g, CUstream s)
{
	gate_open(g);
	must(cuStreamSynchronize(s));
	free(g);
}

/* Ready within 20 seconds? */
static bool ready(CUevent e)
{
	for (int i = 0; i < 20000; i++) {
		if (cuEventQuery(e) == CUDA_SUCCESS)
			return true;
		usleep(1000);
	}
	return false;
}

static void CUDA_CB called(CUstream s, CUresult r, void *arg)
{
	(void)s, (void)r, (void)arg;
}

static void arguments(void)
{
	int least, greatest, p = 99;
	unsigned long long ida, idb;
	unsigned int flags = 99;
	CUcontext c = NULL;
	CUstream s, t;

	/* Driver API, cuStreamCreate: flags that are not known, no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 1u << 20));
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
	s = stream(CU_STREAM_DEFAULT);
	/* Driver API, cuStreamGetFlags: what it was created with */
	must(cuStreamGetFlags(s, &flags));
	same(flags, CU_STREAM_DEFAULT, "a stream's flags");
	t = stream(CU_STREAM_NON_BLOCKING);
	must(cuStreamGetFlags(t, &flags));
	same(flags, CU_STREAM_NON_BLOCKING, "a non-blocking stream's flags");
	/* Driver API, cuStreamGetPriority: 0 unless asked for */
	must(cuStreamGetPriority(s, &p));
	same(p, 0, "a stream's priority");
	/* Driver API, cuStreamGetCtx: the context that it was created in */
	must(cuStreamGetCtx(s, &c));
	probe(c == ctx, "a stream's context");
	/* Driver API, cuStreamGetId: unique */
	must(cuStreamGetId(s, &ida));
	must(cuStreamGetId(t, &idb));
	probe(ida != idb, "two streams have two ids");
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	/* Driver API, cuStreamCreateWithPriority: outside the range, the nearest of its ends is taken */
	must(cuCtxGetStreamPriorityRange(&least, &greatest));
	must(cuStreamCreateWithPriority(&s, 0, 1000));
	must(cuStreamGetPriority(s, &p));
	same(p, least, "a priority below the range");
	must(cuStreamDestroy(s));
	must(cuStreamCreateWithPriority(&s, 0, -1000));
	must(cuStreamGetPriority(s, &p));
	same(p, greatest, "a priority above the range");
	/* Driver API, cuStreamWaitEvent: flags that are not known */
	CUevent e = event(0);
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(s, e, 1u << 20));
	/* Driver API, cuStreamWaitEvent: an event never recorded holds nothing */
	cu(CUDA_SUCCESS, cuStreamWaitEvent(s, e, 0));
	cu(CUDA_SUCCESS, cuStreamQuery(s));
	/* Driver API, cuStreamAddCallback: flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(s, called, NULL, 1));
	/* Driver API, cuLaunchHostFunc: no function */
	cu(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, NULL, NULL));
	must(cuStreamDestroy(s));
	must(cuEventDestroy(e));
}

static void events(void)
{
	CUevent e, f, untimed;
	CUstream s = stream(0);
	struct gate *g;
	float ms = -1;

	/* Driver API, cuEventCreate: flags that are not known, no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, 1u << 20));
	cu(CUDA_ERROR_INVALID_VALUE, cuEventCreate(NULL, 0));
	/* Driver API, cuEventCreate: INTERPROCESS needs DISABLE_TIMING */
	cu(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	e = event(0), f = event(0), untimed = event(CU_EVENT_DISABLE_TIMING);
	/* Driver API, cuEventQuery, cuEventSynchronize: never recorded counts as done */
	cu(CUDA_SUCCESS, cuEventQuery(e));
	cu(CUDA_SUCCESS, cuEventSynchronize(e));
	/* Driver API, cuEventElapsedTime: one of the events was never recorded */
	must(cuEventRecord(f, s));
	cu(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, e, f));
	/* Driver API, cuEventElapsedTime: one of the events keeps no time */
	must(cuEventRecord(untimed, s));
	must(cuStreamSynchronize(s));
	cu(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, untimed, f));
	/* Driver API, cuEventElapsedTime: of an event with itself */
	cu(CUDA_SUCCESS, cuEventElapsedTime(&ms, f, f));
	probe(ms == 0, "an event is 0 ms from itself");
	/* Driver API, cuEventElapsedTime: one of the events is not done yet */
	g = hold(s);
	must(cuEventRecord(e, s));
	cu(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, f, e));
	/* Driver API, cuEventQuery: work before it is not done yet */
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	/* Driver API, cuStreamQuery: work of it is not done yet */
	cu(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	release(g, s);
	cu(CUDA_SUCCESS, cuEventQuery(e));
	/* Driver API, cuEventElapsedTime: in the order of the records time is positive */
	cu(CUDA_SUCCESS, cuEventElapsedTime(&ms, f, e));
	probe(ms > 0, "later is later");
	/* Driver API, cuEventRecordWithFlags: flags that are not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(e, s, 1u << 20));
	/* Driver API, CUevent_record_flags, CUevent_wait_flags: EXTERNAL is invalid outside of capture */
	cu(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL));
	cu(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL));
	/* Driver API, cuEventRecord: event and stream are of two contexts */
	CUcontext other;
	CUevent foreign;
	must(cuCtxCreate(&other, NULL, 0, 0));
	foreign = event(0);
	must(cuCtxPopCurrent(NULL));
	cu(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(foreign, s));
	must(cuCtxDestroy(other));
	/* Driver API, cuEventDestroy: one not done yet may be destroyed */
	g = hold(s);
	must(cuEventRecord(e, s));
	cu(CUDA_SUCCESS, cuEventDestroy(e));
	release(g, s);
	must(cuEventDestroy(f));
	must(cuEventDestroy(untimed));
	must(cuStreamDestroy(s));
}

/* An event that a launch records is recorded as by cuEventRecord, for each question there is. */
static void recorded_by_a_launch(CUlaunchAttributeID id)
{
	CUevent e = event(CU_EVENT_DISABLE_TIMING), after = event(CU_EVENT_DISABLE_TIMING);
	CUstream s = stream(CU_STREAM_NON_BLOCKING), t = stream(CU_STREAM_NON_BLOCKING);
	CUlaunchAttribute a = {.id = id};
	CUlaunchConfig cfg = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
	struct gate *g;
	CUfunction f;
	CUmodule m;

	must(cuModuleLoadData(&m, kernels_ptx));
	must(cuModuleGetFunction(&f, m, "limited"));
	if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
		a.value.programmaticEvent.event = e;
	else
		a.value.launchCompletionEvent.event = e;
	cfg.hStream = s;
	cfg.attrs = &a;
	cfg.numAttrs = 1;
	for (int i = 0; i < 2; i++) {
		g = hold(s);
		must(cuLaunchKernelEx(&cfg, f, NULL, NULL));
		/* Driver API, CUlaunchAttributeID: the launch records the event */
		cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
		must(cuStreamWaitEvent(t, e, 0));
		must(cuEventRecord(after, t));
		cu(CUDA_ERROR_NOT_READY, cuStreamQuery(t));
		cu(CUDA_ERROR_NOT_READY, cuEventQuery(after));
		release(g, s);
		cu(CUDA_SUCCESS, cuEventSynchronize(e));
		cu(CUDA_SUCCESS, cuEventQuery(e));
		probe(ready(after), "what waited for it goes on");
	}
	must(cuModuleUnload(m));
	must(cuEventDestroy(e));
	must(cuEventDestroy(after));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

static void order(void)
{
	CUstream s = stream(CU_STREAM_DEFAULT), n = stream(CU_STREAM_NON_BLOCKING), t = stream(CU_STREAM_NON_BLOCKING);
	CUevent e = event(0), f = event(0);
	struct gate *g;

	/* Programming Guide, Implicit Synchronization: the legacy stream waits for blocking streams */
	g = hold(s);
	must(cuMemsetD32Async(mem, 1, 1, CU_STREAM_LEGACY));
	must(cuEventRecord(e, CU_STREAM_LEGACY));
	usleep(20000);
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	release(g, s);
	probe(ready(e), "the legacy stream goes on after the blocking one");
	/* Driver API, Stream synchronization behavior: a blocking stream waits for the legacy one */
	g = hold(CU_STREAM_LEGACY);
	must(cuEventRecord(e, s));
	usleep(20000);
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	/* Driver API, cuStreamCreate: a non-blocking stream does not wait for the legacy one */
	must(cuEventRecord(f, n));
	probe(ready(f), "a non-blocking stream goes on");
	/* Driver API, Stream synchronization behavior: the per-thread stream waits for the legacy one */
	must(cuMemsetD32Async(mem, 1, 1, CU_STREAM_PER_THREAD));
	must(cuEventRecord(f, CU_STREAM_PER_THREAD));
	usleep(20000);
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(f));
	release(g, CU_STREAM_LEGACY);
	probe(ready(e) && ready(f), "both go on after the legacy stream");
	/* Driver API, Stream synchronization behavior: the legacy stream does not wait for non-blocking ones */
	g = hold(n);
	must(cuMemsetD32Async(mem, 1, 1, CU_STREAM_LEGACY));
	must(cuEventRecord(e, CU_STREAM_LEGACY));
	probe(ready(e), "the legacy stream does not wait for a non-blocking one");
	/* Driver API, Stream synchronization behavior: the per-thread stream does not wait for others */
	must(cuEventRecord(e, CU_STREAM_PER_THREAD));
	probe(ready(e), "nor does the per-thread stream");
	/* Driver API, cuStreamWaitEvent: what it waits for is the record before it; a later one changes nothing */
	must(cuEventRecord(f, t));
	must(cuStreamWaitEvent(t, f, 0));
	must(cuEventRecord(f, n));
	must(cuEventRecord(e, t));
	probe(ready(e), "a later record does not hold who waited already");
	/* Driver API, cuStreamWaitEvent: work after it waits */
	must(cuStreamWaitEvent(t, f, 0));
	must(cuEventRecord(e, t));
	usleep(20000);
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	release(g, n);
	probe(ready(e), "and goes on when the event is done");
	/* Driver API, cuStreamDestroy: with work pending it returns at once, and the work is done */
	g = hold(n);
	must(cuEventRecord(e, n));
	cu(CUDA_SUCCESS, cuStreamDestroy(n));
	cu(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	gate_open(g);
	probe(ready(e), "the work of a destroyed stream is done");
	free(g);
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuEventDestroy(e));
	must(cuEventDestroy(f));
}

static void calls_cuda(void *arg)
{
	CUdeviceptr p;

	*(int *)arg = cuMemAlloc(&p, 16);
}

static void host_functions(void)
{
	CUstream s = stream(0);
	int r = -1;

	/* Driver API, cuLaunchHostFunc: it must make no CUDA calls; one that does may be given NOT_PERMITTED */
	must(cuLaunchHostFunc(s, calls_cuda, &r));
	must(cuStreamSynchronize(s));
	same(r, CUDA_ERROR_NOT_PERMITTED, "CUDA calls of a host function are NOT_PERMITTED");
	must(cuStreamDestroy(s));
}

int main(void)
{
	ctx = primary();
	must(cuMemAlloc(&mem, 4));
	arguments();
	events();
	recorded_by_a_launch(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
	recorded_by_a_launch(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
	order();
	host_functions();
	must(cuMemFree(mem));
	return tap_done();
}
