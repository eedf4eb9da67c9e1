/* SPDX-License-Identifier: MIT */
/* Page-locked host memory: allocations are buffer objects, so copies need no staging; registered memory is noted and staged. */
#ifndef RGPU_SHIM_PINNED_H
#define RGPU_SHIM_PINNED_H

#include <stdbool.h>
#include <stdint.h>
#include "shim/ranges.h"
#include "shim/session.h"

struct pending;

struct pinned {
	struct range range;
	struct rgpu_bo bo; /* handle 0: registered memory of the program */
	struct rgpu_obj *context;
	struct device *device; /* of that context */
	unsigned flags;
	uint64_t mirror;	 /* where kernels reach it: its twin's address; 0: nobody has asked */
	bool in_window;		 /* then that is its own address */
	struct pending *pending; /* asynchronous copies to here that nobody has waited for yet */
};

/* The buffer object that contains [p, p + bytes), and where; false: none. */
bool pinned_bo(const void *p, uint64_t bytes, uint32_t *bo, uint64_t *off);
/* What is known about @p, copied; false: nothing. */
bool pinned_find(const void *p, struct pinned *out);

/*
 * Host memory that has a twin is copied there, in the order of the stream: kernels before it may write it. *dev: where [p, p +
 * bytes) is then; false: it has none.
 */
bool pinned_twin(const void *p, uint64_t bytes, uint64_t *dev);
/*
 * Work of a device has addresses in @data: page-locked memory among them gets its twin, for kernels reach such memory without
 * being told. Memory that only copies use has none, and costs none of the comparing.
 */
int pinned_reached(const struct rgpu_call *c, const void *data, size_t bytes);
extern atomic_uint pinned_unreached; /* allocations that no kernel has been given yet */
static inline bool pinned_may_reach(void)
{
	return atomic_load_explicit(&pinned_unreached, memory_order_relaxed);
}

/* The call's record, which was sent, is a copy to [p, p + bytes) on that stream. */
void pinned_receives(const void *p, uint64_t bytes, const struct rgpu_call *c, uint64_t wire);
/* Copies to there may be on their way. */
bool pinned_pending(const void *p, uint64_t bytes);
/* All that @stream (of @context; any of it when @stream is PINNED_ALL) was given before @stamp is done. */
void pinned_settled(struct rgpu_obj *context, uint64_t stream, uint64_t stamp);
#define PINNED_ALL UINT64_MAX

#endif
