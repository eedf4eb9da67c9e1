/* SPDX-License-Identifier: MIT */
/* One session in its worker process: what lanes, replies and the connection share, and the locks that keep it. */
#ifndef RGPU_SERVER_WORKER_H
#define RGPU_SERVER_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "lib/pack.h"
#include "server/cache.h"
#include "server/dispatch.h"
#include "server/input.h"
#include "server/output.h"
#include "server/pending.h"
#include "server/stamps.h"

/*
 * Threads: one for I/O, which reads, keeps all timers and never waits for a lane; one per lane, which
 * makes the driver's calls and writes its replies to the link itself; one that asks deferred calls; and,
 * in the process, one that talks to the listener. Between two small calls a lane's thread may read in
 * the I/O thread's place (lend.h), which saves the way from one thread to the other.
 *
 * Locks, in the order in which they may nest:
 *	input_lock	the reading side; the I/O thread drops it while it sleeps
 *	pending.lock	deferred calls
 *	output.lock	the link, all replies, the lane tables' writers, the quiet error
 *	lane.lock	a lane's queue; stamps.lock; both are leaves
 *
 * Memory that a client can make a worker hold: per lane WORKER_WINDOW of records with their payload
 * (plus one record; twice that for a client that ignores its credit, then the session ends) and LANE_RETAINED of replies (plus
 * one), and for the session WORKER_POOL more of the first and RETAINED_POOL of the second, for links on which much is under way,
 * PENDING_BYTES_MAX for deferred calls, CACHE_QUEUE_MAX that is on its way into the listener's store, and IMAGES_MAX of modules
 * that are not loaded yet.
 */
#define WORKER_WINDOW	  RGPU_SQ_CREDIT_INITIAL
#define WORKER_POOL	  (256ull << 20)
#define LANE_RETAINED	  (8ull << 20)
#define LANE_RETAINED_MAX (128ull << 20)
#define RETAINED_POOL	  (256ull << 20)
#define PENDING_BYTES_MAX (1ull << 30)

struct worker_times {	  /* milliseconds */
	int grace;	  /* without a connection, until the session is given up */
	int direct_grace; /* the same after FIN or RST of a program that has the engine inside */
	int hang;	  /* a lane waits for a stamp that nobody sends, the client being alive */
	int ping;	  /* between pings */
	int silence;	  /* nothing at all came, not even an answer to a ping: the connection counts as lost */
	int handshake;	  /* TLS and ATTACH of a data connection */
};
extern const struct worker_times worker_times_default;

struct worker {
	struct srv_session *session;
	struct worker_times times;
	bool direct;
	_Atomic int compress; /* enum rgpu_pack_mode */

	struct stamps stamps;
	struct pending pending;
	struct output output;
	struct rgpu_packer unpack; /* the reader's: input_lock */
	struct cache cache;

	pthread_mutex_t input_lock; /* of input, of the "reader only" fields of lanes, and of link_fd */
	_Atomic bool io_wants;	    /* the I/O thread waits for input_lock */
	_Atomic bool may_spin;	    /* there is more than one processor, */
	_Atomic bool same_host;	    /* and the client wants one of them, too */
	struct input input;
	int epoll_fd; /* wake_fd, the link's socket, and one in its handshake */
	int link_fd;  /* the link's socket as epoll knows it, −1 none */

	/*
	 * Lanes by channel and as a dense list. Written under input_lock and output.lock; either is
	 * enough to read.
	 */
	struct srv_lane *by_channel[RGPU_CHANNELS_MAX];
	struct srv_lane *lanes[RGPU_CHANNELS_MAX];
	unsigned nlanes;
	uint64_t pool;		   /* of WORKER_POOL, given to lanes; input_lock */
	_Atomic uint64_t retained; /* of all lanes; written under output.lock */

	_Atomic uint64_t records, fences; /* run so far */
	_Atomic unsigned threads;	  /* lane threads that have not ended */

	int wake_fd; /* eventfd: makes the I/O thread look again */
	_Atomic bool broken;
	pthread_mutex_t end_lock; /* of end_err and end_text: the first reason stays */
	int end_err;
	char end_text[252];
};

int worker_init(struct worker *w, struct srv_session *session, bool direct, const struct worker_times *t);

/* Ends all threads and frees everything. The session's calls must return. Only tests end this way: a worker process just exits.
 */
void worker_destroy(struct worker *w);

/* The session cannot go on: the client is told and worker_io() returns. @err is a positive errno, 0 for a clean end. Any thread,
 * once counts. */
void worker_break(struct worker *w, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The I/O thread. Returns when the session is over; end_err and end_text say why. */
void worker_io(struct worker *w);

/* A new connection for lease @lease, not yet greeted; the socket is taken over. @psk NULL: it has no TLS. Any thread. */
void worker_connect(struct worker *w, int fd, uint32_t lease, const uint8_t psk[RGPU_KEY_LEN]);

/* Cuts the connection off and makes @lease the only one that may connect. Nothing of the old one is read or sent afterwards. Any
 * thread. */
void worker_retire(struct worker *w, uint32_t lease);

/* Whether frames may be compressed, from the next connection on. Any thread. */
void worker_compress(struct worker *w, enum rgpu_pack_mode mode);

#define LAZY_MS 20 /* received records are told that late when nothing else is */

void worker_kick(struct worker *w); /* wakes the I/O thread */

#endif
