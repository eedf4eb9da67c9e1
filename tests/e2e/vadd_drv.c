/* SPDX-License-Identifier: MIT */
/* Driver API: vectorAdd from PTX and from a fat binary, checked against the CPU. */
#include <cuda.h>
#include "tests/e2e/e2e.h"

#define N (1 << 20)

static void run(const char *file)
{
	size_t bytes = N * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
	CUdeviceptr da, db, dc;
	CUmodule mod;
	CUfunction f;
	int n = N;
	void *args[] = {&da, &db, &dc, &n};
	uint32_t seed = 1;

	for (int i = 0; i < N; i++) {
		a[i] = e2e_next(&seed) % 1000;
		b[i] = e2e_next(&seed) % 1000;
		c[i] = -1;
	}
	DR(cuModuleLoadData(&mod, e2e_read(file, NULL)));
	DR(cuModuleGetFunction(&f, mod, "vadd"));
	DR(cuMemAlloc(&da, bytes));
	DR(cuMemAlloc(&db, bytes));
	DR(cuMemAlloc(&dc, bytes));
	DR(cuMemcpyHtoD(da, a, bytes));
	DR(cuMemcpyHtoD(db, b, bytes));
	DR(cuMemsetD8(dc, 0xff, bytes));
	DR(cuLaunchKernel(f, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
	DR(cuCtxSynchronize());
	DR(cuMemcpyDtoH(c, dc, bytes));
	for (int i = 0; i < N; i++)
		if (c[i] != a[i] + b[i])
			die("%s: c[%d] = %g, want %g", file, i, c[i], a[i] + b[i]);
	DR(cuMemFree(da));
	DR(cuMemFree(db));
	DR(cuMemFree(dc));
	DR(cuModuleUnload(mod));
	free(a);
	free(b);
	free(c);
}

int main(int argc, char **argv)
{
	CUdevice dev;
	CUcontext ctx;
	char name[100];

	(void)argc;
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDeviceGetName(name, sizeof(name), dev));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	run(e2e_beside(argv[0], "kernels.ptx"));
	run(e2e_beside(argv[0], "kernels.fatbin"));
	DR(cuDevicePrimaryCtxRelease(dev));
	printf("vadd_drv: %d sums right, twice, on %s\n", N, name);
	return 0;
}
