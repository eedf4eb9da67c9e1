/* SPDX-License-Identifier: MIT */
/* Lowering of mov in all its shapes, address conversions, and comparisons with predicate results. */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/lower.h"

/* The register class of a part of @bits; bytes live in 16-bit registers. */
static enum rclass part_class(struct lower *lo, u32 bits)
{
	switch (bits) {
	case 8:
	case 16:
		return RC_16;
	case 32:
		return RC_32;
	case 64:
		return RC_64;
	default:
		lower_unsupported(lo, "parts of this size");
	}
}

/* One part of @from, @shift bits above its low end. */
static void unpack_one(struct lower *lo, const struct opnd *d, s32 from, u32 part, u32 shift)
{
	enum rclass c, want = part_class(lo, part);
	struct ins *i;
	s32 to;

	if (d->kind == O_SINK)
		return;
	to = dst_any(lo, d, want, &c);
	if (c != want)
		lower_unsupported(lo, "parts of another size");
	if (part == 64) {
		emit_mov(lo, to, from);
		return;
	}
	i = emit_op(lo, "unpack:%c%c", part == 8 ? 'b' : class_char(c), class_char(reg_class(lo, from)));
	i->imm = shift;
	set_use(lo, i, 1, from);
	set_def(lo, i, 0, to); /* never the source: the parts are smaller than it, or in bytes and end with it */
}

/* mov.b32 {h, h}, w and the like: parts of a register, low part first. */
static void unpack(struct lower *lo, u32 bits)
{
	const struct opnd *d = &lo->p->ops[0];
	u32 part = bits / d->nlist, in_reg = bits == 128 ? 64 : bits;
	s32 from;

	if (part * d->nlist != bits || part == bits)
		lower_unsupported(lo, "parts of this size");
	from = bits == 128 ? half128(lo, &lo->p->ops[1], false) : src(lo, &lo->p->ops[1], class_char(part_class(lo, bits)));
	if (bits == 16) { /* the parts may be in registers of the same size */
		s32 whole = temp(lo, RC_16);

		emit_mov(lo, whole, from);
		from = whole;
	}
	for (u32 k = 0; k < d->nlist; k++)
		unpack_one(lo, &d->list[k], from + (s32)(k * part / in_reg), part, k * part % in_reg);
}

static void pack_one(struct lower *lo, s32 to, const struct opnd *list, u32 n, u32 part)
{
	char c = class_char(part_class(lo, part));
	struct ins *i;
	s32 r[4];

	for (u32 k = 0; k < n; k++)
		r[k] = src(lo, &list[k], c);
	if (part == 64) {
		emit_mov(lo, to, r[0]);
		return;
	}
	i = emit_op(lo, "pack:%c:%u%s", class_char(reg_class(lo, to)), n, part == 8 ? "b" : "");
	for (u32 k = 0; k < n; k++)
		set_use(lo, i, k + 1, r[k]);
	set_def(lo, i, 0, to);
}

static void pack(struct lower *lo, u32 bits)
{
	const struct opnd *d = &lo->p->ops[0], *s = &lo->p->ops[1];
	u32 part = bits / s->nlist, n;
	s32 to;

	if (part * s->nlist != bits || part == bits || s->nlist > 4)
		lower_unsupported(lo, "parts of this size");
	if (bits < 128) {
		pack_one(lo, dst(lo, d, class_char(part_class(lo, bits))), s->list, s->nlist, part);
		return;
	}
	/* The halves of the result are no sources. */
	to = half128(lo, d, true);
	n = s->nlist / 2;
	pack_one(lo, to, s->list, n, part);
	pack_one(lo, to + 1, s->list + n, n, part);
}

/* mov.v4.u32 V, {a, b, c, d}: element by element, all sources read first. */
static void mov_vector(struct lower *lo, u32 n, enum rclass c)
{
	const struct opnd *o = lo->p->ops;
	s32 r[4];

	if (o[0].kind != O_VEC || o[1].kind != O_VEC || o[0].nlist != n || o[1].nlist != n)
		lower_unsupported(lo, "the vector has another number of elements");
	for (u32 k = 0; k < n; k++) {
		r[k] = temp(lo, c);
		emit_mov(lo, r[k], src(lo, &o[1].list[k], class_char(c)));
	}
	for (u32 k = 0; k < n; k++)
		if (o[0].list[k].kind != O_SINK)
			emit_mov(lo, dst(lo, &o[0].list[k], class_char(c)), r[k]);
}

void lower_mov(struct lower *lo)
{
	u32 lanes = mod(lo, "v2") ? 2 : mod(lo, "v4") ? 4 : 1;
	enum type t = mod_type(lo, 0);
	enum rclass c = type_class(t);
	s32 from, to;

	mods_done(lo);
	need_ops(lo, 2, 2);
	if (t == TY_NONE || (c == RC_COUNT && lanes > 1))
		lower_unsupported(lo, NULL);
	if (lanes > 1) {
		mov_vector(lo, lanes, c);
		return;
	}
	if (lo->p->ops[0].kind == O_VEC) {
		unpack(lo, type_size(t) * 8);
		return;
	}
	if (lo->p->ops[1].kind == O_VEC) {
		pack(lo, type_size(t) * 8);
		return;
	}
	if (c == RC_COUNT) {
		from = half128(lo, &lo->p->ops[1], false);
		to = half128(lo, &lo->p->ops[0], true);
		emit_mov(lo, to, from);
		emit_mov(lo, to + 1, from + 1);
		return;
	}
	from = src(lo, &lo->p->ops[1], class_char(c));
	/* A special register was read into a temporary: into the result itself, then. */
	if (lo->p->ops[1].kind == O_SREG && lo->n && from >= (s32)lo->ast->nregs && lo->code[lo->n - 1].r[0] == from)
		lo->code[lo->n - 1].r[0] = dst(lo, &lo->p->ops[0], class_char(c));
	else
		emit_mov(lo, dst(lo, &lo->p->ops[0], class_char(c)), from);
}

/* cvta{.to}.space: adds or takes away the window of shared, local and parameter addresses. */
void lower_cvta(struct lower *lo)
{
	bool to = mod(lo, "to");
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	u64 window = 0;
	struct ins *i;
	s32 a, w;

	mods_done(lo);
	need_ops(lo, 2, 2);
	if (t != TY_U64 || sp == SP_GENERIC)
		lower_unsupported(lo, NULL);
	if (sp == SP_SHARED)
		window = WINDOW_SHARED << WINDOW_SHIFT;
	else if (sp == SP_LOCAL)
		window = WINDOW_LOCAL << WINDOW_SHIFT;
	else if (sp == SP_PARAM)
		window = WINDOW_PARAM << WINDOW_SHIFT;
	a = src(lo, &lo->p->ops[1], 'd');
	if (!window) {
		emit_mov(lo, dst(lo, &lo->p->ops[0], 'd'), a);
		return;
	}
	w = const_reg(lo, RC_64, to ? -window : window);
	i = emit_op(lo, "add.u64");
	set_use(lo, i, 1, a);
	set_use(lo, i, 2, w);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'd'));
}

void lower_isspacep(struct lower *lo)
{
	bool cluster = mod(lo, "shared::cluster");
	enum space sp = mod_space(lo);
	struct ins *i;
	s32 a;

	mods_done(lo);
	need_ops(lo, 2, 2);
	a = src(lo, &lo->p->ops[1], 'd');
	i = emit_op(lo, "isspacep:");
	i->imm = sp;
	i->sub = sp == SP_SHARED && !cluster;
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'p'));
}

/* mapa{.shared::cluster}.type d, a, rank; getctarank{.shared::cluster}.type d, a: generic addresses without the space */
static void cluster_address(struct lower *lo, const char *name, bool map)
{
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	struct ins *i;
	s32 a, rank = 0;
	char c;

	mods_done(lo);
	need_ops(lo, map ? 3 : 2, map ? 3 : 2);
	if ((t != TY_U32 && t != TY_U64) || (sp != SP_SHARED && sp != SP_GENERIC))
		lower_unsupported(lo, NULL);
	c = class_char(type_class(t));
	a = src(lo, &lo->p->ops[1], c);
	if (map)
		rank = src(lo, &lo->p->ops[2], 'w');
	i = emit_op(lo, "%s:%c", name, c);
	set_use(lo, i, 1, a);
	if (map)
		set_use(lo, i, 2, rank);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], map ? c : 'w'));
}

void lower_mapa(struct lower *lo)
{
	cluster_address(lo, "mapa", true);
}

void lower_getctarank(struct lower *lo)
{
	cluster_address(lo, "getctarank", false);
}

static s32 pred_op(struct lower *lo, const char *op, s32 a, s32 b)
{
	struct ins *i = emit_op(lo, "%s.pred", op);
	s32 t = temp(lo, RC_PRED);

	set_use(lo, i, 1, a);
	if (b != NO_GUARD)
		set_use(lo, i, 2, b);
	set_def(lo, i, 0, t);
	return t;
}

static char sig_of(enum type t)
{
	if (t == TY_F32)
		return 'f';
	if (t == TY_F64)
		return 'F';
	return class_char(type_class(t));
}

/* Denormal inputs count as zero with .ftz. */
static s32 flush(struct lower *lo, s32 a, enum type t)
{
	struct ins *i;
	s32 r;

	if (t != TY_F32 && t != TY_F16 && t != TY_F16X2)
		lower_unsupported(lo, ".ftz of this type");
	i = emit_op(lo, "ftz:%s", t == TY_F32 ? "f32" : t == TY_F16 ? "f16" : "f16x2");
	set_use(lo, i, 1, a);
	r = temp(lo, type_class(t));
	set_def(lo, i, 0, r);
	return r;
}

/* The comparison of a setp or set as a fresh predicate; both halves of packed types use @half. */
static s32 compare(struct lower *lo, enum type t, const char *half)
{
	static const char *const ops[] = {"eq",	 "ne",	"lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi", "hs",
					  "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", NULL};
	const char *op = NULL;
	bool ftz = mod(lo, "ftz");
	struct ins *i;
	s32 a, b, r;

	for (u32 k = 0; ops[k] && !op; k++)
		if (mod(lo, ops[k]))
			op = ops[k];
	if (!op || t == TY_NONE)
		lower_unsupported(lo, NULL);
	a = src(lo, &lo->p->ops[1], sig_of(t));
	b = src(lo, &lo->p->ops[2], sig_of(t));
	if (ftz) {
		a = flush(lo, a, t);
		b = flush(lo, b, t);
	}
	for (u32 k = 1; k < lo->nmod; k++)
		if (type_by_name(lo->mod[k].s, lo->mod[k].len) == t) {
			i = emit_op(lo, "setp.%s.%.*s%s", op, (int)lo->mod[k].len, lo->mod[k].s, half);
			set_use(lo, i, 1, a);
			set_use(lo, i, 2, b);
			r = temp(lo, RC_PRED);
			set_def(lo, i, 0, r);
			return r;
		}
	lower_unsupported(lo, NULL);
}

static const char *bool_op(struct lower *lo)
{
	if (mod(lo, "and"))
		return "and";
	if (mod(lo, "or"))
		return "or";
	if (mod(lo, "xor"))
		return "xor";
	return NULL;
}

void lower_setp(struct lower *lo)
{
	const char *combine = bool_op(lo);
	enum type t = mod_type(lo, 0);
	const struct opnd *d = &lo->p->ops[0];
	bool packed = t == TY_F16X2 || t == TY_BF16X2;
	s32 r, q = -1;

	need_ops(lo, combine ? 4 : 3, combine ? 4 : 3);
	r = compare(lo, t, packed ? ":lo" : "");
	if (packed)
		q = compare(lo, t, ":hi");
	else if (d->second && d->second->kind != O_SINK)
		q = pred_op(lo, "not", r, NO_GUARD);
	mods_done(lo);
	if (combine) {
		s32 c = pred_src(lo, &lo->p->ops[3]);

		r = pred_op(lo, combine, r, c);
		if (q >= 0)
			q = pred_op(lo, combine, q, c);
	}
	if (!combine && !d->second && d->kind == O_REG && !d->inverted && lo->cls[d->reg] == RC_PRED) {
		lo->code[lo->n - 1].r[0] = d->reg; /* the common case writes its predicate directly */
		return;
	}
	if (d->kind != O_SINK) {
		enum rclass c;
		s32 p = dst_any(lo, d, RC_PRED, &c);

		if (c != RC_PRED)
			lower_unsupported(lo, "the result is not a predicate");
		emit_mov(lo, p, r);
	}
	if (d->second && d->second->kind != O_SINK)
		emit_mov(lo, dst(lo, d->second, 'p'), q);
}

/* Which results a set may have for which operands. */
static bool set_types(enum type d, enum type s, bool ftz)
{
	bool integer = !type_is_float(s), pair = s == TY_F16X2 || s == TY_BF16X2;

	switch (d) {
	case TY_U32:
	case TY_S32:
		return true;
	case TY_U16:
	case TY_S16:
		return s == TY_F16 || s == TY_BF16;
	case TY_F32:
	case TY_F16:
		return !pair && (integer || s == TY_F32 || s == TY_F64 || s == d);
	case TY_BF16:
		return !pair && !ftz;
	default:
		return s == d && (d == TY_F16X2 || d == TY_BF16X2);
	}
}

/* set.cmp.dtype.stype: all ones or 1.0 where the comparison holds. */
void lower_set(struct lower *lo)
{
	const char *combine = bool_op(lo);
	enum type dt = mod_type(lo, 0), t = mod_type(lo, 1);
	bool packed = t == TY_F16X2 || t == TY_BF16X2;
	enum rclass c = type_class(dt);
	u64 one;
	s32 r, hi = 0;
	struct ins *i;

	need_ops(lo, combine ? 4 : 3, combine ? 4 : 3);
	if (!set_types(dt, t, mod(lo, "ftz")))
		lower_unsupported(lo, NULL);
	switch (dt) {
	case TY_F32:
		one = 0x3f800000;
		break;
	case TY_F16:
		one = 0x3c00;
		break;
	case TY_BF16:
		one = 0x3f80;
		break;
	case TY_F16X2:
		one = 0x3c003c00;
		break;
	case TY_BF16X2:
		one = 0x3f803f80;
		break;
	case TY_U32:
	case TY_S32:
	case TY_U16:
	case TY_S16:
		one = ~0ull;
		break;
	default:
		lower_unsupported(lo, NULL);
	}
	r = compare(lo, t, packed ? ":lo" : "");
	if (packed)
		hi = compare(lo, t, ":hi");
	mods_done(lo);
	if (combine) {
		s32 p = pred_src(lo, &lo->p->ops[3]);

		r = pred_op(lo, combine, r, p);
		if (packed)
			hi = pred_op(lo, combine, hi, p);
	}
	if (packed) {
		s32 t0 = temp(lo, RC_32), t1 = temp(lo, RC_32);

		if (c != RC_32)
			lower_unsupported(lo, NULL);
		i = emit_op(lo, "selp.b32");
		set_use(lo, i, 1, const_reg(lo, RC_32, one & 0xffff));
		set_use(lo, i, 2, const_reg(lo, RC_32, 0));
		set_use(lo, i, 3, r);
		set_def(lo, i, 0, t0);
		i = emit_op(lo, "selp.b32");
		set_use(lo, i, 1, const_reg(lo, RC_32, one & 0xffff0000));
		set_use(lo, i, 2, const_reg(lo, RC_32, 0));
		set_use(lo, i, 3, hi);
		set_def(lo, i, 0, t1);
		i = emit_op(lo, "or.b32");
		set_use(lo, i, 1, t0);
		set_use(lo, i, 2, t1);
		set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'w'));
		return;
	}
	i = emit_op(lo, "selp.b%u", type_size(dt) * 8);
	set_use(lo, i, 1, const_reg(lo, c, one));
	set_use(lo, i, 2, const_reg(lo, c, 0));
	set_use(lo, i, 3, r);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], class_char(c)));
}

/* lop3.b32 d, a, b, c, table; lop3.{or,and}.b32 d|p, a, b, c, table, q: p = (d != 0) op q */
void lower_lop3(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	const char *op = bool_op(lo);
	s32 a, b, c, d, p;
	struct ins *i;

	if (mod_type(lo, 0) != TY_B32)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, op ? 6 : 5, op ? 6 : 5);
	if (o[4].kind != O_INT || o[4].val > 255)
		lower_unsupported(lo, "the table is not a constant below 256");
	a = src(lo, &o[1], 'w');
	b = src(lo, &o[2], 'w');
	c = src(lo, &o[3], 'w');
	d = o[0].kind == O_SINK ? temp(lo, RC_32) : o[0].reg;
	if ((o[0].kind != O_REG && o[0].kind != O_SINK) || reg_class(lo, d) != RC_32 || !op != !o[0].second)
		lower_unsupported(lo, "the result is not a 32-bit register");
	i = emit_op(lo, "lop3:");
	i->imm = o[4].val;
	set_use(lo, i, 1, a);
	set_use(lo, i, 2, b);
	set_use(lo, i, 3, c);
	set_def(lo, i, 0, d);
	if (!op)
		return;
	i = emit_op(lo, "setp.ne.u32");
	set_use(lo, i, 1, d);
	set_use(lo, i, 2, const_reg(lo, RC_32, 0));
	p = temp(lo, RC_PRED);
	set_def(lo, i, 0, p);
	p = pred_op(lo, op, p, pred_src(lo, &o[5]));
	emit_mov(lo, dst(lo, o[0].second, 'p'), p);
}
