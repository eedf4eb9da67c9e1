/* SPDX-License-Identifier: MIT */
/*
 * Times launches, small synchronous calls and copies through the driver API: the same program for every transport and driver.
 * Usage: calls KERNELS.ptx [MIB [LAUNCHES [CALLS [TRIES]]]]; prints "name value" lines: µs a call, GB/s. Best of TRIES.
 */
#include <cuda.h>
#include <time.h>
#include "tests/e2e/e2e.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static CUstream stream;
static CUfunction kernel;
static CUdeviceptr a, b;
static int tries;

static double least(double best, double t)
{
	return t < best ? t : best;
}

static void launches(int n)
{
	double issue = 1e9, complete = 1e9, t0, t1;
	int count = 7;
	void *args[] = {&a, &b, &b, &count};

	for (int r = 0; r < tries; r++) {
		t0 = now();
		for (int i = 0; i < n; i++)
			DR(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL));
		t1 = now();
		DR(cuStreamSynchronize(stream));
		issue = least(issue, t1 - t0);
		complete = least(complete, now() - t0);
	}
	printf("launch_issue %.3f\nlaunch_complete %.3f\n", issue / n * 1e6, complete / n * 1e6);
}

static void small_calls(int n)
{
	double down = 1e9, sync = 1e9, t0;
	int count = 7;
	void *args[] = {&a, &b, &b, &count};
	uint32_t word = 0;

	for (int r = 0; r < tries; r++) {
		t0 = now();
		for (int i = 0; i < n; i++)
			DR(cuMemcpyDtoH(&word, a, 4));
		down = least(down, now() - t0);
		t0 = now();
		for (int i = 0; i < n; i++) {
			DR(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL));
			DR(cuStreamSynchronize(stream));
		}
		sync = least(sync, now() - t0);
	}
	printf("d2h_4B %.3f\nlaunch_and_sync %.3f\n", down / n * 1e6, sync / n * 1e6);
}

static void copies(size_t bytes)
{
	uint32_t *out = malloc(bytes), *in = malloc(bytes), *pinned;
	double up = 1e9, down = 1e9, t0;

	if (!out || !in)
		die("no %zu bytes of memory", 2 * bytes);
	for (size_t i = 0; i < bytes / 4; i++)
		out[i] = i * 2654435761u;
	memset(in, 0, bytes);
	for (int r = 0; r < tries; r++) {
		t0 = now();
		DR(cuMemcpyHtoD(a, out, bytes));
		up = least(up, now() - t0);
		t0 = now();
		DR(cuMemcpyDtoH(in, a, bytes));
		down = least(down, now() - t0);
	}
	/* A copy that lost bytes would be a fast one. */
	if (memcmp(in, out, bytes))
		die("what came back is not what was sent");
	printf("h2d %.3f\nd2h %.3f\n", bytes / up / 1e9, bytes / down / 1e9);
	free(in);

	up = down = 1e9;
	DR(cuMemHostAlloc((void **)&pinned, bytes, 0));
	memcpy(pinned, out, bytes);
	for (int r = 0; r < tries; r++) {
		t0 = now();
		DR(cuMemcpyHtoDAsync(a, (void *)pinned, bytes, stream));
		DR(cuStreamSynchronize(stream));
		up = least(up, now() - t0);
	}
	memset(pinned, 0, bytes);
	for (int r = 0; r < tries; r++) {
		t0 = now();
		DR(cuMemcpyDtoHAsync(pinned, a, bytes, stream));
		DR(cuStreamSynchronize(stream));
		down = least(down, now() - t0);
	}
	if (memcmp(pinned, out, bytes))
		die("what came back into pinned memory is not what was sent");
	printf("h2d_pinned %.3f\nd2h_pinned %.3f\n", bytes / up / 1e9, bytes / down / 1e9);
	DR(cuMemFreeHost(pinned));
	free(out);
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)e2e_arg(argc, argv, 2, 256) << 20;
	int nlaunch = e2e_arg(argc, argv, 3, 20000), ncalls = e2e_arg(argc, argv, 4, 2000);
	CUmodule mod;
	CUdevice dev;
	CUcontext ctx;
	double t0 = now();

	tries = e2e_arg(argc, argv, 5, 3);
	if (argc < 2)
		die("usage: calls KERNELS.ptx [MIB [LAUNCHES [CALLS [TRIES]]]]");
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(argv[1], NULL)));
	DR(cuModuleGetFunction(&kernel, mod, "vadd"));
	DR(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DR(cuMemAlloc(&a, bytes));
	DR(cuMemAlloc(&b, 4096));
	printf("start %.3f\n", (now() - t0) * 1e6);
	launches(nlaunch);
	small_calls(ncalls);
	copies(bytes);
	return 0;
}
