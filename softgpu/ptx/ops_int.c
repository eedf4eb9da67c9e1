/* SPDX-License-Identifier: MIT */
/* Integer arithmetic: add to max, division, carry chains, dot products. */
#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/whole_handlers.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static inline s32 sat_s32(s64 v)
{
	return (s32)MIN(MAX(v, (s64)INT32_MIN), (s64)INT32_MAX);
}

static inline s32 relu(s32 v)
{
	return v > 0 ? v : 0;
}

static inline u32 lo16(u32 v)
{
	return v & 0xffff;
}

static inline u32 pair(u32 lo, u32 hi)
{
	return (lo & 0xffff) | hi << 16;
}

static inline u32 u24(u32 v)
{
	return v & 0xffffff;
}

static inline s32 s24(u32 v)
{
	return (s32)(v << 8) >> 8;
}

#define OP OP_FUNC
#include "softgpu/ptx/ops_int.def"
#undef OP

/* Lane by lane, as gcc 12 crashes on the vector form with AVX-512 (a masked vpmaxsw of two loads). */
OP_LANE_FUNC(min_u16, "", "", u16, u16, u16, u16, MIN(a, b))
OP_LANE_FUNC(min_s16, "", "", s16, s16, s16, s16, MIN(a, b))
OP_LANE_FUNC(max_u16, "", "", u16, u16, u16, u16, MAX(a, b))
OP_LANE_FUNC(max_s16, "", "", s16, s16, s16, s16, MAX(a, b))

/* Division by zero gives all ones, as the hardware's sequence does; INT_MIN / −1 wraps. */
#define DIVIDE(T, UT, MINUS_ONE)                                                                                                 \
	static inline T div_##T(T a, T b)                                                                                        \
	{                                                                                                                        \
		if (!b)                                                                                                          \
			return (T) ~(UT)0;                                                                                       \
		return MINUS_ONE && b == (T) ~(UT)0 ? (T)(-(UT)a) : (T)(a / b);                                                  \
	}                                                                                                                        \
	static inline T rem_##T(T a, T b)                                                                                        \
	{                                                                                                                        \
		if (!b)                                                                                                          \
			return a;                                                                                                \
		return MINUS_ONE && b == (T) ~(UT)0 ? 0 : (T)(a % b);                                                            \
	}
DIVIDE(u16, u16, 0)
DIVIDE(s16, u16, 1)
DIVIDE(u32, u32, 0)
DIVIDE(s32, u32, 1)
DIVIDE(u64, u64, 0)
DIVIDE(s64, u64, 1)

#define DIV_FUNCS(T)                                                                                                             \
	OP_LANE_FUNC(h_div_##T, "", "", T, T, T, T, div_##T(a, b))                                                               \
	OP_LANE_FUNC(h_rem_##T, "", "", T, T, T, T, rem_##T(a, b))
DIV_FUNCS(u16)
DIV_FUNCS(s16)
DIV_FUNCS(u32)
DIV_FUNCS(s32)
DIV_FUNCS(u64)
DIV_FUNCS(s64)

/* Dot products of bytes; dp2a takes halves of a and two bytes of b. */
static inline s32 byte_of(u32 v, u32 k, bool is_signed)
{
	u32 b = v >> (8 * k) & 0xff;

	return is_signed ? (s32)(s8)b : (s32)b;
}

static inline s32 half_of(u32 v, u32 k, bool is_signed)
{
	u32 h = v >> (16 * k) & 0xffff;

	return is_signed ? (s32)(s16)h : (s32)h;
}

static inline u32 dp4a(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	for (u32 k = 0; k < 4; k++)
		c += (u32)(byte_of(a, k, sa) * byte_of(b, k, sb));
	return c;
}

static inline u32 dp2a(u32 a, u32 b, u32 c, bool sa, bool sb, u32 first)
{
	for (u32 k = 0; k < 2; k++)
		c += (u32)(half_of(a, k, sa) * byte_of(b, first + k, sb));
	return c;
}

#define DOT_FUNCS(A, B, sa, sb)                                                                                                  \
	OP_FUNC(dp4a_##A##_##B, "", "", u32, u32, u32, u32, dp4a(a, b, c, sa, sb))                                               \
	OP_FUNC(dp2a_lo_##A##_##B, "", "", u32, u32, u32, u32, dp2a(a, b, c, sa, sb, 0))                                         \
	OP_FUNC(dp2a_hi_##A##_##B, "", "", u32, u32, u32, u32, dp2a(a, b, c, sa, sb, 2))
DOT_FUNCS(u32, u32, false, false)
DOT_FUNCS(u32, s32, false, true)
DOT_FUNCS(s32, u32, true, false)
DOT_FUNCS(s32, s32, true, true)

/*
 * Carry chains. The condition code is a bit per lane beside the registers; the lowering gives each function a
 * predicate register for it, in r[4] when read and r[5] when written.
 */
#define CARRY(nm, T, WIDE, EXPR)                                                                                                 \
	static inline void nm##_lanes(struct warp *w, const struct ins *i, u32 em, bool in, bool out)                            \
	{                                                                                                                        \
		T *D = ARG(T, 0);                                                                                                \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2), *C = ARG(const T, 3);                                        \
		u32 cc = in ? *pred_ptr(w, i->r[4]) : 0, res = 0;                                                                \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			WIDE a = A[l], b = B[l], c = C[l], cin = cc >> l & 1, r;                                                 \
			(void)c;                                                                                                 \
			r = EXPR;                                                                                                \
			D[l] = (T)r;                                                                                             \
			res |= (u32)(r >> (8 * sizeof(T)) & 1) << l;                                                             \
		}                                                                                                                \
		if (out)                                                                                                         \
			set_pred(w, i->r[5], em, res);                                                                           \
	}                                                                                                                        \
	HANDLER(nm##_out)                                                                                                        \
	{                                                                                                                        \
		nm##_lanes(w, i, em, false, true);                                                                               \
	}                                                                                                                        \
	HANDLER(nm##_in)                                                                                                         \
	{                                                                                                                        \
		nm##_lanes(w, i, em, true, false);                                                                               \
	}                                                                                                                        \
	HANDLER(nm##_in_out)                                                                                                     \
	{                                                                                                                        \
		nm##_lanes(w, i, em, true, true);                                                                                \
	}
/* A borrow is the carry of the difference taken in the wider type. */
CARRY(addc32, u32, u64, a + b + cin)
CARRY(addc64, u64, unsigned __int128, a + b + cin)
CARRY(subc32, u32, u64, a - b - cin)
CARRY(subc64, u64, unsigned __int128, a - b - cin)
CARRY(madc_lo32, u32, u64, (u64)(u32)(a *b) + c + cin)
CARRY(madc_lo64, u64, unsigned __int128, (unsigned __int128)(u64)(a *b) + c + cin)
CARRY(madc_hi_u32, u32, u64, (a * b >> 32) + c + cin)
CARRY(madc_hi_u64, u64, unsigned __int128, (a * b >> 64) + c + cin)
CARRY(madc_hi_s32, u32, u64, (u64)(u32)((s64)(s32)a *(s32)b >> 32) + c + cin)
CARRY(madc_hi_s64, u64, unsigned __int128, (unsigned __int128)(u64)((__int128)(s64)a *(s64)b >> 64) + c + cin)

#define CARRY_ROWS(op, opc, t, nm, sig)                                                                                          \
	{op ".cc." t, sig, nm##_out, 0}, {opc "." t, sig, nm##_in, 0}, {opc ".cc." t, sig, nm##_in_out, 0},
#define MADC_ROWS(part, t, nm, sig)                                                                                              \
	{"mad." part ".cc." t, sig, nm##_out, 0}, {"madc." part "." t, sig, nm##_in, 0},                                         \
		{"madc." part ".cc." t, sig, nm##_in_out, 0},

#define OP OP_ROW
TABLE(int) = {
#include "softgpu/ptx/ops_int.def"
	{"min.u16", "hhh", min_u16, 0},
	{"min.s16", "hhh", min_s16, 0},
	{"max.u16", "hhh", max_u16, 0},
	{"max.s16", "hhh", max_s16, 0},
	{"div.u16", "hhh", h_div_u16, 0},
	{"div.s16", "hhh", h_div_s16, 0},
	{"div.u32", "www", h_div_u32, 0},
	{"div.s32", "www", h_div_s32, 0},
	{"div.u64", "ddd", h_div_u64, 0},
	{"div.s64", "ddd", h_div_s64, 0},
	{"rem.u16", "hhh", h_rem_u16, 0},
	{"rem.s16", "hhh", h_rem_s16, 0},
	{"rem.u32", "www", h_rem_u32, 0},
	{"rem.s32", "www", h_rem_s32, 0},
	{"rem.u64", "ddd", h_rem_u64, 0},
	{"rem.s64", "ddd", h_rem_s64, 0},
#define DOT_ROWS(A, B)                                                                                                           \
	{"dp4a." #A "." #B, "wwww", dp4a_##A##_##B, 0}, {"dp2a.lo." #A "." #B, "wwww", dp2a_lo_##A##_##B, 0},                    \
		{"dp2a.hi." #A "." #B, "wwww", dp2a_hi_##A##_##B, 0},
	DOT_ROWS(u32, u32) DOT_ROWS(u32, s32) DOT_ROWS(s32, u32) DOT_ROWS(s32, s32) CARRY_ROWS("add", "addc", "{u32,s32}", addc32,
											       "www")
		CARRY_ROWS("add", "addc", "{u64,s64}", addc64, "ddd") CARRY_ROWS("sub", "subc", "{u32,s32}", subc32, "www")
			CARRY_ROWS("sub", "subc", "{u64,s64}", subc64, "ddd") MADC_ROWS("lo", "{u32,s32}", madc_lo32, "wwww")
				MADC_ROWS("lo", "{u64,s64}", madc_lo64, "dddd") MADC_ROWS("hi", "u32", madc_hi_u32, "wwww")
					MADC_ROWS("hi", "s32", madc_hi_s32, "wwww") MADC_ROWS("hi", "u64", madc_hi_u64, "dddd")
						MADC_ROWS("hi", "s64", madc_hi_s64, "dddd"){NULL, NULL, NULL, 0},
};

#undef OP
#define OP WHOLE_FUNC
#include "softgpu/ptx/ops_int.def"
#undef OP

#define OP WHOLE_ROW
WHOLE_TABLE(int) = {
#include "softgpu/ptx/ops_int.def"
	{NULL, NULL, NULL, NULL, NULL},
};
