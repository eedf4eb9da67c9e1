/* SPDX-License-Identifier: MIT */
/* Places in shared memory where the server says, unasked, that an event or what a stream was given has completed. */
#ifndef RGPU_SHIM_WATCH_H
#define RGPU_SHIM_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "shim/call.h"
#include "shim/lane.h"
#include "shim/session.h"

/*
 * Law 5. A question that was answered "not ready" is asked once more, quietly: the server keeps it, and writes its number into
 * the place that came with it when the answer is another. From then on the program's questions look there. That number comes the
 * way of an asynchronous copy, so it is there before the reply of any wait that saw the work done.
 */
enum watch_state {
	WATCH_NONE,  /* ask */
	WATCH_QUIET, /* not ready */
	WATCH_DONE,  /* ready */
	WATCH_ASK,   /* it changed, and not to ready */
};

/*
 * Sends the record @op (EVENT_WATCH, STREAM_WATCH, MEMORY_WATCH) of the call's context. The watch is the number of its place; 0:
 * every place is taken, or nothing was sent. It belongs to its caller: no two threads may look at one at a time.
 */
uint64_t watch_begin(const struct rgpu_call *from, uint16_t op, uint64_t handle);
/* What the place says; anything but QUIET ends the watch. */
enum watch_state watch_look(uint64_t *watch);
/*
 * Until the watch that lies in @place is answered, or another lies there. false: its answer does not come over this lane, whose
 * thread would not wake.
 */
bool watch_wait(const uint64_t *place, uint64_t watch, struct rgpu_lane *l, int *r);
/* Nobody looks any more. */
void watch_end(uint64_t *watch);

/*
 * event.c: what was known of the event is not true any more, since it is about to be recorded, was recorded or is gone. Returns
 * the number of this change. Whoever records events otherwise than by cuEventRecord says so before and after.
 */
uint64_t event_forget(struct rgpu_obj *event);
bool event_was_recorded(const struct rgpu_obj *event); /* ever */

/* stream.c: it is gone. */
void stream_forget(struct rgpu_obj *stream);

#endif
