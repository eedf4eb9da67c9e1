/* SPDX-License-Identifier: MIT */
/* Lowering of cvt: a fast handler when the table has the exact form, else the general one that knows all types. */
#include <string.h>

#include "softgpu/ptx/lower.h"

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

void lower_cvt(struct lower *lo)
{
	const struct op_row *row = ptx_op_find(lo->p->op, lo->p->len);
	const struct opnd *o = lo->p->ops;
	enum type dt, st;
	enum rclass dc, sc;
	u64 flags;
	struct ins *i;
	s32 d, a;

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
