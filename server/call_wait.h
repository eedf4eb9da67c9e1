/* SPDX-License-Identifier: MIT */
/* Answers a call when a stream has come to where it is now. */
#ifndef RGPU_SERVER_CALL_WAIT_H
#define RGPU_SERVER_CALL_WAIT_H

#include "server/session.h"

/*
 * On the lane's own thread, its context current. The call is answered when all that @stream was given has run, at once if
 * it has; @done, unless NULL, is called then and may write c->out; @arg is wait_arg(c) there. A failure that is the call's status
 * already stays its answer: its buffers may be in use all the same.
 */
void wait_for_stream(struct srv_call *c, struct srv_ctx *x, CUstream stream, void (*done)(struct srv_call *c, int32_t status),
		     void *arg);

/* Whether the event has completed: SRV_PENDING, or its status. One that is gone holds nobody. */
int32_t wait_ask_event(struct srv_call *c, uint64_t event);
void *wait_arg(struct srv_call *c);
struct srv_ctx *wait_context(struct srv_call *c); /* there, too */

#endif
