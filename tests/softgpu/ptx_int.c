/* SPDX-License-Identifier: MIT */
/* Integer and bit instructions of the PTX engine, lane by lane against C. */
#include "tests/softgpu/ptx_cases.h"

static u64 bfe_ref(u64 a, u32 pos, u32 len, u32 width, bool sign)
{
	/* the PTX manual's loop */
	u32 msb = width - 1;
	u64 sbit = 0, d = 0;

	pos &= 255;
	len &= 255;
	if (sign && len)
		sbit = a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1;
	for (u32 i = 0; i <= msb; i++)
		d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sbit) << i;
	return d;
}

static u64 bfind_ref(u64 a, u32 width, bool shift)
{
	for (u32 i = width; i-- > 0;)
		if (a >> i & 1)
			return shift ? width - 1 - i : i;
	return 0xffffffff;
}

static u64 brev_ref(u64 a, u32 width)
{
	u64 r = 0;

	for (u32 i = 0; i < width; i++)
		r |= (a >> i & 1) << (width - 1 - i);
	return r;
}

static u32 prmt_ref(u32 a, u32 b, u32 c)
{
	u8 bytes[8];
	u32 r = 0;

	memcpy(bytes, &a, 4);
	memcpy(bytes + 4, &b, 4);
	for (u32 i = 0; i < 4; i++) {
		u32 s = c >> 4 * i & 15;
		u8 v = bytes[s & 7];

		if (s & 8)
			v = v & 0x80 ? 0xff : 0;
		r |= (u32)v << 8 * i;
	}
	return r;
}

static s64 sat(__int128 v, s64 lo, s64 hi)
{
	return v < lo ? lo : v > hi ? hi : (s64)v;
}

static u32 dp4a_ref(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	for (u32 k = 0; k < 4; k++)
		c += (u32)((sa ? (s8)(a >> 8 * k) : (s32)(u8)(a >> 8 * k)) * (sb ? (s8)(b >> 8 * k) : (s32)(u8)(b >> 8 * k)));
	return c;
}

static u64 bfi_ref(u64 a, u64 b, u32 pos, u32 len, u32 width)
{
	pos &= 255;
	len &= 255;
	for (u32 i = 0; i < len && pos + i < width; i++)
		b = (b & ~(1ull << (pos + i))) | (a >> i & 1) << (pos + i);
	return b;
}

static float as_f32(u64 v)
{
	u32 u = (u32)v;
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static u64 shf(u64 hi, u64 lo, u32 n, bool left, bool clamp)
{
	u64 v = hi << 32 | (u32)lo;

	n = clamp ? (n > 32 ? 32 : n) : n & 31;
	return left ? v << n >> 32 : v >> n;
}

/* The manual's loop for find-nth-set. */
static u32 fns_ref(u32 mask, u32 base, s32 offset)
{
	s64 pos = base, count = (offset < 0 ? -(s64)offset : offset) - 1;

	if (!offset)
		return base < 32 && (mask >> base & 1) ? base : 0xffffffff;
	for (; pos >= 0 && pos<32; pos += offset> 0 ? 1 : -1)
		if ((mask >> pos & 1) && !count--)
			return (u32)pos;
	return 0xffffffff;
}

static u32 bmsk_ref(u32 a, u32 b, bool clamp)
{
	u32 first = clamp ? (a > 32 ? 32 : a) : a & 31, len = clamp ? (b > 32 ? 32 : b) : b & 31, r = 0;

	for (u32 k = first; k < first + len && k < 32; k++)
		r |= 1u << k;
	return r;
}

static u32 szext_ref(u32 a, u32 b, bool clamp, bool is_signed)
{
	u32 n = clamp ? (b > 32 ? 32 : b) : b & 31, r = 0;

	for (u32 k = 0; k < 32; k++)
		r |= (k < n ? a >> k & 1 : is_signed && n ? a >> (n - 1) & 1 : 0) << k;
	return r;
}

/* prmt's named modes: which byte of {b, a} goes to each place of the result, by the low bits of c. */
static u32 prmt_mode(const char *mode, u64 a, u64 b, u64 c)
{
	static const struct {
		const char *mode;
		u8 from[4][4]; /* most significant first, as the manual's tables */
	} t[] = {
		{"f4e", {{3, 2, 1, 0}, {4, 3, 2, 1}, {5, 4, 3, 2}, {6, 5, 4, 3}}},
		{"b4e", {{5, 6, 7, 0}, {6, 7, 0, 1}, {7, 0, 1, 2}, {0, 1, 2, 3}}},
		{"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
		{"ecl", {{3, 2, 1, 0}, {3, 2, 1, 1}, {3, 2, 2, 2}, {3, 3, 3, 3}}},
		{"ecr", {{0, 0, 0, 0}, {1, 1, 1, 0}, {2, 2, 1, 0}, {3, 2, 1, 0}}},
		{"rc16", {{1, 0, 1, 0}, {3, 2, 3, 2}, {1, 0, 1, 0}, {3, 2, 3, 2}}},
	};
	u64 v = b << 32 | (u32)a;
	u32 r = 0;

	for (u32 k = 0; k < COUNT(t); k++)
		for (u32 i = 0; i < 4 && !strcmp(t[k].mode, mode); i++)
			r = r << 8 | (u32)(v >> 8 * t[k].from[c & 3][i] & 0xff);
	return r;
}

static u32 dp2a_ref(u64 a, u64 b, u64 c, bool sa, bool sb, u32 first)
{
	u32 r = (u32)c;

	for (u32 k = 0; k < 2; k++)
		r += (u32)((sa ? (s16)(a >> 16 * k) : (s32)(u16)(a >> 16 * k)) *
			   (sb ? (s8)(b >> 8 * (first + k)) : (s32)(u8)(b >> 8 * (first + k))));
	return r;
}

/* Both halves of a pair through one expression in x and y. */
#define HALVES(T, ...)                                                                                                           \
	({                                                                                                                       \
		u64 r_ = 0;                                                                                                      \
		for (u32 k_ = 0; k_ < 32; k_ += 16) {                                                                            \
			T x = (T)(a >> k_), y = (T)(b >> k_);                                                                    \
			r_ |= (u64)(u16)(__VA_ARGS__) << k_;                                                                     \
		}                                                                                                                \
		r_;                                                                                                              \
	})
#define LT(T, x, y) ((T)(x) < (T)(y))
#define U128	    unsigned __int128
#define S24(v)	    ((s64)((s32)((u32)(v) << 8) >> 8))
#define U24(v)	    ((v)&0xffffff)
#define LOP(t)                                                                                                                   \
	((t & 1 ? ~a & ~b & ~c : 0) | (t & 2 ? ~a & ~b & c : 0) | (t & 4 ? ~a & b & ~c : 0) | (t & 8 ? ~a & b & c : 0) |         \
	 (t & 16 ? a & ~b & ~c : 0) | (t & 32 ? a & ~b & c : 0) | (t & 64 ? a & b & ~c : 0) | (t & 128 ? a & b & c : 0))

#define ARITHMETIC(X)                                                                                                            \
	X(add16, "add.{u16,s16}", "hhh", a + b)                                                                                  \
	X(add32, "add.{u32,s32}", "www", a + b)                                                                                  \
	X(add64, "add.{u64,s64}", "ddd", a + b)                                                                                  \
	X(addx2, "add.{u16x2,s16x2}", "www", HALVES(u16, x + y))                                                                 \
	X(addsat, "add.sat.s32", "www", sat((__int128)(s32)a + (s32)b, INT32_MIN, INT32_MAX))                                    \
	X(sub16, "sub.{u16,s16}", "hhh", a - b)                                                                                  \
	X(sub32, "sub.{u32,s32}", "www", a - b)                                                                                  \
	X(sub64, "sub.{u64,s64}", "ddd", a - b)                                                                                  \
	X(subsat, "sub.sat.s32", "www", sat((__int128)(s32)a - (s32)b, INT32_MIN, INT32_MAX))                                    \
	X(neg16, "neg.s16", "hh", -a)                                                                                            \
	X(neg32, "neg.s32", "ww", -a)                                                                                            \
	X(neg64, "neg.s64", "dd", -a)                                                                                            \
	X(abs16, "abs.s16", "hh", (s16)a < 0 ? -a : a)                                                                           \
	X(abs32, "abs.s32", "ww", (s32)a < 0 ? -a : a)                                                                           \
	X(abs64, "abs.s64", "dd", (s64)a < 0 ? -a : a)                                                                           \
	X(mul16, "mul.lo.{u16,s16}", "hhh", (u16)a *(u64)(u16)b)                                                                 \
	X(mul32, "mul.lo.{u32,s32}", "www", a *b)                                                                                \
	X(mul64, "mul.lo.{u64,s64}", "ddd", a *b)                                                                                \
	X(mulhiu16, "mul.hi.u16", "hhh", (u64)(u16)a *(u16)b >> 16)                                                              \
	X(mulhis16, "mul.hi.s16", "hhh", (s64)(s16)a *(s16)b >> 16)                                                              \
	X(mulhiu32, "mul.hi.u32", "www", (u64)(u32)a *(u32)b >> 32)                                                              \
	X(mulhis32, "mul.hi.s32", "www", (s64)(s32)a *(s32)b >> 32)                                                              \
	X(mulhiu64, "mul.hi.u64", "ddd", (U128)a *b >> 64)                                                                       \
	X(mulhis64, "mul.hi.s64", "ddd", (__int128)(s64)a *(s64)b >> 64)                                                         \
	X(mulwu16, "mul.wide.u16", "whh", (u64)(u16)a *(u16)b)                                                                   \
	X(mulws16, "mul.wide.s16", "whh", (s64)(s16)a *(s16)b)                                                                   \
	X(mulwu32, "mul.wide.u32", "dww", (u64)(u32)a *(u32)b)                                                                   \
	X(mulws32, "mul.wide.s32", "dww", (s64)(s32)a *(s32)b)                                                                   \
	X(mad16, "mad.lo.{u16,s16}", "hhhh", (u64)(u16)a *(u16)b + c)                                                            \
	X(mad32, "mad.lo.{u32,s32}", "wwww", a *b + c)                                                                           \
	X(mad64, "mad.lo.{u64,s64}", "dddd", a *b + c)                                                                           \
	X(madhiu16, "mad.hi.u16", "hhhh", ((u64)(u16)a * (u16)b >> 16) + c)                                                      \
	X(madhis16, "mad.hi.s16", "hhhh", (u64)((s64)(s16)a * (s16)b >> 16) + c)                                                 \
	X(madhiu32, "mad.hi.u32", "wwww", ((u64)(u32)a * (u32)b >> 32) + c)                                                      \
	X(madhis32, "mad.hi.s32", "wwww", (u64)((s64)(s32)a * (s32)b >> 32) + c)                                                 \
	X(madhisat, "mad.hi.sat.s32", "wwww", sat((__int128)((s64)(s32)a * (s32)b >> 32) + (s32)c, INT32_MIN, INT32_MAX))        \
	X(madhiu64, "mad.hi.u64", "dddd", (u64)((U128)a * b >> 64) + c)                                                          \
	X(madhis64, "mad.hi.s64", "dddd", (u64)((__int128)(s64)a * (s64)b >> 64) + c)                                            \
	X(madwu16, "mad.wide.u16", "whhw", (u64)(u16)a *(u16)b + c)                                                              \
	X(madws16, "mad.wide.s16", "whhw", (u64)((s64)(s16)a * (s16)b) + c)                                                      \
	X(madwu32, "mad.wide.u32", "dwwd", (u64)(u32)a *(u32)b + c)                                                              \
	X(madws32, "mad.wide.s32", "dwwd", (u64)((s64)(s32)a * (s32)b) + c)                                                      \
	X(mul24u, "mul24.lo.u32", "www", U24(a) * U24(b))                                                                        \
	X(mul24s, "mul24.lo.s32", "www", S24(a) * S24(b))                                                                        \
	X(mul24hu, "mul24.hi.u32", "www", U24(a) * U24(b) >> 16)                                                                 \
	X(mul24hs, "mul24.hi.s32", "www", S24(a) * S24(b) >> 16)                                                                 \
	X(mad24sat, "mad24.hi.sat.s32", "wwww", sat((__int128)(S24(a) * S24(b) >> 16) + (s32)c, INT32_MIN, INT32_MAX))           \
	X(pack2b, "mov.b16 $0, {$1, $2};", "hhh", (a & 0xff) | (b & 0xff) << 8)                                                  \
	X(pack4b, "mov.b32 $0, {$1, $2, $3, $4};", "whhhh", (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | (e & 0xff) << 24)  \
	X(unpack2b, "mov.b16 {_, $0}, $1;", "hh", (a >> 8) & 0xff)                                                               \
	X(unpack4b, "mov.b32 {_, %hx, $0, _}, $1;", "hw", (a >> 16) & 0xff)                                                      \
	X(mad24u, "mad24.lo.u32", "wwww", U24(a) * U24(b) + c)                                                                   \
	X(mad24s, "mad24.lo.s32", "wwww", (u64)(S24(a) * S24(b)) + c)                                                            \
	X(mad24hu, "mad24.hi.u32", "wwww", (U24(a) * U24(b) >> 16) + c)                                                          \
	X(mad24hs, "mad24.hi.s32", "wwww", (u64)(S24(a) * S24(b) >> 16) + c)                                                     \
	X(divu16, "div.u16", "hhh", (u16)b ? (u16)a / (u16)b : 0xffff)                                                           \
	X(divs16, "div.s16", "hhh", (u16)b ? (s16)a / (s16)b : -1)                                                               \
	X(divu32, "div.u32", "www", (u32)b ? (u32)a / (u32)b : 0xffffffff)                                                       \
	X(divs32, "div.s32", "www", !(u32)b ? -1 : (s64)(s32)a / (s32)b)                                                         \
	X(divu64, "div.u64", "ddd", b ? a / b : ~0ull)                                                                           \
	X(divs64, "div.s64", "ddd", !b ? (u64)-1 : (u64)((__int128)(s64)a / (s64)b))                                             \
	X(remu16, "rem.u16", "hhh", (u16)b ? (u16)a % (u16)b : a)                                                                \
	X(rems16, "rem.s16", "hhh", !(u16)b ? (s16)a : (s64)(s16)a % (s16)b)                                                     \
	X(remu32, "rem.u32", "www", (u32)b ? (u32)a % (u32)b : a)                                                                \
	X(rems32, "rem.s32", "www", !(u32)b ? (s64)a : (s64)(s32)a % (s32)b)                                                     \
	X(remu64, "rem.u64", "ddd", b ? a % b : a)                                                                               \
	X(rems64, "rem.s64", "ddd", !b ? a : (u64)((__int128)(s64)a % (s64)b))                                                   \
	X(minu16, "min.u16", "hhh", LT(u16, a, b) ? a : b)                                                                       \
	X(mins16, "min.s16", "hhh", LT(s16, a, b) ? a : b)                                                                       \
	X(minu32, "min.u32", "www", LT(u32, a, b) ? a : b)                                                                       \
	X(mins32, "min.s32", "www", LT(s32, a, b) ? a : b)                                                                       \
	X(minu64, "min.u64", "ddd", LT(u64, a, b) ? a : b)                                                                       \
	X(mins64, "min.s64", "ddd", LT(s64, a, b) ? a : b)                                                                       \
	X(maxu16, "max.u16", "hhh", LT(u16, a, b) ? b : a)                                                                       \
	X(maxs16, "max.s16", "hhh", LT(s16, a, b) ? b : a)                                                                       \
	X(maxu32, "max.u32", "www", LT(u32, a, b) ? b : a)                                                                       \
	X(maxs32, "max.s32", "www", LT(s32, a, b) ? b : a)                                                                       \
	X(maxu64, "max.u64", "ddd", LT(u64, a, b) ? b : a)                                                                       \
	X(maxs64, "max.s64", "ddd", LT(s64, a, b) ? b : a)                                                                       \
	X(minrelu, "min.{relu.s32,s32.relu}", "www", (s32)a < 0 || (s32)b < 0 ? 0 : LT(s32, a, b) ? a : b)                       \
	X(maxrelu, "max.{relu.s32,s32.relu}", "www", (s32)a < 0 && (s32)b < 0 ? 0 : LT(s32, a, b) ? b : a)                       \
	X(minux2, "min.u16x2", "www", HALVES(u16, x < y ? x : y))                                                                \
	X(maxux2, "max.u16x2", "www", HALVES(u16, x < y ? y : x))                                                                \
	X(minsx2, "min.s16x2", "www", HALVES(s16, x < y ? x : y))                                                                \
	X(maxsx2, "max.s16x2", "www", HALVES(s16, x < y ? y : x))                                                                \
	X(minsr2, "min.{relu.s16x2,s16x2.relu}", "www", HALVES(s16, x < 0 || y < 0 ? 0 : x < y ? x : y))                         \
	X(maxsr2, "max.{relu.s16x2,s16x2.relu}", "www", HALVES(s16, x < 0 && y < 0 ? 0 : x < y ? y : x))                         \
	X(sadu16, "sad.u16", "hhhh", c + (LT(u16, a, b) ? b - a : a - b))                                                        \
	X(sads16, "sad.s16", "hhhh", c + (LT(s16, a, b) ? b - a : a - b))                                                        \
	X(sadu32, "sad.u32", "wwww", c + (LT(u32, a, b) ? b - a : a - b))                                                        \
	X(sads32, "sad.s32", "wwww", c + (LT(s32, a, b) ? b - a : a - b))                                                        \
	X(sadu64, "sad.u64", "dddd", c + (LT(u64, a, b) ? b - a : a - b))                                                        \
	X(sads64, "sad.s64", "dddd", c + (LT(s64, a, b) ? b - a : a - b))                                                        \
	X(dp4auu, "dp4a.u32.u32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, false, false))                                        \
	X(dp4aus, "dp4a.u32.s32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, false, true))                                         \
	X(dp4asu, "dp4a.s32.u32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, true, false))                                         \
	X(dp4ass, "dp4a.s32.s32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, true, true))                                          \
	X(dp2aluu, "dp2a.lo.u32.u32", "wwww", dp2a_ref(a, b, c, false, false, 0))                                                \
	X(dp2alus, "dp2a.lo.u32.s32", "wwww", dp2a_ref(a, b, c, false, true, 0))                                                 \
	X(dp2alsu, "dp2a.lo.s32.u32", "wwww", dp2a_ref(a, b, c, true, false, 0))                                                 \
	X(dp2alss, "dp2a.lo.s32.s32", "wwww", dp2a_ref(a, b, c, true, true, 0))                                                  \
	X(dp2ahuu, "dp2a.hi.u32.u32", "wwww", dp2a_ref(a, b, c, false, false, 2))                                                \
	X(dp2ahus, "dp2a.hi.u32.s32", "wwww", dp2a_ref(a, b, c, false, true, 2))                                                 \
	X(dp2ahsu, "dp2a.hi.s32.u32", "wwww", dp2a_ref(a, b, c, true, false, 2))                                                 \
	X(dp2ahss, "dp2a.hi.s32.s32", "wwww", dp2a_ref(a, b, c, true, true, 2))

/* The carry is made by one instruction and seen by the next; the last one's carry by an addition of zeros. */
#define CARRIES(X)                                                                                                               \
	X(addc32, "add.cc.{u32,s32} %wx, $1, $2; addc.{u32,s32} $0, $3, $4;", "wwwww", c + e + (((u64)(u32)a + (u32)b) >> 32))   \
	X(addcc32, "add.cc.u32 %wx, $1, $2; addc.cc.{u32,s32} %wx, $3, $4; addc.u32 $0, 0, 0;", "wwwww",                         \
	  ((((u64)(u32)a + (u32)b) >> 32) + (u32)c + (u32)e) >> 32)                                                              \
	X(addc64, "add.cc.{u64,s64} %dx, $1, $2; addc.{u64,s64} $0, $3, $4;", "ddddd", c + e + (u64)(((U128)a + b) >> 64))       \
	X(addcc64, "add.cc.u64 %dx, $1, $2; addc.cc.{u64,s64} %dx, $3, $4; addc.u64 $0, 0, 0;", "ddddd",                         \
	  (u64)(((((U128)a + b) >> 64) + c + e) >> 64))                                                                          \
	X(subc32, "sub.cc.{u32,s32} %wx, $1, $2; subc.{u32,s32} $0, $3, $4;", "wwwww", c - e - ((u32)a < (u32)b))                \
	X(subcc32, "sub.cc.u32 %wx, $1, $2; subc.cc.{u32,s32} %wx, $3, $4; subc.u32 $0, 0, 0;", "wwwww",                         \
	  -(u64)((s64)(u32)c - (s64)(u32)e - ((u32)a < (u32)b) < 0))                                                             \
	X(subc64, "sub.cc.{u64,s64} %dx, $1, $2; subc.{u64,s64} $0, $3, $4;", "ddddd", c - e - (a < b))                          \
	X(subcc64, "sub.cc.u64 %dx, $1, $2; subc.cc.{u64,s64} %dx, $3, $4; subc.u64 $0, 0, 0;", "ddddd",                         \
	  -(u64)((__int128)c - (__int128)e - (a < b) < 0))                                                                       \
	X(madlocc, "mad.lo.cc.{u32,s32} %wx, $1, $2, $3; madc.lo.{u32,s32} $0, $1, $2, $4;", "wwwww",                            \
	  a *b + e + (((u64)(u32)(a * b) + (u32)c) >> 32))                                                                       \
	X(madhicc, "mad.hi.cc.u32 %wx, $1, $2, $3; madc.hi.u32 $0, $1, $2, $4;", "wwwww",                                        \
	  ((u64)(u32)a * (u32)b >> 32) + e + ((((u64)(u32)a * (u32)b >> 32) + (u32)c) >> 32))                                    \
	X(madhiccs, "mad.hi.cc.s32 %wx, $1, $2, $3; madc.hi.s32 $0, $1, $2, $4;", "wwwww",                                       \
	  (u64)((s64)(s32)a * (s32)b >> 32) + e + (((u64)(u32)((s64)(s32)a * (s32)b >> 32) + (u32)c) >> 32))                     \
	X(madclocc, "add.cc.u32 %wx, $3, $4; madc.lo.cc.{u32,s32} %wx, $1, $2, $3; addc.u32 $0, 0, 0;", "wwwww",                 \
	  ((u64)(u32)(a * b) + (u32)c + (((u64)(u32)c + (u32)e) >> 32)) >> 32)                                                   \
	X(madchicc, "add.cc.u32 %wx, $3, $4; madc.hi.cc.u32 %wx, $1, $2, $3; addc.u32 $0, 0, 0;", "wwwww",                       \
	  (((u64)(u32)a * (u32)b >> 32) + (u32)c + (((u64)(u32)c + (u32)e) >> 32)) >> 32)                                        \
	X(madchiccs, "add.cc.u32 %wx, $3, $4; madc.hi.cc.s32 %wx, $1, $2, $3; addc.u32 $0, 0, 0;", "wwwww",                      \
	  ((u64)(u32)((s64)(s32)a * (s32)b >> 32) + (u32)c + (((u64)(u32)c + (u32)e) >> 32)) >> 32)                              \
	X(madlocc64, "mad.lo.cc.{u64,s64} %dx, $1, $2, $3; madc.lo.{u64,s64} $0, $1, $2, $4;", "ddddd",                          \
	  a *b + e + (u64)(((U128)(a * b) + c) >> 64))                                                                           \
	X(madhicc64, "mad.hi.cc.u64 %dx, $1, $2, $3; madc.hi.u64 $0, $1, $2, $4;", "ddddd",                                      \
	  (u64)((U128)a * b >> 64) + e + (u64)((((U128)a * b >> 64) + c) >> 64))                                                 \
	X(madhiccs64, "mad.hi.cc.s64 %dx, $1, $2, $3; madc.hi.s64 $0, $1, $2, $4;", "ddddd",                                     \
	  (u64)((__int128)(s64)a * (s64)b >> 64) + e + (u64)(((U128)(u64)((__int128)(s64)a * (s64)b >> 64) + c) >> 64))          \
	X(madclocc64, "add.cc.u64 %dx, $3, $4; madc.lo.cc.{u64,s64} %dx, $1, $2, $3; addc.u64 $0, 0, 0;", "ddddd",               \
	  (u64)(((U128)(a * b) + c + (((U128)c + e) >> 64)) >> 64))                                                              \
	X(madchicc64, "add.cc.u64 %dx, $3, $4; madc.hi.cc.u64 %dx, $1, $2, $3; addc.u64 $0, 0, 0;", "ddddd",                     \
	  (u64)((((U128)a * b >> 64) + c + (((U128)c + e) >> 64)) >> 64))                                                        \
	X(madchiccs64, "add.cc.u64 %dx, $3, $4; madc.hi.cc.s64 %dx, $1, $2, $3; addc.u64 $0, 0, 0;", "ddddd",                    \
	  (u64)(((U128)(u64)((__int128)(s64)a * (s64)b >> 64) + c + (((U128)c + e) >> 64)) >> 64))

#define BITS(X)                                                                                                                  \
	X(and16, "and.b16", "hhh", a &b)                                                                                         \
	X(and32, "and.b32", "www", a &b)                                                                                         \
	X(and64, "and.b64", "ddd", a &b)                                                                                         \
	X(andp, "and.pred", "ppp", a &b)                                                                                         \
	X(or16, "or.b16", "hhh", a | b)                                                                                          \
	X(or32, "or.b32", "www", a | b)                                                                                          \
	X(or64, "or.b64", "ddd", a | b)                                                                                          \
	X(orp, "or.pred", "ppp", a | b)                                                                                          \
	X(xor16, "xor.b16", "hhh", a ^ b)                                                                                        \
	X(xor32, "xor.b32", "www", a ^ b)                                                                                        \
	X(xor64, "xor.b64", "ddd", a ^ b)                                                                                        \
	X(xorp, "xor.pred", "ppp", a ^ b)                                                                                        \
	X(not16, "not.b16", "hh", ~a)                                                                                            \
	X(not32, "not.b32", "ww", ~a)                                                                                            \
	X(not64, "not.b64", "dd", ~a)                                                                                            \
	X(notp, "not.pred", "pp", ~a)                                                                                            \
	X(cnot16, "cnot.b16", "hh", !(u16)a)                                                                                     \
	X(cnot32, "cnot.b32", "ww", !(u32)a)                                                                                     \
	X(cnot64, "cnot.b64", "dd", !a)                                                                                          \
	X(shl16, "shl.b16", "hhw", (u32)b > 15 ? 0 : (u64)(u16)a << (u32)b)                                                      \
	X(shl32, "shl.b32", "www", (u32)b > 31 ? 0 : (u64)(u32)a << (u32)b)                                                      \
	X(shl64, "shl.b64", "ddw", (u32)b > 63 ? 0 : a << (u32)b)                                                                \
	X(shru16, "shr.{u16,b16}", "hhw", (u32)b > 15 ? 0 : (u16)a >> (u32)b)                                                    \
	X(shru32, "shr.{u32,b32}", "www", (u32)b > 31 ? 0 : (u32)a >> (u32)b)                                                    \
	X(shru64, "shr.{u64,b64}", "ddw", (u32)b > 63 ? 0 : a >> (u32)b)                                                         \
	X(shrs16, "shr.s16", "hhw", (s16)a >> ((u32)b > 15 ? 15 : (u32)b))                                                       \
	X(shrs32, "shr.s32", "www", (s32)a >> ((u32)b > 31 ? 31 : (u32)b))                                                       \
	X(shrs64, "shr.s64", "ddw", (s64)a >> ((u32)b > 63 ? 63 : (u32)b))                                                       \
	X(shflw, "shf.l.wrap.b32", "wwww", shf(b, a, (u32)c, true, false))                                                       \
	X(shfrw, "shf.r.wrap.b32", "wwww", shf(b, a, (u32)c, false, false))                                                      \
	X(shflc, "shf.l.clamp.b32", "wwww", shf(b, a, (u32)c, true, true))                                                       \
	X(shfrc, "shf.r.clamp.b32", "wwww", shf(b, a, (u32)c, false, true))                                                      \
	X(mov16, "mov.{b16,u16,s16}", "hh", a)                                                                                   \
	X(mov32, "mov.{b32,u32,s32,f32}", "ww", a)                                                                               \
	X(mov64, "mov.{b64,u64,s64,f64}", "dd", a)                                                                               \
	X(movp, "mov.pred", "pp", a)                                                                                             \
	X(pack2h, "mov.{b32,u32} $0, {$1, $2};", "whh", (u16)a | b << 16)                                                        \
	X(pack2w, "mov.b64 $0, {$1, $2};", "dww", (u32)a | b << 32)                                                              \
	X(pack4h, "mov.b64 $0, {$1, $2, $3, $4};", "dhhhh", (u16)a | (u64)(u16)b << 16 | (u64)(u16)c << 32 | e << 48)            \
	X(unpacklo, "mov.b32 {$0, %hx}, $1;", "hw", a)                                                                           \
	X(unpackhi, "mov.b32 {_, $0}, $1;", "hw", a >> 16)                                                                       \
	X(unpackdlo, "mov.b64 {$0, _}, $1;", "wd", a)                                                                            \
	X(unpackdhi, "mov.b64 {%wx, $0}, $1;", "wd", a >> 32)                                                                    \
	X(unpackd4, "mov.b64 {_, %hx, $0, _}, $1;", "hd", a >> 32)                                                               \
	X(selp16, "selp.{b16,u16,s16,f16,bf16}", "hhhp", c & 1 ? a : b)                                                          \
	X(selp32, "selp.{b32,u32,s32,f32}", "wwwp", c & 1 ? a : b)                                                               \
	X(selp64, "selp.{b64,u64,s64,f64}", "dddp", c & 1 ? a : b)                                                               \
	X(slct16, "slct.{b16,u16,s16}.s32", "hhhw", (s32)c >= 0 ? a : b)                                                         \
	X(slct32, "slct.{b32,u32,s32,f32}.s32", "wwww", (s32)c >= 0 ? a : b)                                                     \
	X(slct64, "slct.{b64,u64,s64,f64}.s32", "dddw", (s32)c >= 0 ? a : b)                                                     \
	X(slct16f, "slct.{b16,u16,s16}.f32", "hhhW", as_f32(c) >= 0 ? a : b)                                                     \
	X(slct32f, "slct.{b32,u32,s32,f32}.f32", "wwwW", as_f32(c) >= 0 ? a : b)                                                 \
	X(slct64f, "slct.{b64,u64,s64,f64}.f32", "dddW", as_f32(c) >= 0 ? a : b)                                                 \
	X(slct32z, "slct.ftz.{b32,u32,s32,f32}.f32", "wwwW", as_f32(c) > -0x1p-126f ? a : b)                                     \
	X(slct64z, "slct.ftz.{b64,u64,s64,f64}.f32", "dddW", as_f32(c) > -0x1p-126f ? a : b)                                     \
	X(popc32, "popc.b32", "ww", __builtin_popcount((u32)a))                                                                  \
	X(popc64, "popc.b64", "wd", __builtin_popcountll(a))                                                                     \
	X(clz32, "clz.b32", "ww", (u32)a ? __builtin_clz((u32)a) : 32)                                                           \
	X(clz64, "clz.b64", "wd", a ? __builtin_clzll(a) : 64)                                                                   \
	X(brev32, "brev.b32", "ww", brev_ref((u32)a, 32))                                                                        \
	X(brev64, "brev.b64", "dd", brev_ref(a, 64))                                                                             \
	X(bfindu, "bfind.u32", "ww", bfind_ref((u32)a, 32, false))                                                               \
	X(bfinds, "bfind.s32", "ww", bfind_ref((u32)((s32)a < 0 ? ~a : a), 32, false))                                           \
	X(bfindu64, "bfind.u64", "wd", bfind_ref(a, 64, false))                                                                  \
	X(bfinds64, "bfind.s64", "wd", bfind_ref((s64)a < 0 ? ~a : a, 64, false))                                                \
	X(bfindshu, "bfind.shiftamt.u32", "ww", bfind_ref((u32)a, 32, true))                                                     \
	X(bfindshs, "bfind.shiftamt.s32", "ww", bfind_ref((u32)((s32)a < 0 ? ~a : a), 32, true))                                 \
	X(bfindshu64, "bfind.shiftamt.u64", "wd", bfind_ref(a, 64, true))                                                        \
	X(bfindshs64, "bfind.shiftamt.s64", "wd", bfind_ref((s64)a < 0 ? ~a : a, 64, true))                                      \
	X(fns, "fns.b32", "wwww", fns_ref((u32)a, (u32)b, (s32)c))                                                               \
	X(bfeu32, "bfe.u32", "wwww", bfe_ref((u32)a, (u32)b, (u32)c, 32, false))                                                 \
	X(bfes32, "bfe.s32", "wwww", bfe_ref((u32)a, (u32)b, (u32)c, 32, true))                                                  \
	X(bfeu64, "bfe.u64", "ddww", bfe_ref(a, (u32)b, (u32)c, 64, false))                                                      \
	X(bfes64, "bfe.s64", "ddww", bfe_ref(a, (u32)b, (u32)c, 64, true))                                                       \
	X(bfi32, "bfi.b32", "wwwww", bfi_ref(a, b, (u32)c, (u32)e, 32))                                                          \
	X(bfi64, "bfi.b64", "dddww", bfi_ref(a, b, (u32)c, (u32)e, 64))                                                          \
	X(bmskc, "bmsk.clamp.b32", "www", bmsk_ref((u32)a, (u32)b, true))                                                        \
	X(bmskw, "bmsk.wrap.b32", "www", bmsk_ref((u32)a, (u32)b, false))                                                        \
	X(szextcu, "szext.clamp.u32", "www", szext_ref((u32)a, (u32)b, true, false))                                             \
	X(szextwu, "szext.wrap.u32", "www", szext_ref((u32)a, (u32)b, false, false))                                             \
	X(szextcs, "szext.clamp.s32", "www", szext_ref((u32)a, (u32)b, true, true))                                              \
	X(szextws, "szext.wrap.s32", "www", szext_ref((u32)a, (u32)b, false, true))                                              \
	X(prmt, "prmt.b32", "wwww", prmt_ref((u32)a, (u32)b, (u32)c))                                                            \
	X(prmtf4e, "prmt.b32.f4e", "wwww", prmt_mode("f4e", a, b, c))                                                            \
	X(prmtb4e, "prmt.b32.b4e", "wwww", prmt_mode("b4e", a, b, c))                                                            \
	X(prmtrc8, "prmt.b32.rc8", "wwww", prmt_mode("rc8", a, b, c))                                                            \
	X(prmtecl, "prmt.b32.ecl", "wwww", prmt_mode("ecl", a, b, c))                                                            \
	X(prmtecr, "prmt.b32.ecr", "wwww", prmt_mode("ecr", a, b, c))                                                            \
	X(prmtrc16, "prmt.b32.rc16", "wwww", prmt_mode("rc16", a, b, c))                                                         \
	X(lop96, "lop3.b32 $0, $1, $2, $3, 0x96;", "wwww", LOP(0x96))                                                            \
	X(lope8, "lop3.b32 $0, $1, $2, $3, 0xe8;", "wwww", LOP(0xe8))                                                            \
	X(lop1b, "lop3.b32 $0, $1, $2, $3, 0x1b;", "wwww", LOP(0x1b))                                                            \
	X(lopor, "lop3.or.b32 _|$0, $1, $2, $3, 0x80, $4;", "pwwwp", (u32)(a & b & c) || (e & 1))                                \
	X(lopand, "lop3.and.b32 %wx|$0, $1, $2, $3, 0xfe, $4;", "pwwwp", (u32)(a | b | c) && (e & 1))

ARITHMETIC(CASE)
CARRIES(CASE)
BITS(CASE)
#define ENTRY(name, op, sig, ...) {op, sig, ref_##name, 0, {0}},
static const struct ptx_case cases[] = {ARITHMETIC(ENTRY) CARRIES(ENTRY) BITS(ENTRY)};

int main(void)
{
	run_cases(cases, COUNT(cases));
	/* %laneid and addresses in registers that are smaller than them */
	ptx_module_free(test_must_load(
		".version 9.0\n.target sm_75\n.address_size 64\n.entry k() { .reg .b16 %h; .reg .b32 %w; .local .b32 l;\n"
		"mov.u16 %h, %laneid; mov.u32 %w, l; ret; }"));
	forms_done("int");
	return tap_done();
}
