/* SPDX-License-Identifier: MIT */
/* Page-locked memory of the worker for copies: only there the driver neither reads early nor blocks. */
#ifndef RGPU_SERVER_LOCKED_H
#define RGPU_SERVER_LOCKED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOCKED_CLASSES 10 /* 4 KiB … 2 MiB */

struct locked;

/*
 * A context's. What is given back is kept for the next copy: to unlock it would wait for the whole device, and with it for
 * whatever the program has not let go on yet.
 */
struct srv_locked {
	pthread_mutex_t lock; /* a leaf */
	bool closed;
	struct locked *free[LOCKED_CLASSES];
};

void locked_init(struct srv_locked *l);
/* The context is current. At most RGPU_CHUNK_MAX bytes; NULL: no memory. */
void *locked_get(struct srv_locked *l, uint64_t bytes);
void locked_put(struct srv_locked *l, void *p, uint64_t bytes);
/* The context is gone, and what it knew of locked memory with it. */
void locked_close(struct srv_locked *l);

#endif
