// SPDX-License-Identifier: MIT
/* Memory of every kind: its making and freeing, and what pointers tell about themselves. */
#include "tests/fidelity/fidelity.h"

static CUcontext ctx;

static void device_memory(void)
{
	CUdeviceptr p = 0, base = 0;
	size_t pitch = 0, size = 0, free_ = 0, total = 0, bytes = 0;

	/* Driver API, cuMemAlloc: a size of 0 gives INVALID_VALUE */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
	/* Driver API, cuMemAlloc: no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
	/* Driver API, cuMemAlloc: more than there is */
	cu(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 50));
	/* Programming Guide, Device Memory Accesses: allocations are aligned to 256 bytes */
	must(cuMemAlloc(&p, 100));
	same(p % 256, 0, "an allocation is aligned to 256 bytes");
	/* Driver API, cuMemGetAddressRange: base and size of what holds the address */
	cu(CUDA_SUCCESS, cuMemGetAddressRange(&base, &size, p + 50));
	probe(base == p && size == 100, "the range is the allocation");
	/* Driver API, cuMemGetAddressRange: either result may be NULL */
	cu(CUDA_SUCCESS, cuMemGetAddressRange(NULL, &size, p));
	cu(CUDA_SUCCESS, cuMemGetAddressRange(&base, NULL, p));
	/* Driver API, cuMemGetAddressRange: an address of no allocation */
	cu(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, 64));
	/* Driver API, cuMemFree: the address must be one that an allocation returned */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 4));
	/* Driver API, cuMemFree: freed once */
	cu(CUDA_SUCCESS, cuMemFree(p));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	/* Driver API, cuMemFree: an address of no allocation */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemFree(64));
	/* Driver API, cuMemAllocPitch: elements of 4, 8 or 16 bytes */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 100, 4, 3));
	/* Driver API, cuMemAllocPitch: a pitch is at least the width, and fit for copies */
	must(cuMemAllocPitch(&p, &pitch, 100, 4, 4));
	probe(pitch >= 100 && pitch % 16 == 0, "a pitch of %zu for 100 bytes", pitch);
	must(cuMemFree(p));
	/* Driver API, cuMemGetInfo: free memory is part of all memory, which is the device's */
	must(cuMemGetInfo(&free_, &total));
	must(cuDeviceTotalMem(&bytes, 0));
	probe(free_ <= total && total <= bytes, "%zu of %zu bytes are free", free_, total);
	/* Driver API, cuMemGetInfo: an allocation takes from it */
	must(cuMemAlloc(&p, 64u << 20));
	must(cuMemGetInfo(&size, &total));
	probe(size < free_, "less is free after an allocation");
	must(cuMemFree(p));
}

static void host_memory(void)
{
	static char pages[3 * 4096] __attribute__((aligned(4096)));
	unsigned int flags = 99;
	CUdeviceptr d = 0;
	void *h;

	/* Driver API, cuMemHostAlloc: flags that are not known, no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&h, 4096, 1u << 20));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(NULL, 4096, 0));
	/* Driver API, cuMemHostGetFlags: what it was allocated with */
	must(cuMemHostAlloc(&h, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostGetFlags(&flags, h));
	same(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP, "flags of pinned memory");
	/* Driver API, cuMemHostGetFlags: memory that is not pinned */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&flags, pages));
	/* Driver API, cuMemHostGetDevicePointer: flags must be 0 */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&d, h, 1));
	/* Driver API, Unified Addressing: the device's address of pinned memory is the host's */
	cu(CUDA_SUCCESS, cuMemHostGetDevicePointer(&d, h, 0));
	probe(d == (CUdeviceptr)h, "pinned memory has one address");
	/* Driver API, cuMemHostGetDevicePointer: memory that is not pinned */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&d, pages, 0));
	/* Driver API, cuMemFreeHost: freed once, and only what was allocated */
	cu(CUDA_SUCCESS, cuMemFreeHost(h));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(h));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pages));
	/* Driver API, cuMemHostRegister: flags that are not known, nothing to register */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pages, 4096, 1u << 20));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(pages, 0, 0));
	/* Driver API, cuMemHostRegister: registered once */
	must(cuMemHostRegister(pages, 2 * 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	cu(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(pages, 4096, 0));
	/* Driver API, cuMemHostUnregister: by the address that was registered */
	cu(CUDA_SUCCESS, cuMemHostUnregister(pages));
	cu(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(pages));
	/* Driver API, cuMemAllocManaged: attached to all or to the host; a size of 0 gives INVALID_VALUE */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&d, 16, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&d, 0, CU_MEM_ATTACH_GLOBAL));
}

static int attribute(CUpointer_attribute a, CUdeviceptr p)
{
	unsigned int v = 99;

	return cuPointerGetAttribute(&v, a, p) ? -1 : (int)v;
}

static void unknown_pointers(void)
{
	int local, ordinal = 99;
	unsigned int type = 99, managed = 99;
	CUdeviceptr p = (CUdeviceptr)&local, dev = 99;
	CUcontext c = (CUcontext)1;
	void *values[] = {&c, &type, &dev, &managed, &ordinal};
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				       CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
				       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};

	/* Driver API, cuPointerGetAttribute: an address that was not allocated by, mapped by or registered with CUDA */
	cu(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	/* Driver API, cuPointerGetAttributes: such an address is no error; its attributes are defaults */
	cu(CUDA_SUCCESS, cuPointerGetAttributes(5, names, values, p));
	probe(!c, "it has no context");
	same(type, 0, "it has no type");
	same(dev, 0, "it has no device address");
	same(managed, 0, "it is not managed");
	/* Driver API, cuPointerGetAttributes: an unknown address's device is -2 (invalid) */
	same(ordinal, -2, "it is no device's");
	/* Driver API, cuPointerGetAttribute: no place for the result, an attribute that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	cu(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, (CUpointer_attribute)999, p));
}

static void pointers(void)
{
	static char pages[4096] __attribute__((aligned(4096)));
	unsigned long long ida = 0, idb = 0;
	CUdeviceptr p, q, m, d = 0;
	CUcontext c = NULL;
	void *h, *host = NULL;
	size_t size = 0;
	int one = 1;

	must(cuMemAlloc(&p, 1000));
	must(cuMemAlloc(&q, 1000));
	/* Driver API, cuPointerGetAttribute, MEMORY_TYPE: device memory */
	same(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5), CU_MEMORYTYPE_DEVICE, "device memory is that");
	/* Driver API, cuPointerGetAttribute, DEVICE_ORDINAL, IS_MANAGED, MAPPED */
	same(attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), 0, "device 0's");
	same(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0, "not managed");
	/* Driver API, cuPointerGetAttribute, CONTEXT: the context that it was allocated in */
	cu(CUDA_SUCCESS, cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	probe(c == ctx, "its context");
	/* Driver API, cuPointerGetAttribute, HOST_POINTER: device memory has none */
	cu(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
	/* Driver API, cuPointerGetAttribute, DEVICE_POINTER: the address itself */
	cu(CUDA_SUCCESS, cuPointerGetAttribute(&d, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 5));
	same(d, p + 5, "its device address");
	/* Driver API, cuPointerGetAttribute, RANGE_START_ADDR, RANGE_SIZE: of its allocation */
	must(cuPointerGetAttribute(&d, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5));
	same(d, p, "where its allocation begins");
	must(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 5));
	same(size, 1000, "the size of its allocation");
	/* Driver API, cuPointerGetAttribute, BUFFER_ID: unique in the process */
	must(cuPointerGetAttribute(&ida, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	must(cuPointerGetAttribute(&idb, CU_POINTER_ATTRIBUTE_BUFFER_ID, q));
	probe(ida != idb, "two allocations have two ids");
	/* Driver API, cuPointerSetAttribute: SYNC_MEMOPS can be set, and read */
	cu(CUDA_SUCCESS, cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	same(attribute(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p), 1, "SYNC_MEMOPS is set");
	/* Driver API, cuPointerSetAttribute: no other attribute can be set */
	cu(CUDA_ERROR_INVALID_VALUE, cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	must(cuMemFree(p));
	must(cuMemFree(q));
	/* Driver API, cuPointerGetAttribute, MEMORY_TYPE: pinned memory is the host's */
	must(cuMemAllocHost(&h, 4096));
	same(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)h), CU_MEMORYTYPE_HOST, "pinned memory is the host's");
	/* Driver API, cuPointerGetAttribute, HOST_POINTER: the host's address */
	cu(CUDA_SUCCESS, cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)h + 8));
	probe(host == (char *)h + 8, "pinned memory's host address");
	must(cuMemFreeHost(h));
	/* Driver API, cuPointerGetAttribute, MEMORY_TYPE: so is registered memory */
	must(cuMemHostRegister(pages, sizeof(pages), 0));
	same(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pages), CU_MEMORYTYPE_HOST,
	     "registered memory is the host's");
	must(cuMemHostUnregister(pages));
	/* Driver API, cuMemHostUnregister: and CUDA knows it no longer */
	same(attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pages), -1, "unregistered memory is unknown again");
	/* Driver API, cuPointerGetAttribute, IS_MANAGED: managed memory; its address is the host's and the device's */
	must(cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
	same(attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, m), 1, "managed memory is managed");
	must(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, m));
	must(cuPointerGetAttribute(&d, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, m));
	probe((CUdeviceptr)host == m && d == m, "managed memory has one address");
	must(cuMemFree(m));
}

int main(void)
{
	ctx = primary();
	device_memory();
	host_memory();
	unknown_pointers();
	pointers();
	return tap_done();
}
