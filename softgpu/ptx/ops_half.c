/* SPDX-License-Identifier: MIT */
/* f16, bf16 and their pairs: arithmetic in f32, rounded once. */
#include <math.h>

#include "softgpu/ptx/half.h"

/* The product is exact in f64 and a sum rounded to f64 and then, to odd, to f32 rounds to 16 bits correctly. */
static inline f32 fused_f16(f32 a, f32 b, f32 c)
{
	return f64_to_f32_odd((f64)a * (f64)b + (f64)c);
}

/* The range of bf16 is so wide that the addend may lie below the sum's last bit: then that bit has to tell of it. */
static inline f32 fused_bf16(f32 a, f32 b, f32 c)
{
	f64 p = (f64)a * (f64)b, q = (f64)c, s = p + q, t = s - p, cut = (p - (s - t)) + (q - t);
	u64 u = f64_bits(s);

	if ((cut < 0 || cut > 0) && !(u & 1))
		u += (cut > 0) == (s > 0) ? 1 : -1ull;
	return f64_to_f32_odd(bits_f64(u));
}

static inline f32 min_num(f32 a, f32 b)
{
	f32 r = a < b ? a : b < a ? b : bits_f32(f32_bits(a) | f32_bits(b));

	r = b != b ? a : r;
	return a != a ? b : r;
}

static inline f32 max_num(f32 a, f32 b)
{
	f32 r = a > b ? a : b > a ? b : bits_f32(f32_bits(a) & f32_bits(b));

	r = b != b ? a : r;
	return a != a ? b : r;
}

static inline f32 with_nan(f32 a, f32 b, f32 r)
{
	return a != a || b != b ? bits_f32(0x7fffffff) : r;
}

static inline f32 relu(f32 v)
{
	return v > 0 ? v : v != v ? v : 0.0f;
}

/* .ftz: subnormal operands and results of f16 are zeros of their sign. */
static inline u16 flush16(u16 h)
{
	return (h & 0x7c00) ? h : h & 0x8000;
}

static inline f32 f16_to_f32_ftz(u16 h)
{
	return f16_to_f32(flush16(h));
}

static inline u16 f32_to_f16_ftz(f32 f)
{
	return flush16(f32_to_f16(f));
}

/* One expression in f32 for a single value and for both halves of a pair. */
#define HALF_OP(nm, FROM, TO, EXPR)                                                                                              \
	static inline u16 one_##nm(u16 x, u16 y, u16 z)                                                                          \
	{                                                                                                                        \
		const f32 a = FROM(x), b = FROM(y), c = FROM(z);                                                                 \
		(void)a, (void)b, (void)c;                                                                                       \
		return TO(EXPR);                                                                                                 \
	}                                                                                                                        \
	OP_FUNC(nm, "", "", u16, u16, u16, u16, one_##nm(a, b, c))                                                               \
	OP_FUNC(nm##x2, "", "", u32, u32, u32, u32,                                                                              \
		one_##nm((u16)a, (u16)b, (u16)c) | (u32)one_##nm((u16)(a >> 16), (u16)(b >> 16), (u16)(c >> 16)) << 16)

/* name, text of the opcode before the type, operands, value */
#define COMMON_OPS(X, FMA)                                                                                                       \
	X(add, "add{,.rn}", 2, a + b)                                                                                            \
	X(sub, "sub{,.rn}", 2, a - b)                                                                                            \
	X(mul, "mul{,.rn}", 2, a *b)                                                                                             \
	X(fma, "fma.rn", 3, FMA(a, b, c))                                                                                        \
	X(fma_relu, "fma.rn.relu", 3, relu(FMA(a, b, c)))                                                                        \
	X(min, "min", 2, min_num(a, b))                                                                                          \
	X(max, "max", 2, max_num(a, b))                                                                                          \
	X(min_nan, "min.NaN", 2, with_nan(a, b, min_num(a, b)))                                                                  \
	X(max_nan, "max.NaN", 2, with_nan(a, b, max_num(a, b)))
#define F16_OPS(X)                                                                                                               \
	COMMON_OPS(X, fused_f16)                                                                                                 \
	X(fma_sat, "fma.rn.sat", 3, sat(fused_f16(a, b, c)))                                                                     \
	X(add_sat, "add{,.rn}.sat", 2, sat(a + b))                                                                               \
	X(sub_sat, "sub{,.rn}.sat", 2, sat(a - b))                                                                               \
	X(mul_sat, "mul{,.rn}.sat", 2, sat(a *b))
#define F16_FTZ_OPS(X)                                                                                                           \
	X(add_ftz, "add{,.rn}.ftz", 2, a + b)                                                                                    \
	X(sub_ftz, "sub{,.rn}.ftz", 2, a - b)                                                                                    \
	X(mul_ftz, "mul{,.rn}.ftz", 2, a *b)                                                                                     \
	X(fma_ftz, "fma.rn.ftz", 3, fused_f16(a, b, c))                                                                          \
	X(min_ftz, "min.ftz", 2, min_num(a, b))                                                                                  \
	X(max_ftz, "max.ftz", 2, max_num(a, b))
#define BF16_OPS(X) COMMON_OPS(X, fused_bf16)

#define F16_FUNC(nm, text, n, expr)	HALF_OP(nm##_f16, f16_to_f32, f32_to_f16, expr)
#define F16_FTZ_FUNC(nm, text, n, expr) HALF_OP(nm##_f16, f16_to_f32_ftz, f32_to_f16_ftz, expr)
#define BF16_FUNC(nm, text, n, expr)	HALF_OP(nm##_bf16, bf16_to_f32, f32_to_bf16, expr)
F16_OPS(F16_FUNC)
F16_FTZ_OPS(F16_FTZ_FUNC)
BF16_OPS(BF16_FUNC)

/* .xorsign.abs: the magnitude a with the signs of b and c multiplied; of a NaN there is but one */
#define XORSIGN16(a, b, c) ((u16)(a) == 0x7fff ? (a) : (a) | (((b) ^ (c)) & 0x8000))
OP_FUNC(xorsign_h, "", "", u16, u16, u16, u16, XORSIGN16(a, b, c))
OP_FUNC(xorsign_x2, "", "", u32, u32, u32, u32,
	(XORSIGN16(a & 0xffff, b, c) & 0xffff) | (u32)(XORSIGN16(a >> 16, b >> 16, c >> 16) & 0xffff) << 16)

OP_FUNC(neg_h, "", "", u16, u16, u16, u16, a ^ 0x8000)
OP_FUNC(neg_hx2, "", "", u32, u32, u32, u32, a ^ 0x80008000)
OP_FUNC(abs_h, "", "", u16, u16, u16, u16, a & 0x7fff)
OP_FUNC(abs_hx2, "", "", u32, u32, u32, u32, a & 0x7fff7fff)
#define FLUSH_X2(v) (((v)&0x7c00 ? (v)&0xffff : (v)&0x8000) | ((v)&0x7c000000 ? (v)&0xffff0000 : (v)&0x80000000))
OP_FUNC(ftz_h, "", "", u16, u16, u16, u16, flush16(a))
OP_FUNC(ftz_hx2, "", "", u32, u32, u32, u32, FLUSH_X2(a))
OP_FUNC(neg_ftz_h, "", "", u16, u16, u16, u16, flush16(a) ^ 0x8000)
OP_FUNC(neg_ftz_hx2, "", "", u32, u32, u32, u32, FLUSH_X2(a) ^ 0x80008000)
OP_FUNC(abs_ftz_h, "", "", u16, u16, u16, u16, flush16(a) & 0x7fff)
OP_FUNC(abs_ftz_hx2, "", "", u32, u32, u32, u32, FLUSH_X2(a) & 0x7fff7fff)

#define LANE_HALF(nm, FROM, TO, EXPR)                                                                                            \
	static inline u16 one_##nm(u16 x)                                                                                        \
	{                                                                                                                        \
		const f32 a = FROM(x);                                                                                           \
		return TO(EXPR);                                                                                                 \
	}                                                                                                                        \
	OP_LANE_FUNC(nm, "", "", u16, u16, u16, u16, one_##nm(a))                                                                \
	OP_LANE_FUNC(nm##x2, "", "", u32, u32, u32, u32, one_##nm((u16)a) | (u32)one_##nm((u16)(a >> 16)) << 16)
LANE_HALF(ex2_f16, f16_to_f32, f32_to_f16, exp2f(a))
LANE_HALF(ex2_ftz_f16, f16_to_f32_ftz, f32_to_f16_ftz, exp2f(a))
LANE_HALF(ex2_bf16, bf16_to_f32, f32_to_bf16, ftz(exp2f(ftz(a))))
LANE_HALF(tanh_f16, f16_to_f32, f32_to_f16, tanhf(a))
LANE_HALF(tanh_bf16, bf16_to_f32, f32_to_bf16, tanhf(a))

#define SIG1(c)			    (c == 2 ? "hhh" : "hhhh")
#define SIG2(c)			    (c == 2 ? "www" : "wwww")
#define F16_ROW(nm, text, n, expr)  {text ".f16", SIG1(n), nm##_f16, 0}, {text ".f16x2", SIG2(n), nm##_f16x2, 0},
#define BF16_ROW(nm, text, n, expr) {text ".bf16", SIG1(n), nm##_bf16, 0}, {text ".bf16x2", SIG2(n), nm##_bf16x2, 0},

TABLE(half) = {
	F16_OPS(F16_ROW) F16_FTZ_OPS(F16_ROW) BF16_OPS(BF16_ROW){"xorsign:h", "hhhh", xorsign_h, 0},
	{"xorsign:x2", "wwww", xorsign_x2, 0},
	{"neg.{f16,bf16}", "hh", neg_h, 0},
	{"neg.{f16x2,bf16x2}", "ww", neg_hx2, 0},
	{"neg.ftz.f16", "hh", neg_ftz_h, 0},
	{"neg.ftz.f16x2", "ww", neg_ftz_hx2, 0},
	{"abs.{f16,bf16}", "hh", abs_h, 0},
	{"abs.{f16x2,bf16x2}", "ww", abs_hx2, 0},
	{"abs.ftz.f16", "hh", abs_ftz_h, 0},
	{"abs.ftz.f16x2", "ww", abs_ftz_hx2, 0},
	{"ftz:f16", "hh", ftz_h, 0},
	{"ftz:f16x2", "ww", ftz_hx2, 0},
	{"ex2.approx.f16", "hh", ex2_f16, 0},
	{"ex2.approx.f16x2", "ww", ex2_f16x2, 0},
	{"ex2.approx.ftz.f16", "hh", ex2_ftz_f16, 0},
	{"ex2.approx.ftz.f16x2", "ww", ex2_ftz_f16x2, 0},
	{"ex2.approx.ftz.bf16", "hh", ex2_bf16, 0},
	{"ex2.approx.ftz.bf16x2", "ww", ex2_bf16x2, 0},
	{"tanh.approx.f16", "hh", tanh_f16, 0},
	{"tanh.approx.f16x2", "ww", tanh_f16x2, 0},
	{"tanh.approx.bf16", "hh", tanh_bf16, 0},
	{"tanh.approx.bf16x2", "ww", tanh_bf16x2, 0},
	{NULL, NULL, NULL, 0},
};
