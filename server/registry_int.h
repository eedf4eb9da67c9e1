/* SPDX-License-Identifier: MIT */
/* What the registry's own files share. */
#ifndef RGPU_SERVER_REGISTRY_INT_H
#define RGPU_SERVER_REGISTRY_INT_H

#include "server/registry.h"

void registry_hex(char out[33], const uint8_t sid[RGPU_SID_LEN]);
int64_t registry_seconds(void); /* CLOCK_BOOTTIME, as wmsg_ident.started */

/*
 * One request and its answer, in @m. The session's lock is held. 0, a negative errno that the worker said, -ESTALE
 * when it is gone, -ETIMEDOUT; with a line in @why.
 */
int registry_ask(struct ses *s, struct wmsg *m, int timeout_ms, char why[RGPU_WHY_MAX]);
#define REGISTRY_ANSWER_MS 10000

/* Asks every live session's worker for its statistics, and visits those that answer, with the session's lock held, until one says
 * not 0. That, or -ENOMEM. */
int registry_each(struct registry *r, int (*visit)(void *arg, struct ses *s, const struct wmsg *m), void *arg);

/* Of each device the share of the last moments in which it worked, per cent, as TELEMETRY has it; RGPU_TELEMETRY_NONE: not known.
 */
void registry_busy(struct registry *r, uint32_t busy[DEVICES_MAX]);

/* Tells its worker how the link is to be, with a way to the store. The session's lock is held, or nobody else has it. */
void registry_tell_link(struct registry *r, struct ses *s);

struct ses *registry_new(const struct registry *r, const uint8_t sid[RGPU_SID_LEN]); /* two references; not listed yet */
void registry_list(struct registry *r, struct ses *s);				     /* takes one */

/* Takes it off the list, and its token away: true for the one who did, who then has the list's reference. */
bool registry_unlist(struct registry *r, struct ses *s);

/* Its place in the account of memory, for the first who takes it. registry.lock is held, or nobody else is there yet. */
void registry_take_slot(struct registry *r, struct ses *s, unsigned slot);
/* No worker of its takes memory any more. */
void registry_drop_slot(struct registry *r, struct ses *s);

/* The session's lock, if it can be had soon: somebody else may be talking to its worker for long. */
bool registry_lock_within(struct ses *s, int ms);

/* Why one that is off the list ended, for clients that ask after it. */
void registry_remember(struct registry *r, const struct ses *s, const char *text);

/* The session that the asker started, with its lock held and a reference. Else -ESTALE or -EACCES, and *out is NULL. */
int registry_owned(struct registry *r, const struct asker *a, const uint8_t sid[RGPU_SID_LEN], struct ses **out,
		   char why[RGPU_WHY_MAX]);

/* The worker hung up or has to go: nothing of it is left afterwards. Only by the one who unlisted it, whose reference goes. */
void registry_bury(struct registry *r, struct ses *s);

#endif
