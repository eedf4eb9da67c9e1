/* SPDX-License-Identifier: MIT */
/* The whole-warp form's second half: blocks, the solution of the flow equations, and the code. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/mem.h"
#include "softgpu/ptx/whole_build.h"

/* Kernels beyond this run in the general form only: the build must stay short. */
#define MAX_CELLS (4u << 20)
#define MAX_WORK  (64u << 20) /* instructions looked at */

/* The sets of registers at a place, one behind the other, and what of a register has a reader that comes later. */
enum {
	SET_LIVE, /* anything */
	SET_WIDE, /* all 32 elements */
	SET_OWN,  /* the register itself, if only lane 0: not where its hoisted value is */
	SETS
};

struct emit {
	struct build b;
	struct bump mem; /* everything but the result */
	struct choice *choice;
	u8 *spread;	    /* by instruction: r[] whose value is spread behind it */
	u8 *dies;	    /* by instruction: r[] that it reads last */
	u64 **live, **wide; /* by instruction, before it; NULL where nothing leaves */
	u32 ncode, nregs, cregs;
	u32 *const_at[2];   /* by place in the pool: the copy in the frame, of lane 0 and of all lanes, 0: none yet */
	u32 *hoisted_at[2]; /* by instruction: the same for a hoisted value */
	u32 nhoisted;
	whole_fn load_one, load_run; /* of 32 bits in shared memory */
	whole_fn fma_mixed;
	struct whole *out;
	const whole_fn *special;
	u64 work;
	bool failed;
};

static void *take(struct emit *e, size_t bytes)
{
	void *p = bump_alloc(&e->mem, bytes ? bytes : 1);

	e->failed |= !p;
	return p;
}

static bool ends(const struct ins *i)
{
	return i->kind == K_BRA || i->kind == K_BRX || i->kind == K_NEXT || i->kind == K_RET || i->kind == K_EXIT;
}

static bool known(const struct ins *i)
{
	return i->kind <= K_CLUSTER;
}

/* The blocks of the graph; a call ends one, too, so that whole-warp code can be entered behind it. */
static bool find_blocks(struct emit *e)
{
	struct build *b = &e->b;
	const struct ptx_func *f = b->f;
	u8 *lead = take(e, f->ncode + 1);
	u32 n = 0;

	if (!lead)
		return false;
	lead[0] = 1;
	for (u32 k = 0; k < f->ncode; k++) {
		const struct ins *i = &f->code[k];

		if (i->kind == K_BRA)
			lead[i->target] = 1;
		for (u32 t = 0; i->kind == K_BRX && t < i->imm; t++)
			lead[f->ops[i->target + t]] = 1;
		if (ends(i) || i->kind == K_CALL || !known(i))
			lead[k + 1] = 1;
	}
	for (u32 k = 0; k < f->ncode; k++)
		n += lead[k];
	b->blocks = take(e, n * sizeof(*b->blocks));
	b->block_of = take(e, f->ncode * sizeof(u32));
	if (e->failed || (u64)n * (b->nslots + 1) > MAX_CELLS || (u64)f->ncode * b->words > MAX_CELLS)
		return false;
	for (u32 k = 0; k < f->ncode; k++) {
		if (lead[k])
			b->blocks[b->nblocks++].first = k;
		b->blocks[b->nblocks - 1].end = k + 1;
		b->block_of[k] = b->nblocks - 1;
	}
	for (u32 k = 0; k < b->nblocks; k++) {
		struct wblock *bl = &b->blocks[k];

		bl->in = take(e, b->nslots * sizeof(*bl->in));
		bl->live = take(e, SETS * b->words * 8);
	}
	return !e->failed;
}

/* Calls @fn for each block that may follow @bl; true when one of the calls said so. */
static bool successors(struct emit *e, const struct wblock *bl, bool (*fn)(struct emit *e, struct wblock *next, void *arg),
		       void *arg)
{
	struct build *b = &e->b;
	const struct ins *i = &b->f->code[bl->end - 1];
	bool r = false;

	if (i->kind == K_BRA)
		r |= fn(e, &b->blocks[b->block_of[i->target]], arg);
	for (u32 t = 0; i->kind == K_BRX && t < i->imm; t++)
		r |= fn(e, &b->blocks[b->block_of[b->f->ops[i->target + t]]], arg);
	if (i->kind == K_BRX || i->kind == K_RET || i->kind == K_EXIT || (i->kind == K_BRA && i->guard == NO_GUARD))
		return r;
	return bl->end < b->f->ncode ? fn(e, &b->blocks[b->block_of[bl->end]], arg) | r : r;
}

/* Once more over the whole kernel; fails when that has been too often. */
static bool again(struct emit *e)
{
	e->work += e->b.f->ncode + (u64)e->b.nblocks * e->b.nslots / 16;
	e->failed |= e->work > MAX_WORK;
	return !e->failed;
}

static bool flow_facts(struct emit *e, struct wblock *next, void *facts)
{
	return wb_meet(next->in, facts, e->b.nslots) | !next->entry ? (next->entry = true) : false;
}

/* Facts only fall, from UNSET over STEP to MANY, so this ends. */
static void solve_facts(struct emit *e)
{
	struct build *b = &e->b;
	struct fact *facts = take(e, b->nslots * sizeof(*facts));
	bool changed = true;

	b->blocks[0].entry = true;
	while (changed && again(e)) {
		changed = false;
		for (u32 k = 0; k < b->nblocks; k++) {
			struct wblock *bl = &b->blocks[k];

			if (!bl->entry)
				continue;
			memcpy(facts, bl->in, b->nslots * sizeof(*facts));
			for (u32 at = bl->first; at < bl->end; at++) {
				e->choice[at] = wb_choose(b, at, facts);
				wb_apply(b, at, &e->choice[at], facts);
			}
			changed |= successors(e, bl, flow_facts, facts);
		}
	}
}

static void set(u64 *bits, u32 k)
{
	bits[k / 64] |= 1ull << (k % 64);
}

static void clear(u64 *bits, u32 k)
{
	bits[k / 64] &= ~(1ull << (k % 64));
}

static bool test(const u64 *bits, u32 k)
{
	return bits[k / 64] >> (k % 64) & 1;
}

/* From behind instruction @at to before it. */
static void step_back(struct emit *e, u32 at, u64 *live)
{
	const struct build *b = &e->b;
	const struct choice *c = &e->choice[at];
	u64 *wide = live + b->words, *own = wide + b->words;
	const struct ins *i = &b->f->code[at];
	const struct ins_info *in = &b->f->ins_info[at];
	const s32 *list = b->f->ops + in->list;
	u32 cls;

	e->spread[at] = 0;
	for (u32 k = 0; k < NREGS; k++) {
		u32 s;

		if (!(in->def >> k & 1))
			continue;
		s = wb_slot(b, i->r[k], &cls);
		if ((test(wide, s) || (c->result.hoisted && test(own, s))) && cls != RC_PRED && c->result.kind == STEP)
			e->spread[at] |= (u8)(1u << k);
		if (i->kind == K_GUARD)
			continue;
		clear(live, s);
		clear(wide, s);
		clear(own, s);
	}
	for (u32 k = 0; k < in->list_def; k++) {
		u32 s = wb_slot(b, list[k], &cls);

		if (i->kind == K_GUARD) { /* other lanes keep their old values, so all must be there */
			set(wide, s);
			continue;
		}
		clear(live, s);
		clear(wide, s);
		clear(own, s);
	}
	e->dies[at] = 0;
	for (u32 k = 0; k < NREGS; k++)
		if ((in->use >> k & 1) && i->r[k] >= 0 && !test(live, wb_slot(b, i->r[k], &cls)))
			e->dies[at] |= (u8)(1u << k);
	for (u32 k = 0; k < NREGS; k++) {
		if ((in->use >> k & 1) && i->r[k] >= 0)
			set(live, wb_slot(b, i->r[k], &cls));
		if (i->r[k] < 0 || (c->hoisted >> k & 1))
			continue;
		if (in->use >> k & 1)
			set(own, wb_slot(b, i->r[k], &cls));
		if (c->wide >> k & 1)
			set(wide, wb_slot(b, i->r[k], &cls));
	}
	for (u32 k = in->list_def; k < (u32)in->list_def + in->list_use; k++)
		if (list[k] >= 0) {
			set(live, wb_slot(b, list[k], &cls));
			set(wide, wb_slot(b, list[k], &cls));
		}
	if (i->guard != NO_GUARD)
		set(live, wb_slot(b, i->guard, &cls));
}

static bool leaves(const struct choice *c)
{
	return c->form == FORM_LEAVES || c->form == FORM_BRANCH || c->form == FORM_SLOW || c->no_wrap;
}

static bool flow_back(struct emit *e, struct wblock *next, void *sets)
{
	u64 *to = sets;

	for (u32 k = 0; k < SETS * e->b.words; k++)
		to[k] |= next->live[k];
	return false;
}

/* @keep: also note the sets where something may leave. */
static bool back(struct emit *e, struct wblock *bl, u64 *sets, bool keep)
{
	const u32 words = e->b.words;
	bool changed;

	memset(sets, 0, SETS * words * 8);
	successors(e, bl, flow_back, sets);
	for (u32 at = bl->end; at-- > bl->first;) {
		step_back(e, at, sets);
		if (keep && leaves(&e->choice[at])) {
			e->live[at] = take(e, 2 * words * 8);
			if (e->failed)
				return false;
			e->wide[at] = e->live[at] + words;
			memcpy(e->live[at], sets, 2 * words * 8);
		}
	}
	changed = memcmp(bl->live, sets, SETS * words * 8);
	memcpy(bl->live, sets, SETS * words * 8);
	return changed;
}

static void solve_back(struct emit *e)
{
	struct build *b = &e->b;
	u64 *sets = take(e, SETS * b->words * 8);
	bool changed = true;

	while (changed && again(e)) {
		changed = false;
		for (u32 k = b->nblocks; k-- > 0;)
			changed |= back(e, &b->blocks[k], sets, false);
	}
	for (u32 k = 0; k < b->nblocks && !e->failed; k++)
		back(e, &b->blocks[k], sets, true);
}

/* Adds a register to the list at the end of all lists. */
static void add_reg(struct emit *e, struct whole_list *l, s32 off, u32 cls, const struct fact *a)
{
	s32 from = a->hoisted ? (s32)e->hoisted_at[0][a->hoisted - 1] : off;

	if (e->nregs == e->cregs) {
		u32 cap = e->cregs ? 2 * e->cregs : 256;
		struct whole_reg *p = cap > MAX_CELLS ? NULL : realloc(e->out->regs, cap * sizeof(*p));

		if (!p) {
			e->failed = true;
			return;
		}
		e->out->regs = p;
		e->cregs = cap;
	}
	e->out->regs[e->nregs++] = (struct whole_reg){off, from, (u8)cls, a->step};
	l->count++;
}

/* The registers of @live that facts describe by lane 0, but not those that are spread anyhow (@wide, may be NULL). */
static struct whole_list list_regs(struct emit *e, const struct fact *facts, const u64 *live, const u64 *wide, bool preds)
{
	static const u32 bytes[RC_COUNT] = {4, 2 * WARP, 4 * WARP, 8 * WARP};
	const struct build *b = &e->b;
	struct whole_list l = {.first = e->nregs};

	for (u32 c = preds ? RC_PRED : RC_16; c < RC_COUNT; c++) {
		u32 n = (b->f->reg_base[c + 1] - b->f->reg_base[c]) / bytes[c];

		for (u32 k = 0; k < n; k++) {
			u32 s = b->first[c] + k;

			if (facts[s].kind == STEP && test(live, s) && !(wide && test(wide, s)))
				add_reg(e, &l, (s32)(b->f->reg_base[c] + k * bytes[c]), c, &facts[s]);
		}
	}
	return l;
}

static struct wins *add(struct emit *e, whole_fn fn, const struct ins *i)
{
	struct wins *w = &e->out->code[e->ncode++];

	*w = (struct wins){.fn = fn, .imm = i->imm, .i = i};
	memcpy(w->r, i->r, sizeof(w->r));
	return w;
}

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

/* Where the hoisted value of instruction @by is, for readers of lane 0 or all lanes. */
static s32 hoisted_in_frame(struct emit *e, u32 by, bool wide)
{
	u32 *at = &e->hoisted_at[wide][by], cls;

	if (!*at) { /* lane 0 has been placed */
		const struct ins *i = &e->b.f->code[by];
		struct wins *w;

		wb_slot(&e->b, i->r[0], &cls);
		if (!grow_frame(e, WARP << (cls - RC_16 + 1), 64, at))
			return 0;
		w = add_hoisted(e, e->special[WS_SPREAD16 + cls - RC_16], i);
		w->r[0] = (s32)*at;
		w->r[1] = (s32)e->hoisted_at[0][by];
	}
	return (s32)*at;
}

/* Leads the operands that are constants or hoisted to their places. */
static void place_operands(struct emit *e, struct wins *w, u32 at, const struct fact *facts)
{
	const struct choice *c = &e->choice[at];
	u32 cls;

	for (u32 k = 0; k < NREGS; k++) {
		bool wide = !(c->narrow >> k & 1);

		if (w->r[k] < 0)
			w->r[k] = const_in_frame(e, w->r[k], wide);
		else if (c->hoisted >> k & 1)
			w->r[k] = hoisted_in_frame(e, facts[wb_slot(&e->b, w->r[k], &cls)].hoisted - 1, wide);
	}
}

/* Two loads from shared memory and the multiply-add that is their only reader become one instruction. */
static void fuse_fma(struct emit *e, u32 block_at, u32 at)
{
	struct wins *w = e->out->code, f;
	u32 n = e->ncode - 1, one, run;

	if (e->ncode < block_at + 3 || w[n].fn != e->fma_mixed || (e->dies[at] & 6) != 6)
		return;
	one = w[n - 1].fn == e->load_one ? n - 1 : n - 2;
	run = 2 * n - 3 - one;
	f = w[n];
	if (w[one].fn != e->load_one || w[run].fn != e->load_run || w[one].r[0] != f.r[1] || w[run].r[0] != f.r[2] ||
	    w[n - 1].r[4] == w[n - 2].r[0] || f.r[3] == f.r[1] || f.r[3] == f.r[2])
		return;
	f.fn = e->special[WS_FMA_SHARED];
	f.r[4] = w[one].r[4];
	f.r[5] = w[run].r[4];
	f.imm = (u32)w[one].imm | (w[run].imm << 32);
	f.i = w[n - 2].i; /* to be run again from the first of the three */
	w[n - 2] = f;
	e->ncode -= 2;
}

static enum whole_special branch_kind(const struct emit *e, u32 at)
{
	const struct ins *i = &e->b.f->code[at];
	bool back_edge = i->target <= at;

	if (i->guard == NO_GUARD)
		return back_edge ? WS_JUMP_BACK : WS_JUMP;
	return back_edge ? WS_BRANCH_BACK : WS_BRANCH;
}

static void emit_one(struct emit *e, u32 block_at, u32 at, const struct fact *facts)
{
	const struct ins *i = &e->b.f->code[at];
	const struct choice *c = &e->choice[at];
	struct whole_list slow = {0};
	u32 first = e->ncode;
	struct wins *w;

	if (e->live[at])
		slow = list_regs(e, facts, e->live[at], e->wide[at], false);
	if (c->result.hoisted)
		goto spread;
	if (c->no_wrap) {
		w = add(e, e->special[c->no_wrap], i);
		w->r[1] = i->r[c->checked];
		w->step = c->step;
	}
	switch ((enum form)c->form) {
	case FORM_NONE:
		break;
	case FORM_GENERAL:
		add(e, e->special[WS_GENERAL], i);
		break;
	case FORM_LANE0:
		add(e, e->special[WS_LANE0], i);
		break;
	case FORM_GUARDED:
		add(e, e->special[WS_GUARDED], i)->r[7] = i->guard;
		break;
	case FORM_FAST:
	case FORM_LEAVES:
		w = add(e, c->fn, i);
		w->step = c->step;
		w->step2 = c->step2;
		place_operands(e, w, at, facts);
		break;
	case FORM_SPECIAL:
		add(e, e->special[c->special], i)->imm = c->imm;
		break;
	case FORM_BRANCH:
		w = add(e, e->special[branch_kind(e, at)], i);
		w->r[7] = i->guard;
		w->imm = i->guard_inverted ? FULL : 0;
		w->step2 = (s32)i->target; /* until all places are known */
		break;
	case FORM_CONTROL:
		add(e, e->special[WS_CONTROL], i);
		break;
	case FORM_SLOW:
		add(e, e->special[WS_SLOW], i);
		break;
	}
	for (u32 k = first; k < e->ncode; k++)
		e->out->slow[k] = slow;
spread:
	for (u32 k = 0; k < NREGS; k++)
		if (e->spread[at] >> k & 1) {
			u32 cls;

			wb_slot(&e->b, i->r[k], &cls);
			w = add(e, e->special[WS_SPREAD16 + cls - RC_16], i);
			w->r[0] = i->r[k];
			w->r[1] = c->result.hoisted ? hoisted_in_frame(e, at, false) : i->r[k];
			w->step = c->result.step;
		}
	fuse_fma(e, block_at, at);
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
		w = add_hoisted(e, e->special[c->special], i);
		w->imm = c->imm;
	} else {
		w = add_hoisted(e, c->fn, i);
		place_operands(e, w, at, facts);
	}
	w->r[0] = (s32)e->hoisted_at[0][at];
}

/* The code that computes all hoisted values, each behind those that it needs. */
static void emit_hoisted(struct emit *e)
{
	const struct build *b = &e->b;
	struct fact *facts = take(e, b->nslots * sizeof(*facts));
	u32 n = 0, left;

	for (u32 at = 0; at < b->f->ncode; at++)
		n += b->blocks[b->block_of[at]].entry && e->choice[at].result.hoisted;
	e->out->hoisted = aligned_alloc(64, (2 * n + 1) * sizeof(struct wins)); /* each also in all lanes, and the end */
	e->failed |= !e->out->hoisted;
	for (left = n; left && again(e);)
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

static void emit_all(struct emit *e)
{
	struct build *b = &e->b;
	const struct ptx_func *f = b->f;
	struct fact *facts = take(e, b->nslots * sizeof(*facts));
	size_t n = 0;

	for (u32 at = 0; at < f->ncode; at++)
		n += 2 + (u32)__builtin_popcount(e->spread[at]);
	e->out->code = aligned_alloc(64, n * sizeof(struct wins));
	e->out->slow = calloc(n, sizeof(struct whole_list));
	e->out->entry = calloc(f->ncode, sizeof(struct whole_list));
	e->out->at = calloc(f->ncode, sizeof(u32));
	e->out->may_enter = calloc(f->ncode, 1);
	if (e->failed || !e->out->code || !e->out->slow || !e->out->entry || !e->out->at || !e->out->may_enter) {
		e->failed = true;
		return;
	}
	emit_hoisted(e);
	for (u32 k = 0; k < b->nblocks && !e->failed; k++) {
		struct wblock *bl = &b->blocks[k];

		memcpy(facts, bl->in, b->nslots * sizeof(*facts));
		bl->at = e->ncode;
		e->out->may_enter[bl->first] = bl->entry;
		if (bl->entry)
			e->out->entry[bl->first] = list_regs(e, facts, bl->live, NULL, true);
		for (u32 at = bl->first; at < bl->end; at++) {
			e->out->at[at] = e->ncode;
			if (!bl->entry) { /* nothing goes there */
				add(e, e->special[WS_SLOW], &f->code[at]);
				continue;
			}
			emit_one(e, bl->at, at, facts);
			wb_apply(b, at, &e->choice[at], facts);
		}
	}
	if (e->failed)
		return;
	add_hoisted(e, e->special[WS_END], &f->code[0]);
	for (u32 k = 0; k < e->ncode; k++) {
		struct wins *w = &e->out->code[k];

		if (w->i->kind == K_BRA && w->fn != e->special[WS_SLOW])
			w->step2 = (s32)e->out->at[w->step2] - (s32)k;
	}
}

static void free_whole(struct whole *w)
{
	if (!w)
		return;
	free(w->code);
	free(w->hoisted);
	free(w->slow);
	free(w->entry);
	free(w->at);
	free(w->may_enter);
	free(w->regs);
	free(w->consts);
	free(w);
}

static const struct whole_row *row_of(const char *name)
{
	const struct op_row *r = ptx_op_row(name, strlen(name));
	const struct whole_op *o = r ? ptx_whole_op(r->fn) : NULL;

	return o ? o->row : NULL;
}

static bool prepare(struct emit *e)
{
	static _Atomic u64 ids;
	const struct ptx_func *f = e->b.f;
	const struct whole_row *load = row_of("ld:s:u32:w"), *fma = row_of("fma.rn.f32");
	u32 nconsts = (u32)(f->pool - f->pool_mem) / 64 + 1;

	e->const_at[0] = take(e, nconsts * sizeof(u32));
	e->const_at[1] = take(e, nconsts * sizeof(u32));
	e->hoisted_at[0] = take(e, f->ncode * sizeof(u32));
	e->hoisted_at[1] = take(e, f->ncode * sizeof(u32));
	e->out->consts = calloc(2 * nconsts, sizeof(struct whole_const));
	e->out->frame_size = (f->frame_size + 63) & ~63u;
	e->out->id = atomic_fetch_add(&ids, 1) + 1;
	if (load && fma) {
		e->load_one = load->scalar;
		e->load_run = load->vector;
		e->fma_mixed = fma->mixed;
	}
	return !e->failed && e->out->consts;
}

static struct whole *build(const struct ptx_func *f, u32 shape)
{
	static const whole_fn *const special[] = {ptx_whole_special_v2, ptx_whole_special_v3, ptx_whole_special_v4};
	static const u32 bytes[RC_COUNT] = {4, 2 * WARP, 4 * WARP, 8 * WARP};
	struct emit e = {.b = {.f = f, .shape = shape}, .special = special[ptx_op_level_index()]};
	struct build *b = &e.b;

	for (u32 c = 0; c < RC_COUNT; c++) {
		b->first[c] = b->nslots;
		b->nslots += (f->reg_base[c + 1] - f->reg_base[c]) / bytes[c];
	}
	b->words = (b->nslots + 63) / 64;
	e.out = calloc(1, sizeof(*e.out));
	e.choice = take(&e, f->ncode * sizeof(*e.choice));
	e.spread = take(&e, f->ncode);
	e.dies = take(&e, f->ncode);
	e.live = take(&e, f->ncode * sizeof(u64 *));
	e.wide = take(&e, f->ncode * sizeof(u64 *));
	b->ops = take(&e, f->ncode * sizeof(*b->ops));
	e.failed |= !e.out;
	if (!e.failed && find_blocks(&e) && prepare(&e)) {
		for (u32 k = 0; k < f->ncode; k++)
			b->ops[k] = ptx_whole_op(f->code[k].fn);
		solve_facts(&e);
		solve_back(&e);
		if (!e.failed)
			emit_all(&e);
	} else {
		e.failed = true;
	}
	bump_free(&e.mem);
	if (e.failed) {
		free_whole(e.out);
		return NULL;
	}
	return e.out;
}

/* Stands for "built, and there is none". */
static struct whole none;

const struct whole *ptx_whole_get(struct ptx_func *f, u32 shape)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct whole *w = atomic_load_explicit(&f->whole[shape], memory_order_acquire);

	if (!w) {
		pthread_mutex_lock(&lock);
		w = atomic_load(&f->whole[shape]);
		if (!w) {
			w = build(f, shape);
			w = w ? w : &none;
			atomic_store_explicit(&f->whole[shape], w, memory_order_release);
		}
		pthread_mutex_unlock(&lock);
	}
	return w == &none ? NULL : w;
}

void ptx_whole_free(struct ptx_func *f)
{
	for (u32 s = 0; s < WHOLE_SHAPES; s++) {
		struct whole *w = atomic_load(&f->whole[s]);

		if (w != &none)
			free_whole(w);
	}
}
