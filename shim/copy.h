/* SPDX-License-Identifier: MIT */
/* Copies of any size as records of at most RGPU_CHUNK_MAX bytes. */
#ifndef RGPU_SHIM_COPY_H
#define RGPU_SHIM_COPY_H

#include "shim/call.h"

/* A box in an array; x and width count bytes. */
struct array_box {
	uint64_t array; /* wire name */
	uint64_t x, y, z, width, height, depth;
};

/* An address, or the bytes of a box from @at on, its rows and slices one behind the other. */
struct remote {
	uint64_t at;
	const struct array_box *box; /* NULL: memory */
};

/*
 * The call is entered, its context known, and device ranges are checked. @stream is a wire name. @sync: the host's side is
 * done with on return: the source may be overwritten, the target can be read. Without it that holds for pageable memory
 * only. All return CUresults.
 */
int copy_up(struct rgpu_call *c, struct remote dst, const void *src, uint64_t bytes, uint64_t stream, bool sync);
int copy_down(struct rgpu_call *c, void *dst, struct remote src, uint64_t bytes, uint64_t stream, bool sync);

/* A quiet copy down into a buffer object from its beginning on. */
struct rgpu_bo;
int copy_down_into(struct rgpu_call *c, const struct rgpu_bo *bo, struct remote src, uint64_t bytes, uint64_t stream);

/* At the process's beginning: what its environment says about copies. */
void copy_begin(void);

static inline int copy_to_device(struct rgpu_call *c, uint64_t dst, const void *src, uint64_t bytes, uint64_t stream, bool sync)
{
	return copy_up(c, (struct remote){dst, NULL}, src, bytes, stream, sync);
}

static inline int copy_to_host(struct rgpu_call *c, void *dst, uint64_t src, uint64_t bytes, uint64_t stream, bool sync)
{
	return copy_down(c, dst, (struct remote){src, NULL}, bytes, stream, sync);
}

#endif
