/* SPDX-License-Identifier: MIT */
/* A number that only grows: plain stores by the thread that came first, which is mostly the only one, locked ones by others. */
#ifndef RGPU_SHIM_TALLY_H
#define RGPU_SHIM_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rgpu_lane;

/*
 * A lane is one thread's at a time, so nobody else writes `own`. Not for a signal handler either: it is refused until the call
 * that it interrupts has counted (lane_kick()).
 */
struct tally {
	struct rgpu_lane *_Atomic owner;
	_Atomic uint64_t own, others;
};

static inline bool tally_is_own(struct tally *t, struct rgpu_lane *l)
{
	struct rgpu_lane *owner = atomic_load_explicit(&t->owner, memory_order_relaxed);

	if (__builtin_expect(owner == l, 1))
		return l;
	return !owner && l && atomic_compare_exchange_strong(&t->owner, &owner, l);
}

/* Never back: a thread that is late must not hide the work of one that came after it. */
static inline void tally_raise_others(struct tally *t, uint64_t to)
{
	uint64_t seen = atomic_load_explicit(&t->others, memory_order_relaxed);

	while (seen < to && !atomic_compare_exchange_weak(&t->others, &seen, to))
		;
}

/* @l: the calling thread's lane; NULL: it has none at hand. */
static inline void tally_raise(struct tally *t, struct rgpu_lane *l, uint64_t to)
{
	if (!tally_is_own(t, l))
		tally_raise_others(t, to);
	else if (atomic_load_explicit(&t->own, memory_order_relaxed) < to)
		atomic_store_explicit(&t->own, to, memory_order_release);
}

static inline void tally_add(struct tally *t, struct rgpu_lane *l, uint64_t n)
{
	if (tally_is_own(t, l))
		atomic_store_explicit(&t->own, atomic_load_explicit(&t->own, memory_order_relaxed) + n, memory_order_release);
	else
		atomic_fetch_add(&t->others, n);
}

/* Of what was raised. */
static inline uint64_t tally_most(struct tally *t)
{
	uint64_t own = atomic_load(&t->own), others = atomic_load(&t->others);

	return own > others ? own : others;
}

/* Of what was added. */
static inline uint64_t tally_sum(struct tally *t)
{
	return atomic_load(&t->own) + atomic_load(&t->others);
}

/* Back to 0, unless it has passed @to. */
static inline void tally_settle(struct tally *t, uint64_t to)
{
	uint64_t own = atomic_load(&t->own), others = atomic_load(&t->others);

	if (own <= to)
		atomic_compare_exchange_strong(&t->own, &own, 0);
	if (others <= to)
		atomic_compare_exchange_strong(&t->others, &others, 0);
}

/* Nobody uses it: for the next owner. */
static inline void tally_clear(struct tally *t)
{
	atomic_store(&t->owner, NULL);
	atomic_store(&t->own, 0);
	atomic_store(&t->others, 0);
}

#endif
