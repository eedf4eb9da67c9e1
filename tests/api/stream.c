// SPDX-License-Identifier: MIT
/* Streams and events: order, waiting that holds nobody up, and what costs no round trip. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/api/serve.h"

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);

static void streams(void)
{
	CUstream s, p;
	unsigned flags = 9;
	int priority = 9, least, greatest;
	unsigned long long a = 0, b = 0;
	CUcontext c = NULL;
	CUdevice d = 9;
	CUstreamCaptureStatus st;
	long before = rgpuRoundTrips(NULL);

	is_cu(cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	must(cuCtxGetStreamPriorityRange(&least, &greatest));
	is_cu(cuStreamCreateWithPriority(&p, 0, greatest - 100), CUDA_SUCCESS);
	is_cu(cuStreamGetFlags(s, &flags), CUDA_SUCCESS);
	is_int(flags, CU_STREAM_NON_BLOCKING, "its flags");
	is_cu(cuStreamGetPriority(p, &priority), CUDA_SUCCESS);
	is_int(priority, greatest, "a priority out of range is clamped");
	is_cu(cuStreamGetFlags(NULL, &flags), CUDA_SUCCESS);
	is_int(flags, 0, "the default stream has none");
	is_cu(cuStreamGetId(s, &a), CUDA_SUCCESS);
	is_cu(cuStreamGetId(p, &b), CUDA_SUCCESS);
	ok(a && b && a != b, "ids differ");
	is_cu(cuStreamGetCtx(s, &c), CUDA_SUCCESS);
	ok(c, "its context");
	is_cu(cuStreamGetDevice(s, &d), CUDA_SUCCESS);
	is_int(d, 0, "its device");
	is_cu(cuStreamIsCapturing(s, &st), CUDA_SUCCESS);
	is_int(st, CU_STREAM_CAPTURE_STATUS_NONE, "it does not capture");
	is_int(rgpuRoundTrips(NULL), before, "none of this took a round trip");
	is_cu(cuStreamQuery(s), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	is_cu(cuStreamDestroy(s), CUDA_SUCCESS);
	is_cu(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuStreamDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuStreamDestroy(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuStreamDestroy(p), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(NULL), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
}

static void events(void)
{
	CUevent e, f, t;
	CUstream s;
	float ms = -1;

	is_cu(cuEventCreate(&e, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	must(cuEventCreate(&e, 0));
	must(cuEventCreate(&f, 0));
	must(cuEventCreate(&t, CU_EVENT_DISABLE_TIMING));
	must(cuStreamCreate(&s, 0));
	is_cu(cuEventQuery(e), CUDA_SUCCESS); /* never recorded */
	is_cu(cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuEventRecord(e, s), CUDA_SUCCESS);
	is_cu(cuEventRecordWithFlags(f, s, 0), CUDA_SUCCESS);
	is_cu(cuEventRecordWithFlags(f, s, 8), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuEventSynchronize(f), CUDA_SUCCESS);
	is_cu(cuEventQuery(f), CUDA_SUCCESS);
	is_cu(cuEventElapsedTime(&ms, e, f), CUDA_SUCCESS);
	ok(ms >= 0 && ms < 60000, "%g ms between them", ms);
	is_cu(cuEventElapsedTime_v2(&ms, e, f), CUDA_SUCCESS);
	is_cu(cuEventElapsedTime(NULL, e, f), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuEventRecord(t, s), CUDA_SUCCESS);
	is_cu(cuEventSynchronize(t), CUDA_SUCCESS);
	is_cu(cuEventElapsedTime(&ms, e, t), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuStreamWaitEvent(s, t, 0), CUDA_SUCCESS);
	is_cu(cuStreamWaitEvent(s, t, 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamWaitEvent(s, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuEventDestroy(e), CUDA_SUCCESS);
	is_cu(cuEventDestroy(e), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE);
	must(cuEventDestroy(f));
	must(cuEventDestroy(t));
	must(cuStreamDestroy(s));
}

/* What a stream writes is there, and nothing beside it. */
static void values(void)
{
	uint32_t v[6];
	CUdeviceptr d;
	CUstream s;

	must(cuMemAlloc(&d, sizeof(v)));
	must(cuStreamCreate(&s, 0));
	must(cuMemsetD32(d, 9, 6));
	is_cu(cuStreamWriteValue32(s, d + 4, 4711, 0), CUDA_SUCCESS);
	is_cu(cuStreamWriteValue64(s, d + 8, 5ull << 32 | 6, 0), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(v, d, sizeof(v)));
	ok(v[0] == 9 && v[1] == 4711 && v[2] == 6 && v[3] == 5 && v[4] == 9, "values of 4 and 8 bytes: %u %u %u %u %u", v[0],
	   v[1], v[2], v[3], v[4]);
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

/* What a waiting thread needs another to do. */
struct wait {
	CUcontext ctx;
	CUdeviceptr flag;
	int how;
	CUstream s;
	CUevent e;
	CUresult r;
};

static void *waiter(void *arg)
{
	struct wait *w = arg;

	w->r = cuCtxSetCurrent(w->ctx);
	if (!w->r)
		w->r = w->how == 0 ? cuStreamSynchronize(w->s) : w->how == 1 ? cuEventSynchronize(w->e) : cuCtxSynchronize();
	return NULL;
}

/* A thread that waits in the driver, and this one that ends its wait with a later call. */
static void release(CUcontext ctx)
{
	static const char *const how[] = {"cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"};
	struct wait w = {.ctx = ctx};
	CUstream other;
	pthread_t t;

	must(cuMemAlloc(&w.flag, 16));
	must(cuStreamCreate(&w.s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&w.e, 0));
	for (w.how = 0; w.how < 3; w.how++) {
		must(cuMemsetD8(w.flag, 0, 16));
		must(cuCtxSynchronize());
		must(cuStreamWaitValue32(w.s, w.flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		must(cuEventRecord(w.e, w.s));
		is_cu(cuStreamQuery(w.s), CUDA_ERROR_NOT_READY);
		is_cu(cuEventQuery(w.e), CUDA_ERROR_NOT_READY);
		pthread_create(&t, NULL, waiter, &w);
		usleep(20000); /* so that it waits; it need not for the result to be right */
		must(cuStreamWriteValue32(other, w.flag, 1, 0));
		pthread_join(t, NULL);
		is_int(w.r, CUDA_SUCCESS, "%s was ended by another thread", how[w.how]);
		is_cu(cuEventQuery(w.e), CUDA_SUCCESS);
	}
	must(cuMemsetD8(w.flag, 0, 16));
	must(cuCtxSynchronize());
	must(cuStreamWaitValue64(w.s, w.flag + 8, 5, CU_STREAM_WAIT_VALUE_GEQ));
	usleep(20000); /* what does not wait has ended by then */
	is_cu(cuStreamQuery(w.s), CUDA_ERROR_NOT_READY);
	must(cuStreamWriteValue64(other, w.flag + 8, 6, 0));
	is_cu(cuStreamSynchronize(w.s), CUDA_SUCCESS);
	is_cu(cuStreamWaitValue32(w.s, 0x1000, 5, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamWaitValue64(w.s, w.flag + 4, 5, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamWriteValue32(w.s, w.flag + 4, 5, 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamQuery(w.s), CUDA_SUCCESS);
	must(cuStreamDestroy(w.s));
	must(cuStreamDestroy(other));
	must(cuEventDestroy(w.e));
	must(cuMemFree(w.flag));
}

static void costs(void)
{
	enum { N = 10000 };
	static CUstream s[N];
	static CUevent e[N];
	unsigned bad = 0;
	CUdeviceptr d;
	long before;

	must(cuMemAlloc(&d, 64));
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < N; i++) {
		bad += cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING) != 0;
		if (i < 200)
			bad += cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING) != 0;
		bad += cuEventRecord(e[i], s[i % 200]) != 0;
		bad += cuStreamWaitEvent(s[(i + 1) % 200], e[i], 0) != 0;
	}
	is_int(rgpuRoundTrips(NULL), before, "made, recorded and waited for on the device: no round trip");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	is_int(rgpuRoundTrips("CTX_WAIT") > 0, 1, "the wait is one");
	for (int i = 0; i < N; i++)
		bad += cuEventDestroy(e[i]) != 0;
	for (int i = 0; i < 200; i++)
		bad += cuStreamDestroy(s[i]) != 0;
	is_int(bad, 0, "ten thousand events and two hundred streams");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void hold(CUstream s, CUdeviceptr flag)
{
	must(cuMemsetD8(flag, 0, 16));
	must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

/* A stream that waits for another's event does not pass it, and finds what came before it. */
static void waits_for_event(void)
{
	CUstream s, other, gate;
	CUdeviceptr d;
	CUevent e;
	long asked;
	int v = 0;

	must(cuMemAlloc(&d, 64));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&gate, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	hold(s, d);
	must(cuMemsetD32Async(d + 32, 4711, 1, s));
	must(cuEventRecord(e, s));
	is_cu(cuStreamWaitEvent(other, e, 0), CUDA_SUCCESS);
	must(cuMemcpyDtoDAsync(d + 48, d + 32, 4, other));
	usleep(20000); /* what does not wait has ended by then */
	/* So late, and after a wait for something else, both are questions to the server. */
	must(cuMemsetD32Async(d + 8, 1, 1, gate));
	must(cuStreamSynchronize(gate));
	asked = rgpuRoundTrips("cuEventQuery");
	is_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	is_int(rgpuRoundTrips("cuEventQuery"), asked + 1, "the server is asked");
	is_cu(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	must(cuStreamWriteValue32(gate, d, 1, 0));
	is_cu(cuStreamSynchronize(other), CUDA_SUCCESS);
	must(cuMemcpyDtoH(&v, d + 48, 4));
	is_int(v, 4711, "behind another stream's event there is what came before it");
	must(cuEventDestroy(e));
	must(cuStreamDestroy(gate));
	must(cuStreamDestroy(other));
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

/* Polling: nothing crosses the link while nothing changes, and then nobody asks either. */
static void polls(void)
{
	long before, before_streams;
	CUstream s, other;
	unsigned bad = 0;
	CUdeviceptr flag;
	CUevent e;

	must(cuMemAlloc(&flag, 16));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	hold(s, flag);
	must(cuEventRecord(e, s));
	before = rgpuRoundTrips("cuEventQuery");
	before_streams = rgpuRoundTrips("cuStreamQuery");
	for (int i = 0; i < 1000; i++)
		bad += cuEventQuery(e) != CUDA_ERROR_NOT_READY || cuStreamQuery(s) != CUDA_ERROR_NOT_READY;
	is_int(bad, 0, "a thousand questions, none is answered too early");
	is_int(rgpuRoundTrips("cuEventQuery") - before, 0,
	       "in a program that polls, not even an event's first one is a round trip");
	ok(rgpuRoundTrips("cuStreamQuery") - before_streams <= 1, "nor is a stream's, unless it comes late");
	must(cuStreamWriteValue32(other, flag, 1, 0));
	while (cuEventQuery(e) == CUDA_ERROR_NOT_READY || cuStreamQuery(s) == CUDA_ERROR_NOT_READY)
		usleep(100);
	is_cu(cuEventQuery(e), CUDA_SUCCESS);
	is_cu(cuStreamQuery(s), CUDA_SUCCESS);
	is_int(rgpuRoundTrips("cuEventQuery") - before, 0, "its completion is told unasked");
	ok(rgpuRoundTrips("cuStreamQuery") - before_streams <= 2, "a stream is asked once more, since other work was given");

	before = rgpuRoundTrips("cuEventQuery");
	bad = 0;
	for (int i = 0; i < 200; i++) {
		hold(s, flag);
		must(cuEventRecord(e, s));
		bad += cuEventQuery(e) != CUDA_ERROR_NOT_READY;
		must(cuStreamWriteValue32(other, flag, 1, 0));
		if (i % 2) {
			while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
				;
		} else {
			must(cuStreamSynchronize(s));
			bad += cuEventQuery(e) != CUDA_SUCCESS || cuStreamQuery(s) != CUDA_SUCCESS;
		}
	}
	is_int(bad, 0, "recorded again and again: not ready before, ready when a wait has seen it");
	is_int(rgpuRoundTrips("cuEventQuery") - before, 0, "an event that is polled each time costs no round trip");
	must(cuEventRecord(e, s));
	must(cuEventRecord(e, s));
	must(cuStreamSynchronize(s));
	is_cu(cuEventQuery(e), CUDA_SUCCESS);
	is_int(rgpuRoundTrips("cuEventQuery") - before, 0, "a wait for the stream tells of the event, too");
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
	must(cuMemFree(flag));
}

struct poller {
	CUcontext ctx;
	CUevent e;
	atomic_bool stop;
};

static void *poll_on(void *arg)
{
	struct poller *p = arg;

	cuCtxSetCurrent(p->ctx);
	while (!p->stop) {
		CUresult r = cuEventQuery(p->e);

		if (r && r != CUDA_ERROR_NOT_READY)
			return (void *)(intptr_t)r;
	}
	return NULL;
}

/* What one thread learns of an event must not outlive the recording, whenever another records it. */
static void polls_together(CUcontext ctx)
{
	struct poller p = {.ctx = ctx};
	unsigned early = 0, late = 0;
	CUstream s, other;
	CUdeviceptr flag;
	pthread_t t[2];
	void *r[2];

	must(cuMemAlloc(&flag, 16));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&p.e, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, poll_on, &p);
	for (int i = 0; i < 300; i++) {
		hold(s, flag);
		must(cuEventRecord(p.e, s));
		for (int k = 0; k < 20; k++)
			early += cuEventQuery(p.e) != CUDA_ERROR_NOT_READY;
		must(cuStreamWriteValue32(other, flag, 1, 0));
		must(cuStreamSynchronize(s));
		late += cuEventQuery(p.e) != CUDA_SUCCESS;
	}
	p.stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &r[i]);
	ok(!r[0] && !r[1], "two threads poll while another records");
	is_int(early, 0, "none of their answers is kept for the next recording");
	is_int(late, 0, "nor does one make an answer late");
	must(cuEventDestroy(p.e));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
	must(cuMemFree(flag));
}

static atomic_bool churned;

static void *churn(void *arg)
{
	CUstream s;
	long bad = 0;

	cuCtxSetCurrent(arg);
	/* The wait is a round trip, so that this thread's calls lie between the other's. */
	for (int i = 0; i < 6000; i++)
		bad += cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuStreamSynchronize(s) || cuStreamDestroy(s);
	churned = true;
	return (void *)bad;
}

/* Waiting for the context while another thread's streams come and go. */
static void waits_and_ends(CUcontext ctx)
{
	unsigned waits = 0, bad = 0;
	pthread_t t;
	void *r;

	pthread_create(&t, NULL, churn, ctx);
	while (!churned) {
		bad += cuCtxSynchronize() != CUDA_SUCCESS;
		waits++;
	}
	pthread_join(t, &r);
	is_int((long)r, 0, "another thread makes and ends streams");
	is_int(bad, 0, "no wait for the context fails");
	printf("# %u waits\n", waits);
}

/* An answer that work is done must not come before the bytes which that work brought: they take another way than it does. */
static void bytes_come_first(void)
{
	int stale_events = 0, stale_streams = 0;
	volatile uint32_t *host;
	CUstream s, held;
	CUdeviceptr d;
	CUevent e;
	void *p;

	must(cuMemAlloc(&d, 8192));
	must(cuMemHostAlloc(&p, 8192, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	host = p;
	/* One that takes long, so that the server looks for copies that have ended only now and then. */
	must(cuMemsetD32(d + 4096, 0, 1));
	must(cuStreamWaitValue32(held, d + 4096, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemcpyDtoHAsync((uint8_t *)p + 4096, d + 4096, 4, held));
	for (uint32_t i = 1; i <= 600; i++) {
		bool events = i % 2;

		must(cuMemsetD32Async(d, i, 1024, s));
		must(cuMemcpyDtoHAsync(p, d, 4096, s));
		usleep(i % 8 * 20);
		must(cuEventRecord(e, s));
		while ((events ? cuEventQuery(e) : cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
			sched_yield();
		*(events ? &stale_events : &stale_streams) += host[1023] != i;
	}
	must(cuStreamWriteValue32(s, d + 4096, 1, 0));
	must(cuStreamSynchronize(held));
	is_int(host[1024], 1, "a copy that was held comes");
	is_int(stale_events, 0, "what an event says is done has brought its bytes");
	is_int(stale_streams, 0, "nor is a stream idle before its bytes are here");
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(held));
	must(cuMemFreeHost(p));
	must(cuMemFree(d));
}

int main(void)
{
	CUcontext c;

	serve(NULL, 1);
	c = primary();
	values();
	waits_for_event(); /* before anything polls: events are watched then */
	waits_and_ends(c);
	streams();
	events();
	release(c);
	costs();
	polls();
	polls_together(c);
	bytes_come_first();
	return tap_done();
}
