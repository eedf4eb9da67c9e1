/* SPDX-License-Identifier: MIT */
/* A dispatch of the tests' own instead of the API code: calls that record their order, echo, wait at a gate, fail. */
#ifndef TESTS_SERVER_STUB_H
#define TESTS_SERVER_STUB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "server/dispatch.h"

enum stub_op {
	STUB_ECHO = 1, /* out = body */
	STUB_LOG,      /* appends the stamp to stub_log */
	STUB_GATE,     /* returns when stub_gate is open */
	STUB_FAIL,     /* status = first word of the body */
	STUB_FILL,     /* RECV bytes: stub_pattern(body word, i) */
	STUB_LATER,    /* as FILL, but ready when stub_gate is open; fails with the body's second word then */
	STUB_SUM,      /* out = a checksum of the payload */
	STUB_COUNT,    /* stub_count++; out = the new count */
	STUB_CRASH,    /* the worker dies */
	STUB_CHILD,    /* out = pid of a program that the worker started, as drivers do, and that ends by no signal but SIGKILL */
	STUB_FORK,     /* out = pid of a child that stays what the worker is, with all that it has open */
};
#define STUB_NOT_SUPPORTED 801

#define STUB_LOG_MAX (1u << 20)
extern uint64_t *stub_log; /* under stub_lock, as is its length */
extern _Atomic uint64_t stub_log_len;
extern _Atomic int stub_gate, stub_count, stub_lanes;
extern _Atomic bool stub_no_crash; /* STUB_CRASH is NOT_SUPPORTED */

void stub_reset(void);
uint8_t stub_pattern(uint32_t seed, uint64_t i);
uint64_t stub_sum(const uint8_t *p, uint64_t n);

#endif
