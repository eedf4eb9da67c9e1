/* SPDX-License-Identifier: MIT */
/* A lane: one thread's channel, with its place in the rings and the fences that it waits for. */
#ifndef RGPU_SHIM_LANE_H
#define RGPU_SHIM_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include "shim/call.h"
#include "shim/transport.h"

struct staging;
struct progress;

/* A reply that is waited for. It lives on the stack of the waiting thread. */
struct fence {
	uint64_t seq, after; /* after: its record's */
	struct fence *next;
	void *out; /* body of the reply goes here, at most room bytes */
	uint32_t room, got;
	int32_t status;
	uint64_t bulk;
	bool done;
};

/* Belongs to one thread at a time; nothing in it is locked. Lanes are never destroyed: they go back to the session's pool. */
struct rgpu_lane {
	struct rgpu_session *session;
	struct rgpu_channel ch;
	uint32_t sq_tail, cq_head; /* ours; the A page has what is published */
	uint32_t sq_head;	   /* as last seen: the proxy writes to that line while we fill what is free */
	uint32_t cq_kicked;	   /* cq_head when the proxy was last told of room in the CQ */
	uint32_t spin, spin_max;   /* rounds worth spinning before sleeping */
	uint64_t seq, last_stamp;
	uint64_t bulk;	      /* the last record that had bytes to send */
	uint64_t own;	      /* names its thread's own stream (ordered.h): another thread that has it later has another one */
	uint32_t needed;      /* of the P page's, those that are counted */
	struct fence *fences; /* outstanding */
	bool busy;	      /* between begin and kick: a signal handler that calls CUDA is refused */
	struct staging *staging;
	struct progress *progress; /* of the copy that is under way, where somebody looks */
	struct rgpu_lane *next;	   /* in the pool */
};

int lane_open(struct rgpu_lane *l); /* session is set; a CUresult */

/* Room for @len bytes, a multiple of RGPU_REC_ALIGN; fills in all of the header but seq and stamp. NULL: *err. */
struct rgpu_rec *lane_begin(struct rgpu_lane *l, uint16_t op, uint8_t flags, unsigned nseg, uint32_t len, int *err);
/* @place: takes the call's stamp. Fences and all but the last record of a call have none. Returns the record's seq. */
uint64_t lane_publish(struct rgpu_lane *l, struct rgpu_rec *rec, bool place);
/* Follows: wakes the proxy if that sleeps. What is noted of the record is noted before, out of the way of signal handlers. */
void lane_kick(struct rgpu_lane *l);

void lane_expect(struct rgpu_lane *l, struct fence *f); /* f->seq is set: before its reply is looked for */
int lane_wait(struct rgpu_lane *l, struct fence *f);	/* 0, or why there will be no reply */
int lane_wait_acked(struct rgpu_lane *l, uint64_t seq); /* until the bytes of that record are the server's */

/* Until @cond holds, which something that comes over this channel brings about. */
int lane_wait_until(struct rgpu_lane *l, bool (*cond)(struct rgpu_lane *, const void *), const void *arg);

/* The proxy sleeps, as far as a look can tell: the last record was a while ago. */
static inline bool lane_rests(const struct rgpu_lane *l)
{
	return __atomic_load_n(&l->ch.p->sq_event, __ATOMIC_RELAXED) == RGPU_EVENT_ASLEEP;
}

/* Bytes are on their way, and what is sent now comes behind them. */
static inline bool lane_sends(const struct rgpu_lane *l)
{
	return __atomic_load_n(&l->ch.p->acked, __ATOMIC_ACQUIRE) < l->bulk;
}

/* So many bytes on their way at once keep the link busy, as the relay sees it; 0: it does not know. */
static inline uint64_t lane_ahead(const struct rgpu_lane *l)
{
	return (uint64_t)__atomic_load_n(&l->ch.p->ahead_mib, __ATOMIC_RELAXED) << 20;
}

#endif
