/* SPDX-License-Identifier: MIT */
/* Small synchronous calls until standard input ends, each checked; prints their number and 50th and 99th percentile in µs. */
#include <cuda.h>
#include <time.h>
#include "tests/e2e/e2e.h"

#define MAX 2000000

static float took[MAX];

static int order(const void *a, const void *b)
{
	return *(const float *)a < *(const float *)b ? -1 : *(const float *)a > *(const float *)b;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(void)
{
	uint32_t v, got, seed = 7;
	CUdeviceptr p;
	CUdevice dev;
	CUcontext ctx;
	int n = 0;

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemAlloc(&p, 4096));
	printf("works\n");
	fflush(stdout);
	while (n < MAX && !e2e_told_to_end()) {
		double begin = now();

		v = e2e_next(&seed);
		DR(cuMemcpyHtoD(p + n % 1000 * 4, &v, 4));
		DR(cuMemcpyDtoH(&got, p + n % 1000 * 4, 4));
		took[n++] = now() - begin;
		if (got != v)
			die("call %d: %u came back, %u was sent", n, got, v);
	}
	qsort(took, n, sizeof(*took), order);
	printf("calls %d p50 %.0f p99 %.0f\n", n, took[n / 2], took[n - 1 - n / 100]);
	return 0;
}
