/* SPDX-License-Identifier: MIT */
/* Work that a kernel gives to the device: kept until its grid has run, then run in the order in which it came. */
#ifndef SOFTGPU_PTX_CHILDREN_H
#define SOFTGPU_PTX_CHILDREN_H

#include "softgpu/ptx/exec.h"

enum child_kind { CHILD_GRID, CHILD_COPY, CHILD_FILL };

struct child {
	struct child *next;
	enum child_kind kind;
	struct ptx_func *f; /* CHILD_GRID */
	u32 grid[3], block[3], shared;
	u64 to, from; /* the others; CHILD_FILL: from is the byte */
	u64 to_pitch, from_pitch, width, rows;
	_Alignas(16) u8 params[];
};

/*
 * Queues @c, which is taken over: behind all that is there, or, with @tail, behind that and its own children. False, and @c is
 * gone: there is more work pending than a program can mean.
 */
bool children_add(struct launch *l, struct child *c, bool tail);
/* Runs them after the grid of @l ended, or drops them when that failed. The status of the first that fails. */
enum ptx_status children_run(struct launch *l);

/* launch.c: a grid and its children, @depth levels below the host's launch */
enum ptx_status ptx_run_grid(struct ptx_func *f, const struct ptx_launch *p, struct ptx_fault *fault, u32 depth);

#endif
