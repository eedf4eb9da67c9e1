/* SPDX-License-Identifier: MIT */
/* The session's order: which stamps were received and have run, and the wait until all up to one have. */
#ifndef RGPU_SERVER_STAMPS_H
#define RGPU_SERVER_STAMPS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Stamps are 1, 2, 3 … over all channels and arrive in any order. `prefix` is the largest P with
 * 1 … P all run; a record with `after` ≤ P may run. Above P two bitmaps, as rings, say what was
 * received and what has run. They grow with the distance, up to STAMPS_SPAN_MAX: more records than
 * all channels can have waiting here and in their rings (256 × (8 MiB of credit + 1 MiB of ring) /
 * 32 bytes = 2^26.2), so a stamp beyond is a lie. That is 32 MiB at worst.
 */
#define STAMPS_SPAN_MAX (1ull << 27)

struct stamps {
	pthread_mutex_t lock; /* of everything but `prefix`, which is written under it and read without */
	_Atomic uint64_t prefix;
	uint64_t span; /* bits in each ring: a power of two */
	uint64_t *received, *run;
	struct stamps_waiter *waiters;
	bool broken; /* waiters return */
};

/* One per lane; owned by the lane, in the list only while it waits. */
struct stamps_waiter {
	uint64_t after;
	pthread_cond_t wake;
	bool woken;
	struct stamps_waiter *next;
};

int stamps_init(struct stamps *s); /* 0 or -ENOMEM */
void stamps_destroy(struct stamps *s);
void stamps_waiter_init(struct stamps_waiter *w);
void stamps_waiter_destroy(struct stamps_waiter *w);

/* A stamp came off the wire. 0, -EEXIST it was there before, -ERANGE too far ahead, -ENOMEM. */
int stamps_receive(struct stamps *s, uint64_t stamp);

/* A received stamp has run: wakes the lanes that waited for no more than this. */
void stamps_done(struct stamps *s, uint64_t stamp);

/* Blocks until every stamp ≤ @after has run: true; false after stamps_break(). */
bool stamps_wait(struct stamps *s, struct stamps_waiter *w, uint64_t after);

static inline bool stamps_reached(struct stamps *s, uint64_t after)
{
	return after <= atomic_load_explicit(&s->prefix, memory_order_acquire);
}

/* The lowest stamp that a waiter needs and that was never received; 0 when there is none. */
uint64_t stamps_missing(struct stamps *s);

/* The session is over: all waits end. */
void stamps_break(struct stamps *s);

#endif
