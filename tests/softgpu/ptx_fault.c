/* SPDX-License-Identifier: MIT */
/* Misaligned and illegal accesses of one lane, in every space; and which space an address is in. */
#include "tests/softgpu/ptx_mem.h"

/* Lane 37 alone touches what it may not; the fault names it. */
static void run_faults(void)
{
	static const struct {
		const char *what, *body;
		enum ptx_status want;
	} faults[] = {
		{"ld.global.u16 at an odd address", "@%q add.u64 %in, %in, 1; ld.global.u16 %h1, [%in];", PTX_MISALIGNED},
		{"ld.global.u32 off by two", "@%q add.u64 %in, %in, 2; ld.global.u32 %w3, [%in];", PTX_MISALIGNED},
		{"ld.u64 off by four", "@%q add.u64 %in, %in, 4; ld.u64 %d3, [%in];", PTX_MISALIGNED},
		{"ld.global.v2.u32 off by four", "@%q add.u64 %in, %in, 4; ld.global.v2.u32 {%w3, %w4}, [%in];", PTX_MISALIGNED},
		{"ld.global.v4.u32 off by eight", "@%q add.u64 %in, %in, 8; ld.global.v4.u32 {%w3, %w4, %w5, %w6}, [%in];",
		 PTX_MISALIGNED},
		{"st.global.u64 off by four", "@%q add.u64 %in, %in, 4; st.global.u64 [%in], %d3;", PTX_MISALIGNED},
		{"st.global.v2.u64 off by eight", "@%q add.u64 %in, %in, 8; st.global.v2.u64 [%in], {%d3, %d4};", PTX_MISALIGNED},
		{"ld.shared.u32 off by one", "mov.u32 %w1, sh; @%q add.u32 %w1, %w1, 1; ld.shared.u32 %w3, [%w1];",
		 PTX_MISALIGNED},
		{"st.local.u16 off by one", "mov.u64 %d1, lo; @%q add.u64 %d1, %d1, 1; st.local.u16 [%d1], %h1;", PTX_MISALIGNED},
		{"atom.global.add.u32 off by two", "@%q add.u64 %in, %in, 2; atom.global.add.u32 %w3, [%in], 1;", PTX_MISALIGNED},
		{"ld.global at 0", "@%q mov.u64 %in, 0; ld.global.u32 %w3, [%in];", PTX_ILLEGAL_ADDRESS},
		{"ld.global near 2^64", "@%q mov.u64 %in, -4; ld.global.u32 %w3, [%in];", PTX_ILLEGAL_ADDRESS},
		{"ld.global whose offset wraps", "@%q mov.u64 %in, 0; ld.global.u64 %d3, [%in-8];", PTX_ILLEGAL_ADDRESS},
		{"st.global to host memory", "@%q mov.u64 %in, 0x7ffc00000000; st.global.u32 [%in], %w3;", PTX_ILLEGAL_ADDRESS},
		{"st.v4 across the arena's mapped end", "@%q mov.u64 %in, %idx; st.global.v4.u32 [%in], {%w3, %w3, %w3, %w3};",
		 PTX_ILLEGAL_ADDRESS},
		{"ld.shared beyond the block's", "mov.u32 %w1, sh; @%q add.u32 %w1, %w1, 4096; ld.shared.u8 %w3, [%w1];",
		 PTX_ILLEGAL_ADDRESS},
		{"ld.shared near 2^32", "mov.u32 %w1, sh; @%q mov.u32 %w1, -4; ld.shared.u32 %w3, [%w1];", PTX_ILLEGAL_ADDRESS},
		{"ld.shared.v4 across the end",
		 "mov.u32 %w1, sh; @%q add.u32 %w1, %w1, 4096; ld.shared.v4.u32 {%w3, %w4, %w5, %w6}, [%w1];",
		 PTX_ILLEGAL_ADDRESS},
		{"st.shared, 64 bits, far away", "mov.u64 %d1, sh; @%q mov.u64 %d1, 0x100000000; st.shared.u32 [%d1], %w3;",
		 PTX_ILLEGAL_ADDRESS},
		{"ld.local beyond the thread's", "mov.u64 %d1, lo; @%q add.u64 %d1, %d1, 65536; ld.local.u32 %w3, [%d1];",
		 PTX_ILLEGAL_ADDRESS},
		{"ld.local below", "mov.u64 %d1, lo; @%q mov.u64 %d1, -8; ld.local.u64 %d3, [%d1];", PTX_ILLEGAL_ADDRESS},
		{"generic, in the local window's far end",
		 "mov.u64 %d1, lo; cvta.local.u64 %d1, %d1; @%q add.u64 %d1, %d1, 0xfffffff0; ld.u32 %w3, [%d1];",
		 PTX_ILLEGAL_ADDRESS},
		{"ld.param by register beyond the parameters",
		 "mov.u64 %d1, image; @%q add.u64 %d1, %d1, 1024; ld.param.u32 %w3, [%d1];", PTX_ILLEGAL_ADDRESS},
		{"cp.async from nowhere", "mov.u32 %w1, sh; @%q mov.u64 %in, 16; cp.async.ca.shared.global [%w1], [%in], 16;",
		 PTX_ILLEGAL_ADDRESS},
	};
	u8 *in = test_alloc(SPACE_SIZE + THREADS * LOCAL_SIZE), *out = test_alloc(THREADS * 32);
	u32 *idx = test_alloc(THREADS * 4);
	struct params p = {.in = in, .out = out, .idx = idx, .mask = {FULL, FULL}};
	struct ptx_module *m;

	begin();
	for (u32 k = 0; k < COUNT(faults); k++) {
		char name[32];

		snprintf(name, sizeof(name), "k%u", k);
		kernel_head(name);
		ADD("setp.eq.u32 %%q, %%t, 37; mov.u64 %%idx, %llu;\n",
		    (unsigned long long)(uintptr_t)(softgpu_arena.base + TEST_ARENA_MAPPED * SOFTGPU_GRANULE));
		ADD("%s\nst.global.u32 [%%out], 1; ret;\n}\n", faults[k].body);
	}
	m = test_must_load(text);
	for (u32 k = 0; k < COUNT(faults); k++) {
		enum ptx_status st;
		char name[32];

		snprintf(name, sizeof(name), "k%u", k);
		st = test_launch(ptx_module_kernel(m, name), 1, THREADS, &p);
		if (!ok(st == faults[k].want && test_fault.thread[0] == 37 && test_fault.line, "%s", faults[k].what))
			printf("# status %d, thread %u, %s\n", st, test_fault.thread[0], test_fault.text);
	}
	ptx_module_free(m);
}

/* isspacep of an address of each space, cvta there and back, addresses of variables. */
static void run_spaces(void)
{
	static const char *const names[] = {"global", "shared", "local", "const", "param"};
	static const u32 want[5] = {1, 2, 4, 8, 16};
	u8 *in = test_alloc(SPACE_SIZE + THREADS * LOCAL_SIZE), *out = test_alloc(THREADS * 32);
	u32 *idx = test_alloc(THREADS * 4), bad = 0;
	struct params p = {.in = in, .out = out, .idx = idx, .mask = {FULL, 0x5555aaaa}};
	struct ptx_module *m;

	begin();
	kernel_head("k");
	ADD("mov.b64 %%d1, %%in; mov.u64 %%d2, sh; cvta.shared.u64 %%d2, %%d2; mov.u64 %%d3, lo; cvta.local.u64 %%d3, %%d3; "
	    "mov.u64 %%d4, co; "
	    "cvta.const.u64 %%d4, %%d4;\nmov.u64 %%d5, image; cvta.param.u64 %%d5, %%d5; cvta.global.u64 %%d1, %%d1; @!%%on bra "
	    "OUT;\n");
	for (u32 a = 0; a < 5; a++) {
		ADD("mov.u32 %%w3, 0;\n");
		for (u32 s = 0; s < 5; s++)
			ADD("isspacep.%s %%q, %%d%u; @%%q or.b32 %%w3, %%w3, %u;\n", names[s], a + 1, 1u << s);
		ADD("st.global.u32 [%%out+%u], %%w3;\n", 4 * a);
	}
	ADD("cvta.to.shared.u64 %%d2, %%d2; mov.u64 %%d6, sh; setp.eq.u64 %%q, %%d2, %%d6; selp.u32 %%w3, 1, 0, %%q; "
	    "cvta.to.local.u64 %%d3, "
	    "%%d3; mov.u64 %%d6, lo; setp.eq.and.u64 %%q, %%d3, %%d6, %%q; selp.u32 %%w3, 77, 0, %%q;\n");
	ADD("cvta.to.global.u64 %%d1, %%d1; setp.eq.and.u64 %%q, %%d1, %%in, %%q; cvta.to.const.u64 %%d4, %%d4; mov.u64 %%d6, "
	    "co; "
	    "setp.eq.and.u64 %%q, %%d4, %%d6, %%q; selp.u32 %%w3, 78, 0, %%q; st.global.u32 [%%out+20], %%w3;\nOUT: ret;\n}\n");
	m = test_must_load(text);
	memset(out, 0, THREADS * 32);
	bad = test_launch(ptx_module_kernel(m, "k"), 1, THREADS, &p) != PTX_OK;
	for (u32 t = 0; t < THREADS; t++)
		for (u32 a = 0; a < 6; a++)
			bad += ((u32 *)out)[8 * t + a] != (p.mask[t / 32] >> t % 32 & 1 ? (a < 5 ? want[a] : 78) : 0);
	ok(!bad, "isspacep and cvta of every space");
	ptx_module_free(m);
}

int main(void)
{
	test_arena_init();
	run_spaces();
	run_faults();
	forms_done("fault");
	return tap_done();
}
