/* SPDX-License-Identifier: MIT */
/* Lowering of mma and mma.sp. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/lower_tensor.h"

bool tensor_shape(struct lower *lo, u32 *m, u32 *n, u32 *k)
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
		return *m && *n && *k && *m <= 32 && *n <= 32 && *k <= 256;
	not_this:;
	}
	return false;
}

char fragment_sig(enum type t)
{
	return t == TY_F64 ? 'd' : 'w';
}

u32 fragment_len(struct lower *lo, const struct opnd *o)
{
	if (o->kind != O_VEC && o->kind != O_REG)
		lower_unsupported(lo, "the operand is not a fragment");
	return o->kind == O_VEC ? o->nlist : 1;
}

void add_fragment(struct lower *lo, const struct opnd *o, char sig, bool def)
{
	u32 n = fragment_len(lo, o);

	for (u32 k = 0; k < n; k++) {
		const struct opnd *e = o->kind == O_VEC ? &o->list[k] : o;

		list_add(lo, def ? dst(lo, e, sig) : src(lo, e, sig));
	}
}

void check_fragment(struct lower *lo, const struct opnd *o, u32 elements, enum type t, bool repeated)
{
	u32 need = elements / (WARP * tensor_per_reg(t)), n = fragment_len(lo, o);

	if (!need || n < need || n % need || (!repeated && n != need))
		lower_unsupported(lo, "a fragment with another number of registers");
}

struct ins *emit_aligned(struct lower *lo, const char *name, u32 first, u32 ndef)
{
	struct ins *i = emit_op(lo, "%s", name);

	i->kind = K_SYNC;
	set_use(lo, i, 7, const_reg(lo, RC_32, FULL));
	list_end(lo, i, first, ndef);
	return i;
}

struct ins *emit_product(struct lower *lo, const char *name, u32 m, u32 n, u32 k, u32 a_elements, struct mma_types t, u32 flags)
{
	const struct opnd *o = lo->p->ops;
	bool wmma = name[0] == 'w';
	u32 first;
	struct ins *i;

	check_fragment(lo, &o[0], m * n, t.d, wmma);
	check_fragment(lo, &o[1], a_elements, t.a, wmma);
	check_fragment(lo, &o[2], k * n, t.b, wmma);
	check_fragment(lo, &o[3], m * n, t.c, wmma);
	first = list_begin(lo);
	add_fragment(lo, &o[0], fragment_sig(t.d), true);
	add_fragment(lo, &o[1], fragment_sig(t.a), false);
	add_fragment(lo, &o[2], fragment_sig(t.b), false);
	add_fragment(lo, &o[3], fragment_sig(t.c), false);
	i = emit_aligned(lo, name, first, fragment_len(lo, &o[0]));
	i->imm = tensor_pack((struct tensor_shape){(u8)m, (u8)n, (u8)(k / 4), (u8)t.d, (u8)t.a, (u8)t.b, (u8)t.c, (u8)flags});
	i->r[0] = (s32)fragment_len(lo, &o[0]);
	i->r[1] = (s32)fragment_len(lo, &o[1]);
	i->r[2] = (s32)fragment_len(lo, &o[2]);
	return i;
}

/* Element types that go together. */
enum family { F_NONE, F_F16, F_BF16, F_TF32, F_F8, F_F8F6F4, F_F64, F_INT8, F_INT4, F_BIT };

static enum family family(enum type t, bool f8f6f4)
{
	switch (t) {
	case TY_F16:
		return F_F16;
	case TY_BF16:
		return F_BF16;
	case TY_TF32:
		return F_TF32;
	case TY_E4M3:
	case TY_E5M2:
		return f8f6f4 ? F_F8F6F4 : F_F8;
	case TY_E3M2:
	case TY_E2M3:
	case TY_E2M1:
		return f8f6f4 ? F_F8F6F4 : F_NONE;
	case TY_F64:
		return F_F64;
	case TY_S8:
	case TY_U8:
		return F_INT8;
	case TY_S4:
	case TY_U4:
		return F_INT4;
	case TY_B1:
		return F_BIT;
	default:
		return F_NONE;
	}
}

/* The shapes of the manual; n is 8 always. */
static const struct {
	u8 family, m;
	u16 k[4], sparse[2];
} shapes[] = {
	{F_F16, 16, {8, 16}, {16, 32}},	   {F_BF16, 16, {8, 16}, {16, 32}},
	{F_TF32, 16, {4, 8}, {8, 16}},	   {F_F8, 16, {16, 32}, {64}},
	{F_F8F6F4, 16, {32}, {64}},	   {F_F64, 8, {4}, {0}},
	{F_F64, 16, {4, 8, 16}, {0}},	   {F_INT8, 8, {16}, {0}},
	{F_INT8, 16, {16, 32}, {32, 64}},  {F_INT4, 8, {32}, {0}},
	{F_INT4, 16, {32, 64}, {64, 128}}, {F_BIT, 8, {128}, {0}},
	{F_BIT, 16, {128, 256}, {0}},
};

static bool has_shape(enum family f, u32 m, u32 n, u32 k, bool sparse)
{
	for (size_t s = 0; n == 8 && s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (u32 q = 0; shapes[s].family == f && shapes[s].m == m && q < (sparse ? 2 : 4); q++)
			if ((sparse ? shapes[s].sparse[q] : shapes[s].k[q]) == k)
				return true;
	return false;
}

static bool accumulates(enum family f, enum type d, enum type c)
{
	switch (f) {
	case F_F64:
		return d == TY_F64 && c == TY_F64;
	case F_INT8:
	case F_INT4:
	case F_BIT:
		return d == TY_S32 && c == TY_S32;
	case F_F16:
	case F_F8:
	case F_F8F6F4:
		return d == c && (d == TY_F16 || d == TY_F32);
	default:
		return d == TY_F32 && c == TY_F32;
	}
}

/* How many values the selector has: lanes of four of which one, two or all hold metadata. */
static u32 selectors(enum family f, u32 k)
{
	switch (f) {
	case F_F16:
	case F_BF16:
		return k == 16 ? 4 : 2;
	case F_TF32:
		return k == 8 ? 4 : 2;
	case F_INT8:
		return k == 32 ? 2 : 1;
	case F_INT4:
		return k == 64 ? 2 : 1;
	default:
		return 1;
	}
}

/* Four products of 8×8×4, each by two groups of four lanes, in all layouts. */
static void mma_884(struct lower *lo, struct mma_types t, bool a_col, bool b_col)
{
	mods_done(lo);
	need_ops(lo, 4, 4);
	if (t.a != TY_F16 || t.b != TY_F16 || (t.d != TY_F16 && t.d != TY_F32) || (t.c != TY_F16 && t.c != TY_F32) ||
	    (t.c == TY_F32 && t.d != TY_F32))
		lower_unsupported(lo, "element types that do not go together");
	emit_product(lo, "mma:884", 8, 32, 4, 128, t, (a_col ? TF_A_COL : 0) | (b_col ? TF_B_COL : 0));
}

/* The first and the second of the modifiers row and col. */
static void layouts(struct lower *lo, bool *a_col, bool *b_col)
{
	u32 n = 0;

	for (u32 k = 1; k < lo->nmod; k++) {
		bool col = lo->mod[k].len == 3 && !memcmp(lo->mod[k].s, "col", 3);

		if (!col && (lo->mod[k].len != 3 || memcmp(lo->mod[k].s, "row", 3) != 0))
			continue;
		lo->used_mods |= 1u << k;
		*(n++ ? b_col : a_col) = col;
	}
	if (n != 2)
		lower_unsupported(lo, "layouts of this kind");
}

void lower_mma(struct lower *lo)
{
	bool sparse = mod(lo, "sp") || mod(lo, "sp::ordered_metadata"), f8f6f4 = mod(lo, "kind::f8f6f4");
	bool a_col = false, b_col = false, both, popc;
	struct mma_types t;
	u32 m, n, k, flags = sparse ? TF_SPARSE : 0;
	enum family f;
	struct ins *i;
	s32 meta = 0;

	mod(lo, "sync");
	mod(lo, "aligned");
	if (!tensor_shape(lo, &m, &n, &k))
		lower_unsupported(lo, "no shape that is known");
	layouts(lo, &a_col, &b_col);
	t = (struct mma_types){mod_type(lo, 0), mod_type(lo, 1), mod_type(lo, 2), mod_type(lo, 3)};
	if (m == 8 && n == 8 && k == 4 && t.a == TY_F16 && !sparse) {
		mma_884(lo, t, a_col, b_col);
		return;
	}
	if (a_col || !b_col)
		lower_unsupported(lo, "layouts other than row.col");
	f = family(t.a, f8f6f4);
	if (!f || f != family(t.b, f8f6f4) || ((f == F_F16 || f == F_BF16 || f == F_TF32) && t.a != t.b) ||
	    !accumulates(f, t.d, t.c))
		lower_unsupported(lo, "element types that do not go together");
	if (!has_shape(f, m, n, k, sparse))
		lower_unsupported(lo, "this shape for these types");
	if ((f == F_INT8 || f == F_INT4) && mod(lo, "satfinite"))
		flags |= TF_SATFINITE;
	both = mod(lo, "and");
	popc = mod(lo, "popc");
	if (popc != (f == F_BIT) || (f == F_BIT) != (both || mod(lo, "xor")))
		lower_unsupported(lo, NULL);
	flags |= both ? TF_AND : 0;
	mods_done(lo);
	need_ops(lo, sparse ? 6 : 4, sparse ? 6 : 4);
	if (sparse) {
		const struct opnd *sel = &lo->p->ops[5];

		if (sel->kind != O_INT || sel->val >= selectors(f, k))
			lower_unsupported(lo, "the sparsity selector is not one of this shape's");
		flags |= (u32)sel->val * TF_SELECTOR;
		meta = src(lo, &lo->p->ops[4], 'w');
	}
	i = emit_product(lo, f == F_BIT ? "mma:bits" : "mma:", m, n, k, sparse ? m * k / 2 : m * k, t, flags);
	if (sparse)
		set_use(lo, i, 3, meta);
}
