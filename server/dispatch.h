/* SPDX-License-Identifier: MIT */
/* Where the worker's lanes meet the API code: one call as a lane hands it over, and what may be asked of the lane. */
#ifndef RGPU_SERVER_DISPATCH_H
#define RGPU_SERVER_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rgpu_wire.h>

struct srv_lane;    /* a channel's thread in the worker */
struct srv_session; /* handle tables, window, driver table: server/session.h, owned by the API code */

/*
 * A lane runs its records one after the other, each when every stamp ≤ rec.after has run. The function
 * for rec.op gets this. The bytes are a private copy; lengths of header and segments are checked, the
 * body is not: the function believes nothing in it.
 */
struct srv_call {
	struct srv_lane *lane;
	struct srv_session *session;
	struct rgpu_rec rec;
	const struct rgpu_seg *seg; /* rec.nseg of them */
	const uint8_t *body;
	uint32_t body_len;
	const uint8_t *payload; /* SEND bytes, the segments one after the other */
	uint64_t payload_len;
	uint64_t recv_len; /* sum over RECV segments */

	/* The answer. status is in the library's enum. out has room for SRV_OUT_MAX bytes. */
	int32_t status;
	uint8_t *out;
	uint32_t out_len;

	/*
	 * Bytes for the RECV segments: srv_recv_buffer() gives memory of recv_len bytes that lives until
	 * the client has acknowledged the reply. recv_used of them are sent.
	 */
	uint8_t *recv;
	uint64_t recv_used;

	/*
	 * Set by the function when the answer is not known yet, or when payload, body or recv are still in
	 * use by the driver on return: ready(c) is then asked, from any thread but one at a time, until it
	 * gives something else than SRV_PENDING, a status. The lane goes on meanwhile, and the record counts
	 * as run for everybody's `after`: that is how a wait (cuStreamSynchronize) holds nobody else up. A
	 * reply that was ready before a later fence of any lane was answered is sent before that fence's
	 * reply, so "the stream is done" always finds its bytes in place.
	 *
	 * @c keeps its address, and body, payload, out and recv stay as they are. From the return on, c->out
	 * has room for the out_len bytes that were said, which ready() may write again; so may it recv_used.
	 * After a status ready() is not called again and @c is gone. At the end of a session it is asked to
	 * its end, too: that is where ready_arg is freed.
	 */
	int32_t (*ready)(struct srv_call *c);
	void *ready_arg;
	/*
	 * A quiet record whose answer says that work has ended: no bytes that were ready before may come after it, as with a
	 * fence's. Set before the function returns.
	 */
	bool tells;
	bool told;  /* with ready: who has the answer says so by srv_look_again(), so nobody asks now and then */
	bool own;   /* with ready: only the lane's own thread asks, for what the driver knows by thread */
	bool renew; /* the lane goes on in another thread: what the driver keeps by thread is gone */
};

#define SRV_OUT_MAX (RGPU_REP_MAX - sizeof(struct rgpu_rep))
#define SRV_PENDING INT32_MIN

typedef void (*srv_fn)(struct srv_call *c);

/* NULL for an id that no table has: the lane answers NOT_SUPPORTED in the library's enum. Generated. */
srv_fn srv_find(uint16_t op);
const char *srv_op_name(uint16_t op);
int32_t srv_not_supported(uint16_t op);

/* ready() of some deferred call may have an answer now: they are asked soon. Any thread; takes a leaf's lock only. */
struct worker;
struct worker *srv_worker(const struct srv_call *c);
void srv_look_again(struct worker *w);

/* Around a call of the driver in which the lane's thread waits for devices: it is not at work meanwhile. */
void srv_blocks(struct srv_call *c, bool begin);

uint8_t *srv_recv_buffer(struct srv_call *c); /* NULL: no memory */

/* Per-lane and per-session hooks, called by the worker. */
struct srv_lane_state; /* current context …: owned by the API code */
int srv_session_open(struct srv_session **out, const struct rgpu_start *start, const void *data, uint32_t data_len, char *why,
		     size_t why_size);
int srv_session_join(struct srv_session *s, uint32_t device); /* index in DEVICE_LIST */
void srv_session_close(struct srv_session *s);
struct srv_lane_state *srv_lane_open(struct srv_session *s);
void srv_lane_close(struct srv_session *s, struct srv_lane_state *l);
struct srv_lane_state *srv_lane_state(struct srv_lane *l); /* implemented by the worker */

/* The driver: loaded once, in the worker after fork, and in a short-lived child of the listener that reads the devices'
 * properties. */
int srv_driver_load(const char *lib, const char *blas_lib, char *why, size_t why_size);
int srv_driver_devices(void *buf, size_t room, uint32_t *driver_version, char *name,
		       size_t name_size); /* DEVICE_LIST payload; bytes or -errno */
/* Used memory of this session on its i-th device, bytes; for stats. */
uint64_t srv_session_mem(struct srv_session *s, unsigned i);

#endif
