// SPDX-License-Identifier: MIT
/* Device and page-locked memory: what is given, found, freed and known about it. */
#include <sys/mman.h>
#include "tests/api/serve.h"

static void device_memory(void)
{
	CUdeviceptr a, b, base;
	size_t bytes, free0, free1, total, pitch;
	long before;

	is_cu(cuMemAlloc(&a, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAlloc(NULL, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAlloc(&a, 1ull << 50), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(cuMemAlloc(&a, 1000), CUDA_SUCCESS);
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < 1000; i++) {
		must(cuMemAlloc(&b, 4096));
		must(cuMemFree(b));
	}
	is_int(rgpuRoundTrips(NULL), before, "a thousand allocations from what is leased: no round trip");
	is_int(a % 256, 0, "aligned");
	is_cu(cuMemGetAddressRange(&base, &bytes, a + 999), CUDA_SUCCESS);
	ok(base == a && bytes == 1000, "an inner address leads to its allocation");
	is_cu(cuMemGetAddressRange(&base, &bytes, 0x1000), CUDA_ERROR_NOT_FOUND);
	is_cu(cuMemFree(a + 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFree(a), CUDA_SUCCESS);
	is_cu(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFree(0), CUDA_SUCCESS);
	is_cu(cuMemGetInfo(&free0, &total), CUDA_SUCCESS);
	ok(free0 <= total && free0 > total / 2, "%zu of %zu free", free0, total);
	must(cuDeviceTotalMem(&bytes, 0));
	is_int(total, bytes, "all of the device's memory");
	must(cuMemAlloc(&a, 64 << 20));
	is_cu(cuMemGetInfo(&free1, &total), CUDA_SUCCESS);
	is_int(free0 - free1, 64 << 20, "64 MiB less are free");
	must(cuMemFree(a));
	is_cu(cuMemGetInfo(&free1, &total), CUDA_SUCCESS);
	is_int(free1, free0, "and free again, though we keep them leased");
	before = rgpuRoundTrips("cuMemGetInfo_v2");
	for (int i = 0; i < 100; i++)
		must(cuMemGetInfo(&free1, &total));
	is_int(rgpuRoundTrips("cuMemGetInfo_v2") - before, 0, "asking while nothing changes costs nothing");
	is_cu(cuMemAllocPitch(&a, &pitch, 100, 7, 4), CUDA_SUCCESS);
	ok(pitch >= 100 && pitch % 256 == 0, "a pitch of %zu", pitch);
	is_cu(cuMemAllocPitch(&b, &pitch, 100, 7, 3), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(a));
	/* All of the memory, twice in a row: what is kept must make room. */
	must(cuMemGetInfo(&free0, &total));
	for (int i = 0; i < 2; i++) {
		is_cu(cuMemAlloc(&a, free0 / 8 * 7), CUDA_SUCCESS);
		is_cu(cuMemAlloc(&b, free0 / 4), CUDA_ERROR_OUT_OF_MEMORY);
		must(cuMemFree(a));
	}
}

static void host_memory(void)
{
	unsigned flags = 99;
	static char mine[8192];
	CUdeviceptr d;
	void *p = NULL, *q;

	is_cu(cuMemHostAlloc(&p, 100000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
	memset(p, 1, 100000);
	is_cu(cuMemHostGetFlags(&flags, p), CUDA_SUCCESS);
	is_int(flags, CU_MEMHOSTALLOC_PORTABLE, "its flags");
	is_cu(cuMemHostGetFlags(&flags, mine), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostAlloc(&q, 100, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostAlloc(&q, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostGetDevicePointer(&d, p, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostGetDevicePointer(&d, mine, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFreeHost((char *)p + 8), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFreeHost(p), CUDA_SUCCESS);
	is_cu(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemAllocHost(&p, 10), CUDA_SUCCESS);
	is_cu(cuMemFreeHost(p), CUDA_SUCCESS);
	is_cu(cuMemHostRegister(mine, sizeof(mine), 0), CUDA_SUCCESS);
	is_cu(cuMemHostRegister(mine + 100, 8, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	is_cu(cuMemHostRegister(mine, 8, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuMemHostUnregister(mine + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	is_cu(cuMemHostUnregister(mine), CUDA_SUCCESS);
	is_cu(cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* Only what the program has can be page-locked: the edges of a hole, and addresses at the end of all. */
static void host_holes(void)
{
	enum { PAGE = 4096, PAGES = 3000 };
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	munmap(p + 2000 * PAGE, PAGE);
	is_cu(cuMemHostRegister(p, PAGES * PAGE, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister(p + 2000 * PAGE, 1, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister(p + 2000 * PAGE - 1, 2, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister(p + 2001 * PAGE - 1, 2, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister((void *)16, 16, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister((void *)-17, 16, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemHostRegister(p, 2000 * PAGE, 0), CUDA_SUCCESS);
	is_cu(cuMemHostRegister(p + 2001 * PAGE, 999 * PAGE, 0), CUDA_SUCCESS);
	must(cuMemHostUnregister(p));
	must(cuMemHostUnregister(p + 2001 * PAGE));
	munmap(p, PAGES * PAGE);
}

/* With SYNC_MEMOPS the operations that need not wait for the device do. */
static void synced(CUdeviceptr a, CUdeviceptr b)
{
	long before;
	int on = 9;

	must(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
	is_int(on, 0, "not set at first");
	is_cu(cuPointerSetAttribute(&(int){1}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)&on), CUDA_ERROR_INVALID_VALUE);
	must(cuCtxSynchronize());
	before = rgpuRoundTrips("STREAM_SYNC");
	must(cuMemsetD8(a, 1, 16));
	must(cuMemcpyDtoD(b, a, 16));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before, "a fill and a copy on the device wait for nothing");
	is_cu(cuPointerSetAttribute(&(int){1}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a + 5), CUDA_SUCCESS);
	must(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a));
	is_int(on, 1, "set, for the whole allocation");
	must(cuMemsetD8(a, 2, 16));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before + 1, "then a fill waits for its end");
	must(cuMemcpyDtoD(b, a, 16));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before + 2, "a copy on the device, too");
	must(cuMemcpyHtoD(a, &on, 4));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before + 3, "and one that comes from the host");
	must(cuMemsetD8Async(a, 2, 16, NULL));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before + 3, "an asynchronous one does not");
	is_cu(cuPointerSetAttribute(&(int){0}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, a), CUDA_SUCCESS);
	must(cuMemsetD8(a, 1, 16));
	is_int(rgpuRoundTrips("STREAM_SYNC"), before + 3, "and none when it is off again");
}

static void attributes(CUcontext ctx)
{
	CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				      CU_POINTER_ATTRIBUTE_CONTEXT};
	unsigned type = 9, id = 9;
	unsigned long long buffer = 0, buffer2 = 0;
	CUcontext c = NULL;
	int ordinal = 9;
	void *data[] = {&type, &ordinal, &c}, *p;
	CUdeviceptr a, b, start;
	size_t size;
	int local;

	must(cuMemAlloc(&a, 3000));
	must(cuMemAlloc(&b, 3000));
	must(cuMemHostAlloc(&p, 3000, 0));
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 5), CUDA_SUCCESS);
	is_int(type, CU_MEMORYTYPE_DEVICE, "device memory is");
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)p + 5), CUDA_SUCCESS);
	is_int(type, CU_MEMORYTYPE_HOST, "page-locked memory is the host's");
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&local), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuPointerGetAttribute(&buffer, CU_POINTER_ATTRIBUTE_BUFFER_ID, a), CUDA_SUCCESS);
	is_cu(cuPointerGetAttribute(&buffer2, CU_POINTER_ATTRIBUTE_BUFFER_ID, b), CUDA_SUCCESS);
	ok(buffer && buffer != buffer2, "each allocation has its number");
	is_cu(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 2999), CUDA_SUCCESS);
	is_cu(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 2999), CUDA_SUCCESS);
	ok(start == a && size == 3000, "its range");
	is_cu(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_IS_MANAGED, a), CUDA_SUCCESS);
	is_int(id, 0, "not managed");
	is_cu(cuPointerGetAttributes(3, list, data, a), CUDA_SUCCESS);
	ok(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && c == ctx, "several at once");
	is_cu(cuPointerGetAttributes(3, list, data, (CUdeviceptr)&local), CUDA_SUCCESS);
	ok(type == 0 && ordinal == CU_DEVICE_INVALID && !c, "of memory that CUDA does not know: zeroes, and -2");
	synced(a, b);
	is_cu(cuPointerSetAttribute(&(int){0}, CU_POINTER_ATTRIBUTE_CONTEXT, a), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFreeHost(p));
	must(cuMemFree(a));
	is_cu(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(b));
}

int main(void)
{
	CUcontext c;

	serve(NULL, 1);
	c = primary();
	device_memory();
	host_memory();
	host_holes();
	attributes(c);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	return tap_done();
}
