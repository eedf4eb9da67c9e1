/* SPDX-License-Identifier: MIT */
/* 2,000 launches behind a stream's wait for a value, which another thread releases from another stream: nothing may stand in its
 * way. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "tests/e2e/e2e.h"

#define N	 64
#define LAUNCHES 2000

static CUcontext ctx;
static CUdeviceptr x, flag;
static atomic_int issued;

/* Releases when all launches are issued, or when they stopped because the queue before the wait is full. */
static void *releaser(void *arg)
{
	uint32_t seen[N];
	CUstream s;
	int last = -1, same = 0;

	(void)arg;
	DR(cuCtxSetCurrent(ctx));
	DR(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	while (issued < LAUNCHES && same < 10) {
		usleep(100000);
		same = issued == last ? same + 1 : 0;
		last = issued;
	}
	last = issued;
	if (last < 100)
		die("only %d launches were taken before the wait was released", last);
	/* None of them may have run. */
	DR(cuMemcpyDtoHAsync(seen, x, sizeof(seen), s));
	DR(cuStreamSynchronize(s));
	for (uint32_t i = 0; i < N; i++)
		if (seen[i] != i)
			die("x[%u] = %u before the release: a launch did not wait", i, seen[i]);
	DR(cuStreamWriteValue32(s, flag, 7, CU_STREAM_WRITE_VALUE_DEFAULT));
	DR(cuStreamSynchronize(s));
	DR(cuStreamDestroy(s));
	return NULL;
}

int main(int argc, char **argv)
{
	uint32_t want[N], got[N];
	pthread_t thread;
	CUfunction step;
	CUmodule mod;
	CUdevice dev;
	CUstream s;
	int n = N;

	(void)argc;
	for (int i = 0; i < N; i++)
		want[i] = i;
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(e2e_beside(argv[0], "kernels.ptx"), NULL)));
	DR(cuModuleGetFunction(&step, mod, "step"));
	DR(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DR(cuMemAlloc(&x, sizeof(want)));
	DR(cuMemAlloc(&flag, 4));
	DR(cuMemsetD32(flag, 0, 1));
	DR(cuMemcpyHtoD(x, want, sizeof(want)));
	DR(cuStreamWaitValue32(s, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
	pthread_create(&thread, NULL, releaser, NULL);
	for (unsigned int k = 0; k < LAUNCHES; k++) {
		void *args[] = {&x, &k, &n};

		DR(cuLaunchKernel(step, 1, 1, 1, N, 1, 1, 0, s, args, NULL));
		issued++;
	}
	pthread_join(thread, NULL);
	DR(cuStreamSynchronize(s));
	DR(cuMemcpyDtoH(got, x, sizeof(got)));
	for (unsigned int k = 0; k < LAUNCHES; k++)
		for (int i = 0; i < N; i++)
			want[i] = want[i] * 3 + k;
	for (int i = 0; i < N; i++)
		if (got[i] != want[i])
			die("x[%d] = %u, want %u", i, got[i], want[i]);
	printf("waitvalue: %d launches in order behind the wait\n", LAUNCHES);
	return 0;
}
