/* SPDX-License-Identifier: MIT */
/* A copy of two or three dimensions with its ends looked up: for copies that are issued, and for those in graphs. */
#ifndef RGPU_SHIM_MEMCPY_BOX_H
#define RGPU_SHIM_MEMCPY_BOX_H

#include "shim/array.h"
#include "shim/call.h"

/* One end: where the first byte lies, and how far rows and slices are apart; or an array and the place in it. */
struct end {
	bool device; /* that is where it is copied from or to: host memory with a twin has a place there */
	bool host;   /* page-locked or ordinary memory, with or without a twin */
	uint64_t at, pitch;
	unsigned __int128 slice;
	bool is_array;
	struct array_info info;
	uint64_t array, x, y, z;
	uint64_t ctx; /* wire name for a copy between peers, else 0 */
};

struct box {
	struct end src, dst;
	uint64_t width, height, depth;
};

/* CUresults. box_check: both ends lie where they may. */
int box_of(struct box *b, const CUDA_MEMCPY3D *p);
int box_check(struct rgpu_call *c, const struct box *b);
/* Bytes from the first to behind the last, −1 when that is more than an address can say. */
__int128 box_span(const struct end *e, const struct box *b);

#endif
