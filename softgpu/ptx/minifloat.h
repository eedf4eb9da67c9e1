/* SPDX-License-Identifier: MIT */
/* Floats of 8, 6 and 4 bits: sign, exponent, mantissa, their values and their special encodings. */
#ifndef SOFTGPU_PTX_MINIFLOAT_H
#define SOFTGPU_PTX_MINIFLOAT_H

#include "softgpu/ptx/ops.h"

struct minifloat {
	u32 mbits, bias, bits; /* bits: with the sign */
	u32 most;	       /* the largest finite magnitude's encoding; what lies above is infinity or NaN */
};

static inline struct minifloat minifloat_of(enum type t)
{
	switch (t) {
	case TY_E4M3:
	case TY_E4M3X2:
		return (struct minifloat){3, 7, 8, 0x7e};
	case TY_E5M2:
	case TY_E5M2X2:
		return (struct minifloat){2, 15, 8, 0x7b};
	case TY_E3M2:
	case TY_E3M2X2:
		return (struct minifloat){2, 3, 6, 0x1f};
	case TY_E2M3:
	case TY_E2M3X2:
		return (struct minifloat){3, 1, 6, 0x1f};
	default:
		return (struct minifloat){1, 1, 4, 7}; /* e2m1 */
	}
}

/* Scaling by a power of two moves the exponent and normalises subnormals exactly, as f16_to_f32 does. */
static inline f32 minifloat_decode(u32 v, struct minifloat f)
{
	u32 sign = v >> (f.bits - 1) & 1, mag = v & ((1u << (f.bits - 1)) - 1);
	u32 r = f32_bits(bits_f32(mag << (23 - f.mbits)) * bits_f32((254 - f.bias) << 23));

	if (mag > f.most)
		r = f.mbits == 2 && mag == f.most + 1 ? 0x7f800000 : 0x7fffffff;
	return bits_f32(r == 0x7fffffff ? r : r | sign << 31);
}

/* To nearest even; beyond the largest magnitude that one; NaN is NaN where there is one, else the largest magnitude. */
static inline u32 minifloat_encode(f32 v, struct minifloat f)
{
	u32 u = f32_bits(v), sign = u >> 31 << (f.bits - 1), mag = u & 0x7fffffff, n;
	u32 least = (128 - f.bias) << 23; /* the smallest normal number */

	if (mag > 0x7f800000)
		return f.bits == 8 ? 0x7f : f.most;
	if (mag >= least) {
		u32 cut = 23 - f.mbits;

		n = (mag + (1u << (cut - 1)) - 1 + (mag >> cut & 1)) >> cut;
		n -= (127 - f.bias) << f.mbits;
	} else {
		/* adding a number whose last bit is the format's smallest step rounds to such steps */
		f32 big = bits_f32((127 + 1 - f.bias - f.mbits + 23) << 23);

		n = f32_bits(bits_f32(mag) + big) - f32_bits(big);
	}
	return sign | (n > f.most ? f.most : n);
}

#endif
