/* SPDX-License-Identifier: MIT */
/* Whole-warp handlers that belong to no opcode: control, the way to the general handlers, lane 0 to all lanes. */
#include "softgpu/ptx/whole_handlers.h"

WHOLE(general)
{
	CLEAN_UPPER();
	i->i->fn(w, i->i, FULL);
	if (__builtin_expect(w->stop, 0))
		LEAVE(WHOLE_FAULT);
	NEXT;
}

WHOLE(lane0)
{
	i->i->fn(w, i->i, 1);
	NEXT;
}

WHOLE(guarded)
{
	u32 p = *WARG(const u32, 7), em = i->i->guard_inverted ? ~p : p;

	if (em)
		i->i->fn(w, i->i, em);
	if (__builtin_expect(w->stop, 0))
		LEAVE(WHOLE_FAULT);
	NEXT;
}

#define SPREAD(nm, T)                                                                                                            \
	WHOLE(nm)                                                                                                                \
	{                                                                                                                        \
		T *D = VARG(T, 0);                                                                                               \
		const T first = *WARG(const T, 1), step = (T)(s64)i->step;                                                       \
		LANES D[l] = (T)(first + (T)l * step);                                                                           \
		NEXT;                                                                                                            \
	}
SPREAD(spread16, u16)
SPREAD(spread32, u32)
SPREAD(spread64, u64)

/* The values of 32 lanes run from @first to @last without wrapping, so widening them keeps their steps. */
WHOLE(no_wrap_s)
{
	s64 last = (s64)*WARG(const s32, 1) + (s64)(WARP - 1) * i->step;

	if (last != (s32)last)
		LEAVE(WHOLE_SLOW);
	NEXT;
}

WHOLE(no_wrap_u)
{
	s64 last = (s64)*WARG(const u32, 1) + (s64)(WARP - 1) * i->step;

	if (last != (s64)(u32)last)
		LEAVE(WHOLE_SLOW);
	NEXT;
}

WHOLE(tid)
{
	*WARG(u32, 0) = w->tid[i->imm][0];
	NEXT;
}

WHOLE(ctaid)
{
	*WARG(u32, 0) = w->blk->id[i->imm];
	NEXT;
}

WHOLE(ntid)
{
	*WARG(u32, 0) = w->blk->l->p->block[i->imm];
	NEXT;
}

WHOLE(nctaid)
{
	*WARG(u32, 0) = w->blk->l->p->grid[i->imm];
	NEXT;
}

WHOLE(param32)
{
	memcpy(WARG(u32, 0), w->blk->l->params + i->imm, 4);
	NEXT;
}

WHOLE(param64)
{
	memcpy(WARG(u64, 0), w->blk->l->params + i->imm, 8);
	NEXT;
}

WHOLE(jump)
{
	GO(i + i->r[6]);
}

/* The scheduler looks around now and then, as at back-edges of the general form: see back_edge in exec.c. */
WHOLE(jump_back)
{
	if (__builtin_expect(!(++w->edges % EDGES_ROTATE), 0))
		LEAVE(WHOLE_EDGE);
	GO(i + i->r[6]);
}

WHOLE(branch)
{
	WHOLE_BRANCH(*WARG(const u32, 7), false);
}

WHOLE(branch_back)
{
	WHOLE_BRANCH(*WARG(const u32, 7), true);
}

WHOLE(control)
{
	LEAVE(WHOLE_CONTROL);
}

WHOLE(slow)
{
	LEAVE(WHOLE_SLOW);
}

WHOLE(end)
{
	(void)i;
	CLEAN_UPPER();
	return NULL;
}

#define SPECIAL(level) PASTE3(ptx_whole_, special, level)

const whole_fn SPECIAL(LEVEL)[] = {
	[WS_GENERAL] = general,	    [WS_LANE0] = lane0,		[WS_GUARDED] = guarded,
	[WS_SPREAD16] = spread16,   [WS_SPREAD32] = spread32,	[WS_SPREAD64] = spread64,
	[WS_NO_WRAP_S] = no_wrap_s, [WS_NO_WRAP_U] = no_wrap_u, [WS_TID] = tid,
	[WS_CTAID] = ctaid,	    [WS_NTID] = ntid,		[WS_NCTAID] = nctaid,
	[WS_PARAM32] = param32,	    [WS_PARAM64] = param64,	[WS_JUMP] = jump,
	[WS_JUMP_BACK] = jump_back, [WS_BRANCH] = branch,	[WS_BRANCH_BACK] = branch_back,
	[WS_CONTROL] = control,	    [WS_SLOW] = slow,		[WS_END] = end,
};
