/* SPDX-License-Identifier: MIT */
/* The worker's side of kept blocks: asks the listener for those that the client only names, and offers it what was uploaded. */
#ifndef RGPU_SERVER_CACHE_H
#define RGPU_SERVER_CACHE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rgpu_wire.h>

struct worker;
struct batch;

#define CACHE_QUEUE_MAX (64ull << 20)  /* bytes uploaded and not offered yet; what comes beyond is not offered */
#define CACHE_GRAIN	RGPU_BLOCK_MIN /* a bit of batch.named */

struct cache {
	_Atomic bool on;
	pthread_mutex_t talk; /* of the socket: one question at a time */
	int fd;

	pthread_mutex_t lock; /* of the queue; a leaf */
	pthread_cond_t wake;
	struct batch *head, **tail;
	uint64_t queued;
	bool stop, running;
	pthread_t thread;

	_Atomic uint64_t hits, misses, saved;
};

void cache_init(struct cache *c);
void cache_destroy(struct cache *c);

/* The socket to the listener, taken over; one from before is closed. */
void cache_use(struct worker *w, int fd);

/* The block's bytes. false: they are not kept any more, or the listener does not answer. */
bool cache_get(struct cache *c, const struct rgpu_ref *ref, void *to);

/* Hints of what is kept, malloc'ed. NULL: nothing, or no memory. */
uint64_t *cache_list(struct cache *c, unsigned *n);

/* A batch whose payload has run, and that nobody uses any more: taken over, and false: not. */
bool cache_offer(struct worker *w, struct batch *b);

/* At the session's end: what came last is offered, too, as far as a moment goes. */
void cache_drain(struct cache *c);

#endif
