/* SPDX-License-Identifier: MIT */
/* The rarer parts of PTX: 128-bit registers, 256-bit accesses, vector atomics, video instructions, register parameters, alloca.
 */
#include "tests/softgpu/ptx_cases.h"
#include "tests/softgpu/ptx_forms.h"

#include <math.h>

#define HEAD ".version 9.0\n.target sm_100\n.address_size 64\n"
/* A kernel whose thread %t has 64 bytes at %a, with registers of every size. */
#define BODY(text)                                                                                                               \
	".visible .entry k(.param .u64 p) {\n"                                                                                   \
	".reg .b8 %b<5>; .reg .b16 %h<9>; .reg .b32 %r<20>, %t; .reg .f32 %f<12>; .reg .b64 %d<12>, %o, %a; .reg .b128 %q<5>; "  \
	".reg .pred %p<4>;\n"                                                                                                    \
	"ld.param.u64 %o, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 64; add.s64 %a, %o, %a;\n" text "\nret;\n}\n"

static u32 *out;

static enum ptx_status run(const char *text, u32 threads)
{
	struct ptx_module *m = test_must_load(text);
	struct {
		void *p;
	} p = {out};
	enum ptx_status st = test_launch(ptx_module_kernel(m, "k"), 1, threads, &p);

	if (st != PTX_OK)
		printf("# status %d: %s\n", st, test_fault.text);
	ptx_module_free(m);
	return st;
}

/* Runs it for one thread, whose words at %a are then compared. */
static void gives_words(const char *what, const char *text, u32 n, const u32 *want)
{
	bool good;

	memset(out, 0, 4096);
	good = run(text, 1) == PTX_OK;
	for (u32 k = 0; good && k < n; k++)
		if (out[k] != want[k]) {
			printf("# word %u is 0x%08x, want 0x%08x\n", k, out[k], want[k]);
			good = false;
		}
	ok(good, "%s", what);
}

#define WORDS(...)                                                                                                               \
	sizeof((u32[]){__VA_ARGS__}) / 4, (u32[])                                                                                \
	{                                                                                                                        \
		__VA_ARGS__                                                                                                      \
	}

static void test_wide(void)
{
	gives_words(
		"128-bit registers: packed, moved, unpacked, stored, loaded",
		HEAD BODY(
			"mov.b32 %r1, 1; mov.b64 %d1, 0x200000001; mov.b64 %d2, 0x400000003; mov.b128 %q1, {%d1, %d2};\n"
			"st.global.b128 [%a], %q1; ld.global.b128 %q2, [%a]; mov.b128 {%d3, %d4}, %q2; mov.b128 %q3, {%d4, "
			"%d3};\n"
			"mov.b128 %q4, %q3; mov.b128 {%r1, %r2, %r3, %r4}, %q4; st.global.v4.u32 [%a+16], {%r1, %r2, %r3, %r4};"),
		WORDS(1, 2, 3, 4, 3, 4, 1, 2));
	gives_words(
		"atom.exch and atom.cas of 128 bits",
		HEAD BODY("mov.b128 %q1, {5, 6}; st.global.b128 [%a], %q1; mov.b128 %q2, {7, 8};\n"
			  "atom.global.exch.b128 %q3, [%a], %q2; st.global.b128 [%a+16], %q3;\n"
			  "atom.cas.b128 %q3, [%a], %q1, %q1; atom.cas.b128 %q4, [%a], %q2, %q1; st.global.b128 [%a+32], %q4;"),
		WORDS(5, 0, 6, 0, 5, 0, 6, 0, 7, 0, 8, 0));
	gives_words("accesses of 256 bits, the base register among the results",
		    HEAD BODY("mov.b64 %d1, 1; mov.b64 %d2, 2; mov.b64 %d3, 3; mov.b64 %d4, 4; st.global.v4.b64 [%a], {%d1, %d2, "
			      "%d3, %d4};\n"
			      "mov.b64 %d6, %a; ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d6];\n"
			      "ld.global.v4.b64 {%d6, %d7, %d8, %d9}, [%d6];\n"
			      "st.global.v8.b32 [%a+32], {%r7, %r8, %r5, %r6, %r3, %r4, %r1, %r2}; st.global.u64 [%a+8], %d9;"),
		    WORDS(1, 0, 4, 0, 3, 0, 4, 0, 4, 0, 3, 0, 2, 0, 1, 0));
	memset(out, 0, 4096);
	is_int(run(HEAD BODY("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%a+16];"), 1), PTX_MISALIGNED,
	       "256 bits at a multiple of 16");
	is_int(run(HEAD BODY("red.global.v4.f32.add [%a+8], {%f1, %f2, %f3, %f4};"), 1), PTX_MISALIGNED,
	       "a vector reduction at 8");
	is_int(run(HEAD
		   ".shared .align 32 .b8 sm[64];\n" BODY("mov.u32 %r9, sm; ld.shared.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, "
							  "%r8}, [%r9+16];"),
		   1),
	       PTX_MISALIGNED, "256 bits of shared memory at a multiple of 16");
	gives_words("vector registers and their elements",
		    HEAD BODY(".reg .v4 .b32 V, W; mov.u32 V.x, 1; mov.u32 V.y, 2; mov.u32 V.b, 3; mov.u32 V.w, 4;\n"
			      "mov.v4.b32 W, {V.w, V.z, V.y, V.x}; st.global.v4.b32 [%a], W;"),
		    WORDS(4, 3, 2, 1));
}

static void test_atomics(void)
{
	gives_words(
		"minimum and maximum of halves and pairs; redux of floats",
		HEAD BODY(
			"mov.b16 %h1, 0x3c00; red.global.v2.f16.min.noftz [%a], {%h1, %h1}; red.global.v2.bf16.min.noftz [%a], "
			"{%h1, "
			"%h1};\n"
			"red.global.v2.bf16.max.noftz [%a], {%h1, %h1}; mov.b32 %r1, 0x3c003c00;\n"
			"red.global.v2.f16x2.max.noftz [%a], {%r1, %r1}; red.global.v2.bf16x2.max.noftz [%a], {%r1, %r1};\n"
			"redux.sync.max.abs.f32 %f1, 0fc0000000, 1; redux.sync.min.f32 %f2, %f1, 1; st.global.f32 [%a+16], %f2;"),
		WORDS(0x3c003c00, 0x3c003c00, 0, 0, 0x40000000));
	gives_words("atom of four floats: old values and sums",
		    HEAD BODY("mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f40000000; st.global.v4.f32 [%a], {%f1, %f2, %f1, %f2};\n"
			      "atom.global.v4.f32.add {%f5, _, %f7, %f8}, [%a], {%f1, %f1, %f2, %f2};\n"
			      "st.global.v4.f32 [%a+16], {%f5, %f1, %f7, %f8};"),
		    WORDS(0x40000000, 0x40400000, 0x40400000, 0x40800000, 0x3f800000, 0x3f800000, 0x3f800000, 0x40000000));
	gives_words("red of eight halves: minimum and maximum",
		    HEAD BODY("mov.b32 %r1, 0x40003c00; mov.b32 {%h1, %h2}, %r1; mov.b16 %h3, 0xbc00;\n"
			      "red.global.v8.f16.max.noftz [%a], {%h1, %h2, %h3, %h3, %h2, %h1, %h1, %h3};\n"
			      "red.global.v4.bf16x2.min.noftz [%a+16], {%r1, %r1, %r1, %r1};\n"
			      "red.global.v2.f16x2.min.noftz [%a], {%r1, %r1};"),
		    WORDS(0x40003c00, 0, 0x3c004000, 0x00003c00, 0, 0, 0, 0));
}

static void test_functions(void)
{
	gives_words(
		"functions of a device runtime that was linked in give way to the engine's",
		HEAD
		".extern .func (.param .b32 r) __cuda_syscall_x();\n.func (.param .b32 r) __cudaCDP2GetLastError() { call (r), "
		"__cuda_syscall_x, (); ret; }\n" BODY(
			".param .b32 q; call (q), __cudaCDP2GetLastError, (); ld.param.u32 %r1, [q]; add.u32 %r1, %r1, 9; "
			"st.global.u32 [%a], %r1;"),
		WORDS(9));
	gives_words("an array as long as its initialiser",
		    HEAD ".global .u32 v[] = {11, 22, 33};\n.global .u32 w;\n" BODY(
			    "ld.global.u32 %r1, [v+8]; st.global.u32 [%a], %r1; mov.u64 %d1, w; mov.u64 %d2, v; sub.u64 %d1, "
			    "%d1, %d2; "
			    "st.global.u32 [%a+4], %d1;"),
		    WORDS(33, 12));
	gives_words("parameters in registers, and arguments that are registers or constants",
		    HEAD
		    ".func (.reg .b32 r) sum(.reg .b32 x, .reg .b64 y, .param .b32 z) {\n.reg .b32 %r<4>; ld.param.u32 %r1, [z]; "
		    "cvt.u32.u64 %r2, y; add.u32 r, x, %r2; add.u32 r, r, %r1; ret; }\n" BODY(
			    "mov.u32 %r1, 5; mov.u64 %d1, 70; call (%r2), sum, (%r1, %d1, 600); st.global.u32 [%a], %r2;"),
		    WORDS(675));
	gives_words(
		"a call through .calltargets",
		HEAD
		".func (.reg .b32 r) f(.reg .b32 x) { add.u32 r, x, 1; }\n.func (.reg .b32 r) g(.reg .b32 x) { add.u32 r, x, 2; "
		"}\n" BODY("mov.u64 %d1, g; T: .calltargets f, g; mov.u32 %r1, 5; call (%r2), %d1, (%r1), T; st.global.u32 [%a], "
			   "%r2;"),
		WORDS(7));
	gives_words("alloca: each call's memory is its own and goes with it",
		    HEAD ".func (.reg .b32 r) fill(.reg .b32 n) {\n.reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<2>; "
			 "cvt.u64.u32 %d1, n; "
			 "stacksave.u64 %d3; alloca.u64 %d2, %d1, 16; st.local.u32 [%d2], n; sub.u32 %r1, n, 8; setp.gt.s32 %p1, "
			 "%r1, 0; mov.u32 "
			 "%r2, 0; @%p1 call (%r2), fill, (%r1); ld.local.u32 %r3, [%d2]; add.u32 r, %r2, %r3; stackrestore.u64 "
			 "%d3; ret; }\n" BODY("call (%r2), fill, (32); st.global.u32 [%a], %r2; stacksave.u64 %d1; mov.u32 %r3, "
					      "64; cvt.u64.u32 %d4, %r3;\n"
					      "alloca.u64 %d2, %d4; stackrestore.u64 %d1; alloca.u64 %d3, %d4; sub.u64 %d5, %d3, "
					      "%d2; st.global.u32 [%a+4], "
					      "%d5; stacksave.u32 %r4; alloca.u32 %r5, %r3; stackrestore.u32 %r4; alloca.u32 "
					      "%r6, %r3, 32; sub.u32 %r5, %r6, "
					      "%r5; st.global.u32 [%a+8], %r5;"),
		    WORDS(32 + 24 + 16 + 8, 0, 0));
	is_int(run(HEAD BODY("mov.u64 %d1, 0x10000000; alloca.u64 %d2, %d1;"), 1), PTX_STACK, "an alloca beyond the stack");
}

/* What the video instructions' descriptions say, for a few with every kind of selector. */
static s64 half(u64 v, u32 k)
{
	return (s16)(v >> (16 * k));
}

static u64 byte(u64 v, u32 k)
{
	return v >> (8 * k) & 0xff;
}

static s64 lim(s64 v, s64 lo, s64 hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static u64 add2(u64 a, u64 b, u64 c)
{
	/* vadd2.s32.s32.s32.sat d.h1, a.h10, b.h23, c */
	return (c & 0xffff) | ((u64)lim(half(a, 1) + half(b, 0), -32768, 32767) & 0xffff) << 16;
}

static u64 diff4(u64 a, u64 b, u64 c)
{
	u64 r = c;

	for (u32 k = 0; k < 4; k++)
		r += byte(a, k) > byte(b, k) ? byte(a, k) - byte(b, k) : byte(b, k) - byte(a, k);
	return r;
}

static u64 avrg4(u64 a, u64 b, u64 c)
{
	u64 r = 0;

	for (u32 k = 0; k < 4; k++)
		r |= (k & 1 ? (byte(a, k) + byte(b, k) + 1) >> 1 : byte(c, k)) << (8 * k);
	return r;
}

static u64 set4(u64 a, u64 b)
{
	u64 r = 0;

	for (u32 k = 0; k < 4; k++)
		r |= (u64)(byte(a, k) < byte(b, k)) << (8 * k);
	return r;
}

/* x² + x with one rounding */
static u64 square32(u64 v)
{
	u32 bits = (u32)v, r;
	float x;

	memcpy(&x, &bits, 4);
	x = fmaf(x, x, x);
	memcpy(&r, &x, 4);
	return r;
}

static u64 half_and_one(u64 v)
{
	u32 e = v >> 10 & 31, m = v & 0x3ff, r;
	float f = e ? ldexpf((float)(m | 0x400), (int)e - 25) : ldexpf((float)m, -24);

	if (e == 31)
		f = m ? NAN : INFINITY;
	f = (v & 0x8000 ? -f : f) + 1;
	memcpy(&r, &f, 4);
	return r;
}

#define S(v) ((s64)(s32)(v))
#define CASES(X)                                                                                                                 \
	X(vadd, "vadd.u32.u32.u32 $0, $1, $2;", "www", a + b)                                                                    \
	X(vaddsat, "vadd.s32.s32.s32.sat $0, $1, $2;", "www", lim(S(a) + S(b), INT32_MIN, INT32_MAX))                            \
	X(vaddparts, "vadd.s32.s32.u32 $0, $1.h1, $2.b3;", "www", half(a, 1) + (s64)byte(b, 3))                                  \
	X(vsubmerge, "vsub.s32.s32.s32.sat $0.b2, $1, $2, $3;", "wwww",                                                          \
	  ((u32)c & 0xff00ffff) | ((u64)lim(S(a) - S(b), -128, 127) & 0xff) << 16)                                               \
	X(vsubu, "vsub.u32.u32.u32.sat.add $0, $1, $2, $3;", "wwww", (u64)lim((s64)(u32)a - (s64)(u32)b, 0, UINT32_MAX) + c)     \
	X(vabsdiff, "vabsdiff.u32.s32.u32 $0, $1, $2;", "www", S(a) < (s64)(u32)b ? (s64)(u32)b - S(a) : S(a) - (s64)(u32)b)     \
	X(vmin, "vmin.s32.s32.s32.max $0, $1, $2, $3;", "wwww", S(S(a) < S(b) ? a : b) > S(c) ? (S(a) < S(b) ? a : b) : c)       \
	X(vmax, "vmax.u32.u32.u32.min $0, $1.b1, $2.h0, $3;", "wwww",                                                            \
	  (byte(a, 1) > (b & 0xffff) ? byte(a, 1) : (b & 0xffff)) < (u32)c                                                       \
		  ? (byte(a, 1) > (b & 0xffff) ? byte(a, 1) : (b & 0xffff))                                                      \
		  : c)                                                                                                           \
	X(vshl, "vshl.u32.u32.u32.clamp $0, $1, $2;", "www", (u32)b > 31 ? 0 : a << (b & 31))                                    \
	X(vshr, "vshr.s32.s32.u32.wrap $0, $1, $2;", "www", S(a) >> (b & 31))                                                    \
	X(vmad, "vmad.s32.s32.s32.sat $0, $1.h0, $2.h1, $3;", "wwww", lim(half(a, 0) * half(b, 1) + S(c), INT32_MIN, INT32_MAX)) \
	X(vmadn, "vmad.s32.s32.s32.shr7 $0, -$1.h0, $2.h1, $3;", "wwww", (S(c) - half(a, 0) * half(b, 1)) >> 7)                  \
	X(vmadpo, "vmad.u32.u32.u32.po.shr15 $0, $1.h0, $2.h1, $3;", "wwww",                                                     \
	  ((a & 0xffff) * (b >> 16 & 0xffff) + (u32)c + 1) >> 15)                                                                \
	X(vset, "vset.s32.u32.lt.add $0, $1, $2, $3;", "wwww", (u64)(S(a) < (s64)(u32)b) + c)                                    \
	X(vadd2, "vadd2.s32.s32.s32.sat $0.h1, $1, $2.h23, $3;", "wwww", add2(a, b, c))                                          \
	X(vabsdiff4, "vabsdiff4.u32.u32.u32.add $0, $1, $2, $3;", "wwww", diff4(a, b, c))                                        \
	X(vavrg4, "vavrg4.u32.u32.u32 $0.b31, $1, $2, $3;", "wwww", avrg4(a, b, c))                                              \
	X(vset4, "vset4.u32.u32.lt $0, $1, $2, $1;", "www", set4(a, b))                                                          \
	X(fmax2, "and.b64 %dx, $1, 0x3fffffff3fffffff; fma.rn.f32x2 $0, %dx, %dx, %dx;", "dd",                                   \
	  square32((u32)a & 0x3fffffff) | square32(a >> 32 & 0x3fffffff) << 32)                                                  \
	X(mixed, "mov.b32 %wx, 0x3f800000; add.rn.f32.f16 $0, $1, %wx;", "WH", half_and_one(a))

CASES(CASE)
#define ENTRY(name, op, sig, ...) {op, sig, ref_##name, 0, {0}},
static const struct ptx_case cases[] = {CASES(ENTRY)};

/* Part selectors belong to the video instructions; what there is no hardware for outside one GPU is refused. */
static void test_refused(void)
{
	static const struct {
		const char *text, *why;
	} no[] = {
		{"add.s32 %r1, %r2.b0, %r3;", "'add.s32' is not supported: a part"},
		{"add.s32 %r1, -%r2, %r3;", "'add.s32' is not supported: a part"},
		{"vadd.s32.s32.s32 %r1, %r2.b4, %r3;", "no such part"},
		{"vadd2.s32.s32.s32 %r1, %r2.h4, %r3, %r4;", "no such selection"},
		{"setmaxnreg.inc.sync.aligned.u32 64;", "'setmaxnreg.inc.sync.aligned.u32' is not supported"},
		{"mov.b128 %d1, %q1;", "not a 128-bit register"},
		{"add.u64 %d1, %q1, %d2;", "another size"},
		{"prefetch.global.L3 [%a];", "'prefetch.global.L3' is not supported"},
		{"fence.proxy.unheard;", "'fence.proxy.unheard' is not supported"},
	};

	static const char before[] = HEAD BODY("\0");

	for (u32 k = 0; k < COUNT(no); k++) {
		struct ptx_module *m = NULL;
		char text[2048];

		snprintf(text, sizeof(text), "%s%s%s", before, no[k].text, strchr(before, 0) + 1);
		if (!ok(test_load(text, strlen(text), &m) == PTX_UNSUPPORTED && strstr(test_log, no[k].why) &&
				!strncmp(test_log, "k: line ", 8),
			"refused: %s", no[k].text))
			printf("# %s\n", test_log);
		ptx_module_free(m);
	}
}

static void told(void *arg, const char *cause)
{
	strcat(arg, cause);
	strcat(arg, "\n");
}

static void test_check(void)
{
	static const char text[] = HEAD ".entry a() { foo; bar; ret; }\n.entry b() { ret; }\n.func c() {\nbaz; }\n";
	const struct ptx_mem mem = {.alloc = test_mem_alloc, .free = test_mem_free};
	struct ptx_module *m;
	char log[512] = "";

	is_int(ptx_module_check(text, strlen(text), &mem, &m, told, log), PTX_UNSUPPORTED, "a check of two bad functions");
	ok(!strcmp(log, "a: line 4: 'foo' is not supported\nc: line 7: 'baz' is not supported\n"),
	   "each function's first line is told");
}

int main(void)
{
	test_arena_init();
	out = test_alloc(4096);
	test_wide();
	test_atomics();
	test_functions();
	test_refused();
	test_check();
	run_cases(cases, COUNT(cases));
	forms_done("isa");
	return tap_done();
}
