/* SPDX-License-Identifier: MIT */
/* The bump allocator behind a module's load. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/mem.h"

/* With a sanitizer each block is an allocation of its own, so that a byte too far is seen. */
#if defined(__SANITIZE_ADDRESS__) || defined(FUZZING)
#define CHUNK 0u
#else
#define CHUNK (256u << 10)
#endif

void *bump_alloc(struct bump *b, size_t bytes)
{
	struct bump_chunk *c = b->chunks;
	void *p;

	bytes = (bytes + 15) & ~(size_t)15;
	if (!c || c->size - c->used < bytes) {
		size_t size = bytes > CHUNK / 4 ? bytes : CHUNK;

		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		c->used = 0;
		c->size = size;
		/* A large block of its own goes behind the current chunk, which still has room. */
		if (b->chunks && size != CHUNK) {
			c->next = b->chunks->next;
			b->chunks->next = c;
		} else {
			c->next = b->chunks;
			b->chunks = c;
		}
	}
	p = c->data + c->used;
	c->used += bytes;
	return memset(p, 0, bytes);
}

void bump_free(struct bump *b)
{
	while (b->chunks) {
		struct bump_chunk *c = b->chunks;

		b->chunks = c->next;
		free(c);
	}
}
