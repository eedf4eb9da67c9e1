/* SPDX-License-Identifier: MIT */
/* One large upload beside small calls of another thread: they go on meanwhile, and every byte arrives. Usage: upload [MIB
 * [CALLS]] */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tests/e2e/e2e.h"

#define SAMPLE 4096

static CUcontext ctx;
static CUdeviceptr big;
static uint8_t *data;
static size_t bytes;
static atomic_int state; /* 0 not begun, 1 under way, 2 done */

static void *uploader(void *arg)
{
	(void)arg;
	DR(cuCtxSetCurrent(ctx));
	state = 1;
	DR(cuMemcpyHtoD(big, data, bytes));
	state = 2;
	return NULL;
}

int main(int argc, char **argv)
{
	long mib = e2e_arg(argc, argv, 1, 1024), least = e2e_arg(argc, argv, 2, 10), during = 0;
	static uint8_t sample[SAMPLE];
	uint32_t sent = 1, back;
	CUdeviceptr small;
	pthread_t thread;
	CUdevice dev;

	bytes = (size_t)mib << 20;
	data = malloc(bytes);
	if (!data)
		die("no %ld MiB of memory", mib);
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)data)[i] = i * 0x9e3779b97f4a7c15ull;
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemAlloc(&big, bytes));
	DR(cuMemAlloc(&small, 4));
	pthread_create(&thread, NULL, uploader, NULL);
	while (state == 0)
		;
	/* Each is a round trip: up, then back. */
	while (state == 1) {
		DR(cuMemcpyHtoD(small, &sent, 4));
		DR(cuMemcpyDtoH(&back, small, 4));
		if (back != sent)
			die("small copy %u came back as %u", sent, back);
		sent++;
		during += state == 1; /* began and ended while the upload ran */
	}
	pthread_join(thread, NULL);
	if (during < least)
		die("only %ld small calls ended during an upload of %ld MiB, want at least %ld", during, mib, least);
	/* A page of every MiB, at a place that moves. */
	for (size_t i = 0; i < bytes >> 20; i++) {
		size_t at = (i << 20) + (i * 37 % 256) * SAMPLE;

		DR(cuMemcpyDtoH(sample, big + at, SAMPLE));
		if (memcmp(sample, data + at, SAMPLE))
			die("the upload is wrong near byte %zu", at);
	}
	DR(cuMemFree(big));
	DR(cuMemFree(small));
	printf("upload: %ld MiB right, %ld small calls meanwhile\n", mib, during);
	return 0;
}
