/* SPDX-License-Identifier: MIT */
/* Frames: a call's registers and parameters, kept by size for reuse within a worker. */
#include <stdlib.h>

#include "softgpu/ptx/exec.h"

/* Recursion in every lane of a large block must end as a fault, not as the host's out-of-memory killer. */
#define MAX_FRAME_BYTES (1ull << 30)

u32 ptx_frame_class(u32 size)
{
	size_t bytes = sizeof(struct frame) + size;
	u32 c = 0;

	while ((size_t)256 << c < bytes)
		c++;
	return c;
}

struct frame *ptx_frame_get(struct worker *wk, const struct ptx_func *f, u32 c)
{
	struct frame *fr;

	if (c >= FRAME_CLASSES)
		return NULL;
	fr = wk->free_frames[c];
	if (fr) {
		wk->free_frames[c] = fr->parent;
		if (fr->f != f)
			fr->filled = fr->grid_id = 0;
	} else {
		if (wk->frame_bytes + ((size_t)256 << c) > MAX_FRAME_BYTES)
			return NULL;
		fr = aligned_alloc(64, (size_t)256 << c);
		if (!fr)
			return NULL;
		wk->frame_bytes += (size_t)256 << c;
		fr->cls = c;
		fr->filled = fr->grid_id = 0;
	}
	fr->parent = NULL;
	fr->f = f;
	fr->site = NULL;
	fr->depth = 0;
	fr->local = 0;
	fr->allocated = 0;
	return fr;
}

void ptx_frame_put(struct worker *wk, struct frame *fr)
{
	fr->parent = wk->free_frames[fr->cls];
	wk->free_frames[fr->cls] = fr;
}
