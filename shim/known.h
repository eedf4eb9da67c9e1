/* SPDX-License-Identifier: MIT */
/* What this end knows, without asking, of how far streams have come. */
#ifndef RGPU_SHIM_KNOWN_H
#define RGPU_SHIM_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "shim/call.h"
#include "shim/tally.h"

/*
 * Law 5. A stream's position is a stamp: of the last record that gave it work, and up to which a wait has seen it done. What a
 * wait saw of other streams (events, the legacy stream's order) is not followed: when one has ended that may have covered the
 * work, the server is asked. When none has, nobody here can know it done, and a program that asks may be told "not ready" while
 * a watch (watch.h) brings the news.
 */
struct known;

struct known_point {
	struct known *k;
	uint64_t stamp, fences;
};

struct known {
	struct tally last;	 /* of the last record that gave it work */
	_Atomic uint64_t fences; /* calls that gave it work and have no stamp, counted */
	_Atomic uint64_t when;	 /* the last work was given: ticks of the processor's clock, */
	_Atomic uint64_t timed;	 /* looked at with the record of this stamp */
	/* Under a lock of known.c: */
	uint64_t idle;	  /* all up to this stamp is done */
	uint64_t settled; /* of the fences */
	uint64_t asked;	  /* the last that was answered "not ready"; 0: it was ready */
	bool once;	  /* the program gave up on that, and gave other work: it does not poll */
	uint64_t watch;
	struct known_point watched;
	struct known *next; /* free */
};

/* A made stream's; NULL: no memory. Such memory is never given back to the system, so who is late finds another stream's. */
struct known *known_new(void);
void known_free(struct known *k, struct rgpu_obj *context);
void known_forget(struct known *k); /* its context is gone, or it was another stream's: nothing is known */

/* The stream that the call's record gives work, by its wire name; rgpu_capture() says so for all who ask it. */
static inline void known_gives(struct rgpu_call *c, uint64_t stream)
{
	c->gives = stream + 1;
}
/* call.c: the record is published. */
void known_given(struct rgpu_call *c);

/* A wait: where the stream is when it begins, and that it has ended. */
struct known_point known_point(const struct rgpu_call *c, uint64_t stream);
void known_reached(const struct known_point *p);
/* Everything that the call's context was given up to @stamp is done. */
void known_context(struct rgpu_obj *context, uint64_t stamp);
/* Work up to @stamp may have been seen done, in whatever stream. */
void known_waited(struct rgpu_session *s, uint64_t stamp);

enum known_state {
	KNOWN_DONE,
	KNOWN_BUSY, /* and the news will come */
	KNOWN_ASK,
	KNOWN_WATCH, /* not done as far as anybody can know; nobody watches it yet */
};
enum known_state known_look(const struct rgpu_call *c, const struct known_point *now);
/* A watch that began after @p was taken; 0 ends the one there is. */
void known_watch(const struct known_point *p, uint64_t watch);

/* The same for what an event recorded; the stream is none when another thread's record came between. */
struct known_mark {
	uint64_t stamp, stream, when; /* stamp 0: nothing is known of it */
};
/* After its record was sent. */
struct known_mark known_mark(const struct rgpu_call *c, uint64_t stream);
enum known_state known_mark_look(const struct rgpu_call *c, const struct known_mark *m);
void known_mark_done(const struct rgpu_call *c, const struct known_mark *m);

#endif
