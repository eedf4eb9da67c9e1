/* SPDX-License-Identifier: MIT */
/* What the handlers of mma and those of wmma share: elements as f32, and the product. */
#ifndef SOFTGPU_PTX_OPS_TENSOR_H
#define SOFTGPU_PTX_OPS_TENSOR_H

#include "softgpu/ptx/half.h"
#include "softgpu/ptx/minifloat.h"
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
#define MAX_AB (16u * 128u) /* elements of a matrix */
#define MAX_C  256u

struct operands {
	_Alignas(64) f32 a[MAX_AB];
	_Alignas(64) f32 b[MAX_AB];
	_Alignas(64) f32 c[MAX_C];
};

/* Element @e of a register as f32; small integers fit, their products' sums are taken in integers. */
static inline f32 element(u32 v, u32 e, enum type t)
{
	switch (t) {
	case TY_U8:
		return (f32)(u8)(v >> (8 * e));
	case TY_S8:
		return (f32)(s8)(v >> (8 * e));
	case TY_U4:
		return (f32)(v >> (4 * e) & 15);
	case TY_S4:
		return (f32)((s32)(v << (28 - 4 * e)) >> 28);
	case TY_E4M3:
	case TY_E5M2:
	case TY_E3M2:
	case TY_E2M3:
		return minifloat_decode(v >> (8 * e) & 0xff & ((1u << minifloat_of(t).bits) - 1), minifloat_of(t));
	case TY_E2M1:
		return minifloat_decode(v >> (8 * e + 2) & 15, minifloat_of(t));
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

typedef f32 f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

/* With @n known, a row of c is a few registers for all of k. In vectors' own words: left to itself, GCC 12 turns the loops round.
 */
static inline __attribute__((always_inline)) void product_rows(struct operands *o, u32 m, u32 n, u32 k)
{
	for (u32 r = 0; r < m; r++) {
		f32x8 c[4], *at = (f32x8 *)&o->c[r * n];

		for (u32 h = 0; h < n / 8; h++)
			c[h] = at[h];
		for (u32 q = 0; q < k; q++) {
			const f32x8 *b = (const f32x8 *)&o->b[q * n];

			for (u32 h = 0; h < n / 8; h++)
				c[h] += o->a[r * k + q] * b[h];
		}
		for (u32 h = 0; h < n / 8; h++)
			at[h] = c[h];
	}
}

/* n is 8, 16 or 32 in every shape. */
static inline void product_f32(struct operands *o, u32 m, u32 n, u32 k)
{
	if (n == 8)
		product_rows(o, m, 8, k);
	else if (n == 16)
		product_rows(o, m, 16, k);
	else
		product_rows(o, m, 32, k);
}

/* The accumulators' bits are integers here; they wrap, or with .satfinite the sum is clamped. */
static inline void product_s32(struct operands *o, u32 m, u32 n, u32 k, bool satfinite)
{
	u32 c[MAX_C];

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

static inline void product(struct operands *o, struct tensor_shape s)
{
	if (s.d == TY_S32)
		product_s32(o, s.m, s.n, 4u * s.k4, s.flags & TF_SATFINITE);
	else
		product_f32(o, s.m, s.n, 4u * s.k4);
}

#endif
