/* SPDX-License-Identifier: MIT */
/* Forms that are rare but must be exact: directed rounding, and cvt between any two types. */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "softgpu/ptx/half.h"
#include "softgpu/ptx/tensor.h"

/* Compiled with -frounding-math; operands pass through memory, so nothing is folded or moved across the mode switch. */
static int host_rounding(u64 flags)
{
	switch (flags & MF_RND) {
	case RND_Z:
		return FE_TOWARDZERO;
	case RND_M:
		return FE_DOWNWARD;
	case RND_P:
		return FE_UPWARD;
	default:
		return FE_TONEAREST;
	}
}

static f64 ftz_if(f64 v, u64 flags)
{
	return flags & MF_FTZ ? (f64)ftz((f32)v) : v;
}

#define ROUNDED(nm, T, EXPR, FTZ)                                                                                                \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		T *D = ARG(T, 0);                                                                                                \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2), *C = ARG(const T, 3);                                        \
		const u64 flags = i->imm;                                                                                        \
		int old = fegetround();                                                                                          \
		fesetround(host_rounding(flags));                                                                                \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			volatile T a = FTZ(A[l]), b = FTZ(B[l]), c = FTZ(C[l]), r;                                               \
			(void)b, (void)c;                                                                                        \
			r = EXPR;                                                                                                \
			r = FTZ(r);                                                                                              \
			D[l] = flags & MF_SAT ? (T)sat((f32)r) : r;                                                              \
		}                                                                                                                \
		fesetround(old);                                                                                                 \
	}
#define FTZ32(v) (flags & MF_FTZ ? ftz(v) : (v))
#define PLAIN(v) (v)
ROUNDED(add_f32, f32, a + b, FTZ32)
ROUNDED(sub_f32, f32, a - b, FTZ32)
ROUNDED(mul_f32, f32, a *b, FTZ32)
ROUNDED(fma_f32, f32, fmaf(a, b, c), FTZ32)
ROUNDED(div_f32, f32, a / b, FTZ32)
ROUNDED(rcp_f32, f32, 1.0f / a, FTZ32)
ROUNDED(sqrt_f32, f32, sqrtf(a), FTZ32)
ROUNDED(add_f64, f64, a + b, PLAIN)
ROUNDED(sub_f64, f64, a - b, PLAIN)
ROUNDED(mul_f64, f64, a *b, PLAIN)
ROUNDED(fma_f64, f64, fma(a, b, c), PLAIN)
ROUNDED(div_f64, f64, a / b, PLAIN)
ROUNDED(rcp_f64, f64, 1.0 / a, PLAIN)
ROUNDED(sqrt_f64, f64, sqrt(a), PLAIN)

void ptx_product_884(const f64 *a, const f64 *b, f64 *c, u32 rnd)
{
	int old = fegetround();

	fesetround(host_rounding(rnd + 1));
	for (u32 r = 0; r < 8; r++)
		for (u32 j = 0; j < 8; j++)
			for (u32 q = 0; q < 4; q++) {
				volatile f64 x = a[r * 4 + q], sum = fma(x, b[q * 8 + j], c[r * 8 + j]);

				c[r * 8 + j] = sum;
			}
	fesetround(old);
}

/* To an integral value, in the mode of the conversion; C's rint needs no mode but the nearest. */
static f64 integral(f64 v, u64 flags)
{
	switch (flags & MF_RND) {
	case RND_Z:
		return trunc(v);
	case RND_M:
		return floor(v);
	case RND_P:
		return ceil(v);
	default:
		return rint(v);
	}
}

static u64 load(const void *p, u32 cls, u32 l)
{
	return cls == RC_16 ? ((const u16 *)p)[l] : cls == RC_32 ? ((const u32 *)p)[l] : ((const u64 *)p)[l];
}

static void store(void *p, u32 cls, u32 l, u64 v)
{
	if (cls == RC_16)
		((u16 *)p)[l] = (u16)v;
	else if (cls == RC_32)
		((u32 *)p)[l] = (u32)v;
	else
		((u64 *)p)[l] = v;
}

static u64 narrow(u64 v, enum type t)
{
	switch (t) {
	case TY_U8:
		return (u8)v;
	case TY_S8:
		return (u64)(s64)(s8)v;
	case TY_U16:
		return (u16)v;
	case TY_S16:
		return (u64)(s64)(s16)v;
	case TY_U32:
		return (u32)v;
	case TY_S32:
		return (u64)(s64)(s32)v;
	default:
		return v;
	}
}

static void limits(enum type t, s64 *lo, u64 *hi)
{
	u32 bits = 8 * type_size(t);

	if (type_is_signed(t)) {
		*lo = -(s64)(1ull << (bits - 2)) * 2;
		*hi = (1ull << (bits - 1)) - 1;
	} else {
		*lo = 0;
		*hi = bits == 64 ? ~0ull : (1ull << bits) - 1;
	}
}

static u64 saturate(u64 v, bool is_signed, enum type to)
{
	u64 hi;
	s64 lo;

	limits(to, &lo, &hi);
	if (is_signed && (s64)v < lo)
		return (u64)lo;
	if ((!is_signed || (s64)v >= 0) && v > hi)
		return hi;
	return v;
}

/* A NaN is 0, but the top bit when either side has 64 bits. */
static u64 float_to_int(f64 v, enum type from, enum type to, u64 flags)
{
	u64 hi;
	s64 lo;

	limits(to, &lo, &hi);
	if (v != v)
		return type_size(to) == 8 || from == TY_F64 ? 1ull << (8 * type_size(to) - 1) : 0;
	v = integral(v, flags);
	if (v <= (f64)lo)
		return (u64)lo;
	if (v >= (f64)hi)
		return hi;
	return lo ? (u64)(s64)v : (u64)v;
}

static f64 read_float(u64 v, enum type t)
{
	switch (t) {
	case TY_F16:
		return (f64)f16_to_f32((u16)v);
	case TY_BF16:
		return (f64)bf16_to_f32((u16)v);
	case TY_F32:
		return (f64)bits_f32((u32)v);
	default:
		return bits_f64(v);
	}
}

/* A value rounded in a directed mode to a 16-bit format: to nearest first, then one step if that went the wrong way. */
static u16 to_half(f64 v, enum type t, u64 flags)
{
	f32 odd = f64_to_f32_odd(v);
	u16 h = t == TY_F16 ? f32_to_f16(odd) : f32_to_bf16(odd), inf = t == TY_F16 ? 0x7c00 : 0x7f80;
	f64 back = read_float(h, t);
	u32 rnd = flags & MF_RND;
	bool away = fabs(back) > fabs(v), toward = fabs(back) < fabs(v);

	if (v != v || rnd == RND_N || rnd == RND_NONE || back == v)
		return h;
	if (rnd == RND_Z || (rnd == RND_M && v > 0) || (rnd == RND_P && v < 0))
		return away && !(isinf(v)) ? h - 1 : h;
	return toward && (h & 0x7fff) != inf ? h + 1 : h;
}

static u64 write_float(f64 v, enum type t, u64 flags)
{
	volatile f64 in = v;
	volatile f32 f;
	int old = fegetround();

	switch (t) {
	case TY_F16:
	case TY_BF16:
		return to_half(v, t, flags);
	case TY_F32:
		fesetround(host_rounding(flags));
		f = (f32)in;
		fesetround(old);
		return f32_bits(flags & MF_FTZ ? ftz(f) : f);
	default:
		return f64_bits(v);
	}
}

/* Integers of 64 bits do not pass through f64 on their way to f32. */
static u64 int_to_float(u64 v, bool is_signed, enum type to, u64 flags)
{
	volatile u64 u = v;
	int old = fegetround();
	volatile f32 f;
	volatile f64 d;

	if (flags & MF_SAT)
		u = is_signed && (s64)v < 0 ? 0 : v > 1 ? 1 : v;
	if (to == TY_F32) {
		fesetround(host_rounding(flags));
		f = is_signed ? (f32)(s64)u : (f32)u;
		fesetround(old);
		return f32_bits(f);
	}
	fesetround(to == TY_F64 ? host_rounding(flags) : FE_TOWARDZERO);
	d = is_signed ? (f64)(s64)u : (f64)u;
	fesetround(old);
	if (to == TY_F64)
		return f64_bits(d);
	/* 16-bit floats: what f64 cut off becomes its last bit, so that the next rounding sees it. */
	if (is_signed ? d >= -0x1p63 && d < 0x1p63 && (s64)d != (s64)u : d < 0x1p64 && (u64)d != u)
		d = bits_f64(f64_bits(d) | 1);
	return to_half(d, to, flags);
}

/* imm: flags, result's class << 8, source's class << 12; size and sub: the types. */
HANDLER(cvt_general)
{
	u32 dc = i->imm >> 8 & 15, sc = i->imm >> 12 & 15;
	enum type dt = (enum type)i->size, st = (enum type)i->sub;
	const void *A = opnd_ptr(w, i->r[1]);
	void *D = opnd_ptr(w, i->r[0]);
	u64 flags = i->imm & 255;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 v = load(A, sc, l);

		if (type_is_float(st)) {
			f64 f = read_float(v, st);

			if (st == TY_F32)
				f = ftz_if(f, flags);
			if (!type_is_float(dt)) {
				v = float_to_int(f, st, dt, flags);
			} else if (dt == st) {
				if (flags & MF_RND)
					f = integral(f, flags);
				if (flags & MF_SAT)
					f = (f64)(f > 0 ? (f < 1 ? f : 1) : 0);
				v = f == f	   ? write_float(f, dt, RND_N | (flags & MF_FTZ))
				    : dt == TY_F64 ? v
						   : write_float(f, dt, RND_N);
			} else {
				if (flags & MF_SAT)
					f = f > 0 ? (f < 1 ? f : 1) : 0;
				v = write_float(f, dt, flags);
			}
		} else {
			v = narrow(v, st);
			if (type_is_float(dt))
				v = int_to_float(v, type_is_signed(st), dt, flags);
			else if (flags & MF_SAT)
				v = saturate(v, type_is_signed(st), dt);
		}
		if (!type_is_float(dt))
			v = narrow(v, dt);
		store(D, dc, l, v);
	}
}

/* cvt.pack: a and b saturated side by side, over the low part of c for bytes. */
static u32 pack8(s32 a, s32 b, u32 c, enum type t)
{
	return c << 16 | ((u32)saturate((u64)(s64)a, true, t) & 0xff) << 8 | ((u32)saturate((u64)(s64)b, true, t) & 0xff);
}

static u32 pack_small(s32 a, s32 b, u32 c, u32 bits, bool is_signed)
{
	s32 lo = is_signed ? -(1 << (bits - 1)) : 0, hi = (1 << (is_signed ? bits - 1 : bits)) - 1;
	u32 m = (1u << bits) - 1;

	a = a < lo ? lo : a > hi ? hi : a;
	b = b < lo ? lo : b > hi ? hi : b;
	return c << (2 * bits) | ((u32)a & m) << bits | ((u32)b & m);
}

static u32 pack16(s32 a, s32 b, enum type t)
{
	return (u32)saturate((u64)(s64)a, true, t) << 16 | ((u32)saturate((u64)(s64)b, true, t) & 0xffff);
}

OP_LANE_FUNC(pack_u8, "", "", u32, s32, s32, u32, pack8(a, b, c, TY_U8))
OP_LANE_FUNC(pack_s8, "", "", u32, s32, s32, u32, pack8(a, b, c, TY_S8))
OP_LANE_FUNC(pack_u4, "", "", u32, s32, s32, u32, pack_small(a, b, c, 4, false))
OP_LANE_FUNC(pack_s4, "", "", u32, s32, s32, u32, pack_small(a, b, c, 4, true))
OP_LANE_FUNC(pack_u2, "", "", u32, s32, s32, u32, pack_small(a, b, c, 2, false))
OP_LANE_FUNC(pack_s2, "", "", u32, s32, s32, u32, pack_small(a, b, c, 2, true))
OP_LANE_FUNC(pack_u16, "", "", u32, s32, s32, u32, pack16(a, b, TY_U16))
OP_LANE_FUNC(pack_s16, "", "", u32, s32, s32, u32, pack16(a, b, TY_S16))

#define RND32(nm, op, sig)     {op ".{rn,rz,rm,rp}{,.ftz}.f32", sig, nm##_f32, OP_MODS},
#define RND32_SAT(nm, op, sig) RND32(nm, op, sig){op ".{rn,rz,rm,rp}{,.ftz}.sat.f32", sig, nm##_f32, OP_MODS},
#define RND64(nm, op, sig)     {op ".{rn,rz,rm,rp}.f64", sig, nm##_f64, OP_MODS},

const struct op_row ptx_ops_general[] = {
	RND32_SAT(add, "add", "fff") RND32_SAT(sub, "sub", "fff") RND32_SAT(mul, "mul", "fff") RND32_SAT(fma, "{fma,mad}", "ffff")
		RND32(div, "div", "fff") RND32(rcp, "rcp", "ff") RND32(sqrt, "sqrt", "ff") RND64(add, "add", "FFF")
			RND64(sub, "sub", "FFF") RND64(mul, "mul", "FFF") RND64(fma, "{fma,mad}", "FFFF") RND64(div, "div", "FFF")
				RND64(rcp, "rcp", "FF") RND64(sqrt, "sqrt", "FF"){"cvt.pack.sat.u8.s32.b32", "wwww", pack_u8, 0},
	{"cvt.pack.sat.s8.s32.b32", "wwww", pack_s8, 0},
	{"cvt.pack.sat.u4.s32.b32", "wwww", pack_u4, 0},
	{"cvt.pack.sat.s4.s32.b32", "wwww", pack_s4, 0},
	{"cvt.pack.sat.u2.s32.b32", "wwww", pack_u2, 0},
	{"cvt.pack.sat.s2.s32.b32", "wwww", pack_s2, 0},
	{"cvt.pack.sat.u16.s32", "www", pack_u16, 0},
	{"cvt.pack.sat.s16.s32", "www", pack_s16, 0},
	{"cvt:general", "", cvt_general, 0},
	{NULL, NULL, NULL, 0},
};
