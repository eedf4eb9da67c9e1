/* SPDX-License-Identifier: MIT */
/* How the handlers of device library functions reach a call's arguments and its result. */
#ifndef SOFTGPU_PTX_CALL_H
#define SOFTGPU_PTX_CALL_H

#include "softgpu/ptx/ops.h"

/* The call's operand list: the result's offset in the lane's area or −1, then those of the arguments. */
static inline u8 *call_area(const struct warp *w, u32 lane)
{
	return w->regs + w->frame->f->frame_regs + (size_t)lane * w->frame->f->area;
}

static inline void call_arg(const struct warp *w, const struct ins *i, u32 lane, u32 k, void *to, size_t bytes)
{
	memcpy(to, call_area(w, lane) + w->frame->f->ops[i->target + 1 + k], bytes);
}

static inline u64 arg64(const struct warp *w, const struct ins *i, u32 lane, u32 k)
{
	u64 v;

	call_arg(w, i, lane, k, &v, 8);
	return v;
}

static inline u32 arg32(const struct warp *w, const struct ins *i, u32 lane, u32 k)
{
	u32 v;

	call_arg(w, i, lane, k, &v, 4);
	return v;
}

static inline void result(const struct warp *w, const struct ins *i, u32 lane, const void *v, size_t size)
{
	s32 off = w->frame->f->ops[i->target];

	if (off >= 0)
		memcpy(call_area(w, lane) + off, v, size);
}

#endif
