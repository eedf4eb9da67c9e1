/* SPDX-License-Identifier: MIT */
/* wmma, and the moves of matrices between registers and shared memory. */
#include "softgpu/ptx/ops_tensor.h"

#define UNPACK(n, FROM, EXPR)                                                                                                    \
	do {                                                                                                                     \
		FROM x[n];                                                                                                       \
		memcpy(x, v, sizeof(x));                                                                                         \
		for (u32 k = 0; k < (n); k++)                                                                                    \
			to[k] = (EXPR);                                                                                          \
	} while (0)

/* The elements of one register of 32 lanes, which lie one after the other, as f32. */
static inline void unpack_register(const u32 *v, enum type t, f32 *to)
{
	switch (t) {
	case TY_F16:
		UNPACK(2 * WARP, u16, f16_to_f32(x[k]));
		break;
	case TY_BF16:
		UNPACK(2 * WARP, u16, bits_f32((u32)x[k] << 16));
		break;
	case TY_TF32:
		UNPACK(WARP, u32, bits_f32(x[k] & 0xffffe000));
		break;
	case TY_S8:
		UNPACK(4 * WARP, s8, (f32)x[k]);
		break;
	case TY_U8:
		UNPACK(4 * WARP, u8, (f32)x[k]);
		break;
	default: /* f32, and the bits of s32 */
		memcpy(to, v, 4 * WARP);
	}
}

static void wmma_unpack(const struct warp *w, const struct ins *i, u32 list, u32 count, enum type t, f32 *to)
{
	u32 e = tensor_per_reg(t), regs = count / (WARP * e);

	for (u32 r = 0; r < regs; r++)
		unpack_register(list_u32(w, i, list + r), t, to + r * WARP * e);
}

/* c += a·b of 8×4 and 4×8, to nearest: each element adds its products one after the other, as ptx_product_884() does. */
static void product_884(const f64 *a, const f64 *b, f64 *c)
{
	for (u32 r = 0; r < 8; r++)
		for (u32 q = 0; q < 4; q++)
			for (u32 j = 0; j < 8; j++)
				c[r * 8 + j] = __builtin_fma(a[r * 4 + q], b[q * 8 + j], c[r * 8 + j]);
}

static void wmma_f64(struct warp *w, const struct ins *i, struct tensor_shape s)
{
	const f64 *a = (const f64 *)list_u32(w, i, 2), *b = (const f64 *)list_u32(w, i, 3);
	f64 c[64];

	/* m8n8k4 only: one register of a and b, two of the accumulators */
	memcpy(c, list_u32(w, i, 4), 256);
	memcpy(c + 32, list_u32(w, i, 5), 256);
	if (s.flags / TF_RND & 3)
		ptx_product_884(a, b, c, s.flags / TF_RND & 3);
	else
		product_884(a, b, c);
	memcpy((void *)(uintptr_t)list_u32(w, i, 0), c, 256);
	memcpy((void *)(uintptr_t)list_u32(w, i, 1), c + 32, 256);
}

HANDLER(wmma_mma)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 k = 4u * s.k4, nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2],
		  regs = (u32)s.m * s.n / WARP / tensor_per_reg((enum type)s.d);
	struct operands o;

	(void)em;
	if (s.d == TY_F64) {
		wmma_f64(w, i, s);
		return;
	}
	wmma_unpack(w, i, nd, (u32)s.m * k, (enum type)s.a, o.a);
	wmma_unpack(w, i, nd + na, k * s.n, (enum type)s.b, o.b);
	wmma_unpack(w, i, nd + na + nb, (u32)s.m * s.n, (enum type)s.c, o.c);
	product(&o, s);
	for (u32 r = 0; r < nd; r++) {
		u32 *v = (u32 *)list_u32(w, i, r), at = r % regs * WARP;

		LANES v[l] = s.d == TY_F16 ? acc_bits(&o, (at + l) * 2, TY_F16) | acc_bits(&o, (at + l) * 2 + 1, TY_F16) << 16
					   : acc_bits(&o, at + l, (enum type)s.d);
	}
}

/* Elements of 4 bits and of one: rows of a and columns of b have four words each, one after the other. */
HANDLER(wmma_small)
{
	const struct tensor_shape s = tensor_unpack(i->imm);
	const u32 nd = (u32)i->r[0], na = (u32)i->r[1], nb = (u32)i->r[2], e = tensor_per_reg((enum type)s.a);
	const u32 *a = list_u32(w, i, nd), *b = list_u32(w, i, nd + na);
	u32 c[64];

	(void)em;
	for (u32 at = 0; at < 64; at++) {
		s64 sum = (s32)list_u32(w, i, nd + na + nb + at / WARP)[at % WARP];

		for (u32 q = 0; q < 4; q++) {
			u32 x = a[at / 8 * 4 + q], y = b[at % 8 * 4 + q];

			if (s.a == TY_B1)
				sum += __builtin_popcount(s.flags & TF_AND ? x & y : x ^ y);
			for (u32 k = 0; s.a != TY_B1 && k < e; k++)
				sum += (s64)element(x, k, (enum type)s.a) * (s64)element(y, k, (enum type)s.b);
		}
		if (s.flags & TF_SATFINITE)
			sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
		c[at] = (u32)sum;
	}
	for (u32 r = 0; r < nd; r++)
		memcpy((void *)(uintptr_t)list_u32(w, i, r), c + r % 2 * WARP, 4 * WARP);
}

static u64 address(const struct warp *w, const struct ins *i, u32 l)
{
	return i->size == 8 ? ((const u64 *)opnd_ptr(w, i->r[4]))[l] + i->imm
			    : (u32)(((const u32 *)opnd_ptr(w, i->r[4]))[l] + (u32)i->imm);
}

/* @len elements of @size bytes between @p, one after the other, and a column of a matrix of @cols. */
static inline void move_column(u8 *p, u8 *m, u32 len, u32 cols, u32 size, bool store)
{
	for (u32 k = 0; k < len; k++)
		memcpy(store ? p + k * size : m + k * cols * size, store ? m + k * cols * size : p + k * size, size);
}

/* Moves a whole matrix between memory and @m, in row-major order there; address and stride are those of the first lane. */
static bool wmma_matrix(struct warp *w, const struct ins *i, u32 em, u8 *m, bool store)
{
	const u32 t = (u32)i->r[1] & 255, rows = (u32)i->r[1] >> 8 & 255, cols = (u32)i->r[1] >> 16 & 255;
	const bool row_major = (u32)i->r[1] >> 24;
	const u32 first = (u32)__builtin_ctz(em), size = type_size((enum type)t), runs = row_major ? rows : cols,
		  len = row_major ? cols : rows;
	const u64 base = address(w, i, first), stride = (u64)((const u32 *)opnd_ptr(w, i->r[5]))[first] * size >> i->r[2];

	for (u32 r = 0; r < runs; r++) {
		/* A run is shorter than a granule: with both its ends it is all there. */
		u8 *p = ptx_lane_addr(w, i, first, (enum space)i->sub, base + r * stride, size);

		if (!p || !ptx_lane_addr(w, i, first, (enum space)i->sub, base + r * stride + (len - 1) * size, size))
			return false;
		if (row_major)
			memcpy(store ? p : m + r * cols * size, store ? m + r * cols * size : p, len * size);
		else if (size == 1)
			move_column(p, m + r, len, cols, 1, store);
		else if (size == 2)
			move_column(p, m + r * 2, len, cols, 2, store);
		else
			move_column(p, m + r * size, len, cols, size, store);
	}
	return true;
}

/* Registers of 32 lanes, one after the other, are the matrix's bytes. */
HANDLER(wmma_load)
{
	const u32 t = (u32)i->r[1] & 255,
		  bytes = ((u32)i->r[1] >> 8 & 255) * ((u32)i->r[1] >> 16 & 255) * type_size((enum type)t);
	const u32 reg = t == TY_F64 ? 8 * WARP : 4 * WARP;
	u8 m[16 * 16 * 4];

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
	u8 m[16 * 16 * 4];

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

/* The 16 bytes of a row of elements, packed in r[1] bits each. */
static bool byte_row(struct warp *w, const struct ins *i, u32 lane, u8 row[16])
{
	const u8 *p = ptx_lane_addr(w, i, lane, (enum space)i->sub, address(w, i, lane), 16);
	const u32 bits = (u32)i->r[1];

	for (u32 k = 0; p && k < 16; k++) {
		u32 at = k * bits, two = p[at / 8] | (u32)p[(at / 8 + 1) % 16] << 8;

		row[k] = (u8)(two >> (at % 8) & ((1u << bits) - 1));
	}
	return p;
}

/* r[2]: 16×16, transposed, two registers each; else 8×16, one. */
HANDLER(ldmatrix_bytes)
{
	const u32 rows = i->r[2] ? 16 : 8, regs = (u32)i->r[0], each = i->r[2] ? 2 : 1;
	u8 m[32][16];
	u32 got[4][WARP];

	(void)em;
	for (u32 r = 0; r < regs / each * rows; r++)
		if (!byte_row(w, i, r, m[r]))
			return;
	for (u32 k = 0; k < regs; k++)
		LANES
		{
			u32 first = k / each * rows, row = l / 4 + 8 * (k % each), col = 4 * (l % 4), v = 0;

			for (u32 b = 0; b < 4; b++)
				v |= (u32)(each == 2 ? m[first + col + b][row] : m[first + row][col + b]) << (8 * b);
			got[k][l] = v;
		}
	for (u32 k = 0; k < regs; k++)
		memcpy((void *)(uintptr_t)list_u32(w, i, k), got[k], sizeof(got[k]));
}

/* 16×8, as an accumulator lies: its columns are the rows in memory. */
HANDLER(stmatrix_bytes)
{
	(void)em;
	for (u32 k = 0; k < (u32)i->r[0]; k++) {
		const u32 *v = list_u32(w, i, k);
		u8 *rows[8];

		for (u32 r = 0; r < 8; r++) {
			rows[r] = ptx_lane_addr(w, i, 8 * k + r, (enum space)i->sub, address(w, i, 8 * k + r), 16);
			if (!rows[r])
				return;
		}
		LANES for (u32 b = 0; b < 4; b++) rows[2 * (l % 4) + b % 2][l / 4 + 8 * (b / 2)] = (u8)(v[l] >> (8 * b));
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

TABLE(wmma) = {
	{"wmma:mma", "", wmma_mma, 0},	  {"wmma:small", "", wmma_small, 0},
	{"wmma:load", "", wmma_load, 0},  {"wmma:store", "", wmma_store, 0},
	{"ldmatrix:", "", ldmatrix, 0},	  {"ldmatrix:bytes", "", ldmatrix_bytes, 0},
	{"stmatrix:", "", stmatrix, 0},	  {"stmatrix:bytes", "", stmatrix_bytes, 0},
	{"movmatrix:", "", movmatrix, 0}, {NULL, NULL, NULL, 0},
};
