/* SPDX-License-Identifier: MIT */
/* The ways between the general and the whole-warp form of a kernel while it runs. */
#include <string.h>

#include "softgpu/ptx/whole.h"

#define SPREAD(T)                                                                                                                \
	do {                                                                                                                     \
		const T first = *(const T *)(regs + r->from);                                                                    \
		T *v = (T *)(regs + r->off);                                                                                     \
		for (u32 l = 0; l < WARP; l++)                                                                                   \
			v[l] = (T)(first + (T)l * (T)(s64)r->step);                                                              \
	} while (0)

/* Gives all lanes their values, as the general form needs them. */
static void spread(u8 *regs, const struct whole_reg *r)
{
	if (r->cls == RC_16)
		SPREAD(u16);
	else if (r->cls == RC_32)
		SPREAD(u32);
	else
		SPREAD(u64);
}

#define HOLDS(T)                                                                                                                 \
	do {                                                                                                                     \
		const T first = *(const T *)(regs + r->from), *v = (const T *)(regs + r->off);                                   \
		T differs = 0;                                                                                                   \
		for (u32 l = 0; l < WARP; l++)                                                                                   \
			differs |= (T)(first + (T)l * (T)(s64)r->step) ^ v[l];                                                   \
		return !differs;                                                                                                 \
	} while (0)

static bool holds(const u8 *regs, const struct whole_reg *r)
{
	u32 p;

	switch (r->cls) {
	case RC_PRED:
		p = *(const u32 *)(regs + r->off);
		return !p || p == FULL;
	case RC_16:
		HOLDS(u16);
	case RC_32:
		HOLDS(u32);
	default:
		HOLDS(u64);
	}
}

void ptx_whole_fill(struct warp *w, struct frame *fr)
{
	const struct launch *l = w->blk->l;
	const struct whole *wh = l->whole;

	for (u32 k = 0; k < wh->nconsts && fr->filled != wh->id; k++)
		memcpy(fr->mem + wh->consts[k].to, fr->f->pool + wh->consts[k].from, wh->consts[k].bytes);
	fr->filled = wh->id;
	for (const struct wins *i = wh->hoisted; i;)
		i = i->fn(w, i, fr->mem);
	fr->grid_id = l->grid_id;
}

bool ptx_whole_enter(struct warp *w)
{
	const struct split *s = &w->split[w->cur];
	const struct ptx_func *f = s->frame->f;
	const struct whole *wh = w->blk->l->whole;
	u32 at = (u32)(s->pc - f->code);

	if (s->mask != FULL || f != w->blk->l->f || s->frame->depth || !wh->may_enter[at])
		return false;
	for (u32 k = 0; k < wh->entry[at].count; k++)
		if (!holds(s->frame->mem, &wh->regs[wh->entry[at].first + k]))
			return false;
	return true;
}

enum whole_exit ptx_whole_run(struct warp *w)
{
	struct split *s = &w->split[w->cur];
	const struct ptx_func *f = s->frame->f;
	const struct whole *wh = w->blk->l->whole;
	const struct wins *i = &wh->code[wh->at[s->pc - f->code]];
	const struct whole_list *slow;

	do
		i = i->fn(w, i, w->regs);
	while (i);
	i = w->whole_at;
	switch ((enum whole_exit)w->whole_exit) {
	case WHOLE_SLOW:
		slow = &wh->slow[i - wh->code];
		for (u32 k = 0; k < slow->count; k++)
			spread(w->regs, &wh->regs[slow->first + k]);
		w->whole = false;
		w->whole_tries--;
		s->pc = i->i;
		return WHOLE_SLOW;
	case WHOLE_EDGE:
		w->whole_tries = WHOLE_TRIES;
		s->pc = f->code + i->i->target;
		return WHOLE_EDGE;
	default:
		s->pc = i->i;
		return (enum whole_exit)w->whole_exit;
	}
}
