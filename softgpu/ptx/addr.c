/* SPDX-License-Identifier: MIT */
/* From a lane's address to host memory, one lane at a time, for all state spaces, with every check. */
#include <string.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/exec.h"

static void *illegal(struct warp *w, const struct ins *i, u32 lane, u64 addr, u32 size, const char *what)
{
	ptx_raise(w, i, (int)lane, PTX_ILLEGAL_ADDRESS, addr, "%s access of %u bytes", what, size);
	return NULL;
}

void *ptx_lane_range(struct warp *w, const struct ins *i, u32 lane, enum space sp, u64 addr, u32 size, u32 align)
{
	u64 off = addr;

	if (addr & (align - 1)) {
		ptx_raise(w, i, (int)lane, PTX_MISALIGNED, addr, "misaligned access of %u bytes", size);
		return NULL;
	}
	if (sp == SP_GENERIC) {
		off = addr & WINDOW_MASK;
		switch (addr >> WINDOW_SHIFT) {
		case WINDOW_SHARED:
			sp = SP_SHARED;
			break;
		case WINDOW_LOCAL:
			sp = SP_LOCAL;
			break;
		case WINDOW_PARAM:
			sp = SP_PARAM;
			break;
		default:
			sp = SP_GLOBAL;
			off = addr;
			break;
		}
	}
	switch (sp) {
	case SP_SHARED: {
		const struct cluster *c = w->blk->cluster;
		u64 rank = off >> CLUSTER_SHIFT;
		u8 *base = w->shared;

		if (rank > c->size)
			return illegal(w, i, lane, addr, size, "out-of-range shared");
		if (rank) {
			base = c->shared + (rank - 1) * c->stride;
			off &= (1u << CLUSTER_SHIFT) - 1;
		}
		if (off > w->shared_size || size > w->shared_size - off)
			return illegal(w, i, lane, addr, size, "out-of-range shared");
		return base + off;
	}
	case SP_LOCAL:
		if (off > w->local_stride || size > w->local_stride - off)
			return illegal(w, i, lane, addr, size, "out-of-range local");
		return w->local + (size_t)lane * w->local_stride + off;
	case SP_PARAM:
		if (off > w->blk->l->f->param_bytes || size > w->blk->l->f->param_bytes - off)
			return illegal(w, i, lane, addr, size, "out-of-range parameter");
		return (void *)(uintptr_t)(w->blk->l->params + off);
	default:
		if (!softgpu_reaches(addr, size))
			return illegal(w, i, lane, addr, size, "illegal global");
		return (void *)(uintptr_t)addr;
	}
}

void *ptx_lane_addr(struct warp *w, const struct ins *i, u32 lane, enum space sp, u64 addr, u32 size)
{
	return ptx_lane_range(w, i, lane, sp, addr, size, size);
}

const char *ptx_lane_string(struct warp *w, u32 lane, u64 addr, size_t max, size_t *len)
{
	/* Byte by byte: the string may end right before memory that is not mapped. */
	const char *s = NULL;

	for (size_t n = 0; n < max; n++) {
		const char *c = ptx_lane_addr(w, NULL, lane, SP_GENERIC, addr + n, 1);

		if (!c)
			return NULL;
		if (!n)
			s = c;
		if (!*c) {
			*len = n;
			return s;
		}
	}
	*len = max;
	return s;
}
