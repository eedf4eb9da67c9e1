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
	if (row && (!convertible(dt) || !convertible(st))) {
		lower_form(lo);
		return;
	}
	flags = mod_flags(lo);
	if (mod(lo, "relu") || !convertible(dt) || !convertible(st))
		lower_unsupported(lo, NULL);
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
