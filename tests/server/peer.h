/* SPDX-License-Identifier: MIT */
/* A client of the tests' own for data connections: it builds frames, valid or not, and collects what comes back. */
#ifndef TESTS_SERVER_PEER_H
#define TESTS_SERVER_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/rgpu.h>
#include "lib/link.h"
#include "server/worker.h"

#define PEER_WAIT_MS 20000 /* a hang ends the test; nothing is asserted about time */

struct peer_reply {
	struct rgpu_rep rep;
	uint8_t body[256]; /* the first bytes */
};

/* What the client's side knows of a channel, over connections. */
struct peer_lane {
	uint64_t seq, published, received, allow, data_bytes;
	uint64_t cq; /* reply bytes seen on this connection */
	uint64_t tx; /* bytes sent on it */
	uint8_t *bo; /* DATA lands here */
	uint64_t bo_size;
	bool hold_ack; /* replies are not acknowledged */
};

struct peer {
	struct rgpu_link *link;
	struct peer_lane lane[RGPU_CHANNELS_MAX];
	struct rgpu_error_frame bye;
	bool said_bye, quiet_pongs;
	unsigned pings;
	uint16_t last_type;
	uint32_t last_channel, last_len;
	_Alignas(16) uint8_t frame[RGPU_FRAME_MAX];
	uint8_t *out; /* bytes gathered by peer_rec() */
	uint16_t attach_flags;
	uint16_t wish_mib; /* RECORDS frames ask for so much credit */
	uint32_t out_len, out_room;
};

/* A worker in this process, its I/O thread, and a peer connected over a socket pair. */
struct rig {
	struct worker w;
	struct peer p;
	pthread_t io;
	uint32_t lease;
};

void rig_up(struct rig *r, const struct worker_times *t, bool direct);
void rig_down(struct rig *r);	 /* ends the worker, frees all */
void rig_connect(struct rig *r); /* a socket pair, TLS; no ATTACH yet */
/* RESUME as the listener does it: retire, then connect and attach with what the peer published. */
void rig_resume(struct rig *r);

void peer_drop(struct peer *p);								     /* closes the socket */
int peer_send(struct peer *p, uint16_t type, uint32_t channel, const void *buf, size_t len); /* 0 or -errno */
void peer_attach(struct peer *p, const uint32_t *ch, unsigned n);			     /* and waits for ATTACHED */

/* Gathers one record; flush sends all as one RECORDS frame. seq is the lane's next, unless given. */
struct rec_args {
	uint32_t channel;
	uint16_t op;
	bool fence;
	uint64_t after, stamp, seq;
	const void *body;
	uint32_t body_len;
	uint64_t send, recv; /* bytes of one segment each, buffer object 1, offset 0 */
	uint64_t recv_off;
};
void peer_gather(struct peer *p, struct rec_args a);
int peer_flush(struct peer *p, uint32_t channel);
#define peer_rec(p, ch, ...)                                                                                                     \
	({                                                                                                                       \
		peer_gather(p, (struct rec_args){.channel = (ch), __VA_ARGS__});                                                 \
		peer_flush(p, ch);                                                                                               \
	})

/*
 * Handles one incoming frame: GRANT, DATA, PING on its own; acknowledges replies unless told not to.
 * Its type; -ETIMEDOUT or what the link says. A reply that makes an entry goes into @rep, with *got.
 */
int peer_step(struct peer *p, struct peer_reply *rep, bool *got, uint32_t *channel, int timeout_ms);
/* One step that must come: the end of the connection ends the test. */
void peer_must(struct peer *p);
/* Waits for credit on a channel. */
void peer_credit(struct peer *p, uint32_t channel);
/* The next waited-for reply of any channel. false: none came (the connection's end, BYE). */
bool peer_reply(struct peer *p, struct peer_reply *rep, uint32_t *channel);
/* Until the server says BYE or closes: whether it said BYE. */
bool peer_until_end(struct peer *p);

#endif
