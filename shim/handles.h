/* SPDX-License-Identifier: MIT */
/* Handles that the client mints: a tag, a kind, a generation and an index in one pointer-sized number. */
#ifndef RGPU_SHIM_HANDLES_H
#define RGPU_SHIM_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>
#include "shim/call.h"

/*
 * 63 … 48 the tag, which makes the number no address of anything; 47 … 43 the kind; 42 … 24 the generation; 23 … 0 the
 * index. A slot's generation advances with each use, so a stale handle is told from a living one.
 */
#define HANDLE_TAG	     0x5247ull
#define HANDLE_KIND(h)	     ((unsigned)((h) >> 43 & 0x1f))
#define HANDLE_GEN(h)	     ((uint32_t)((h) >> 24 & 0x7ffff))
#define HANDLE_INDEX(h)	     ((uint32_t)((h)&0xffffff))
#define HANDLE_GEN_MASK	     0x7ffffu
#define HANDLE_INDEX_MAX     (1u << 20) /* objects of one kind */
#define HANDLE_MAKE(k, g, i) (HANDLE_TAG << 48 | (uint64_t)(k) << 43 | (uint64_t)(g) << 24 | (i))

/* NULL: out of memory, or HANDLE_INDEX_MAX objects are alive. The fields are zero. */
struct rgpu_obj *handle_new(enum rgpu_kind kind, struct rgpu_obj *context);
void handle_free(struct rgpu_obj *obj);
/* Every living object of a kind. */
void handle_each(enum rgpu_kind kind, void (*fn)(struct rgpu_obj *obj, void *arg), void *arg);

#define HANDLE_CHUNK 1024u

struct handle_table {
	pthread_mutex_t lock; /* free list, used */
	struct rgpu_obj *_Atomic chunk[HANDLE_INDEX_MAX / HANDLE_CHUNK];
	struct rgpu_obj *free;
	uint32_t used; /* slots that were ever handed out */
};

extern struct handle_table handle_tables[KIND_MAX];

/* NULL: none of this kind, or stale. Needs no lock; never follows @handle. */
static inline struct rgpu_obj *handle_find(enum rgpu_kind kind, uint64_t handle)
{
	uint32_t index = HANDLE_INDEX(handle);
	struct rgpu_obj *chunk;

	if (handle >> 43 != (HANDLE_TAG << 5 | kind) || index >= HANDLE_INDEX_MAX)
		return NULL;
	chunk = atomic_load_explicit(&handle_tables[kind].chunk[index / HANDLE_CHUNK], memory_order_acquire);
	if (!chunk || atomic_load_explicit(&chunk[index % HANDLE_CHUNK].handle, memory_order_acquire) != handle)
		return NULL;
	return &chunk[index % HANDLE_CHUNK];
}

#endif
