// SPDX-License-Identifier: MIT
/* cuPointerGetAttribute: answered from the heap's and the pinned memory's own books. */
#include <string.h>
#include "shim/ctx.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"

/* What a pointer is. */
struct pointer {
	bool device, host;
	struct block b;
	struct pinned m;
};

static void look(uint64_t ptr, struct pointer *p)
{
	p->device = heap_find(ptr, &p->b);
	p->host = !p->device && pinned_find((void *)ptr, &p->m);
}

static unsigned handle_types(uint64_t ptr, const struct pointer *p)
{
	struct pool *pool;

	if (p->device && p->b.kind == BLOCK_VMM)
		return vmm_handle_types(ptr);
	return p->device && p->b.pool && !pool_find((CUmemoryPool)p->b.pool, &pool) ? (unsigned)pool->props.handleTypes : 0;
}

#define ANSWER(type, value)                                                                                                      \
	do {                                                                                                                     \
		type v_ = (type)(value);                                                                                         \
		memcpy(data, &v_, sizeof(v_));                                                                                   \
		return CUDA_SUCCESS;                                                                                             \
	} while (0)

/* CUDA_ERROR_INVALID_VALUE where the pointer is unknown to CUDA, or the attribute has no meaning for it. */
static int attribute(void *data, CUpointer_attribute attribute, uint64_t ptr, const struct pointer *p)
{
	struct rgpu_obj *context = p->device ? p->b.context : p->m.context;
	bool mapped = p->device && p->b.kind == BLOCK_VMM;
	bool twin = p->device && p->b.kind != BLOCK_HEAP && shared_has(ptr);
	uint64_t start, bytes;

	if (!p->device && !p->host)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (mapped)
			return CUDA_ERROR_INVALID_VALUE; /* it is of no context */
		ANSWER(CUcontext, context->handle);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		ANSWER(unsigned int, p->device && p->b.kind != BLOCK_MAPPED ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		if (!p->device && !p->m.mirror && !p->m.in_window)
			return CUDA_ERROR_INVALID_VALUE; /* nobody has asked for one: cuMemHostGetDevicePointer */
		ANSWER(CUdeviceptr, p->device || p->m.in_window ? ptr : p->m.mirror + (ptr - p->m.range.start));
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!p->host && !twin)
			return CUDA_ERROR_INVALID_VALUE;
		ANSWER(void *, twin ? shared_host(ptr) : (void *)ptr);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		ANSWER(unsigned long long, p->device ? p->b.id : p->m.range.start);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		ANSWER(int, twin && p->b.kind != BLOCK_MAPPED);
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		ANSWER(int, p->device && p->b.kind == BLOCK_HEAP && !p->b.pool);
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		ANSWER(int, 0);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		ANSWER(int, p->device && p->b.sync_memops);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		ANSWER(int, mapped ? p->b.device->ordinal : ctx_of(context)->device->ordinal);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		if (mapped && vmm_reserved(ptr, &start, &bytes))
			ANSWER(CUdeviceptr, start);
		ANSWER(CUdeviceptr, p->device ? p->b.range.start : p->m.range.start);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		if (mapped && vmm_reserved(ptr, &start, &bytes))
			ANSWER(size_t, bytes);
		ANSWER(size_t, p->device ? p->b.asked : p->m.range.bytes);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		ANSWER(int, 1);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		ANSWER(CUmemoryPool, p->device ? p->b.pool : 0);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		ANSWER(unsigned long long, handle_types(ptr, p));
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		ANSWER(CUdeviceptr, p->device ? p->b.range.start : p->m.range.start);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		ANSWER(size_t, p->device ? p->b.asked : p->m.range.bytes);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		ANSWER(int, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr, CUdeviceptr ptr)
{
	struct pointer p = {0};
	int r = process_ready();

	if (r || !data)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	look(ptr, &p);
	return attribute(data, attr, ptr, &p);
}

/* Bytes of each attribute's answer, for the zero that an unknown pointer gets from cuPointerGetAttributes. */
static size_t answer_size(CUpointer_attribute a)
{
	switch (a) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return 4;
	default:
		return 8;
	}
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct pointer p = {0};
	int r = process_ready();

	if (r)
		return r;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	look(ptr, &p);
	for (unsigned i = 0; i < numAttributes; i++) {
		if ((unsigned)attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
		    attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ||
		    attributes[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
			return CUDA_ERROR_INVALID_VALUE;
		if (!attribute(data[i], attributes[i], ptr, &p))
			continue;
		/* Documented: for a pointer that CUDA does not know the answers are zero, and −2 for the ordinal. */
		memset(data[i], 0, answer_size(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = CU_DEVICE_INVALID;
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr, CUdeviceptr ptr)
{
	int r = process_ready();

	if (r)
		return r;
	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !allocs_set_synced(ptr, *(const int *)value))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
