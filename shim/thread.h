/* SPDX-License-Identifier: MIT */
/* What belongs to one thread of the program: its stack of current contexts and its lane. */
#ifndef RGPU_SHIM_THREAD_H
#define RGPU_SHIM_THREAD_H

#include <stdint.h>
#include "shim/known.h"
#include "shim/lane.h"

struct thread {
	uint64_t *stack; /* context handles, the current one last; 0 is "no context" put there by cuCtxSetCurrent(NULL) */
	unsigned depth, room;
	struct rgpu_lane *lane; /* of the only session so far */
	struct known own; /* its per-thread default stream in that context: */
	uint64_t own_context;
	bool in_host_function; /* runs one of the program for a stream: it must not call CUDA */
};

/* Never fails: the memory is thread-local. When the thread ends, its lane goes back to the pool. */
struct thread *thread_get(void);
uint64_t thread_context(void); /* the current context's handle, or 0 */

#endif
