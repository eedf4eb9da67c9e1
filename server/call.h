/* SPDX-License-Identifier: MIT */
/* What a record's function needs: bounds of its body, handles, contexts, ranges. All of them set the status when they refuse. */
#ifndef RGPU_SERVER_CALL_H
#define RGPU_SERVER_CALL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include "rgpu_ops.h"
#include "server/dispatch.h"

/* @cu in the enum of the call's library. */
void srv_fail(struct srv_call *c, CUresult cu);

/* The fixed part of the body, copied; false: the record is too short. */
bool srv_body(struct srv_call *c, void *out, uint32_t size);
/* The next blob behind it: *at moves on, to a multiple of 8. NULL: not there. */
const void *srv_bytes(struct srv_call *c, uint32_t *at, uint64_t len);
const char *srv_string(struct srv_call *c, uint32_t *at, uint64_t len); /* … that ends with its only NUL */

/* Makes the context current on this thread; 0 is refused. */
bool srv_enter(struct srv_call *c, uint64_t ctx);

/* A living handle of this kind, as the driver calls it. Streams 0, 1 and 2 are themselves. */
bool srv_use(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void **real);
/* A handle that the client minted and that is free. */
bool srv_fresh(struct srv_call *c, enum rgpu_kind kind, uint64_t handle);
void srv_put(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void *real, uint64_t ctx);
/* Like srv_use, and the handle is dead. */
bool srv_take(struct srv_call *c, enum rgpu_kind kind, uint64_t handle, void **real);

/* [addr, addr + len) lies in what this session leased, or in a variable that it asked for. */
bool srv_range(struct srv_call *c, uint64_t addr, __int128 len);

/* The reply's fixed part. */
void srv_answer(struct srv_call *c, const void *reply, uint32_t size);

#endif
