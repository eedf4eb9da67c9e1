/* SPDX-License-Identifier: MIT */
/* The control connection to a server: who we are, what devices it has, starting, resuming and ending sessions. */
#ifndef RGPU_PROXY_CONTROL_H
#define RGPU_PROXY_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rgpu_wire.h>
#include "lib/addr.h"
#include "lib/auth.h"
#include "lib/why.h"

/*
 * A control object outlives its connections: a request connects when there is none, and is repeated a few times when
 * the connection broke under it, which is safe because every request is idempotent under its sid. All functions
 * are thread-safe; requests go one after the other. They return 0 or a negative errno and then say why:
 * -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH, -ECONNRESET the server is not reached; -EACCES wrong key or certificate; -EPROTO
 * versions differ or nonsense came; else what the server's ERROR frame said.
 */
struct rgpu_ctl;

/* @agent names us in the server's log. No connection is made yet. A certificate of @auth is used until the end. NULL: no memory.
 */
struct rgpu_ctl *rgpu_ctl_new(const struct rgpu_addr *server, const struct rgpu_auth *auth, const char *agent);
void rgpu_ctl_free(struct rgpu_ctl *c);

/* Connects and greets when that has not been done. Fills @out when not NULL. */
int rgpu_ctl_hello(struct rgpu_ctl *c, struct rgpu_welcome *out, char why[RGPU_WHY_MAX]);

struct rgpu_devices {
	unsigned n;
	const struct rgpu_device_entry **entry; /* each followed by its props_len bytes */
	void *memory;
};
int rgpu_ctl_devices(struct rgpu_ctl *c, struct rgpu_devices *out, char why[RGPU_WHY_MAX]);
void rgpu_devices_free(struct rgpu_devices *d);

/* What one data connection needs: the lease, a token for its preface and the key of its handshake. */
struct rgpu_lease {
	uint8_t sid[16];
	uint32_t lease;
	uint32_t grace_ms;
	uint8_t token[16];
	uint8_t key[RGPU_KEY_LEN];
	bool plain; /* no handshake: as the control connection is */
};

/* START, or RESUME. @data: start->data_len bytes. -ENOENT on resume: the server gave the session up. */
int rgpu_ctl_start(struct rgpu_ctl *c, bool resume, const struct rgpu_start *start, const void *data, struct rgpu_lease *out,
		   char why[RGPU_WHY_MAX]);
int rgpu_ctl_join(struct rgpu_ctl *c, const uint8_t sid[16], uint32_t device, uint32_t index, char why[RGPU_WHY_MAX]);
int rgpu_ctl_end(struct rgpu_ctl *c, const uint8_t sid[16], char why[RGPU_WHY_MAX]);

/* STATS_LIST's payload. Returns its bytes; -EMSGSIZE when @room is too small. */
ssize_t rgpu_ctl_stats(struct rgpu_ctl *c, void *buf, size_t room, char why[RGPU_WHY_MAX]);

/*
 * TELEMETRY: an answer's payload, or, for RGPU_TELEMETRY_LINK, what is known here: a few pings are measured for it. Returns its
 * bytes; -EOPNOTSUPP: the server is of an older release.
 */
ssize_t rgpu_ctl_telemetry(struct rgpu_ctl *c, const struct rgpu_telemetry_ask *ask, void *buf, size_t room,
			   char why[RGPU_WHY_MAX]);

/*
 * Whether an error says that the server could not be reached or the way to it broke, so that trying again may help. Anything else
 * was the server's answer, or is wrong for good.
 */
bool rgpu_ctl_retryable(int err);

/* The connection's socket, −1 when there is none. Readable while no request runs: it ended (rgpu_ctl_drop() it). */
int rgpu_ctl_fd(struct rgpu_ctl *c);
void rgpu_ctl_drop(struct rgpu_ctl *c);

/* In the child of a fork: closes the socket, so that the parent's end is seen by the server. Async-signal-safe, takes no lock. */
void rgpu_ctl_forked(struct rgpu_ctl *c);

#endif
