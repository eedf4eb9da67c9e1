// SPDX-License-Identifier: MIT
/* Tests of streams and events: order, concurrency, waits on events and values, host functions, default streams. */
#include "tests/softgpu/drv.h"

#include <stdatomic.h>

static CUdeviceptr word(uint32_t value)
{
	CUdeviceptr p;

	must(cuMemAlloc(&p, 64));
	must(cuMemsetD32(p, value, 16));
	must(cuCtxSynchronize());
	return p;
}

static uint32_t peek(CUdeviceptr p)
{
	uint32_t v = 0;

	must(cuMemcpyDtoHAsync(&v, p, 4, CU_STREAM_PER_THREAD));
	return v;
}

static void CUDA_CB append(void *arg)
{
	static atomic_int at;
	int *slot = arg;

	*slot = 1 + atomic_fetch_add(&at, 1);
}

static void basics(void)
{
	CUstream s, t;
	unsigned int flags;
	unsigned long long a, b;
	int prio, order[3] = {0};
	CUcontext c, d;

	works(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -2));
	works(cuStreamGetFlags(s, &flags));
	is_int(flags, CU_STREAM_NON_BLOCKING, "flags are kept");
	works(cuStreamGetPriority(s, &prio));
	is_int(prio, -2, "a priority is kept");
	works(cuStreamCreateWithPriority(&t, 0, -100));
	works(cuStreamGetPriority(t, &prio));
	is_int(prio, -5, "a priority is clamped");
	works(cuStreamGetId(s, &a));
	works(cuStreamGetId(t, &b));
	ok(a != b, "ids differ");
	works(cuStreamGetCtx(s, &c));
	must(cuCtxGetCurrent(&d));
	ok(c == d, "a stream knows its context");
	{
		CUstreamAttrValue v = {.syncPolicy = CU_SYNC_POLICY_YIELD}, got;

		works(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
		works(cuStreamCopyAttributes(t, s));
		works(cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got));
		is_int(got.syncPolicy, CU_SYNC_POLICY_YIELD, "an attribute is kept and copied");
		works(cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
		is_int(got.priority, -2, "the priority is one");
		v.accessPolicyWindow.num_bytes = 4096;
		gives(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v), CUDA_ERROR_INVALID_VALUE);
		gives(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got), CUDA_ERROR_INVALID_VALUE);
	}
	gives(cuStreamCreate(&s, 64), CUDA_ERROR_INVALID_VALUE);
	works(cuStreamQuery(s));
	for (int i = 0; i < 3; i++)
		must(cuLaunchHostFunc(s, append, &order[i]));
	works(cuStreamSynchronize(s));
	ok(order[0] == 1 && order[1] == 2 && order[2] == 3, "host functions run in order");
	gives(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	works(cuStreamDestroy(s));
	works(cuStreamDestroy(t));
}

/* A stream that waits holds up nobody, and a destroyed one still does its work. */
static void value_waits(void)
{
	CUdeviceptr gate = word(0), out = word(0);
	CUstream s[64], busy;
	CUevent e;
	int n = 0;

	must(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 64; i++) {
		must(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
		must(cuStreamWaitValue32(s[i], gate, 1, CU_STREAM_WAIT_VALUE_EQ));
		must(cuStreamWriteValue32(s[i], out + (CUdeviceptr)(i % 16) * 4, 1, 0));
	}
	must(cuEventRecord(e, s[5]));
	gives(cuStreamQuery(s[5]), CUDA_ERROR_NOT_READY);
	gives(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	works(cuMemsetD32Async(out + 60, 9, 1, busy));
	works(cuStreamSynchronize(busy));
	is_int(peek(out + 60), 9, "64 waiting streams do not hold up another");
	is_int(peek(out), 0, "nothing behind a wait ran");
	for (int i = 6; i < 64; i++)
		must(cuStreamDestroy(s[i]));
	must(cuStreamWriteValue32(busy, gate, 1, 0));
	works(cuEventSynchronize(e));
	works(cuCtxSynchronize());
	for (int i = 0; i < 16; i++)
		n += peek(out + (CUdeviceptr)i * 4) == 1;
	is_int(n, 16, "then all of them ran, the destroyed ones too");
	for (int i = 0; i < 6; i++)
		must(cuStreamDestroy(s[i]));

	must(cuMemsetD32(gate, 5, 2));
	works(cuStreamWaitValue32(busy, gate, 5, CU_STREAM_WAIT_VALUE_GEQ));
	works(cuStreamWaitValue32(busy, gate, 4, CU_STREAM_WAIT_VALUE_GEQ));
	works(cuStreamWaitValue32(busy, gate, 0x80000006, CU_STREAM_WAIT_VALUE_GEQ));
	works(cuStreamWaitValue32(busy, gate, 4, CU_STREAM_WAIT_VALUE_AND));
	works(cuStreamWaitValue32(busy, gate, 2, CU_STREAM_WAIT_VALUE_NOR));
	works(cuStreamWaitValue64(busy, gate, 0x500000005, CU_STREAM_WAIT_VALUE_EQ));
	works(cuStreamSynchronize(busy));
	ok(true, "met conditions let the stream pass");
	works(cuStreamWriteValue64(busy, gate, 0x1122334455667788, 0));
	works(cuStreamSynchronize(busy));
	ok(peek(gate) == 0x55667788 && peek(gate + 4) == 0x11223344, "64 bits are written");
	gives(cuStreamWaitValue32(busy, gate + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuStreamWaitValue32(busy, 0x1000, 0, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuStreamWaitValue32(busy, gate, 0, 8), CUDA_ERROR_INVALID_VALUE);
	{
		CUstreamBatchMemOpParams p[3] = {0};

		p[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
		p[0].waitValue.address = gate;
		p[0].waitValue.value = 0x55667788;
		p[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
		p[1].operation = CU_STREAM_MEM_OP_BARRIER;
		p[2].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		p[2].writeValue.address = gate;
		p[2].writeValue.value = 77;
		works(cuStreamBatchMemOp(busy, 3, p, 0));
		works(cuStreamSynchronize(busy));
		is_int(peek(gate), 77, "a batch");
		p[1].operation = 99;
		p[2].writeValue.value = 78;
		gives(cuStreamBatchMemOp(busy, 3, p, 0), CUDA_ERROR_INVALID_VALUE);
		works(cuStreamSynchronize(busy));
		is_int(peek(gate), 77, "a bad batch does nothing");
	}
	must(cuEventDestroy(e));
	must(cuStreamDestroy(busy));
	must(cuMemFree(gate));
	must(cuMemFree(out));
}

static void *release(void *gate)
{
	nap_ms(30);
	__atomic_store_n((uint32_t *)gate, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* 4,000 operations behind a wait that another thread releases by writing memory. */
static void long_queue(void)
{
	CUdeviceptr out = word(0);
	static uint32_t back[16];
	uint32_t *gate;
	pthread_t t;
	CUstream s;

	must(cuMemHostAlloc((void **)&gate, 64, 0));
	*gate = 0;
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(s, (CUdeviceptr)(uintptr_t)gate, 1, 0));
	for (uint32_t i = 1; i <= 4000; i++)
		must(cuMemsetD32Async(out, i, 16, s));
	gives(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	pthread_create(&t, NULL, release, gate);
	works(cuStreamSynchronize(s));
	pthread_join(t, NULL);
	works(cuMemcpyDtoH(back, out, sizeof(back)));
	is_int(back[7], 4000, "the last of 4,000 is the last");
	works(cuStreamDestroy(s));
	works(cuMemFreeHost(gate));
	works(cuMemFree(out));
}

static void events(void)
{
	CUdeviceptr gate = word(0), out = word(0);
	CUstream a, b;
	CUevent e, f, off;
	float ms = -1;

	must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	works(cuEventCreate(&e, CU_EVENT_DEFAULT));
	works(cuEventCreate(&f, CU_EVENT_BLOCKING_SYNC));
	works(cuEventCreate(&off, CU_EVENT_DISABLE_TIMING));
	works(cuEventQuery(e));
	works(cuEventSynchronize(e));
	works(cuStreamWaitEvent(b, e, 0));
	gives(cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
	works(cuEventRecord(e, a));
	works(cuStreamWaitValue32(a, gate, 1, 0));
	works(cuEventRecord(f, a));
	works(cuEventRecord(off, a));
	works(cuStreamWaitEvent(b, f, 0));
	works(cuMemsetD32Async(out, 1, 1, b));
	works(cuEventQuery(e));
	gives(cuEventElapsedTime(&ms, e, f), CUDA_ERROR_NOT_READY);
	gives(cuEventElapsedTime(&ms, e, off), CUDA_ERROR_INVALID_HANDLE);
	/* Destroyed and recorded again: who waits for the first record still does. */
	works(cuEventRecord(off, b));
	works(cuEventDestroy(f));
	gives(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	is_int(peek(out), 0, "work behind the event has not run");
	nap_ms(5);
	must(cuMemsetD32Async(gate, 1, 1, CU_STREAM_PER_THREAD));
	works(cuStreamSynchronize(b));
	is_int(peek(out), 1, "and has when the event came");
	must(cuEventCreate(&f, 0));
	works(cuEventRecord(f, a));
	works(cuEventSynchronize(f));
	works(cuEventElapsedTime(&ms, e, f));
	ok(ms >= 5 && ms < 60000, "the time between holds the pause");
	works(cuEventDestroy(e));
	works(cuEventDestroy(f));
	works(cuEventDestroy(off));
	works(cuStreamDestroy(a));
	works(cuStreamDestroy(b));
	must(cuMemFree(gate));
	must(cuMemFree(out));
}

/* Two streams that wait for each other in turn, a hundred times. */
static void ping_pong(void)
{
	CUdeviceptr p = word(0);
	CUevent e[200];
	CUstream s[2];
	uint32_t v;

	must(cuStreamCreate(&s[0], CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&s[1], CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < 200; i++) {
		if (i)
			must(cuStreamWaitEvent(s[i % 2], e[i - 1], 0));
		must(cuStreamWaitValue32(s[i % 2], p, i, CU_STREAM_WAIT_VALUE_EQ));
		must(cuStreamWriteValue32(s[i % 2], p, i + 1, 0));
		must(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
		must(cuEventRecord(e[i], s[i % 2]));
	}
	works(cuStreamSynchronize(s[1]));
	must(cuMemcpyDtoH(&v, p, 4));
	is_int(v, 200, "two streams took turns");
	for (int i = 0; i < 200; i++)
		must(cuEventDestroy(e[i]));
	must(cuStreamDestroy(s[0]));
	must(cuStreamDestroy(s[1]));
	must(cuMemFree(p));
}

/* The legacy stream orders with blocking streams, not with others. */
static void legacy(void)
{
	CUdeviceptr gate = word(0), out = word(0);
	CUstream blocking, free_stream;

	must(cuStreamCreate(&blocking, 0));
	must(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(blocking, gate, 1, 0));
	must(cuMemsetD32Async(out, 1, 1, blocking));
	must(cuMemsetD32Async(out, 2, 1, NULL));
	gives(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	gives(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	must(cuMemsetD32Async(out + 4, 3, 1, free_stream));
	works(cuStreamSynchronize(free_stream));
	must(cuStreamWriteValue32(free_stream, gate, 1, 0));
	works(cuStreamSynchronize(NULL));
	{
		uint32_t v[2];

		must(cuMemcpyDtoH(v, out, 8));
		is_int(v[0], 2, "the NULL stream came after the blocking one");
		is_int(v[1], 3, "the non-blocking one did not wait");
	}
	/* The other way round. */
	must(cuMemsetD32(gate, 0, 1));
	must(cuCtxSynchronize());
	must(cuStreamWaitValue32(NULL, gate, 1, 0));
	must(cuMemsetD32Async(out, 7, 1, blocking));
	gives(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	must(cuStreamWriteValue32(free_stream, gate, 1, 0));
	works(cuStreamSynchronize(blocking));
	must(cuStreamDestroy(blocking));
	must(cuStreamDestroy(free_stream));
	must(cuMemFree(gate));
	must(cuMemFree(out));
}

static unsigned long long thread_stream_id;

static void *own_stream(void *ctx)
{
	must(cuCtxSetCurrent(ctx));
	must(cuStreamGetId(CU_STREAM_PER_THREAD, &thread_stream_id));
	return NULL;
}

static void per_thread(CUcontext ctx)
{
	unsigned long long mine, again;
	pthread_t t;

	works(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	works(cuStreamGetId(CU_STREAM_PER_THREAD, &again));
	is_int(mine, again, "a thread keeps its stream");
	pthread_create(&t, NULL, own_stream, ctx);
	pthread_join(t, NULL);
	ok(thread_stream_id && thread_stream_id != mine, "another thread has another");
	works(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static CUresult from_host_function = CUDA_SUCCESS;
static atomic_int callbacks, host_functions;

static void CUDA_CB call_driver(void *arg)
{
	CUdeviceptr p;

	(void)arg;
	from_host_function = cuMemAlloc(&p, 64);
}

static void CUDA_CB count_call(void *arg)
{
	(void)arg;
	atomic_fetch_add(&host_functions, 1);
}

static void CUDA_CB count_callback(CUstream s, CUresult status, void *arg)
{
	(void)s;
	*(CUresult *)arg = status;
	atomic_fetch_add(&callbacks, 1);
}

static void host_calls(void)
{
	CUresult status = -1;
	CUstream s;

	must(cuStreamCreate(&s, 0));
	must(cuLaunchHostFunc(s, call_driver, NULL));
	must(cuStreamAddCallback(s, count_callback, &status, 0));
	works(cuStreamSynchronize(s));
	is_int(from_host_function, CUDA_ERROR_NOT_PERMITTED, "a host function may not call the driver");
	is_int(status, CUDA_SUCCESS, "a callback is told how things stand");
	gives(cuStreamAddCallback(s, count_callback, &status, 1), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
}

/* The source of an async copy from pageable memory may change when the call has returned. */
static void staged_source(void)
{
	CUdeviceptr gate = word(0), p = word(0);
	uint32_t src = 123, back = 0;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(s, gate, 1, 0));
	works(cuMemcpyHtoDAsync(p, &src, 4, s));
	src = 456;
	must(cuMemsetD32Async(gate, 1, 1, CU_STREAM_PER_THREAD));
	works(cuMemcpyDtoHAsync(&back, p, 4, s));
	is_int(back, 123, "the copy took the value at the call, and one to pageable memory waited");
	must(cuStreamDestroy(s));
	must(cuMemFree(gate));
	must(cuMemFree(p));
}

static int failing(void *arg)
{
	(void)arg;
	return CUDA_ERROR_ILLEGAL_ADDRESS;
}

/* A fault sticks to its context, ends what waits there, and goes with it. */
static void sticky(CUcontext primary)
{
	CUresult status = CUDA_SUCCESS;
	CUdeviceptr gate, p;
	CUstream s, t, other;
	CUcontext c;
	CUevent e;

	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuCtxCreate(&c, NULL, 0, 0));
	gate = word(0);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuStreamWaitValue32(t, gate, 1, 0));
	must(cuLaunchHostFunc(t, count_call, NULL));
	must(cuStreamAddCallback(t, count_callback, &status, 0));
	must(cuEventRecord(e, t));
	must(cuStreamWaitEvent(other, e, 0));
	works(softgpu_enqueue(s, failing, NULL, NULL));
	gives(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuMemAlloc(&p, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuStreamQuery(t), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuMemFree(gate), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuEventRecord(e, s), CUDA_ERROR_ILLEGAL_ADDRESS);
	gives(cuLaunchHostFunc(s, count_call, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	works(cuStreamSynchronize(other));
	is_int(atomic_load(&host_functions), 0, "a host function behind the fault is not called");
	is_int(status, CUDA_ERROR_ILLEGAL_ADDRESS, "a callback behind it is, with the error");
	works(cuCtxDestroy(c));
	works(cuCtxGetCurrent(&c));
	ok(c == primary, "the other context is current again");
	works(cuMemAlloc(&p, 64));
	works(cuMemFree(p));
	must(cuStreamDestroy(other));
}

/* Destroying a context ends work that would never end by itself. */
static void destroy_waiting(void)
{
	CUdeviceptr gate;
	CUcontext c;
	CUstream s;

	must(cuCtxCreate(&c, NULL, 0, 0));
	gate = word(0);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamWaitValue32(s, gate, 1, 0));
	for (int i = 0; i < 100; i++)
		must(cuMemsetD8Async(gate + 4, 1, 4, s));
	works(cuCtxDestroy(c));
}

static void *hammer(void *arg)
{
	CUdeviceptr p;
	CUstream s;
	CUevent e;
	uint32_t v;
	intptr_t bad = 0;

	must(cuCtxSetCurrent(arg));
	must(cuMemAlloc(&p, 4096));
	for (uint32_t i = 0; i < 200; i++) {
		must(cuStreamCreate(&s, i % 2 ? CU_STREAM_NON_BLOCKING : 0));
		must(cuEventCreate(&e, 0));
		must(cuMemsetD32Async(p, i, 1024, s));
		must(cuEventRecord(e, s));
		must(cuStreamWaitEvent(NULL, e, 0));
		must(cuMemcpyDtoH(&v, p + 4092, 4));
		bad += v != i;
		must(cuEventDestroy(e));
		must(cuStreamDestroy(s));
	}
	must(cuMemFree(p));
	return (void *)bad;
}

static void threads(CUcontext ctx)
{
	pthread_t t[8];
	intptr_t bad = 0;
	void *r;

	for (int i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, hammer, ctx);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], &r);
		bad += (intptr_t)r;
	}
	is_int(bad, 0, "eight threads make and break streams and see their own values");
}

int main(void)
{
	CUcontext ctx = drv_start();

	basics();
	value_waits();
	long_queue();
	events();
	ping_pong();
	legacy();
	per_thread(ctx);
	host_calls();
	staged_source();
	sticky(ctx);
	destroy_waiting();
	threads(ctx);
	works(cuDevicePrimaryCtxRelease(0));
	return tap_done();
}
