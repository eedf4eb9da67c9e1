/* SPDX-License-Identifier: MIT */
/* mma and mma.sp: matrix products on fragments in the manual's layouts. */
#ifdef __AVX512F__
#include "softgpu/ptx/mma_avx512.h"
#endif
#include "softgpu/ptx/ops_tensor.h"

static void product_f64(const f64 *a, const f64 *b, f64 *c, u32 m, u32 k)
{
	for (u32 r = 0; r < m; r++)
		for (u32 j = 0; j < 8; j++)
			for (u32 q = 0; q < k; q++)
				c[r * 8 + j] = __builtin_fma(a[r * k + q], b[q * 8 + j], c[r * 8 + j]);
}

/* f64: m8n8k4 and, with two registers of a, m16n8k4, k8, k16; the layouts follow the same rule with E = 1. */
static void mma_f64(struct warp *w, const struct ins *i, struct tensor_shape s)
{
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2];
	f64 a[16 * 16], b[16 * 8], c[16 * 8];
	const u32 tall = s.m / 8, k = 4u * s.k4;

	LANES
	{
		u32 g = l / 4, t = l % 4;

		for (u32 r = 0; r < na; r++)
			a[(g + 8 * (r % tall)) * k + 4 * (r / tall) + t] = ((const f64 *)list_u32(w, i, nd + r))[l];
		for (u32 r = 0; r < nb; r++)
			b[(4 * r + t) * 8 + g] = ((const f64 *)list_u32(w, i, nd + na + r))[l];
		for (u32 r = 0; r < nd; r++)
			c[(g + 8 * (r / 2)) * 8 + 2 * t + (r & 1)] = ((const f64 *)list_u32(w, i, nd + na + nb + r))[l];
	}
	product_f64(a, b, c, s.m, k);
	LANES for (u32 r = 0; r < nd; r++)((f64 *)list_u32(w, i, r))[l] = c[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + (r & 1)];
}

/*
 * A sparse a has half of its elements, and four bits of metadata for every two of 16 or 8 bits (four of 4 bits, one
 * of 32): which of the four places of its chunk each takes, from the lowest bits up. For 16 and 32 bits a word has
 * 16 bits of row g and 16 of row g + 8, and the next lane goes on with the columns; for shorter elements a word has one row,
 * and rows g and g + 8 take turns.
 */
static u32 place_bits(const u32 *meta, struct tensor_shape s, u32 row, u32 nibble)
{
	u32 sel = s.flags / TF_SELECTOR & 3, g = row % 8, high = row / 8;
	bool wide = s.a == TY_F16 || s.a == TY_BF16 || s.a == TY_TF32;
	u32 nibbles = 4u * s.k4 / (s.a == TY_TF32 ? 2 : 4);

	if (wide)
		return meta[4 * g + sel * (nibbles / 4) + nibble / 4] >> (16 * high + 4 * (nibble % 4)) & 15;
	return meta[4 * g + 2 * sel + 2 * (nibble / 8) + high] >> (4 * (nibble % 8)) & 15;
}

static void expand(struct operands *o, struct tensor_shape s, const u32 *meta)
{
	const u32 k = 4u * s.k4, group = s.a == TY_TF32 ? 1 : s.a == TY_S4 || s.a == TY_U4 ? 4 : 2;
	f32 packed[16 * 64];

	memcpy(packed, o->a, s.m * k / 2 * sizeof(f32));
	memset(o->a, 0, s.m * k * sizeof(f32));
	for (u32 r = 0; r < s.m; r++)
		for (u32 q = 0; q < k / 2; q++) {
			u32 bits = place_bits(meta, s, r, q / group), at = q / group * 2 * group;

			if (group == 1)
				at += bits >> 1 & 1; /* 0100 or 1110 */
			else if (group == 2)
				at += bits >> (2 * (q % 2)) & 3;
			else
				at += 2 * (bits >> (q % 4 / 2 * 2) & 3) + q % 2;
			o->a[r * k + at] = packed[r * k / 2 + q];
		}
}

#ifdef __AVX512F__
/* The shape that programs use most; false when it is another. */
static bool mma_quick(struct warp *w, const struct ins *i, struct tensor_shape s)
{
	const u32 *v[14];

	if (s.m != 16 || s.k4 != 4 || (s.flags & TF_SPARSE) || s.a != s.b || (s.a != TY_F16 && s.a != TY_BF16) || s.c != TY_F32 ||
	    s.d != TY_F32)
		return false;
	for (u32 k = 0; k < 14; k++)
		v[k] = list_u32(w, i, k);
	if (s.a == TY_BF16)
		mma_16816(v + 4, v + 8, v + 10, (u32 *const *)v, true);
	else
		mma_16816(v + 4, v + 8, v + 10, (u32 *const *)v, false);
	return true;
}
#endif

HANDLER(mma)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2], e = tensor_per_reg((enum type)s.a);
	const u32 tall = s.m / 8, k = 4u * s.k4, ka = s.flags & TF_SPARSE ? k / 2 : k;
	struct operands o;

	(void)em;
#ifdef __AVX512F__
	if (mma_quick(w, i, s))
		return;
#endif
	if (s.d == TY_F64) {
		mma_f64(w, i, s);
		return;
	}
	for (u32 r = 0; r < na; r++) {
		const u32 *v = list_u32(w, i, nd + r);

		LANES for (u32 q = 0; q < e; q++) o.a[(l / 4 + 8 * (r % tall)) * ka + 4 * e * (r / tall) + e * (l % 4) + q] =
			element(v[l], q, (enum type)s.a);
	}
	for (u32 r = 0; r < nb; r++) {
		const u32 *v = list_u32(w, i, nd + na + r);

		LANES for (u32 q = 0; q < e; q++) o.b[(4 * e * r + e * (l % 4) + q) * 8 + l / 4] =
			element(v[l], q, (enum type)s.b);
	}
	for (u32 r = 0; r < s.m * 8 / WARP; r++) { /* accumulator element r of each lane */
		const u32 *v = list_u32(w, i, nd + na + nb + (s.c == TY_F16 ? r / 2 : r));

		LANES o.c[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + (r & 1)] =
			s.c == TY_F16 ? f16_to_f32((u16)(v[l] >> (16 * (r & 1)))) : bits_f32(v[l]);
	}
	if (s.flags & TF_SPARSE)
		expand(&o, s, opnd_ptr(w, i->r[3]));
	product(&o, s);
	for (u32 r = 0; r < nd; r++) {
		u32 *v = (u32 *)list_u32(w, i, r);

		LANES
		{
			u32 at = (l / 4 + 8 * (s.d == TY_F16 ? r : r / 2)) * 8 + 2 * (l % 4);

			v[l] = s.d == TY_F16 ? acc_bits(&o, at, TY_F16) | acc_bits(&o, at + 1, TY_F16) << 16
					     : acc_bits(&o, at + (r & 1), (enum type)s.d);
		}
	}
}

/* Words of 32 bits of a row of a and of a column of b, in the places that single elements would have. */
HANDLER(mma_bits)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2], tall = s.m / 8, words = 4u * s.k4 / 32;
	u32 a[16 * 8], b[8 * 8], c[16 * 8];

	(void)em;
	for (u32 r = 0; r < na; r++)
		LANES a[(l / 4 + 8 * (r % tall)) * words + 4 * (r / tall) + l % 4] = list_u32(w, i, nd + r)[l];
	for (u32 r = 0; r < nb; r++)
		LANES b[l / 4 * words + 4 * r + l % 4] = list_u32(w, i, nd + na + r)[l];
	for (u32 r = 0; r < nd; r++)
		LANES c[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + (r & 1)] = list_u32(w, i, nd + na + nb + r)[l];
	for (u32 r = 0; r < s.m; r++)
		for (u32 j = 0; j < 8; j++)
			for (u32 q = 0; q < words; q++) {
				u32 x = a[r * words + q], y = b[j * words + q];

				c[r * 8 + j] += (u32)__builtin_popcount(s.flags & TF_AND ? x & y : x ^ y);
			}
	for (u32 r = 0; r < nd; r++)
		LANES((u32 *)(uintptr_t)list_u32(w, i, r))[l] = c[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + (r & 1)];
}

/* Where accumulator element @e of lane @l stands in its 8×8 matrix, of f16 and of f32. */
static u32 place_884(u32 l, u32 e, bool f16)
{
	u32 high = l / 16 * 4;

	if (f16)
		return (l % 4 + high) * 8 + e;
	return ((l & 1) + (e & 2) + high) * 8 + (e & 4) + (l & 2) + (e & 1);
}

/* Lanes 4p to 4p + 3 and 16 + 4p to 19 + 4p have product p. */
HANDLER(mma_884)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0];
	f32 a[4][32], b[4][32], c[4][64];

	(void)em;
	LANES for (u32 e = 0; e < 4; e++)
	{
		u32 p = l % 16 / 4, high = l / 16 * 4, x = l % 4;
		u16 va = (u16)(list_u32(w, i, nd + e / 2)[l] >> (16 * (e & 1)));
		u16 vb = (u16)(list_u32(w, i, nd + 2 + e / 2)[l] >> (16 * (e & 1)));

		a[p][s.flags & TF_A_COL ? (e + high) * 4 + x : (x + high) * 4 + e] = f16_to_f32(va);
		b[p][s.flags & TF_B_COL ? e * 8 + x + high : x * 8 + e + high] = f16_to_f32(vb);
	}
	LANES for (u32 e = 0; e < 8; e++)
	{
		u32 v = list_u32(w, i, nd + 4 + (s.c == TY_F16 ? e / 2 : e))[l];

		c[l % 16 / 4][place_884(l, e, s.c == TY_F16)] =
			s.c == TY_F16 ? f16_to_f32((u16)(v >> (16 * (e & 1)))) : bits_f32(v);
	}
	for (u32 p = 0; p < 4; p++)
		for (u32 r = 0; r < 8; r++)
			for (u32 j = 0; j < 8; j++)
				for (u32 q = 0; q < 4; q++)
					c[p][r * 8 + j] += a[p][r * 4 + q] * b[p][q * 8 + j];
	LANES for (u32 e = 0; e < 8; e++)
	{
		f32 v = c[l % 16 / 4][place_884(l, e, s.d == TY_F16)];
		u32 *d = (u32 *)(uintptr_t)list_u32(w, i, s.d == TY_F16 ? e / 2 : e) + l;

		if (s.d != TY_F16)
			*d = f32_bits(v);
		else
			*d = e & 1 ? *d | (u32)f32_to_f16(v) << 16 : f32_to_f16(v);
	}
}

TABLE(tensor) = {
	{"mma:", "", mma, 0},
	{"mma:bits", "", mma_bits, 0},
	{"mma:884", "", mma_884, 0},
	{NULL, NULL, NULL, 0},
};
