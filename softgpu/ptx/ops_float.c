/* SPDX-License-Identifier: MIT */
/* f32 and f64 arithmetic with round to nearest, and the approximate functions. */
#include <math.h>

#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/whole_handlers.h"

/* minNum and maxNum: a NaN loses to a number, −0 is less than +0, two NaNs give the canonical one. */
#define MINMAX(T, UT, BITS, FROM, NAN_BITS)                                                                                      \
	static inline T min_##T##_num(T a, T b)                                                                                  \
	{                                                                                                                        \
		T r = a < b ? a : b < a ? b : FROM(BITS(a) | BITS(b));                                                           \
		r = b != b ? a : r;                                                                                              \
		r = a != a ? b : r;                                                                                              \
		return r != r ? FROM((UT)NAN_BITS) : r;                                                                          \
	}                                                                                                                        \
	static inline T max_##T##_num(T a, T b)                                                                                  \
	{                                                                                                                        \
		T r = a > b ? a : b > a ? b : FROM(BITS(a) & BITS(b));                                                           \
		r = b != b ? a : r;                                                                                              \
		r = a != a ? b : r;                                                                                              \
		return r != r ? FROM((UT)NAN_BITS) : r;                                                                          \
	}
MINMAX(f32, u32, f32_bits, bits_f32, 0x7fffffff)
MINMAX(f64, u64, f64_bits, bits_f64, 0x7fffffffffffffffull)

static inline f32 nan_f32(f32 a, f32 b, f32 r)
{
	return a != a || b != b ? bits_f32(0x7fffffff) : r;
}

static inline f64 ftz64(f64 d)
{
	return __builtin_fabs(d) < 0x1p-1022 ? bits_f64(f64_bits(d) & 1ull << 63) : d;
}

#define OP OP_FUNC
#include "softgpu/ptx/ops_float.def"
#undef OP

OP_LANE_FUNC(ex2_f32, "", "", f32, f32, f32, f32, exp2f(a))
OP_LANE_FUNC(ex2_ftz_f32, "", "", f32, f32, f32, f32, ftz(exp2f(ftz(a))))
OP_LANE_FUNC(lg2_f32, "", "", f32, f32, f32, f32, log2f(a))
OP_LANE_FUNC(lg2_ftz_f32, "", "", f32, f32, f32, f32, log2f(ftz(a)))
OP_LANE_FUNC(sin_f32, "", "", f32, f32, f32, f32, sinf(a))
OP_LANE_FUNC(sin_ftz_f32, "", "", f32, f32, f32, f32, ftz(sinf(ftz(a))))
OP_LANE_FUNC(cos_f32, "", "", f32, f32, f32, f32, cosf(a))
OP_LANE_FUNC(cos_ftz_f32, "", "", f32, f32, f32, f32, cosf(ftz(a)))
OP_LANE_FUNC(tanh_f32, "", "", f32, f32, f32, f32, tanhf(a))

#define OP OP_ROW
TABLE(float) = {
#include "softgpu/ptx/ops_float.def"
	{"ex2.approx.f32", "ff", ex2_f32, 0},	{"ex2.approx.ftz.f32", "ff", ex2_ftz_f32, 0},
	{"lg2.approx.f32", "ff", lg2_f32, 0},	{"lg2.approx.ftz.f32", "ff", lg2_ftz_f32, 0},
	{"sin.approx.f32", "ff", sin_f32, 0},	{"sin.approx.ftz.f32", "ff", sin_ftz_f32, 0},
	{"cos.approx.f32", "ff", cos_f32, 0},	{"cos.approx.ftz.f32", "ff", cos_ftz_f32, 0},
	{"tanh.approx.f32", "ff", tanh_f32, 0}, {NULL, NULL, NULL, 0},
};

#undef OP
#define OP WHOLE_FUNC
#include "softgpu/ptx/ops_float.def"
#undef OP

/* A factor or summand that is one for all lanes, as loops over k have it. */
#define MIXED(nm, EXPR)                                                                                                          \
	WHOLE(m_##nm)                                                                                                            \
	{                                                                                                                        \
		f32 *D = VARG(f32, 0);                                                                                           \
		const f32 a = *WARG(const f32, 1), *B = VARG(const f32, 2), *C = VARG(const f32, 3);                             \
		(void)C;                                                                                                         \
		IVDEP LANES D[l] = EXPR;                                                                                         \
		NEXT;                                                                                                            \
	}
MIXED(fma_f32, __builtin_fmaf(a, B[l], C[l]))
MIXED(mul_f32, a *B[l])
MIXED(add_f32, a + B[l])

#define OP WHOLE_ROW
WHOLE_TABLE(float) = {
	{"fma.rn.f32", s_fma_f32, v_fma_f32, NULL, m_fma_f32},
	{"mul.f32", s_mul_f32, v_mul_f32, NULL, m_mul_f32},
	{"add.f32", s_add_f32, v_add_f32, NULL, m_add_f32},
#include "softgpu/ptx/ops_float.def"
	{NULL, NULL, NULL, NULL, NULL},
};
