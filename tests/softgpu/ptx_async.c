/* SPDX-License-Identifier: MIT */
/* cp.async and the mbarrier object: one thread takes a barrier through its phases, and each answer has one right value. */
#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"

/* Notes of a step: ANSWER a 32-bit register, DONE and PARITY whether a phase is over, PENDING the count in a state. */
#define ANSWER(r)   "st.global.u32 [%o], " r "; add.s64 %o, %o, 4;\n"
#define YES_NO	    "selp.u32 %v, 1, 0, %p;\n" ANSWER("%v")
#define DONE	    "mbarrier.test_wait.shared.b64 %p, [b], %s;\n" YES_NO
#define PARITY(n)   "mbarrier.test_wait.parity.shared.b64 %p, [b], " #n ";\n" YES_NO
#define PENDING	    "mbarrier.pending_count.b64 %v, %s;\n" ANSWER("%v")
#define ARRIVE	    "mbarrier.arrive.shared.b64 %s, [b];\n"
#define EXPECT(n)   "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [b], " #n ";\n"
#define COMPLETE(n) "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], " #n ";\n"
#define BYTES(name, steps)                                                                                                       \
	".visible .entry " name "()\n{\n.reg .b64 %s; .shared .align 8 .b64 b;\nmbarrier.init.shared.b64 [b], 9;\n" steps        \
	"ret;\n}\n"

static const char text[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry phases(.param .u64 po)\n{\n.reg .b32 %v; .reg .b64 %o, %s; .reg .pred %p;\n.shared .align 8 .b64 b;\n"
	"ld.param.u64 %o, [po];\n"
	/* three arrivals, the last of which is the last of its thread */
	"mbarrier.init.shared.b64 [b], 3;\n" ARRIVE PENDING ARRIVE PENDING DONE
	"mbarrier.arrive_drop.shared.b64 %s, [b];\n" PENDING DONE PARITY(0) PARITY(1)
	/* two arrivals and 16 bytes */
	"mbarrier.arrive.expect_tx.shared.b64 %s, [b], 16;\n" ARRIVE DONE COMPLETE(12) DONE COMPLETE(4) DONE PARITY(1)
	/* the same, and only one is left for the phase behind it */
	EXPECT(8) "mbarrier.arrive_drop.expect_tx.shared.b64 %s, [b], 8;\n" ARRIVE PENDING COMPLETE(8) PARITY(0) COMPLETE(8)
		PARITY(0) ARRIVE PENDING DONE
	"ret;\n}\n"
	/* 16 bytes a thread by a 32-bit address; then 4 of 16, the others zero, by a 64-bit one */
	".visible .entry copies(.param .u64 in, .param .u64 po)\n{\n.reg .b32 %t, %a, %r<4>; .reg .b64 %i, %o, %w, %d;\n"
	".shared .align 16 .b8 s[1024];\nld.param.u64 %i, [in]; ld.param.u64 %o, [po]; mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %d, %t, 16; add.s64 %i, %i, %d; mov.u32 %a, s; mad.lo.u32 %a, %t, 16, %a;\n"
	"mov.u64 %w, s; add.s64 %w, %w, %d; add.s64 %w, %w, 512; mul.wide.u32 %d, %t, 32; add.s64 %o, %o, %d;\n"
	"cp.async.cg.shared.global [%a], [%i], 16;\ncp.async.ca.shared.global [%w], [%i], 16, 4;\n"
	"cp.async.commit_group;\ncp.async.wait_group 0;\n"
	"ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%a]; st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};\n"
	"ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%w]; st.global.v4.u32 [%o+16], {%r0, %r1, %r2, %r3};\nret;\n}\n"
	/* the most bytes that may be expected, and one more, each way */
	BYTES("most", EXPECT(1048575) COMPLETE(1048575) COMPLETE(1048575)) BYTES("expects", EXPECT(1048575) EXPECT(1))
		BYTES("arrives", "mbarrier.arrive.expect_tx.shared.b64 %s, [b], 1048576;\n")
			BYTES("drops", EXPECT(-20) "mbarrier.arrive_drop.expect_tx.shared.b64 %s, [b], 0x80000000;\n")
				BYTES("completes", COMPLETE(1048575) COMPLETE(1)) BYTES("wraps", EXPECT(20) COMPLETE(0x80000000));

static struct ptx_module *m;

static void phases(void)
{
	static const struct {
		const char *what;
		uint32_t want;
	} steps[] = {
		{"pending before the first arrival", 3},
		{"pending before the second", 2},
		{"the phase of the second is over", 0},
		{"pending before the third, which drops", 1},
		{"now that phase is over", 1},
		{"the phase of parity 0 is over", 1},
		{"the phase of parity 1 is over", 0},
		{"both arrived, 16 bytes are missing: over", 0},
		{"4 bytes are missing: over", 0},
		{"all bytes are there: over", 1},
		{"the phase of parity 1 is over", 1},
		{"pending before the last arrival, the other dropped", 1},
		{"8 of 16 bytes expected at two places: over", 0},
		{"16 of 16: over", 1},
		{"one arrival is left for a phase", 1},
		{"and ends it", 1},
	};
	uint32_t *out = test_alloc(sizeof(steps) / sizeof(steps[0]) * 4);

	is_int(test_launch(ptx_module_kernel(m, "phases"), 1, 1, &out), PTX_OK, "a barrier's phases");
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++)
		is_int(out[k], steps[k].want, "step %zu: %s", k, steps[k].what);
}

static void ranges(void)
{
	static const char *const beyond[] = {"expects", "arrives", "drops", "completes", "wraps"};

	is_int(test_launch(ptx_module_kernel(m, "most"), 1, 1, NULL), PTX_OK, "the most bytes, each way");
	for (size_t k = 0; k < sizeof(beyond) / sizeof(beyond[0]); k++)
		is_int(test_launch(ptx_module_kernel(m, beyond[k]), 1, 1, NULL), PTX_ILLEGAL_INSTRUCTION, "%s beyond them",
		       beyond[k]);
}

static void copies(void)
{
	uint32_t *in = test_alloc(512), *out = test_alloc(1024), bad = 0;
	void *params[] = {in, out};

	for (uint32_t k = 0; k < 128; k++)
		in[k] = 0x01000193 * (k + 1);
	is_int(test_launch(ptx_module_kernel(m, "copies"), 1, 32, params), PTX_OK, "asynchronous copies");
	for (uint32_t t = 0; t < 32; t++)
		for (uint32_t k = 0; k < 4; k++) {
			bad += out[8 * t + k] != in[4 * t + k];
			bad += out[8 * t + 4 + k] != (k ? 0 : in[4 * t]);
		}
	is_int(bad, 0, "16 bytes, and 4 with zeros behind them");
}

int main(void)
{
	test_arena_init();
	m = test_must_load(text);
	phases();
	copies();
	ranges();
	ptx_module_free(m);
	forms_done("async");
	return tap_done();
}
