/* SPDX-License-Identifier: MIT */
/* Runs single instructions over edge operands with full, partial and diverged masks, and compares each lane with plain C. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_CASES_H
#define RGPU_TESTS_SOFTGPU_PTX_CASES_H

#include <stdint.h>

#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

/*
 * One instruction, or with $0 (the result), $1 … in it a sequence of them; alternatives in braces stand for one
 * case each. @sig: sizes of the result and the operands, h w d, or p for a predicate (stored as 0 or 1); capitals: float
 * edge values of that size (H W D f16 f32 f64, B bf16, T and U pairs of f16 and bf16). @ref gets and returns raw bits.
 * @ulp > 0 allows that distance for float results.
 */
struct ptx_case {
	const char *op, *sig;
	u64 (*ref)(const struct ptx_case *c, const u64 *v);
	u32 ulp;
	u32 tag[6]; /* the reference's own */
};

#define CASE(name, op, sig, ...)                                                                                                 \
	static u64 ref_##name(const struct ptx_case *case_, const u64 *v_)                                                       \
	{                                                                                                                        \
		const u64 a = v_[0], b = v_[1], c = v_[2], e = v_[3];                                                            \
		(void)case_, (void)a, (void)b, (void)c, (void)e;                                                                 \
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
				0x4b7fffff, 0x42c80000, 0xc2c80000, 0x1e3ce508, 0x7e967699, 0x3727c5ac, 0x46fffe00, 0x1fffffff,
				0x7f800001, 0xffbfffff, 0x3f80ffff, 0x3f808000, 0x3f818000, 0x47fffff0, 0x33000000, 0x33000001};
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
				0x7fe1ccf385ebc8a0,
				0x7ff0000000000001,
				0xfff7ffffffffffff};
static const u16 f16_edges[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3800, 0x4000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff,
				0x7c00, 0xfc00, 0x7e00, 0x7d01, 0x3c01, 0x3bff, 0x4248, 0xc248, 0x6400, 0x1000, 0x2e66, 0x5640};

static const u16 bf16_edges[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x3f00, 0x4000, 0x0001, 0x8001, 0x007f, 0x0080, 0x7f7f, 0xff7f,
				 0x7f80, 0xff80, 0x7fc0, 0x7f81, 0x3f81, 0x3f7f, 0x40e0, 0x4214, 0x0d80, 0x8d80, 0x4049, 0xc300};

#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define CASE_THREADS 4096u
#define MAX_OPERANDS 4u

static u64 rng_state = 0x9e3779b97f4a7c15;

static u64 rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static u64 pick_half(const u16 *edges, u32 n, u64 r)
{
	return r & 7 ? edges[(r >> 8) % n] : (u16)(r >> 40);
}

/* Edge value number @n of an operand, or how many there are for @n = UINT32_MAX. */
static u64 edge_value(char sig, u32 n)
{
#define EDGE(e) return n == UINT32_MAX ? COUNT(e) : (e)[n % COUNT(e)]
	switch (sig) {
	case 'p':
		return n == UINT32_MAX ? 2 : n & 1;
	case 'W':
		EDGE(f32_edges);
	case 'D':
		EDGE(f64_edges);
	case 'H':
		EDGE(f16_edges);
	case 'B':
		EDGE(bf16_edges);
	case 'T':
	case 'U':
		return n == UINT32_MAX ? 1 : rng();
	default:
		EDGE(int_edges);
	}
#undef EDGE
}

/* Operand @i of thread @n: all pairs of edge values of the first two, then a mixture with random ones. */
static u64 pick_operand(const char *sig, u32 i, u32 n)
{
	u32 first = (u32)edge_value(sig[1], UINT32_MAX), second = sig[2] ? (u32)edge_value(sig[2], UINT32_MAX) : 1;
	u64 r = rng();

	if (sig[i] == 'p')
		return r >> 20 & 1;
	if (sig[i] == 'T' || sig[i] == 'U') {
		const u16 *edges = sig[i] == 'T' ? f16_edges : bf16_edges;

		return pick_half(edges, COUNT(f16_edges), r) | pick_half(edges, COUNT(f16_edges), rng()) << 16;
	}
	if (n < first * second && i < 3)
		return edge_value(sig[i], i == 1 ? n % first : n / first);
	return r >> 40 & 3 ? edge_value(sig[i], (u32)(r >> 8) & 0xffffff) : rng();
}

static u32 case_size(char sig)
{
	return strchr("hHB", sig) ? 2 : strchr("wWTU", sig) ? 4 : strchr("dD", sig) ? 8 : 0;
}

static char case_reg(char sig)
{
	return "phwxd"[(case_size(sig) + 1) / 2];
}

/* The instructions of @c on the registers of its signature, each under the guard; the result is register @res. */
static size_t op_text(char *buf, size_t size, const struct ptx_case *c, const char *guard, u32 res)
{
	size_t at = 0;

#define ADD(...) (at += (size_t)snprintf(buf + at, at < size ? size - at : 0, __VA_ARGS__))
	ADD("%s", guard);
	if (!strchr(c->op, '$')) {
		ADD("%s ", c->op);
		for (u32 i = 0; c->sig[i]; i++)
			ADD("%s%%%c%u", i ? ", " : "", case_reg(c->sig[i]), i ? i : res);
		ADD(";");
	}
	for (const char *s = strchr(c->op, '$') ? c->op : ""; *s; s++) {
		if (*s == '$') {
			u32 i = (u32)(*++s - '0');

			ADD("%%%c%u", case_reg(c->sig[i]), i ? i : res);
		} else {
			ADD("%c", *s);
			if (*s == ';' && s[1])
				ADD("%s", guard);
		}
	}
	ADD("\n");
	return at;
}

/*
 * The kernel of case @k, out[t] = op(in[t]...) for the lanes in their warp's mask, in three ways: under a guard; behind
 * a branch, with the result in the place of the first operand that fits; the same of the last operand.
 */
static size_t case_text(char *buf, size_t size, const struct ptx_case *c, u32 k)
{
	u32 n = (u32)strlen(c->sig), first = 0, last = 0;
	char res = case_reg(c->sig[0]);
	size_t at = 0;

	for (u32 i = n - 1; i > 0; i--)
		if (case_reg(c->sig[i]) == res) {
			first = i;
			last = last ? last : i;
		}
	ADD(".visible .entry case_%u(.param .u64 in, .param .u64 out, .param .u64 masks, .param .u32 n, .param .u32 way)\n{\n",
	    k);
	ADD(".reg .b16 %%h<6>, %%hx; .reg .b32 %%w<6>, %%wx, %%way; .reg .b64 %%d<6>, %%dx; .reg .pred %%p<6>;\n");
	ADD(".reg .pred %%on, %%q; .reg .b32 %%t, %%n, %%m, %%x; .reg .b64 %%a, %%o, %%off;\n");
	ADD("mov.u32 %%t, %%tid.x; mov.u32 %%x, %%ctaid.x; mov.u32 %%m, %%ntid.x; mad.lo.s32 %%n, %%x, %%m, %%t;\n");
	ADD("add.u32 %%m, %%m, 31; shr.u32 %%m, %%m, 5; shr.u32 %%t, %%t, 5; mad.lo.u32 %%t, %%x, %%m, %%t;\n");
	ADD("ld.param.u64 %%a, [masks]; mul.wide.u32 %%off, %%t, 4; add.s64 %%a, %%a, %%off; ld.global.u32 %%m, [%%a];\n");
	ADD("mov.b32 %%t, %%n; ld.param.u32 %%n, [n]; setp.ge.u32 %%q, %%t, %%n; @%%q exit; ld.param.u32 %%way, [way];\n");
	ADD("mov.u32 %%x, %%laneid; shr.u32 %%m, %%m, %%x; and.b32 %%m, %%m, 1; setp.ne.u32 %%on, %%m, 0;\n");
	ADD("ld.param.u64 %%a, [in]; ld.param.u64 %%o, [out]; mul.wide.u32 %%off, %%t, 8; add.s64 %%o, %%o, %%off;\n");
	ADD("shl.b64 %%off, %%off, 2; add.s64 %%a, %%a, %%off;\n");
	for (u32 i = 0; i < n; i++) {
		char r = case_reg(c->sig[i]);
		const char *from = i ? "%a" : "%o";
		u32 off = i ? 8 * (i - 1) : 0;

		if (r == 'p')
			ADD("ld.global.u32 %%x, [%s+%u]; setp.ne.u32 %%p%u, %%x, 0;\n", from, off, i);
		else
			ADD("ld.global.b%u %%%c%u, [%s+%u];\n", 8 * case_size(c->sig[i]), r, i, from, off);
	}
	ADD("setp.eq.u32 %%q, %%way, 1; @%%q bra ARM; setp.eq.u32 %%q, %%way, 2; @%%q bra LAST;\n");
	at += op_text(buf + at, at < size ? size - at : 0, c, "@%on ", 0);
	ADD("bra.uni DONE;\nARM: @!%%on bra DONE;\n");
	at += op_text(buf + at, at < size ? size - at : 0, c, "", first);
	if (first)
		ADD("mov.%s%s %%%c0, %%%c%u;\n", res == 'p' ? "pred" : "b",
		    res == 'p'	 ? ""
		    : res == 'h' ? "16"
		    : res == 'w' ? "32"
				 : "64",
		    res, res, first);
	ADD("bra.uni DONE;\nLAST: @!%%on bra DONE;\n");
	at += op_text(buf + at, at < size ? size - at : 0, c, "", last);
	if (last)
		ADD("mov.%s%s %%%c0, %%%c%u;\n", res == 'p' ? "pred" : "b",
		    res == 'p'	 ? ""
		    : res == 'h' ? "16"
		    : res == 'w' ? "32"
				 : "64",
		    res, res, last);
	ADD("DONE:\n");
	if (res == 'p')
		ADD("selp.u32 %%x, 1, 0, %%p0; st.global.u32 [%%o], %%x;\n");
	else
		ADD("st.global.b%u [%%o], %%%c0;\n", 8 * case_size(c->sig[0]), res);
	ADD("ret;\n}\n");
#undef ADD
	return at;
}

static u64 cut(u64 v, char sig)
{
	u32 s = case_size(sig);

	return s == 2 ? (u16)v : s == 4 ? (u32)v : s == 8 ? v : v & 1;
}

static bool same_bits(u64 got, u64 want, u32 bits, u64 inf, u32 ulp)
{
	u64 sign = 1ull << (bits - 1);

	if (got == want || ((got & ~sign) > inf && (want & ~sign) > inf))
		return true;
	if (!ulp || (got ^ want) & sign)
		return false;
	return (got > want ? got - want : want - got) <= ulp;
}

/* Equal, both NaN of a float result, or within @ulp. */
static bool same(u64 got, u64 want, char sig, u32 ulp)
{
	switch (sig) {
	case 'H':
		return same_bits(got, want, 16, 0x7c00, ulp);
	case 'B':
		return same_bits(got, want, 16, 0x7f80, ulp);
	case 'W':
		return same_bits(got, want, 32, 0x7f800000, ulp);
	case 'D':
		return same_bits(got, want, 64, 0x7ff0000000000000, ulp);
	case 'T':
	case 'U':
		return same((u16)got, (u16)want, sig == 'T' ? 'H' : 'B', ulp) &&
		       same(got >> 16, want >> 16, sig == 'T' ? 'H' : 'B', ulp);
	default:
		return got == want;
	}
}

/* A warp's active mask: all, one lane, halves, random ones. */
static u32 case_mask(u32 warp)
{
	u64 r = rng();

	switch (warp % 8) {
	case 0:
		return 0xffffffff;
	case 1:
		return 1u << (r >> 20 & 31);
	case 2:
		return ~(1u << (r >> 20 & 31));
	case 3:
		return 0xffffu << (r >> 20 & 16);
	case 4:
		return 0x55555555u << (r >> 20 & 1);
	default:
		return (u32)(r >> 16);
	}
}

struct case_memory {
	u64 in[CASE_THREADS][MAX_OPERANDS], out[CASE_THREADS];
	u32 masks[2 * CASE_THREADS / 32];
};

static void run_case(struct ptx_module *m, const struct ptx_case *c, u32 k, struct case_memory *mem)
{
	struct {
		const void *in;
		void *out, *masks;
		u32 n, way;
	} p = {mem->in, mem->out, mem->masks, CASE_THREADS - 13, 0};
	static u64 before[CASE_THREADS];
	u32 n = (u32)strlen(c->sig), bad = 0;
	char name[32];

	snprintf(name, sizeof(name), "case_%u", k);
	for (u32 t = 0; t < CASE_THREADS; t++)
		for (u32 i = 1; i < n; i++)
			mem->in[t][i - 1] = pick_operand(c->sig, i, t);
	for (p.way = 0; p.way < 3; p.way++) {
		/* blocks of 64 threads, and one shape whose blocks are no multiple of the warp */
		u32 block = p.way == 2 ? 45 : 64;

		for (u32 w = 0; w < COUNT(mem->masks); w++)
			mem->masks[w] = case_mask(w);
		for (u32 t = 0; t < CASE_THREADS; t++)
			before[t] = mem->out[t] = c->sig[0] == 'p' ? rng() >> 30 & 1 : rng();
		if (test_launch(ptx_module_kernel(m, name), (CASE_THREADS + block - 1) / block, block, &p) != PTX_OK) {
			printf("# %s: %s\n", c->op, test_fault.text);
			bad++;
			break;
		}
		for (u32 t = 0; t < CASE_THREADS; t++) {
			u32 mask = mem->masks[t / block * ((block + 31) / 32) + t % block / 32];
			bool on = t < p.n && (mask >> (t % block % 32) & 1);
			u64 *v = mem->in[t], want = cut(before[t], c->sig[0]), got = cut(mem->out[t], c->sig[0]);

			if (on)
				want = cut(c->ref(c, v), c->sig[0]);
			if (on ? same(got, want, c->sig[0], c->ulp) : got == want)
				continue;
			if (bad++ < 3)
				printf("# %s (%s lane, way %u): a=%llx b=%llx c=%llx e=%llx got %llx want %llx\n", c->op,
				       on ? "active" : "idle", p.way, (unsigned long long)v[0], (unsigned long long)v[1],
				       (unsigned long long)v[2], (unsigned long long)v[3], (unsigned long long)got,
				       (unsigned long long)want);
		}
	}
	ok(!bad, "%s", c->op);
	form_ran(c->op);
}

/* The forms that @form stands for, one after the other; false when there is no @k-th. */
static bool nth_form(const char *form, u32 k, char *buf, size_t size)
{
	size_t at = 0;

	while (*form && at + 1 < size) {
		/* not the braces of a vector operand: {$1, … or {_, … */
		const char *close = *form == '{' && !strchr("$%_", form[1]) ? strchr(form, '}') : NULL;
		u32 n = 1;

		if (!close) {
			buf[at++] = *form++;
			continue;
		}
		for (const char *s = form; s < close; s++)
			n += *s == ',';
		form++;
		for (u32 skip = k % n; skip; form++)
			skip -= *form == ',';
		while (*form != ',' && *form != '}' && at + 1 < size)
			buf[at++] = *form++;
		form = close + 1;
		k /= n;
	}
	buf[at] = 0;
	return !k;
}

#define BATCH 64u

static __attribute__((unused)) void run_cases(const struct ptx_case *cases, u32 n)
{
	static char names[BATCH][192];
	static struct ptx_case batch[BATCH];
	size_t size = 256 + BATCH * 6144, at;
	char *text = malloc(size);
	struct case_memory *mem;
	u32 next = 0, form = 0;
	u64 mark;

	if (!softgpu_arena.base)
		test_arena_init();
	mem = test_alloc(sizeof(*mem));
	mark = test_used;
	while (next < n) {
		struct ptx_module *m;
		u32 count = 0;

		at = (size_t)snprintf(text, size, ".version 9.0\n.target sm_120\n.address_size 64\n");
		while (count < BATCH && next < n) {
			if (!nth_form(cases[next].op, form, names[count], sizeof(names[count]))) {
				next++;
				form = 0;
				continue;
			}
			form++;
			batch[count] = cases[next];
			batch[count].op = names[count];
			at += case_text(text + at, size - at, &batch[count], count);
			count++;
		}
		if (!count)
			break;
		m = test_must_load(text);
		for (u32 k = 0; k < count; k++)
			run_case(m, &batch[k], k, mem);
		ptx_module_free(m);
		test_used = mark;
	}
	free(text);
}

#endif
