/* SPDX-License-Identifier: MIT */
/* What a client library needs for one call: enter, check handles, write the record, wait. Exported to libcublas & co. by libcuda.
 */
#ifndef RGPU_SHIM_CALL_H
#define RGPU_SHIM_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rgpu_wire.h>
#include "rgpu_ops.h"

#define RGPU_PRIVATE_API __attribute__((visibility("default"))) /* version node RGPU_PRIVATE of libcuda.so.1 */

#define RGPU_NO_OP	0xffff
#define RGPU_ALIGN8(n)	(((n) + 7) & ~(size_t)7)
#define RGPU_OBJ_FIELDS 6

struct rgpu_session;
struct rgpu_lane;

/*
 * The client's half of a handle. Objects are never returned to the system, so a stale handle of the program is found to
 * be stale and never followed. @handle is 0 while the object is free; the rest belongs to the kind.
 */
struct rgpu_obj {
	_Atomic uint64_t handle; /* what the program holds and the wire carries */
	uint32_t index, gen;
	struct rgpu_obj *context; /* where it lives; NULL for contexts and libraries */
	uint64_t field[RGPU_OBJ_FIELDS];
	void *data;
	struct rgpu_obj *next; /* free list */
};

struct rgpu_call {
	uint16_t op;
	bool remote;	/* status is the server's, in the library's own enum */
	bool sent;	/* the record is published */
	bool mute;	/* its status is about itself alone: what failed before is told by another call */
	bool capturing; /* its stream captures: nothing is sent, see rgpu_capture() */
	bool unordered; /* its record waits for none of other threads */
	bool settles;	/* it leaves nothing running that a synchronous copy would have to wait for */
	int status;
	uint64_t gives;		  /* wire name + 1 of the stream that it gives work; 0 none */
	uint64_t capture_stream;  /* wire name of the stream that captures */
	uint64_t ctx;		  /* wire name of context; 0 none */
	struct rgpu_obj *context; /* that the call belongs to */
	struct rgpu_session *session;
	struct rgpu_lane *lane;
	struct rgpu_rec *rec;
};

/* All statuses here are CUresults, except those with c->remote. */

/* Is this process initialised and not a forked child; which context is current (none is no error yet). */
RGPU_PRIVATE_API int rgpu_enter(struct rgpu_call *c, uint16_t op);

/*
 * Checks a handle of the program. @adopt: the call belongs to its context. Sentinels of its kind pass, with an object
 * whose fields are 0. INVALID_HANDLE, INVALID_CONTEXT.
 */
RGPU_PRIVATE_API int rgpu_use(struct rgpu_call *c, enum rgpu_kind kind, const void *handle, bool adopt, uint64_t *wire,
			      struct rgpu_obj **obj);

/* A new handle in the call's context. */
RGPU_PRIVATE_API int rgpu_mint(struct rgpu_call *c, enum rgpu_kind kind, uint64_t *wire, struct rgpu_obj **obj);
RGPU_PRIVATE_API void rgpu_retire(struct rgpu_obj *obj);

/* [addr, addr + len) lies in one allocation: else INVALID_VALUE. A negative length is one. */
RGPU_PRIVATE_API int rgpu_check_range(struct rgpu_call *c, uint64_t addr, __int128 len);

/* @status of a call that wrote to @addr in @stream; when the program itself can look there, it has been written first. */
RGPU_PRIVATE_API int rgpu_settle(int status, uint64_t addr, uint64_t stream);

/*
 * Asked before a call gives @stream (a wire name) work: c->capturing then says whether that is captured. A CUresult: the capture
 * is void, or the legacy stream would have to wait for one. A call that cannot be captured makes it void (refuse). What stands
 * between begin and end of a fragment is captured by the server's driver; @r is what became of it, given back.
 */
RGPU_PRIVATE_API int rgpu_capture(struct rgpu_call *c, uint64_t stream);
RGPU_PRIVATE_API int rgpu_capture_refuse(struct rgpu_call *c);
RGPU_PRIVATE_API int rgpu_fragment_begin(struct rgpu_call *c);
RGPU_PRIVATE_API int rgpu_fragment_end(struct rgpu_call *c, int r);

/*
 * Room for a record in this thread's ring: segments first (rgpu_segs), then @body bytes, whose address is returned. NULL:
 * c->status says why. Waits while the ring is full. Exactly one of send, part and fence follows.
 */
RGPU_PRIVATE_API void *rgpu_begin(struct rgpu_call *c, uint8_t flags, unsigned nseg, size_t body);
/* Publishes a quiet record. Its status is the first failure of earlier quiet calls that nobody was told yet. */
RGPU_PRIVATE_API int rgpu_send(struct rgpu_call *c);
/* Publishes a fence and waits; the reply's body goes to @out, which is zero where the reply was shorter. */
RGPU_PRIVATE_API int rgpu_fence(struct rgpu_call *c, void *out, size_t room);

static inline struct rgpu_seg *rgpu_segs(struct rgpu_call *c)
{
	return (struct rgpu_seg *)(c->rec + 1);
}

#endif
