// SPDX-License-Identifier: MIT
/* Allocates device memory from leases without asking the server, and parks what is freed while the device may use it. */
#include "shim/heap.h"

#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/cuda_api.h"
#include "shim/ordered.h"
#include "shim/session.h"

#define SEGMENT_SMALL (8ull << 20)
#define PARKED_MAX    (64ull << 20) /* beyond it an allocation waits for the device rather than lease more */
#define CACHED_MIN    (256ull << 20)

/* A lease. */
struct segment {
	struct device *device;
	uint64_t addr, bytes;
	bool large;	      /* one block fills it */
	struct segment *next; /* in cached */
};

void heap_init(struct heap *h)
{
	pthread_mutex_init(&h->lock, NULL);
	h->parked_end = &h->parked;
}

/* Four bins an octave. */
unsigned heap_bin(uint64_t bytes)
{
	unsigned log = 63 - __builtin_clzll(bytes), bin = (log - 9) * 4 + (bytes >> (log - 2) & 3);

	return bin < HEAP_BINS ? bin : HEAP_BINS - 1;
}

static void bin_insert(struct heap *h, struct block *b)
{
	struct block **bin = &h->bins[heap_bin(b->range.bytes)];

	b->free = true;
	b->next = *bin;
	b->at = bin;
	if (b->next)
		b->next->at = &b->next;
	*bin = b;
}

static void bin_remove(struct block *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
	b->free = false;
}

/* Best fit in the size's own bin, else the first of the next bin that has one: all there are large enough. */
static struct block *bin_find(struct heap *h, uint64_t size)
{
	unsigned bin = heap_bin(size);
	struct block *best = NULL;

	for (struct block *b = h->bins[bin]; b; b = b->next)
		if (b->range.bytes >= size && (!best || b->range.bytes < best->range.bytes))
			best = b;
	while (!best && ++bin < HEAP_BINS)
		best = h->bins[bin];
	return best;
}

static struct block *block_new(struct segment *seg, uint64_t addr, uint64_t bytes)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->device = seg->device;
	b->segment = seg;
	b->range.start = addr;
	b->range.bytes = bytes;
	return b;
}

static int lease(struct device *d, uint64_t bytes, struct segment **out)
{
	struct window *w = &d->session->window;
	struct rgpu_call c = {.op = OP_LEASE, .session = d->session};
	struct segment *seg = calloc(1, sizeof(*seg));
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!seg)
		return r;
	bytes = (bytes + d->props.granularity - 1) / d->props.granularity * d->props.granularity;
	pthread_mutex_lock(&w->lock);
	seg->addr = bytes <= w->size ? space_take(w->space, bytes, d->props.granularity) : 0;
	pthread_mutex_unlock(&w->lock);
	if (seg->addr)
		r = rpc_LEASE(&c, d->index, seg->addr, bytes);
	if (r) {
		if (seg->addr) {
			pthread_mutex_lock(&w->lock);
			space_give(w->space, seg->addr, bytes);
			pthread_mutex_unlock(&w->lock);
		}
		free(seg);
		return r;
	}
	seg->device = d;
	seg->bytes = bytes;
	d->heap.leased += bytes;
	*out = seg;
	return 0;
}

/* Nothing on the device uses it. The record is published before the addresses can be leased again. */
static void unlease(struct segment *seg)
{
	struct device *d = seg->device;
	struct rgpu_call c = {.op = OP_UNLEASE, .session = d->session};

	d->heap.leased -= seg->bytes;
	if (!rpc_UNLEASE(&c, seg->addr, seg->bytes)) {
		pthread_mutex_lock(&d->session->window.lock);
		space_give(d->session->window.space, seg->addr, seg->bytes);
		pthread_mutex_unlock(&d->session->window.lock);
	}
	free(seg);
}

static void drop_cached(struct heap *h, uint64_t keep)
{
	struct segment **at = &h->cached;

	/* The oldest are last. */
	for (uint64_t kept = 0; *at;) {
		struct segment *seg = *at;

		if (kept + seg->bytes <= keep) {
			kept += seg->bytes;
			at = &seg->next;
			continue;
		}
		*at = seg->next;
		h->cached_bytes -= seg->bytes;
		unlease(seg);
	}
}

/* The block is idle: it can be allocated again. The heap is locked. */
static void release(struct heap *h, struct block *b)
{
	struct segment *seg = b->segment;

	h->used -= b->range.bytes;
	if (seg->large) {
		uint64_t keep = seg->device->props.mem_total / 8;

		seg->next = h->cached;
		h->cached = seg;
		h->cached_bytes += seg->bytes;
		free(b);
		drop_cached(h, keep > CACHED_MIN ? keep : CACHED_MIN);
		return;
	}
	for (int side = 0; side < 2; side++) {
		struct block *n = side ? b->right : b->left;

		if (!n || !n->free)
			continue;
		bin_remove(n);
		b->range.bytes += n->range.bytes;
		if (side) {
			b->right = n->right;
			if (b->right)
				b->right->left = b;
		} else {
			b->range.start = n->range.start;
			b->left = n->left;
			if (b->left)
				b->left->right = b;
		}
		free(n);
	}
	bin_insert(h, b);
}

static struct block *take_small(struct heap *h, uint64_t size)
{
	struct block *b = bin_find(h, size), *rest;

	if (!b)
		return NULL;
	if (b->range.bytes > size) {
		rest = block_new(b->segment, b->range.start + size, b->range.bytes - size);
		if (!rest)
			return NULL;
		bin_remove(b);
		rest->left = b;
		rest->right = b->right;
		if (rest->right)
			rest->right->left = rest;
		b->right = rest;
		b->range.bytes = size;
		bin_insert(h, rest);
	} else {
		bin_remove(b);
	}
	return b;
}

static int grow_small(struct device *d)
{
	struct segment *seg;
	struct block *b;
	int r = lease(d, SEGMENT_SMALL, &seg);

	if (r)
		return r;
	b = block_new(seg, seg->addr, seg->bytes);
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bin_insert(&d->heap, b);
	return 0;
}

/* A whole lease that wastes at most an eighth. */
static struct block *take_cached(struct heap *h, uint64_t size)
{
	struct segment **best = NULL, *seg;
	struct block *b;

	for (struct segment **at = &h->cached; *at; at = &(*at)->next)
		if ((*at)->bytes >= size && (*at)->bytes - size <= size / 8 && (!best || (*at)->bytes < (*best)->bytes))
			best = at;
	if (!best)
		return NULL;
	seg = *best;
	b = block_new(seg, seg->addr, seg->bytes);
	if (!b)
		return NULL;
	*best = seg->next;
	h->cached_bytes -= seg->bytes;
	return b;
}

static int take_large(struct device *d, uint64_t size, struct block **out)
{
	struct segment *seg;
	int r;

	*out = take_cached(&d->heap, size);
	if (*out)
		return 0;
	r = lease(d, size, &seg);
	if (r)
		return r;
	seg->large = true;
	*out = block_new(seg, seg->addr, seg->bytes);
	if (!*out) {
		unlease(seg);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return 0;
}

static int take(struct device *d, uint64_t size, struct block **out)
{
	struct heap *h = &d->heap;
	int r = 0;

	if (size > HEAP_SMALL)
		return take_large(d, size, out);
	*out = take_small(h, size);
	if (!*out)
		r = grow_small(d);
	if (!*out && !r)
		*out = take_small(h, size);
	return *out ? 0 : r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + HEAP_ALIGN - 1) & ~(uint64_t)(HEAP_ALIGN - 1);
}

/* Makes the block an allocation of the program. */
static void enter(struct block *b, struct rgpu_obj *context, uint64_t pool, uint64_t bytes, uint64_t *addr)
{
	b->context = context;
	b->asked = bytes;
	b->pool = pool;
	pool_charge(pool, rounded(bytes));
	*addr = b->range.start;
	allocs_enter(b);
}

/* Waits for work that holds freed blocks of @d back. */
static int settle(struct device *d)
{
	struct device *holder = ordered_holder(d);
	int r = 0;

	if (d->heap.parked || holder)
		r = ctx_sync_device(d);
	if (!r && holder && holder != d)
		r = ctx_sync_device(holder);
	return r;
}

int heap_make_room(struct device *d)
{
	int r = settle(d);

	if (!r)
		heap_trim(d);
	return r;
}

static int obtain(struct device *d, uint64_t size, struct block **out)
{
	struct heap *h = &d->heap;
	int r;

	pthread_mutex_lock(&h->lock);
	if (h->parked_bytes >= PARKED_MAX) {
		pthread_mutex_unlock(&h->lock);
		r = ctx_sync_device(d);
		if (r)
			return r;
		pthread_mutex_lock(&h->lock);
	}
	r = take(d, size, out);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		pthread_mutex_unlock(&h->lock);
		r = settle(d);
		if (r)
			return r;
		pthread_mutex_lock(&h->lock);
		drop_cached(h, 0);
		r = take(d, size, out);
	}
	if (!r)
		h->used += (*out)->range.bytes;
	pthread_mutex_unlock(&h->lock);
	return r;
}

int heap_alloc(struct device *d, struct rgpu_obj *context, uint64_t bytes, uint64_t *addr)
{
	struct block *b = NULL;
	int r;

	if (!bytes || rounded(bytes) < bytes)
		return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	r = obtain(d, rounded(bytes), &b);
	if (!r)
		enter(b, context, 0, bytes, addr);
	return r;
}

int heap_alloc_ordered(struct device *d, struct rgpu_obj *context, uint64_t stream, uint64_t pool, uint64_t bytes, uint64_t *addr)
{
	struct block *b;
	int r = 0;

	if (!bytes || rounded(bytes) < bytes)
		return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	b = ordered_take(d, context, stream, rounded(bytes));
	if (!b)
		r = obtain(d, rounded(bytes), &b);
	if (!r)
		enter(b, context, pool, bytes, addr);
	return r;
}

static void park(struct heap *h, struct block *b, uint64_t stamp)
{
	b->stamp = stamp;
	b->next = NULL;
	*h->parked_end = b;
	h->parked_end = &b->next;
	h->parked_bytes += b->range.bytes;
}

void heap_park(struct block *b, uint64_t stamp)
{
	pthread_mutex_lock(&b->device->heap.lock);
	park(&b->device->heap, b, stamp);
	pthread_mutex_unlock(&b->device->heap.lock);
}

void heap_release(struct block *b)
{
	struct heap *h = &b->device->heap;

	pthread_mutex_lock(&h->lock);
	release(h, b);
	pthread_mutex_unlock(&h->lock);
}

void heap_trim(struct device *d)
{
	pthread_mutex_lock(&d->heap.lock);
	drop_cached(&d->heap, 0);
	pthread_mutex_unlock(&d->heap.lock);
}

/* Takes the allocation that begins at @addr from the program. NULL: there is none. */
static struct block *leave(uint64_t addr)
{
	struct block *b = allocs_leave(addr, BLOCK_HEAP);

	if (b && b->pool)
		pool_discharge(b->pool, rounded(b->asked));
	return b;
}

int heap_free_ordered(uint64_t addr, struct rgpu_obj *context, uint64_t stream)
{
	struct block *b = leave(addr);

	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	ordered_give(b, context, stream, atomic_load(&b->device->session->counter));
	return 0;
}

int heap_free(uint64_t addr)
{
	struct block *b = leave(addr);
	struct heap *h;

	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	h = &b->device->heap;
	pthread_mutex_lock(&h->lock);
	if (tally_most(&h->busy))
		park(h, b, atomic_load(&b->device->session->counter));
	else
		release(h, b);
	pthread_mutex_unlock(&h->lock);
	return 0;
}

void heap_idle(struct device *d, uint64_t stamp)
{
	struct heap *h = &d->heap;

	pthread_mutex_lock(&h->lock);
	tally_settle(&h->busy, stamp);
	while (h->parked && h->parked->stamp <= stamp) {
		struct block *b = h->parked;

		h->parked = b->next;
		if (!h->parked)
			h->parked_end = &h->parked;
		h->parked_bytes -= b->range.bytes;
		release(h, b);
	}
	pthread_mutex_unlock(&h->lock);
	ordered_idle(d, stamp);
}

uint64_t heap_unused(struct device *d)
{
	uint64_t n;

	pthread_mutex_lock(&d->heap.lock);
	n = d->heap.leased - d->heap.used + d->heap.parked_bytes;
	pthread_mutex_unlock(&d->heap.lock);
	return n;
}
