// SPDX-License-Identifier: MIT
/* The table of all device memory that the program can name, by address. */
#include <stdlib.h>
#include "shim/cuda_api.h"
#include "shim/heap.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* a leaf */
static struct range *allocs;
static _Atomic uint64_t next_id = 1;
static _Atomic bool any_synced; /* some block was, ever */

void allocs_enter(struct block *b)
{
	b->id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED);
	b->sync_memops = false;
	pthread_rwlock_wrlock(&lock);
	ranges_insert(&allocs, &b->range);
	pthread_rwlock_unlock(&lock);
}

bool allocs_set_synced(uint64_t addr, bool on)
{
	struct block *b;

	pthread_rwlock_wrlock(&lock);
	b = (struct block *)ranges_find(allocs, addr);
	if (b)
		b->sync_memops = on;
	any_synced = any_synced || (b && on);
	pthread_rwlock_unlock(&lock);
	return b;
}

bool allocs_synced(uint64_t addr)
{
	struct block b;

	return any_synced && heap_find(addr, &b) && b.sync_memops;
}

struct block *allocs_leave(uint64_t addr, enum block_kind kind)
{
	struct block *b;

	pthread_rwlock_wrlock(&lock);
	b = (struct block *)ranges_find(allocs, addr);
	if (b && b->range.start == addr && b->kind == kind)
		ranges_remove(&allocs, &b->range);
	else
		b = NULL;
	pthread_rwlock_unlock(&lock);
	return b;
}

bool heap_find(uint64_t addr, struct block *out)
{
	struct range *r;

	pthread_rwlock_rdlock(&lock);
	r = ranges_find(allocs, addr);
	if (r)
		*out = *(struct block *)r;
	pthread_rwlock_unlock(&lock);
	return r;
}

struct block *allocs_at(uint64_t addr, enum block_kind kind)
{
	struct block *b;

	pthread_rwlock_rdlock(&lock);
	b = (struct block *)ranges_find(allocs, addr);
	if (b && b->kind != kind)
		b = NULL;
	pthread_rwlock_unlock(&lock);
	return b;
}

bool allocs_touch(uint64_t addr, uint64_t bytes)
{
	struct range *next;
	bool touch;

	pthread_rwlock_rdlock(&lock);
	next = ranges_next(allocs, addr);
	touch = ranges_find(allocs, addr) || (next && next->start - addr < bytes);
	pthread_rwlock_unlock(&lock);
	return touch;
}

bool allocs_cover(uint64_t addr, unsigned __int128 len)
{
	bool covered = false;
	struct block *b;

	pthread_rwlock_rdlock(&lock);
	while (!covered && (b = (struct block *)ranges_find(allocs, addr))) {
		uint64_t left = b->asked - (addr - b->range.start);

		if (addr - b->range.start >= b->asked || __atomic_load_n(&b->closed, __ATOMIC_RELAXED))
			break;
		covered = len <= left;
		if (b->kind != BLOCK_VMM)
			break;
		len -= left;
		addr += left;
	}
	pthread_rwlock_unlock(&lock);
	return covered;
}

bool allocs_next(uint64_t from, enum block_kind kind, struct rgpu_obj *context, struct block *out)
{
	struct block *b;

	pthread_rwlock_rdlock(&lock);
	do {
		b = (struct block *)ranges_next(allocs, from);
		if (b)
			from = b->range.start + 1;
	} while (b && (b->kind != kind || b->context != context));
	if (b)
		*out = *b;
	pthread_rwlock_unlock(&lock);
	return b;
}

void heap_drop_context(struct rgpu_obj *context)
{
	struct block b = {0};

	while (allocs_next(b.range.start + 1, BLOCK_HEAP, context, &b))
		heap_free(b.range.start);
}

int heap_add_global(struct device *d, struct rgpu_obj *context, uint64_t addr, uint64_t bytes)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->kind = BLOCK_GLOBAL;
	b->range.start = addr;
	b->range.bytes = b->asked = bytes;
	b->device = d;
	b->context = context;
	allocs_enter(b);
	return 0;
}

void heap_drop_global(uint64_t addr)
{
	free(allocs_leave(addr, BLOCK_GLOBAL));
}
