/* SPDX-License-Identifier: MIT */
/* The whole-warp form's second half: blocks, the solution of the flow equations, and the code. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/whole_build.h"

void *wb_take(struct emit *e, size_t bytes)
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
	u8 *lead = wb_take(e, f->ncode + 1);
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
	b->blocks = wb_take(e, n * sizeof(*b->blocks));
	b->block_of = wb_take(e, f->ncode * sizeof(u32));
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

		bl->in = wb_take(e, b->nslots * sizeof(*bl->in));
		bl->live = wb_take(e, SETS * b->words * 8);
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

bool wb_again(struct emit *e)
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
	struct fact *facts = wb_take(e, b->nslots * sizeof(*facts));
	bool changed = true;

	b->blocks[0].entry = true;
	while (changed && wb_again(e)) {
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
			e->live[at] = wb_take(e, 2 * words * 8);
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
	u64 *sets = wb_take(e, SETS * b->words * 8);
	bool changed = true;

	while (changed && wb_again(e)) {
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
		w = add(e, e->known.special[c->no_wrap], i);
		w->r[1] = i->r[c->checked];
		w->step = c->step;
	}
	switch ((enum form)c->form) {
	case FORM_NONE:
		break;
	case FORM_GENERAL:
		add(e, e->known.special[WS_GENERAL], i);
		break;
	case FORM_LANE0:
		add(e, e->known.special[WS_LANE0], i);
		break;
	case FORM_GUARDED:
		add(e, e->known.special[WS_GUARDED], i)->r[7] = i->guard;
		break;
	case FORM_FAST:
	case FORM_LEAVES:
		w = add(e, c->fn, i);
		w->step = c->step;
		w->step2 = c->step2;
		wb_place_operands(e, w, at, facts);
		break;
	case FORM_SPECIAL:
		add(e, e->known.special[c->special], i)->imm = c->imm;
		break;
	case FORM_BRANCH:
		w = add(e, e->known.special[branch_kind(e, at)], i);
		w->r[7] = i->guard;
		w->imm = i->guard_inverted ? FULL : 0;
		w->r[6] = (s32)i->target; /* until all places are known */
		break;
	case FORM_CONTROL:
		add(e, e->known.special[WS_CONTROL], i);
		break;
	case FORM_SLOW:
		add(e, e->known.special[WS_SLOW], i);
		break;
	}
	for (u32 k = first; k < e->ncode; k++)
		e->out->slow[k] = slow;
spread:
	for (u32 k = 0; k < NREGS; k++)
		if (e->spread[at] >> k & 1) {
			u32 cls;

			wb_slot(&e->b, i->r[k], &cls);
			w = add(e, e->known.special[WS_SPREAD16 + cls - RC_16], i);
			w->r[0] = i->r[k];
			w->r[1] = c->result.hoisted ? wb_hoisted_at(e, at, false) : i->r[k];
			w->step = c->result.step;
		}
	if (e->ncode > first)
		wb_fuse(e, block_at, at);
}

static void emit_all(struct emit *e)
{
	struct build *b = &e->b;
	const struct ptx_func *f = b->f;
	struct fact *facts = wb_take(e, b->nslots * sizeof(*facts));
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
	wb_hoisted(e);
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
				add(e, e->known.special[WS_SLOW], &f->code[at]);
				continue;
			}
			emit_one(e, bl->at, at, facts);
			wb_apply(b, at, &e->choice[at], facts);
		}
	}
	if (e->failed)
		return;
	wb_hoisted_end(e);
	for (u32 k = 0; k < e->ncode; k++) {
		struct wins *w = &e->out->code[k];

		if (w->i->kind == K_BRA && w->fn != e->known.special[WS_SLOW])
			w->r[6] = (s32)e->out->at[w->r[6]] - (s32)k;
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

static bool prepare(struct emit *e)
{
	static _Atomic u64 ids;
	const struct ptx_func *f = e->b.f;
	u32 nconsts = (u32)(f->pool - f->pool_mem) / 64 + 1;

	e->const_at[0] = wb_take(e, nconsts * sizeof(u32));
	e->const_at[1] = wb_take(e, nconsts * sizeof(u32));
	e->hoisted_at[0] = wb_take(e, f->ncode * sizeof(u32));
	e->hoisted_at[1] = wb_take(e, f->ncode * sizeof(u32));
	e->out->consts = calloc(2 * nconsts, sizeof(struct whole_const));
	e->out->frame_size = (f->frame_size + 63) & ~63u;
	e->out->id = atomic_fetch_add(&ids, 1) + 1;
	wb_known(&e->known);
	return !e->failed && e->out->consts;
}

static struct whole *build(const struct ptx_func *f, u32 shape)
{
	static const u32 bytes[RC_COUNT] = {4, 2 * WARP, 4 * WARP, 8 * WARP};
	struct emit e = {.b = {.f = f, .shape = shape}};
	struct build *b = &e.b;

	for (u32 c = 0; c < RC_COUNT; c++) {
		b->first[c] = b->nslots;
		b->nslots += (f->reg_base[c + 1] - f->reg_base[c]) / bytes[c];
	}
	b->words = (b->nslots + 63) / 64;
	e.out = calloc(1, sizeof(*e.out));
	e.choice = wb_take(&e, f->ncode * sizeof(*e.choice));
	e.spread = wb_take(&e, f->ncode);
	e.dies = wb_take(&e, f->ncode);
	e.live = wb_take(&e, f->ncode * sizeof(u64 *));
	e.wide = wb_take(&e, f->ncode * sizeof(u64 *));
	b->ops = wb_take(&e, f->ncode * sizeof(*b->ops));
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
