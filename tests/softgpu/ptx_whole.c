/* SPDX-License-Identifier: MIT */
/* Whole-warp code where random kernels seldom come: steps that break, faults, and what differs from launch to launch. */
#include "softgpu/ptx/texture.h"
#include "tests/softgpu/ptx_whole.h"

static const uint32_t one_warp[] = {32, 1, 1};

/* Steps that a mask or a shift breaks, and widening that wraps: what a random kernel seldom has in the right order. */
static const char *const chains[] = {
	"add.u32 %r0, %tx, 3;\nand.b32 %r0, %r0, 31;\n",
	"add.u32 %r0, %tx, 3;\nshr.u32 %r0, %r0, 5;\n",
	"and.b32 %r0, %tx, 31;\n",
	"shr.u32 %r0, %tx, 5;\n",
	"and.b32 %r0, %tx, -32;\n",
	"and.b32 %r0, %tx, 21;\n",
	"shr.u32 %r0, %tx, 4;\n",
	"shl.b32 %r0, %tx, 1;\nshr.u32 %r0, %r0, 5;\n",
	"sub.u32 %r0, 10, %tx;\ncvt.u64.u32 %rd0, %r0;\nshr.u64 %rd0, %rd0, 4;\ncvt.u32.u64 %r0, %rd0;\n",
	"add.u32 %r0, %tx, 0x7ffffff0;\nmul.wide.s32 %rd0, %r0, 3;\nshr.u64 %rd0, %rd0, 8;\ncvt.u32.u64 %r0, %rd0;\n",
	"add.u32 %r0, %tx, 0xfffffff0;\nmul.wide.u32 %rd0, %r0, 5;\nshr.u64 %rd0, %rd0, 8;\ncvt.u32.u64 %r0, %rd0;\n",
	"mul.lo.u32 %r0, %tx, 0x10000001;\n",
	"mul.lo.u32 %r0, %tx, 0x04000000;\nmad.wide.u32 %rd0, %r0, 2, 7;\nshr.u64 %rd0, %rd0, 3;\ncvt.u32.u64 %r0, %rd0;\n",
	"add.u32 %r0, %tx, 0x7ffffff0;\nsetp.lt.s32 %p0, %r0, 5;\nselp.u32 %r0, 1, 2, %p0;\n",
	"sub.u32 %r0, 7, %tx;\nsetp.gt.u32 %p0, %r0, 5;\nselp.u32 %r0, 1, 2, %p0;\n",
	"sub.u32 %r0, 20, %tx;\nsetp.eq.s32 %p0, %r0, %tx;\nselp.u32 %r0, 1, 2, %p0;\n",
	"mov.u32 %r0, %laneid;\nmul.lo.u32 %r1, %r0, 2;\nsub.u32 %r0, %r1, %r0;\n",
};

static bool compare_chain(const char *chain)
{
	static char buf[4096];
	uint32_t *out[2];
	bool same;

	snprintf(buf, sizeof(buf),
		 ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 po)\n{\n.reg .b32 %%r<3>, %%tx;\n"
		 ".reg .b64 %%rd<3>, %%o;\n.reg .pred %%p<2>;\nld.param.u64 %%o, [po];\nmov.u32 %%tx, %%tid.x;\n%s"
		 "mad.wide.u32 %%o, %%tx, 4, %%o;\nst.global.u32 [%%o], %%r0;\nret;\n}\n",
		 chain);
	for (unsigned n = 2; n-- > 0;) {
		struct ptx_module *m = test_must_load(buf);

		out[n] = test_alloc(512);
		memset(out[n], 0, 512);
		launch(ptx_module_kernel(m, "k"), (const uint32_t[]){128, 1, 1}, 1, &out[n], n == 0);
		ptx_module_free(m);
	}
	same = !memcmp(out[0], out[1], 512);
	if (!same)
		printf("# %s", chain);
	return same;
}

#define FAULTS(address)                                                                                                          \
	".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 po)\n{\n.reg .b32 %tx;\n.reg .b64 %o, "    \
	"%d;\n"                                                                                                                  \
	".reg .b32 %r<3>;\n.shared .align 4 .b8 s[64];\nld.param.u64 %o, [po];\nmov.u32 %tx, %tid.x;\n" address                  \
	"st.global.u32 [%o], %tx;\nmov.u32 %r0, s;\nmad.lo.u32 %r0, %tx, 4, %r0;\nst.shared.u32 [%r0+64], %tx;\nret;\n}\n"

/*
 * A store beyond the memory that there is: the same fault by the same thread, whatever way it was found. A block has
 * shared memory in units, so its 64 bytes end later.
 */
static void faults(const char *k)
{
	struct ptx_module *m = test_must_load(k);
	uint64_t end = (uint64_t)(uintptr_t)softgpu_arena.base + TEST_ARENA_MAPPED * SOFTGPU_GRANULE;
	uint64_t at[] = {end - 40, end - 4 * 32 - 64, 64, end - 126};
	enum ptx_status want[] = {PTX_ILLEGAL_ADDRESS, PTX_ILLEGAL_ADDRESS, PTX_ILLEGAL_ADDRESS, PTX_MISALIGNED};

	for (unsigned c = 0; c < 4; c++) {
		struct ptx_fault f[2];

		for (unsigned n = 0; n < 2; n++) {
			is_int(launch(ptx_module_kernel(m, "k"), one_warp, 1, &at[c], n == 0), want[c], "fault %u, %s form", c,
			       n ? "whole-warp" : "general");
			f[n] = test_fault;
		}
		ok(!memcmp(f[0].thread, f[1].thread, sizeof(f[0].thread)) && f[0].addr == f[1].addr && f[0].line == f[1].line &&
			   !strcmp(f[0].text, f[1].text),
		   "both name thread %u", f[0].thread[0]);
	}
	ptx_module_free(m);
}

/* Fused loads run one by one again when one of them faults. */
static void fused_fault(void)
{
	static const char k[] =
		".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u32 po)\n{\n.reg .b32 %tx, %r<3>;\n"
		".reg .f32 %f<4>;\n.shared .align 4 .b8 s[128];\nld.param.u32 %r1, [po];\nmov.u32 %tx, %laneid;\n"
		"mov.u32 %r0, s;\nmad.lo.u32 %r0, %tx, 4, %r0;\nmov.f32 %f3, 0f00000000;\n"
		"ld.shared.f32 %f1, [%r0];\nld.shared.f32 %f2, [%r1];\nfma.rn.f32 %f3, %f2, %f1, %f3;\n"
		"st.shared.f32 [%r0], %f3;\nret;\n}\n";
	struct ptx_module *m = test_must_load(k);
	uint32_t good = 64, bad = 1000;

	for (unsigned n = 0; n < 2; n++) {
		is_int(launch(ptx_module_kernel(m, "k"), one_warp, 1, &good, n == 0), PTX_OK, "a product in shared memory");
		is_int(launch(ptx_module_kernel(m, "k"), one_warp, 1, &bad, n == 0), PTX_ILLEGAL_ADDRESS,
		       "with an address outside");
		is_int(test_fault.line, 15, "at the line of its load");
	}
	ptx_module_free(m);
}

/* What a guarded fetch defines keeps its old value in the lanes that do not fetch, also a value that was kept in lane 0. */
static void guarded_list(void)
{
	static const char k[] =
		".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 po, .param .u64 tex, .param .u32 "
		"v)\n{\n"
		".reg .b32 %tx, %r<5>;\n.reg .b64 %a, %o;\n.reg .pred %p;\nld.param.u64 %o, [po];\nld.param.u64 %a, [tex];\n"
		"ld.param.u32 %r0, [v];\nmov.u32 %tx, %tid.x;\nand.b32 %r4, %tx, 3;\nsetp.eq.u32 %p, %r4, 1;\n"
		"@%p tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%a, {%r4}];\nmad.wide.u32 %o, %tx, 4, %o;\n"
		"st.global.u32 [%o], %r0;\nret;\n}\n";
	struct ptx_module *m = test_must_load(k);
	uint32_t *texel = test_alloc(16), *out = test_alloc(128);
	struct ptx_texture t = {.channel = CH_U32, .channels = 1, .texel = 4, .dims = 1, .linear_memory = 1, .nlevels = 1};
	struct {
		uint32_t *out;
		uint64_t tex;
		uint32_t v;
	} params = {.out = out, .v = 77};

	t.level[0] = (struct ptx_image){(uint64_t)(uintptr_t)texel, 16, 16, 4, 1, 1};
	texel[1] = 5;
	params.tex = ptx_texture_enter(&t);
	for (unsigned n = 0; n < 2; n++) {
		unsigned bad = 0;

		params.v += n; /* a frame may still have what was there before */
		launch(ptx_module_kernel(m, "k"), one_warp, 1, &params, n == 0);
		for (unsigned l = 0; l < 32; l++)
			bad += out[l] != (l % 4 == 1 ? 5 : params.v);
		is_int(bad, 0, "a guarded fetch, %s form", n ? "whole-warp" : "general");
	}
	ptx_texture_leave(params.tex);
	ptx_module_free(m);
}

/* What is computed once for a launch is computed anew for the next, whose frames are the same ones. */
static void hoisted(void)
{
	static const char k[] =
		".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 po, .param .u32 v)\n{\n"
		".reg .b32 %n, %c, %t, %v, %r<4>;\n.reg .b64 %o, %d;\n.reg .pred %p;\nld.param.u64 %o, [po];\n"
		"ld.param.u32 %v, [v];\nmov.u32 %n, %ntid.x;\nmov.u32 %c, %ctaid.x;\nmov.u32 %t, %tid.x;\n"
		"mad.lo.u32 %r0, %c, %n, %t;\nmul.wide.u32 %d, %r0, 4;\nmad.lo.u32 %r1, %v, %n, 7;\n"
		/* one warp leaves whole-warp code while it has hoisted values, and comes to a place with another one or the same
		 */
		"setp.lt.u32 %p, %r0, 40;\n@%p bra L;\nadd.u32 %r1, %v, 1;\nL: mul.lo.u32 %r2, %v, 3;\nadd.u32 %r3, %r1, %r2;\n"
		"add.s64 %d, %o, %d;\nst.global.u32 [%d], %r3;\nret;\n}\n";
	struct ptx_module *m = test_must_load(k);
	uint32_t *out = test_alloc(4 * 4 * 128);
	struct {
		uint32_t *out, v;
	} params = {out, 0};

	for (unsigned n = 0; n < 6; n++) {
		const uint32_t shape[] = {n & 1 ? 128 : 64, 1, 1}, blocks = 4;
		unsigned bad = 0;

		params.v = 1000 * n;
		is_int(launch(ptx_module_kernel(m, "k"), shape, blocks, &params, n == 2), PTX_OK, "launch %u", n);
		for (uint32_t t = 0; t < shape[0] * blocks; t++)
			bad += out[t] != (t < 40 ? params.v * shape[0] + 7 : params.v + 1) + 3 * params.v;
		is_int(bad, 0, "launch %u has its own values", n);
	}
	ptx_module_free(m);
}

int main(void)
{
	test_arena_init();
	for (unsigned k = 0; k < sizeof(chains) / sizeof(chains[0]); k++)
		ok(compare_chain(chains[k]), "chain %u", k);
	faults(FAULTS("mad.wide.u32 %o, %tx, 4, %o;\n"));
	faults(FAULTS("mul.wide.u32 %d, %tx, 4;\nadd.s64 %o, %o, %d;\n"));
	fused_fault();
	guarded_list();
	hoisted();
	return tap_done();
}
