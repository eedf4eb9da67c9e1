/* SPDX-License-Identifier: MIT */
/* Where whole-warp code finds constants and hoisted values: in the frame behind its registers, and the code that puts them there.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/whole_build.h"

/* The copy of a pool constant that the frame has for whole-warp code. */
static s32 const_in_frame(struct emit *e, s32 off, bool wide)
{
	u32 *at = &e->const_at[wide][-off / 64];
	struct whole *o = e->out;
	u32 bytes = wide ? (off > -256 ? (u32)-off : 256) : 8; /* at least what its class has */

	if (!*at) {
		if (wide)
			o->frame_size = (o->frame_size + 63) & ~63u;
		*at = o->frame_size;
		o->frame_size += bytes;
		o->consts[o->nconsts++] = (struct whole_const){off, *at, bytes};
	}
	return (s32)*at;
}

/* More room behind the frame's registers; false when there is too much in it. */
static bool grow_frame(struct emit *e, u32 bytes, u32 align, u32 *at)
{
	*at = (e->out->frame_size + align - 1) & ~(align - 1);
	e->out->frame_size = *at + bytes;
	e->failed |= e->out->frame_size > MAX_CELLS;
	return !e->failed;
}

static struct wins *add_hoisted(struct emit *e, whole_fn fn, const struct ins *i)
{
	struct wins *w = &e->out->hoisted[e->nhoisted++];

	*w = (struct wins){.fn = fn, .imm = i->imm, .i = i};
	memcpy(w->r, i->r, sizeof(w->r));
	return w;
}

s32 wb_hoisted_at(struct emit *e, u32 by, bool wide)
{
	u32 *at = &e->hoisted_at[wide][by], cls;

	if (!*at) { /* lane 0 has been placed */
		const struct ins *i = &e->b.f->code[by];
		struct wins *w;

		wb_slot(&e->b, i->r[0], &cls);
		if (!grow_frame(e, WARP << (cls - RC_16 + 1), 64, at))
			return 0;
		w = add_hoisted(e, e->known.special[WS_SPREAD16 + cls - RC_16], i);
		w->r[0] = (s32)*at;
		w->r[1] = (s32)e->hoisted_at[0][by];
	}
	return (s32)*at;
}

void wb_place_operands(struct emit *e, struct wins *w, u32 at, const struct fact *facts)
{
	const struct choice *c = &e->choice[at];
	u32 cls;

	for (u32 k = 0; k < NREGS; k++) {
		bool wide = !(c->narrow >> k & 1);

		if (w->r[k] < 0)
			w->r[k] = const_in_frame(e, w->r[k], wide);
		else if (c->hoisted >> k & 1)
			w->r[k] = wb_hoisted_at(e, facts[wb_slot(&e->b, w->r[k], &cls)].hoisted - 1, wide);
	}
}

/* All that the hoisted instruction @at reads has been placed. */
static bool may_place(const struct emit *e, u32 at, const struct fact *facts)
{
	u32 cls;

	for (u32 k = 0; k < NREGS; k++)
		if ((e->choice[at].hoisted >> k & 1) &&
		    !e->hoisted_at[0][facts[wb_slot(&e->b, e->b.f->code[at].r[k], &cls)].hoisted - 1])
			return false;
	return true;
}

static void place_hoisted(struct emit *e, u32 at, const struct fact *facts)
{
	const struct ins *i = &e->b.f->code[at];
	const struct choice *c = &e->choice[at];
	struct wins *w;

	if (!grow_frame(e, 8, 8, &e->hoisted_at[0][at]))
		return;
	if (c->form == FORM_SPECIAL) {
		w = add_hoisted(e, e->known.special[c->special], i);
		w->imm = c->imm;
	} else {
		w = add_hoisted(e, c->fn, i);
		wb_place_operands(e, w, at, facts);
	}
	w->r[0] = (s32)e->hoisted_at[0][at];
}

void wb_hoisted(struct emit *e)
{
	const struct build *b = &e->b;
	struct fact *facts = wb_take(e, b->nslots * sizeof(*facts));
	u32 n = 0, left;

	for (u32 at = 0; at < b->f->ncode; at++)
		n += b->blocks[b->block_of[at]].entry && e->choice[at].result.hoisted;
	e->out->hoisted = aligned_alloc(64, (2 * n + 1) * sizeof(struct wins)); /* each also in all lanes, and the end */
	e->failed |= !e->out->hoisted;
	for (left = n; left && wb_again(e);)
		for (u32 k = 0; k < b->nblocks; k++) {
			struct wblock *bl = &b->blocks[k];

			if (bl->entry)
				memcpy(facts, bl->in, b->nslots * sizeof(*facts));
			for (u32 at = bl->first; at < bl->end && bl->entry; at++) {
				const struct choice *c = &e->choice[at];

				if (c->result.hoisted && !e->hoisted_at[0][at] && may_place(e, at, facts)) {
					place_hoisted(e, at, facts);
					left--;
				}
				wb_apply(b, at, c, facts);
			}
		}
}

void wb_hoisted_end(struct emit *e)
{
	add_hoisted(e, e->known.special[WS_END], &e->b.f->code[0]);
}
