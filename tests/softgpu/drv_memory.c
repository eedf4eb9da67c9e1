// SPDX-License-Identifier: MIT
/* Tests of allocation, copies, memset, page-locked and managed memory, pools, pointer attributes. */
#include "tests/softgpu/drv.h"

#define MIB (1ull << 20)

static CUcontext ctx;

static void allocation(void)
{
	size_t free0, free1, total, n;
	CUdeviceptr p, q, base;

	works(cuMemGetInfo(&free0, &total));
	is_int(total, 256 * MIB, "the total is what the environment says");
	gives(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemAlloc(NULL, 16), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemAlloc(&p, 300 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	gives(cuMemAlloc(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	works(cuMemAlloc(&p, 100));
	is_int(p % 256, 0, "an allocation is aligned");
	works(cuMemAlloc(&q, 100));
	ok(p != q, "two allocations are two");
	works(cuMemGetAddressRange(&base, &n, p + 50));
	ok(base == p && n == 100, "the range is what was asked");
	gives(cuMemGetAddressRange(&base, &n, p + 100), CUDA_ERROR_NOT_FOUND);
	gives(cuMemFree(p + 4), CUDA_ERROR_INVALID_VALUE);
	works(cuMemFree(p));
	gives(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	works(cuMemFree(q));
	works(cuMemFree(0));
	works(cuMemAlloc(&p, 200 * MIB));
	gives(cuMemAlloc(&q, 100 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	works(cuMemGetInfo(&free1, &total));
	is_int(free0 - free1, 200 * MIB, "free memory shrinks by what is taken");
	works(cuMemFree(p));
	works(cuMemGetInfo(&free1, &total));
	is_int(free1, free0, "and all comes back");
	works(cuMemAllocPitch(&p, &n, 100, 10, 4));
	ok(n >= 100 && n % 256 == 0, "a pitch is aligned");
	works(cuMemFree(p));
	gives(cuMemAllocPitch(&p, &n, 100, 10, 3), CUDA_ERROR_INVALID_VALUE);
}

static void copies(void)
{
	static uint32_t host[1024], back[1024];
	CUdeviceptr a, b;

	for (int i = 0; i < 1024; i++)
		host[i] = (uint32_t)i * 2654435761u;
	must(cuMemAlloc(&a, sizeof(host)));
	must(cuMemAlloc(&b, sizeof(host)));
	works(cuMemcpyHtoD(a, host, sizeof(host)));
	works(cuMemcpyDtoD(b, a, sizeof(host)));
	works(cuMemcpyDtoH(back, b, sizeof(host)));
	ok(!memcmp(host, back, sizeof(host)), "bytes survive the round");
	works(cuMemcpyDtoH(back, b + 4, 8));
	ok(back[0] == host[1] && back[1] == host[2], "a copy from the middle");
	memset(back, 0, sizeof(back));
	works(cuMemcpy((CUdeviceptr)(uintptr_t)back, a, sizeof(host)));
	ok(!memcmp(host, back, sizeof(host)), "an untyped copy knows where things lie");
	gives(cuMemcpyHtoD(a, host, sizeof(host) + 1), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemcpyDtoH(back, a + 4096 - 4, 8), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)back, host, 16), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemcpyDtoH(back, 0, 4), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemcpyDtoH(back, 0x1234000, 4), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemcpyHtoD(a, NULL, 4), CUDA_ERROR_INVALID_VALUE);
	works(cuMemcpyHtoD(a, host, 0));
	must(cuMemFree(a));
	gives(cuMemcpyDtoH(back, a, 4), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(b));
}

static void batches(void)
{
	uint32_t a = 11, b = 22, back[2] = {0};
	CUmemcpyAttributes attr = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUdeviceptr p, dsts[2], srcs[2] = {(CUdeviceptr)(uintptr_t)&a, (CUdeviceptr)(uintptr_t)&b};
	size_t sizes[2] = {4, 4}, idx = 0;
	CUstream s;

	must(cuMemAlloc(&p, 8));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	dsts[0] = p + 4;
	dsts[1] = p;
	works(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &idx, 1, s));
	works(cuMemcpyDtoHAsync(back, p, 8, s));
	ok(back[0] == 22 && back[1] == 11, "a batch of two copies");
	gives(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &idx, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	sizes[1] = 0;
	gives(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &idx, 1, s), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
	must(cuMemFree(p));
}

static void boxes(void)
{
	uint8_t host[8][10], back[4 * 4 * 5];
	CUDA_MEMCPY2D c = {0};
	CUDA_MEMCPY3D d = {0};
	CUdeviceptr p;
	int wrong = 0;

	for (int y = 0; y < 8; y++)
		for (int x = 0; x < 10; x++)
			host[y][x] = (uint8_t)(y * 16 + x);
	must(cuMemAlloc(&p, 4096));
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = host;
	c.srcPitch = 10;
	c.srcXInBytes = 2;
	c.srcY = 1;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = p;
	c.dstPitch = 64;
	c.WidthInBytes = 5;
	c.Height = 4;
	works(cuMemcpy2D(&c));
	d.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	d.srcDevice = p;
	d.srcPitch = 64;
	d.srcHeight = 2;
	d.dstMemoryType = CU_MEMORYTYPE_HOST;
	d.dstHost = back;
	d.dstPitch = 5;
	d.dstHeight = 2;
	d.WidthInBytes = 5;
	d.Height = 2;
	d.Depth = 2;
	works(cuMemcpy3D(&d));
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 5; x++)
			wrong += back[y * 5 + x] != (y + 1) * 16 + x + 2;
	is_int(wrong, 0, "a box lands where it belongs");
	c.dstPitch = 4;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	c.dstPitch = 64;
	c.Height = 100;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	c.Height = SIZE_MAX;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_HANDLE);
	gives(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
}

static void fills(void)
{
	uint32_t back[64];
	CUdeviceptr p;
	int wrong = 0;

	must(cuMemAlloc(&p, sizeof(back)));
	works(cuMemsetD32(p, 0x01020304, 64));
	works(cuMemsetD16(p + 4, 0xabcd, 1));
	works(cuMemsetD8(p + 8, 0xee, 3));
	works(cuMemsetD2D8(p + 16, 32, 0x77, 8, 2));
	works(cuMemcpyDtoH(back, p, sizeof(back)));
	is_int(back[0], 0x01020304, "32 bits");
	is_int(back[1], 0x0102abcd, "16 bits");
	is_int(back[2], 0x01eeeeee, "8 bits");
	ok(back[4] == 0x77777777 && back[5] == 0x77777777 && back[12] == 0x77777777 && back[13] == 0x77777777, "two rows");
	for (int i = 14; i < 64; i++)
		wrong += back[i] != 0x01020304;
	wrong += back[6] != 0x01020304;
	is_int(wrong, 0, "and nothing else");
	gives(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemsetD32(p, 0, 65), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemsetD32(p, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemsetD2D32(p, 4, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
}

/* Adds 1 to the word of each thread. */
static CUfunction increment(void)
{
	static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				   ".visible .entry increment(.param .u64 p)\n{\n"
				   ".reg .u32 %r<4>;\n.reg .u64 %d<4>;\n"
				   "ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\n"
				   "add.u64 %d3, %d1, %d2;\nld.global.u32 %r2, [%d3];\nadd.u32 %r3, %r2, 1;\n"
				   "st.global.u32 [%d3], %r3;\nret;\n}\n";
	CUmodule m;
	CUfunction f;

	must(cuModuleLoadData(&m, text));
	must(cuModuleGetFunction(&f, m, "increment"));
	return f;
}

static void host_memory(void)
{
	static char mine[8192];
	unsigned int flags, type;
	CUdeviceptr d, p;
	void *h;

	works(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE));
	memset(h, 0x5a, 4096);
	works(cuMemHostGetDevicePointer(&d, h, 0));
	works(cuMemHostGetFlags(&flags, h));
	ok(flags & CU_MEMHOSTALLOC_PORTABLE, "flags are kept");
	works(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
	is_int(type, CU_MEMORYTYPE_HOST, "page-locked memory is the host's");
	must(cuMemAlloc(&p, 4096));
	works(cuMemcpyDtoD(p, d, 4096));
	works(cuMemsetD8((CUdeviceptr)(uintptr_t)h, 1, 4096));
	works(cuMemcpyDtoH(mine, p, 4096));
	ok(mine[0] == 0x5a && mine[4095] == 0x5a, "the device reads it by its device pointer");
	ok(((char *)h)[4095] == 1, "a memset of it is done when it returns");
	gives(cuMemFree(d), CUDA_ERROR_INVALID_VALUE);
	works(cuMemFreeHost(h));
	gives(cuMemFreeHost(h), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemHostAlloc(&h, 0, 0), CUDA_ERROR_INVALID_VALUE);

	works(cuMemHostRegister(mine, sizeof(mine), 0));
	gives(cuMemHostRegister(mine + 100, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	works(cuMemcpyHtoD(p, mine, 4096));
	works(cuMemHostGetDevicePointer(&d, mine + 8, 0));
	ok(d == (CUdeviceptr)(uintptr_t)(mine + 8), "registered memory has its own address on the device");
	memset(mine, 0, sizeof(mine));
	must(cuLaunchKernel(increment(), 1, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&d}, NULL));
	works(cuCtxSynchronize());
	ok(!mine[4] && mine[8] == 1 && mine[8 + 63 * 4] == 1 && !mine[8 + 64 * 4], "kernels reach it");
	works(cuMemsetD8(d, 7, 100));
	ok(mine[8] == 7 && mine[107] == 7 && mine[108] != 7, "and so does a memset");
	gives(cuMemsetD8(d, 7, sizeof(mine)), CUDA_ERROR_INVALID_VALUE);
	gives(cuMemHostUnregister(mine + 4), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	works(cuMemHostUnregister(mine));
	gives(cuMemHostUnregister(mine), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	must(cuMemFree(p));
}

static void managed(void)
{
	unsigned int is;
	CUdeviceptr p;
	uint32_t *m;

	works(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	m = (uint32_t *)(uintptr_t)p;
	m[0] = 1;
	works(cuMemsetD32(p + 4, 7, 1));
	works(cuCtxSynchronize());
	ok(m[0] == 1 && m[1] == 7, "host and device see the same bytes");
	works(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	is_int(is, 1, "it is managed");
	works(cuMemPrefetchAsync(p, 4096, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}, 0, NULL));
	gives(cuMemPrefetchAsync(p, 8192, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE}, 0, NULL),
	      CUDA_ERROR_INVALID_VALUE);
	works(cuMemFree(p));
}

static void pools(void)
{
	CUmemoryPool pool, got;
	size_t free0, free1, total;
	cuuint64_t used;
	CUdeviceptr p, q;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemGetInfo(&free0, &total));
	works(cuMemAllocAsync(&p, 128 * MIB, s));
	works(cuMemsetD8Async(p, 3, 128 * MIB, s));
	works(cuDeviceGetDefaultMemPool(&pool, 0));
	works(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	is_int(used, 128 * MIB, "the pool counts it");
	works(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	ok(got == pool, "the pointer knows its pool");
	works(cuMemFreeAsync(p, s));
	works(cuMemAllocAsync(&q, 200 * MIB, s));
	gives(cuMemcpyDtoH(&used, p, 8), CUDA_ERROR_INVALID_VALUE);
	works(cuMemFreeAsync(q, s));
	gives(cuMemFreeAsync(q, s), CUDA_ERROR_INVALID_VALUE);
	works(cuStreamSynchronize(s));
	works(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	is_int(used, 0, "and forgets it");
	works(cuMemAllocAsync(&p, 4096, s));
	works(cuMemFree(p));
	must(cuMemGetInfo(&free1, &total));
	is_int(free1, free0, "all came back");
	gives(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
}

static void attributes(void)
{
	CUpointer_attribute want[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned long long id1, id2;
	unsigned int type = 9;
	int ordinal = 9;
	size_t size = 9;
	void *out[] = {&type, &ordinal, &size};
	CUdeviceptr p, start;
	CUcontext c;
	int x;

	must(cuMemAlloc(&p, 1000));
	works(cuPointerGetAttributes(3, want, out, p + 10));
	ok(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && size == 1000, "type, device and size");
	works(cuPointerGetAttributes(3, want, out, (CUdeviceptr)(uintptr_t)&x));
	ok(type == 0 && ordinal == -2 && size == 0, "of a stranger nothing");
	gives(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&x),
	      CUDA_ERROR_INVALID_VALUE);
	works(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	ok(c == ctx, "its context");
	works(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 999));
	ok(start == p, "its start");
	works(cuPointerGetAttribute(&id1, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	must(cuMemFree(p));
	must(cuMemAlloc(&p, 1000));
	works(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	ok(id1 != id2, "a buffer id is never used again");
	must(cuMemFree(p));
}

int main(void)
{
	setenv("RGPU_SOFTGPU_MEM_MIB", "256", 1);
	ctx = drv_start();
	allocation();
	copies();
	batches();
	boxes();
	fills();
	host_memory();
	managed();
	pools();
	attributes();
	works(cuDevicePrimaryCtxRelease(0));
	return tap_done();
}
