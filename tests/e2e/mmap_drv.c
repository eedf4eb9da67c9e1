/* SPDX-License-Identifier: MIT */
/* Driver API: vectorAdd over memory that the program maps itself, each vector's halves on different devices where there are two.
 */
#include <cuda.h>
#include "tests/e2e/e2e.h"

#define N (1 << 20)

static int devices;

/* One range of addresses, its pieces from the devices in turn, open to all of them. */
static CUdeviceptr map(size_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access[2];
	size_t unit, piece;
	CUdeviceptr at;

	DR(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	piece = (bytes / devices + unit - 1) / unit * unit;
	DR(cuMemAddressReserve(&at, piece * devices, 0, 0, 0));
	for (int i = 0; i < devices; i++) {
		CUmemGenericAllocationHandle h;

		prop.location.id = i;
		DR(cuMemCreate(&h, piece, &prop, 0));
		DR(cuMemMap(at + i * piece, piece, 0, h, 0));
		DR(cuMemRelease(h));
		access[i] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, i}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	}
	DR(cuMemSetAccess(at, piece * devices, access, devices));
	return at;
}

int main(int argc, char **argv)
{
	size_t bytes = N * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
	CUdeviceptr da, db, dc;
	CUcontext ctx;
	CUmodule mod;
	CUfunction f;
	int n = N;
	void *args[] = {&da, &db, &dc, &n};

	(void)argc;
	DR(cuInit(0));
	DR(cuDeviceGetCount(&devices));
	if (devices > 2)
		devices = 2;
	DR(cuDevicePrimaryCtxRetain(&ctx, 0));
	DR(cuCtxSetCurrent(ctx));
	DR(cuModuleLoadData(&mod, e2e_read(e2e_beside(argv[0], "kernels.ptx"), NULL)));
	DR(cuModuleGetFunction(&f, mod, "vadd"));
	da = map(bytes);
	db = map(bytes);
	dc = map(bytes);
	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 1 - 2 * i;
	}
	DR(cuMemcpyHtoD(da, a, bytes));
	DR(cuMemcpyHtoD(db, b, bytes));
	DR(cuLaunchKernel(f, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
	DR(cuMemcpyDtoH(c, dc, bytes));
	for (int i = 0; i < N; i++)
		if (c[i] != 1 - i)
			die("c[%d] = %g, want %d", i, c[i], 1 - i);
	printf("mmap_drv: %d sums right in memory of %d devices\n", N, devices);
	return 0;
}
