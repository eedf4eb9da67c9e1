/* SPDX-License-Identifier: MIT */
/* A session as the proxy has it: the kernel's session fd behind a relay, and the table of all of them. */
#ifndef RGPU_PROXY_SESSION_H
#define RGPU_PROXY_SESSION_H

#include "usermode-proxy/kern.h"
#include "usermode-proxy/pool.h"
#include "usermode-proxy/relay.h"

/*
 * What the kernel keeps for our successor. Append-only: the successor may be a newer proxy; an older one takes what it knows.
 */
#define SESSION_COOKIE_MAGIC 0x43504752u /* "RGPC" */
#define SESSION_OBSERVER     1u		 /* asks control requests only: nothing at the server stands behind it */

struct session_cookie {
	uint32_t magic;
	uint32_t flags;
	uint32_t device;   /* index in DEVICE_LIST */
	uint32_t grace_ms; /* how long the server keeps the session without us */
};

struct session {
	struct session *next;
	uint64_t id;
	int fd; /* the session fd */
	struct session_cookie cookie;
	struct rgpu_start start;  /* for RESUME */
	struct rgpu_relay *relay; /* NULL: an observer */
	struct pool *pool;
	int64_t down_at; /* when its connection was lost, 0: it has one; atomic */
};

/*
 * Takes the session's fd from the kernel and sets up its relay, not yet attached. NULL and *@err, with @why. The table has
 * it from session_add() until session_take().
 */
struct session *session_new(int ctl_fd, uint64_t id, const struct session_cookie *cookie, const struct rgpu_start *start,
			    const struct rgpu_addr *server, struct pool *pool, int *err, char why[RGPU_WHY_MAX]);
void session_add(struct session *s);
uint64_t session_id(const uint8_t sid[RGPU_SID_LEN]); /* the kernel's name; 0: it is not in the table */
struct session *session_take(uint64_t id);	      /* out of the table; NULL: there is none */
/* @fn looks at each in the table, which is locked meanwhile. */
void session_each(void (*fn)(const struct session *s, void *arg), void *arg);

/* Ends the relay (it may take seconds), and unmaps and closes all. @bye: tells the worker that the session is over. */
void session_free(struct session *s, bool bye);

/* Tells the kernel. reason: 0 LIVE, else FAILED. */
struct rgpu_telemetry_uploads;
/* Of all sessions that there are and were. */
void session_uploads(struct rgpu_telemetry_uploads *out);

/* How the links of sessions that are made from now on are compressed. */
void session_compress(enum rgpu_pack_mode mode);

void session_set(struct session *s, int reason);

#endif
