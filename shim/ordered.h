/* SPDX-License-Identifier: MIT */
/* Stream-ordered memory: blocks that were freed in a stream, and the accounts of the pools that they are of. */
#ifndef RGPU_SHIM_ORDERED_H
#define RGPU_SHIM_ORDERED_H

#include <pthread.h>
#include <stdint.h>
#include "shim/call.h"
#include "shim/cuda_api.h"

struct device;
struct block;

/*
 * A pool is an account: its memory comes out of the device's heap like all other. What it has is reserved; what the program
 * freed stays reserved up to the threshold, or until a wait saw it idle.
 */
struct pool {
	pthread_mutex_t lock; /* the fields below */
	struct device *device;
	CUmemPoolProps props;
	bool is_default;
	uint64_t used, used_high, reserved, reserved_high, threshold;
	int follow, opportunistic, internal; /* reuse policies: kept for who asks */
	uint64_t visible_to;		     /* bit per device ordinal */
	bool imported;			     /* another process's: nothing is allocated from it here */
	uint64_t number;		     /* of one that processes share */
};

/* pool.c. NULL: no memory. */
struct rgpu_obj *pool_new(struct device *d, const CUmemPoolProps *props);
int pool_find(CUmemoryPool pool, struct pool **p); /* a CUresult */
uint32_t pool_access(struct pool *p);		   /* visible_to, by the devices' bits in the session */

/* The block's bytes are given to, or come back from, the pool of this handle; nothing happens when that is gone. */
void pool_charge(uint64_t pool, uint64_t bytes);
void pool_discharge(uint64_t pool, uint64_t bytes);

/*
 * Streams here are what orders: the legacy stream is 0 under both of its names, and a thread's own stream, which ends with the
 * thread, has a name of its own. A CUresult: there may be no lane for one more thread.
 */
int ordered_stream(const struct rgpu_call *c, uint64_t wire, uint64_t *stream);
/* Waits for a stream by that name: for another thread's own, which the server cannot be told, for all of the call's context. */
int ordered_sync(struct rgpu_call *c, uint64_t stream);

/* A block of at least @size bytes on @d, freed in this stream before: work that the stream gets now comes after its last use. */
struct block *ordered_take(struct device *d, struct rgpu_obj *context, uint64_t stream, uint64_t size);
/* What the stream was given so far may still use the block. */
void ordered_give(struct block *b, struct rgpu_obj *context, uint64_t stream, uint64_t stamp);

/* All that the stream (ORDERED_ALL: any of @context) was given before @stamp is done. */
void ordered_settled(struct rgpu_obj *context, uint64_t stream, uint64_t stamp);
#define ORDERED_ALL UINT64_MAX
/* All of the device's work given before @stamp is done. */
void ordered_idle(struct device *d, uint64_t stamp);
/* The device whose work holds a block of @d back; NULL: none does. */
struct device *ordered_holder(const struct device *d);

#endif
