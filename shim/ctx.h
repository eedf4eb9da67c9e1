/* SPDX-License-Identifier: MIT */
/* A context: what the program may ask about it, and its device. */
#ifndef RGPU_SHIM_CTX_H
#define RGPU_SHIM_CTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include "shim/call.h"
#include "shim/cuda_api.h"
#include "shim/known.h"

#define CTX_LIMITS 12 /* CUlimit 0 … 11 */

struct device;

struct ctx {
	struct device *device;
	struct rgpu_obj *obj;
	bool alive;	   /* a primary context dies and comes back; a created one dies with its handle */
	_Atomic int fault; /* a kernel's fault that a fence told of: the context is dead, and every later call says so; 0 none */
	bool primary;
	_Atomic int attached; /* by cuCtxAttach */
	unsigned flags;
	unsigned api_version;
	int least, greatest; /* stream priorities */
	uint64_t limits[CTX_LIMITS];
	unsigned long long id;
	CUfunc_cache cache;
	CUsharedconfig banks;
	uint64_t peers; /* bit per device ordinal: access enabled */
	/*
	 * Work given, counted, and how much of it a wait has seen done. While they are the same, a synchronous copy to the
	 * device has nothing to wait for and asks for no answer.
	 */
	struct tally work;
	_Atomic uint64_t settled;
	_Atomic uint64_t idle; /* all that it was given up to this stamp is done */
	_Atomic uint64_t
		blocking;    /* the last work of streams that the legacy stream waits for, and that are not made or are gone */
	struct known legacy; /* its legacy stream */
	struct ctx *next;    /* of the dead ones: ctx.c */
};

/* Flags of a context: known ones, and at most one way of waiting. */
static inline bool ctx_flags_ok(unsigned int flags)
{
	unsigned int sched = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~CU_CTX_FLAGS_MASK) && !(sched & (sched - 1));
}

static inline struct ctx *ctx_of(struct rgpu_obj *context)
{
	return context->data;
}

/* A kernel's fault ends its context; such an error stays until the context is gone. */
bool ctx_is_sticky(int status);

/* A wait that began when @x had been given @work has ended. */
static inline void ctx_settled(struct ctx *x, uint64_t work)
{
	uint64_t seen = atomic_load(&x->settled);

	while (seen < work && !atomic_compare_exchange_weak(&x->settled, &seen, work))
		;
}

/* The call's context: a CUcontext of the program, or the current one for NULL. A CUresult. */
int ctx_use(struct rgpu_call *c, CUcontext ctx);

/* Waits until all contexts of the device have done what they were given; parked memory is then free. A CUresult. */
int ctx_sync_device(struct device *d);
/* The same for all devices of the session that have work. */
int sync_devices(struct rgpu_session *s);
/* cuCtxSynchronize of the call's context. */
int ctx_sync(struct rgpu_call *c);
/* The same, without asking when nothing was given to the context since its last wait. The call itself leaves nothing running. */
int ctx_quiesce(struct rgpu_call *c);

/* cuStreamSynchronize of a stream of the call's context, by its wire name. */
int stream_sync(struct rgpu_call *c, uint64_t stream);

/* Fetches device printf text that the server holds and writes it to stdout. */
void print_fetch(struct rgpu_session *s);

#endif
