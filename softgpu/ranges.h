/* SPDX-License-Identifier: MIT */
/* A set of address ranges that can be taken from and given back to: the free space of an allocator. */
#ifndef SOFTGPU_RANGES_H
#define SOFTGPU_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end;
};

/* Sorted, never touching each other. The owner's lock guards it. */
struct ranges {
	struct range *r;
	size_t n, room;
};

/* Adds [start, end); merges with its neighbours. False when memory is out (the range is lost then). */
bool ranges_give(struct ranges *rs, uint64_t start, uint64_t end);
/* Takes @bytes at a multiple of @align (a power of two) from the lowest place that fits; 0 when none does. */
uint64_t ranges_take_low(struct ranges *rs, uint64_t bytes, uint64_t align);
/* The same from the highest place. */
uint64_t ranges_take_high(struct ranges *rs, uint64_t bytes, uint64_t align);
/* Takes exactly [start, end); false when it is not all free. */
bool ranges_take_at(struct ranges *rs, uint64_t start, uint64_t end);
void ranges_clear(struct ranges *rs);

#endif
