// SPDX-License-Identifier: MIT
/* Who is told that work is done finds its bytes, whichever thread gave the work and whoever asks. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/api/serve.h"

#define BYTES  (8u << 20)
#define WORDS  (BYTES / 4)
#define ROUNDS 4

enum how { STREAM_QUERY, EVENT_QUERY, EVENT_RECORDED_HERE, LEGACY_QUERY, HOWS };
static const char *const name[HOWS] = {"cuStreamQuery", "cuEventQuery",
				       "cuEventQuery of an event that the asking thread recorded",
				       "cuStreamQuery of the legacy stream"};

static CUcontext ctx;
static CUstream s;
static CUevent e;
static CUdeviceptr d;
static uint32_t *host;
static pthread_barrier_t turn;
static unsigned value;
static bool over;

/* Gives the work, and is done with it. */
static void *giver(void *arg)
{
	(void)arg;
	must(cuCtxSetCurrent(ctx));
	for (;;) {
		pthread_barrier_wait(&turn);
		if (over)
			return NULL;
		must(cuMemsetD32Async(d, value, WORDS, s));
		must(cuMemcpyDtoHAsync(host, d, BYTES, s));
		must(cuEventRecord(e, s));
		pthread_barrier_wait(&turn);
	}
}

static CUresult ask(enum how how, CUevent mine)
{
	switch (how) {
	case STREAM_QUERY:
		return cuStreamQuery(s);
	case EVENT_QUERY:
		return cuEventQuery(e);
	case EVENT_RECORDED_HERE:
		return cuEventQuery(mine);
	default:
		return cuStreamQuery(NULL);
	}
}

int main(void)
{
	pid_t wire;
	CUevent mine;
	CUdevice dev;
	pthread_t t;

	serve(NULL, 1);
	wire = serve_slowly("800");
	must(cuInit(0));
	must(cuDeviceGet(&dev, 0));
	must(cuDevicePrimaryCtxRetain(&ctx, dev));
	must(cuCtxSetCurrent(ctx));
	must(cuStreamCreate(&s, 0));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&mine, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc(&d, BYTES));
	must(cuMemAllocHost((void **)&host, BYTES));
	pthread_barrier_init(&turn, NULL, 2);
	pthread_create(&t, NULL, giver, NULL);
	for (enum how how = 0; how < HOWS; how++) {
		unsigned early = 0, failed = 0, busy = 0;

		for (unsigned i = 0; i < ROUNDS; i++) {
			CUresult r;

			value++;
			pthread_barrier_wait(&turn);
			pthread_barrier_wait(&turn);
			if (how == EVENT_RECORDED_HERE)
				must(cuEventRecord(mine, s));
			while ((r = ask(how, mine)) == CUDA_ERROR_NOT_READY)
				busy++;
			failed += r != CUDA_SUCCESS;
			early += ((volatile uint32_t *)host)[WORDS - 1] != value;
			must(cuStreamSynchronize(s));
			failed += host[0] != value || host[WORDS - 1] != value;
		}
		is_int(failed, 0, "copies of %u MiB by another thread; asked with %s (%u times not ready)", BYTES >> 20,
		       name[how], busy);
		is_int(early, 0, "… it never spoke before their bytes were there");
	}
	over = true;
	pthread_barrier_wait(&turn);
	pthread_join(t, NULL);
	kill(wire, SIGTERM);
	waitpid(wire, NULL, 0);
	return tap_done();
}
