/* SPDX-License-Identifier: MIT */
/* The state of an interprocess event: a page that the processes which have the event share. */
#ifndef SOFTGPU_SHAREDEVENT_H
#define SOFTGPU_SHAREDEVENT_H

#include "softgpu/softgpu.h"

struct shared_event;

struct shared_event *shared_event_new(int device); /* NULL: none, and the log says why */
/* Another process's event, and the device that it is of. NULL: the handle names no living one. */
struct shared_event *shared_event_open(const CUipcEventHandle *handle, int *device);
void shared_event_free(struct shared_event *e); /* may be NULL */
void shared_event_handle(const struct shared_event *e, CUipcEventHandle *out);
bool shared_event_is_ours(const CUipcEventHandle *handle); /* this process made it */

/* A recording begins, which is the event's latest from now on: its number. Blocks while RECORDS of them have not ended. */
uint64_t shared_event_begin(struct shared_event *e);
void shared_event_end(struct shared_event *e, uint64_t n); /* its place in the stream was reached, or never will be */
uint64_t shared_event_last(struct shared_event *e);	   /* 0: never recorded */
/* Also true when the process that recorded it is gone. */
bool shared_event_reached(struct shared_event *e, uint64_t n);

#endif
