/* SPDX-License-Identifier: MIT */
/* What lowering tells the handlers of matrix products. */
#ifndef SOFTGPU_PTX_TENSOR_H
#define SOFTGPU_PTX_TENSOR_H

#include <string.h>

#include "softgpu/ptx/types.h"

enum tensor_flags {
	TF_SATFINITE = 1,
	TF_AND = 2,	 /* of bits: and, else xor */
	TF_SPARSE = 4,	 /* a is half as wide; r[3] of the instruction is the metadata */
	TF_SELECTOR = 8, /* two bits: whose metadata */
	TF_A_COL = 8,	 /* m8n8k4 */
	TF_B_COL = 16,
	TF_RND = 32, /* two bits, wmma of f64: enum rnd less one */
};

struct tensor_shape {
	u8 m, n, k4, d, a, b, c; /* sizes, that of k by 4, then element types */
	u8 flags;
};

static inline u64 tensor_pack(struct tensor_shape s)
{
	u64 v;

	memcpy(&v, &s, sizeof(v));
	return v;
}

static inline struct tensor_shape tensor_unpack(u64 v)
{
	struct tensor_shape s;

	memcpy(&s, &v, sizeof(s));
	return s;
}

/* Elements in a 32-bit register (or the one of a 64-bit register); 0: not a type of matrices. */
static inline u32 tensor_per_reg(enum type t)
{
	switch (t) {
	case TY_B1:
		return 32;
	case TY_U4:
	case TY_S4:
		return 8;
	case TY_U8:
	case TY_S8:
	case TY_E4M3:
	case TY_E5M2:
	case TY_E3M2:
	case TY_E2M3:
	case TY_E2M1: /* alone in a byte, in its bits 2 to 5 */
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

/* c += a·b of 8×4 and 4×8, row by row, rounded as enum rnd less one says (ops_general.c) */
void ptx_product_884(const f64 *a, const f64 *b, f64 *c, u32 rnd);

#endif
