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
 * Calls are asked (ready()) in the order in which they came: before each fence's reply, by the fence's
 * lane, and by a thread of its own that sleeps 50 µs to 1 ms between rounds, the longer the less happens.
 */
struct pending {
	pthread_mutex_t lock; /* also "one at a time" of ready() */
	pthread_cond_t work;  /* the list is not empty any more, or stop */
	pthread_cond_t fewer;
	struct lane_call *head, **tail;
	_Atomic unsigned count;
	uint64_t bytes;
	bool stop;
	pthread_t thread;
};

int pending_init(struct worker *w);
void pending_destroy(struct worker *w);

/* Puts a deferred call on the list; waits first while the session has PENDING_BYTES_MAX there. Lane thread. */
void pending_add(struct lane_call *call);

/* Asks all; finished ones are completed. Lane thread. */
void pending_poll(struct worker *w);

/* Blocks until the lane has no deferred call. */
void pending_drain(struct srv_lane *lane);

#endif
