/* SPDX-License-Identifier: MIT */
/* cvt to and from floats of 8, 6 and 4 bits and powers of two, and to 16-bit floats and tf32 with all modifiers. */
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/minifloat.h"
#include "softgpu/ptx/small.h"

static f32 relu(f32 v)
{
	return v > 0 || v != v ? v : 0.0f;
}

/* ue8m0: the exponent alone, 255 for NaN; the sign is not looked at. */
static u32 to_ue8m0(f32 v, struct small s)
{
	u32 mag = f32_bits(v) & 0x7fffffff, e = mag >> 23;

	if (mag > 0x7f800000)
		return 0xff;
	/* the smallest number that has a place is 2^-127, a subnormal in f32 */
	if (s.rnd == RND_P && (e ? mag & 0x7fffff : mag > 0x400000))
		e++;
	return e > 0xfe ? (s.flags & SF_SATFINITE ? 0xfe : 0xff) : e;
}

/* A 16-bit float or tf32 out of f32: @cut mantissa bits go away. */
static u32 shorten(f32 v, struct small s, u32 rbits)
{
	u32 u = f32_bits(v), sign = u & 0x80000000, mag = u & 0x7fffffff;

	if (s.to == TY_F16) {
		u32 h;

		if (s.rnd == RND_S && mag < 0x7f800000)
			v = bits_f32(sign | (mag + rbits > 0x7f7fffff ? 0x7f7fffff : mag + rbits));
		h = f32_to_f16(v);
		/* to nearest was too far: one step back */
		if ((s.rnd == RND_Z || s.rnd == RND_S) && mag < 0x7f800000 &&
		    __builtin_fabsf(f16_to_f32((u16)h)) > __builtin_fabsf(v))
			h--;
		return s.flags & SF_SATFINITE && (h & 0x7fff) == 0x7c00 ? h - 1 : h;
	}
	if (mag > 0x7f800000)
		return s.to == TY_BF16 ? 0x7fff : 0x7fffffff;
	if (s.to == TY_BF16) {
		if (s.rnd == RND_N)
			mag += 0x7fff + (mag >> 16 & 1);
		else if (s.rnd == RND_S && mag < 0x7f800000)
			mag += rbits;
		mag &= 0x7fff0000;
		if (s.flags & SF_SATFINITE && mag >= 0x7f800000)
			mag = 0x7f7f0000;
		return (sign | mag) >> 16;
	}
	if (mag < 0x7f800000) {
		if (s.rnd == RND_NA)
			mag += 0x1000;
		else if (s.rnd == RND_N)
			mag += 0xfff + (mag >> 13 & 1);
	}
	mag &= 0xffffe000;
	if (s.flags & SF_SATFINITE && mag >= 0x7f800000)
		mag = 0x7f7fe000;
	return sign | mag;
}

static u32 convert(f32 v, struct small s, u32 rbits)
{
	if (s.flags & SF_RELU)
		v = relu(v);
	if (s.to == TY_UE8M0X2)
		return to_ue8m0(v, s);
	if (s.to == TY_F16 || s.to == TY_BF16 || s.to == TY_TF32)
		return shorten(v, s, rbits);
	return minifloat_encode(v, minifloat_of((enum type)s.to));
}

/* One or two f32 to one value or to two, a's above b's; the third operand has random bits. */
HANDLER(small_f32)
{
	const struct small s = small_unpack(i->imm);
	const f32 *A = ARG(const f32, 1), *B = ARG(const f32, 2);
	const u32 *R = ARG(const u32, 3);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), r = s.rnd == RND_S ? R[l] : 0, mask = s.to == TY_F16 ? 0x1fff : 0xffff, v;

		v = convert(A[l], s, r >> 16 & mask);
		if (s.flags & SF_TWO)
			v = v << s.bits | convert(B[l], s, r & mask);
		if (s.flags & SF_WIDE)
			ARG(u32, 0)[l] = v;
		else
			ARG(u16, 0)[l] = (u16)v;
	}
}

/* A pair of 16-bit floats. */
HANDLER(small_pair)
{
	const struct small s = small_unpack(i->imm);
	const u32 *A = ARG(const u32, 1);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u16 hi = (u16)(A[l] >> 16), lo = (u16)A[l];
		bool f16 = s.from == TY_F16X2;

		ARG(u16, 0)
		[l] = (u16)(convert(f16 ? f16_to_f32(hi) : bf16_to_f32(hi), s, 0) << s.bits |
			    convert(f16 ? f16_to_f32(lo) : bf16_to_f32(lo), s, 0));
	}
}

/* Two small floats to f16, two powers of two to bf16. */
HANDLER(small_unpacked)
{
	const struct small s = small_unpack(i->imm);
	const u16 *A = ARG(const u16, 1);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), d = 0;

		for (u32 k = 0; k < 2; k++) {
			u32 v = A[l] >> (k * s.bits) & ((1u << s.bits) - 1), r;

			if (s.from == TY_UE8M0X2) {
				r = v == 255 ? 0x7fff : v ? v << 7 : 0x40;
			} else {
				struct minifloat f = minifloat_of((enum type)s.from);
				f32 x = minifloat_decode(v & ((1u << f.bits) - 1), f);

				r = f32_to_f16(s.flags & SF_RELU ? relu(x) : x);
			}
			d |= r << (16 * k);
		}
		ARG(u32, 0)[l] = d;
	}
}

const struct op_row ptx_ops_minifloat[] = {
	{"small:f32", "", small_f32, 0},
	{"small:pair", "", small_pair, 0},
	{"small:unpacked", "", small_unpacked, 0},
	{NULL, NULL, NULL, 0},
};
