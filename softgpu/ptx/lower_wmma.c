/* SPDX-License-Identifier: MIT */
/* Lowering of wmma, ldmatrix, stmatrix and movmatrix. */
#include <string.h>

#include "softgpu/ptx/lower_tensor.h"

static bool sub_byte(enum type t)
{
	return t == TY_S4 || t == TY_U4 || t == TY_B1;
}

/* Which shapes a wmma has follows from the type of a and b. */
static bool has_shape(enum type t, u32 m, u32 n, u32 k)
{
	switch (t) {
	case TY_F16:
	case TY_BF16:
	case TY_S8:
	case TY_U8:
		return k == 16 && ((m == 16 && n == 16) || (m == 8 && n == 32) || (m == 32 && n == 8));
	case TY_TF32:
		return m == 16 && n == 16 && k == 8;
	case TY_F64:
		return m == 8 && n == 8 && k == 4;
	case TY_S4:
	case TY_U4:
		return m == 8 && n == 8 && k == 32;
	case TY_B1:
		return m == 8 && n == 8 && k == 128;
	default:
		return false;
	}
}

static bool accumulates(enum type a, enum type d, enum type c)
{
	switch (a) {
	case TY_F16:
		return (d == TY_F16 || d == TY_F32) && (c == TY_F16 || c == TY_F32);
	case TY_BF16:
	case TY_TF32:
		return d == TY_F32 && c == TY_F32;
	case TY_F64:
		return d == TY_F64 && c == TY_F64;
	default:
		return d == TY_S32 && c == TY_S32;
	}
}

static void wmma_mma(struct lower *lo)
{
	struct mma_types t;
	u32 m, n, k, flags = 0, cols = 0;

	/* The layouts were dealt with when the fragments were loaded. */
	for (u32 q = 1; q < lo->nmod; q++)
		if (lo->mod[q].len == 3 && (!memcmp(lo->mod[q].s, "row", 3) || !memcmp(lo->mod[q].s, "col", 3))) {
			cols |= (lo->mod[q].s[0] == 'c') << q;
			lo->used_mods |= 1u << q;
		}
	t = (struct mma_types){mod_type(lo, 0), mod_type(lo, 1), mod_type(lo, 2), mod_type(lo, 3)};
	/* For f16 the opcode has the types of d and c only. */
	if (t.b == TY_NONE)
		t = (struct mma_types){t.d, TY_F16, TY_F16, t.a};
	if (!tensor_shape(lo, &m, &n, &k))
		lower_unsupported(lo, "no shape that is known");
	if (tensor_per_reg(t.a) != tensor_per_reg(t.b) || (t.a != t.b && tensor_per_reg(t.a) < 4) || !has_shape(t.a, m, n, k) ||
	    !has_shape(t.b, m, n, k) || !accumulates(t.a, t.d, t.c))
		lower_unsupported(lo, "element types and a shape that do not go together");
	if (t.d == TY_S32 && t.a != TY_B1 && mod(lo, "satfinite"))
		flags |= TF_SATFINITE;
	if (t.a == TY_B1) {
		if (mod(lo, "and"))
			flags |= TF_AND;
		else if (!mod(lo, "xor"))
			lower_unsupported(lo, NULL);
		if (!mod(lo, "popc"))
			lower_unsupported(lo, NULL);
	}
	if (t.d == TY_F64) {
		u64 rnd = mod_flags(lo) & MF_RND;

		if (rnd == RND_NA)
			lower_unsupported(lo, NULL);
		flags |= (rnd ? (u32)rnd - 1 : 0) * TF_RND;
	}
	mods_done(lo);
	need_ops(lo, 4, 4);
	emit_product(lo, sub_byte(t.a) ? "wmma:small" : "wmma:mma", m, n, k, m * k, t, flags);
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

	if (!tensor_shape(lo, &m, &n, &k) || a + b + acc != 1 || row == col || !tensor_per_reg(t) ||
	    (sub_byte(t) && (a ? col : row)))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 3);
	rows = b ? k : m;
	cols = a ? k : n;
	check_fragment(lo, frag, rows * cols, t, true);
	ad = lower_address(lo, mem, sp);
	stride = lo->p->nops == 3 ? src(lo, &o[2], 'w') : const_reg(lo, RC_32, row ? cols : rows);
	first = list_begin(lo);
	add_fragment(lo, frag, fragment_sig(t), !store);
	i = emit_aligned(lo, store ? "wmma:store" : "wmma:load", first, store ? 0 : fragment_len(lo, frag));
	i->imm = ad.off;
	i->size = ad.wide ? 8 : 4;
	i->sub = (u8)ad.space;
	i->r[0] = (s32)fragment_len(lo, frag);
	/* Bits travel as bytes; a row of a and a column of b are as long. */
	if (sub_byte(t)) {
		i->r[2] = t == TY_B1 ? 3 : 1;
		rows = 8;
		cols = k >> i->r[2];
		row = true;
		t = TY_U8;
	}
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

/* 8×8 matrices of 16 bits; and of bytes: 16×16 (ldmatrix) and 16×8 (stmatrix), transposed, and 8×16 unpacked from fewer bits. */
void lower_ldmatrix(struct lower *lo)
{
	bool store = lo->mod[0].s[0] == 's', trans = mod(lo, "trans"), m8n8 = mod(lo, "m8n8");
	bool m16n16 = !m8n8 && !store && mod(lo, "m16n16"), m8n16 = !m8n8 && !store && mod(lo, "m8n16");
	bool m16n8 = !m8n8 && store && mod(lo, "m16n8"), unpack = mod(lo, "b8x16");
	u32 bits = unpack ? (mod(lo, "b6x16_p32") ? 6 : mod(lo, "b4x16_p64") ? 4 : 0) : 8;
	u32 count = mod(lo, "x1") ? 1 : mod(lo, "x2") ? 2 : mod(lo, "x4") ? 4 : 0, first;
	const struct opnd *o = lo->p->ops, *frag = &o[store ? 1 : 0], *mem = &o[store ? 0 : 1];
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	struct address ad;
	struct ins *i;

	mod(lo, "sync");
	mod(lo, "aligned");
	if (!count || (sp != SP_SHARED && sp != SP_GENERIC) || !(m8n8 || m16n16 || m8n16 || m16n8) ||
	    t != (m8n8	   ? TY_B16
		  : unpack ? TY_NONE
			   : TY_B8) ||
	    !bits || (unpack && !m16n16 && !m8n16) || (!m8n8 && trans == m8n16) || (m8n16 && !unpack) || (m16n16 && count == 4))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2, 2);
	if (m16n16)
		count *= 2; /* registers */
	if (fragment_len(lo, frag) != count)
		lower_unsupported(lo, "another number of registers");
	ad = lower_address(lo, mem, sp);
	first = list_begin(lo);
	add_fragment(lo, frag, 'w', !store);
	i = emit_aligned(lo, m8n8 ? (store ? "stmatrix:" : "ldmatrix:") : (store ? "stmatrix:bytes" : "ldmatrix:bytes"), first,
			 store ? 0 : count);
	i->imm = ad.off;
	i->size = ad.wide ? 8 : 4;
	i->sub = (u8)ad.space;
	i->r[0] = (s32)count;
	i->r[1] = m8n8 ? trans : (s32)bits;
	i->r[2] = m16n16;
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
