/* SPDX-License-Identifier: MIT */
/* Lowering of cvt: a fast handler when the table has the exact form, else the general one that knows all types. */
#include <string.h>

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/small.h"

static enum rclass sig_cls(char c)
{
	return c == 'h' ? RC_16 : (c == 'w' || c == 'f') ? RC_32 : RC_64;
}

static bool convertible(enum type t)
{
	return (t >= TY_U8 && t <= TY_BF16);
}

static u32 value_bits(enum type t)
{
	return 8 * type_size(t) - type_is_signed(t);
}

/* Which rounding, .ftz and .sat a pair of types has: what another assembler refuses is not run here either. */
static bool legal(struct lower *lo, enum type d, enum type s, u64 flags)
{
	bool integral = mod(lo, "rni") || mod(lo, "rzi") || mod(lo, "rmi") || mod(lo, "rpi");
	bool none = !(flags & MF_RND), fp = !none && !integral && (flags & MF_RND) != RND_NA;
	bool ftz = flags & MF_FTZ, sat = flags & MF_SAT, to_int = !type_is_float(d), from_int = !type_is_float(s);

	if ((flags & MF_APPROX) || (ftz && d != TY_F32 && s != TY_F32))
		return false;
	if (d == TY_BF16 || s == TY_BF16) {
		if (sat || (ftz && d != TY_F32 && !(d == TY_BF16 && s == TY_F32)))
			return false;
		if (d == s)
			return none || integral;
		if (to_int || from_int)
			return to_int ? integral : fp;
		return fp || (none && s != TY_F32 && s != TY_F64);
	}
	if (to_int && from_int) /* .sat only where a value may be out of range */
		return none && (!sat || value_bits(d) < value_bits(s) || (!type_is_signed(d) && type_is_signed(s)));
	if (to_int)
		return integral;
	if (d == s)
		return none || integral;
	return !from_int && type_size(s) < type_size(d) ? none : fp;
}

static bool tiny(enum type t)
{
	return t == TY_E4M3X2 || t == TY_E5M2X2 || t == TY_E3M2X2 || t == TY_E2M3X2 || t == TY_E2M1X2 || t == TY_UE8M0X2;
}

/* Two short floats to a pair of 16-bit floats. */
static void unpack_tiny(struct lower *lo, struct small s, enum type dt)
{
	struct ins *i;
	s32 a;

	if (!mod(lo, "rn") || dt != (s.from == TY_UE8M0X2 ? TY_BF16X2 : TY_F16X2) || (s.flags & SF_SATFINITE) ||
	    (s.from == TY_UE8M0X2 && s.flags))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 2);
	a = src(lo, &lo->p->ops[1], 'h');
	s.bits = s.from == TY_E2M1X2 ? 4 : 8;
	i = emit_op(lo, "small:unpacked");
	i->imm = small_pack(s);
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'w'));
}

/* Which rounding goes with which result; .satfinite is a must for 8, 6 and 4 bits. */
static bool short_form(struct small *s, enum type dt, enum type st, struct lower *lo)
{
	bool rn = mod(lo, "rn"), rz = mod(lo, "rz"), rp = mod(lo, "rp"), rna = mod(lo, "rna"), rs = mod(lo, "rs");

	s->rnd = rn ? RND_N : rz ? RND_Z : rp ? RND_P : rna ? RND_NA : RND_S;
	if (rn + rz + rp + rna + rs != 1)
		return false;
	if (dt == TY_UE8M0X2)
		return (rz || rp) && !(s->flags & SF_RELU) && (st == TY_F32 || st == TY_BF16X2);
	if (tiny(dt))
		return rn && (s->flags & SF_SATFINITE) && (st == TY_F32 || st == TY_F16X2 || st == TY_BF16X2);
	if (dt == TY_TF32)
		return st == TY_F32 && (rn || rz || (rna && !(s->flags & SF_RELU)));
	return st == TY_F32 && (rn || rz || (rs && (dt == TY_F16X2 || dt == TY_BF16X2)));
}

/* Conversions that have .relu, .satfinite, random bits, or short floats. */
static void to_short(struct lower *lo, struct small s, enum type dt, enum type st)
{
	const struct opnd *o = lo->p->ops;
	bool pair = st != TY_F32, two = !pair && (tiny(dt) || dt == TY_F16X2 || dt == TY_BF16X2);
	u32 n = 2 + two + (s.rnd == RND_S);
	s32 a, b = 0, r = 0;
	struct ins *i;

	mods_done(lo);
	need_ops(lo, n, n);
	s.from = (u8)st;
	s.to = dt == TY_F16X2 ? TY_F16 : dt == TY_BF16X2 ? TY_BF16 : (u8)dt;
	s.bits = dt == TY_E2M1X2 ? 4 : tiny(dt) ? 8 : 16;
	s.flags |= (two ? SF_TWO : 0) | (!tiny(dt) && type_size(dt) == 4 ? SF_WIDE : 0);
	a = src(lo, &o[1], pair ? 'w' : 'f');
	if (two)
		b = src(lo, &o[2], 'f');
	if (s.rnd == RND_S)
		r = src(lo, &o[n - 1], 'w');
	i = emit_op(lo, pair ? "small:pair" : "small:f32");
	i->imm = small_pack(s);
	set_use(lo, i, 1, a);
	if (two)
		set_use(lo, i, 2, b);
	if (s.rnd == RND_S)
		set_use(lo, i, 3, r);
	set_def(lo, i, 0, dst(lo, &o[0], s.flags & SF_WIDE ? 'w' : 'h'));
}

static bool lower_short(struct lower *lo)
{
	enum type dt = mod_type(lo, 0), st = mod_type(lo, 1);
	struct small s = {.from = (u8)st};

	s.flags = (mod(lo, "relu") ? SF_RELU : 0) | (mod(lo, "satfinite") ? SF_SATFINITE : 0);
	if (tiny(st)) {
		unpack_tiny(lo, s, dt);
		return true;
	}
	/* The plain forms of 16-bit results have handlers of their own. */
	if (!tiny(dt) && dt != TY_TF32 && dt != TY_F16X2 && dt != TY_BF16X2 &&
	    !(st == TY_F32 && (dt == TY_F16 || dt == TY_BF16) && s.flags)) {
		if (s.flags)
			lower_unsupported(lo, NULL);
		return false;
	}
	if (!short_form(&s, dt, st, lo))
		lower_unsupported(lo, NULL);
	to_short(lo, s, dt, st);
	return true;
}

void lower_cvt(struct lower *lo)
{
	const struct op_row *row = ptx_op_find(lo->p->op, lo->p->len);
	const struct opnd *o = lo->p->ops;
	enum type dt, st;
	enum rclass dc, sc;
	u64 flags;
	struct ins *i;
	s32 d, a;

	if (!row && lower_short(lo))
		return;
	if (lo->p->nops != 2) {
		lower_form(lo);
		return;
	}
	dt = mod_type(lo, 0);
	st = mod_type(lo, 1);
	if (row && (mod(lo, "relu") || mod(lo, "satfinite") || !convertible(dt) || !convertible(st))) {
		lower_form(lo);
		return;
	}
	if (!convertible(dt) || !convertible(st) || mod(lo, "relu") || mod(lo, "satfinite"))
		lower_unsupported(lo, NULL);
	flags = mod_flags(lo);
	if (!legal(lo, dt, st, flags))
		lower_unsupported(lo, "these types have no such conversion");
	mods_done(lo);
	a = src_any(lo, &o[1], type_class(st), &sc);
	d = dst_any(lo, &o[0], type_class(dt), &dc);
	if (sc == RC_PRED || dc == RC_PRED || sc < type_class(st) || dc < type_class(dt))
		lower_unsupported(lo, "a register smaller than its type");
	if (row && sig_cls(row->sig[0]) == dc && sig_cls(row->sig[1]) == sc) {
		i = emit(lo, row->fn, K_PLAIN);
	} else {
		i = emit_op(lo, "cvt:general");
		i->imm = flags | (u64)dc << 8 | (u64)sc << 12;
		i->size = (u8)dt;
		i->sub = (u8)st;
	}
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, d);
}
