/* SPDX-License-Identifier: MIT */
/* A program for the relay's tests: rings and buffer objects in plain memory, records in, replies out. */
#ifndef RGPU_TESTS_FAKE_APP_H
#define RGPU_TESTS_FAKE_APP_H

#include "tests/relay/fake_server.h"
#include "usermode-proxy/relay.h"

#define APP_CHANNELS 4
#define APP_BOS	     4
#define APP_BO_BYTES (3u << 20)

struct app_chan {
	struct rgpu_apage *a;
	struct rgpu_ppage *p;
	uint8_t *sq, *cq;
	uint32_t sq_size, cq_size;
	uint32_t tail, head;
	uint64_t seq;
	bool alive;
};

struct app {
	bool inside; /* the program is the relay: no doorbells but rgpu_relay_kick() */
	struct fake *server;
	struct rgpu_relay *relay;
	struct app_chan ch[APP_CHANNELS];
	unsigned nchannels;
	uint8_t *bo[APP_BOS + 1]; /* by handle, from 1 */
	uint32_t handles;	  /* higher handles, up to this one, are other names of those */
	int maps;		  /* atomic: BOs that the relay has mapped */
	int most_maps;		  /* that were at once */
	int event_fd;
	pthread_mutex_t lock; /* doorbells and the session's state */
	pthread_cond_t bell;
	uint64_t kicked[RGPU_CHANNELS_MAX / 64];
	bool rung[APP_CHANNELS];
	int reason;
	bool gone;
	char why[RGPU_WHY_MAX];
};

/* Attaches with a first lease and starts the relay's thread. */
void app_start(struct app *app, struct fake *server, bool inside, unsigned nchannels, uint32_t sq_size, uint32_t cq_size);
void app_stop(struct app *app);
/* A successor's relay over the same pages. */
void app_restart(struct app *app);

/* Writes a record and publishes it, waiting for room. 0, or the session's reason. */
int app_post(struct app *app, unsigned ch, uint16_t op, uint8_t flags, const struct rgpu_seg *seg, unsigned nseg,
	     const void *body, uint32_t body_len);
/* The next reply. 0, or the session's reason. */
int app_reply(struct app *app, unsigned ch, struct rgpu_rep *rep, uint8_t body[RGPU_REP_MAX]);
/* Until acked ≥ seq; until the replies up to rseq are published. */
int app_acked(struct app *app, unsigned ch, uint64_t seq);
int app_published(struct app *app, unsigned ch, uint64_t rseq);
/* Until the session failed; its reason. */
int app_failed(struct app *app);
void app_kick(struct app *app, unsigned ch);

#endif
