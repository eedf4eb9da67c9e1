/* SPDX-License-Identifier: MIT */
/* Deferred calls: submitted to the driver, which still uses their buffers. */
#ifndef RGPU_SERVER_PENDING_H
#define RGPU_SERVER_PENDING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;
struct srv_lane;
struct lane_call;

/*
 * Calls are asked (ready()), and answered in the order in which they came: before each fence's reply, by the fence's
 * lane, and by a thread of its own that sleeps 50 µs to 1 ms between rounds, the longer the less happens. Those
 * that are told (srv_call.told) do not keep it awake, nor do those that their lane alone asks (own).
 */
struct pending {
	pthread_mutex_t lock; /* also "one at a time" of ready() */
	pthread_cond_t fewer;
	struct lane_call *head, **tail;
	_Atomic unsigned count;
	unsigned polled; /* of them, those that nobody speaks up for */
	uint64_t bytes;
	pthread_t thread;

	/* The thread's sleep. */
	pthread_mutex_t nap_lock; /* a leaf */
	pthread_cond_t nap_end;
	bool look, stop;
};

int pending_init(struct worker *w);
void pending_destroy(struct worker *w);

/* Puts a deferred call on the list; waits first while the session has PENDING_BYTES_MAX there. Lane thread. */
void pending_add(struct lane_call *call);

/* How long to sleep between rounds when nothing has happened since. */
int64_t pending_nap(int64_t since);

/* Asks all; finished ones are completed. Lane thread. */
void pending_poll(struct worker *w);

/* Blocks until the lane has no deferred call. */
void pending_drain(struct srv_lane *lane);

#endif
