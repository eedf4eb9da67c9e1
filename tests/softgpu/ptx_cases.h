/* SPDX-License-Identifier: MIT */
/* Runs single instructions over edge operands with full, partial and diverged masks, and compares each lane with plain C. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_CASES_H
#define RGPU_TESTS_SOFTGPU_PTX_CASES_H

#include <stdint.h>

#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

/*
 * One instruction. @sig: sizes of the result and the operands, h w d, or p for a predicate (stored as 0 or 1);
 * capital H W D F: operands from the float edge values of that size. @ref gets and returns raw bits.
 * @ulp > 0 allows that distance for float results of the size of sig[0].
 */
struct ptx_case {
	const char *op, *sig;
	u64 (*ref)(u64 a, u64 b, u64 c);
	u32 ulp;
};

#define CASE(name, op, sig, ...)                                                                                                 \
	static u64 ref_##name(u64 a, u64 b, u64 c)                                                                               \
	{                                                                                                                        \
		(void)a, (void)b, (void)c;                                                                                       \
		return (u64)(__VA_ARGS__);                                                                                       \
	}

static const u64 int_edges[] = {0,
				1,
				2,
				3,
				5,
				7,
				8,
				15,
				16,
				17,
				24,
				31,
				32,
				33,
				63,
				64,
				65,
				100,
				127,
				128,
				200,
				255,
				256,
				0x7ffe,
				0x7fff,
				0x8000,
				0x8001,
				0xfffe,
				0xffff,
				0x10000,
				0x12345678,
				0x7ffffffe,
				0x7fffffff,
				0x80000000,
				0x80000001,
				0xdeadbeef,
				0xfffffffe,
				0xffffffff,
				0x100000000,
				0x123456789abcdef0,
				0x7fffffffffffffff,
				0x8000000000000000,
				0x8000000000000001,
				0xfffffffffffffffe,
				0xffffffffffffffff,
				0xaaaaaaaaaaaaaaaa,
				0x0f0f3210a5c37e81};
static const u32 f32_edges[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40000000, 0x40490fdb, 0xc0490fdb,
				0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
				0xff800000, 0x7fc00000, 0xffc00000, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000, 0x5f000000,
				0xdf000000, 0x5f800000, 0x3fc00000, 0x40200000, 0xbfc00000, 0x3effffff, 0x3f7fffff, 0x3f800001,
				0x437f0000, 0x43800000, 0x477fe000, 0x477ff000, 0x33800000, 0x387fc000, 0x34000000, 0x4b000001,
				0x4b7fffff, 0x42c80000, 0xc2c80000, 0x1e3ce508, 0x7e967699, 0x3727c5ac, 0x46fffe00, 0x1fffffff};
static const u64 f64_edges[] = {0,
				1ull << 63,
				0x3ff0000000000000,
				0xbff0000000000000,
				0x3fe0000000000000,
				0x4000000000000000,
				0x400921fb54442d18,
				0xc00921fb54442d18,
				1,
				0x8000000000000001,
				0x000fffffffffffff,
				0x0010000000000000,
				0x7fefffffffffffff,
				0xffefffffffffffff,
				0x7ff0000000000000,
				0xfff0000000000000,
				0x7ff8000000000000,
				0x41dfffffffc00000,
				0x41e0000000000000,
				0xc1e0000000000000,
				0xc1e0000000200000,
				0x41efffffffe00000,
				0x41f0000000000000,
				0x43e0000000000000,
				0xc3e0000000000000,
				0x43efffffffffffff,
				0x43f0000000000000,
				0x3ff8000000000000,
				0x4004000000000000,
				0xbff8000000000000,
				0x3fdfffffffffffff,
				0x3ff0000010000000,
				0x3ff0000030000000,
				0x47efffffe0000000,
				0x47efffffefffffff,
				0x47f0000000000000,
				0x36a0000000000000,
				0x3690000000000000,
				0x3690000000000001,
				0x380fffffffffffff,
				0x40effc0000000000,
				0x40f0000000000000,
				0x3e60000000000000,
				0x40f869fe66666666,
				0xc0f869fe66666666,
				0x7fe1ccf385ebc8a0};
static const u16 f16_edges[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x4000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff,
				0x7c00, 0xfc00, 0x7e00, 0x3555, 0x3c01, 0x3bff, 0x4248, 0xc248, 0x6400, 0x1000, 0x2e66, 0x5640};

#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define CASE_THREADS 3008u /* 94 warps: 47 × 64 */

static u64 rng_state = 0x9e3779b97f4a7c15;

static u64 rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static u64 pick_operand(char sig, u32 n, u32 stride)
{
	u64 r = rng();

	switch (sig) {
	case 'p':
		return r & 1;
	case 'W': /* f32 */
		return n % 3 ? f32_edges[(n / stride) % COUNT(f32_edges)] : (u32)r;
	case 'D': /* f64 */
		return n % 3 ? f64_edges[(n / stride) % COUNT(f64_edges)] : r;
	case 'H': /* f16 */
		return n % 3 ? f16_edges[(n / stride) % COUNT(f16_edges)] : (u16)r;
	case 'T': /* f16x2 in 32 bits */
		return f16_edges[r % COUNT(f16_edges)] | (u64)f16_edges[r / 64 % COUNT(f16_edges)] << 16;
	default:
		return n % 4 ? int_edges[(n / stride) % COUNT(int_edges)] : r;
	}
}

static u32 case_size(char sig)
{
	return strchr("hH", sig) ? 2 : strchr("wWT", sig) ? 4 : strchr("dD", sig) ? 8 : 0;
}

static const char *case_reg(char sig)
{
	return strchr("hH", sig) ? "h" : strchr("wWT", sig) ? "w" : strchr("dD", sig) ? "d" : "p";
}

/* The kernel of case @k: (in, out, mask bits by lane, n): out[t] = op(in[t]...) where the mask has the lane. */
static size_t case_text(char *buf, size_t size, const struct ptx_case *c, u32 k)
{
	u32 n = (u32)strlen(c->sig);
	size_t at = 0;

#define ADD(...) (at += (size_t)snprintf(buf + at, at < size ? size - at : 0, __VA_ARGS__))
	ADD(".visible .entry case_%u(.param .u64 in, .param .u64 out, .param .u32 mask, .param .u32 n)\n{\n", k);
	ADD(".reg .b16 %%h<5>; .reg .b32 %%w<5>; .reg .b64 %%d<5>; .reg .pred %%p<5>;\n");
	ADD(".reg .pred %%on, %%in; .reg .b32 %%t, %%n, %%m, %%x; .reg .b64 %%a, %%o, %%off;\n");
	ADD("mov.u32 %%t, %%tid.x; mov.u32 %%x, %%ctaid.x; mov.u32 %%m, %%ntid.x; mad.lo.s32 %%t, %%x, %%m, %%t;\n");
	ADD("ld.param.u32 %%n, [n]; setp.ge.u32 %%in, %%t, %%n; @%%in exit;\n");
	ADD("ld.param.u32 %%m, [mask]; mov.u32 %%x, %%laneid; shr.u32 %%m, %%m, %%x; and.b32 %%m, %%m, 1;\n");
	ADD("setp.ne.u32 %%on, %%m, 0; ld.param.u64 %%a, [in]; ld.param.u64 %%o, [out];\n");
	ADD("mul.wide.u32 %%off, %%t, 8; add.s64 %%o, %%o, %%off; mul.lo.s64 %%off, %%off, 3; add.s64 %%a, %%a, %%off;\n");
	for (u32 i = 0; i < n; i++) {
		const char *r = case_reg(c->sig[i]);
		const char *from = i ? "%a" : "%o";
		u32 off = i ? 8 * (i - 1) : 0;

		if (*r == 'p')
			ADD("ld.global.u32 %%x, [%s+%u]; setp.ne.u32 %%p%u, %%x, 0;\n", from, off, i);
		else
			ADD("ld.global.b%u %%%s%u, [%s+%u];\n", 8 * case_size(c->sig[i]), r, i, from, off);
	}
	ADD("@%%on %s ", c->op);
	for (u32 i = 0; i < n; i++)
		ADD("%s%%%s%u", i ? ", " : "", case_reg(c->sig[i]), i);
	ADD(";\n");
	if (c->sig[0] == 'p')
		ADD("selp.u32 %%x, 1, 0, %%p0; st.global.u32 [%%o], %%x;\n");
	else
		ADD("st.global.b%u [%%o], %%%s0;\n", 8 * case_size(c->sig[0]), case_reg(c->sig[0]));
	ADD("ret;\n}\n");
#undef ADD
	return at;
}

static u64 cut(u64 v, char sig)
{
	u32 s = case_size(sig);

	return s == 2 ? (u16)v : s == 4 ? (u32)v : s == 8 ? v : v & 1;
}

/* Equal, both NaN of a float result, or within @ulp. */
static bool same(u64 got, u64 want, char sig, u32 ulp)
{
	u32 bits = 8 * case_size(sig);
	u64 inf = sig == 'H' ? 0x7c00 : sig == 'W' ? 0x7f800000 : 0x7ff0000000000000, sign = bits ? 1ull << (bits - 1) : 0;

	if (got == want)
		return true;
	if (!strchr("HWD", sig))
		return false;
	if ((got & ~sign) > inf && (want & ~sign) > inf)
		return true;
	if (!ulp || (got ^ want) & sign)
		return false;
	return (got > want ? got - want : want - got) <= ulp;
}

static const u32 case_masks[] = {0xffffffff, 0x55555555, 0x0000ffff, 0x80000001, 0xfffffffe, 0x13579bdf};

static void run_case(struct ptx_module *m, const struct ptx_case *c, u32 k, u64 *in, u64 *out)
{
	struct {
		const void *in;
		void *out;
		u32 mask, n;
	} p = {in, out, 0, CASE_THREADS - 13};
	static u64 before[CASE_THREADS];
	u32 n = (u32)strlen(c->sig), bad = 0;
	char name[32];

	snprintf(name, sizeof(name), "case_%u", k);
	for (u32 t = 0; t < CASE_THREADS; t++)
		for (u32 i = 1; i < n; i++)
			in[3 * t + i - 1] = pick_operand(c->sig[i], t, i == 1 ? 1 : i == 2 ? 47 : 11);
	for (u32 q = 0; q < COUNT(case_masks); q++) {
		/* blocks of 64 threads, and one shape whose blocks are no multiple of the warp */
		u32 block = q == 2 ? 45 : 64;

		p.mask = case_masks[q];
		for (u32 t = 0; t < CASE_THREADS; t++)
			before[t] = out[t] = c->sig[0] == 'p' ? rng() & 1 : rng();
		if (test_launch(ptx_module_kernel(m, name), (CASE_THREADS + block - 1) / block, block, &p) != PTX_OK) {
			printf("# %s: %s\n", c->op, test_fault.text);
			bad++;
			break;
		}
		for (u32 t = 0; t < CASE_THREADS; t++) {
			bool on = t < p.n && (p.mask >> (t % block % 32) & 1);
			u64 *a = &in[3 * t], want = cut(before[t], c->sig[0]), got = cut(out[t], c->sig[0]);

			if (on)
				want = cut(c->ref(a[0], a[1], a[2]), c->sig[0]);
			if (on ? same(got, want, c->sig[0], c->ulp) : got == want)
				continue;
			if (bad++ < 3)
				printf("# %s (%s lane, mask %08x): a=%llx b=%llx c=%llx got %llx want %llx\n", c->op,
				       on ? "active" : "idle", p.mask, (unsigned long long)a[0], (unsigned long long)a[1],
				       (unsigned long long)a[2], (unsigned long long)got, (unsigned long long)want);
		}
	}
	ok(!bad, "%s", c->op);
}

static __attribute__((unused)) void run_cases(const struct ptx_case *cases, u32 n)
{
	size_t size = 256 + n * 2048, at;
	char *text = malloc(size);
	struct ptx_module *m;
	u64 *in, *out;

	test_arena_init();
	at = (size_t)snprintf(text, size, ".version 9.0\n.target sm_120\n.address_size 64\n");
	for (u32 k = 0; k < n; k++)
		at += case_text(text + at, size - at, &cases[k], k);
	m = test_must_load(text);
	in = test_alloc(CASE_THREADS * 3 * sizeof(u64));
	out = test_alloc(CASE_THREADS * sizeof(u64));
	for (u32 k = 0; k < n; k++)
		run_case(m, &cases[k], k, in, out);
	ptx_module_free(m);
	free(text);
}

#endif
