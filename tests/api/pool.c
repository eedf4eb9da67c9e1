// SPDX-License-Identifier: MIT
/* Stream-ordered allocation and memory pools: who gets which block again, and what a pool knows of itself. */
#include "tests/api/serve.h"

static uint64_t number(CUmemoryPool p, CUmemPool_attribute a)
{
	cuuint64_t v = 12345;

	must(cuMemPoolGetAttribute(p, a, &v));
	return v;
}

/* Work that keeps @s busy until *flag is 1. */
static void hold(CUstream s, CUdeviceptr flag)
{
	must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void reuse(void)
{
	CUdeviceptr a, b, c, flag;
	CUstream s, t, other;
	long before;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&flag, 4));
	must(cuMemsetD32(flag, 0, 1));
	must(cuMemAllocAsync(&a, 3000, s));
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < 500; i++) {
		must(cuMemFreeAsync(a, s));
		must(cuMemAllocAsync(&b, 3000, s));
		must(cuMemsetD8Async(b, i, 3000, s));
		a = b;
	}
	is_int(rgpuRoundTrips(NULL), before, "five hundred blocks of a pooled size: no round trip");
	/* The stream stands still, so what it frees is only its own. */
	hold(s, flag);
	must(cuMemFreeAsync(a, s));
	must(cuMemAllocAsync(&b, 3000, t));
	ok(b != a, "another stream does not get what a busy one freed");
	must(cuMemAlloc(&c, 3000));
	ok(c != a, "nor does cuMemAlloc");
	must(cuMemFree(c));
	must(cuMemAllocAsync(&c, 3000, s));
	is_int(c, a, "the stream itself does");
	must(cuMemFreeAsync(c, s));
	must(cuMemFreeAsync(b, t));
	must(cuStreamWriteValue32(other, flag, 1, 0));
	must(cuStreamSynchronize(s));
	must(cuMemAllocAsync(&b, 3000, other));
	is_int(b, a, "once it was waited for, anybody does");
	/* The two ways of allocating may be mixed. */
	is_cu(cuMemFree(b), CUDA_SUCCESS);
	is_cu(cuMemFreeAsync(b, s), CUDA_ERROR_INVALID_VALUE);
	must(cuMemAlloc(&a, 100));
	is_cu(cuMemFreeAsync(a + 4, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFreeAsync(a, s), CUDA_SUCCESS);
	is_cu(cuMemFreeAsync(0, s), CUDA_SUCCESS);
	is_cu(cuMemAllocAsync(&a, 0, s), CUDA_SUCCESS);
	is_int(a, 0, "of nothing there is nothing");
	is_cu(cuMemAllocAsync(&a, 1ull << 50, s), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(cuMemAllocAsync(&a, 16, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMemAllocAsync(NULL, 16, s), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(flag));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuStreamDestroy(other));
}

/* All of the memory, again and again, in streams that nobody waits for. */
static void scarce(void)
{
	size_t free, total;
	CUdeviceptr a;
	CUstream s[2];

	must(cuCtxSynchronize());
	must(cuMemGetInfo(&free, &total));
	for (int i = 0; i < 2; i++)
		must(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 4; i++) {
		is_cu(cuMemAllocAsync(&a, free / 4 * 3, s[i % 2]), CUDA_SUCCESS);
		must(cuMemsetD8Async(a, 1, 1 << 20, s[i % 2]));
		must(cuMemFreeAsync(a, s[i % 2]));
	}
	for (int i = 0; i < 2; i++)
		must(cuStreamDestroy(s[i]));
	must(cuCtxSynchronize());
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		       bad = props;
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
		      host = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUmemAccessDesc access = {there, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemAccess_flags flags = 99;
	CUmemoryPool standard, p, q;
	cuuint64_t threshold = 1 << 20, zero = 0;
	CUdeviceptr a, b;
	int yes = 0, off = 0;
	CUmemoryPool of;

	must(cuDeviceGetAttribute(&yes, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	is_int(yes, 1, "the device says that it has pools");
	is_cu(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
	is_cu(cuDeviceGetMemPool(&p, 0), CUDA_SUCCESS);
	ok(p == standard, "the default pool is the current one");
	is_cu(cuMemGetDefaultMemPool(&p, &here, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
	ok(p == standard, "and found by its place, too");
	is_cu(cuMemGetMemPool(&p, &host, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuDeviceGetDefaultMemPool(&p, 7), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemPoolCreate(&p, NULL), CUDA_ERROR_INVALID_VALUE);
	bad.handleTypes = CU_MEM_HANDLE_TYPE_WIN32;
	is_cu(cuMemPoolCreate(&p, &bad), CUDA_ERROR_NOT_SUPPORTED);
	props.maxSize = 4 << 20;
	is_cu(cuMemPoolCreate(&p, &props), CUDA_SUCCESS);
	is_cu(cuDeviceSetMemPool(1, p), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceSetMemPool(0, p), CUDA_SUCCESS);
	is_cu(cuMemGetMemPool(&q, &here, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
	ok(q == p, "another pool is the current one");
	is_cu(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, standard), CUDA_SUCCESS);
	must(cuDeviceGetMemPool(&q, 0));
	ok(q == standard, "the default one again, by its place");
	is_cu(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, p), CUDA_SUCCESS);
	must(cuMemAllocAsync(&a, 1 << 20, NULL));
	must(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a + 5));
	ok(of == p, "an allocation knows its pool");
	is_int(number(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20, "one MiB is used");
	is_cu(cuMemAllocAsync(&b, (3 << 20) + 1, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	is_cu(cuMemAllocFromPoolAsync(&b, (3 << 20) + 1, standard, NULL), CUDA_SUCCESS);
	must(cuMemFreeAsync(b, NULL));
	is_cu(cuMemAllocAsync(&b, 3 << 20, NULL), CUDA_SUCCESS);
	must(cuMemsetD8Async(b, 1, 3 << 20, NULL));
	must(cuMemFreeAsync(b, NULL));
	is_int(number(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1 << 20, "freed: one again");
	is_int(number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 << 20, "reserved are four");
	is_cu(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), CUDA_SUCCESS);
	must(cuCtxSynchronize());
	is_int(number(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 1 << 20, "a wait gives back what is beyond the threshold");
	is_int(number(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 << 20, "the high mark stays");
	is_cu(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero), CUDA_SUCCESS);
	is_int(number(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1 << 20, "and is reset");
	is_cu(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &threshold), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off), CUDA_SUCCESS);
	must(cuMemPoolGetAttribute(p, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &yes));
	is_int(yes, 0, "a policy is kept");
	is_cu(cuMemPoolTrimTo(p, 0), CUDA_SUCCESS);
	is_cu(cuMemPoolGetAccess(&flags, p, &there), CUDA_SUCCESS);
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "the other device has no access");
	is_cu(cuMemPoolSetAccess(p, &access, 1), CUDA_SUCCESS);
	is_cu(cuMemPoolGetAccess(&flags, p, &there), CUDA_SUCCESS);
	is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "then it has");
	access = (CUmemAccessDesc){here, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	is_cu(cuMemPoolSetAccess(p, &access, 1), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuMemPoolDestroy(p), CUDA_SUCCESS);
	is_cu(cuMemPoolDestroy(p), CUDA_ERROR_INVALID_VALUE);
	must(cuDeviceGetMemPool(&q, 0));
	ok(q == standard, "the default pool is the current one again");
	is_cu(cuMemFree(a), CUDA_SUCCESS);
}

int main(void)
{
	serve(NULL, 2);
	primary();
	reuse();
	pools();
	scarce();
	return tap_done();
}
