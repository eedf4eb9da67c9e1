/* SPDX-License-Identifier: MIT */
/* Training-like steps whose result is read one step late: a batch up, a kernel, a number back, and a wait for the step before.
 * Usage: late [STEPS [MIB]] */
#include <cuda.h>
#include "tests/e2e/e2e.h"

int main(int argc, char **argv)
{
	long steps = e2e_arg(argc, argv, 1, 12), mib = e2e_arg(argc, argv, 2, 2);
	size_t bytes = (size_t)mib << 20;
	int n = bytes / sizeof(float);
	float *batch[2], *result;
	CUdeviceptr a[2], b, c;
	CUevent done[2];
	CUstream stream;
	CUcontext ctx;
	CUmodule mod;
	CUfunction f;
	CUdevice dev;

	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(e2e_beside(argv[0], "kernels.ptx"), NULL)));
	DR(cuModuleGetFunction(&f, mod, "vadd"));
	DR(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DR(cuMemHostAlloc((void **)&result, 4096, 0));
	DR(cuMemAlloc(&b, bytes));
	DR(cuMemAlloc(&c, bytes));
	DR(cuMemsetD8(b, 0, bytes));
	for (int i = 0; i < 2; i++) {
		DR(cuMemHostAlloc((void **)&batch[i], bytes, 0));
		DR(cuMemAlloc(&a[i], bytes));
		DR(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
	}
	for (long s = 0; s <= steps; s++) {
		int now = s % 2, before = !now;
		void *args[] = {&a[now], &b, &c, &n};

		if (s < steps) {
			/* Its last use was waited for. */
			for (int i = 0; i < n; i++)
				batch[now][i] = i % 1000 + s * 1000;
			result[now] = -1;
			DR(cuMemcpyHtoDAsync(a[now], batch[now], bytes, stream));
			DR(cuLaunchKernel(f, (n + 255) / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
			DR(cuMemcpyDtoHAsync(&result[now], c + (n - 1) * sizeof(float), sizeof(float), stream));
			DR(cuEventRecord(done[now], stream));
		}
		if (!s)
			continue;
		DR(cuEventSynchronize(done[before]));
		if (result[before] != (n - 1) % 1000 + (s - 1) * 1000)
			die("step %ld: %g, not %ld", s - 1, result[before], (n - 1) % 1000 + (s - 1) * 1000);
	}
	DR(cuDevicePrimaryCtxRelease(dev));
	printf("late: %ld steps, each right\n", steps);
	return 0;
}
