/* SPDX-License-Identifier: MIT */
/* Matrix products and the moves of their fragments. */
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/tensor.h"

/*
 * mma has the layouts of the PTX manual, which programs know. With g = lane / 4 and t = lane % 4, and E elements
 * in a register: a[r] is row g + 8·(r & 1), columns 4E·(r / 2) + E·t …; b[r] is rows 4E·r + E·t …, column g;
 * an accumulator element i is row g + 8·(i / 2), column 2t + (i & 1).
 *
 * wmma's layouts are nobody's business but ours: the matrix in row-major order, 32·E elements a register, and
 * again from the start in the registers beyond.
 *
 * Products of 16-bit and tf32 elements are exact in f32, so a product and a sum are a fused multiply-add.
 */
#define MAX_MN 32u
#define MAX_K  64u

struct operands {
	_Alignas(64) f32 a[MAX_MN * MAX_K];
	_Alignas(64) f32 b[MAX_K * MAX_MN];
	_Alignas(64) f32 c[MAX_MN * MAX_MN];
};

static inline u32 elements(enum type t)
{
	return t == TY_U8 || t == TY_S8 ? 4 : t == TY_F16 || t == TY_BF16 ? 2 : 1;
}

/* Element @e of a register as f32; 8-bit integers fit, their products' sums are taken in integers. */
static inline f32 element(u32 v, u32 e, enum type t)
{
	switch (t) {
	case TY_U8:
		return (f32)(u8)(v >> (8 * e));
	case TY_S8:
		return (f32)(s8)(v >> (8 * e));
	case TY_F16:
		return f16_to_f32((u16)(v >> (16 * e)));
	case TY_BF16:
		return bf16_to_f32((u16)(v >> (16 * e)));
	case TY_TF32:
		return bits_f32(v & 0xffffe000);
	default:
		return bits_f32(v);
	}
}

static inline const u32 *list_u32(const struct warp *w, const struct ins *i, u32 k)
{
	return opnd_ptr(w, w->frame->f->ops[i->target + k]);
}

static void product_f32(struct operands *o, u32 m, u32 n, u32 k)
{
	for (u32 r = 0; r < m; r++)
		for (u32 q = 0; q < k; q++) {
			const f32 a = o->a[r * k + q];
			const f32 *b = &o->b[q * n];
			f32 *c = &o->c[r * n];

			for (u32 j = 0; j < n; j++)
				c[j] += a * b[j];
		}
}

/* The accumulators' bits are integers here; they wrap, or with .satfinite the sum is clamped. */
static void product_s32(struct operands *o, u32 m, u32 n, u32 k, bool satfinite)
{
	u32 c[MAX_MN * MAX_MN];

	if (satfinite) {
		for (u32 at = 0; at < m * n; at++) {
			s64 sum = (s32)f32_bits(o->c[at]);

			for (u32 q = 0; q < k; q++)
				sum += (s64)o->a[at / n * k + q] * (s64)o->b[q * n + at % n];
			sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
			o->c[at] = bits_f32((u32)sum);
		}
		return;
	}

	memcpy(c, o->c, sizeof(c));
	for (u32 r = 0; r < m; r++)
		for (u32 q = 0; q < k; q++) {
			const s32 a = (s32)o->a[r * k + q];

			for (u32 j = 0; j < n; j++)
				c[r * n + j] += (u32)(a * (s32)o->b[q * n + j]);
		}
	memcpy(o->c, c, sizeof(c));
}

static inline u32 acc_bits(const struct operands *o, u32 at, enum type t)
{
	return t == TY_F16 ? f32_to_f16(o->c[at]) : f32_bits(o->c[at]);
}

static void product(struct operands *o, struct tensor_shape s)
{
	if (s.d == TY_S32)
		product_s32(o, s.m, s.n, s.k, s.satfinite);
	else
		product_f32(o, s.m, s.n, s.k);
}

/* f64: m8n8k4 and, with two registers of a, m16n8k4, k8, k16; the layouts follow the same rule with E = 1. */
static void mma_f64(struct warp *w, const struct ins *i, struct tensor_shape s)
{
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2];
	f64 a[16 * 16], b[16 * 8], c[16 * 8];
	u32 tall = s.m / 8;

	LANES
	{
		u32 g = l / 4, t = l % 4;

		for (u32 r = 0; r < na; r++)
			a[(g + 8 * (r % tall)) * s.k + 4 * (r / tall) + t] = ((const f64 *)list_u32(w, i, nd + r))[l];
		for (u32 r = 0; r < nb; r++)
			b[(4 * r + t) * 8 + g] = ((const f64 *)list_u32(w, i, nd + na + r))[l];
		for (u32 r = 0; r < nd; r++)
			c[(g + 8 * (r / 2)) * 8 + 2 * t + (r & 1)] = ((const f64 *)list_u32(w, i, nd + na + nb + r))[l];
	}
	for (u32 r = 0; r < s.m; r++)
		for (u32 j = 0; j < 8; j++)
			for (u32 q = 0; q < s.k; q++)
				c[r * 8 + j] = __builtin_fma(a[r * s.k + q], b[q * 8 + j], c[r * 8 + j]);
	LANES for (u32 r = 0; r < nd; r++)((f64 *)list_u32(w, i, r))[l] = c[(l / 4 + 8 * (r / 2)) * 8 + 2 * (l % 4) + (r & 1)];
}

HANDLER(mma)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2], e = elements((enum type)s.a);
	const u32 tall = s.m / 8;
	struct operands o;

	(void)em;
	if (s.d == TY_F64) {
		mma_f64(w, i, s);
		return;
	}
	for (u32 r = 0; r < na; r++) {
		const u32 *v = list_u32(w, i, nd + r);

		LANES for (u32 q = 0; q < e; q++) o.a[(l / 4 + 8 * (r % tall)) * s.k + 4 * e * (r / tall) + e * (l % 4) + q] =
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

static void wmma_unpack(const struct warp *w, const struct ins *i, u32 list, u32 count, enum type t, f32 *to)
{
	u32 e = elements(t), regs = count / (WARP * e);

	for (u32 r = 0; r < regs; r++) {
		const u32 *v = list_u32(w, i, list + r);

		LANES for (u32 q = 0; q < e; q++) to[(r * WARP + l) * e + q] = t == TY_S32 ? bits_f32(v[l]) : element(v[l], q, t);
	}
}

static void wmma_f64(struct warp *w, const struct ins *i, struct tensor_shape s)
{
	const f64 *a = (const f64 *)list_u32(w, i, 2), *b = (const f64 *)list_u32(w, i, 3);
	f64 c[64];

	/* m8n8k4 only: one register of a and b, two of the accumulators */
	(void)s;
	memcpy(c, list_u32(w, i, 4), 256);
	memcpy(c + 32, list_u32(w, i, 5), 256);
	for (u32 r = 0; r < 8; r++)
		for (u32 j = 0; j < 8; j++)
			for (u32 q = 0; q < 4; q++)
				c[r * 8 + j] = __builtin_fma(a[r * 4 + q], b[q * 8 + j], c[r * 8 + j]);
	memcpy((void *)(uintptr_t)list_u32(w, i, 0), c, 256);
	memcpy((void *)(uintptr_t)list_u32(w, i, 1), c + 32, 256);
}

HANDLER(wmma_mma)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2],
		  regs = (u32)s.m * s.n / WARP / elements((enum type)s.d);
	struct operands o;

	(void)em;
	if (s.d == TY_F64) {
		wmma_f64(w, i, s);
		return;
	}
	wmma_unpack(w, i, nd, (u32)s.m * s.k, (enum type)s.a, o.a);
	wmma_unpack(w, i, nd + na, (u32)s.k * s.n, (enum type)s.b, o.b);
	wmma_unpack(w, i, nd + na + nb, (u32)s.m * s.n, (enum type)s.c, o.c);
	product(&o, s);
	for (u32 r = 0; r < nd; r++) {
		u32 *v = (u32 *)list_u32(w, i, r), at = r % regs * WARP;

		LANES v[l] = s.d == TY_F16 ? acc_bits(&o, (at + l) * 2, TY_F16) | acc_bits(&o, (at + l) * 2 + 1, TY_F16) << 16
					   : acc_bits(&o, at + l, (enum type)s.d);
	}
}

static u64 address(const struct warp *w, const struct ins *i, u32 l)
{
	return i->size == 8 ? ((const u64 *)opnd_ptr(w, i->r[4]))[l] + i->imm
			    : (u32)(((const u32 *)opnd_ptr(w, i->r[4]))[l] + (u32)i->imm);
}

/* Moves a whole matrix between memory and @m, in row-major order there; address and stride are those of the first lane. */
static bool wmma_matrix(struct warp *w, const struct ins *i, u32 em, u8 *m, bool store)
{
	const u32 t = (u32)i->r[1] & 255, rows = (u32)i->r[1] >> 8 & 255, cols = (u32)i->r[1] >> 16 & 255;
	const bool row_major = (u32)i->r[1] >> 24;
	const u32 first = (u32)__builtin_ctz(em), size = type_size((enum type)t), runs = row_major ? rows : cols,
		  len = row_major ? cols : rows;
	const u64 base = address(w, i, first), stride = (u64)((const u32 *)opnd_ptr(w, i->r[5]))[first] * size;

	for (u32 r = 0; r < runs; r++) {
		/* A run is shorter than a granule: with both its ends it is all there. */
		u8 *p = ptx_lane_addr(w, i, first, (enum space)i->sub, base + r * stride, size);

		if (!p || !ptx_lane_addr(w, i, first, (enum space)i->sub, base + r * stride + (len - 1) * size, size))
			return false;
		for (u32 k = 0; k < len; k++) {
			u8 *at = m + (row_major ? r * cols + k : k * cols + r) * size;

			if (store)
				memcpy(p + k * size, at, size);
			else
				memcpy(at, p + k * size, size);
		}
	}
	return true;
}

/* Registers of 32 lanes, one after the other, are the matrix's bytes. */
HANDLER(wmma_load)
{
	const u32 t = (u32)i->r[1] & 255,
		  bytes = ((u32)i->r[1] >> 8 & 255) * ((u32)i->r[1] >> 16 & 255) * type_size((enum type)t);
	const u32 reg = t == TY_F64 ? 8 * WARP : 4 * WARP;
	u8 m[MAX_MN * MAX_MN * 8];

	if (!wmma_matrix(w, i, em, m, false))
		return;
	for (u32 r = 0; r < (u32)i->r[0]; r++)
		memcpy((void *)(uintptr_t)list_u32(w, i, r), m + r * reg % bytes, reg);
}

HANDLER(wmma_store)
{
	const u32 t = (u32)i->r[1] & 255,
		  bytes = ((u32)i->r[1] >> 8 & 255) * ((u32)i->r[1] >> 16 & 255) * type_size((enum type)t);
	const u32 reg = t == TY_F64 ? 8 * WARP : 4 * WARP;
	u8 m[MAX_MN * MAX_MN * 8];

	for (u32 r = 0; r * reg < bytes; r++)
		memcpy(m + r * reg, list_u32(w, i, r), reg);
	wmma_matrix(w, i, em, m, true);
}

/* Row @row of matrix @k lies where lane 8·k + row says. */
static u16 *matrix_rows(struct warp *w, const struct ins *i, u32 k, u16 *rows[8])
{
	for (u32 r = 0; r < 8; r++) {
		rows[r] = ptx_lane_addr(w, i, 8 * k + r, (enum space)i->sub, address(w, i, 8 * k + r), 16);
		if (!rows[r])
			return NULL;
	}
	return rows[0];
}

HANDLER(ldmatrix)
{
	u32 got[4][WARP];
	u16 *rows[8];

	(void)em;
	for (u32 k = 0; k < (u32)i->r[0]; k++) {
		if (!matrix_rows(w, i, k, rows))
			return;
		LANES
		{
			u32 g = l / 4, t = 2 * (l % 4);

			got[k][l] = i->r[1] ? rows[t][g] | (u32)rows[t + 1][g] << 16 : rows[g][t] | (u32)rows[g][t + 1] << 16;
		}
	}
	for (u32 k = 0; k < (u32)i->r[0]; k++)
		memcpy((void *)(uintptr_t)list_u32(w, i, k), got[k], sizeof(got[k]));
}

HANDLER(stmatrix)
{
	u16 *rows[8];

	(void)em;
	for (u32 k = 0; k < (u32)i->r[0]; k++) {
		const u32 *v = list_u32(w, i, k);

		if (!matrix_rows(w, i, k, rows))
			return;
		LANES
		{
			u32 g = l / 4, t = 2 * (l % 4);

			*(i->r[1] ? &rows[t][g] : &rows[g][t]) = (u16)v[l];
			*(i->r[1] ? &rows[t + 1][g] : &rows[g][t + 1]) = (u16)(v[l] >> 16);
		}
	}
}

HANDLER(movmatrix)
{
	const u32 *A = ARG(const u32, 1);
	u32 *D = ARG(u32, 0);
	u16 m[8][8];

	(void)em;
	LANES
	{
		m[l / 4][2 * (l % 4)] = (u16)A[l];
		m[l / 4][2 * (l % 4) + 1] = (u16)(A[l] >> 16);
	}
	LANES D[l] = m[2 * (l % 4)][l / 4] | (u32)m[2 * (l % 4) + 1][l / 4] << 16;
}

TABLE(tensor) = {
	{"mma:", "", mma, 0},
	{"wmma:mma", "", wmma_mma, 0},
	{"wmma:load", "", wmma_load, 0},
	{"wmma:store", "", wmma_store, 0},
	{"ldmatrix:", "", ldmatrix, 0},
	{"stmatrix:", "", stmatrix, 0},
	{"movmatrix:", "", movmatrix, 0},
	{NULL, NULL, NULL, 0},
};
