/* SPDX-License-Identifier: MIT */
/*
 * Threads that copy to the device and from it at the same time, each on a channel of its own; every byte is looked at. Usage:
 * bothways [THREADS [MIB]]: so much each way and thread.
 */
#include <cuda.h>
#include <pthread.h>
#include "tests/e2e/e2e.h"

#define PIECE (4u << 20)
#define WORDS (PIECE / 8)

static CUcontext ctx;
static long rounds;

static uint64_t word(uint64_t of, uint64_t i)
{
	return (of + i) * 0x9e3779b97f4a7c15ull;
}

static void fill(uint64_t *p, uint64_t of)
{
	for (uint64_t i = 0; i < WORDS; i++)
		p[i] = word(of, i);
}

static void check(const uint64_t *p, uint64_t of, const char *what, long thread)
{
	for (uint64_t i = 0; i < WORDS; i++)
		if (p[i] != word(of, i))
			die("thread %ld: word %llu of what came %s is wrong", thread, (unsigned long long)i, what);
}

/* Two pieces of each direction are under way. Every other thread's downloads go to pageable memory: those block, and uploads go
 * on. */
static void *both(void *arg)
{
	long thread = (long)arg;
	uint64_t *up[2], *down[2], *pageable = malloc(PIECE);
	CUdeviceptr to[2], from;
	CUstream sup, sdown;
	CUevent eup[2], edown[2];

	DR(cuCtxSetCurrent(ctx));
	DR(cuStreamCreate(&sup, CU_STREAM_NON_BLOCKING));
	DR(cuStreamCreate(&sdown, CU_STREAM_NON_BLOCKING));
	DR(cuMemAlloc(&from, PIECE));
	for (int i = 0; i < 2; i++) {
		DR(cuMemHostAlloc((void **)&up[i], PIECE, 0));
		DR(cuMemHostAlloc((void **)&down[i], PIECE, 0));
		DR(cuMemAlloc(&to[i], PIECE));
		DR(cuEventCreate(&eup[i], CU_EVENT_DISABLE_TIMING));
		DR(cuEventCreate(&edown[i], CU_EVENT_DISABLE_TIMING));
	}
	fill(up[0], thread << 32);
	DR(cuMemcpyHtoD(from, up[0], PIECE));
	for (long r = 0; r < rounds + 2; r++) {
		int i = r % 2;

		if (r >= 2) {
			DR(cuEventSynchronize(eup[i]));
			DR(cuEventSynchronize(edown[i]));
			if (!(thread % 2))
				check(down[i], thread << 32, "back", thread);
		}
		if (r >= rounds)
			continue;
		fill(up[i], (thread << 32) + r);
		DR(cuMemcpyHtoDAsync(to[i], up[i], PIECE, sup));
		DR(cuEventRecord(eup[i], sup));
		if (thread % 2) {
			memset(pageable, 0, PIECE);
			DR(cuMemcpyDtoHAsync(pageable, from, PIECE, sdown));
			check(pageable, thread << 32, "back into pageable memory", thread);
		} else {
			memset(down[i], 0, PIECE);
			DR(cuMemcpyDtoHAsync(down[i], from, PIECE, sdown));
		}
		DR(cuEventRecord(edown[i], sdown));
	}
	for (long r = rounds - 2; r < rounds; r++) {
		DR(cuMemcpyDtoH(pageable, to[r % 2], PIECE));
		check(pageable, (thread << 32) + r, "up", thread);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = e2e_arg(argc, argv, 1, 6), mib = e2e_arg(argc, argv, 2, 32);
	pthread_t thread[256];
	CUdevice dev;

	rounds = mib / (PIECE >> 20);
	if (n < 1 || n > 200 || rounds < 2)
		die("usage: bothways [THREADS [MIB]], at most 200 threads, at least 8 MiB");
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	for (long i = 0; i < n; i++)
		pthread_create(&thread[i], NULL, both, (void *)i);
	for (long i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("%ld threads, %ld MiB each way\n", n, mib);
	return 0;
}
