/* SPDX-License-Identifier: MIT */
/* First-fit device heap: a sorted list of free and used pieces, merged when freed. */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/ptx/heap.h"

struct piece {
	struct piece *next, *prev;
	u64 addr, bytes;
	bool used;
};

struct ptx_heap {
	pthread_mutex_t lock; /* the list */
	struct piece *first;
};

struct ptx_heap *ptx_heap_new(u64 base, u64 bytes)
{
	struct ptx_heap *h = calloc(1, sizeof(*h));
	struct piece *p = calloc(1, sizeof(*p));

	if (!h || !p) {
		free(h);
		free(p);
		return NULL;
	}
	pthread_mutex_init(&h->lock, NULL);
	p->addr = base;
	p->bytes = bytes;
	h->first = p;
	return h;
}

void ptx_heap_free(struct ptx_heap *h)
{
	if (!h)
		return;
	while (h->first) {
		struct piece *p = h->first;

		h->first = p->next;
		free(p);
	}
	pthread_mutex_destroy(&h->lock);
	free(h);
}

u64 ptx_heap_alloc(struct ptx_heap *h, u64 bytes)
{
	u64 addr = 0;

	if (!bytes || bytes > 1ull << 40)
		return 0;
	bytes = (bytes + 15) & ~15ull;
	pthread_mutex_lock(&h->lock);
	for (struct piece *p = h->first; p; p = p->next) {
		if (p->used || p->bytes < bytes)
			continue;
		if (p->bytes > bytes) {
			struct piece *rest = calloc(1, sizeof(*rest));

			if (!rest)
				break;
			*rest = (struct piece){p->next, p, p->addr + bytes, p->bytes - bytes, false};
			if (p->next)
				p->next->prev = rest;
			p->next = rest;
			p->bytes = bytes;
		}
		p->used = true;
		addr = p->addr;
		break;
	}
	pthread_mutex_unlock(&h->lock);
	return addr;
}

static void absorb_next(struct piece *p)
{
	struct piece *n = p->next;

	p->bytes += n->bytes;
	p->next = n->next;
	if (n->next)
		n->next->prev = p;
	free(n);
}

bool ptx_heap_release(struct ptx_heap *h, u64 addr)
{
	struct piece *p;

	pthread_mutex_lock(&h->lock);
	for (p = h->first; p && p->addr != addr; p = p->next)
		;
	if (p && p->used) {
		p->used = false;
		if (p->next && !p->next->used)
			absorb_next(p);
		if (p->prev && !p->prev->used)
			absorb_next(p->prev);
	} else {
		p = NULL;
	}
	pthread_mutex_unlock(&h->lock);
	return p;
}

bool ptx_heap_holds(struct ptx_heap *h, u64 addr, u64 bytes)
{
	struct piece *p;

	pthread_mutex_lock(&h->lock);
	for (p = h->first; p && p->addr != addr; p = p->next)
		;
	p = p && p->used && p->bytes >= bytes ? p : NULL;
	pthread_mutex_unlock(&h->lock);
	return p;
}
