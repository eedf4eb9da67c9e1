/* SPDX-License-Identifier: MIT */
/* Lowering of arithmetic that is made of other instructions: pairs of f32, minima of three and with signs, mixed precision. */
#include <string.h>

#include "softgpu/ptx/lower.h"

static bool is_op(struct lower *lo, const char *name)
{
	return lo->mod[0].len == strlen(name) && !memcmp(lo->mod[0].s, name, lo->mod[0].len);
}

/* Emits the table's instruction of that name with @n sources. */
static void emit_form(struct lower *lo, const char *name, s32 d, const s32 *s, u32 n)
{
	const struct op_row *row = ptx_op_find(name, strlen(name));
	struct ins *i;

	if (!row)
		lower_unsupported(lo, NULL);
	i = emit(lo, row->fn, K_PLAIN);
	if (row->flags & OP_MODS)
		i->imm = mod_flags(lo);
	for (u32 k = 0; k < n; k++)
		set_use(lo, i, k + 1, s[k]);
	set_def(lo, i, 0, d);
}

/* The opcode's text without its last @drop modifiers, and @tail behind it. */
static const char *form(struct lower *lo, u32 drop, const char *tail)
{
	u32 len = (u32)(lo->mod[lo->nmod - drop].s - 1 - lo->p->op);
	char *s = load_alloc(lo->ld, len + strlen(tail) + 1);

	memcpy(s, lo->p->op, len);
	strcpy(s + len, tail);
	return s;
}

/* add.f32x2 d, a, b: 64-bit registers that hold two f32 */
static void pairs(struct lower *lo)
{
	const char *name = form(lo, 1, ".f32");
	bool fma = is_op(lo, "fma");
	u32 n = fma ? 3 : 2;
	s32 v[3], half[2][3], r[2];
	struct ins *i;

	need_ops(lo, n + 1, n + 1);
	for (u32 k = 0; k < n; k++)
		v[k] = src(lo, &lo->p->ops[k + 1], 'd');
	for (u32 h = 0; h < 2; h++) {
		for (u32 k = 0; k < n; k++) {
			i = emit_op(lo, "unpack:wd");
			i->imm = 32 * h;
			set_use(lo, i, 1, v[k]);
			half[h][k] = temp(lo, RC_32);
			set_def(lo, i, 0, half[h][k]);
		}
		r[h] = temp(lo, RC_32);
		emit_form(lo, name, r[h], half[h], n);
	}
	i = emit_op(lo, "pack:d:2");
	set_use(lo, i, 1, r[0]);
	set_use(lo, i, 2, r[1]);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'd'));
}

/* @v, or what @name makes of it. */
static s32 applied(struct lower *lo, const char *name, s32 v)
{
	s32 t = temp(lo, reg_class(lo, v));

	emit_form(lo, name, t, &v, 1);
	return t;
}

static const char *joined(struct lower *lo, const char *a, const char *b, const char *c)
{
	char *s = load_alloc(lo->ld, strlen(a) + strlen(b) + strlen(c) + 1);

	strcpy(s, a);
	strcat(s, b);
	return strcat(s, c);
}

static const char *type_text(struct lower *lo)
{
	return load_strndup(lo->ld, lo->mod[lo->nmod - 1].s, lo->mod[lo->nmod - 1].len);
}

/* min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b and, of f32 alone, max{.ftz}{.NaN}{.abs}.f32 d, a, b, c */
static void minmax(struct lower *lo)
{
	bool ftz = mod(lo, "ftz"), nan = mod(lo, "NaN"), xorsign = mod(lo, "xorsign"), abs = mod(lo, "abs");
	u32 n = lo->p->nops - 1;
	enum type t = mod_type(lo, 0);
	const char *type = type_text(lo), *op = load_strndup(lo->ld, lo->mod[0].s, 3),
		   *name = joined(lo, nan ? ".NaN." : ".", type, "");
	enum rclass c = type_class(t);
	s32 v[3] = {0}, m[3] = {0}, r, d;
	struct ins *i;

	mods_done(lo);
	need_ops(lo, 3, t == TY_F32 ? 4 : 3);
	if (!type_is_float(t) || (xorsign && (!abs || n == 3)) || (abs && !xorsign && n == 2))
		lower_unsupported(lo, NULL);
	for (u32 k = 0; k < n; k++) {
		v[k] = src(lo, &lo->p->ops[k + 1], t == TY_F32 ? 'f' : class_char(c));
		if (ftz)
			v[k] = applied(lo, joined(lo, "ftz:", type, ""), v[k]);
		m[k] = abs ? applied(lo, joined(lo, "abs.", type, ""), v[k]) : v[k];
	}
	d = dst(lo, &lo->p->ops[0], class_char(c));
	r = n == 2 && !xorsign ? d : temp(lo, c);
	emit_form(lo, joined(lo, op, name, ""), r, m, 2);
	if (n == 3) {
		m[1] = r;
		emit_form(lo, joined(lo, op, name, ""), d, m + 1, 2);
	} else if (xorsign) {
		i = emit_op(lo, "xorsign:%s", t == TY_F32 ? "f" : c == RC_16 ? "h" : "x2");
		set_use(lo, i, 1, r);
		set_use(lo, i, 2, v[0]);
		set_use(lo, i, 3, v[1]);
		set_def(lo, i, 0, d);
	}
}

/* fma.rn.ftz.sat.f16 and its like: the operation without .ftz between operands and a result that are flushed */
static void flushed_half(struct lower *lo)
{
	bool rn = mod(lo, "rn"), sat = mod(lo, "sat"), relu = mod(lo, "relu"), fma = is_op(lo, "fma");
	u32 n = fma ? 3 : 2;
	const char *type = type_text(lo), *flush = joined(lo, "ftz:", type, ""), *op = load_strndup(lo->ld, lo->mod[0].s, 3);
	char c = class_char(type_class(mod_type(lo, 0)));
	s32 v[3] = {0}, r;

	mod(lo, "ftz");
	mods_done(lo);
	need_ops(lo, n + 1, n + 1);
	for (u32 k = 0; k < n; k++)
		v[k] = applied(lo, flush, src(lo, &lo->p->ops[k + 1], c));
	r = temp(lo, reg_class(lo, v[0]));
	emit_form(lo, joined(lo, joined(lo, op, rn ? ".rn" : "", sat ? ".sat" : relu ? ".relu" : ""), ".", type), r, v, n);
	emit_form(lo, flush, dst(lo, &lo->p->ops[0], c), &r, 1);
}

/* add.f32.f16 d, a, c; fma.rn.f32.bf16 d, a, b, c: the 16-bit operands become f32, which is exact */
static void mixed(struct lower *lo)
{
	u32 n = is_op(lo, "fma") ? 3 : 2;
	bool bf = mod(lo, "bf16");
	const char *name = form(lo, 1, "");
	s32 v[3] = {0}, t;

	need_ops(lo, n + 1, n + 1);
	for (u32 k = 0; k < n; k++) {
		bool narrow = k + 1 < n;

		v[k] = src(lo, &lo->p->ops[k + 1], narrow ? 'h' : 'f');
		if (narrow) {
			t = temp(lo, RC_32);
			emit_form(lo, bf ? "cvt.f32.bf16" : "cvt.f32.f16", t, &v[k], 1);
			v[k] = t;
		}
	}
	emit_form(lo, name, dst(lo, &lo->p->ops[0], 'w'), v, n);
}

static bool last_mod(struct lower *lo, u32 back, const char *name)
{
	u32 k = lo->nmod - 1 - back;

	return lo->nmod > back + 1 && lo->mod[k].len == strlen(name) && !memcmp(lo->mod[k].s, name, lo->mod[k].len);
}

bool lower_rare(struct lower *lo)
{
	bool sum = is_op(lo, "add") || is_op(lo, "sub") || is_op(lo, "fma"), any = sum || is_op(lo, "mul");
	enum type last = type_by_name(lo->mod[lo->nmod - 1].s, lo->mod[lo->nmod - 1].len);

	if (any && last_mod(lo, 0, "f32x2"))
		pairs(lo);
	else if ((is_op(lo, "min") || is_op(lo, "max")) && type_is_float(last))
		minmax(lo);
	else if (sum && (last == TY_F16 || last == TY_BF16) && last_mod(lo, 1, "f32"))
		mixed(lo);
	else if (any && (last == TY_F16 || last == TY_F16X2) && mod(lo, "ftz"))
		flushed_half(lo);
	else
		return false;
	return true;
}
