/* SPDX-License-Identifier: MIT */
/* setp: comparisons of all types into predicate masks. */
#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/whole_handlers.h"

/* Gathers one bit a lane from 32 bytes that are 0 or 0xff. */
static inline u32 gather_bits(const s8 *t)
{
	u32 r = 0;

#ifdef __AVX2__
	r = (u32)_mm256_movemask_epi8(_mm256_load_si256((const __m256i *)t));
#else
	LANES r |= (u32)(t[l] & 1) << l;
#endif
	return r;
}

#define COMPARE(nm, T, EXPR)                                                                                                     \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2);                                                              \
		_Alignas(32) s8 t[WARP];                                                                                         \
		LANES                                                                                                            \
		{                                                                                                                \
			const T a = A[l], b = B[l];                                                                              \
			t[l] = (EXPR) ? -1 : 0;                                                                                  \
		}                                                                                                                \
		set_pred(w, i->r[0], em, gather_bits(t));                                                                        \
	}

/* With AVX-512 a comparison gives the mask directly. */
#ifdef __AVX512F__
#define COMPARE32(nm, T, EXPR, LOAD, CMP, IMM)                                                                                   \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2);                                                              \
		u32 r = (u32)CMP(LOAD((const void *)A), LOAD((const void *)B), IMM);                                             \
		r |= (u32)CMP(LOAD((const void *)(A + 16)), LOAD((const void *)(B + 16)), IMM) << 16;                            \
		set_pred(w, i->r[0], em, r);                                                                                     \
	}
#define COMPARE64(nm, T, EXPR, LOAD, CMP, IMM)                                                                                   \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2);                                                              \
		u32 r = 0;                                                                                                       \
		for (u32 k = 0; k < 4; k++)                                                                                      \
			r |= (u32)CMP(LOAD((const void *)(A + 8 * k)), LOAD((const void *)(B + 8 * k)), IMM) << (8 * k);         \
		set_pred(w, i->r[0], em, r);                                                                                     \
	}
#else
#define COMPARE32(nm, T, EXPR, LOAD, CMP, IMM) COMPARE(nm, T, EXPR)
#define COMPARE64(nm, T, EXPR, LOAD, CMP, IMM) COMPARE(nm, T, EXPR)
#endif

#define INT_OPS(X, ...)                                                                                                          \
	X(eq, a == b, 0, __VA_ARGS__)                                                                                            \
	X(ne, a != b, 4, __VA_ARGS__)                                                                                            \
	X(lt, a < b, 1, __VA_ARGS__)                                                                                             \
	X(le, a <= b, 2, __VA_ARGS__)                                                                                            \
	X(gt, a > b, 6, __VA_ARGS__)                                                                                             \
	X(ge, a >= b, 5, __VA_ARGS__)
/* Ordered comparisons are false for NaN, the …u forms true. */
#define FLOAT_OPS(X, ...)                                                                                                        \
	X(eq, a == b, 0, __VA_ARGS__)                                                                                            \
	X(ne, a<b || a> b, 12, __VA_ARGS__)                                                                                      \
	X(lt, a < b, 17, __VA_ARGS__)                                                                                            \
	X(le, a <= b, 18, __VA_ARGS__)                                                                                           \
	X(gt, a > b, 30, __VA_ARGS__)                                                                                            \
	X(ge, a >= b, 29, __VA_ARGS__)                                                                                           \
	X(equ, !(a < b || a > b), 8, __VA_ARGS__)                                                                                \
	X(neu, !(a == b), 4, __VA_ARGS__)                                                                                        \
	X(ltu, !(a >= b), 25, __VA_ARGS__)                                                                                       \
	X(leu, !(a > b), 26, __VA_ARGS__)                                                                                        \
	X(gtu, !(a <= b), 22, __VA_ARGS__)                                                                                       \
	X(geu, !(a < b), 21, __VA_ARGS__)                                                                                        \
	X(num, a == a && b == b, 7, __VA_ARGS__)                                                                                 \
	X(nan, a != a || b != b, 3, __VA_ARGS__)

#define F16(op, expr, imm, T)	    COMPARE(op##_##T, T, expr)
#define FI32(op, expr, imm, T, CMP) COMPARE32(op##_##T, T, expr, _mm512_load_si512, CMP, imm)
#define FI64(op, expr, imm, T, CMP) COMPARE64(op##_##T, T, expr, _mm512_load_si512, CMP, imm)
INT_OPS(F16, u16)
INT_OPS(F16, s16)
INT_OPS(FI32, u32, _mm512_cmp_epu32_mask)
INT_OPS(FI32, s32, _mm512_cmp_epi32_mask)
INT_OPS(FI64, u64, _mm512_cmp_epu64_mask)
INT_OPS(FI64, s64, _mm512_cmp_epi64_mask)
#define FF32(op, expr, imm, T) COMPARE32(op##_##T, T, expr, _mm512_load_ps, _mm512_cmp_ps_mask, imm)
#define FF64(op, expr, imm, T) COMPARE64(op##_##T, T, expr, _mm512_load_pd, _mm512_cmp_pd_mask, imm)
FLOAT_OPS(FF32, f32)
FLOAT_OPS(FF64, f64)

/* Halves: in a register of their own, or the low or high part of a pair. */
#define COMPARE_HALF(nm, ST, CONV, SHIFT, EXPR)                                                                                  \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const ST *A = ARG(const ST, 1), *B = ARG(const ST, 2);                                                           \
		_Alignas(32) s8 t[WARP];                                                                                         \
		LANES                                                                                                            \
		{                                                                                                                \
			const f32 a = CONV((u16)(A[l] >> SHIFT));                                                                \
			const f32 b = CONV((u16)(B[l] >> SHIFT));                                                                \
			t[l] = (EXPR) ? -1 : 0;                                                                                  \
		}                                                                                                                \
		set_pred(w, i->r[0], em, gather_bits(t));                                                                        \
	}
#define FH(op, expr, imm, T, CONV)                                                                                               \
	COMPARE_HALF(op##_##T, u16, CONV, 0, expr)                                                                               \
	COMPARE_HALF(op##_##T##_lo, u32, CONV, 0, expr)                                                                          \
	COMPARE_HALF(op##_##T##_hi, u32, CONV, 16, expr)
FLOAT_OPS(FH, f16, f16_to_f32)
FLOAT_OPS(FH, bf16, bf16_to_f32)

/*
 * isspacep: by the window of the generic address; constants lie in the arena as globals do, at a place of their own.
 * sub: of the shared ones the block's own only
 */
HANDLER(isspacep)
{
	const u64 *A = ARG(const u64, 1);
	static const u64 window[] = {[SP_SHARED] = WINDOW_SHARED, [SP_LOCAL] = WINDOW_LOCAL, [SP_PARAM] = WINDOW_PARAM};
	const struct ptx_module *mod = w->frame->f->m;
	u32 r = 0;

	LANES
	{
		u64 t = A[l] >> WINDOW_SHIFT, rank = (A[l] & WINDOW_MASK) >> CLUSTER_SHIFT;
		bool konst = A[l] >= mod->data && A[l] < mod->const_end;
		bool in = i->imm == SP_CONST ? konst : i->imm == SP_GLOBAL ? !t && !konst : t == window[i->imm];

		r |= (u32)(in && !(i->sub && rank && rank != w->blk->rank + 1)) << l;
	}
	set_pred(w, i->r[0], em, r);
}

/* testp: properties of a float */
#define TESTP(nm, T, UT, BITS, MANT, EXP)                                                                                        \
	static inline u32 nm(T f, u32 what)                                                                                      \
	{                                                                                                                        \
		UT u = BITS(f), e = u >> MANT & EXP, m = u & (((UT)1 << MANT) - 1);                                              \
		bool r[] = {e != EXP, e == EXP && !m, e != EXP || !m, e == EXP && m, e && e != EXP, !e && m};                    \
		return r[what];                                                                                                  \
	}
TESTP(testp32, f32, u32, f32_bits, 23, 255)
TESTP(testp64, f64, u64, f64_bits, 52, 2047)
#define TESTP_HANDLER(nm, T, what)                                                                                               \
	HANDLER(testp_##nm##_##T)                                                                                                \
	{                                                                                                                        \
		const T *A = ARG(const T, 1);                                                                                    \
		u32 r = 0;                                                                                                       \
		LANES r |= what << l;                                                                                            \
		set_pred(w, i->r[0], em, r);                                                                                     \
	}
#define TESTPS(X) X(finite, 0) X(infinite, 1) X(number, 2) X(notanumber, 3) X(normal, 4) X(subnormal, 5)
#define TP(nm, n) TESTP_HANDLER(nm, f32, testp32(A[l], n)) TESTP_HANDLER(nm, f64, testp64(A[l], n))
TESTPS(TP)

#define R_EQ(T, forms, sig) {"setp.eq." forms, sig, eq_##T, 0}, {"setp.ne." forms, sig, ne_##T, 0},
#define R_INT(T, forms, sig)                                                                                                     \
	R_EQ(T, forms, sig){"setp.lt." forms, sig, lt_##T, 0}, {"setp.le." forms, sig, le_##T, 0},                               \
		{"setp.gt." forms, sig, gt_##T, 0}, {"setp.ge." forms, sig, ge_##T, 0},
#define R_UNS(T, forms, sig)                                                                                                     \
	{"setp.lo." forms, sig, lt_##T, 0}, {"setp.ls." forms, sig, le_##T, 0}, {"setp.hi." forms, sig, gt_##T, 0},              \
		{"setp.hs." forms, sig, ge_##T, 0},
#define R_FLT(op, expr, imm, T, form, sig, suffix) {"setp." #op "." form, sig, op##_##T##suffix, 0},

TABLE(compare) = {
	R_INT(u16, "u16", "phh") R_UNS(u16, "u16", "phh") R_INT(s16, "s16", "phh") R_EQ(u16, "b16", "phh")
		R_INT(u32, "u32", "pww") R_UNS(u32, "u32", "pww") R_INT(s32, "s32", "pww") R_EQ(u32, "b32", "pww")
			R_INT(u64, "u64", "pdd") R_UNS(u64, "u64", "pdd") R_INT(s64, "s64", "pdd") R_EQ(u64, "b64", "pdd")
				FLOAT_OPS(R_FLT, f32, "f32", "pff", ) FLOAT_OPS(R_FLT, f64, "f64", "pFF", )
					FLOAT_OPS(R_FLT, f16, "f16", "phh", ) FLOAT_OPS(R_FLT, f16, "f16x2:lo", "pww", _lo)
						FLOAT_OPS(R_FLT, f16, "f16x2:hi", "pww", _hi)
							FLOAT_OPS(R_FLT, bf16, "bf16", "phh", )
								FLOAT_OPS(R_FLT, bf16, "bf16x2:lo", "pww", _lo)
									FLOAT_OPS(R_FLT, bf16, "bf16x2:hi", "pww",
										  _hi){"isspacep:", "pd", isspacep, 0},
#define R_TP(nm, n) {"testp." #nm ".f32", "pf", testp_##nm##_f32, 0}, {"testp." #nm ".f64", "pF", testp_##nm##_f64, 0},
	TESTPS(R_TP){NULL, NULL, NULL, 0},
};

/*
 * True when both run to lane 31 without leaving the type (@least: its least value below 0, or a positive number for
 * u32), and the first is the greater one in all lanes, or in none: then all comparisons come out as in lane 0.
 */
static inline bool same_sign(s64 d, s64 a, s64 b, const struct wins *i, s64 least)
{
	const s64 a31 = a + 31 * (s64)i->step, b31 = b + 31 * (s64)i->step2, d31 = a31 - b31;
	const s64 low = least < 0 ? INT32_MIN : 0, high = least < 0 ? INT32_MAX : UINT32_MAX;

	return a31 >= low && a31 <= high && b31 >= low && b31 <= high && ((d > 0 && d31 > 0) || (d < 0 && d31 < 0));
}

/* Sources in lane 0: equal for all lanes, or each a base and a step. */
#define WHOLE_SETP(op, expr, imm_, T, ...)                                                                                       \
	static inline u32 s_bits_##op##_##T(const struct wins *i, const u8 *regs)                                                \
	{                                                                                                                        \
		const T a = *WARG(const T, 1), b = *WARG(const T, 2);                                                            \
		return (expr) ? FULL : 0;                                                                                        \
	}                                                                                                                        \
	WHOLE(s_##op##_##T)                                                                                                      \
	{                                                                                                                        \
		*WARG(u32, 0) = s_bits_##op##_##T(i, regs);                                                                      \
		NEXT;                                                                                                            \
	}
#define WHOLE_STEP(op, expr, imm_, T, UT)                                                                                        \
	static inline u32 x_bits_##op##_##T(const struct wins *i, const u8 *regs)                                                \
	{                                                                                                                        \
		const UT a0 = *WARG(const UT, 1), b0 = *WARG(const UT, 2);                                                       \
		const UT as = (UT)(s64)i->step, bs = (UT)(s64)i->step2;                                                          \
		_Alignas(32) s8 t[WARP];                                                                                         \
		if (sizeof(T) == 4 && same_sign((s64)(T)a0 - (s64)(T)b0, (s64)(T)a0, (s64)(T)b0, i, (s64)(T)INT32_MIN)) {        \
			const T a = (T)a0, b = (T)b0;                                                                            \
			return (expr) ? FULL : 0;                                                                                \
		}                                                                                                                \
		LANES                                                                                                            \
		{                                                                                                                \
			const T a = (T)(a0 + (UT)l * as), b = (T)(b0 + (UT)l * bs);                                              \
			t[l] = (expr) ? -1 : 0;                                                                                  \
		}                                                                                                                \
		return gather_bits(t);                                                                                           \
	}                                                                                                                        \
	WHOLE(x_##op##_##T)                                                                                                      \
	{                                                                                                                        \
		*WARG(u32, 0) = x_bits_##op##_##T(i, regs);                                                                      \
		NEXT;                                                                                                            \
	}
/* And the branch on the result; r[5]: a back-edge */
#define WHOLE_COMPARE_BRANCH(op, expr, imm_, T, k)                                                                               \
	WHOLE(k##b_##op##_##T)                                                                                                   \
	{                                                                                                                        \
		const u32 r = k##_bits_##op##_##T(i, regs);                                                                      \
		*WARG(u32, 0) = r;                                                                                               \
		WHOLE_BRANCH(r, i->r[5]);                                                                                        \
	}
INT_OPS(WHOLE_SETP, u32)
INT_OPS(WHOLE_SETP, s32)
INT_OPS(WHOLE_SETP, u64)
INT_OPS(WHOLE_SETP, s64)
FLOAT_OPS(WHOLE_SETP, f32)
INT_OPS(WHOLE_STEP, u32, u32)
INT_OPS(WHOLE_STEP, s32, u32)
INT_OPS(WHOLE_STEP, u64, u64)
INT_OPS(WHOLE_STEP, s64, u64)
#define COMPARE_BRANCHES(X) X(s32, s) X(s32, x) X(u32, s) X(u32, x) X(s64, s) X(u64, s)
#define CB_FUNC(T, k)	    INT_OPS(WHOLE_COMPARE_BRANCH, T, k)
COMPARE_BRANCHES(CB_FUNC)

#define W_INT(op, expr, imm_, T) {"setp." #op "." #T, s_##op##_##T, NULL, x_##op##_##T, NULL},
#define W_FLT(op, expr, imm_, T) {"setp." #op "." #T, s_##op##_##T, NULL, NULL, NULL},

WHOLE_TABLE(compare) = {
	INT_OPS(W_INT, u32) INT_OPS(W_INT, s32) INT_OPS(W_INT, u64) INT_OPS(W_INT, s64)
		FLOAT_OPS(W_FLT, f32){NULL, NULL, NULL, NULL, NULL},
};

#define CB_ROW(op, expr, imm_, T, k) {k##_##op##_##T, k##b_##op##_##T},
#define CB_ROWS(T, k)		     INT_OPS(CB_ROW, T, k)
#define BRANCHES(level)		     PASTE3(ptx_whole_, branches, level)

const struct whole_pair BRANCHES(LEVEL)[] = {
	COMPARE_BRANCHES(CB_ROWS){NULL, NULL},
};
