/* SPDX-License-Identifier: MIT */
/* References for floating-point instructions: rounding modes by the host's FPU, short formats by their definition. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_FP_H
#define RGPU_TESTS_SOFTGPU_PTX_FP_H

#include <fenv.h>
#include <math.h>

#include "tests/softgpu/ptx_cases.h"

static __attribute__((unused)) float F(u64 v)
{
	u32 u = (u32)v;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static __attribute__((unused)) double D(u64 v)
{
	double d;

	memcpy(&d, &v, 8);
	return d;
}

static __attribute__((unused)) u64 BF(float f)
{
	u32 u;

	memcpy(&u, &f, 4);
	return u;
}

static __attribute__((unused)) u64 BD(double d)
{
	u64 u;

	memcpy(&u, &d, 8);
	return u;
}

static __attribute__((unused)) float Z(u64 v) /* flushed */
{
	return fabsf(F(v)) < 0x1p-126f ? copysignf(0, F(v)) : F(v);
}

static __attribute__((unused)) float ZF(float f)
{
	return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

static __attribute__((unused)) float SAT(float f)
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

static __attribute__((unused)) float fma_mode(int mode, float a, float b, float c)
{
	volatile float r;

	fesetround(mode);
	r = fmaf(a, b, c);
	fesetround(FE_TONEAREST);
	return r;
}

static __attribute__((unused)) double int_mode(int mode, u64 v, bool is_signed, bool to_double)
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

static __attribute__((unused)) float narrow_mode(int mode, double v)
{
	volatile double in = v;
	volatile float f;

	fesetround(mode);
	f = (float)in;
	fesetround(FE_TONEAREST);
	return f;
}

/* minNum/maxNum as PTX has them: −0 < +0, NaN loses, two NaNs give the canonical NaN. */
static __attribute__((unused)) u64 minmax32(u64 a, u64 b, bool max)
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
static __attribute__((unused)) double H(u64 v, u32 ebits)
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

static __attribute__((unused)) u64 to_half(long double v, u32 ebits, int mode)
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
static __attribute__((unused)) double fp8(u32 v, u32 mbits)
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

static __attribute__((unused)) u64 to_fp8(double v, u32 mbits)
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

/*
 * a·b + c for 16-bit floats with one rounding to come: the sum in 64 bits of mantissa, made odd when bits were cut off, so that
 * rounding it again gives what rounding the exact value would.
 */
static __attribute__((unused)) long double fma_odd(double a, double b, double c)
{
	long double p = (long double)(a * b), q = (long double)c, s = p + q, t = s - p, err = (p - (s - t)) + (q - t);
	u64 mantissa;

	memcpy(&mantissa, &s, 8);
	if (isfinite(s) && err != 0 && !(mantissa & 1))
		s = nextafterl(s, err > 0 ? (long double)INFINITY : -(long double)INFINITY);
	return s;
}

#define HF(v) H((u16)(v), 5)
#define HB(v) H((u16)(v), 8)
#define TH(v) to_half(v, 5, FE_TONEAREST)
#define TB(v) to_half(v, 8, FE_TONEAREST)

static __attribute__((unused)) u64 pair(u64 lo, u64 hi)
{
	return (lo & 0xffff) | hi << 16;
}

/* Float to integer: round, saturate. NaN is 0, but the top bit when either side has 64 bits. */
static __attribute__((unused)) u64 to_int(double v, bool from_f64, int mode, bool is_signed, u32 bits)
{
	double r = mode == FE_TOWARDZERO ? trunc(v) : mode == FE_DOWNWARD ? floor(v) : mode == FE_UPWARD ? ceil(v) : rint(v);

	if (v != v)
		return bits == 64 || from_f64 ? 1ull << (bits - 1) : 0;
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

#endif
