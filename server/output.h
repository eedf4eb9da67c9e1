/* SPDX-License-Identifier: MIT */
/* The sending side: replies kept until the client acknowledged them, and what goes onto the link next. */
#ifndef RGPU_SERVER_OUTPUT_H
#define RGPU_SERVER_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rgpu_wire.h>
#include "lib/pack.h"

struct worker;
struct srv_lane;
struct rgpu_link;

/* One reply with its bytes. Lives from the end of its call to the client's acknowledgement, over connections. */
struct reply {
	struct reply *next;
	unsigned refs; /* output.lock: the lane's list, and the link while it sends from recv */
	uint8_t *recv; /* owned; rep.bulk bytes for the segments, in their order */
	uint64_t sent; /* of them, on this connection */
	/*
	 * A fence's reply may say "the copy is done", on whatever channel the copy was, and so may a watch's
	 * word: so they go after every reply of an asynchronous copy that was made before them. Those are
	 * numbered (order), and who tells remembers the last number there was (barrier; 0: waits for none). So does one that
	 * brings bytes to where an unsent one of another lane does.
	 */
	uint64_t order, barrier;
	struct reply *order_next;
	unsigned nseg;
	struct rgpu_seg *seg; /* RECV segments, behind the body in the same allocation */
	struct rgpu_rep rep;  /* the body follows */
};

#define OUTPUT_STAGE (64u << 10)
#define OUTPUT_CTL   (8u << 10)

struct output {
	pthread_mutex_t lock;
	struct rgpu_link *link; /* NULL: not connected, or not yet attached */
	uint32_t lease;

	/* The connection that comes next, until the I/O thread takes it. */
	int next_fd;
	uint32_t next_lease;
	bool next_plain; /* without TLS; else … */
	uint8_t next_psk[RGPU_KEY_LEN];

	_Atomic bool attached; /* the client has said what it has; read without the lock too */
	bool want_out;	       /* the socket is full: the I/O thread knows, and goes on when it is not */
	int failed;	       /* negative errno: sending failed, the I/O thread drops the connection */

	/* A frame begun is finished before the next: stage[pos … len), then bulk. */
	uint32_t len, pos;
	const uint8_t *bulk;
	uint64_t bulk_left;
	struct reply *bulk_reply;
	uint8_t stage[OUTPUT_STAGE];

	/* Small frames: ATTACHED, PING, PONG, BYE. */
	uint32_t ctl_len;
	uint8_t ctl[OUTPUT_CTL];

	/* Hints of kept blocks to tell the client, who asked for them. */
	bool tell_known;
	bool known_all; /* … and those before them are void */
	uint64_t *known;
	uint32_t nknown, known_at, known_room;

	unsigned grants; /* lanes with grant_due */
	unsigned turn;	 /* the lane that is looked at first */

	struct rgpu_packer pack;

	uint64_t order;				/* last number given */
	struct reply *order_head, **order_tail; /* numbered ones not yet sent, ascending */

	_Atomic uint64_t received, sent; /* bytes over all connections */

	int32_t qstatus; /* the first failing quiet call not yet told */
	uint32_t qop;
};

void output_init(struct output *o);
void output_destroy(struct output *o);

/* A reply with room for body_len bytes, which the caller fills. NULL: no memory. */
struct reply *reply_new(uint32_t body_len, unsigned nrecv_segs);

/*
 * Numbers @r and sends it, or keeps it for the next connection. Takes it over. @ordered: of an asynchronous copy. @tells: it may
 * say that work is done.
 */
void output_reply(struct srv_lane *lane, struct reply *r, bool ordered, bool tells);

/* A quiet call failed; only the first untold one is kept. */
void output_quiet_error(struct worker *w, int32_t status, uint32_t op);
bool output_owes_error(struct worker *w); /* one that no reply has told yet */

/* Tells the client, if it wants to know, what it need not send again. @all: these and no others. */
void output_known(struct worker *w, const uint64_t *hints, uint32_t n, bool all);

/* The rest: output.lock is held. */

/* Sends until the socket is full, nothing is left, or about @budget bytes went. 0, or a negative errno: the connection is lost.
 */
int output_pump(struct worker *w, uint64_t budget);
bool output_idle(const struct output *o); /* every staged byte has gone to the link */
bool output_more(struct worker *w);	  /* something could be staged now */
void output_grant_due(struct srv_lane *lane);
/* A small frame of our own. false: too many wait. */
bool output_ctl(struct output *o, uint16_t type, uint32_t channel, const void *buf, uint32_t len);
/* The same with flags in its header. */
bool output_ctl_flags(struct output *o, uint16_t type, uint16_t flags, const void *buf, uint32_t len);
/* The client has published replies ≤ @published. -EPROTO: it cannot have seen that one. */
int output_ack(struct srv_lane *lane, uint64_t published);
void output_drop_all(struct srv_lane *lane); /* the lane is closed */
/* A new connection begins: everything unacknowledged is sent again. After the published ones were acked. */
int output_reset(struct worker *w); /* 0 or -ENOMEM */
void output_cut(struct output *o);  /* ends the connection, if there is one, and forgets what was on its way */

#endif
