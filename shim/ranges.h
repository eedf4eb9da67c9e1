/* SPDX-License-Identifier: MIT */
/* Ranges of addresses that do not overlap, kept in a treap: which one contains an address. */
#ifndef RGPU_SHIM_RANGES_H
#define RGPU_SHIM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

/* Part of the object that owns the range. The caller locks. */
struct range {
	uint64_t start, bytes;
	struct range *child[2];
	uint32_t priority;
};

void ranges_insert(struct range **root, struct range *r);
void ranges_remove(struct range **root, struct range *r);
struct range *ranges_find(struct range *root, uint64_t addr); /* start ≤ addr < start + bytes */
struct range *ranges_next(struct range *root, uint64_t addr); /* the first with start ≥ addr */

/* Free address space: extents that merge when given back. */
struct space;
struct space *space_new(uint64_t start, uint64_t bytes);	      /* NULL: no memory */
void space_free(struct space *s);				      /* may be NULL */
uint64_t space_take(struct space *s, uint64_t bytes, uint64_t align); /* lowest fit; 0: none */
bool space_take_at(struct space *s, uint64_t start, uint64_t bytes);  /* just that; false: it is not all free */
bool space_give(struct space *s, uint64_t start, uint64_t bytes);

#endif
