// SPDX-License-Identifier: MIT
/*
 * What a graph brings down into ordinary memory. It arrives in shared memory, unasked, with a word of its own behind it; the next
 * wait that sees the work done puts it where the program looks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/session.h"

#define PAD_BYTES (4u << 20) /* of a graph's places together, when one is small */

struct landing_pad {
	struct landing_pad *next; /* of the same graph: smaller ones that it had */
	struct rgpu_session *session;
	struct rgpu_bo bo;
	uint64_t slot; /* bytes of one place, its word included */
	unsigned n;
	struct landing *place;
	unsigned busy;
	bool orphan; /* its graph is gone */
};

struct landing {
	struct landing_pad *pad;
	struct landing *next; /* on their way, in order */
	uint8_t *mem;
	uint64_t off, bytes, filled, tag;
	uint64_t ctx, stream; /* as ordered.h names it */
	struct operand *operand;
	unsigned n;
	bool taken, sent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of them */
static struct landing *first, **last = &first;
static atomic_uint flying;
static uint64_t tags;

void operand_scatter(const struct operand *o, const uint8_t *from)
{
	for (uint64_t z = 0; z < o->depth; z++)
		for (uint64_t y = 0; y < o->height; y++) {
			uint64_t at = z * o->slice + y * o->pitch;

			memcpy((uint8_t *)o->addr + at, from + at, o->width);
		}
}

static void pad_free(struct landing_pad *p)
{
	rgpu_transport_bo_destroy(p->session->transport, &p->bo);
	free(p->place);
	free(p);
}

/* With the lock; the landing is off the list. */
static void release(struct landing *l)
{
	struct landing_pad *p = l->pad;

	free(l->operand);
	*l = (struct landing){.pad = p, .mem = l->mem, .off = l->off};
	if (!--p->busy && p->orphan)
		pad_free(p);
}

static bool arrived(const struct landing *l)
{
	return __atomic_load_n((uint64_t *)(l->mem + l->bytes), __ATOMIC_ACQUIRE) == l->tag;
}

static void land(struct landing *l)
{
	const uint8_t *from = l->mem;

	for (unsigned i = 0; i < l->n; i++) {
		operand_scatter(&l->operand[i], from);
		from += l->operand[i].span;
	}
}

/* In the order in which they were sent, of each stream. @drop: those of this stream that did not come will not. */
static void poll_locked(bool drop, uint64_t ctx, uint64_t stream)
{
	for (struct landing **at = &first, *l; (l = *at);) {
		bool here = arrived(l);

		if (!here && !(drop && l->ctx == ctx && l->stream == stream)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		if (!*at)
			last = at;
		if (here)
			land(l);
		atomic_fetch_sub(&flying, 1);
		release(l);
	}
}

void landing_poll(void)
{
	if (__builtin_expect(!atomic_load_explicit(&flying, memory_order_relaxed), 1))
		return;
	pthread_mutex_lock(&lock);
	poll_locked(false, 0, 0);
	pthread_mutex_unlock(&lock);
}

/* Waits for the stream of one that is on its way: then it has come, or never will. */
static int wait_for(struct rgpu_call *c, uint64_t ctx, uint64_t stream)
{
	struct rgpu_obj *context = handle_find(KIND_context, ctx);
	struct rgpu_call w = {.session = c->session, .context = context, .ctx = ctx};
	int r = 0;

	if (context && ctx_of(context)->alive)
		r = ordered_sync(&w, stream);
	pthread_mutex_lock(&lock);
	poll_locked(!r, ctx, stream);
	pthread_mutex_unlock(&lock);
	return r;
}

bool landing_pending(uint64_t addr, uint64_t bytes)
{
	bool found = false;

	if (!atomic_load_explicit(&flying, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&lock);
	poll_locked(false, 0, 0);
	for (struct landing *l = first; l && !found; l = l->next)
		for (unsigned i = 0; i < l->n && !found; i++)
			found = l->operand[i].addr < addr + bytes && addr < l->operand[i].addr + l->operand[i].span;
	pthread_mutex_unlock(&lock);
	return found;
}

static struct landing_pad *pad_new(struct rgpu_session *s, uint64_t bytes, int *r)
{
	struct landing_pad *p = calloc(1, sizeof(*p));

	if (p) {
		p->session = s;
		p->slot = RGPU_ALIGN8(bytes) + 64;
		p->n = p->slot * 2 > PAD_BYTES ? 2 : PAD_BYTES / p->slot > 256 ? 256 : (unsigned)(PAD_BYTES / p->slot);
		p->place = calloc(p->n, sizeof(*p->place));
	}
	if (!p || !p->place || rgpu_transport_bo_create(s->transport, p->n * p->slot, &p->bo)) {
		*r = CUDA_ERROR_OUT_OF_MEMORY;
		free(p ? p->place : NULL);
		free(p);
		return NULL;
	}
	for (unsigned i = 0; i < p->n; i++) {
		p->place[i].pad = p;
		p->place[i].off = i * p->slot;
		p->place[i].mem = (uint8_t *)p->bo.base + p->place[i].off;
	}
	return p;
}

static struct landing *take(struct landing_pad *p, uint64_t bytes)
{
	for (unsigned i = 0; p && i < p->n; i++)
		if (!p->place[i].taken && bytes + 8 <= p->slot) {
			p->place[i].taken = true;
			p->place[i].bytes = RGPU_ALIGN8(bytes);
			p->place[i].tag = ++tags;
			p->busy++;
			return &p->place[i];
		}
	return NULL;
}

struct landing *landing_new(struct rgpu_call *c, struct shim_exec *e, uint64_t bytes, uint32_t *bo, uint64_t *off, int *r)
{
	struct landing_pad *p = e->pad;
	struct landing *l = NULL;
	uint64_t ctx, stream;

	*r = 0;
	if (!p || bytes + 8 > p->slot) {
		p = pad_new(c->session, bytes, r);
		if (!p)
			return NULL;
		p->next = e->pad;
		e->pad = p;
	}
	pthread_mutex_lock(&lock);
	l = take(p, bytes);
	if (!l) {
		poll_locked(false, 0, 0);
		l = take(p, bytes);
	}
	/* All are on their way: the stream of the oldest one of this graph's is waited for. */
	while (!l && first && !*r) {
		const struct landing *oldest = first;

		while (oldest->next && oldest->pad != p)
			oldest = oldest->next;
		ctx = oldest->ctx;
		stream = oldest->stream;
		pthread_mutex_unlock(&lock);
		*r = wait_for(c, ctx, stream);
		pthread_mutex_lock(&lock);
		l = take(p, bytes);
	}
	pthread_mutex_unlock(&lock);
	if (!l) {
		*r = *r ? *r : (int)CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	*bo = p->bo.handle;
	*off = l->off;
	return l;
}

void landing_add(struct landing *l, const struct operand *o)
{
	struct operand *p = realloc(l->operand, (l->n + 1) * sizeof(*p));

	/* Without memory for a note the bytes would be lost: there are few of them, and they are small. */
	if (!p)
		abort();
	l->operand = p;
	l->operand[l->n++] = *o;
}

uint64_t landing_tag(const struct landing *l)
{
	return l->tag;
}

void landing_sent(struct landing *l, const struct rgpu_call *c, uint64_t wire)
{
	uint64_t stream;

	if (ordered_stream(c, wire, &stream))
		stream = ORDERED_ALL;
	pthread_mutex_lock(&lock);
	l->ctx = c->ctx;
	l->stream = stream;
	l->next = NULL;
	*last = l;
	last = &l->next;
	atomic_fetch_add(&flying, 1);
	pthread_mutex_unlock(&lock);
}

void landing_cancel(struct landing *l)
{
	pthread_mutex_lock(&lock);
	release(l);
	pthread_mutex_unlock(&lock);
}

void landing_exec_gone(struct shim_exec *e)
{
	pthread_mutex_lock(&lock);
	for (struct landing_pad *p = e->pad, *next; p; p = next) {
		next = p->next;
		p->orphan = true;
		if (!p->busy)
			pad_free(p);
	}
	e->pad = NULL;
	pthread_mutex_unlock(&lock);
}
