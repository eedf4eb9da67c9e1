/* SPDX-License-Identifier: MIT */
/* Moves, logic, shifts, bit fields, selections, packing and predicate logic. */
#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/whole_handlers.h"

static inline u32 reverse32(u32 v)
{
	v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
	v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
	v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(v);
}

/* The highest set bit's number, all ones when there is none. */
static inline u32 high_bit(u64 v)
{
	return v ? 63u - (u32)__builtin_clzll(v) : FULL;
}

static inline u32 shift_amount(u32 bit, u32 top)
{
	return bit == FULL ? FULL : top - bit;
}

static inline u32 find_nth(u32 mask, u32 base, s32 offset)
{
	s32 step = offset < 0 ? -1 : 1;
	u32 left = offset < 0 ? -(u32)offset : (u32)offset;

	if (base > 31)
		return FULL;
	if (!offset)
		return mask >> base & 1 ? base : FULL;
	for (s32 k = (s32)base; k >= 0 && k < 32; k += step)
		if ((mask >> k & 1) && !--left)
			return (u32)k;
	return FULL;
}

static inline u64 bfe(u64 a, u32 pos, u32 len, u32 width, bool is_signed)
{
	u32 msb = width - 1, top;
	bool sign;
	u64 v;

	top = pos + len - 1;
	if (!is_signed || !len)
		sign = false;
	else
		sign = a >> (top > msb ? msb : top) & 1;
	v = pos > msb ? 0 : a >> pos;
	if (pos <= msb && len > width - pos)
		len = width - pos; /* bits beyond the register are the sign */
	if (pos > msb)
		len = 0;
	if (len < 64)
		v &= (1ull << len) - 1;
	if (sign && len < 64)
		v |= ~0ull << len;
	return v;
}

static inline u64 bfi(u64 a, u64 b, u32 pos, u32 len, u32 width)
{
	u64 m;

	if (pos > width - 1)
		return b;
	if (len > width - pos)
		len = width - pos;
	m = (len > 63 ? ~0ull : (1ull << len) - 1) << pos;
	return (b & ~m) | (a << pos & m);
}

static inline u32 bit_mask(u32 pos, u32 len)
{
	u64 m;

	if (pos > 31)
		return 0;
	m = (len > 31 ? 0xffffffffull : (1ull << len) - 1) << pos;
	return (u32)m;
}

static inline u32 sign_extend(u32 v, u32 bits)
{
	if (!bits)
		return 0;
	return (u32)((s32)(v << (32 - bits)) >> (32 - bits));
}

static inline u32 permute(u32 a, u32 b, u32 sel)
{
	u64 v = (u64)b << 32 | a;
	u32 r = 0;

	for (u32 k = 0; k < 4; k++) {
		u32 s = sel >> (4 * k), byte = (u32)(v >> (8 * (s & 7))) & 0xff;

		if (s & 8)
			byte = byte & 0x80 ? 0xff : 0;
		r |= byte << (8 * k);
	}
	return r;
}

/* Selectors of prmt's named modes. */
static inline u32 b4e(u32 c)
{
	static const u32 sel[] = {0x5670, 0x6701, 0x7012, 0x0123};

	return sel[c];
}

static inline u32 edge(u32 c, bool left)
{
	static const u32 l[] = {0x3210, 0x3211, 0x3222, 0x3333}, r[] = {0x0000, 0x1110, 0x2210, 0x3210};

	return left ? l[c] : r[c];
}

#define OP OP_FUNC
#include "softgpu/ptx/ops_bits.def"
#undef OP

/* lop3: eight minterms of a truth table that is constant in practice. */
HANDLER(lop3)
{
	u32 *D = ARG(u32, 0);
	const u32 *A = ARG(const u32, 1), *B = ARG(const u32, 2), *C = ARG(const u32, 3);
	const s32 *m = lane_mask(w, em);
	u32 t[8];

	for (u32 k = 0; k < 8; k++)
		t[k] = -(u32)(i->imm >> k & 1);
	IVDEP LANES
	{
		u32 a = A[l], b = B[l], c = C[l], v;

		v = (t[0] & ~a & ~b & ~c) | (t[1] & ~a & ~b & c) | (t[2] & ~a & b & ~c) | (t[3] & ~a & b & c) |
		    (t[4] & a & ~b & ~c) | (t[5] & a & ~b & c) | (t[6] & a & b & ~c) | (t[7] & a & b & c);
		D[l] = m[l] ? v : D[l];
	}
}

#define BFI(nm, T, width)                                                                                                        \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		T *D = ARG(T, 0);                                                                                                \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2);                                                              \
		const u32 *C = ARG(const u32, 3), *E = ARG(const u32, 4);                                                        \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			D[l] = (T)bfi(A[l], B[l], C[l] & 255, E[l] & 255, width);                                                \
		}                                                                                                                \
	}
BFI(bfi32, u32, 32)
BFI(bfi64, u64, 64)

#define SELP(nm, T)                                                                                                              \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		T *D = ARG(T, 0);                                                                                                \
		const T *A = ARG(const T, 1), *B = ARG(const T, 2);                                                              \
		u32 p = *pred_ptr(w, i->r[3]);                                                                                   \
		if (em == FULL) {                                                                                                \
			IVDEP LANES D[l] = (p >> l & 1) ? A[l] : B[l];                                                           \
			return;                                                                                                  \
		}                                                                                                                \
		const s32 *m = lane_mask(w, em);                                                                                 \
		IVDEP LANES                                                                                                      \
		{                                                                                                                \
			T r = (p >> l & 1) ? A[l] : B[l];                                                                        \
			D[l] = m[l] ? r : D[l];                                                                                  \
		}                                                                                                                \
	}
SELP(selp16, u16)
SELP(selp32, u32)
SELP(selp64, u64)

/* slct: a where c ≥ 0 (for f32 a NaN chooses b) */
#define SLCT(nm, T, CT, COND) OP_FUNC(nm, "", "", T, T, T, CT, (COND) ? a : b)
SLCT(slct16, u16, s32, c >= 0)
SLCT(slct32, u32, s32, c >= 0)
SLCT(slct64, u64, s32, c >= 0)
SLCT(slct16f, u16, f32, c >= 0)
SLCT(slct32f, u32, f32, c >= 0)
SLCT(slct64f, u64, f32, c >= 0)
SLCT(slct32fz, u32, f32, ftz(c) >= 0)
SLCT(slct64fz, u64, f32, ftz(c) >= 0)

/* A byte fills a 16-bit register with zeros above it. */
#define REG_u8	u16
#define REG_u16 u16
#define REG_u32 u32
#define UNPACK(nm, DT, ST)                                                                                                       \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		REG_##DT *D = ARG(REG_##DT, 0);                                                                                  \
		const ST *A = ARG(const ST, 1);                                                                                  \
		const s32 *m = lane_mask(w, em);                                                                                 \
		u32 sh = (u32)i->imm;                                                                                            \
		IVDEP LANES                                                                                                      \
		{                                                                                                                \
			DT r = (DT)(A[l] >> sh);                                                                                 \
			D[l] = m[l] ? r : D[l];                                                                                  \
		}                                                                                                                \
	}
UNPACK(unpack_hw, u16, u32)
UNPACK(unpack_bh, u8, u16)
UNPACK(unpack_bw, u8, u32)
UNPACK(unpack_hd, u16, u64)
UNPACK(unpack_wd, u32, u64)

OP_FUNC(pack_h2, "", "", u16, u16, u16, u16, (u8)a | (u32)b << 8)
OP_FUNC(pack_w2, "", "", u32, u16, u16, u16, a | (u32)b << 16)
OP_FUNC(pack_d2, "", "", u64, u32, u32, u32, a | (u64)b << 32)

HANDLER(pack_d4)
{
	u64 *D = ARG(u64, 0);
	const u16 *A = ARG(const u16, 1), *B = ARG(const u16, 2), *C = ARG(const u16, 3), *E = ARG(const u16, 4);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		D[l] = A[l] | (u64)B[l] << 16 | (u64)C[l] << 32 | (u64)E[l] << 48;
	}
}

HANDLER(pack_w4)
{
	u32 *D = ARG(u32, 0);
	const u16 *A = ARG(const u16, 1), *B = ARG(const u16, 2), *C = ARG(const u16, 3), *E = ARG(const u16, 4);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		D[l] = (u8)A[l] | (u32)(u8)B[l] << 8 | (u32)(u8)C[l] << 16 | (u32)(u8)E[l] << 24;
	}
}

#define PRED(nm, EXPR)                                                                                                           \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		u32 a = *pred_ptr(w, i->r[1]), b = *pred_ptr(w, i->r[2]);                                                        \
		(void)b;                                                                                                         \
		set_pred(w, i->r[0], em, EXPR);                                                                                  \
	}
PRED(pred_mov, a)
PRED(pred_not, ~a)
PRED(pred_and, a &b)
PRED(pred_or, a | b)
PRED(pred_xor, a ^ b)

#define OP OP_ROW
TABLE(bits) = {
#include "softgpu/ptx/ops_bits.def"
	{"lop3:", "wwww", lop3, 0},
	{"bfi.b32", "wwwww", bfi32, 0},
	{"bfi.b64", "dddww", bfi64, 0},
	{"selp.{b16,u16,s16,f16,bf16}", "hhhp", selp16, 0},
	{"selp.{b32,u32,s32,f32}", "wwwp", selp32, 0},
	{"selp.{b64,u64,s64,f64}", "dddp", selp64, 0},
	{"slct.{b16,u16,s16}.s32", "hhhw", slct16, 0},
	{"slct.{b32,u32,s32,f32}.s32", "wwww", slct32, 0},
	{"slct.{b64,u64,s64,f64}.s32", "dddw", slct64, 0},
	{"slct.{b16,u16,s16}.f32", "hhhf", slct16f, 0},
	{"slct.{b32,u32,s32,f32}.f32", "wwwf", slct32f, 0},
	{"slct.{b64,u64,s64,f64}.f32", "dddf", slct64f, 0},
	{"slct.ftz.{b32,u32,s32,f32}.f32", "wwwf", slct32fz, 0},
	{"slct.ftz.{b64,u64,s64,f64}.f32", "dddf", slct64fz, 0},
	{"unpack:hw", "hw", unpack_hw, 0},
	{"unpack:hd", "hd", unpack_hd, 0},
	{"unpack:wd", "wd", unpack_wd, 0},
	{"unpack:bh", "hh", unpack_bh, 0},
	{"unpack:bw", "hw", unpack_bw, 0},
	{"pack:h:2b", "hhh", pack_h2, 0},
	{"pack:w:4b", "whhhh", pack_w4, 0},
	{"pack:w:2", "whh", pack_w2, 0},
	{"pack:d:2", "dww", pack_d2, 0},
	{"pack:d:4", "dhhhh", pack_d4, 0},
	{"mov:p", "pp", pred_mov, 0},
	{"not.pred", "pp", pred_not, 0},
	{"and.pred", "ppp", pred_and, 0},
	{"or.pred", "ppp", pred_or, 0},
	{"xor.pred", "ppp", pred_xor, 0},
	{NULL, NULL, NULL, 0},
};

#undef OP
#define OP WHOLE_FUNC
#include "softgpu/ptx/ops_bits.def"
#undef OP

#define WHOLE_SELP(nm, T)                                                                                                        \
	WHOLE(s_##nm)                                                                                                            \
	{                                                                                                                        \
		*WARG(T, 0) = (*WARG(const u32, 3) & 1) ? *WARG(const T, 1) : *WARG(const T, 2);                                 \
		NEXT;                                                                                                            \
	}
WHOLE_SELP(selp32, u32)
WHOLE_SELP(selp64, u64)

#define OP WHOLE_ROW
WHOLE_TABLE(bits) = {
	{"selp.b32", s_selp32, NULL, NULL, NULL},
	{"selp.b64", s_selp64, NULL, NULL, NULL},
#include "softgpu/ptx/ops_bits.def"
	{NULL, NULL, NULL, NULL, NULL},
};
