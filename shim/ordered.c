// SPDX-License-Identifier: MIT
/*
 * Keeps what was freed in stream order until its stream allocates again, which needs no wait, or until a wait has seen the stream
 * that far, which makes it anybody's.
 */
#include "shim/ordered.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/session.h"

/* A stream with blocks that wait for it. */
struct order {
	struct rgpu_obj *context;
	uint64_t context_handle, stream;
	struct block *bins[HEAP_BINS]; /* by size, the last freed first */
	unsigned n;
	struct order *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the orders; a heap's lock is taken inside */
static struct order *orders;
static atomic_uint waiting; /* blocks: usually 0, and then nobody looks */

void pool_charge(uint64_t handle, uint64_t bytes)
{
	struct rgpu_obj *obj = handle ? handle_find(KIND_mempool, handle) : NULL;
	struct pool *p = obj ? obj->data : NULL;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->used += bytes;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->reserved < p->used)
		p->reserved = p->used;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	pthread_mutex_unlock(&p->lock);
}

void pool_discharge(uint64_t handle, uint64_t bytes)
{
	struct rgpu_obj *obj = handle ? handle_find(KIND_mempool, handle) : NULL;
	struct pool *p = obj ? obj->data : NULL;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->used -= bytes < p->used ? bytes : p->used;
	pthread_mutex_unlock(&p->lock);
}

/* A wait gives back what a pool keeps beyond its threshold. */
static void trim(struct rgpu_obj *obj, void *device)
{
	struct pool *p = obj->data;
	uint64_t keep;

	if (!p || p->device != device)
		return;
	pthread_mutex_lock(&p->lock);
	keep = p->used > p->threshold ? p->used : p->threshold;
	if (p->reserved > keep)
		p->reserved = keep;
	pthread_mutex_unlock(&p->lock);
}

static struct order *find(struct rgpu_obj *context, uint64_t stream)
{
	for (struct order *o = orders; o; o = o->next)
		if (o->context == context && o->context_handle == context->handle && o->stream == stream)
			return o;
	return NULL;
}

/* At most an eighth is wasted. */
struct block *ordered_take(struct device *d, struct rgpu_obj *context, uint64_t stream, uint64_t size)
{
	struct block *b = NULL;
	struct order *o;

	if (!atomic_load_explicit(&waiting, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&lock);
	o = find(context, stream);
	for (unsigned bin = heap_bin(size); o && !b && bin < HEAP_BINS && bin <= heap_bin(size) + 1; bin++)
		for (struct block **at = &o->bins[bin]; *at; at = &(*at)->next)
			if ((*at)->device == d && (*at)->range.bytes >= size && (*at)->range.bytes - size <= size / 8) {
				b = *at;
				*at = b->next;
				o->n--;
				atomic_fetch_sub(&waiting, 1);
				break;
			}
	pthread_mutex_unlock(&lock);
	return b;
}

void ordered_give(struct block *b, struct rgpu_obj *context, uint64_t stream, uint64_t stamp)
{
	struct order *o;
	bool idle = !tally_most(&ctx_of(context)->device->heap.busy);

	if (!idle) {
		pthread_mutex_lock(&lock);
		o = find(context, stream);
		if (!o) {
			o = calloc(1, sizeof(*o));
			if (o) {
				o->context = context;
				o->context_handle = context->handle;
				o->stream = stream;
				o->next = orders;
				orders = o;
			}
		}
		if (o) {
			unsigned bin = heap_bin(b->range.bytes);

			b->stamp = stamp;
			b->next = o->bins[bin];
			o->bins[bin] = b;
			o->n++;
			atomic_fetch_add(&waiting, 1);
			b = NULL;
		}
		pthread_mutex_unlock(&lock);
	}
	if (!b)
		return;
	/* Nothing runs; or there is no memory to remember the stream, and then any wait for the device will do. */
	if (idle)
		heap_release(b);
	else
		heap_park(b, stamp);
}

/* Gives the heap all blocks of @o that were freed before @stamp. */
static void settle(struct order *o, uint64_t stamp)
{
	for (unsigned i = 0; i < HEAP_BINS; i++)
		for (struct block **at = &o->bins[i]; *at;) {
			struct block *b = *at;

			if (b->stamp > stamp) {
				at = &b->next;
				continue;
			}
			*at = b->next;
			o->n--;
			atomic_fetch_sub(&waiting, 1);
			heap_release(b);
		}
}

static void drop_empty(void)
{
	for (struct order **at = &orders; *at;) {
		struct order *o = *at;

		if (o->n) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		free(o);
	}
}

void ordered_settled(struct rgpu_obj *context, uint64_t stream, uint64_t stamp)
{
	if (!atomic_load_explicit(&waiting, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	for (struct order *o = orders; o; o = o->next)
		if (o->context == context && (stream == ORDERED_ALL || o->stream == stream))
			settle(o, stamp);
	drop_empty();
	pthread_mutex_unlock(&lock);
}

void ordered_idle(struct device *d, uint64_t stamp)
{
	handle_each(KIND_mempool, trim, d);
	if (!atomic_load_explicit(&waiting, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	for (struct order *o = orders; o; o = o->next)
		if (ctx_of(o->context)->device == d)
			settle(o, stamp);
	drop_empty();
	pthread_mutex_unlock(&lock);
}

struct device *ordered_holder(const struct device *d)
{
	struct device *holder = NULL;

	pthread_mutex_lock(&lock);
	for (struct order *o = orders; o && !holder; o = o->next)
		for (unsigned i = 0; i < HEAP_BINS && !holder; i++)
			for (struct block *b = o->bins[i]; b && !holder; b = b->next)
				if (b->device == d)
					holder = ctx_of(o->context)->device;
	pthread_mutex_unlock(&lock);
	return holder;
}
