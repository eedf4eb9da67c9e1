/* SPDX-License-Identifier: MIT */
/* The receiving side: frames off the link become batches in lanes, once everything about them is checked. */
#ifndef RGPU_SERVER_INPUT_H
#define RGPU_SERVER_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <rgpu_wire.h>
#include <linux/rgpu.h>

struct worker;
struct srv_lane;
struct batch;

#define INPUT_SMALL (RGPU_CHANNELS_MAX * sizeof(struct rgpu_attach_channel))

/* Of whoever reads: worker.input_lock. */
struct input {
	struct rgpu_frame hdr;
	uint32_t hdr_got;
	uint32_t body_got;
	struct batch *batch;		  /* of a RECORDS frame */
	struct srv_lane *lane;		  /* of a PAYLOAD frame */
	uint64_t skip[RGPU_CHANNELS_MAX]; /* payload bytes to come that belong to a record received before */
	uint8_t small[INPUT_SMALL];
	int64_t last_bytes;   /* when anything came, ns */
	int64_t last_records; /* when RECORDS or PAYLOAD last came, ns */
	unsigned pongs;	      /* since then */
	uint8_t *packed;      /* body of a PACKED frame, RGPU_PACKED_MAX bytes; kept */
	bool cached;	      /* the client may name bytes instead of sending them */
	bool attached;	      /* of the connection that is read; output.attached ends with a retired one at once */
	bool hung_up;	      /* the socket has no more news than its end: read up to it */
	bool lazy_grant;      /* records were received that no GRANT has told: within 20 ms, or a second after lent time */
};

/* A new connection: what was received in part is dropped. */
void input_reset(struct worker *w);

/*
 * Reads about @budget bytes. 1 more may be there, 0 nothing left, -errno the connection is lost (−ENOTCONN:
 * its clean end). A client that breaks the rules breaks its session: worker_break().
 */
int input_read(struct worker *w, uint64_t budget);

#endif
