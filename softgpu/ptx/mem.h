/* SPDX-License-Identifier: MIT */
/* A bump allocator: a load's scratch memory goes away in one call, whatever way the load ended. */
#ifndef SOFTGPU_PTX_MEM_H
#define SOFTGPU_PTX_MEM_H

#include "softgpu/ptx/types.h"

struct bump_chunk {
	struct bump_chunk *next;
	size_t used, size;
	_Alignas(16) u8 data[];
};

struct bump {
	struct bump_chunk *chunks;
};

/* Zeroed memory aligned to 16 bytes; NULL when the host has none. */
void *bump_alloc(struct bump *b, size_t bytes);
void bump_free(struct bump *b);

#endif
