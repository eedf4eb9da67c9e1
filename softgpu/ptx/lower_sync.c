/* SPDX-License-Identifier: MIT */
/* Lowering of barriers and of instructions in which the lanes of a warp work together. */
#include <string.h>

#include "softgpu/ptx/lower.h"

/* With .sync the instruction waits for the lanes that @mask names; without, it takes whoever is there. @shape: MEET_… */
static void member_mask(struct lower *lo, struct ins *i, bool sync, s32 mask, u32 shape)
{
	if (!sync)
		return;
	i->kind = K_SYNC;
	i->sub = (u8)(MEET | shape);
	set_use(lo, i, 7, mask);
}

void lower_shfl(struct lower *lo)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
	bool sync = mod(lo, "sync");
	const struct opnd *o = lo->p->ops;
	s32 a, b, c, m = 0, d, p;
	const char *mode = NULL;
	struct ins *i;

	for (u32 k = 0; modes[k]; k++)
		if (mod(lo, modes[k]))
			mode = modes[k];
	mod_type(lo, 0);
	mods_done(lo);
	need_ops(lo, sync ? 5 : 4, sync ? 5 : 4);
	if (!mode)
		lower_unsupported(lo, NULL);
	a = src(lo, &o[1], 'w');
	b = src(lo, &o[2], 'w');
	c = src(lo, &o[3], 'w');
	if (sync)
		m = src(lo, &o[4], 'w');
	d = o[0].kind == O_SINK ? temp(lo, RC_32) : o[0].reg;
	if ((o[0].kind != O_REG && o[0].kind != O_SINK) || reg_class(lo, d) != RC_32)
		lower_unsupported(lo, "the result is not a 32-bit register");
	p = o[0].second && o[0].second->kind != O_SINK ? dst(lo, o[0].second, 'p') : temp(lo, RC_PRED);
	i = emit_op(lo, "shfl:%s", mode);
	set_use(lo, i, 1, a);
	set_use(lo, i, 2, b);
	set_use(lo, i, 3, c);
	set_def(lo, i, 0, d);
	set_def(lo, i, 4, p);
	member_mask(lo, i, sync, m, MEET_SOURCE | MEET_SHFL | MEET_PRED | MEET_SHAPE(RC_32, RC_32));
}

void lower_vote(struct lower *lo)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot", NULL};
	bool sync = mod(lo, "sync");
	const char *mode = NULL;
	struct ins *i;
	s32 q, m = 0;

	for (u32 k = 0; modes[k]; k++)
		if (mod(lo, modes[k]))
			mode = modes[k];
	mod_type(lo, 0);
	mods_done(lo);
	need_ops(lo, sync ? 3 : 2, sync ? 3 : 2);
	if (!mode)
		lower_unsupported(lo, NULL);
	q = pred_src(lo, &lo->p->ops[1]);
	if (sync)
		m = src(lo, &lo->p->ops[2], 'w');
	i = emit_op(lo, "vote:%s", mode);
	set_use(lo, i, 1, q);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], strcmp(mode, "ballot") ? 'p' : 'w'));
	member_mask(lo, i, sync, m, MEET_SOURCE | MEET_SHAPE(strcmp(mode, "ballot") ? RC_PRED : RC_32, RC_PRED));
}

void lower_match(struct lower *lo)
{
	bool all = mod(lo, "all"), any = mod(lo, "any"), sync = mod(lo, "sync");
	const struct opnd *o = lo->p->ops;
	enum type t = mod_type(lo, 0);
	struct ins *i;
	s32 a, m, d, p;

	mods_done(lo);
	need_ops(lo, 3, 3);
	if (all == any || !sync || (t != TY_B32 && t != TY_B64))
		lower_unsupported(lo, NULL);
	a = src(lo, &o[1], t == TY_B32 ? 'w' : 'd');
	m = src(lo, &o[2], 'w');
	d = o[0].kind == O_SINK ? temp(lo, RC_32) : o[0].reg;
	if ((o[0].kind != O_REG && o[0].kind != O_SINK) || reg_class(lo, d) != RC_32)
		lower_unsupported(lo, "the result is not a 32-bit register");
	p = o[0].second && o[0].second->kind != O_SINK ? dst(lo, o[0].second, 'p') : temp(lo, RC_PRED);
	i = emit_op(lo, "match:%s:%s", all ? "all" : "any", t == TY_B32 ? "w" : "d");
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, d);
	set_def(lo, i, 4, p);
	member_mask(lo, i, true, m, MEET_SOURCE | MEET_PRED | MEET_SHAPE(RC_32, t == TY_B32 ? RC_32 : RC_64));
}

void lower_redux(struct lower *lo)
{
	static const char *const ops[] = {"add", "min", "max", "and", "or", "xor", NULL};
	enum type t = mod_type(lo, 0);
	const char *op = NULL, *kind = "";
	bool order, abs, nan;
	struct ins *i;
	s32 a, m;

	mod(lo, "sync");
	for (u32 k = 0; ops[k]; k++)
		if (mod(lo, ops[k]))
			op = ops[k];
	abs = t == TY_F32 && mod(lo, "abs");
	nan = t == TY_F32 && mod(lo, "NaN");
	mods_done(lo);
	need_ops(lo, 3, 3);
	order = op && (!strcmp(op, "min") || !strcmp(op, "max"));
	if (!op || (t != TY_U32 && t != TY_S32 && t != TY_B32 && (t != TY_F32 || !order)))
		lower_unsupported(lo, NULL);
	if (order)
		kind = t == TY_S32 ? ":s32" : t == TY_F32 ? ":f32" : ":u32";
	a = src(lo, &lo->p->ops[1], 'w');
	m = src(lo, &lo->p->ops[2], 'w');
	i = emit_op(lo, "redux:%s%s", op, kind);
	i->imm = abs | nan << 1;
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'w'));
	member_mask(lo, i, true, m, MEET_SOURCE | MEET_SHAPE(RC_32, RC_32));
}

void lower_activemask(struct lower *lo)
{
	struct ins *i;

	mod_type(lo, 0);
	mods_done(lo);
	need_ops(lo, 1, 1);
	i = emit_op(lo, "activemask:");
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'w'));
}

void lower_elect(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	struct ins *i;
	s32 m, d;

	mod(lo, "sync");
	mods_done(lo);
	need_ops(lo, 2, 2);
	m = src(lo, &o[1], 'w');
	if (!o[0].second || (o[0].kind != O_REG && o[0].kind != O_SINK))
		lower_unsupported(lo, "the results are not d|p");
	d = o[0].kind == O_SINK ? temp(lo, RC_32) : o[0].reg;
	if (reg_class(lo, d) != RC_32)
		lower_unsupported(lo, "the result is not a 32-bit register");
	i = emit_op(lo, "elect:");
	set_def(lo, i, 0, d);
	set_def(lo, i, 4, dst(lo, o[0].second, 'p'));
	member_mask(lo, i, true, m, MEET_PRED | MEET_SHAPE(RC_32, RC_32));
}

static void emit_bar(struct lower *lo, enum bar_mode mode, s32 id, s32 count)
{
	struct ins *i = emit(lo, NULL, K_BAR);

	i->imm = mode;
	set_use(lo, i, 1, id);
	set_use(lo, i, 2, count);
}

static void lower_bar_red(struct lower *lo)
{
	static const struct {
		const char *name;
		enum bar_mode mode;
		char sig;
	} modes[] = {{"popc", BAR_RED_POPC, 'w'}, {"and", BAR_RED_AND, 'p'}, {"or", BAR_RED_OR, 'p'}};
	const struct opnd *o = lo->p->ops;
	s32 id, count, q;
	u32 m = 3;

	for (u32 k = 0; k < 3; k++)
		if (mod(lo, modes[k].name))
			m = k;
	mod_type(lo, 0);
	mods_done(lo);
	need_ops(lo, 3, 4);
	if (m == 3)
		lower_unsupported(lo, NULL);
	id = src(lo, &o[1], 'w');
	count = lo->p->nops == 4 ? src(lo, &o[2], 'w') : const_reg(lo, RC_32, 0);
	q = pred_src(lo, &o[lo->p->nops - 1]);
	emit_bar(lo, modes[m].mode, id, count);
	set_use(lo, &lo->code[lo->n - 1], 3, q);
	set_def(lo, &lo->code[lo->n - 1], 0, dst(lo, &o[0], modes[m].sig));
}

void lower_bar(struct lower *lo)
{
	static const char *const hints[] = {"aligned", "cta", "acquire", "release", "relaxed", NULL};
	u32 n = lo->p->nops;
	s32 id, count;

	mods_ignore(lo, hints);
	if (mod(lo, "warp")) {
		struct ins *i;
		s32 m;

		mod(lo, "sync");
		mods_done(lo);
		need_ops(lo, 1, 1);
		m = src(lo, &lo->p->ops[0], 'w');
		i = emit_op(lo, "warpsync:");
		i->kind = K_WARPSYNC;
		set_use(lo, i, 7, m);
		return;
	}
	if (mod(lo, "cluster")) {
		bool wait = mod(lo, "wait");

		if (wait == mod(lo, "arrive"))
			lower_unsupported(lo, NULL);
		mods_done(lo);
		need_ops(lo, 0, 0);
		emit(lo, NULL, K_CLUSTER)->imm = wait;
		return;
	}
	if (mod(lo, "red")) {
		lower_bar_red(lo);
		return;
	}
	if (mod(lo, "arrive")) {
		mods_done(lo);
		need_ops(lo, 2, 2);
		id = src(lo, &lo->p->ops[0], 'w');
		count = src(lo, &lo->p->ops[1], 'w');
		emit_bar(lo, BAR_ARRIVE, id, count);
		return;
	}
	if (!mod(lo, "sync"))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 1, 2);
	id = src(lo, &lo->p->ops[0], 'w');
	count = n == 2 ? src(lo, &lo->p->ops[1], 'w') : const_reg(lo, RC_32, 0);
	emit_bar(lo, BAR_SYNC, id, count);
}
