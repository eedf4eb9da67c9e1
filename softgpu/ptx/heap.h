/* SPDX-License-Identifier: MIT */
/* The device heap behind malloc and free in kernels. */
#ifndef SOFTGPU_PTX_HEAP_H
#define SOFTGPU_PTX_HEAP_H

#include "softgpu/ptx/types.h"

struct ptx_heap;

/* Manages [@base, @base + @bytes); its records are host memory, out of a kernel's reach. NULL: no memory. */
struct ptx_heap *ptx_heap_new(u64 base, u64 bytes);
void ptx_heap_free(struct ptx_heap *h);
/* 16-byte aligned, 0 when the heap is full. Thread-safe. */
u64 ptx_heap_alloc(struct ptx_heap *h, u64 bytes);
/* False when @addr was not allocated here. */
bool ptx_heap_release(struct ptx_heap *h, u64 addr);
bool ptx_heap_holds(struct ptx_heap *h, u64 addr, u64 bytes);

#endif
