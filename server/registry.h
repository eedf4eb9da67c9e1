/* SPDX-License-Identifier: MIT */
/* The listener's view of the sessions: their workers, who may speak for them, and what became of those that are gone. */
#ifndef RGPU_SERVER_REGISTRY_H
#define RGPU_SERVER_REGISTRY_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "lib/link.h"
#include "server/devices.h"
#include "server/opts.h"
#include "server/quota.h"
#include "server/store.h"
#include "server/usage.h"
#include "server/wmsg.h"

#define TOMBSTONES 256

struct ses {
	struct ses *next;
	_Atomic unsigned refs; /* the registry, and who uses it */
	uint8_t sid[RGPU_SID_LEN];
	char path[108]; /* the worker's socket */
	bool child;	/* we started it: we wait for it */

	pthread_mutex_t lock; /* one talks to the worker at a time; of everything below. Taken before registry.lock. */
	enum { SES_NEW, SES_LIVE, SES_OVER } state;
	struct wmsg_ident ident;
	_Atomic int sock; /* set once, closed with the last reference, so that it may be used without the lock */
	int pidfd;	  /* of the worker, −1 none: the sockets of one that died may be a child's still. As sock. */
	uint32_t asked;	  /* id of the last request */
	bool gone_said, hung_up;
	struct usage usage;
	struct wmsg gone; /* the worker's last word */

	/* registry.lock */
	char client[CLIENT_NAME_MAX];
	enum proof proof;
	struct rgpu_cert_id cert;
	unsigned slot; /* of the account of memory, until it is buried */
	bool open;     /* its worker answers: not one that is being made */
	uint8_t token[16];
	int64_t token_until; /* 0: there is none */
	uint32_t token_lease;
	uint8_t psk[RGPU_KEY_LEN];
};

struct tombstone {
	uint8_t sid[RGPU_SID_LEN];
	bool dying; /* off the list, and not buried yet: why it ended is not known */
	char text[252];
};

struct registry {
	const struct server_opts *opts;
	const struct devices *devices;
	char state_dir[STATE_DIR_MAX];
	struct quota *quota;
	unsigned *slot_users; /* of each slot of it; lock */
	struct store *store;  /* NULL: nothing is kept */
	unsigned slots;	      /* for new sessions */
	unsigned most;	      /* sessions at once: max_sessions, or those of an earlier server that let in more */
	int wake_fd;	      /* eventfd: the set of sessions changed */
	pthread_mutex_t lock; /* of the list, tokens and tombstones; a leaf */
	struct ses *list;
	unsigned n;
	bool closing;
	struct tombstone dead[TOMBSTONES]; /* a ring */
	unsigned ndead;
	pthread_cond_t buried; /* one of them is not dying any more */
};

/* The one who asks: who the control connection was made by. */
struct asker {
	char key_id[CLIENT_NAME_MAX]; /* its key's id, or its certificate's name */
	enum proof proof;
	struct rgpu_cert_id cert;
	char from[64];
	struct rgpu_link *link; /* for the data connection's key */
};

void registry_init(struct registry *r, const struct server_opts *o, const struct devices *d, const char *state_dir, int wake_fd);

/* Finds the workers that an earlier listener left in the state directory. */
void registry_adopt(struct registry *r);

/*
 * Requests of a control connection. 0, or a negative errno with a line in @why.
 * start: makes the session, or takes it up again when it is there. @resume: it must be there.
 */
int registry_start(struct registry *r, const struct asker *a, const struct rgpu_start *s, const void *data, bool resume,
		   struct rgpu_started *out, char why[RGPU_WHY_MAX]);
int registry_join(struct registry *r, const struct asker *a, const struct rgpu_join *j, char why[RGPU_WHY_MAX]);
int registry_end(struct registry *r, const struct asker *a, const uint8_t sid[RGPU_SID_LEN], char why[RGPU_WHY_MAX]);
/* A STATS_LIST's payload for the asker, malloc'ed; without one, of all sessions. Its length, or -ENOMEM. */
ssize_t registry_stats(struct registry *r, const struct asker *a, uint8_t **out);

/* What management libraries ask. A TELEMETRY_LIST's payload, malloc'ed: its length, or -ENOMEM, -ENODEV, -EINVAL. */
ssize_t registry_telemetry(struct registry *r, const struct asker *a, const struct rgpu_telemetry_ask *ask, uint8_t **out);

/* A data connection's preface came: to the worker with the socket, which is closed here in any case. */
void registry_redeem(struct registry *r, const struct rgpu_preface *p, int fd);

/* For the listener's poll: sessions with their references taken, at most @room; unref them afterwards. In @p, unless NULL, two
 * for each: any event of either is its worker's end. */
unsigned registry_watch(struct registry *r, struct pollfd *p, struct ses **s, unsigned room);
void registry_put(struct ses *s);
/* Its worker hung up. */
void registry_gone(struct registry *r, struct ses *s);

/* No session is started any more; how many there are. */
unsigned registry_close(struct registry *r);

/* Ends the sessions of those clients that @refuses has a reason against (@cert NULL: they have a key): what they had is not taken
 * any more. */
void registry_revoke(struct registry *r, const char *(*refuses)(void *arg, const char *client, const struct rgpu_cert_id *cert),
		     void *arg);

/* For the log, before a client's name: what it is the name of. */
static inline const char *registry_proof(enum proof p)
{
	return p == PROOF_CERT ? "certificate" : p == PROOF_KEY ? "key" : "client";
}

/* Ends all: their clients hear @text. Returns when every worker is gone. */
void registry_end_all(struct registry *r, int err, const char *text);

#endif
