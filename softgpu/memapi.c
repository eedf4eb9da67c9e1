// SPDX-License-Identifier: MIT
/* The allocation calls: device, managed and page-locked host memory, registration, and what they say about a range. */
#include "softgpu/graph.h"

#define PITCH_ALIGN 512

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!ptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(graph_unsafe());
	TRY(mem_alloc(c, c->dev, ALLOC_DEVICE, bytes, &a));
	*ptr = a.base;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int element)
{
	uint64_t bytes, p;

	TRY(api_enter());
	if (!ptr || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (width > INT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	p = (width + PITCH_ALIGN - 1) & ~(uint64_t)(PITCH_ALIGN - 1);
	if (__builtin_mul_overflow(p, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	TRY(cuMemAlloc_v2(ptr, bytes));
	*pitch = p;
	return CUDA_SUCCESS;
}

/* Frees when nothing of the owner's context uses it any longer, as CUDA does. */
static CUresult release(struct ctx *c, uint64_t ptr, enum alloc_kind a_kind, enum alloc_kind b_kind)
{
	AUTO_PUT struct ctx *owner = NULL;
	struct alloc a;

	if (!mem_find(ptr, &a) || a.base != ptr || a.hidden || (a.kind != a_kind && a.kind != b_kind))
		return CUDA_ERROR_INVALID_VALUE;
	if (a.ctx && a.ctx != c)
		ctx_resolve((CUcontext)a.ctx_handle, &owner);
	ctx_drain(owner ? owner : c);
	TRY(atomic_load(&c->error));
	/* Somebody else may have been faster. */
	if (!mem_remove(ptr, &a))
		return CUDA_ERROR_INVALID_VALUE;
	mem_release(&a, true);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	AUTO_PUT struct ctx *c = NULL;
	bool ours;

	TRY(ctx_enter(&c));
	if (!ptr)
		return CUDA_SUCCESS;
	TRY(graph_unsafe());
	TRY(graph_mem_free(ptr, &ours));
	if (ours)
		return CUDA_SUCCESS;
	return release(c, ptr, ALLOC_DEVICE, ALLOC_MANAGED);
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	*free = c->dev->total - atomic_load(&c->dev->used);
	*total = c->dev->total;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	size_t f, t;

	if (!free || !total)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuMemGetInfo_v2(&f, &t));
	*free = f > UINT32_MAX ? UINT32_MAX : (unsigned int)f;
	*total = t > UINT32_MAX ? UINT32_MAX : (unsigned int)t;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	AUTO_PUT struct ctx *c = NULL;
	struct mapping m;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (mem_find(ptr, &a)) {
		if (base)
			*base = a.base;
		if (bytes)
			*bytes = a.bytes;
	} else if (vmm_find(ptr, &m)) {
		if (base)
			*base = m.base;
		if (bytes)
			*bytes = m.bytes;
	} else {
		return CUDA_ERROR_NOT_FOUND;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!ptr || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(mem_alloc(c, c->dev, ALLOC_MANAGED, bytes, &a));
	*ptr = a.base;
	return CUDA_SUCCESS;
}

/* ---- Page-locked host memory ---- */

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!ptr || !bytes || flags & ~(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addressing all of it is mapped and portable, and the flags say so. */
	TRY(mem_alloc_host(c, bytes, flags | CU_MEMHOSTALLOC_DEVICEMAP, &a));
	*ptr = (void *)(uintptr_t)a.base;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	return cuMemHostAlloc(ptr, bytes, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	return release(c, (uintptr_t)ptr, ALLOC_HOST, ALLOC_HOST);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr, unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!dptr || flags || !mem_find((uintptr_t)ptr, &a))
		return CUDA_ERROR_INVALID_VALUE;
	if (a.kind != ALLOC_HOST && a.kind != ALLOC_MANAGED && a.kind != ALLOC_REGISTERED)
		return CUDA_ERROR_INVALID_VALUE;
	*dptr = (uintptr_t)ptr;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!flags || !mem_find((uintptr_t)ptr, &a) || a.kind != ALLOC_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = a.flags;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!ptr || !bytes || (uintptr_t)ptr + bytes < (uintptr_t)ptr ||
	    flags & ~(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_READ_ONLY)
		return CUDA_ERROR_NOT_SUPPORTED; /* as the attribute says */
	if ((uintptr_t)ptr - (uintptr_t)softgpu_arena.base < softgpu_arena.size)
		return CUDA_ERROR_INVALID_VALUE;
	a = (struct alloc){
		.base = (uintptr_t)ptr,
		.bytes = bytes,
		.kind = ALLOC_REGISTERED,
		.dev = c->dev,
		.ctx = c,
		.ctx_handle = c->obj.handle,
		.flags = flags,
	};
	TRY(mem_enter(&a));
	if (softgpu_register(a.base, a.bytes))
		return CUDA_SUCCESS;
	mem_remove(a.base, &a);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostRegister(void *ptr, size_t bytes, unsigned int flags)
{
	return cuMemHostRegister_v2(ptr, bytes, flags);
}

CUresult cuMemHostUnregister(void *ptr)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	TRY(ctx_enter(&c));
	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	if (!mem_find((uintptr_t)ptr, &a) || a.base != (uintptr_t)ptr || a.kind != ALLOC_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	ctx_drain(c);
	if (!mem_remove((uintptr_t)ptr, &a))
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	mem_release(&a, true);
	return CUDA_SUCCESS;
}

/* ---- Managed memory: host and device share it, so there is nothing to move ---- */

static CUresult managed_check(CUdeviceptr ptr, size_t bytes)
{
	struct alloc a;

	if (!bytes || !mem_find(ptr, &a) || a.kind != ALLOC_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	return mem_check(ptr, bytes);
}

static CUresult location_check(CUmemLocation where)
{
	if (where.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return device_get(where.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	return where.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned int flags, CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(location_check(where));
	return managed_check(ptr, bytes);
}

static CUmemLocation location_of(CUdevice dev)
{
	return (CUmemLocation){.type = dev == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, .id = dev};
}

CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream)
{
	return cuMemPrefetchAsync_v2(ptr, bytes, location_of(dev), 0, stream);
}

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	if (advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY &&
	    advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
		TRY(location_check(where));
	return managed_check(ptr, bytes);
}

CUresult cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev)
{
	return cuMemAdvise_v2(ptr, bytes, advice, location_of(dev));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags)
{
	AUTO_PUT struct stream *s = NULL;
	struct alloc a;

	TRY(stream_resolve(stream, &s));
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!mem_find(ptr, &a) || a.base != ptr || a.kind != ALLOC_MANAGED || (bytes && bytes != a.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
