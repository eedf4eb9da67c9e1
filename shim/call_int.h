/* SPDX-License-Identifier: MIT */
/* Calls of more than one record, or with several fences in flight: for libcuda's own copies and loads. */
#ifndef RGPU_SHIM_CALL_INT_H
#define RGPU_SHIM_CALL_INT_H

#include "shim/call.h"
#include "shim/lane.h"

/* After rgpu_begin(). Publish and return the record's seq; a call's last quiet record is its @place. */
uint64_t call_publish(struct rgpu_call *c, bool place);
/* A quiet record that is not the call's last. */
void call_part(struct rgpu_call *c);
/* A fence that is waited for later; f->out and f->room are set. */
void call_expect(struct rgpu_call *c, struct fence *f);
int call_wait(struct rgpu_call *c, struct fence *f);

#endif
