// SPDX-License-Identifier: MIT
/* The treap of ranges, and free address space on top of it. */
#include "shim/ranges.h"

#include <stddef.h>
#include <stdlib.h>

static uint32_t rand_state = 2463534242u;

/* Any numbers do: they only keep the tree flat. A race of two callers is harmless. */
static uint32_t next_priority(void)
{
	uint32_t x = __atomic_load_n(&rand_state, __ATOMIC_RELAXED);

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	__atomic_store_n(&rand_state, x, __ATOMIC_RELAXED);
	return x;
}

static void split(struct range *t, uint64_t start, struct range **low, struct range **high)
{
	while (t) {
		if (t->start < start) {
			*low = t;
			low = &t->child[1];
			t = t->child[1];
		} else {
			*high = t;
			high = &t->child[0];
			t = t->child[0];
		}
	}
	*low = *high = NULL;
}

void ranges_insert(struct range **root, struct range *r)
{
	r->priority = next_priority();
	while (*root && (*root)->priority >= r->priority)
		root = &(*root)->child[(*root)->start < r->start];
	split(*root, r->start, &r->child[0], &r->child[1]);
	*root = r;
}

void ranges_remove(struct range **root, struct range *r)
{
	struct range *a, *b;

	while (*root && *root != r)
		root = &(*root)->child[(*root)->start < r->start];
	if (!*root)
		return;
	a = r->child[0];
	b = r->child[1];
	while (a && b) {
		if (a->priority >= b->priority) {
			*root = a;
			root = &a->child[1];
			a = a->child[1];
		} else {
			*root = b;
			root = &b->child[0];
			b = b->child[0];
		}
	}
	*root = a ? a : b;
}

struct range *ranges_find(struct range *t, uint64_t addr)
{
	while (t) {
		if (addr < t->start)
			t = t->child[0];
		else if (addr - t->start >= t->bytes)
			t = t->child[1];
		else
			return t;
	}
	return NULL;
}

struct range *ranges_next(struct range *t, uint64_t addr)
{
	struct range *best = NULL;

	while (t) {
		if (t->start >= addr) {
			best = t;
			t = t->child[0];
		} else {
			t = t->child[1];
		}
	}
	return best;
}

struct space {
	struct range *root;
};

static bool add(struct space *s, uint64_t start, uint64_t bytes)
{
	struct range *r = malloc(sizeof(*r));

	if (!r)
		return false;
	r->start = start;
	r->bytes = bytes;
	ranges_insert(&s->root, r);
	return true;
}

struct space *space_new(uint64_t start, uint64_t bytes)
{
	struct space *s = calloc(1, sizeof(*s));

	if (s && !add(s, start, bytes)) {
		free(s);
		s = NULL;
	}
	return s;
}

void space_free(struct space *s)
{
	while (s && s->root) {
		struct range *r = s->root;

		ranges_remove(&s->root, r);
		free(r);
	}
	free(s);
}

/* Cuts [at, at + bytes) out of @r, which contains it. */
static bool cut(struct space *s, struct range *r, uint64_t at, uint64_t bytes)
{
	uint64_t end = r->start + r->bytes;

	if (at + bytes < end && at > r->start) {
		if (!add(s, at + bytes, end - at - bytes))
			return false;
		r->bytes = at - r->start;
	} else if (at > r->start) {
		r->bytes = at - r->start;
	} else if (at + bytes < end) {
		/* The order in the tree stays: nothing lies between. */
		r->start = at + bytes;
		r->bytes = end - r->start;
	} else {
		ranges_remove(&s->root, r);
		free(r);
	}
	return true;
}

uint64_t space_take(struct space *s, uint64_t bytes, uint64_t align)
{
	for (struct range *r = ranges_next(s->root, 0); r; r = ranges_next(s->root, r->start + 1)) {
		uint64_t at = (r->start + align - 1) / align * align, end = r->start + r->bytes;

		if (at >= r->start && at < end && end - at >= bytes)
			return cut(s, r, at, bytes) ? at : 0;
	}
	return 0;
}

bool space_take_at(struct space *s, uint64_t start, uint64_t bytes)
{
	struct range *r = ranges_find(s->root, start);

	return r && bytes <= r->bytes - (start - r->start) && cut(s, r, start, bytes);
}

bool space_give(struct space *s, uint64_t start, uint64_t bytes)
{
	struct range *left = start ? ranges_find(s->root, start - 1) : NULL, *right = ranges_find(s->root, start + bytes);

	if (left && right) {
		ranges_remove(&s->root, right);
		left->bytes += bytes + right->bytes;
		free(right);
	} else if (left) {
		left->bytes += bytes;
	} else if (right) {
		right->start = start;
		right->bytes += bytes;
	} else {
		return add(s, start, bytes);
	}
	return true;
}
