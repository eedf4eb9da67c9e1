// SPDX-License-Identifier: MIT
/* Functions of the program that streams call: order, what they see, what they may not do, and who waits for them. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/api/serve.h"

static pthread_t caller;
static char order[16];
static atomic_int norder;

static void CUDA_CB append(void *what)
{
	caller = pthread_self();
	order[norder++] = *(const char *)what;
}

static void CUDA_CB append_back(CUstream s, CUresult status, void *what)
{
	order[norder++] = status ? '!' : *(const char *)what;
	(void)s;
}

static void in_order(void)
{
	CUstream s;

	norder = 0;
	must(cuStreamCreate(&s, 0));
	is_cu(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamAddCallback(s, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamAddCallback(s, append_back, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuLaunchHostFunc((CUstream)order, append, NULL), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuLaunchHostFunc(s, append, "a"), CUDA_SUCCESS);
	is_cu(cuStreamAddCallback(s, append_back, "b", 0), CUDA_SUCCESS);
	is_cu(cuLaunchHostFunc(s, append, "c"), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	is_str(order, "abc", "called in their order, and the wait was for them");
	ok(!pthread_equal(caller, pthread_self()), "by another thread");
	is_cu(cuLaunchHostFunc(NULL, append, "d"), CUDA_SUCCESS);
	is_cu(cuLaunchHostFunc(CU_STREAM_PER_THREAD, append, "e"), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	is_int(norder, 5, "the default streams call, too");
	must(cuStreamDestroy(s));
}

static CUstream told;

static void CUDA_CB tell(CUstream s, CUresult status, void *what)
{
	(void)status, (void)what;
	told = s;
}

CUresult cuStreamAddCallback_ptsz(CUstream s, CUstreamCallback f, void *data, unsigned int flags);

/* A callback is told its stream as the program called it. */
static void names(void)
{
	const CUstream all[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};

	for (int i = 0; i < 3; i++) {
		told = (CUstream)-1;
		must(cuStreamAddCallback(all[i], tell, NULL, 0));
		must(cuCtxSynchronize());
		ok(told == all[i], "%p is %p", told, all[i]);
		told = (CUstream)-1;
		must(cuStreamAddCallback_ptsz(all[i], tell, NULL, 0));
		must(cuCtxSynchronize());
		ok(told == all[i], "%p is %p, of the thread's own kind", told, all[i]);
	}
}

struct gate {
	atomic_int open, seen;
	uint32_t *p;
};

static void CUDA_CB wait_open(void *arg)
{
	struct gate *g = arg;

	g->seen = (int)g->p[0];
	while (!g->open)
		usleep(1000);
	g->p[1] = 77;
}

/* What was in the stream before has happened, what comes later has not. */
static void holds_stream(void)
{
	struct gate g = {0};
	uint32_t *p, out[2] = {0};
	CUdeviceptr d;
	CUstream s;
	CUevent e;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	must(cuMemAlloc(&d, 16));
	must(cuMemAllocHost((void **)&p, 16));
	g.p = p;
	p[0] = p[1] = 0;
	must(cuMemsetD32Async(d, 5, 1, s));
	must(cuMemcpyDtoHAsync(p, d, 4, s));
	must(cuLaunchHostFunc(s, wait_open, &g));
	must(cuMemsetD32Async(d, 6, 1, s));
	must(cuMemcpyHtoDAsync(d + 4, p + 1, 4, s));
	must(cuEventRecord(e, s));
	usleep(20000);
	is_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	must(cuMemcpyDtoH(out, d, 4));
	is_int(out[0], 5, "the stream's later work waits for the function");
	g.open = 1;
	is_cu(cuEventSynchronize(e), CUDA_SUCCESS);
	is_int(g.seen, 5, "the function saw what was copied before it");
	must(cuMemcpyDtoH(out, d, 8));
	is_int(out[0], 6, "the rest ran when it had returned");
	is_int(out[1], 77, "a later copy reads what the function wrote");
	must(cuMemFreeHost(p));
	must(cuMemFree(d));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
}

static CUresult refused[4];

static void CUDA_CB calls_cuda(void *arg)
{
	CUdeviceptr d;
	CUstream s;
	CUevent e;

	refused[0] = cuMemAlloc(&d, 4);
	refused[1] = cuStreamCreate(&s, 0);
	refused[2] = cuCtxSynchronize();
	refused[3] = cuEventCreate(&e, 0);
	(void)arg;
}

static void may_not_call(void)
{
	must(cuLaunchHostFunc(NULL, calls_cuda, NULL));
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	for (int i = 0; i < 4; i++)
		is_cu(refused[i], CUDA_ERROR_NOT_PERMITTED);
}

static void *destroy(void *ctx)
{
	return (void *)(intptr_t)cuCtxDestroy(ctx);
}

/* A context is destroyed, on another thread than the function's, while one is running: both come to their end. */
static void ends_with_context(void)
{
	struct gate g = {.p = (uint32_t[2]){1}};
	CUcontext c, old;
	pthread_t t;
	CUstream s;
	void *r;

	must(cuCtxGetCurrent(&old));
	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuStreamCreate(&s, 0));
	must(cuLaunchHostFunc(s, wait_open, &g));
	must(cuLaunchHostFunc(s, wait_open, &g));
	while (!g.seen)
		usleep(1000);
	pthread_create(&t, NULL, destroy, c);
	usleep(10000);
	g.open = 1;
	pthread_join(t, &r);
	is_int((intptr_t)r, CUDA_SUCCESS, "the context is destroyed");
	must(cuCtxSetCurrent(old));
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	is_int(g.p[1], 77, "the function that was running has returned");
}

static atomic_int counter;

static void CUDA_CB count(void *arg)
{
	counter += (int)(intptr_t)arg;
}

static void *many(void *ctx)
{
	CUstream s;
	long bad = 0;

	bad += cuCtxSetCurrent(ctx) || cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < 500; i++)
		bad += cuLaunchHostFunc(s, count, (void *)1) != 0;
	bad += cuStreamSynchronize(s) || cuStreamDestroy(s);
	return (void *)bad;
}

static void several_threads(CUcontext c)
{
	pthread_t t[4];
	void *bad;
	long sum = 0;

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, many, c);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], &bad);
		sum += (long)bad;
	}
	is_int(sum, 0, "four threads launch functions");
	is_int(counter, 2000, "each is called once");
}

int main(void)
{
	CUcontext c;

	serve(NULL, 1);
	c = primary();
	in_order();
	names();
	holds_stream();
	may_not_call();
	ends_with_context();
	several_threads(c);
	return tap_done();
}
