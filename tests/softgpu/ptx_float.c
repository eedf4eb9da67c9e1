/* SPDX-License-Identifier: MIT */
/* Floating-point instructions and conversions of the PTX engine, lane by lane against C and exact references. */
#include <fenv.h>
#include <math.h>

#include "tests/softgpu/ptx_cases.h"

static float F(u64 v)
{
	u32 u = (u32)v;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static double D(u64 v)
{
	double d;

	memcpy(&d, &v, 8);
	return d;
}

static u64 BF(float f)
{
	u32 u;

	memcpy(&u, &f, 4);
	return u;
}

static u64 BD(double d)
{
	u64 u;

	memcpy(&u, &d, 8);
	return u;
}

static float Z(u64 v) /* flushed */
{
	return fabsf(F(v)) < 0x1p-126f ? copysignf(0, F(v)) : F(v);
}

static float ZF(float f)
{
	return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static float SAT(float f)
{
	return f > 0 ? fminf(f, 1) : 0;
}

/* Evaluates in a rounding mode; noinline and volatile keep the operation between the mode switches. */
#define ROUND(mode, T, op, x, y)                                                                                                 \
	({                                                                                                                       \
		volatile T x_ = (x), y_ = (y), r_;                                                                               \
		(void)y_;                                                                                                        \
		fesetround(mode);                                                                                                \
		r_ = op;                                                                                                         \
		fesetround(FE_TONEAREST);                                                                                        \
		r_;                                                                                                              \
	})

static float fma_mode(int mode, float a, float b, float c)
{
	volatile float r;

	fesetround(mode);
	r = fmaf(a, b, c);
	fesetround(FE_TONEAREST);
	return r;
}

static double int_mode(int mode, u64 v, bool is_signed, bool to_double)
{
	volatile u64 in = v;
	volatile float f;
	volatile double d;

	fesetround(mode);
	d = is_signed ? (double)(s64)in : (double)in;
	f = is_signed ? (float)(s64)in : (float)in;
	fesetround(FE_TONEAREST);
	return to_double ? d : (double)f;
}

static float narrow_mode(int mode, double v)
{
	volatile double in = v;
	volatile float f;

	fesetround(mode);
	f = (float)in;
	fesetround(FE_TONEAREST);
	return f;
}

/* minNum/maxNum as PTX has them: −0 < +0, NaN loses, two NaNs give the canonical NaN. */
static u64 minmax32(u64 a, u64 b, bool max)
{
	if (isnan(F(a)) && isnan(F(b)))
		return 0x7fffffff;
	if (isnan(F(a)))
		return (u32)b;
	if (isnan(F(b)))
		return (u32)a;
	if (F(a) == F(b))
		return !!signbit(F(a)) == max ? (u32)b : (u32)a;
	return (F(a) < F(b)) != max ? (u32)a : (u32)b;
}

/* 16-bit floats by definition: value from the fields, and to the nearest of all candidates. */
static double H(u64 v, u32 ebits)
{
	u32 mbits = 15 - ebits, e = v >> mbits & ((1u << ebits) - 1), m = v & ((1u << mbits) - 1);
	int bias = (1 << (ebits - 1)) - 1;
	double r;

	if (e == (1u << ebits) - 1)
		r = m ? NAN : INFINITY;
	else
		r = e ? ldexp(1 + m / (double)(1 << mbits), (int)e - bias) : ldexp(m, 1 - bias - (int)mbits);
	return v & 0x8000 ? -r : r;
}

static u64 to_half(long double v, u32 ebits, int mode)
{
	u32 mbits = 15 - ebits, inf = ((1u << ebits) - 1) << mbits, lo = 0, hi = inf;
	u64 sign = signbit(v) ? 0x8000 : 0;
	long double x = fabsl(v), below, above;

	if (v != v)
		return 0x7fff;
	if (isinf(v))
		return sign | inf;
	while (lo < hi) { /* the largest finite or smaller representable value ≤ x */
		u32 mid = (lo + hi + 1) / 2;

		if (mid < inf && (long double)H(mid, ebits) <= x)
			lo = mid;
		else
			hi = mid - 1;
	}
	below = (long double)H(lo, ebits);
	if (below == x)
		return sign | lo;
	if (mode == FE_TOWARDZERO || (mode == FE_UPWARD && sign) || (mode == FE_DOWNWARD && !sign))
		return sign | lo;
	if (mode != FE_TONEAREST)
		return sign | (lo + 1);
	above = lo + 1 == inf ? ldexpl(1, 1 << (ebits - 1)) : (long double)H(lo + 1, ebits);
	if (x - below == above - x)
		return sign | (lo & 1 ? lo + 1 : lo);
	return sign | (x - below < above - x ? lo : lo + 1);
}

/* 8-bit floats: e4m3 (3 mantissa bits, no infinity) and e5m2, the nearest of all finite values. */
static double fp8(u32 v, u32 mbits)
{
	u32 e = v >> mbits & ((1u << (7 - mbits)) - 1), m = v & ((1u << mbits) - 1);
	int bias = mbits == 3 ? 7 : 15;
	double r = e ? ldexp(1 + m / (double)(1 << mbits), (int)e - bias) : ldexp(m, 1 - bias - (int)mbits);

	if (mbits == 3 ? (v & 127) == 127 : e == 31 && m)
		return NAN;
	if (mbits == 2 && e == 31)
		r = INFINITY;
	return v & 128 ? -r : r;
}

static u64 to_fp8(double v, u32 mbits)
{
	u32 best = 0, most = mbits == 3 ? 0x7e : 0x7b;

	if (isnan(v))
		return 0x7f;
	if (fabs(v) >= fp8(most, mbits))
		return most | (signbit(v) ? 128 : 0);
	for (u32 k = 1; k <= most; k++) {
		double d = fabs(fp8(k, mbits) - fabs(v)), e = fabs(fp8(best, mbits) - fabs(v));

		if (d < e || (d == e && !(k & 1)))
			best = k;
	}
	return best | (signbit(v) ? 128 : 0);
}

#define HF(v) H((u16)(v), 5)
#define HB(v) H((u16)(v), 8)
#define TH(v) to_half(v, 5, FE_TONEAREST)
#define TB(v) to_half(v, 8, FE_TONEAREST)

static u64 pair(u64 lo, u64 hi)
{
	return (lo & 0xffff) | hi << 16;
}

/* Float to integer: round, saturate, NaN is 0 (the top bit for 64 bits, as the hardware has it). */
static u64 to_int(double v, int mode, bool is_signed, u32 bits)
{
	double r = mode == FE_TOWARDZERO ? trunc(v) : mode == FE_DOWNWARD ? floor(v) : mode == FE_UPWARD ? ceil(v) : rint(v);

	if (v != v)
		return bits == 64 ? 1ull << 63 : 0;
	if (is_signed) {
		if (r >= ldexp(1, (int)bits - 1))
			return (1ull << (bits - 1)) - 1;
		if (r < -ldexp(1, (int)bits - 1))
			return 1ull << (bits - 1);
		return (u64)(s64)r;
	}
	if (r >= ldexp(1, (int)bits))
		return bits == 64 ? ~0ull : (1ull << bits) - 1;
	return r <= 0 ? 0 : (u64)r;
}

#define N  FE_TONEAREST
#define RZ FE_TOWARDZERO
#define RM FE_DOWNWARD
#define RP FE_UPWARD

#define CASES(X)                                                                                                                 \
	X(add, "add.f32", "WWW", 0, BF(F(a) + F(b)))                                                                             \
	X(addftz, "add.ftz.f32", "WWW", 0, BF(ZF(Z(a) + Z(b))))                                                                  \
	X(addrz, "add.rz.f32", "WWW", 0, BF(ROUND(RZ, float, x_ + y_, F(a), F(b))))                                              \
	X(addrm, "add.rm.f32", "WWW", 0, BF(ROUND(RM, float, x_ + y_, F(a), F(b))))                                              \
	X(addrpf, "add.rp.ftz.f32", "WWW", 0, BF(ZF(ROUND(RP, float, x_ + y_, Z(a), Z(b)))))                                     \
	X(addsat, "add.sat.f32", "WWW", 0, BF(SAT(F(a) + F(b))))                                                                 \
	X(subf, "sub.f32", "WWW", 0, BF(F(a) - F(b)))                                                                            \
	X(subrzs, "sub.rz.sat.f32", "WWW", 0, BF(SAT(ROUND(RZ, float, x_ - y_, F(a), F(b)))))                                    \
	X(mul, "mul.f32", "WWW", 0, BF(F(a) * F(b)))                                                                             \
	X(mulftz, "mul.rn.ftz.f32", "WWW", 0, BF(ZF(Z(a) * Z(b))))                                                               \
	X(mulrm, "mul.rm.f32", "WWW", 0, BF(ROUND(RM, float, x_ *y_, F(a), F(b))))                                               \
	X(mulrp, "mul.rp.f32", "WWW", 0, BF(ROUND(RP, float, x_ *y_, F(a), F(b))))                                               \
	X(fma, "fma.rn.f32", "WWWW", 0, BF(fmaf(F(a), F(b), F(c))))                                                              \
	X(fmaftz, "fma.rn.ftz.f32", "WWWW", 0, BF(ZF(fmaf(Z(a), Z(b), Z(c)))))                                                   \
	X(fmarz, "fma.rz.f32", "WWWW", 0, BF(fma_mode(RZ, F(a), F(b), F(c))))                                                    \
	X(fmarm, "fma.rm.f32", "WWWW", 0, BF(fma_mode(RM, F(a), F(b), F(c))))                                                    \
	X(fmasat, "fma.rn.sat.f32", "WWWW", 0, BF(SAT(fmaf(F(a), F(b), F(c)))))                                                  \
	X(mad, "mad.rn.f32", "WWWW", 0, BF(fmaf(F(a), F(b), F(c))))                                                              \
	X(div, "div.rn.f32", "WWW", 0, BF(F(a) / F(b)))                                                                          \
	X(divftz, "div.rn.ftz.f32", "WWW", 0, BF(ZF(Z(a) / Z(b))))                                                               \
	X(divrz, "div.rz.f32", "WWW", 0, BF(ROUND(RZ, float, x_ / y_, F(a), F(b))))                                              \
	X(divrp, "div.rp.f32", "WWW", 0, BF(ROUND(RP, float, x_ / y_, F(a), F(b))))                                              \
	X(rcp, "rcp.rn.f32", "WW", 0, BF(1 / F(a)))                                                                              \
	X(rcprm, "rcp.rm.f32", "WW", 0, BF(ROUND(RM, float, 1 / x_, F(a), 0)))                                                   \
	X(rcpa, "rcp.approx.ftz.f32", "WW", 1, BF(ZF(1 / Z(a))))                                                                 \
	X(sqrt, "sqrt.rn.f32", "WW", 0, BF(sqrtf(F(a))))                                                                         \
	X(sqrtrz, "sqrt.rz.f32", "WW", 0, BF(ROUND(RZ, float, sqrtf(x_), F(a), 0)))                                              \
	X(rsqrt, "rsqrt.approx.f32", "WW", 2, BF((float)(1 / sqrt((double)F(a)))))                                               \
	X(ex2, "ex2.approx.f32", "WW", 2, BF((float)exp2((double)F(a))))                                                         \
	X(lg2, "lg2.approx.f32", "WW", 4, BF((float)log2((double)F(a))))                                                         \
	X(sin, "sin.approx.f32", "WW", 4, BF((float)sin((double)F(a))))                                                          \
	X(cos, "cos.approx.f32", "WW", 4, BF((float)cos((double)F(a))))                                                          \
	X(tanh, "tanh.approx.f32", "WW", 4, BF((float)tanh((double)F(a))))                                                       \
	X(negf, "neg.f32", "WW", 0, (u32)a ^ 0x80000000)                                                                         \
	X(absf, "abs.f32", "WW", 0, (u32)a & 0x7fffffff)                                                                         \
	X(copysign, "copysign.f32", "WWW", 0, ((u32)a & 0x80000000) | ((u32)b & 0x7fffffff))                                     \
	X(min, "min.f32", "WWW", 0, minmax32(a, b, false))                                                                       \
	X(max, "max.f32", "WWW", 0, minmax32(a, b, true))                                                                        \
	X(maxnan, "max.NaN.f32", "WWW", 0, isnan(F(a)) || isnan(F(b)) ? 0x7fffffff : minmax32(a, b, true))                       \
	X(minftz, "min.ftz.f32", "WWW", 0, minmax32(BF(Z(a)), BF(Z(b)), false))                                                  \
	X(addd, "add.f64", "DDD", 0, BD(D(a) + D(b)))                                                                            \
	X(adddrm, "add.rm.f64", "DDD", 0, BD(ROUND(RM, double, x_ + y_, D(a), D(b))))                                            \
	X(muld, "mul.rn.f64", "DDD", 0, BD(D(a) * D(b)))                                                                         \
	X(muldrz, "mul.rz.f64", "DDD", 0, BD(ROUND(RZ, double, x_ *y_, D(a), D(b))))                                             \
	X(fmad, "fma.rn.f64", "DDDD", 0, BD(fma(D(a), D(b), D(c))))                                                              \
	X(divd, "div.rn.f64", "DDD", 0, BD(D(a) / D(b)))                                                                         \
	X(sqrtd, "sqrt.rn.f64", "DD", 0, BD(sqrt(D(a))))                                                                         \
	X(rcpd, "rcp.rn.f64", "DD", 0, BD(1 / D(a)))                                                                             \
	X(negd, "neg.f64", "DD", 0, a ^ 1ull << 63)                                                                              \
	X(setlt, "setp.lt.f32", "pWW", 0, F(a) < F(b))                                                                           \
	X(setltu, "setp.ltu.f32", "pWW", 0, !(F(a) >= F(b)))                                                                     \
	X(setne, "setp.ne.f32", "pWW", 0, F(a) < F(b) || F(a) > F(b))                                                            \
	X(setneu, "setp.neu.f32", "pWW", 0, F(a) != F(b))                                                                        \
	X(setequ, "setp.equ.f32", "pWW", 0, !(F(a) < F(b) || F(a) > F(b)))                                                       \
	X(setgtu, "setp.gtu.f32", "pWW", 0, !(F(a) <= F(b)))                                                                     \
	X(setge, "setp.ge.f32", "pWW", 0, F(a) >= F(b))                                                                          \
	X(setleu, "setp.leu.f32", "pWW", 0, !(F(a) > F(b)))                                                                      \
	X(setgeu, "setp.geu.f64", "pDD", 0, !(D(a) < D(b)))                                                                      \
	X(setnan, "setp.nan.f64", "pDD", 0, isnan(D(a)) || isnan(D(b)))                                                          \
	X(setnum, "setp.num.f32", "pWW", 0, !isnan(F(a)) && !isnan(F(b)))                                                        \
	X(setftz, "setp.eq.ftz.f32", "pWW", 0, Z(a) == Z(b))                                                                     \
	X(seth, "setp.gt.f16", "pHH", 0, HF(a) > HF(b))                                                                          \
	X(testp, "testp.subnormal.f32", "pW", 0, fpclassify(F(a)) == FP_SUBNORMAL)                                               \
	X(testn, "testp.normal.f64", "pD", 0, fpclassify(D(a)) == FP_NORMAL)                                                     \
	X(testi, "testp.infinite.f32", "pW", 0, isinf(F(a)))                                                                     \
	X(s32f, "cvt.rzi.s32.f32", "wW", 0, to_int((double)F(a), RZ, true, 32))                                                  \
	X(s32fn, "cvt.rni.s32.f32", "wW", 0, to_int((double)F(a), N, true, 32))                                                  \
	X(s32fm, "cvt.rmi.s32.f32", "wW", 0, to_int((double)F(a), RM, true, 32))                                                 \
	X(s32fp, "cvt.rpi.s32.f32", "wW", 0, to_int((double)F(a), RP, true, 32))                                                 \
	X(u32f, "cvt.rzi.u32.f32", "wW", 0, to_int((double)F(a), RZ, false, 32))                                                 \
	X(u32fp, "cvt.rpi.u32.f32", "wW", 0, to_int((double)F(a), RP, false, 32))                                                \
	X(s64f, "cvt.rzi.s64.f32", "dW", 0, to_int((double)F(a), RZ, true, 64))                                                  \
	X(u64d, "cvt.rni.u64.f64", "dD", 0, to_int(D(a), N, false, 64))                                                          \
	X(s64d, "cvt.rmi.s64.f64", "dD", 0, to_int(D(a), RM, true, 64))                                                          \
	X(s32d, "cvt.rzi.s32.f64", "wD", 0, to_int(D(a), RZ, true, 32))                                                          \
	X(u16f, "cvt.rzi.u16.f32", "hW", 0, to_int((double)F(a), RZ, false, 16))                                                 \
	X(s8f, "cvt.rni.s8.f32", "hW", 0, (s8)to_int((double)F(a), N, true, 8))                                                  \
	X(s32h, "cvt.rni.s32.f16", "wH", 0, to_int(HF(a), N, true, 32))                                                          \
	X(fs32, "cvt.rn.f32.s32", "Ww", 0, BF((float)(s32)a))                                                                    \
	X(fu32, "cvt.rn.f32.u32", "Ww", 0, BF((float)(u32)a))                                                                    \
	X(fs32z, "cvt.rz.f32.s32", "Ww", 0, BF((float)int_mode(RZ, (u64)(s32)a, true, false)))                                   \
	X(fu64p, "cvt.rp.f32.u64", "Wd", 0, BF((float)int_mode(RP, a, false, false)))                                            \
	X(fs64, "cvt.rn.f32.s64", "Wd", 0, BF((float)(s64)a))                                                                    \
	X(du64, "cvt.rn.f64.u64", "Dd", 0, BD((double)a))                                                                        \
	X(ds64m, "cvt.rm.f64.s64", "Dd", 0, BD(int_mode(RM, a, true, true)))                                                     \
	X(fs16, "cvt.rn.f32.s16", "Wh", 0, BF((float)(s16)a))                                                                    \
	X(df, "cvt.f64.f32", "DW", 0, BD((double)F(a)))                                                                          \
	X(fd, "cvt.rn.f32.f64", "WD", 0, BF((float)D(a)))                                                                        \
	X(fdz, "cvt.rz.f32.f64", "WD", 0, BF(narrow_mode(RZ, D(a))))                                                             \
	X(fdp, "cvt.rp.f32.f64", "WD", 0, BF(narrow_mode(RP, D(a))))                                                             \
	X(fdftz, "cvt.rn.ftz.f32.f64", "WD", 0, BF(ZF((float)D(a))))                                                             \
	X(ffi, "cvt.rni.f32.f32", "WW", 0, BF(rintf(F(a))))                                                                      \
	X(fft, "cvt.rzi.f32.f32", "WW", 0, BF(truncf(F(a))))                                                                     \
	X(ffc, "cvt.rpi.ftz.f32.f32", "WW", 0, BF(ceilf(Z(a))))                                                                  \
	X(ffs, "cvt.sat.f32.f32", "WW", 0, BF(SAT(F(a))))                                                                        \
	X(ddm, "cvt.rmi.f64.f64", "DD", 0, BD(floor(D(a))))                                                                      \
	X(fh, "cvt.f32.f16", "WH", 0, BF((float)HF(a)))                                                                          \
	X(fb, "cvt.f32.bf16", "Wh", 0, (u64)(u16)a << 16)                                                                        \
	X(dh, "cvt.f64.f16", "DH", 0, BD(HF(a)))                                                                                 \
	X(hf, "cvt.rn.f16.f32", "HW", 0, TH((long double)F(a)))                                                                  \
	X(hfz, "cvt.rz.f16.f32", "HW", 0, to_half((long double)F(a), 5, RZ))                                                     \
	X(hd, "cvt.rn.f16.f64", "HD", 0, TH((long double)D(a)))                                                                  \
	X(hdp, "cvt.rp.f16.f64", "HD", 0, to_half((long double)D(a), 5, RP))                                                     \
	X(hs32, "cvt.rn.f16.s32", "Hw", 0, TH((long double)(s32)a))                                                              \
	X(hu64, "cvt.rn.f16.u64", "Hd", 0, TH((long double)a))                                                                   \
	X(bff, "cvt.rn.bf16.f32", "hW", 0, isnan(F(a)) ? 0x7fff : TB((long double)F(a)))                                         \
	X(hff, "cvt.rn.f16x2.f32", "wWW", 0, pair(TH((long double)F(b)), TH((long double)F(a))))                                 \
	X(bff2, "cvt.rn.bf16x2.f32", "wWW", 0, pair(TB((long double)F(b)), TB((long double)F(a))))                               \
	X(addh, "add.f16", "HHH", 0, TH((long double)HF(a) + HF(b)))                                                             \
	X(subh, "sub.rn.f16", "HHH", 0, TH((long double)HF(a) - HF(b)))                                                          \
	X(mulh, "mul.f16", "HHH", 0, TH((long double)HF(a) * HF(b)))                                                             \
	X(fmah, "fma.rn.f16", "HHHH", 0, TH((long double)HF(a) * HF(b) + HF(c)))                                                 \
	X(addh2, "add.f16x2", "wTT", 0, pair(TH((long double)HF(a) + HF(b)), TH((long double)HF(a >> 16) + HF(b >> 16))))        \
	X(negh, "neg.f16", "HH", 0, (u16)a ^ 0x8000)                                                                             \
	X(absh, "abs.bf16", "hh", 0, a & 0x7fff)                                                                                 \
	X(minh, "min.f16", "HHH", 0,                                                                                             \
	  isnan(HF(a))	   ? (isnan(HF(b)) ? 0x7fff : b)                                                                         \
	  : isnan(HF(b))   ? a                                                                                                   \
	  : HF(a) == HF(b) ? (a | b)                                                                                             \
	  : HF(a) < HF(b)  ? a                                                                                                   \
			   : b)                                                                                                   \
	X(mov, "mov.f32", "WW", 0, a)                                                                                            \
	X(movd, "mov.b64", "dd", 0, a)                                                                                           \
	X(e4m3, "cvt.rn.satfinite.e4m3x2.f32", "hWW", 0, to_fp8((double)F(a), 3) << 8 | to_fp8((double)F(b), 3))                 \
	X(e5m2, "cvt.rn.satfinite.e5m2x2.f32", "hWW", 0, to_fp8((double)F(a), 2) << 8 | to_fp8((double)F(b), 2))                 \
	X(fe4m3, "cvt.rn.f16x2.e4m3x2", "wh", 0, pair(TH((long double)fp8((u8)a, 3)), TH((long double)fp8((u8)(a >> 8), 3))))    \
	X(fe5m2, "cvt.rn.f16x2.e5m2x2", "wh", 0, pair(TH((long double)fp8((u8)a, 2)), TH((long double)fp8((u8)(a >> 8), 2))))    \
	X(tf32, "cvt.rna.tf32.f32", "wW", 0, isnan(F(a)) || isinf(F(a)) ? a : (a + 0x1000) & 0xffffe000)

#define FLOAT_CASE(name, op, sig, ulp, ...) CASE(name, op, sig, __VA_ARGS__)
CASES(FLOAT_CASE)
#define ENTRY(name, op, sig, ulp, ...) {op, sig, ref_##name, ulp},
static const struct ptx_case cases[] = {CASES(ENTRY)};

int main(void)
{
	run_cases(cases, COUNT(cases));
	return tap_done();
}
