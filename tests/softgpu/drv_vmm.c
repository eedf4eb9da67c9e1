// SPDX-License-Identifier: MIT
/* Tests of virtual memory management: reservations at an address, mapping, access, aliases. */
#include "tests/softgpu/drv.h"

#include <sys/mman.h>

#define MIB    (1ull << 20)
#define WINDOW 0x200000000000ull

static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static CUmemAccessDesc rw = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void window(CUdeviceptr base)
{
	CUmemGenericAllocationHandle a, b;
	unsigned long long flags;
	CUmemAllocationProp got;
	CUdeviceptr start;
	uint32_t word;
	size_t n;

	works(cuMemGetAllocationGranularity(&n, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	is_int(n, 2 * MIB, "the granularity is 2 MiB");
	gives(cuMemCreate(&a, MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemCreate(&a, 1024 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	works(cuMemCreate(&a, 4 * MIB, &prop, 0));
	works(cuMemCreate(&b, 2 * MIB, &prop, 0));
	works(cuMemGetAllocationPropertiesFromHandle(&got, a));
	is_int(got.location.type, CU_MEM_LOCATION_TYPE_DEVICE, "a handle knows its properties");
	works(cuMemMap(base, 4 * MIB, 0, a, 0));
	works(cuMemMap(base + 4 * MIB, 2 * MIB, 0, b, 0));
	gives(cuMemMap(base + 2 * MIB, 2 * MIB, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemMap(base + 8 * MIB, 4 * MIB, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemMap(WINDOW - 4 * MIB, 2 * MIB, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemsetD8(base, 1, 16), CUDA_ERROR_INVALID_VALUE);
	works(cuMemGetAccess(&flags, &rw.location, base));
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "mapped memory begins without access");
	works(cuMemSetAccess(base, 6 * MIB, &rw, 1));
	works(cuMemGetAccess(&flags, &rw.location, base + 5 * MIB));
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "and gets it");
	works(cuMemsetD32(base, 0xabcd1234, 6 * MIB / 4));
	works(cuMemcpyDtoH(&word, base + 4 * MIB - 2, 4));
	is_int(word, 0x1234abcd, "a copy goes over the seam of two mappings");
	works(cuMemGetAddressRange(&start, &n, base + 3 * MIB));
	ok(start == base && n == 4 * MIB, "the range of a mapping");
	gives(cuMemUnmap(base + 2 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemUnmap(base, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemAddressFree(base, 1ull << 40), CUDA_ERROR_INVALID_VALUE);

	/* The same memory at a second place. */
	works(cuMemMap(base + 16 * MIB, 2 * MIB, 0, b, 0));
	works(cuMemSetAccess(base + 16 * MIB, 2 * MIB, &rw, 1));
	works(cuMemsetD32(base + 16 * MIB, 42, 1));
	works(cuMemcpyDtoH(&word, base + 4 * MIB, 4));
	is_int(word, 42, "an alias shows the same bytes");

	/* Memory lives as long as a handle or a mapping does. */
	works(cuMemRelease(b));
	gives(cuMemRelease(b), CUDA_ERROR_INVALID_VALUE);
	works(cuMemcpyDtoH(&word, base + 16 * MIB, 4));
	is_int(word, 42, "the mapping keeps released memory");
	works(cuMemUnmap(base, 6 * MIB));
	gives(cuMemcpyDtoH(&word, base, 4), CUDA_ERROR_INVALID_VALUE);
	works(cuMemRetainAllocationHandle(&b, (void *)(uintptr_t)(base + 17 * MIB)));
	works(cuMemUnmap(base + 16 * MIB, 2 * MIB));
	works(cuMemMap(base + 48 * MIB, 2 * MIB, 0, b, 0));
	works(cuMemSetAccess(base + 48 * MIB, 2 * MIB, &rw, 1));
	works(cuMemcpyDtoH(&word, base + 48 * MIB, 4));
	is_int(word, 42, "a handle taken from a mapping keeps the memory, too");
	works(cuMemUnmap(base + 48 * MIB, 2 * MIB));
	works(cuMemRelease(b));
	gives(cuMemRelease(b), CUDA_ERROR_INVALID_VALUE);
	works(cuMemMap(base + 32 * MIB, 4 * MIB, 0, a, 0));
	works(cuMemSetAccess(base + 32 * MIB, 4 * MIB, &rw, 1));
	works(cuMemcpyDtoH(&word, base + 32 * MIB, 4));
	is_int(word, 0xabcd1234, "memory keeps its bytes while it is unmapped");
	rw.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	works(cuMemSetAccess(base + 32 * MIB, 4 * MIB, &rw, 1));
	gives(cuMemcpyDtoH(&word, base + 32 * MIB, 4), CUDA_ERROR_INVALID_VALUE);
	rw.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	gives(cuMemSetAccess(base + 32 * MIB, 4 * MIB, &rw, 1), CUDA_ERROR_NOT_SUPPORTED);
	rw.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	works(cuMemUnmap(base + 32 * MIB, 4 * MIB));
	works(cuMemRelease(a));
}

static void fresh_is_zero(CUdeviceptr base)
{
	CUmemGenericAllocationHandle a;
	uint64_t word = 1;

	for (int i = 0; i < 2; i++) {
		must(cuMemCreate(&a, 2 * MIB, &prop, 0));
		must(cuMemMap(base, 2 * MIB, 0, a, 0));
		must(cuMemSetAccess(base, 2 * MIB, &rw, 1));
		must(cuMemcpyDtoH(&word, base + MIB, 8));
		is_int(word, 0, "new memory holds nobody's old bytes");
		must(cuMemsetD8(base, 0xff, 2 * MIB));
		must(cuCtxSynchronize());
		must(cuMemUnmap(base, 2 * MIB));
		must(cuMemRelease(a));
	}
}

int main(void)
{
	CUdeviceptr p, q, r;
	size_t free0, free1, total;

	setenv("RGPU_SOFTGPU_MEM_MIB", "512", 1);
	drv_start();
	must(cuMemGetInfo(&free0, &total));
	/* Before the window, as a server's context may need memory first. */
	must(cuMemAlloc(&q, 1000));
	gives(cuMemAddressReserve(&p, 1000, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemAddressReserve(&p, 2 * MIB, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	works(cuMemAddressReserve(&p, 1ull << 40, 0, WINDOW, 0));
	is_int(p, WINDOW, "a terabyte at the address that was asked for");
	works(cuMemAddressReserve(&r, 4 * MIB, 0, WINDOW + 64 * MIB, 0));
	ok(r < WINDOW || r >= WINDOW + (1ull << 40), "a hint that is taken leads elsewhere");
	works(cuMemAddressFree(r, 4 * MIB));
	works(cuMemAddressReserve(&r, 64 * MIB, 32 * MIB, 0, 0));
	is_int(r % (32 * MIB), 0, "an alignment is kept");
	window(p);
	fresh_is_zero(p);
	works(cuMemAddressFree(p, 1ull << 40));
	gives(cuMemAddressFree(p, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
	works(cuMemAddressFree(r, 64 * MIB));
	works(cuMemFree(q));
	must(cuMemGetInfo(&free1, &total));
	is_int(free1, free0, "all memory came back");
	return tap_done();
}
