// SPDX-License-Identifier: MIT
/* The process and its session: threads that come and go, more of them than lanes, forks, exits, and a server that dies. */
#include <pthread.h>
#include "tests/api/serve.h"

static CUcontext ctx;

static void *one_call(void *arg)
{
	CUdeviceptr d = 0;
	int v = 0;

	*(int *)arg = cuCtxSetCurrent(ctx) || cuMemAlloc(&d, 4) || cuMemsetD32(d, 5, 1) || cuMemcpyDtoH(&v, d, 4) || v != 5 ||
		      cuMemFree(d);
	return NULL;
}

static void *per_thread(void *arg)
{
	CUdeviceptr d = *(CUdeviceptr *)arg;

	/* Left undone when the thread ends: the lane's next user must not be disturbed by it. */
	cuCtxSetCurrent(ctx);
	cuMemsetD32Async(d, 9, 4, CU_STREAM_PER_THREAD);
	return NULL;
}

static void threads(void)
{
	int r[300], bad = 0;
	CUdeviceptr d;
	pthread_t t[64];

	for (int i = 0; i < 300; i++) {
		pthread_create(&t[0], NULL, one_call, &r[i]);
		pthread_join(t[0], NULL);
		bad += r[i];
	}
	is_int(bad, 0, "300 threads one after the other: lanes are used again");
	for (int i = 0; i < 64; i++)
		pthread_create(&t[i], NULL, one_call, &r[i]);
	for (int i = 0; i < 64; i++) {
		pthread_join(t[i], NULL);
		bad += r[i];
	}
	is_int(bad, 0, "64 threads at once");
	must(cuMemAlloc(&d, 64));
	for (int i = 0; i < 20; i++) {
		pthread_create(&t[0], NULL, per_thread, &d);
		pthread_join(t[0], NULL);
	}
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuMemcpyDtoH(r, d, 16));
	is_int(r[3], 9, "what a thread left behind was done");
	must(cuMemFree(d));
}

static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* Its exit must not stop the server. */
		serve_pid = 0;
		*serve_dir = 0;
		_exit(fn());
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int forked(void)
{
	CUdeviceptr d;

	return cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc(&d, 4) == CUDA_ERROR_NOT_INITIALIZED &&
			       cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED
		       ? 0
		       : 1;
}

static void *busy(void *arg)
{
	CUdeviceptr d;

	cuCtxSetCurrent(ctx);
	if (cuMemAlloc(&d, 4096))
		return NULL;
	for (;;)
		if (cuMemsetD8(d, 1, 4096) || cuMemcpyDtoH(arg, d, 64))
			return NULL;
}

/* A program that exits while its threads are in calls. */
static int exits(void)
{
	static char buf[8][64];
	pthread_t t;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		return 1;
	for (int i = 0; i < 8; i++)
		pthread_create(&t, NULL, busy, buf[i]);
	usleep(50000);
	exit(0);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void *waits(void *s)
{
	cuCtxSetCurrent(ctx);
	return (void *)(long)cuStreamSynchronize(s);
}

/* Asked until it is told, with an end: what hangs is not a time-out of the test's. */
static int polled(CUresult (*ask)(void *), void *what)
{
	int r = CUDA_ERROR_NOT_READY;

	for (int i = 0; i < 20000 && r == CUDA_ERROR_NOT_READY; i++) {
		usleep(1000);
		r = ask(what);
	}
	return r;
}

/* A server that dies while a stream is held: everybody who waits or polls for that stream is told. */
static void dies(void)
{
	size_t free_bytes, total;
	CUdeviceptr d, mapped;
	char buf[64];
	pthread_t t;
	CUstream s;
	CUevent e;
	void *p, *r;
	int v = 0;

	must(cuMemAlloc(&d, 64));
	must(cuMemsetD32(d, 0, 1));
	must(cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&mapped, p, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	must(cuStreamWaitValue32(s, d, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuLaunchHostFunc(s, nothing, NULL));
	must(cuMemsetD32Async(mapped, 5, 1, s));
	must(cuEventRecord(e, s));
	for (int i = 0; i < 2; i++) {
		is_cu(cuEventQuery(e), CUDA_ERROR_NOT_READY);
		is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	}
	must(cuMemGetInfo(&free_bytes, &total));
	pthread_create(&t, NULL, waits, s);
	usleep(20000);
	kill(serve_pid, SIGTERM);
	is_int(polled((CUresult(*)(void *))cuEventQuery, e), CUDA_ERROR_DEVICE_UNAVAILABLE, "who polls an event is told");
	is_int(polled((CUresult(*)(void *))cuStreamQuery, s), CUDA_ERROR_DEVICE_UNAVAILABLE, "who polls a stream is told");
	pthread_join(t, &r);
	is_int((long)r, CUDA_ERROR_DEVICE_UNAVAILABLE, "who waits for it is told");
	for (int i = 0; i < 1000000 && !v; i++)
		v = cuMemcpyDtoH(buf, d, 64);
	is_int(v, CUDA_ERROR_DEVICE_UNAVAILABLE, "the server ends: calls fail");
	is_cu(cuMemsetD8(d, 0, 64), CUDA_ERROR_DEVICE_UNAVAILABLE);
	is_cu(cuMemGetInfo(&free_bytes, &total), CUDA_ERROR_DEVICE_UNAVAILABLE);
	is_cu(cuLaunchHostFunc(s, nothing, NULL), CUDA_ERROR_DEVICE_UNAVAILABLE);
	is_cu(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
}

int main(void)
{
	serve(NULL, 1);
	/* Children that start for themselves come before this process is initialised. */
	is_int(in_child(exits), 0, "exit with threads in calls");
	ctx = primary();
	is_int(rgpuRoundTrips("OPEN"), 1, "one round trip opens the window");
	is_int(rgpuRoundTrips("CTX_RETAIN"), 1, "one makes the context");
	is_int(rgpuRoundTrips(NULL), 2, "and that is all");
	threads();
	is_int(in_child(forked), 0, "a forked child gets an error");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS); /* and disturbs nobody */
	is_int(rgpuRoundTrips("LANE_RESET"), 0, "a lane is handed on without a round trip");
	dies();
	return tap_done();
}
