/* SPDX-License-Identifier: MIT */
/* What belongs to one thread of the program: its stack of current contexts and its lane. */
#ifndef RGPU_SHIM_THREAD_H
#define RGPU_SHIM_THREAD_H

#include <stddef.h>
#include <stdint.h>
#include "shim/known.h"
#include "shim/lane.h"

struct thread {
	uint64_t *stack; /* context handles, the current one last; 0 is "no context" put there by cuCtxSetCurrent(NULL) */
	unsigned depth, room;
	struct rgpu_lane *lane; /* of the only session so far */
	struct known own;	/* its per-thread default stream in that context: */
	uint64_t own_context;
	bool in_host_function; /* runs one of the program for a stream: it must not call CUDA */
};

/*
 * NULL until the thread first asks for it. A pointer finds room in the block that each thread has from its beginning, whenever
 * this library was loaded: to look there is one instruction, where the struct itself takes a call of the loader's.
 */
extern __thread struct thread *thread_known __attribute__((tls_model("initial-exec")));
struct thread *thread_begin(void);

/* Never fails: the memory is thread-local. When the thread ends, its lane goes back to the pool. */
static inline struct thread *thread_get(void)
{
	return __builtin_expect(thread_known != NULL, 1) ? thread_known : thread_begin();
}

/* The current context's handle, or 0. */
static inline uint64_t thread_context(void)
{
	const struct thread *t = thread_known;

	return t && t->depth ? t->stack[t->depth - 1] : 0;
}

#endif
