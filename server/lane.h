/* SPDX-License-Identifier: MIT */
/* A channel in the worker: its queue of records, its thread, and its share of credit and replies. */
#ifndef RGPU_SERVER_LANE_H
#define RGPU_SERVER_LANE_H

#include "lib/spin.h"
#include "server/worker.h"

/* Records that came in one frame, private to the worker; the last one may have a payload. */
struct batch {
	struct batch *next;
	struct srv_lane *lane;
	_Atomic unsigned refs; /* the lane, and deferred calls that still read here */
	uint32_t len;	       /* of bytes */
	uint32_t first;	       /* offset of the first record to run: those before had been received already */
	uint64_t charge;       /* bytes of the lane's backlog that go with it */
	uint8_t *payload;
	uint64_t payload_len;
	uint32_t named; /* of each CACHE_GRAIN of the payload: the client only named it */
	uint8_t bytes[] __attribute__((aligned(16)));
};

enum lane_phase {
	LANE_IDLE,    /* nothing queued */
	LANE_HELD,    /* waits for a stamp */
	LANE_BLOCKED, /* waits in the driver for devices */
	LANE_RUNNING, /* in a call, or waiting for the client to take replies */
};

struct srv_lane {
	struct worker *w;
	uint32_t channel;
	struct srv_lane_state *state;
	_Atomic unsigned refs; /* the tables, and the thread */
	_Atomic int phase;

	/* The reader's: input_lock. */
	uint64_t floor;	       /* the next stamp must be above: stamps and `after`s seen so far */
	struct batch *filling; /* its payload is arriving */
	uint64_t filled;
	uint64_t rx_told; /* rx at the last GRANT for received records alone */
	bool rewinding;	  /* bytes that the client named are gone: what comes before its REWIND is not taken */

	/* Credit: rx counts this connection's bytes, backlog the bytes not yet run, of any connection. */
	_Atomic uint64_t received, rx, backlog;
	_Atomic uint64_t granted_allow;
	_Atomic uint64_t window; /* bytes that may be sent and not yet run; only grows, input_lock */

	pthread_mutex_t lock; /* of the queue */
	pthread_cond_t wake;
	struct batch *head, **tail;
	bool closing; /* no more will come */

	/* The lane's thread only. */
	struct lane_call *call; /* for the next record */
	struct batch *batch;	/* the rest of what it took, from at on */
	uint32_t at;
	bool reads;		 /* it answered a fence, or reads already: its program's thread may have the next one soon */
	unsigned misses, tries;	 /* how often nothing came in lent time */
	int64_t spin_ns;	 /* looking for the next call that long pays */
	struct rgpu_apart apart; /* from the client on this machine */

	struct stamps_waiter waiter;
	unsigned npending;    /* pending.lock */
	_Atomic unsigned own; /* of them, those that only its thread asks; written with pending.lock */

	/* output.lock */
	struct reply *replies, **replies_tail, *unsent; /* in rseq order, from the first unacknowledged */
	uint64_t rseq, sent_rseq;
	uint64_t cq_sent, cq_allow;
	uint64_t granted_received;
	bool grant_due;
	uint64_t need; /* record to be told of in NEED, 0 none; with grant_due */
	bool gone;     /* closed by the client: replies are dropped */
	_Atomic uint64_t retained;
	pthread_cond_t room;
};

#define LANE_SPIN_NS	 10000			 /* at first */
#define LANE_THREADS_MAX (2 * RGPU_CHANNELS_MAX) /* open lanes, and closed ones that still run */

/* Opens the lane and starts its thread. input_lock. NULL: no memory, or too many threads. */
struct srv_lane *lane_open(struct worker *w, uint32_t channel);

/* Takes it off the tables: it runs what it has, its replies are dropped. input_lock. */
void lane_close(struct srv_lane *lane);
void lane_put(struct srv_lane *lane);

struct batch *batch_new(struct srv_lane *lane, uint32_t len);
void batch_put(struct batch *b);
/* One whose payload is not whole: nobody is to have what lies behind the bytes that came. */
void lane_put_filling(struct srv_lane *lane);
void lane_queue(struct srv_lane *lane, struct batch *b); /* takes the reference over */

bool lane_is_mine(const struct srv_lane *lane); /* the calling thread runs its records */
bool lane_has_work(struct srv_lane *lane);	/* something is queued, or it is to close */

/* How much the client may have sent on this connection. */
uint64_t lane_allow(struct srv_lane *lane);
/* The client asks for a window of so many MiB: it gets what the session's pool has for it. input_lock. */
void lane_widen(struct srv_lane *lane, unsigned mib);
bool lane_full(const struct srv_lane *lane); /* the client must acknowledge replies before the lane makes more */

/* A call as the lane and the deferred list hold it. */
struct lane_call {
	struct srv_call c; /* first: srv_call pointers are cast back */
	struct srv_lane *lane;
	struct batch *batch;
	struct lane_call *next;
	/* With pending.lock, in a round of questions. */
	struct lane_call *before; /* of its rank */
	bool finished;
};

/* Turns a finished call into its reply or its quiet error. The call's recv buffer goes with it. */
void lane_complete(struct lane_call *call);
void lane_call_free(struct lane_call *call); /* a deferred one, after lane_complete() */

#endif
