// SPDX-License-Identifier: MIT
/* Addresses that the program reserves and memory that it maps there. */
#include "tests/api/serve.h"

#define MIB (1ull << 20)

static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static CUmemAccessDesc here = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static size_t unit;

static void reservations(void)
{
	CUdeviceptr a, b, c;

	is_cu(cuMemAddressReserve(&a, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressReserve(&a, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressReserve(&a, unit, 3 * unit, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressReserve(&a, 4 * unit, 64 * MIB, 0, 0), CUDA_SUCCESS);
	is_int(a % (64 * MIB), 0, "aligned as wanted");
	is_cu(cuMemAddressReserve(&b, unit, 0, a + 512 * MIB, 0), CUDA_SUCCESS);
	is_int(b, a + 512 * MIB, "an address that is free is given when asked for");
	is_cu(cuMemAddressReserve(&c, unit, 0, b, 0), CUDA_SUCCESS);
	ok(c != b, "one that is not is replaced by another");
	is_cu(cuMemAddressReserve(&c, 1ull << 50, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(cuMemAddressFree(a, unit), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressFree(a, 4 * unit), CUDA_SUCCESS);
	is_cu(cuMemAddressFree(a, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressFree(b, unit), CUDA_SUCCESS);
}

static void mapping(void)
{
	CUmemGenericAllocationHandle h[3], again = 0;
	CUmemAllocationProp got, bad = prop;
	CUmemLocation second = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
	unsigned long long flags = 99;
	CUdeviceptr a, start;
	size_t bytes;
	CUcontext ctx;
	int ordinal = 9;
	unsigned word = 0;

	is_cu(cuMemCreate(&h[0], unit / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemCreate(&h[0], 1ull << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	bad.location.id = 5;
	is_cu(cuMemCreate(&h[0], unit, &bad, 0), CUDA_ERROR_INVALID_DEVICE);
	bad = prop;
	bad.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
	is_cu(cuMemCreate(&h[0], unit, &bad, 0), CUDA_ERROR_NOT_SUPPORTED);
	for (int i = 0; i < 3; i++)
		is_cu(cuMemCreate(&h[i], unit, &prop, 0), CUDA_SUCCESS);
	is_cu(cuMemGetAllocationPropertiesFromHandle(&got, h[1]), CUDA_SUCCESS);
	is_int(got.location.id, 0, "the handle knows its device");
	must(cuMemAddressReserve(&a, 4 * unit, 0, 0, 0));
	is_cu(cuMemMap(a + 8 * unit, unit, 0, h[0], 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemMap(a, 2 * unit, 0, h[0], 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemMap(a, unit, 0, 77, 0), CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < 3; i++)
		is_cu(cuMemMap(a + i * unit, unit, 0, h[i], 0), CUDA_SUCCESS);
	is_cu(cuMemMap(a, unit, 0, h[1], 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAddressFree(a, 4 * unit), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemSetAccess(a, 4 * unit, &here, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemSetAccess(a, 3 * unit, &here, 1), CUDA_SUCCESS);
	is_cu(cuMemGetAccess(&flags, &here.location, a + unit), CUDA_SUCCESS);
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "the device may read and write");
	is_cu(cuMemGetAccess(&flags, &second, a), CUDA_SUCCESS);
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "the other one may not");
	/* Across the mappings, as an allocator with growing segments does. */
	is_cu(cuMemsetD32(a, 0x1234567, 3 * unit / 4), CUDA_SUCCESS);
	is_cu(cuMemsetD32(a, 0, 3 * unit / 4 + 1), CUDA_ERROR_INVALID_VALUE);
	must(cuMemcpyDtoH(&word, a + 2 * unit - 2, 4));
	is_int(word, 0x45670123, "memory on both sides of a seam");
	is_cu(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + unit + 5), CUDA_SUCCESS);
	is_int(start, a, "a pointer's range is the reservation");
	is_cu(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + unit + 5), CUDA_SUCCESS);
	is_int(bytes, 4 * unit, "all of it");
	is_cu(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, a + unit + 5), CUDA_SUCCESS);
	is_int(start, a + unit, "its mapping begins there");
	is_cu(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a), CUDA_SUCCESS);
	is_int(ordinal, 0, "on the first device");
	is_cu(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, a), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	/* The same memory at a second place, after its handle is gone. */
	for (int i = 0; i < 3; i++)
		is_cu(cuMemRelease(h[i]), CUDA_SUCCESS);
	is_cu(cuMemRelease(h[0]), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemRetainAllocationHandle(&again, (void *)(a + 2 * unit + 9)), CUDA_SUCCESS);
	is_cu(cuMemMap(a + 3 * unit, unit, 0, again, 0), CUDA_SUCCESS);
	is_cu(cuMemSetAccess(a + 3 * unit, unit, &here, 1), CUDA_SUCCESS);
	must(cuMemsetD32(a + 3 * unit, 7, 1));
	must(cuMemcpyDtoH(&word, a + 2 * unit, 4));
	is_int(word, 7, "written at one place, read at the other");
	is_cu(cuMemRelease(again), CUDA_SUCCESS);
	is_cu(cuMemUnmap(a + unit, unit / 2), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemUnmap(a, 2 * unit), CUDA_SUCCESS);
	is_cu(cuMemcpyDtoH(&word, a, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyDtoH(&word, a + 2 * unit, 4), CUDA_SUCCESS);
	is_cu(cuMemUnmap(a + 2 * unit, 2 * unit), CUDA_SUCCESS);
	/* The place is free for other memory. */
	must(cuMemCreate(&again, unit, &prop, 0));
	is_cu(cuMemMap(a + 2 * unit, unit, 0, again, 0), CUDA_SUCCESS);
	must(cuMemSetAccess(a + 2 * unit, unit, &here, 1));
	must(cuMemsetD32(a + 2 * unit, 8, 1));
	must(cuMemcpyDtoH(&word, a + 2 * unit, 4));
	is_int(word, 8, "mapped anew");
	must(cuMemUnmap(a + 2 * unit, unit));
	must(cuMemRelease(again));
	is_cu(cuMemAddressFree(a, 4 * unit), CUDA_SUCCESS);
}

/* What the program frees of its own can be had again, whichever way it was kept. */
static void scarce(void)
{
	CUmemGenericAllocationHandle h;
	size_t free, after, total;
	CUdeviceptr a;

	must(cuCtxSynchronize());
	must(cuMemGetInfo(&free, &total));
	must(cuMemAlloc(&a, free / 8 * 7));
	must(cuMemFree(a));
	is_cu(cuMemCreate(&h, free / 8 * 7 / unit * unit, &prop, 0), CUDA_SUCCESS);
	is_cu(cuMemAlloc(&a, free / 4), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(cuMemRelease(h), CUDA_SUCCESS);
	is_cu(cuMemAlloc(&a, free / 4), CUDA_SUCCESS);
	must(cuMemFree(a));
	must(cuMemGetInfo(&after, &total));
	is_int(after, free, "all is free again");
}

int main(void)
{
	int yes = 0;

	serve(NULL, 2);
	primary();
	must(cuDeviceGetAttribute(&yes, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	is_int(yes, 1, "the device says that it can");
	is_cu(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
	reservations();
	mapping();
	scarce();
	return tap_done();
}
