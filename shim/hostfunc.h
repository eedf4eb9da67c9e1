/* SPDX-License-Identifier: MIT */
/* Functions of the program that a stream or a graph calls: one thread of ours runs them, in the order in which they come due. */
#ifndef RGPU_SHIM_HOSTFUNC_H
#define RGPU_SHIM_HOSTFUNC_H

#include <stdbool.h>
#include <stdint.h>
#include "shim/copy.h"
#include "shim/cuda_api.h"
#include "shim/session.h"

struct hostfunc {
	CUhostFn fn;		   /* or, when NULL: */
	CUstreamCallback callback; /* is called with what the program knows the stream by, and the stream's status */
	CUstream stream;
	void *data;
	/* Or no function: these bytes are what the server asks for. */
	const void *src;
	uint64_t bytes;
	/* Or one of ours, with @data: the bytes of a copy have come, or never will. It does not block. */
	void (*land)(void *data, bool came);
	void (*before)(void *arg); /* called before fn, by the same thread; may be NULL */
	void *arg;
	struct rgpu_obj *context; /* of the stream that calls it */
	uint64_t stamp;		  /* what comes before it has a lower one; 0: that is not known */
	bool once;		  /* forgotten when it is called */
};

/* A name for the server. A CUresult. */
int hostfunc_new(const struct hostfunc *f, uint64_t *id);
void hostfunc_free(uint64_t id);
bool hostfunc_free_idle(uint64_t id); /* unless calls are expected: false */

/* Said before the record that makes the server call it: the thread is there then, and listens. A CUresult. */
int hostfunc_expect(struct rgpu_session *s, uint64_t id);
void hostfunc_unexpect(uint64_t id); /* that record was not sent */
/* The two at once, for a function of the call's context that is called once; and back. */
int hostfunc_announce(struct rgpu_call *c, const struct hostfunc *f, uint64_t *id);
void hostfunc_withdraw(uint64_t id);
/* Whether some function may not have returned yet: what it writes, a later copy reads. */
bool hostfunc_outstanding(void);
/* What has not been called by now in a context that is gone is not called any more. */
void hostfunc_drop_context(struct rgpu_obj *context);

/* An asynchronous copy, to memory or a whole box, whose source is read when the stream comes to it. A CUresult. */
int hostfunc_copy(struct rgpu_call *c, struct remote dst, const void *src, uint64_t bytes, uint64_t stream);

#endif
