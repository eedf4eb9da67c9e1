/* SPDX-License-Identifier: MIT */
/* Hand-written PTX: errors with their lines, truncated text, deadlocks, and what nvcc seldom emits. */
#include <math.h>

#include "tests/softgpu/ptx_forms.h"
#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

#define HEAD ".version 9.0\n.target sm_75\n.address_size 64\n"
/* A kernel of one pointer parameter in %o; %t is the thread; its body starts on line 7. */
#define KERNEL(body)                                                                                                             \
	HEAD ".visible .entry k(.param .u64 p) {\n"                                                                              \
	     ".reg .b16 %h<10>; .reg .b32 %r<40>, %t; .reg .b64 %d<20>, %o, %a; .reg .pred %p<10>; .reg .f32 %f<10>; .reg .f64 " \
	     "%fd<10>;\n"                                                                                                        \
	     "ld.param.u64 %o, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.s64 %a, %o, %a;\n" body "\n}\n"

static void refused(const char *text, enum ptx_status want, const char *log, const char *what)
{
	struct ptx_module *m = NULL;
	enum ptx_status st = test_load(text, strlen(text), &m);

	if (!ok(st == want && strstr(test_log, log) && !m, "%s", what))
		printf("# status %d, log \"%s\", wanted %d with \"%s\"\n", st, test_log, want, log);
	ptx_module_free(m);
}

static int *out;

/* Runs the kernel "k" of @text with the results in out[]. */
static enum ptx_status run(const char *text, uint32_t grid, uint32_t block)
{
	struct ptx_module *m = test_must_load(text);
	struct {
		int *o;
	} p = {out};
	enum ptx_status st;

	memset(out, 0, 4096 * sizeof(int));
	st = test_launch(ptx_module_kernel(m, "k"), grid, block, &p);
	if (st != PTX_OK)
		printf("# status %d: %s\n", st, test_fault.text);
	ptx_module_free(m);
	return st;
}

#define EACH(n, want, what)                                                                                                      \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		for (int t = 0; t < (int)(n); t++)                                                                               \
			if (out[t] != (int)(want) && bad_++ < 3)                                                                 \
				printf("# at %d got %d want %d\n", t, out[t], (int)(want));                                      \
		ok(!bad_, what);                                                                                                 \
	} while (0)

static void test_errors(void)
{
	refused("", PTX_SYNTAX, "not PTX", "empty text");
	refused("hello", PTX_SYNTAX, "line 1: this is not PTX", "no PTX at all");
	refused("\177ELF\1\1", PTX_SYNTAX, "line 1", "an ELF file");
	refused(HEAD ".entry k() { foo.bar; }", PTX_UNSUPPORTED, "line 4: 'foo.bar' is not supported", "an unknown opcode");
	refused(KERNEL("\n\nadd.s32 %r1, %r2, %r3;\nadd.s31 %r1, %r2, %r3;\nret;"), PTX_UNSUPPORTED, "line 10: 'add.s31'",
		"an unknown type, with its line");
	refused(KERNEL("add.s32 %r1, %r2, %x3;"), PTX_SYNTAX, "line 7: register '%x3' is not declared", "an undeclared register");
	refused(KERNEL("bra NOWHERE;"), PTX_SYNTAX, "line 7: label 'NOWHERE' is not defined", "an undefined label");
	refused(KERNEL("L: ret;\nL: ret;"), PTX_SYNTAX, "line 8: label 'L' is defined twice", "a label defined twice");
	refused(KERNEL("add.s32 %r1, %r2;"), PTX_SYNTAX, "line 7: 'add.s32' with 2 operands", "too few operands");
	refused(KERNEL("add.s32 %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11;"), PTX_UNSUPPORTED, "line 7",
		"too many operands");
	refused(KERNEL("add.s64 %r1, %r2, %r3;"), PTX_UNSUPPORTED, "line 7", "registers of another size");
	refused(KERNEL("@%r1 bra L; L:"), PTX_SYNTAX, "line 7: '%r1' is not a predicate", "a guard that is none");
	refused(KERNEL("ld.global.u32 %r1, [%r2];"), PTX_UNSUPPORTED, "line 7", "a 32-bit address");
	refused(KERNEL("st.const.u32 [%o], %r1;"), PTX_UNSUPPORTED, "line 7", "a store to constant memory");
	refused(KERNEL("ld.param.u64 %d1, [p+4];"), PTX_UNSUPPORTED, "outside the parameter", "a load behind the parameters");
	refused(KERNEL("call foo;"), PTX_SYNTAX, "line 7", "a call of an unknown function");
	refused(HEAD ".extern .func ext();\n.entry k() { call ext; ret; }", PTX_UNSUPPORTED,
		"line 5: call of 'ext', which has no body", "a call of a function without a body");
	refused(HEAD ".func f(.param .b32 a) { ret; }\n.entry k() { call f; ret; }", PTX_UNSUPPORTED, "line 5",
		"a call without its arguments");
	refused(HEAD ".global .u32 v[2] = {1, 2, 3};", PTX_SYNTAX, "line 4: 'v' has more initialisers", "too many initialisers");
	refused(HEAD ".global .u64 v = {w};", PTX_SYNTAX, "line 4: initialiser names 'w'", "an initialiser with an unknown name");
	refused(HEAD ".global .align 3 .u32 v;", PTX_SYNTAX, "line 4: alignment 3", "a bad alignment");
	refused(HEAD ".global .u32 v[99999999999999];", PTX_SYNTAX, "line 4", "a huge array");
	refused(HEAD ".entry k() { ret;", PTX_SYNTAX, "the text ends", "a body without an end");
	refused(HEAD ".entry k() { /* ret; }", PTX_SYNTAX, "without an end", "a comment without an end");
	refused(HEAD ".entry k() { .reg .b32 %r<99999999>; ret; }", PTX_UNSUPPORTED, "too many registers", "too many registers");
	refused(".version 9.0\n.target sm_75\n.address_size 32\n", PTX_UNSUPPORTED, "address_size", "32-bit addresses");
	refused(KERNEL("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, %d2, {%f1, %f2}];"), PTX_UNSUPPORTED,
		"line 7: 'tex.2d.v4.f32.f32' is not supported: a separate sampler", "a separate sampler");
	refused(KERNEL("tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d1, {%f1, %f2}], %f3;"), PTX_UNSUPPORTED, "depth comparison",
		"depth comparison");
	refused(KERNEL("tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%d1, {%r1, %r1, %r1, %r1}];"), PTX_UNSUPPORTED, "this geometry",
		"textures with samples");
	refused(KERNEL("suld.p.2d.v4.b32.trap {%r1,%r2,%r3,%r4}, [%d1, {%r1, %r2}];"), PTX_UNSUPPORTED, "line 7", "suld.p");
	refused(HEAD ".global .texref t;", PTX_UNSUPPORTED, "line 4: .texref variables", "texture references");
	refused(KERNEL("brx.idx %r1, L; L:"), PTX_UNSUPPORTED, "line 7", "brx.idx without a table");
	refused(KERNEL("mov.u32 %r1, %r2, %r3"), PTX_SYNTAX, "", "a missing semicolon");
	refused(KERNEL("add.s32 %r1, %r2, 0x;"), PTX_SYNTAX, "line 7", "a bad number");
}

/* Nesting without end must not exhaust the host's stack. */
static void test_nesting(void)
{
	static const char *const begin[] = {HEAD ".entry k() { .reg .b32 %r1; mov.u32 %r1, ", HEAD ".entry k() { ",
					    HEAD ".global .u32 v[4] = ", HEAD ".entry k() { bra ", NULL};
	static const char *const repeat[] = {"(", "{", "{", "["};
	char *text = malloc(1000100);

	for (int k = 0; begin[k]; k++) {
		struct ptx_module *m;
		size_t at = (size_t)sprintf(text, "%s", begin[k]);

		memset(text + at, repeat[k][0], 1000000);
		is_int(test_load(text, at + 1000000, &m), PTX_SYNTAX, "a million times %s: %s", repeat[k], test_log);
	}
	free(text);
}

/* Long chains of calls and much local memory in them must not exhaust or overrun the host's. */
static void test_chains(void)
{
	struct ptx_module *m;
	size_t size = 16u << 20, at = 0;
	char *text = malloc(size);

	at = (size_t)sprintf(text, HEAD);
	for (int k = 0; k < 20000; k++)
		at += (size_t)snprintf(text + at, size - at, ".func f%d();\n.func f%d() { call f%d; ret; }\n", k + 1, k, k + 1);
	at += (size_t)snprintf(text + at, size - at, ".func f20000() { ret; }\n");
	is_int(test_load(text, at, &m), PTX_UNSUPPORTED, "twenty thousand functions that call each other: %s", test_log);
	at = (size_t)sprintf(text, HEAD ".func f0() { ret; }\n");
	for (int k = 1; k < 100; k++)
		at += (size_t)snprintf(text + at, size - at, ".func f%d() { .local .b8 l[60000000]; call f%d; ret; }\n", k,
				       k - 1);
	is_int(test_load(text, at, &m), PTX_UNSUPPORTED, "six gigabytes of local memory in a chain of calls: %s", test_log);
	refused(KERNEL("ld.param.u64 %d1, [18446744073709551615];"), PTX_UNSUPPORTED, "outside the parameter",
		"a parameter's address near 2^64");
	free(text);
}

/* Loading every prefix must end in an orderly way; a whole text loads. */
static void test_truncated(const char *program)
{
	char name[4096], *text, *copy;
	struct ptx_module *m;
	int loaded = 0, n = 0;
	size_t len;

	snprintf(name, sizeof(name), "%.*s/softgpu-ptx_kernels.ptx", (int)(strrchr(program, '/') - program), program);
	text = test_read_file(name, &len);
	if (!text) {
		ok(false, "%s is there", name);
		return;
	}
	for (size_t k = 0; k < len; k += 97, n++) {
		copy = malloc(k + 1); /* exactly as long, so that a sanitizer sees one byte too many */
		memcpy(copy, text, k);
		test_arena_reset();
		out = test_alloc(4096 * sizeof(int));
		if (test_load(copy, k, &m) == PTX_OK)
			loaded++;
		else if (!test_log[0])
			loaded += 1000000;
		ptx_module_free(m);
		free(copy);
	}
	ok(loaded < n / 4, "%d prefixes of a module: %d end between two functions and load, the others are refused with a reason",
	   n, loaded);
	is_int(test_load(text, len, &m), PTX_OK, "the whole loads");
	ptx_module_free(m);
	/* One byte changed: any answer but a crash. */
	for (size_t k = 0; k < len; k += 211) {
		char old = text[k];

		text[k] = "\n;{}%.,0xZ-\xff"[k % 12];
		test_arena_reset();
		out = test_alloc(4096 * sizeof(int));
		if (test_load(text, len, &m) == PTX_OK)
			ptx_module_free(m);
		text[k] = old;
	}
	ok(true, "changed bytes do no harm");
	free(text);
}

static void test_deadlocks(void)
{
	is_int(run(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bar.sync 0; @!%p1 bar.sync 1; ret;"), 1, 32), PTX_DEADLOCK,
	       "two barriers that wait for each other");
	ok(strstr(test_fault.text, "deadlock") && test_fault.line == 7, "named with its line");
	is_int(run(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bar.warp.sync 0xffffffff; @!%p1 bar.sync 0; ret;"), 1, 32), PTX_DEADLOCK,
	       "a warp barrier that lanes never reach");
	is_int(run(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra A; bar.sync 1; bra B; A: shfl.sync.idx.b32 %r1, %t, 0, 31, "
			  "0xffffffff; B: ret;"),
		   1, 32),
	       PTX_DEADLOCK, "a shuffle that lanes never reach");
	is_int(run(KERNEL("bar.sync 0, 64; ret;"), 1, 32), PTX_DEADLOCK, "a barrier for more threads than there are");
	is_int(run(KERNEL("bar.sync 0, 33; ret;"), 1, 64), PTX_ILLEGAL_INSTRUCTION, "a barrier for a part of a warp");
	is_int(run(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 exit; bar.warp.sync 0xffffffff; st.global.u32 [%a], 5; ret;"), 1, 32),
	       PTX_OK, "exited lanes are not waited for");
	EACH(32, t < 16 ? 0 : 5, "and the others went on");
}

static void test_barriers(void)
{
	is_int(run(KERNEL(".shared .u32 s; mov.u32 %r1, 64; setp.ge.u32 %p1, %t, 32; @%p1 bra C;\n"
			  "st.shared.u32 [s], 77; bar.arrive 3, %r1; bra E;\n"
			  "C: bar.sync 3, 64; ld.shared.u32 %r2, [s]; st.global.u32 [%a], %r2; E: ret;"),
		   1, 64),
	       PTX_OK, "producer and consumer warps");
	EACH(64, t < 32 ? 0 : 77, "bar.arrive and bar.sync");
	is_int(run(KERNEL("setp.gt.u32 %p1, %t, 4; bar.red.popc.u32 %r1, 1, %p1; bar.red.and.pred %p2, 2, 96, !%p1; selp.u32 "
			  "%r2, 1000, 0, %p2;\n"
			  "add.u32 %r1, %r1, %r2; st.global.u32 [%a], %r1; ret;"),
		   1, 96),
	       PTX_OK, "bar.red");
	EACH(96, 91, "its count");
	is_int(run(KERNEL("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r1, %cluster_nctarank; "
			  "st.global.u32 [%a], %r1; ret;"),
		   2, 64),
	       PTX_OK, "a cluster of one block");
	EACH(64, 1, "has one rank");
}

static void test_forms(void)
{
	/* 128-bit sum and product through carry chains */
	is_int(run(KERNEL("mov.u64 %d1, -1; mov.u64 %d2, 5; mov.u64 %d3, 3; mov.u64 %d4, 7;\n"
			  "add.cc.u64 %d5, %d1, %d3; addc.u64 %d6, %d2, %d4; cvt.u32.u64 %r1, %d5; cvt.u32.u64 %r2, %d6;\n"
			  "sub.cc.u32 %r3, 1, 2; subc.cc.u32 %r4, 0, 0; subc.u32 %r5, 10, 3;\n"
			  "mad.lo.cc.u32 %r6, 0x10000, 0x10000, 5; madc.hi.u32 %r7, 0x10000, 0x10000, 0;\n"
			  "st.global.u32 [%o], %r1; st.global.u32 [%o+4], %r2; st.global.u32 [%o+8], %r4; st.global.u32 [%o+12], "
			  "%r5;\n"
			  "st.global.v2.u32 [%o+16], {%r6, %r7}; ret;"),
		   1, 32),
	       PTX_OK, "carry chains");
	ok(out[0] == 2 && out[1] == 13 && out[2] == -1 && out[3] == 6 && out[4] == 5 && out[5] == 1, "their results");

	is_int(run(KERNEL("and.b32 %r1, %t, 3; ts: .branchtargets A, B, C, A; brx.idx %r1, ts;\n"
			  "A: mov.u32 %r2, 10; bra E; B: mov.u32 %r2, 20; bra E; C: mov.u32 %r2, 30;\n"
			  "E: st.global.u32 [%a], %r2; ret;"),
		   1, 64),
	       PTX_OK, "brx.idx");
	EACH(64, (t & 3) == 1 ? 20 : (t & 3) == 2 ? 30 : 10, "goes where the table says");
	is_int(run(KERNEL("ts: .branchtargets A; brx.idx %t, ts; A: ret;"), 1, 32), PTX_ILLEGAL_INSTRUCTION,
	       "brx.idx out of its table");

	is_int(run(KERNEL("lop3.b32 %r1, %t, 12, 5, 0x96; lop3.b32 %r2, %t, 12, 5, 0xe8; shl.b32 %r2, %r2, 8; add.u32 %r1, %r1, "
			  "%r2; st.global.u32 [%a], %r1; ret;"),
		   1, 32),
	       PTX_OK, "lop3");
	EACH(32, (t ^ 12 ^ 5) + (((t & 12) | (t & 5) | (12 & 5)) << 8), "exclusive or and majority");
	is_int(run(KERNEL("bfi.b32 %r1, %t, 0xffff, 4, 6; st.global.u32 [%a], %r1; ret;"), 1, 64), PTX_OK, "bfi");
	EACH(64, (0xffff & ~0x3f0) | t << 4, "puts the field");

	/* nested scopes: the same names twice, labels of inline assembly */
	is_int(run(KERNEL("mov.u32 %r1, 0;\n{ .reg .u32 x; mov.u32 x, 3; L: add.u32 %r1, %r1, x; setp.lt.u32 %p1, %r1, 9; @%p1 "
			  "bra L; }\n"
			  "{ .reg .u64 x; mov.u64 x, 4; cvt.u32.u64 %r2, x; L: add.u32 %r1, %r1, %r2; setp.lt.u32 %p1, %r1, 20; "
			  "@%p1 bra L; @!%p1 bra OUT; }\n"
			  "OUT: st.global.u32 [%a], %r1; ret;"),
		   1, 32),
	       PTX_OK, "scopes");
	EACH(32, 21, "with registers and labels of their own");

	is_int(run(KERNEL("setp.lt.u32 %p1|%p2, %t, 5; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; add.u32 %r1, %r1, %r2; "
			  "setp.eq.or.u32 %p3, %t, 9, !%p2;\n"
			  "@%p3 add.u32 %r1, %r1, 10; mov.b64 %d1, {%r1, %t}; mov.b64 {%r3, %r4}, %d1; mov.b32 {%h1, %h2}, %r3; "
			  "mov.b32 %r5, {%h2, %h1}; shr.u32 %r5, %r5, 16;\n"
			  "mad.lo.u32 %r5, %r4, 100, %r5; st.global.u32 [%a], %r5; ret;"),
		   1, 32),
	       PTX_OK, "setp with two results, packing");
	EACH(32, t * 100 + (t < 5 ? 1 : 2) + (t == 9 || t < 5 ? 10 : 0), "and unpacking");
}

static void test_functions(void)
{
	is_int(run(HEAD ".func g(.param .u64 p) { .reg .u64 %o; ld.param.u64 %o, [p]; st.global.u32 [%o], 9; ret; }\n"
			".func h(.param .u64 p);\n.alias h, g;\n"
			".visible .entry k(.param .u64 p) { .reg .u64 %o; .param .u64 q; ld.param.u64 %o, [p]; st.param.u64 [q], "
			"%o; call h, (q); ret; }",
		   1, 1),
	       PTX_OK, "an alias");
	EACH(1, 9, "is the other function");
	is_int(run(HEAD ".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %x; .reg .pred %q; ld.param.u32 %x, [x]; setp.eq.u32 "
			"%q, %x, 7;\n"
			"@%q exit; setp.gt.u32 %q, %x, 20; @%q ret; mul.lo.u32 %x, %x, 3; st.param.u32 [r], %x; ret; }\n"
			".visible .entry k(.param .u64 p) { .reg .b32 %t, %r; .reg .b64 %o, %a; .reg .pred %s;\n"
			"ld.param.u64 %o, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 4; add.s64 %a, %o, %a; setp.lt.u32 %s, "
			"%t, 30;\n"
			"{ .param .b32 q0; .param .b32 q1; st.param.b32 [q1], 5; st.param.b32 [q0], %t; @%s call (q1), f, (q0); "
			"ld.param.b32 %r, [q1]; }\n"
			"bar.sync 0; st.global.u32 [%a], %r; ret; }",
		   1, 64),
	       PTX_OK, "a guarded call of a function with exit and an early return");
	/* Lanes that return early leave the result as it was in the callee; only the others are looked at. */
	for (int t = 21; t < 30; t++)
		out[t] = -1;
	EACH(64, t == 7 ? 0 : t >= 30 ? 5 : t > 20 ? -1 : t * 3, "exits one lane, calls 30");
	is_int(run(KERNEL(".shared .u32 s; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [s], 0; bar.sync 0; red.global.add.u32 "
			  "[%o], %t;\n"
			  "red.shared.add.u32 [s], 1; bar.sync 0; ld.shared.u32 %r1, [s]; red.global.max.s32 [%o+4], %r1; ret;"),
		   1, 64),
	       PTX_OK, "red");
	ok(out[0] == 63 * 32 && out[1] == 64, "adds and takes the maximum");
}

/* The address of a variable byte by byte, with an offset, of another variable defined before. */
static void test_initialisers(void)
{
	struct ptx_module *m =
		test_must_load(HEAD ".global .u32 tab[4] = {10, 20, 30, -40};\n"
				    ".global .align 8 .b8 bytes[8] = {0xff(tab), 0xff00(tab), 0xff0000(tab), 1, 2};\n"
				    ".global .u64 ptrs[3] = {tab+8, generic(tab), 0};\n"
				    ".const .f32 f[2] = {0f3f800000, 2.5}; .global .f64 d = 0d4000000000000000;");
	uint64_t tab, bytes, ptrs, f, d, v;
	size_t n;

	ok(ptx_module_global(m, "tab", &tab, &n) && n == 16 && ((int *)(uintptr_t)tab)[3] == -40, "integers");
	ok(ptx_module_global(m, "bytes", &bytes, &n) && n == 8 && !memcmp((void *)(uintptr_t)bytes, &tab, 3) &&
		   ((char *)(uintptr_t)bytes)[4] == 2,
	   "bytes of an address");
	ok(ptx_module_global(m, "ptrs", &ptrs, &n) && ((uint64_t *)(uintptr_t)ptrs)[0] == tab + 8 &&
		   ((uint64_t *)(uintptr_t)ptrs)[1] == tab,
	   "addresses");
	ok(ptx_module_global(m, "f", &f, &n) && ((float *)(uintptr_t)f)[0] == 1.0f && ((float *)(uintptr_t)f)[1] == 2.5f,
	   "floats");
	v = 0;
	if (ptx_module_global(m, "d", &d, &n))
		memcpy(&v, (void *)(uintptr_t)d, 8);
	ok(v == 0x4000000000000000, "doubles");
	ptx_module_free(m);
}

static void test_values(void)
{
	uint32_t *o = (uint32_t *)out;

	is_int(run(KERNEL("mov.f32 %f1, 0f3f800000; mov.f32 %f2, 0f33000000; add.rp.f32 %f3, %f1, %f2; add.rn.f32 %f4, %f1, %f2; "
			  "add.rz.f32 %f5, %f1, -0.5;\n"
			  "st.global.f32 [%o], %f3; st.global.f32 [%o+4], %f4; st.global.f32 [%o+8], %f5; ret;"),
		   1, 32),
	       PTX_OK, "rounding modes in turn");
	ok(o[0] == 0x3f800001 && o[1] == 0x3f800000 && o[2] == 0x3f000000, "each by its own");
	is_int(run(KERNEL("mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; popc.b32 %r2, %r2; mov.u32 %r3, %ntid.x; mov.u32 "
			  "%r4, WARP_SZ; add.u32 %r1, %r1, %r2;\n"
			  "mad.lo.u32 %r1, %r3, 1000, %r1; add.u32 %r1, %r1, %r4; st.global.u32 [%a], %r1; ret;"),
		   1, 50),
	       PTX_OK, "special registers");
	EACH(50, 50000 + t % 32 * 2 + 32, "of lanes and shapes");
	is_int(run(KERNEL("mov.u64 %d1, %clock64; nanosleep.u32 100; mov.u64 %d2, %clock64; setp.gt.u64 %p1, %d2, %d1; mov.u64 "
			  "%d3, %globaltimer;\n"
			  "setp.gt.and.u64 %p1, %d3, 1600000000000000000, %p1; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%a], %r1; "
			  "ret;"),
		   1, 32),
	       PTX_OK, "clocks");
	EACH(32, 1, "go forward");
}

/* What drv_texture runs through the driver, which does not see what the lowering looks for. */
static void test_textures(const char *program)
{
	const char *slash = strrchr(program, '/');
	struct ptx_module *mod;
	char name[4096], *all;
	size_t len;

	snprintf(name, sizeof(name), "%.*ssoftgpu-drv_texture.ptx", slash ? (int)(slash + 1 - program) : 0, program);
	all = test_read_file(name, &len);
	ok(all, "%s is there", name);
	if (!all)
		return;
	mod = test_must_load(all);
	ptx_module_free(mod);
	free(all);
	forms_done("text");
}

int main(int argc, char **argv)
{
	(void)argc;
	test_arena_init();
	out = test_alloc(4096 * sizeof(int));
	test_errors();
	test_deadlocks();
	test_barriers();
	test_forms();
	test_functions();
	test_initialisers();
	test_values();
	test_nesting();
	test_chains();
	test_truncated(argv[0]);
	test_textures(argv[0]);
	return tap_done();
}
