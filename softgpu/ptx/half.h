/* SPDX-License-Identifier: MIT */
/* 16-bit floats: conversions to and from f32 with round to nearest even, in forms that vectorise. */
#ifndef SOFTGPU_PTX_HALF_H
#define SOFTGPU_PTX_HALF_H

#include "softgpu/ptx/ops.h"

static inline f32 bf16_to_f32(u16 h)
{
	return bits_f32((u32)h << 16);
}

/* Any NaN becomes the canonical one, as the hardware does. */
static inline u16 f32_to_bf16(f32 f)
{
	u32 u = f32_bits(f);
	u32 r = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : (u16)r;
}

/* Scaling by powers of two moves the exponent and normalises subnormals exactly. */
static inline f32 f16_to_f32(u16 h)
{
	u32 m = (u32)(h & 0x7fff) << 13;
	f32 f = bits_f32(m) * 0x1p112f;
	u32 u = f32_bits(f);

	u = (h & 0x7c00) == 0x7c00 ? m | 0x7f800000 : u;
	return bits_f32(u | (u32)(h & 0x8000) << 16);
}

static inline u16 f32_to_f16(f32 f)
{
	u32 u = f32_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
	/* normal results: round the mantissa, rebias; overflow runs into the exponent of infinity */
	u32 n = (a + 0xfff + (a >> 13 & 1) - (112u << 23)) >> 13;
	/* subnormal results: adding 0.5 places the value at the bottom of the mantissa, rounded by the FPU */
	u32 s = f32_bits(bits_f32(a < 0x38800000 ? a : 0) + 0.5f) - 0x3f000000;
	u32 r = a < 0x38800000 ? s : n;

	r = a >= 0x47800000 ? 0x7c00 : r;
	r = r > 0x7c00 ? 0x7c00 : r;
	return (u16)(a > 0x7f800000 ? 0x7fff : sign | r);
}

/*
 * Rounds to odd: the last bit tells that something was cut off, so that a second rounding to a shorter format
 * gives what one rounding of the exact value would.
 */
static inline f32 f64_to_f32_odd(f64 d)
{
	f32 f = (f32)d;
	f64 back = (f64)f;
	u32 u = f32_bits(f);

	if (back == d || d != d || (u & 1) || (u & 0x7fffffff) == 0x7f800000)
		return f;
	/* f is even and was rounded: step to the odd neighbour on the exact value's side. */
	return bits_f32((back < d) == (d > 0) ? u + 1 : u - 1);
}

#endif
