/* SPDX-License-Identifier: MIT */
/*
 * How much device memory this program can have: prints "total T free F got G of it again A arrays R imported I", in MiB.
 * Usage: quota_drv [wait]: holds what it got until its standard input ends.
 */
#include <cuda.h>
#include "tests/e2e/e2e.h"

#define MIB  (1ull << 20)
#define STEP (8 * MIB)
#define MAX  1000

static CUdeviceptr got[MAX];

static unsigned fill(void)
{
	unsigned n = 0;
	CUresult r = CUDA_SUCCESS;

	while (n < MAX && !(r = cuMemAlloc(&got[n], STEP)))
		n++;
	if (r && r != CUDA_ERROR_OUT_OF_MEMORY)
		die("cuMemAlloc: %d", r);
	return n * (STEP / MIB);
}

static unsigned arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {.Width = 1024, .Height = 1024, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
	CUarray a[MAX];
	CUresult r = CUDA_SUCCESS;
	unsigned n = 0;

	while (n < 100 && !(r = cuArrayCreate(&a[n], &d)))
		n++;
	if (r && r != CUDA_ERROR_OUT_OF_MEMORY)
		die("cuArrayCreate: %d", r);
	for (unsigned i = 0; i < n; i++)
		DR(cuArrayDestroy(a[i]));
	return n * (STEP / MIB);
}

/* Memory that is let go where it was made stays with who imported it, be it the same program: it is nobody's gift. */
static unsigned imported(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
	};
	CUmemGenericAllocationHandle made, in[MAX];
	CUmemFabricHandle name;
	CUresult r = CUDA_SUCCESS;
	unsigned n = 0;

	while (n < 100 && !(r = cuMemCreate(&made, STEP, &prop, 0))) {
		DR(cuMemExportToShareableHandle(&name, made, CU_MEM_HANDLE_TYPE_FABRIC, 0));
		r = cuMemImportFromShareableHandle(&in[n], &name, CU_MEM_HANDLE_TYPE_FABRIC);
		DR(cuMemRelease(made));
		if (r)
			break;
		n++;
	}
	if (r && r != CUDA_ERROR_OUT_OF_MEMORY)
		die("memory that is imported: %d", r);
	for (unsigned i = 0; i < n; i++)
		DR(cuMemRelease(in[i]));
	return n * (STEP / MIB);
}

int main(int argc, char **argv)
{
	size_t total, free_bytes, all;
	unsigned n, again, in_arrays, in_imports;
	CUdevice dev;
	CUcontext ctx;

	(void)argv;
	DR(cuInit(0));
	DR(cuDeviceGet(&dev, 0));
	DR(cuDeviceTotalMem(&total, dev));
	DR(cuDevicePrimaryCtxRetain(&ctx, dev));
	DR(cuCtxSetCurrent(ctx));
	DR(cuMemGetInfo(&free_bytes, &all));
	if (all != total)
		die("cuMemGetInfo says %zu bytes, cuDeviceTotalMem %zu", all, total);
	in_arrays = arrays(); /* first: what is leased for allocations stays leased */
	in_imports = imported();
	n = fill();
	if (argc > 1) {
		printf("total %zu free %zu got %u\n", (size_t)(total / MIB), (size_t)(free_bytes / MIB), n);
		fflush(stdout);
		while (getchar() != EOF)
			;
		return 0;
	}
	/* What was freed may be had again, once a wait has seen the device idle. */
	for (unsigned i = 0; i < n / (STEP / MIB); i++)
		DR(cuMemFree(got[i]));
	DR(cuCtxSynchronize());
	again = fill();
	printf("total %zu free %zu got %u of it again %u arrays %u imported %u\n", (size_t)(total / MIB),
	       (size_t)(free_bytes / MIB), n, again, in_arrays, in_imports);
	return 0;
}
