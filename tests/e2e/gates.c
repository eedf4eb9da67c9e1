/* SPDX-License-Identifier: MIT */
/* Work that a wait or a question waits for is held until other work, given meanwhile, lets it go: no wait may hold that up. */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>
#include "tests/e2e/e2e.h"

static CUcontext ctx;
static CUstream held, other;
static CUdeviceptr flag;
static atomic_int asking;
static const char *what;

static void late(int sig)
{
	(void)sig;
	die("%s never came to an end", what);
}

static void *opener(void *arg)
{
	CUstream s = *(CUstream *)arg;

	DR(cuCtxSetCurrent(ctx));
	while (!asking)
		usleep(1000);
	usleep(50000); /* the question is there by now */
	DR(cuStreamWriteValue32(s, flag, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
	return NULL;
}

static void begin(const char *name, CUstream in, CUstream *from, pthread_t *t)
{
	what = name;
	asking = 0;
	DR(cuMemsetD32(flag, 0, 1));
	DR(cuCtxSynchronize());
	DR(cuStreamWaitValue32(in, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	pthread_create(t, NULL, opener, from);
	asking = 1;
	alarm(60);
}

static void end(pthread_t t)
{
	alarm(0);
	pthread_join(t, NULL);
}

int main(void)
{
	unsigned int asked = 0;
	CUdevice dev;
	pthread_t t;

	signal(SIGALRM, late);
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemAlloc(&flag, 4));
	DR(cuStreamCreate(&held, CU_STREAM_DEFAULT));
	DR(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	begin("a wait for the legacy stream", held, &other, &t);
	DR(cuStreamSynchronize(NULL));
	end(t);
	begin("questions about the legacy stream", held, &other, &t);
	while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
		asked++;
	end(t);
	begin("a wait for the context", held, &other, &t);
	DR(cuCtxSynchronize());
	end(t);
	begin("questions about a thread's own stream", CU_STREAM_PER_THREAD, &other, &t);
	while (cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY)
		asked++;
	end(t);
	printf("gates: no wait held up what it waited for (%u times not ready)\n", asked);
	return 0;
}
