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

#define CASES(X)                                                                                                                 \
	X(add16, "add.s16", "hhh", a + b)                                                                                        \
	X(add32, "add.u32", "www", a + b)                                                                                        \
	X(add64, "add.s64", "ddd", a + b)                                                                                        \
	X(addsat, "add.sat.s32", "www", sat((__int128)(s32)a + (s32)b, INT32_MIN, INT32_MAX))                                    \
	X(subsat, "sub.sat.s32", "www", sat((__int128)(s32)a - (s32)b, INT32_MIN, INT32_MAX))                                    \
	X(sub16, "sub.u16", "hhh", a - b)                                                                                        \
	X(sub32, "sub.s32", "www", a - b)                                                                                        \
	X(sub64, "sub.u64", "ddd", a - b)                                                                                        \
	X(mul16, "mul.lo.s16", "hhh", (u16)a *(u64)(u16)b)                                                                       \
	X(mul32, "mul.lo.s32", "www", a *b)                                                                                      \
	X(mul64, "mul.lo.u64", "ddd", a *b)                                                                                      \
	X(mulhiu16, "mul.hi.u16", "hhh", (u64)(u16)a *(u16)b >> 16)                                                              \
	X(mulhis16, "mul.hi.s16", "hhh", (s64)(s16)a *(s16)b >> 16)                                                              \
	X(mulhiu32, "mul.hi.u32", "www", (u64)(u32)a *(u32)b >> 32)                                                              \
	X(mulhis32, "mul.hi.s32", "www", (s64)(s32)a *(s32)b >> 32)                                                              \
	X(mulhiu64, "mul.hi.u64", "ddd", (unsigned __int128)a *b >> 64)                                                          \
	X(mulhis64, "mul.hi.s64", "ddd", (__int128)(s64)a *(s64)b >> 64)                                                         \
	X(mulwu16, "mul.wide.u16", "whh", (u64)(u16)a *(u16)b)                                                                   \
	X(mulws16, "mul.wide.s16", "whh", (s64)(s16)a *(s16)b)                                                                   \
	X(mulwu32, "mul.wide.u32", "dww", (u64)(u32)a *(u32)b)                                                                   \
	X(mulws32, "mul.wide.s32", "dww", (s64)(s32)a *(s32)b)                                                                   \
	X(mad16, "mad.lo.u16", "hhhh", (u64)(u16)a *(u16)b + c)                                                                  \
	X(mad32, "mad.lo.s32", "wwww", a *b + c)                                                                                 \
	X(mad64, "mad.lo.s64", "dddd", a *b + c)                                                                                 \
	X(madhi32, "mad.hi.s32", "wwww", (u64)((s64)(s32)a * (s32)b >> 32) + c)                                                  \
	X(madhisat, "mad.hi.sat.s32", "wwww", sat((__int128)((s64)(s32)a * (s32)b >> 32) + (s32)c, INT32_MIN, INT32_MAX))        \
	X(madhiu64, "mad.hi.u64", "dddd", (u64)((unsigned __int128)a * b >> 64) + c)                                             \
	X(madwu32, "mad.wide.u32", "dwwd", (u64)(u32)a *(u32)b + c)                                                              \
	X(madws32, "mad.wide.s32", "dwwd", (u64)((s64)(s32)a * (s32)b) + c)                                                      \
	X(madws16, "mad.wide.s16", "whhw", (u64)((s64)(s16)a * (s16)b) + c)                                                      \
	X(mul24u, "mul24.lo.u32", "www", (a & 0xffffff) * (b & 0xffffff))                                                        \
	X(mul24s, "mul24.lo.s32", "www", (s64)((s32)(a << 8) >> 8) * ((s32)(b << 8) >> 8))                                       \
	X(mul24hs, "mul24.hi.s32", "www", (s64)((s32)(a << 8) >> 8) * ((s32)(b << 8) >> 8) >> 16)                                \
	X(divu16, "div.u16", "hhh", (u16)b ? (u16)a / (u16)b : 0xffff)                                                           \
	X(divu32, "div.u32", "www", (u32)b ? (u32)a / (u32)b : 0xffffffff)                                                       \
	X(divs32, "div.s32", "www", !(u32)b ? -1 : (s64)(s32)a / (s32)b)                                                         \
	X(divu64, "div.u64", "ddd", b ? a / b : ~0ull)                                                                           \
	X(divs64, "div.s64", "ddd", !b ? (u64)-1 : (u64)((__int128)(s64)a / (s64)b))                                             \
	X(rems16, "rem.s16", "hhh", !(u16)b ? (s16)a : (s64)(s16)a % (s16)b)                                                     \
	X(remu32, "rem.u32", "www", (u32)b ? (u32)a % (u32)b : a)                                                                \
	X(rems32, "rem.s32", "www", !(u32)b ? (s64)a : (s64)(s32)a % (s32)b)                                                     \
	X(rems64, "rem.s64", "ddd", !b ? a : (u64)((__int128)(s64)a % (s64)b))                                                   \
	X(remu64, "rem.u64", "ddd", b ? a % b : a)                                                                               \
	X(abs32, "abs.s32", "ww", (s32)a < 0 ? -a : a)                                                                           \
	X(abs64, "abs.s64", "dd", (s64)a < 0 ? -a : a)                                                                           \
	X(neg16, "neg.s16", "hh", -a)                                                                                            \
	X(neg32, "neg.s32", "ww", -a)                                                                                            \
	X(mins16, "min.s16", "hhh", (s16)a < (s16)b ? a : b)                                                                     \
	X(maxu16, "max.u16", "hhh", (u16)a > (u16)b ? a : b)                                                                     \
	X(maxs16, "max.s16", "hhh", (s16)a > (s16)b ? a : b)                                                                     \
	X(mins32, "min.s32", "www", (s32)a < (s32)b ? a : b)                                                                     \
	X(maxu32, "max.u32", "www", (u32)a > (u32)b ? a : b)                                                                     \
	X(mins64, "min.s64", "ddd", (s64)a < (s64)b ? a : b)                                                                     \
	X(maxu64, "max.u64", "ddd", a > b ? a : b)                                                                               \
	X(maxs16x2, "max.s16x2", "www", (u16)((s16)a > (s16)b ? a : b) | (((s32)a >> 16 > (s32)b >> 16 ? a : b) & 0xffff0000))   \
	X(addu16x2, "add.u16x2", "www", (u16)(a + b) | ((a & 0xffff0000) + (b & 0xffff0000)))                                    \
	X(sads32, "sad.s32", "wwww", c + (u64)((s32)a > (s32)b ? (s64)(s32)a - (s32)b : (s64)(s32)b - (s32)a))                   \
	X(sadu16, "sad.u16", "hhhh", c + ((u16)a > (u16)b ? a - b : b - a))                                                      \
	X(and32, "and.b32", "www", a &b)                                                                                         \
	X(or64, "or.b64", "ddd", a | b)                                                                                          \
	X(xor16, "xor.b16", "hhh", a ^ b)                                                                                        \
	X(not64, "not.b64", "dd", ~a)                                                                                            \
	X(cnot32, "cnot.b32", "ww", !(u32)a)                                                                                     \
	X(andp, "and.pred", "ppp", a &b)                                                                                         \
	X(xorp, "xor.pred", "ppp", a ^ b)                                                                                        \
	X(notp, "not.pred", "pp", ~a)                                                                                            \
	X(movp, "mov.pred", "pp", a)                                                                                             \
	X(shl16, "shl.b16", "hhw", (u32)b > 15 ? 0 : (u64)(u16)a << (u32)b)                                                      \
	X(shl32, "shl.b32", "www", (u32)b > 31 ? 0 : (u64)(u32)a << (u32)b)                                                      \
	X(shl64, "shl.b64", "ddw", (u32)b > 63 ? 0 : a << (u32)b)                                                                \
	X(shru16, "shr.u16", "hhw", (u32)b > 15 ? 0 : (u16)a >> (u32)b)                                                          \
	X(shrs16, "shr.s16", "hhw", (s16)a >> ((u32)b > 15 ? 15 : (u32)b))                                                       \
	X(shru32, "shr.u32", "www", (u32)b > 31 ? 0 : (u32)a >> (u32)b)                                                          \
	X(shrs32, "shr.s32", "www", (s32)a >> ((u32)b > 31 ? 31 : (u32)b))                                                       \
	X(shrs64, "shr.s64", "ddw", (s64)a >> ((u32)b > 63 ? 63 : (u32)b))                                                       \
	X(shru64, "shr.b64", "ddw", (u32)b > 63 ? 0 : a >> (u32)b)                                                               \
	X(shflw, "shf.l.wrap.b32", "wwww", ((u64)(u32)b << 32 | (u32)a) << ((u32)c & 31) >> 32)                                  \
	X(shfrw, "shf.r.wrap.b32", "wwww", ((u64)(u32)b << 32 | (u32)a) >> ((u32)c & 31))                                        \
	X(shflc, "shf.l.clamp.b32", "wwww", (u32)c >= 32 ? a : ((u64)(u32)b << 32 | (u32)a) << (u32)c >> 32)                     \
	X(shfrc, "shf.r.clamp.b32", "wwww", (u32)c >= 32 ? b : ((u64)(u32)b << 32 | (u32)a) >> (u32)c)                           \
	X(selp32, "selp.b32", "wwwp", c & 1 ? a : b)                                                                             \
	X(selp64, "selp.f64", "dddp", c & 1 ? a : b)                                                                             \
	X(selp16, "selp.b16", "hhhp", c & 1 ? a : b)                                                                             \
	X(slct, "slct.s32.s32", "wwww", (s32)c >= 0 ? a : b)                                                                     \
	X(popc32, "popc.b32", "ww", __builtin_popcount((u32)a))                                                                  \
	X(popc64, "popc.b64", "wd", __builtin_popcountll(a))                                                                     \
	X(clz32, "clz.b32", "ww", (u32)a ? __builtin_clz((u32)a) : 32)                                                           \
	X(clz64, "clz.b64", "wd", a ? __builtin_clzll(a) : 64)                                                                   \
	X(brev32, "brev.b32", "ww", brev_ref((u32)a, 32))                                                                        \
	X(brev64, "brev.b64", "dd", brev_ref(a, 64))                                                                             \
	X(bfindu, "bfind.u32", "ww", bfind_ref((u32)a, 32, false))                                                               \
	X(bfinds, "bfind.s32", "ww", bfind_ref((u32)((s32)a < 0 ? ~a : a), 32, false))                                           \
	X(bfindsh, "bfind.shiftamt.u64", "wd", bfind_ref(a, 64, true))                                                           \
	X(bfindss, "bfind.shiftamt.s32", "ww", bfind_ref((u32)((s32)a < 0 ? ~a : a), 32, true))                                  \
	X(bfeu32, "bfe.u32", "wwww", bfe_ref((u32)a, (u32)b, (u32)c, 32, false))                                                 \
	X(bfes32, "bfe.s32", "wwww", bfe_ref((u32)a, (u32)b, (u32)c, 32, true))                                                  \
	X(bfeu64, "bfe.u64", "ddww", bfe_ref(a, (u32)b, (u32)c, 64, false))                                                      \
	X(bfes64, "bfe.s64", "ddww", bfe_ref(a, (u32)b, (u32)c, 64, true))                                                       \
	X(bmskc, "bmsk.clamp.b32", "www", (u32)a > 31 ? 0 : ((u32)b > 31 ? 0xffffffffull : (1ull << (u32)b) - 1) << (u32)a)      \
	X(prmt, "prmt.b32", "wwww", prmt_ref((u32)a, (u32)b, (u32)c))                                                            \
	X(prmtrc, "prmt.b32.rc8", "wwww", (u8)((u32)a >> 8 * (c & 3)) * 0x01010101u)                                             \
	X(dp4auu, "dp4a.u32.u32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, false, false))                                        \
	X(dp4ass, "dp4a.s32.s32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, true, true))                                          \
	X(dp4aus, "dp4a.u32.s32", "wwww", dp4a_ref((u32)a, (u32)b, (u32)c, false, true))                                         \
	X(dp2alo, "dp2a.lo.s32.s32", "wwww", (u32)c + (u32)((s16)a * (s8)b) + (u32)((s16)(a >> 16) * (s8)(b >> 8)))              \
	X(seteqs, "setp.eq.s32", "pww", (u32)a == (u32)b)                                                                        \
	X(setlts, "setp.lt.s32", "pww", (s32)a < (s32)b)                                                                         \
	X(setltu, "setp.lt.u32", "pww", (u32)a < (u32)b)                                                                         \
	X(setlo, "setp.lo.u32", "pww", (u32)a < (u32)b)                                                                          \
	X(sethi, "setp.hi.u64", "pdd", a > b)                                                                                    \
	X(setge64, "setp.ge.s64", "pdd", (s64)a >= (s64)b)                                                                       \
	X(setne16, "setp.ne.b16", "phh", (u16)a != (u16)b)                                                                       \
	X(setle16, "setp.le.s16", "phh", (s16)a <= (s16)b)                                                                       \
	X(setand, "setp.gt.and.s32", "pwwp", (s32)a > (s32)b && c & 1)                                                           \
	X(setxor, "setp.gt.xor.u32", "pwwp", ((u32)a > (u32)b) ^ (c & 1))                                                        \
	X(setu32, "set.ge.u32.s32", "www", (s32)a >= (s32)b ? 0xffffffff : 0)                                                    \
	X(setf32, "set.ge.f32.s32", "www", (s32)a >= (s32)b ? 0x3f800000 : 0)                                                    \
	X(cvt_u64_u32, "cvt.u64.u32", "dw", (u32)a)                                                                              \
	X(cvt_s64_s32, "cvt.s64.s32", "dw", (s32)a)                                                                              \
	X(cvt_u16_u32, "cvt.u16.u32", "hw", a)                                                                                   \
	X(cvt_u32_u16, "cvt.u32.u16", "wh", (u16)a)                                                                              \
	X(cvt_s32_s16, "cvt.s32.s16", "wh", (s16)a)                                                                              \
	X(cvt_u32_u64, "cvt.u32.u64", "wd", a)                                                                                   \
	X(cvt_s32_s8, "cvt.s32.s8", "ww", (s8)a)                                                                                 \
	X(cvt_u32_u8, "cvt.u32.u8", "ww", (u8)a)                                                                                 \
	X(cvt_s16_s8, "cvt.s16.s8", "hh", (s8)a)                                                                                 \
	X(cvt_s64_s16, "cvt.s64.s16", "dh", (s16)a)                                                                              \
	X(cvt_s64_s8, "cvt.s64.s8", "dw", (s8)a)                                                                                 \
	X(cvt_sat_s8, "cvt.sat.s8.s32", "ww", sat((s32)a, -128, 127))                                                            \
	X(cvt_sat_u8, "cvt.sat.u8.s32", "ww", sat((s32)a, 0, 255))                                                               \
	X(cvt_sat_u16, "cvt.sat.u16.s64", "hd", sat((s64)a, 0, 65535))                                                           \
	X(cvt_sat_s32, "cvt.sat.s32.u32", "ww", sat((u32)a, INT32_MIN, INT32_MAX))                                               \
	X(cvt_sat_s32d, "cvt.sat.s32.s64", "wd", sat((s64)a, INT32_MIN, INT32_MAX))                                              \
	X(packu8, "cvt.pack.sat.u8.s32.b32", "wwww",                                                                             \
	  (u64)(u32)c << 16 | (u64)sat((s32)a, 0, 255) << 8 | (u64)sat((s32)b, 0, 255))                                          \
	X(packs16, "cvt.pack.sat.s16.s32", "www", (u64)sat((s32)a, -32768, 32767) << 16 | (u16)sat((s32)b, -32768, 32767))       \
	X(cvt_sat_u64, "cvt.sat.u64.s32", "dw", (s32)a < 0 ? 0 : (s32)a)

CASES(CASE)
#define ENTRY(name, op, sig, ...) {op, sig, ref_##name, 0},
static const struct ptx_case cases[] = {CASES(ENTRY)};

int main(void)
{
	run_cases(cases, COUNT(cases));
	return tap_done();
}
