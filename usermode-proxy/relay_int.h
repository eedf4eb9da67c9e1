/* SPDX-License-Identifier: MIT */
/* What the relay's parts share: the session's and the channels' state, and the lock over them. */
#ifndef RGPU_PROXY_RELAY_INT_H
#define RGPU_PROXY_RELAY_INT_H

#include <errno.h>
#include <pthread.h>
#include "lib/link.h"
#include "lib/pack.h"
#include "lib/spin.h"
#include "usermode-proxy/relay.h"

#define STAGE_SIZE  (384u << 10) /* small frames on their way into the link */
#define STAGE_FULL  (128u << 10) /* no new frame is begun beyond */
#define RECORDS_MAX (64u << 10)	 /* no record is added to a frame that has this much */
#define THICK	    16		 /* records in a frame: the program gives many before it waits */
#define RX_READ	    (64u << 10)	 /* read at once while no frame asks for more */
#define RX_SIZE	    (RGPU_FRAME_MAX + sizeof(struct rgpu_frame) + RX_READ)
#define HELD_MAX                                                                                                                 \
	(16u << 20) /* replies of one channel that wait for room in its CQ; credit keeps it far below, but for QUIET ones */
#define BO_BUCKETS    1024u
#define RELAY_BO_MAPS 1024u /* buffer objects that stay mapped for their next use; more than these only while they are in use */

/* A mapped buffer object. In the table while the session uses it; users are transfers in progress. */
struct relay_bo {
	struct relay_bo *next;
	uint32_t handle;
	unsigned users;
	bool gone; /* unmap at users == 0 */
	uint8_t *base;
	uint64_t bytes;
};

enum chan_state { CHAN_NONE, CHAN_OPEN, CHAN_CLOSED };

struct chan {
	uint32_t id;
	enum chan_state state;
	bool kicked, ending; /* it may be at its end; the program has destroyed it, and the server does not know yet */
	struct rgpu_relay_map m;

	/* Towards the server. Indices are the ring's, seqs the records'. */
	uint32_t head;	   /* as p->sq_head, which the program could not change, but a successor inherits */
	uint32_t next;	   /* first byte not looked at */
	uint32_t tail;	   /* of the ring, as last seen */
	uint64_t seq;	   /* last record handed to the link, bytes included when pay.n == 0 */
	uint64_t received; /* last record that the server granted */
	uint32_t *ends;	   /* [seq & ends_mask]: index behind record seq */
	uint32_t ends_mask;
	uint64_t sent, allowed; /* credit, bytes on this connection */
	uint64_t rewind;	/* the server needs this record again, 0 none: REWIND is due */
	uint32_t ahead_mib;	/* credit to ask for: what the link's round trip takes at the rate that it was seen to have */
	struct {
		unsigned n, cur; /* segments of the last record: SEND ones only */
		uint64_t done;	 /* bytes of segment cur that are out */
		struct {
			struct relay_bo *bo;
			uint64_t off, len;
		} seg[RGPU_SEG_MAX];
	} pay;

	/* Towards the program. */
	uint32_t cq_tail;
	uint64_t published;
	uint64_t reply_in;    /* reply bytes (not QUIET) received on this connection */
	uint64_t reply_out;   /* … and published */
	uint64_t reply_may;   /* allowance that there is room for */
	uint64_t reply_allow; /* … last told */
	uint64_t acked_to;    /* rseq last told in ACK */
	uint32_t ack_bytes;   /* since then */
	bool ack_now, kick;
	uint8_t *held; /* whole replies without room in the CQ */
	uint32_t held_len, held_room;
	uint64_t rseq_in; /* last reply received: published or held */

	/* Direct mode: the program's waiter. */
	uint32_t latched; /* atomic: a kick not yet taken by a wait; also the futex */
	uint32_t waiter;  /* atomic: enum waiter_kind */
	unsigned quick;	  /* kicks without a wait between */
	bool bursts;	  /* between the two waits before there were many records */
	uint32_t thick;	  /* atomic: since the last wait, many went in one frame */
};

enum waiter_kind { WAITER_NONE, WAITER_FUTEX, WAITER_POLL };

/* Hints of blocks that the server keeps. */
struct known {
	uint64_t *hint; /* by rgpu_hint_place(), a free place further where it is taken; 0: free */
	uint64_t key;
	uint32_t n, size;
};

struct rgpu_relay {
	const struct rgpu_relay_ops *ops;
	void *arg;
	struct rgpu_addr server;
	int event_fd, poke_fd, rx_fd; /* kicks; wakes the thread; wakes the program's thread that receives */
	pthread_t thread;
	bool running;

	/* Who holds it may use everything below that is not marked atomic. */
	pthread_mutex_t lock;
	uint32_t again;	   /* atomic: somebody who did not get the lock wants a round of pump() */
	uint32_t poked;	   /* atomic: somebody woke the thread, which has not seen it yet */
	uint32_t sleeping; /* atomic: the thread is about to poll or polls */
	uint32_t stop;	   /* atomic */
	uint32_t receiver; /* atomic: program's threads that wait; the first of them receives */
	uint32_t receives; /* atomic: one of them polls the link */
	uint32_t waits;	   /* atomic: waits begun */
	uint32_t over;	   /* atomic: failed or gone */
	int fd;		   /* atomic: the link's socket, for rgpu_relay_forked() */

	struct rgpu_link *link;
	struct rgpu_lease lease;
	int64_t lost_at;       /* when the link was lost, 0 while it is there */
	int backoff_ms;	       /* of the next pause between tries; 0: there was no try yet */
	uint64_t recovered_at; /* bytes received when the last one succeeded */
	int failed;	       /* negative errno, told by failed() once the lock is dropped */
	bool told, gone, inline_only;
	char why[RGPU_WHY_MAX];

	struct chan *chan[RGPU_CHANNELS_MAX];
	unsigned nchan; /* slots below may be used */
	struct relay_bo *bo[BO_BUCKETS];
	unsigned nbo;

	/* Out: staged small frames, and at most one piece of bulk, which belongs at bulk_at of the stage. */
	uint8_t *stage;
	uint32_t stage_at, stage_len;
	const uint8_t *bulk;
	uint32_t bulk_len, bulk_at;
	struct relay_bo *bulk_bo; /* NULL: no bulk */
	unsigned turn;		  /* whose payload goes next */
	bool cached;		  /* the server keeps blocks, on this connection */
	uint32_t hashed;	  /* bytes named instead of sent, in this round */
	uint64_t name_after;	  /* sent_bytes from which on blocks are named again */
	unsigned in_vain;	  /* blocks named that were gone, on this connection */
	struct known known;
	struct rgpu_packer pack;
	bool ack_lazy;	  /* some channel has something to acknowledge, not urgently */
	bool poll_credit; /* some channel waits for the program to read its CQ: look again soon */
	bool blocked;	  /* the socket took no more */

	/* In: a buffer of frames, or bytes on their way into a buffer object. */
	uint8_t *rx;
	uint32_t rx_at, rx_len;
	uint8_t *data; /* NULL: throw away */
	uint32_t data_left;
	struct relay_bo *data_bo;

	/* How far ahead of the server it pays to send, from the time between a record and the word that it is there. */
	struct {
		struct chan *chan; /* NULL: no record is timed */
		uint64_t seq, sent, received;
		int64_t at;
	} timed;
	int64_t rtt;	/* ns, the least on this connection; 0 none yet */
	uint64_t ahead; /* bytes */

	int64_t heard_at, pinged_at; /* pinged_at 0: no ping is out */
	int64_t swept_at;
	int64_t spin_ns; /* written by the thread; atomic */
	/* Of the program's thread that receives, where the server is on this machine. */
	struct {
		bool may;
		struct rgpu_apart apart;
		int64_t ns;
	} near;
	struct rgpu_relay_counters count;
};

/* relay.c */
/* Ends the session; the reason is told when the lock is dropped. Returns @reason. */
int relay_fail(struct rgpu_relay *r, int reason, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The link is unusable: a reconnect follows. Returns -ENOTCONN. */
int relay_lost(struct rgpu_relay *r, const char *why);
/* One round both ways. Whether anything moved. */
bool relay_pump(struct rgpu_relay *r);
/* Drops the lock, and does what may only be done without it. Whether another round is wanted. */
bool relay_unlock(struct rgpu_relay *r);
void relay_poke(struct rgpu_relay *r);

/* relay_inline.c: program's threads that wait */
void relay_wake_waiter(struct rgpu_relay *r, struct chan *c);
void relay_wake_receiver(struct rgpu_relay *r);
void relay_wake_all(struct rgpu_relay *r);

/* relay_chan.c: channels and buffer objects */
struct chan *relay_chan(struct rgpu_relay *r, uint32_t id); /* NULL: not known (yet) */
int relay_chan_open(struct rgpu_relay *r, uint32_t id);	    /* -ENOENT: no such channel */
/* Ends one that the program has destroyed, if all that it has published is at the server. */
void relay_chan_end(struct rgpu_relay *r, struct chan *c);
/* Looks for destroyed ones among those that were kicked and have nothing to send. */
void relay_chan_look(struct rgpu_relay *r);
void relay_chan_free_all(struct rgpu_relay *r);
struct relay_bo *relay_bo_get(struct rgpu_relay *r, uint32_t handle); /* NULL: none; adds a user */
void relay_bo_put(struct rgpu_relay *r, struct relay_bo *bo);
void relay_bo_sweep(struct rgpu_relay *r, bool all);
int relay_kicks(struct rgpu_relay *r); /* collects kicks: opens new channels, closes dead ones */

/* relay_tx.c: records, payload and acknowledgements to the server */
bool relay_tx(struct rgpu_relay *r);
void relay_tx_reset(struct rgpu_relay *r); /* the connection is new: nothing of the old one goes on */
int relay_tx_skip(struct rgpu_relay *r, struct chan *c, uint64_t received); /* after ATTACHED */
int relay_tx_granted(struct rgpu_relay *r, struct chan *c, uint64_t received, uint64_t allow);
bool relay_tx_work(const struct rgpu_relay *r); /* the rings have something new */
bool relay_stage(struct rgpu_relay *r, uint16_t type, uint32_t channel, const void *payload, uint32_t len);

/* relay_rx.c: grants, data and replies from the server */
bool relay_rx(struct rgpu_relay *r);
void relay_rx_reset(struct rgpu_relay *r);
void relay_rx_drop(struct rgpu_relay *r, const struct relay_bo *bo); /* the rest of what comes for it is thrown away */
void relay_rx_drain(struct rgpu_relay *r);			     /* held replies, credit */
void relay_publish_recover(struct chan *c);

/* relay_ahead.c: how much to have on its way */
void relay_ahead_sent(struct rgpu_relay *r, struct chan *c);		   /* c->seq will be told of at once */
void relay_ahead_told(struct rgpu_relay *r, struct chan *c, uint64_t seq); /* … and was */
void relay_ahead_reset(struct rgpu_relay *r);

/* relay_known.c: blocks that the server keeps */
int relay_known_told(struct rgpu_relay *r, uint16_t flags, const uint8_t *buf, uint32_t len);
void relay_known_clear(struct rgpu_relay *r);
/* Whether the server has these bytes: then they are named by @out. */
bool relay_known_ref(struct rgpu_relay *r, const uint8_t *bytes, uint32_t len, struct rgpu_ref *out);
int relay_needed(struct rgpu_relay *r, struct chan *c, const uint8_t *buf, uint32_t len); /* NEED came */
bool relay_rewind(struct rgpu_relay *r, struct chan *c); /* answers it; false: no room for that yet */

/* relay_conn.c: connecting, attaching */
int relay_connect(struct rgpu_relay *r, const struct rgpu_lease *lease, struct rgpu_link **out, char why[RGPU_WHY_MAX]);
int relay_attach(struct rgpu_relay *r, struct rgpu_link *link, char why[RGPU_WHY_MAX]);

/* Kill points between the stores that must survive any death; the tests' build calls a hook there. */
#ifdef RGPU_KILL_POINTS
extern void (*relay_kill_point)(const char *where);
#define KILL_POINT(where) (relay_kill_point ? relay_kill_point(where) : (void)0)
#else
#define KILL_POINT(where) ((void)0)
#endif

#endif
