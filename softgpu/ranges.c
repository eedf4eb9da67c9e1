// SPDX-License-Identifier: MIT
/* A set of address ranges that can be taken from and given back to: the free space of an allocator. */
#include "softgpu/ranges.h"

#include <stdlib.h>
#include <string.h>

static bool insert(struct ranges *rs, size_t at, struct range r)
{
	if (rs->n == rs->room) {
		size_t room = rs->room ? rs->room * 2 : 16;
		struct range *p = realloc(rs->r, room * sizeof(*p));

		if (!p)
			return false;
		rs->r = p;
		rs->room = room;
	}
	memmove(&rs->r[at + 1], &rs->r[at], (rs->n - at) * sizeof(*rs->r));
	rs->r[at] = r;
	rs->n++;
	return true;
}

static void erase(struct ranges *rs, size_t at)
{
	rs->n--;
	memmove(&rs->r[at], &rs->r[at + 1], (rs->n - at) * sizeof(*rs->r));
}

/* Index of the first range that ends above @addr. */
static size_t lower(const struct ranges *rs, uint64_t addr)
{
	size_t lo = 0, hi = rs->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (rs->r[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool ranges_give(struct ranges *rs, uint64_t start, uint64_t end)
{
	size_t i = lower(rs, start);
	bool left = i > 0 && rs->r[i - 1].end == start, right = i < rs->n && rs->r[i].start == end;

	if (left && right) {
		rs->r[i - 1].end = rs->r[i].end;
		erase(rs, i);
	} else if (left) {
		rs->r[i - 1].end = end;
	} else if (right) {
		rs->r[i].start = start;
	} else {
		return insert(rs, i, (struct range){start, end});
	}
	return true;
}

/* Cuts [start, end) out of range @i, which contains it. */
static bool cut(struct ranges *rs, size_t i, uint64_t start, uint64_t end)
{
	struct range whole = rs->r[i];

	if (whole.start == start && whole.end == end) {
		erase(rs, i);
	} else if (whole.start == start) {
		rs->r[i].start = end;
	} else if (whole.end == end) {
		rs->r[i].end = start;
	} else {
		if (!insert(rs, i + 1, (struct range){end, whole.end}))
			return false;
		rs->r[i].end = start;
	}
	return true;
}

uint64_t ranges_take_low(struct ranges *rs, uint64_t bytes, uint64_t align)
{
	for (size_t i = 0; i < rs->n; i++) {
		uint64_t start = (rs->r[i].start + align - 1) & ~(align - 1);

		if (start < rs->r[i].end && bytes <= rs->r[i].end - start)
			return cut(rs, i, start, start + bytes) ? start : 0;
	}
	return 0;
}

uint64_t ranges_take_high(struct ranges *rs, uint64_t bytes, uint64_t align)
{
	for (size_t i = rs->n; i-- > 0;) {
		uint64_t start;

		if (bytes > rs->r[i].end - rs->r[i].start)
			continue;
		start = (rs->r[i].end - bytes) & ~(align - 1);
		if (start >= rs->r[i].start)
			return cut(rs, i, start, start + bytes) ? start : 0;
	}
	return 0;
}

bool ranges_take_at(struct ranges *rs, uint64_t start, uint64_t end)
{
	size_t i = lower(rs, start);

	if (i == rs->n || rs->r[i].start > start || rs->r[i].end < end)
		return false;
	return cut(rs, i, start, end);
}

void ranges_clear(struct ranges *rs)
{
	free(rs->r);
	*rs = (struct ranges){0};
}
