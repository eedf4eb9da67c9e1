/* SPDX-License-Identifier: MIT */
/* The video instructions, scalar and of two or four lanes in a register: rare and of many forms, so interpreted lane by lane. */
#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/video.h"

static s64 extend(u32 v, u32 bits, bool is_signed)
{
	u32 up = 32 - bits;

	return is_signed ? (s64)((s32)(v << up) >> up) : (s64)(v << up >> up);
}

static s64 part(u32 v, u32 sel, bool is_signed)
{
	if (sel >= V_HALF)
		return extend(v >> (16 * (sel - V_HALF)), 16, is_signed);
	if (sel >= V_BYTE)
		return extend(v >> (8 * (sel - V_BYTE)), 8, is_signed);
	return extend(v, 32, is_signed);
}

static s64 clamp(s64 v, u32 bits, bool is_signed)
{
	s64 lo = is_signed ? -(1ll << (bits - 1)) : 0, hi = is_signed ? (1ll << (bits - 1)) - 1 : (1ll << bits) - 1;

	return v < lo ? lo : v > hi ? hi : v;
}

static s64 compute(const struct video *v, s64 a, s64 b)
{
	switch (v->op) {
	case V_ADD:
		return a + b;
	case V_SUB:
		return a - b;
	case V_ABSDIFF:
		return a < b ? b - a : a - b;
	case V_MIN:
		return a < b ? a : b;
	case V_MAX:
		return a > b ? a : b;
	case V_SHL:
	case V_SHR:
		b = v->wrap ? b & 31 : b > 32 ? 32 : b;
		return v->op == V_SHL ? (s64)((u64)a << b) : a >> b;
	case V_AVRG:
		return (a + b + (a + b >= 0)) >> 1;
	default:
		return v->cmp == V_EQ	? a == b
		       : v->cmp == V_NE ? a != b
		       : v->cmp == V_LT ? a < b
		       : v->cmp == V_LE ? a <= b
		       : v->cmp == V_GT ? a > b
					: a >= b;
	}
}

/* The product and the sum in full, then the shift and the saturation. */
static u32 multiply_add(const struct video *v, s64 a, s64 b, u32 c)
{
	bool is_signed = v->asigned || v->bsigned || v->minus_ab || v->minus_c;
	__int128 t = (__int128)a * b, addend;
	s64 lo = is_signed ? INT32_MIN : 0, hi = is_signed ? INT32_MAX : UINT32_MAX;

	if (v->minus_ab && !v->plus_one)
		t = ~t;
	if (v->minus_c && !v->plus_one && !v->minus_ab)
		c = ~c;
	addend = is_signed ? (__int128)(s32)c : (__int128)c;
	t += addend + (v->plus_one || v->minus_ab || v->minus_c);
	t >>= v->scale == 1 ? 7 : v->scale == 2 ? 15 : 0;
	if (v->sat)
		t = t < lo ? lo : t > hi ? hi : t;
	return (u32)t;
}

static u32 scalar(const struct video *v, u32 ra, u32 rb, u32 c)
{
	s64 a = part(ra, v->asel, v->asigned), b = part(rb, v->bsel, v->bsigned), t;
	u32 bits = !v->dsel ? 32 : v->dsel >= V_HALF ? 16 : 8, m, shift;

	if (v->op == V_MAD)
		return multiply_add(v, a, b, c);
	t = compute(v, a, b);
	if (v->sat)
		t = clamp(t, bits, v->dsigned);
	if (v->merge) {
		shift = v->dsel >= V_HALF ? 16u * (v->dsel - V_HALF) : 8u * (v->dsel - V_BYTE);
		m = ((1u << bits) - 1) << shift;
		return (c & ~m) | ((u32)t << shift & m);
	}
	switch (v->second) {
	case V_PLUS:
		return (u32)t + c;
	case V_LEAST:
		return v->dsigned ? (u32)((s32)t < (s32)c ? (s32)t : (s32)c) : (u32)t < c ? (u32)t : c;
	case V_MOST:
		return v->dsigned ? (u32)((s32)t > (s32)c ? (s32)t : (s32)c) : (u32)t > c ? (u32)t : c;
	default:
		return (u32)t;
	}
}

static u32 simd(const struct video *v, u32 a, u32 b, u32 c)
{
	u32 bits = 32u / v->lanes, m = (1u << bits) - 1, d = v->second == V_PLUS ? c : 0;
	u64 both = (u64)b << 32 | a;

	for (u32 k = 0; k < v->lanes; k++) {
		s64 x = extend((u32)(both >> (bits * (v->asel >> (4 * k) & 7))), bits, v->asigned);
		s64 y = extend((u32)(both >> (bits * (v->bsel >> (4 * k) & 7))), bits, v->bsigned), t = compute(v, x, y);
		bool on = v->dsel >> k & 1;

		if (v->sat)
			t = clamp(t, bits, v->dsigned);
		if (v->second == V_PLUS)
			d += on ? (u32)t : 0;
		else
			d |= ((on ? (u32)t : c >> (bits * k)) & m) << (bits * k);
	}
	return d;
}

HANDLER(video)
{
	const u32 *A = ARG(const u32, 1), *B = ARG(const u32, 2), *C = ARG(const u32, 3);
	u32 *D = ARG(u32, 0);
	struct video v;

	memcpy(&v, &i->imm, sizeof(v));
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		D[l] = v.lanes == 1 ? scalar(&v, A[l], B[l], C[l]) : simd(&v, A[l], B[l], C[l]);
	}
}

const struct op_row ptx_ops_video[] = {
	{"video:", "", video, 0},
	{NULL, NULL, NULL, 0},
};
