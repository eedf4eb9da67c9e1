/* SPDX-License-Identifier: MIT */
/* One session's relay: it moves records from the rings to the server and answers back, and survives its connection. */
#ifndef RGPU_PROXY_RELAY_H
#define RGPU_PROXY_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "lib/addr.h"
#include "lib/pack.h"
#include "lib/why.h"
#include "usermode-proxy/control.h"

/*
 * A relay has one thread. It never parses a record beyond header and segments, and it trusts neither side: what
 * the program or the server break ends the session with a reason, through failed().
 */
struct rgpu_relay;

/* A channel's memory as the relay's side may use it: @a and @sq are only read. Sizes are those that the channel was made with. */
struct rgpu_relay_map {
	const struct rgpu_apage *a;
	struct rgpu_ppage *p;
	const uint8_t *sq;
	uint8_t *cq;
	uint32_t sq_size, cq_size; /* powers of two */
};

/*
 * Where rings and buffer objects come from, and whom to wake. Called with the relay's lock held, but for lease(),
 * down(), live() and failed().
 */
struct rgpu_relay_ops {
	/* -ENOENT: no such channel now; another error breaks the session. */
	int (*channel_map)(void *arg, uint32_t channel, struct rgpu_relay_map *out);
	void (*channel_unmap)(void *arg, uint32_t channel, const struct rgpu_relay_map *map);
	bool (*channel_alive)(void *arg, uint32_t channel);
	uint32_t (*nchannels)(void *arg); /* channels are below this */

	/* Maps stay until bo_unmap(), also after the program destroyed the object. Handles are not used twice. */
	int (*bo_map)(void *arg, uint32_t handle, uint8_t **base, uint64_t *bytes);
	void (*bo_unmap)(void *arg, uint32_t handle, uint8_t *base, uint64_t bytes);
	bool (*bo_alive)(void *arg, uint32_t handle);

	void (*kick)(void *arg, uint32_t channel); /* wakes the program's thread that sleeps on this channel */
	/* A bit per channel kicked since the last call. -ENODEV: the session is gone, or another relay's. */
	int (*kicked)(void *arg, uint64_t bits[RGPU_CHANNELS_MAX / 64]);

	/* A new lease by RESUME; blocks. Without it a lost connection is the end. */
	int (*lease)(void *arg, struct rgpu_lease *out, char why[RGPU_WHY_MAX]);
	void (*down)(void *arg, const char *why);		/* the connection was lost; another is being made */
	void (*live)(void *arg);				/* attached (again): calls will be answered */
	void (*failed)(void *arg, int reason, const char *why); /* the session is over; reason is a negative errno */
	void (*gone)(void *arg); /* kicked() said so: nothing is left to do but rgpu_relay_free() */
};

/*
 * @event_fd polls readable while kicked() has bits, or HUP when the session is gone; the caller's, outlives the relay. -1: none,
 * kicks come by rgpu_relay_kick(). NULL: no memory.
 */
struct rgpu_relay *rgpu_relay_new(const struct rgpu_relay_ops *ops, void *arg, const struct rgpu_addr *server, int event_fd);

/* Whether frames may be compressed: before the first connection. */
void rgpu_relay_compress(struct rgpu_relay *r, enum rgpu_pack_mode mode);

/* Connects with a lease and attaches. Blocks for at most about 20 s. live() is not called. Before rgpu_relay_run(). */
int rgpu_relay_attach(struct rgpu_relay *r, const struct rgpu_lease *lease, char why[RGPU_WHY_MAX]);

/*
 * Starts the thread; all signals are blocked in it. Without an attach before, it begins with lease(), and tries that for
 * @grace_ms, a lease's grace being unknown yet.
 */
int rgpu_relay_run(struct rgpu_relay *r, unsigned grace_ms);

/*
 * Tells the server that the session is over, when the connection allows it within about a second; the session fails with
 * -ECANCELED.
 */
void rgpu_relay_bye(struct rgpu_relay *r);

/* Ends the thread, which may take as long as lease() or a connect does, and frees all. @bye: rgpu_relay_bye() before. */
void rgpu_relay_free(struct rgpu_relay *r, bool bye);

/*
 * The program itself as the relay (direct mode). kick: after publishing, when the P page says that the relay sleeps: sends
 * inline when that is cheap, else wakes the thread. wait: until the channel was kicked by the relay, the session
 * failed (both return 0), or -ETIMEDOUT, -EINTR; the caller receives for the whole session meanwhile when nobody else does.
 */
int rgpu_relay_open(struct rgpu_relay *r, uint32_t channel); /* a channel that the program made */
void rgpu_relay_kick(struct rgpu_relay *r, uint32_t channel);
int rgpu_relay_wait(struct rgpu_relay *r, uint32_t channel, int timeout_ms);

/*
 * The program destroyed a buffer object or a channel. The BO's map is dropped as soon as nothing in flight uses it. @now: nothing
 * uses it any more when this returns: what still comes for it is thrown away, and what was not sent ends the session.
 */
void rgpu_relay_bo_gone(struct rgpu_relay *r, uint32_t handle, bool now);

/* In the child of a fork: closes the descriptors. Async-signal-safe, takes no lock. */
void rgpu_relay_forked(struct rgpu_relay *r);

/* For tests and rgpu status. */
struct rgpu_relay_counters {
	uint64_t records, replies, sent_bytes, received_bytes, connections;
	uint64_t named, saved_bytes; /* blocks that the server had, and their bytes */
	uint64_t known;		     /* blocks that it is known to have now */
	uint64_t needed;	     /* it had one no more: a round trip */
	uint64_t pack_in, pack_out;  /* bytes that were compressed for sending, and what became of them */
};
void rgpu_relay_counters(struct rgpu_relay *r, struct rgpu_relay_counters *out);

#endif
