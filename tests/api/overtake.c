// SPDX-License-Identifier: MIT
/* Copies down to the same page-locked bytes, on streams that events put in order: what the last one brings stays there. */
#include <pthread.h>
#include "tests/api/serve.h"

#define BIG   (32u << 20)
#define SMALL 4096u

static CUcontext ctx;
static CUstream stream[2];
static CUevent event;
static CUdeviceptr dev;
static uint32_t *pinned;
static pthread_barrier_t turn;

/* Both of one thread, one soon after the other. */
static unsigned by_one_thread(unsigned rounds)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < 2; k++) {
			must(cuMemsetD32Async(dev, 2 * i + k, SMALL / 4 + i % 3 * 20000, stream[k]));
			must(cuMemcpyDtoHAsync(pinned, dev, SMALL, stream[k]));
			must(cuEventRecord(event, stream[k]));
			must(cuStreamWaitEvent(stream[!k], event, 0));
		}
		must(cuStreamSynchronize(stream[1]));
		must(cuStreamSynchronize(stream[0]));
		wrong += pinned[0] != 2 * i + 1;
	}
	return wrong;
}

/* A small copy of another thread to the end of a large one's bytes. */
#define THREAD_ROUNDS 5

static void *large_ones(void *arg)
{
	must(cuCtxSetCurrent(ctx));
	for (unsigned i = 0; i < THREAD_ROUNDS; i++) {
		must(cuMemsetD32Async(dev, 1, BIG / 4, stream[0]));
		must(cuMemcpyDtoHAsync(pinned, dev, BIG, stream[0]));
		must(cuEventRecord(event, stream[0]));
		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
	}
	return arg;
}

static unsigned by_two_threads(void)
{
	unsigned wrong = 0;
	pthread_t t;

	must(cuMemsetD32(dev + BIG, 2, SMALL / 4));
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, large_ones, NULL);
	for (unsigned i = 0; i < THREAD_ROUNDS; i++) {
		pthread_barrier_wait(&turn);
		must(cuStreamWaitEvent(stream[1], event, 0));
		must(cuMemcpyDtoHAsync(pinned + (BIG - SMALL) / 4, dev + BIG, SMALL, stream[1]));
		must(cuStreamSynchronize(stream[1]));
		wrong += pinned[BIG / 4 - 1] != 2 || pinned[(BIG - SMALL) / 4] != 2 || pinned[0] != 1;
		pthread_barrier_wait(&turn);
	}
	pthread_join(t, NULL);
	return wrong;
}

int main(void)
{
	pid_t wire;

	serve(NULL, 1);
	wire = serve_slowly("800");
	must(cuInit(0));
	must(cuDevicePrimaryCtxRetain(&ctx, 0));
	must(cuCtxSetCurrent(ctx));
	for (unsigned k = 0; k < 2; k++)
		must(cuStreamCreate(&stream[k], CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&dev, BIG + SMALL));
	must(cuMemAllocHost((void **)&pinned, BIG));
	is_int(by_one_thread(3000), 0, "3,000 pairs of one thread's copies");
	is_int(by_two_threads(), 0, "a small copy to a large one's end, of another thread, %u times", THREAD_ROUNDS);
	kill(wire, SIGTERM);
	return tap_done();
}
