/* SPDX-License-Identifier: MIT */
/* cvt to and from short floats, with .relu, .satfinite and random bits: against CUDA's headers on the host, and definitions. */
#include <math.h>

#include "tests/softgpu/ptx_cases.h"

u32 ref_encode(int kind, u32 f);
u32 ref_decode(int kind, u32 v);
u32 ref_e8m0(u32 f, int up, int saturate);
u32 host_from_e8m0(u32 v);

static u32 relu(u32 f)
{
	return (f & 0x7fffffff) > 0x7f800000 ? f : f >> 31 ? 0 : f;
}

static float value(u32 u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static u32 bits(float f)
{
	u32 u;

	memcpy(&u, &f, 4);
	return u;
}

static u32 half_value(u32 h)
{
	_Float16 v;
	u16 b = (u16)h;

	memcpy(&v, &b, 2);
	return bits((float)v);
}

#define TINY(kind, name, shift)                                                                                                  \
	CASE(name##_f32, "", "", ref_encode(kind, (u32)a) << shift | ref_encode(kind, (u32)b))                                   \
	CASE(name##_relu, "", "", ref_encode(kind, relu((u32)a)) << shift | ref_encode(kind, relu((u32)b)))                      \
	CASE(name##_f16, "", "",                                                                                                 \
	     ref_encode(kind, half_value(a >> 16 & 0xffff)) << shift | ref_encode(kind, half_value(a & 0xffff)))                 \
	CASE(name##_bf16, "", "", ref_encode(kind, (u32)a & 0xffff0000) << shift | ref_encode(kind, (u32)a << 16))               \
	CASE(name##_to_f16, "", "",                                                                                              \
	     ref_decode(kind, a >> shift & ((1u << shift) - 1) & mask_##name) << 16 |                                            \
		     ref_decode(kind, a & ((1u << shift) - 1) & mask_##name))
enum { mask_e4m3 = 255, mask_e5m2 = 255, mask_e3m2 = 63, mask_e2m3 = 63, mask_e2m1 = 15 };
TINY(0, e4m3, 8)
TINY(1, e5m2, 8)
TINY(2, e3m2, 8)
TINY(3, e2m3, 8)
TINY(4, e2m1, 4)
#define TINY_ROW(op, sig, ref)                                                                                                   \
	{                                                                                                                        \
		op, sig, ref, 0,                                                                                                 \
		{                                                                                                                \
			0                                                                                                        \
		}                                                                                                                \
	}
#define TINY_ROWS(name)                                                                                                          \
	TINY_ROW("cvt.rn.satfinite." #name "x2.f32", "hWW", ref_##name##_f32),                                                   \
		TINY_ROW("cvt.rn.satfinite.relu." #name "x2.f32", "hWW", ref_##name##_relu),                                     \
		TINY_ROW("cvt.rn.satfinite." #name "x2.f16x2", "hT", ref_##name##_f16),                                          \
		TINY_ROW("cvt.rn.satfinite." #name "x2.bf16x2", "hw", ref_##name##_bf16),                                        \
		TINY_ROW("cvt.rn.f16x2." #name "x2", "wh", ref_##name##_to_f16)

CASE(up, "", "", ref_e8m0((u32)a, 1, 0) << 8 | ref_e8m0((u32)b, 1, 0))
CASE(up_sat, "", "", ref_e8m0((u32)a, 1, 1) << 8 | ref_e8m0((u32)b, 1, 1))
CASE(zero, "", "", ref_e8m0((u32)a, 0, 0) << 8 | ref_e8m0((u32)b, 0, 0))
CASE(zero_sat, "", "", ref_e8m0((u32)a, 0, 1) << 8 | ref_e8m0((u32)b, 0, 1))
CASE(e8m0_bf16, "", "", ref_e8m0((u32)a & 0xffff0000, 1, 1) << 8 | ref_e8m0((u32)a << 16, 1, 1))
CASE(from_e8m0, "", "", host_from_e8m0(a >> 8 & 255) << 16 | host_from_e8m0(a & 255))

/* 16-bit results: the neighbours of the value, by definition. */
static u32 shorter(u32 f, int mant, int least, u32 inf, bool to_zero, bool sat)
{
	double v = value(f), x = fabs(v), unit, n;
	u32 sign = f >> 31 ? 0x8000 : 0, r;
	int e;

	if (v != v)
		return 0x7fff;
	if (isinf(v))
		return sign | (sat ? inf - 1 : inf);
	frexp(x, &e);
	e = x == 0 || e - 1 < least ? least : e - 1;
	unit = ldexp(1, e - mant);
	n = to_zero ? floor(x / unit) : rint(x / unit);
	r = (u32)n + ((u32)(e - least) << mant);
	if (r >= inf)
		r = sat || to_zero ? inf - 1 : inf;
	return sign | r;
}

#define F16(f, z, s)  shorter((u32)(f), 10, -14, 0x7c00, z, s)
#define BF16(f, z, s) shorter((u32)(f), 7, -126, 0x7f80, z, s)
CASE(f16_sat, "", "", F16(a, false, true))
CASE(f16_rz_relu, "", "", F16(relu((u32)a), true, false))
CASE(f16x2_sat, "", "", F16(a, false, true) << 16 | F16(b, false, true))
CASE(f16x2_rz, "", "", F16(a, true, false) << 16 | F16(b, true, false))
CASE(bf16_sat, "", "", BF16(a, false, true))
CASE(bf16x2_rz, "", "", BF16(a, true, false) << 16 | BF16(b, true, false))
CASE(bf16x2_all, "", "", BF16(relu((u32)a), false, true) << 16 | BF16(relu((u32)b), false, true))

static u32 tf32(u32 f, int how, bool sat)
{
	u32 mag = f & 0x7fffffff;

	if (mag > 0x7f800000)
		return 0x7fffe000;
	if (mag < 0x7f800000)
		mag += how == 0 ? 0 : how == 1 ? 0xfff + (mag >> 13 & 1) : 0x1000;
	mag &= 0xffffe000;
	return (f & 0x80000000) | (sat && mag >= 0x7f800000 ? 0x7f7fe000 : mag);
}
CASE(tf32_rna_sat, "", "", tf32((u32)a, 2, true))
CASE(tf32_rn_sat, "", "", tf32((u32)a, 1, true))
CASE(tf32_rz_relu, "", "", tf32(relu((u32)a), 0, false))

/* Random bits are added to what is cut off. */
static u32 stochastic_bf16(u32 f, u32 r)
{
	u32 mag = f & 0x7fffffff;

	if (mag > 0x7f800000)
		return 0x7fff;
	if (mag < 0x7f800000)
		mag += r & 0xffff;
	return (f >> 31 << 15) | mag >> 16;
}
CASE(bf16x2_rs, "", "", stochastic_bf16((u32)a, (u32)c >> 16) << 16 | stochastic_bf16((u32)b, (u32)c))

static const struct ptx_case cases[] = {
	TINY_ROWS(e4m3),
	TINY_ROWS(e5m2),
	TINY_ROWS(e3m2),
	TINY_ROWS(e2m3),
	TINY_ROWS(e2m1),
	{"cvt.rp.ue8m0x2.f32", "hWW", ref_up, 0, {0}},
	{"cvt.rp.satfinite.ue8m0x2.f32", "hWW", ref_up_sat, 0, {0}},
	{"cvt.rz.ue8m0x2.f32", "hWW", ref_zero, 0, {0}},
	{"cvt.rz.satfinite.ue8m0x2.f32", "hWW", ref_zero_sat, 0, {0}},
	{"cvt.rp.satfinite.ue8m0x2.bf16x2", "hw", ref_e8m0_bf16, 0, {0}},
	{"cvt.rn.bf16x2.ue8m0x2", "wh", ref_from_e8m0, 0, {0}},
	{"cvt.rn.satfinite.f16.f32", "hW", ref_f16_sat, 0, {0}},
	{"cvt.rz.relu.f16.f32", "hW", ref_f16_rz_relu, 0, {0}},
	{"cvt.rn.satfinite.f16x2.f32", "wWW", ref_f16x2_sat, 0, {0}},
	{"cvt.rz.f16x2.f32", "wWW", ref_f16x2_rz, 0, {0}},
	{"cvt.rn.satfinite.bf16.f32", "hW", ref_bf16_sat, 0, {0}},
	{"cvt.rz.bf16x2.f32", "wWW", ref_bf16x2_rz, 0, {0}},
	{"cvt.rn.relu.satfinite.bf16x2.f32", "wWW", ref_bf16x2_all, 0, {0}},
	{"cvt.rs.bf16x2.f32", "wWWw", ref_bf16x2_rs, 0, {0}},
	{"cvt.rna.satfinite.tf32.f32", "WW", ref_tf32_rna_sat, 0, {0}},
	{"cvt.rn.satfinite.tf32.f32", "WW", ref_tf32_rn_sat, 0, {0}},
	{"cvt.rz.relu.tf32.f32", "WW", ref_tf32_rz_relu, 0, {0}},
};

int main(void)
{
	run_cases(cases, COUNT(cases));
	return tap_done();
}
