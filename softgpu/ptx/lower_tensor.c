/* SPDX-License-Identifier: MIT */
/* Lowering of mma, wmma, ldmatrix, stmatrix and movmatrix. */
#include <stdlib.h>

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/tensor.h"

/* Finds the shape modifier m16n8k16 and the like; false when there is none. */
static bool shape(struct lower *lo, u32 *m, u32 *n, u32 *k)
{
	for (u32 q = 1; q < lo->nmod; q++) {
		const char *s = lo->mod[q].s;
		u32 v[3] = {0}, at = 0;

		for (u32 p = 0; p < 3; p++) {
			if (at >= lo->mod[q].len || s[at++] != "mnk"[p])
				goto not_this;
			while (at < lo->mod[q].len && s[at] >= '0' && s[at] <= '9' && v[p] < 1000)
				v[p] = v[p] * 10 + (u32)(s[at++] - '0');
		}
		if (at != lo->mod[q].len)
			goto not_this;
		lo->used_mods |= 1u << q;
		*m = v[0];
		*n = v[1];
		*k = v[2];
		return *m && *n && *k && *m <= 32 && *n <= 32 && *k <= 64;
	not_this:;
	}
	return false;
}

/* Elements in a 32-bit register (or the one of a 64-bit register), 0: not a type of matrices. */
static u32 per_reg(enum type t)
{
	switch (t) {
	case TY_U8:
	case TY_S8:
		return 4;
	case TY_F16:
	case TY_BF16:
		return 2;
	case TY_TF32:
	case TY_F32:
	case TY_S32:
	case TY_F64:
		return 1;
	default:
		return 0;
	}
}

static bool is_acc(enum type t)
{
	return t == TY_F32 || t == TY_S32 || t == TY_F64 || t == TY_F16;
}

static char reg_sig(enum type t)
{
	return t == TY_F64 ? 'd' : 'w';
}

static u32 list_len(struct lower *lo, const struct opnd *o)
{
	if (o->kind != O_VEC && o->kind != O_REG)
		lower_unsupported(lo, "the operand is not a fragment");
	return o->kind == O_VEC ? o->nlist : 1;
}

static const struct opnd *list_at(const struct opnd *o, u32 k)
{
	return o->kind == O_VEC ? &o->list[k] : o;
}

static void add_list(struct lower *lo, const struct opnd *o, char sig, bool def)
{
	u32 n = list_len(lo, o);

	for (u32 k = 0; k < n; k++)
		list_add(lo, def ? dst(lo, list_at(o, k), sig) : src(lo, list_at(o, k), sig));
}

/* How many registers of each lane hold the matrix without repetition. */
static u32 data_regs(u32 elements, enum type t)
{
	return elements / (WARP * per_reg(t));
}

static void check_regs(struct lower *lo, const struct opnd *o, u32 elements, enum type t)
{
	u32 need = data_regs(elements, t), n = list_len(lo, o);

	if (!need || n < need || n % need)
		lower_unsupported(lo, "a fragment with another number of registers");
}

/* All lanes of the warp take part: .aligned says so. */
static struct ins *emit_all(struct lower *lo, const char *name, u32 first, u32 ndef)
{
	struct ins *i = emit_op(lo, "%s", name);

	i->kind = K_SYNC;
	set_use(lo, i, 7, const_reg(lo, RC_32, FULL));
	list_end(lo, i, first, ndef);
	return i;
}

/* The types of d, a, b, c in the order in which the opcode has them. */
static void multiply(struct lower *lo, bool wmma, enum type dt, enum type at, enum type bt, enum type ct)
{
	bool satfinite = mod(lo, "satfinite");
	const struct opnd *o = lo->p->ops;
	struct tensor_shape s;
	u32 m, n, k, first;
	struct ins *i;

	if (!shape(lo, &m, &n, &k))
		lower_unsupported(lo, "no shape that is known");
	mods_done(lo);
	need_ops(lo, 4, 4);
	if (!per_reg(at) || !per_reg(bt) || !is_acc(dt) || !is_acc(ct) || per_reg(at) != per_reg(bt) || at == TY_F32 ||
	    at == TY_S32)
		lower_unsupported(lo, "element types of this kind");
	if (satfinite && dt != TY_S32)
		lower_unsupported(lo, NULL);
	if ((at == TY_F64) != (dt == TY_F64) || (per_reg(at) == 4) != (dt == TY_S32) || (dt == TY_S32) != (ct == TY_S32) ||
	    (dt == TY_F64) != (ct == TY_F64))
		lower_unsupported(lo, "element types that do not go together");
	if (!wmma && (n != 8 || (m != 8 && m != 16) || k % (4 * per_reg(at)) || (m == 8 && k == 4 && at != TY_F64)))
		lower_unsupported(lo, "this shape");
	check_regs(lo, &o[0], m * n, dt);
	check_regs(lo, &o[1], m * k, at);
	check_regs(lo, &o[2], k * n, bt);
	check_regs(lo, &o[3], m * n, ct);
	s = (struct tensor_shape){(u8)m, (u8)n, (u8)k, (u8)dt, (u8)at, (u8)bt, (u8)ct, satfinite};
	first = list_begin(lo);
	add_list(lo, &o[0], reg_sig(dt), true);
	add_list(lo, &o[1], reg_sig(at), false);
	add_list(lo, &o[2], reg_sig(bt), false);
	add_list(lo, &o[3], reg_sig(ct), false);
	i = emit_all(lo, wmma ? "wmma:mma" : "mma:", first, list_len(lo, &o[0]));
	i->imm = tensor_pack(s);
	i->r[0] = (s32)list_len(lo, &o[0]);
	i->r[1] = (s32)list_len(lo, &o[1]);
	i->r[2] = (s32)list_len(lo, &o[2]);
}

void lower_mma(struct lower *lo)
{
	enum type t[4];

	mod(lo, "sync");
	mod(lo, "aligned");
	if (!mod(lo, "row") || !mod(lo, "col"))
		lower_unsupported(lo, "layouts other than row.col");
	for (u32 k = 0; k < 4; k++)
		t[k] = mod_type(lo, k);
	mod(lo, "rn");
	multiply(lo, false, t[0], t[1], t[2], t[3]);
}

static void wmma_mma(struct lower *lo)
{
	enum type t[4];

	/* The layouts were dealt with when the fragments were loaded. */
	for (u32 k = 1; k < lo->nmod; k++)
		if (lo->mod[k].len == 3 &&
		    (!__builtin_memcmp(lo->mod[k].s, "row", 3) || !__builtin_memcmp(lo->mod[k].s, "col", 3)))
			lo->used_mods |= 1u << k;
	for (u32 k = 0; k < 4; k++)
		t[k] = mod_type(lo, k);
	mod(lo, "rn");
	/* For f16 the opcode has the types of d and c only. */
	if (t[2] == TY_NONE)
		multiply(lo, true, t[0], TY_F16, TY_F16, t[1]);
	else
		multiply(lo, true, t[0], t[1], t[2], t[3]);
}

static void wmma_move(struct lower *lo, bool store)
{
	const struct opnd *o = lo->p->ops, *frag = &o[store ? 1 : 0], *mem = &o[store ? 0 : 1];
	bool a = mod(lo, "a"), b = mod(lo, "b"), acc = mod(lo, "c") || mod(lo, "d");
	bool row = mod(lo, "row"), col = mod(lo, "col");
	enum space sp = mod_space(lo);
	u32 m, n, k, rows, cols, first;
	enum type t = mod_type(lo, 0);
	struct address ad;
	s32 stride;
	struct ins *i;

	if (!shape(lo, &m, &n, &k) || a + b + acc != 1 || row == col || !per_reg(t))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 3);
	rows = b ? k : m;
	cols = a ? k : n;
	check_regs(lo, frag, rows * cols, t);
	ad = lower_address(lo, mem, sp);
	stride = lo->p->nops == 3 ? src(lo, &o[2], 'w') : const_reg(lo, RC_32, row ? cols : rows);
	first = list_begin(lo);
	add_list(lo, frag, reg_sig(t), !store);
	i = emit_all(lo, store ? "wmma:store" : "wmma:load", first, store ? 0 : list_len(lo, frag));
	i->imm = ad.off;
	i->size = ad.wide ? 8 : 4;
	i->sub = (u8)ad.space;
	i->r[0] = (s32)list_len(lo, frag);
	i->r[1] = (s32)((u32)t | rows << 8 | cols << 16 | (u32)row << 24);
	set_use(lo, i, 4, ad.reg);
	set_use(lo, i, 5, stride);
}

void lower_wmma(struct lower *lo)
{
	mod(lo, "sync");
	mod(lo, "aligned");
	if (mod(lo, "mma"))
		wmma_mma(lo);
	else if (mod(lo, "load"))
		wmma_move(lo, false);
	else if (mod(lo, "store"))
		wmma_move(lo, true);
	else
		lower_unsupported(lo, NULL);
}

/* ldmatrix and stmatrix of 8×8 matrices of 16-bit elements. */
void lower_ldmatrix(struct lower *lo)
{
	bool store = lo->mod[0].s[0] == 's', trans = mod(lo, "trans");
	u32 count = mod(lo, "x1") ? 1 : mod(lo, "x2") ? 2 : mod(lo, "x4") ? 4 : 0, first;
	const struct opnd *o = lo->p->ops, *frag = &o[store ? 1 : 0], *mem = &o[store ? 0 : 1];
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	struct address ad;
	struct ins *i;

	mod(lo, "sync");
	mod(lo, "aligned");
	if (!mod(lo, "m8n8") || !count || t != TY_B16 || (sp != SP_SHARED && sp != SP_GENERIC))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 2);
	if (list_len(lo, frag) != count)
		lower_unsupported(lo, "another number of registers");
	ad = lower_address(lo, mem, sp);
	first = list_begin(lo);
	add_list(lo, frag, 'w', !store);
	i = emit_all(lo, store ? "stmatrix:" : "ldmatrix:", first, store ? 0 : count);
	i->imm = ad.off;
	i->size = ad.wide ? 8 : 4;
	i->sub = (u8)ad.space;
	i->r[0] = (s32)count;
	i->r[1] = trans;
	set_use(lo, i, 4, ad.reg);
}

void lower_movmatrix(struct lower *lo)
{
	struct ins *i;
	s32 a;

	if (!mod(lo, "sync") || !mod(lo, "aligned") || !mod(lo, "m8n8") || !mod(lo, "trans") || mod_type(lo, 0) != TY_B16)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 2);
	a = src(lo, &lo->p->ops[1], 'w');
	i = emit_op(lo, "movmatrix:");
	i->kind = K_SYNC;
	set_use(lo, i, 1, a);
	set_def(lo, i, 0, dst(lo, &lo->p->ops[0], 'w'));
	set_use(lo, i, 7, const_reg(lo, RC_32, FULL));
}
