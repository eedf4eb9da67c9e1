/* SPDX-License-Identifier: MIT */
/* A scripted server for the relay's tests: executes records once, keeps replies until acknowledged, and cuts connections on
 * demand. */
#ifndef RGPU_TESTS_FAKE_SERVER_H
#define RGPU_TESTS_FAKE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/link.h"
#include "usermode-proxy/control.h"

enum fake_op {
	FAKE_NOP = 1, /* body u32: status of the reply */
	FAKE_H2D,     /* reply body: u64 hash of the payload */
	FAKE_D2H,     /* RECV segments get fake_byte(seq, i) */
	FAKE_BODY,    /* body u32: that many bytes of reply body, fake_byte(seq, i) */
};

#define FAKE_CHANNELS 16
#define FAKE_LOG      65536

struct fake_reply {
	struct fake_reply *next;
	struct rgpu_rep rep;
	uint8_t *body;
	unsigned nseg;
	struct rgpu_seg seg[RGPU_SEG_MAX];
	bool sent; /* on this connection */
};

struct fake_chan {
	uint64_t received, rseq, acked;
	uint64_t got, granted;	    /* bytes on this connection */
	uint64_t sent, may_send;    /* reply bytes */
	struct fake_reply *replies; /* oldest first */
	uint8_t rec[RGPU_REC_MAX];
	uint8_t *payload;
	uint64_t want, have; /* payload of rec */
	bool closed;
};

struct fake_exec {
	uint32_t channel;
	uint64_t seq;
	uint64_t hash;
};

struct fake {
	int listen_fd;
	uint16_t port;
	pthread_t thread;
	bool stop; /* atomic */

	/* What the test sets, before connections come. */
	long cut_at;						/* event at which the connection is cut; 0 never */
	long cut_every;						/* … and every so many events after it; 0 once */
	bool no_grants;						/* receives and says nothing */
	bool refuse_resume;					/* leases are refused with ENOENT */
	uint64_t lie_received;					/* added to ATTACHED.received */
	void (*on_attach)(struct fake *f, struct rgpu_link *l); /* sends what it likes, then the connection goes on */

	pthread_mutex_t lock; /* all below */
	struct rgpu_lease lease;
	unsigned leases;
	long events;
	unsigned cuts, connections, again; /* again: records that came twice */
	struct fake_chan ch[FAKE_CHANNELS];
	struct fake_exec log[FAKE_LOG];
	unsigned nlog;
	uint32_t frame_order[FAKE_LOG]; /* channel of each PAYLOAD frame, or channel | 1 << 31 of each RECORDS frame */
	unsigned nframes;
	uint32_t bye;	   /* BYE frames that came */
	char trouble[128]; /* what the relay did wrong */
};

void fake_start(struct fake *f);
void fake_stop(struct fake *f);
int fake_lease(struct fake *f, struct rgpu_lease *out, char why[RGPU_WHY_MAX]);
uint8_t fake_byte(uint64_t seq, uint64_t i);
uint64_t fake_hash(const uint8_t *p, uint64_t n);

#endif
