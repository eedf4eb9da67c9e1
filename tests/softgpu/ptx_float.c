/* SPDX-License-Identifier: MIT */
/* f32 and f64 instructions of the PTX engine in all rounding modes, lane by lane against the host's FPU. */
#include "tests/softgpu/ptx_fp.h"

enum arith { ADD, SUB, MUL, FMA, DIV, RCP, SQRT };

/* tag: what, rounding mode, .ftz, .sat */
static u64 ref_f32(const struct ptx_case *k, const u64 *v)
{
	volatile float a = k->tag[2] ? Z(v[0]) : F(v[0]), b = k->tag[2] ? Z(v[1]) : F(v[1]), c = k->tag[2] ? Z(v[2]) : F(v[2]),
		       r = 0;

	fesetround((int)k->tag[1]);
	switch ((enum arith)k->tag[0]) {
	case ADD:
		r = a + b;
		break;
	case SUB:
		r = a - b;
		break;
	case MUL:
		r = a * b;
		break;
	case FMA:
		r = fmaf(a, b, c);
		break;
	case DIV:
		r = a / b;
		break;
	case RCP:
		r = 1 / a;
		break;
	case SQRT:
		r = sqrtf(a);
		break;
	}
	fesetround(FE_TONEAREST);
	if (k->tag[2])
		r = ZF(r);
	return BF(k->tag[3] ? SAT(r) : r);
}

static u64 ref_f64(const struct ptx_case *k, const u64 *v)
{
	volatile double a = D(v[0]), b = D(v[1]), c = D(v[2]), r = 0;

	fesetround((int)k->tag[1]);
	switch ((enum arith)k->tag[0]) {
	case ADD:
		r = a + b;
		break;
	case SUB:
		r = a - b;
		break;
	case MUL:
		r = a * b;
		break;
	case FMA:
		r = fma(a, b, c);
		break;
	case DIV:
		r = a / b;
		break;
	case RCP:
		r = 1 / a;
		break;
	case SQRT:
		r = sqrt(a);
		break;
	}
	fesetround(FE_TONEAREST);
	return BD(r);
}

static void run_arithmetic(void)
{
	static const struct {
		const char *op;
		enum arith what;
		const char *sig32, *sig64;
		bool no_mode, sat; /* may the mode be left out, is there .sat */
	} ops[] = {
		{"add", ADD, "WWW", "DDD", true, true},	  {"sub", SUB, "WWW", "DDD", true, true},
		{"mul", MUL, "WWW", "DDD", true, true},	  {"{fma,mad}", FMA, "WWWW", "DDDD", false, true},
		{"div", DIV, "WWW", "DDD", false, false}, {"rcp", RCP, "WW", "DD", false, false},
		{"sqrt", SQRT, "WW", "DD", false, false},
	};
	static const struct {
		const char *name;
		int mode;
	} modes[] = {{"", N}, {".rn", N}, {".rz", RZ}, {".rm", RM}, {".rp", RP}};
	static char names[256][40];
	struct ptx_case cases[256];
	u32 n = 0;

	for (u32 k = 0; k < COUNT(ops); k++)
		for (u32 m = ops[k].no_mode ? 0 : 1; m < COUNT(modes); m++)
			for (u32 f = 0; f < 5; f++) {
				u32 ftz = f & 1, sat = f >> 1 & 1;

				if (sat && !ops[k].sat)
					continue;
				if (f == 4) {
					snprintf(names[n], sizeof(names[n]), "%s%s.f64", ops[k].op, modes[m].name);
					cases[n] = (struct ptx_case){
						names[n], ops[k].sig64, ref_f64, 0, {ops[k].what, (u32)modes[m].mode}};
				} else {
					snprintf(names[n], sizeof(names[n]), "%s%s%s%s.f32", ops[k].op, modes[m].name,
						 ftz ? ".ftz" : "", sat ? ".sat" : "");
					cases[n] = (struct ptx_case){
						names[n], ops[k].sig32, ref_f32, 0, {ops[k].what, (u32)modes[m].mode, ftz, sat}};
				}
				n++;
			}
	run_cases(cases, n);
}

static double DZ(u64 v) /* f64 flushed, as the .ftz forms of f64 approximations do */
{
	return fabs(D(v)) < 0x1p-1022 ? copysign(0, D(v)) : D(v);
}

static double DZF(double d)
{
	return fabs(d) < 0x1p-1022 ? copysign(0, d) : d;
}

static u64 minmax64(u64 a, u64 b, bool max)
{
	if (isnan(D(a)) && isnan(D(b)))
		return 0x7fffffffffffffff;
	if (isnan(D(a)) || isnan(D(b)))
		return isnan(D(a)) ? b : a;
	if (D(a) == D(b))
		return !!signbit(D(a)) == max ? b : a;
	return (D(a) < D(b)) != max ? a : b;
}

static bool testp(double v, bool subnormal, const char *what)
{
	switch (what[0]) {
	case 'f':
		return isfinite(v);
	case 'i':
		return isinf(v);
	case 's':
		return subnormal;
	default:
		return !strcmp(what, "number")	     ? !isnan(v)
		       : !strcmp(what, "notanumber") ? isnan(v)
						     : isfinite(v) && v != 0 && !subnormal;
	}
}

static u64 xorsign32(u64 a, u64 b, u64 r)
{
	return (u32)r == 0x7fffffff ? r : r | ((a ^ b) & 0x80000000);
}

#define T32(what) testp((double)F(a), fpclassify(F(a)) == FP_SUBNORMAL, what)
#define T64(what) testp(D(a), fpclassify(D(a)) == FP_SUBNORMAL, what)
#define NAN32	  (isnan(F(a)) || isnan(F(b)))

/* Approximations: how many units in the last place off is good enough. */
#define CASES(X)                                                                                                                 \
	X(diva, "div.{full,approx}.f32", "WWW", 2, BF(F(a) / F(b)))                                                              \
	X(divaz, "div.{full,approx}.ftz.f32", "WWW", 2, BF(ZF(Z(a) / Z(b))))                                                     \
	X(rcpa, "rcp.approx.f32", "WW", 1, BF(1 / F(a)))                                                                         \
	X(rcpaz, "rcp.approx.ftz.f32", "WW", 1, BF(ZF(1 / Z(a))))                                                                \
	X(sqrta, "sqrt.approx.f32", "WW", 1, BF(sqrtf(F(a))))                                                                    \
	X(sqrtaz, "sqrt.approx.ftz.f32", "WW", 1, BF(sqrtf(Z(a))))                                                               \
	X(rsqrt, "rsqrt.approx.f32", "WW", 2, BF((float)(1 / sqrt((double)F(a)))))                                               \
	X(rsqrtz, "rsqrt.approx.ftz.f32", "WW", 2, BF((float)(1 / sqrt((double)Z(a)))))                                          \
	X(ex2, "ex2.approx.f32", "WW", 2, BF((float)exp2((double)F(a))))                                                         \
	X(ex2z, "ex2.approx.ftz.f32", "WW", 2, BF(ZF((float)exp2((double)Z(a)))))                                                \
	X(lg2, "lg2.approx.f32", "WW", 4, BF((float)log2((double)F(a))))                                                         \
	X(lg2z, "lg2.approx.ftz.f32", "WW", 4, BF((float)log2((double)Z(a))))                                                    \
	X(sin, "sin.approx.f32", "WW", 4, BF((float)sin((double)F(a))))                                                          \
	X(sinz, "sin.approx.ftz.f32", "WW", 4, BF(ZF((float)sin((double)Z(a)))))                                                 \
	X(cos, "cos.approx.f32", "WW", 4, BF((float)cos((double)F(a))))                                                          \
	X(cosz, "cos.approx.ftz.f32", "WW", 4, BF((float)cos((double)Z(a))))                                                     \
	X(tanh, "tanh.approx.f32", "WW", 4, BF((float)tanh((double)F(a))))                                                       \
	X(negf, "neg.f32", "WW", 0, (u32)a ^ 0x80000000)                                                                         \
	X(negz, "neg.ftz.f32", "WW", 0, BF(-Z(a)))                                                                               \
	X(absf, "abs.f32", "WW", 0, (u32)a & 0x7fffffff)                                                                         \
	X(absz, "abs.ftz.f32", "WW", 0, BF(fabsf(Z(a))))                                                                         \
	X(copysign, "copysign.f32", "WWW", 0, ((u32)a & 0x80000000) | ((u32)b & 0x7fffffff))                                     \
	X(copysignd, "copysign.f64", "DDD", 0, (a & 1ull << 63) | (b & ~(1ull << 63)))                                           \
	X(min, "min.f32", "WWW", 0, minmax32(a, b, false))                                                                       \
	X(max, "max.f32", "WWW", 0, minmax32(a, b, true))                                                                        \
	X(minz, "min.ftz.f32", "WWW", 0, minmax32(BF(Z(a)), BF(Z(b)), false))                                                    \
	X(maxz, "max.ftz.f32", "WWW", 0, minmax32(BF(Z(a)), BF(Z(b)), true))                                                     \
	X(minxs, "min.xorsign.abs.f32", "WWW", 0, xorsign32(a, b, minmax32(a & 0x7fffffff, b & 0x7fffffff, false)))              \
	X(maxxsz, "max.ftz.NaN.xorsign.abs.f32", "WWW", 0,                                                                       \
	  NAN32 ? 0x7fffffff : xorsign32(a, b, minmax32(BF(Z(a)) & 0x7fffffff, BF(Z(b)) & 0x7fffffff, true)))                    \
	X(min3, "min.f32", "WWWW", 0, minmax32(b, minmax32(a, c, false), false))                                                 \
	X(max3a, "max.ftz.abs.f32", "WWWW", 0,                                                                                   \
	  minmax32(minmax32(BF(Z(a)) & 0x7fffffff, BF(Z(b)) & 0x7fffffff, true), BF(Z(c)) & 0x7fffffff, true))                   \
	X(minnan, "min.NaN.f32", "WWW", 0, NAN32 ? 0x7fffffff : minmax32(a, b, false))                                           \
	X(maxnan, "max.NaN.f32", "WWW", 0, NAN32 ? 0x7fffffff : minmax32(a, b, true))                                            \
	X(minnanz, "min.ftz.NaN.f32", "WWW", 0, NAN32 ? 0x7fffffff : minmax32(BF(Z(a)), BF(Z(b)), false))                        \
	X(maxnanz, "max.ftz.NaN.f32", "WWW", 0, NAN32 ? 0x7fffffff : minmax32(BF(Z(a)), BF(Z(b)), true))                         \
	X(mind, "min.f64", "DDD", 0, minmax64(a, b, false))                                                                      \
	X(maxd, "max.f64", "DDD", 0, minmax64(a, b, true))                                                                       \
	X(negd, "neg.f64", "DD", 0, a ^ 1ull << 63)                                                                              \
	X(absd, "abs.f64", "DD", 0, a & ~(1ull << 63))                                                                           \
	X(rcpad, "rcp.approx.ftz.f64", "DD", 0, BD(DZF(1 / DZ(a))))                                                              \
	X(rsqrtd, "rsqrt.approx.f64", "DD", 1, BD(1 / sqrt(D(a))))                                                               \
	X(rsqrtdz, "rsqrt.approx.ftz.f64", "DD", 1, BD(1 / sqrt(DZ(a))))                                                         \
	X(testpf, "testp.finite.f32", "pW", 0, T32("finite"))                                                                    \
	X(testpi, "testp.infinite.f32", "pW", 0, T32("infinite"))                                                                \
	X(testpn, "testp.number.f32", "pW", 0, T32("number"))                                                                    \
	X(testpa, "testp.notanumber.f32", "pW", 0, T32("notanumber"))                                                            \
	X(testpo, "testp.normal.f32", "pW", 0, T32("x"))                                                                         \
	X(testps, "testp.subnormal.f32", "pW", 0, T32("subnormal"))                                                              \
	X(testpfd, "testp.finite.f64", "pD", 0, T64("finite"))                                                                   \
	X(testpid, "testp.infinite.f64", "pD", 0, T64("infinite"))                                                               \
	X(testpnd, "testp.number.f64", "pD", 0, T64("number"))                                                                   \
	X(testpad, "testp.notanumber.f64", "pD", 0, T64("notanumber"))                                                           \
	X(testpod, "testp.normal.f64", "pD", 0, T64("x"))                                                                        \
	X(testpsd, "testp.subnormal.f64", "pD", 0, T64("subnormal"))

#define FLOAT_CASE(name, op, sig, ulp, ...) CASE(name, op, sig, __VA_ARGS__)
CASES(FLOAT_CASE)
#define ENTRY(name, op, sig, ulp, ...) {op, sig, ref_##name, ulp, {0}},
static const struct ptx_case cases[] = {CASES(ENTRY)};

int main(void)
{
	run_arithmetic();
	run_cases(cases, COUNT(cases));
	forms_done("float");
	return tap_done();
}
