// SPDX-License-Identifier: MIT
/* cuPointerGetAttribute(s): what an address is. */
#include "softgpu/softgpu.h"

#include <string.h>

/* An allocation or a mapping, in the same words. */
struct what {
	bool vmm;
	struct alloc a;
	struct mapping m;
};

static bool look(CUdeviceptr ptr, struct what *w)
{
	*w = (struct what){0};
	if (mem_find(ptr, &w->a))
		return true;
	w->vmm = vmm_find(ptr, &w->m);
	return w->vmm;
}

static CUresult attribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr, const struct what *w)
{
	bool host = w->vmm ? w->m.device < 0 : w->a.kind == ALLOC_HOST || w->a.kind == ALLOC_REGISTERED;

	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (w->vmm)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUcontext *)data = (CUcontext)w->a.ctx_handle;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && (w->vmm || w->a.kind != ALLOC_MANAGED))
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)(uintptr_t)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)data = !w->vmm && w->a.sync_memops;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = w->vmm ? w->m.id : w->a.id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)data = !w->vmm && w->a.kind == ALLOC_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = w->vmm ? (w->m.device < 0 ? 0 : w->m.device) : w->a.dev ? w->a.dev->index : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(unsigned int *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = w->vmm ? w->m.reserved_base : w->a.base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = w->vmm ? w->m.reserved_bytes : w->a.bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)data = 1;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned int *)data = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = w->vmm ? NULL : (CUmemoryPool)w->a.pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = w->vmm ? w->m.bytes : w->a.bytes;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = w->vmm ? w->m.base : w->a.base;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr)
{
	struct what w;

	TRY(api_enter());
	if (!data || !look(ptr, &w))
		return CUDA_ERROR_INVALID_VALUE;
	return attribute(data, attr, ptr, &w);
}

/* What does not apply is 0 and no error; the size of each answer is given by its kind. */
static size_t answer_bytes(CUpointer_attribute attr)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return 4;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	default:
		return 0;
	}
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attrs, void **data, CUdeviceptr ptr)
{
	struct what w;
	bool found;

	TRY(api_enter());
	if (!n || !attrs || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n; i++)
		if (!data[i] || !answer_bytes(attrs[i]))
			return CUDA_ERROR_INVALID_VALUE;
	found = look(ptr, &w);
	for (unsigned int i = 0; i < n; i++)
		if (!found || attribute(data[i], attrs[i], ptr, &w) != CUDA_SUCCESS) {
			/* No device is -2, as CUDA says it. */
			if (attrs[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
				*(int *)data[i] = -2;
			else
				memset(data[i], 0, answer_bytes(attrs[i]));
		}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
	TRY(api_enter());
	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	return mem_set_sync_memops(ptr, *(const unsigned int *)value) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
