/* SPDX-License-Identifier: MIT */
/* PTX that means harm: it gets an error or a value of its own memory, and the engine's memory stays as it was. */
#include <sys/resource.h>

#include "softgpu/ptx/tensormap.h"
#include "softgpu/ptx/texture.h"
#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

#define HEAD(params) ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(" params ")\n{\n"

static enum ptx_status run(const char *text, const void *params)
{
	struct ptx_module *m = test_must_load(text);
	enum ptx_status st = test_launch(ptx_module_kernel(m, "k"), 1, 32, params);

	ptx_module_free(m);
	return st;
}

/* ---- Tensor maps ---- */

#define TENSOR(rank, coords)                                                                                                     \
	HEAD(".param .align 64 .b8 map[128]")                                                                                    \
	".reg .b32 %r<4>, %t;\n.reg .b64 %m, %q;\n.reg .pred %p;\n.shared .align 128 .b8 s[8192];\n.shared .align 8 .b64 bar;\n" \
	"mov.u32 %t, %tid.x;\nsetp.ne.u32 %p, %t, 0;\n@%p ret;\n"                                                                \
	"mov.b64 %m, map;\ncvta.param.u64 %m, %m;\nmov.u32 %r0, s;\nmov.u32 %r1, bar;\nmov.u32 %r2, 0;\n"                        \
	"mbarrier.init.shared.b64 [%r1], 1;\nmbarrier.arrive.expect_tx.shared.b64 %q, [%r1], 8192;\n"

static const char five[] = TENSOR(5, ) "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], "
				       "[%m, {%r2, %r2, %r2, %r2, %r2}], [%r1];\nret;\n}\n";
/* The map is copied to the box's own place, where the copy writes over it. */
static const char over[] = TENSOR(
	2, ) "mov.u32 %r3, 0;\nloop:\n.reg .b64 %v, %a;\n.reg .b32 %d;\ncvt.u64.u32 %a, %r3;\nadd.u64 %a, %a, %m;\n"
	     "ld.b64 %v, [%a];\nadd.u32 %d, %r0, %r3;\nst.shared.b64 [%d], %v;\nadd.u32 %r3, %r3, 8;\n"
	     "setp.lt.u32 %p, %r3, 128;\n@%p bra loop;\ncvt.u64.u32 %a, %r0;\ncvta.shared.u64 %a, %a;\n"
	     "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%a, {%r2, %r2}], [%r1];\n"
	     "ret;\n}\n";

static void tensor_maps(void)
{
	uint8_t *from = test_alloc(65536);
	union {
		struct tensormap map;
		uint8_t bytes[128];
	} p = {.map = {.magic = TENSORMAP_MAGIC,
		       .rank = 5,
		       .address = (uint64_t)(uintptr_t)from,
		       .box = {16, 57829, 26393, 25261, 29903}, /* 2^64 + 6000 bytes */
		       .step = {1, 1, 1, 1, 1}}};

	is_int(run(five, &p), PTX_ILLEGAL_INSTRUCTION, "a box whose size wraps to 6000 bytes");
	p.map.rank = 255;
	is_int(run(five, &p), PTX_ILLEGAL_INSTRUCTION, "a map of rank 255");
	p.map.rank = 5;
	p.map.type = 255;
	is_int(run(five, &p), PTX_ILLEGAL_INSTRUCTION, "a map of an unknown type");
	/* Its own bytes are overwritten with 0xff: rank, type and swizzle, strides and box. */
	memset(from, 0xff, 65536);
	p.map = (struct tensormap){.magic = TENSORMAP_MAGIC,
				   .rank = 2,
				   .address = (uint64_t)(uintptr_t)from,
				   .stride = {128},
				   .last = {127, 63},
				   .box = {128, 64},
				   .step = {1, 1}};
	is_int(run(over, &p), PTX_OK, "a map that lies where its box goes");
}

/* ---- Textures ---- */

/* A coordinate and an offset whose sum is no whole number of periods, and too large for a double's last bits. */
static const char wrap[] = HEAD(
	".param .u64 po, .param .u64 tex, .param .f32 x, .param .u32 off") ".reg .b32 %t, %o, %r<4>;\n.reg .f32 %x;\n.reg .b64 "
									   "%p, %a;\nld.param.u64 %p, [po];\nld.param.u64 %a, "
									   "[tex];\n"
									   "ld.param.f32 %x, [x];\nld.param.u32 %o, "
									   "[off];\nmov.u32 %t, %tid.x;\nadd.u32 %o, %o, %t;\n"
									   "tex.level.1d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%a, "
									   "{%x}], 0f00000000, {%o};\n"
									   "mad.wide.u32 %p, %t, 4, %p;\nst.global.u32 [%p], "
									   "%r0;\nret;\n}\n";

static void textures(void)
{
	const uint32_t n = 3;
	uint32_t *texel = test_alloc(1 << 26), *out = test_alloc(128), bad = 0;
	struct ptx_texture t = {
		.channel = CH_U32, .channels = 1, .texel = 4, .dims = 1, .stays = 1, .normalized = 1, .nlevels = 1};
	static const uint8_t modes[] = {ADDR_WRAP, ADDR_MIRROR, ADDR_CLAMP};
	struct {
		uint32_t *out;
		uint64_t tex;
		float x;
		uint32_t off;
	} p = {.out = out};

	/* In the middle of memory of the test's own, so that a wrong texel is a wrong value. */
	memset(texel, 0xee, 1 << 26);
	texel += 1 << 23;
	for (uint32_t k = 0; k < n; k++)
		texel[k] = k;
	t.level[0] = (struct ptx_image){(uint64_t)(uintptr_t)texel, n * 4, n * 4, n, 1, 1};
	for (uint32_t mode = 0; mode < 3; mode++) {
		t.address[0] = modes[mode];
		p.tex = ptx_texture_enter(&t);
		for (int e = 20; e < 127; e++) {
			p.x = (e & 1 ? -1.0f : 1.0f) * 0x1p20f;
			for (int k = 20; k < e; k++)
				p.x *= 2;
			p.off = 0x7fffff00u - 77u * (uint32_t)e;
			if (run(wrap, &p) != PTX_OK)
				bad++;
			for (uint32_t k = 0; k < 32; k++)
				bad += out[k] >= n;
		}
		ptx_texture_leave(p.tex);
	}
	is_int(bad, 0, "texels of the texture, whatever coordinate and offset");
}

/* ---- Device-side launches ---- */

/* A piece of the kernel's heap that calls itself a prepared launch with 4096 bytes of parameters, and has room for none. */
static const char forged[] =
	".version 8.6\n.target sm_90a\n.address_size 64\n"
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
	".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
	".visible .entry child(.param .align 8 .b8 p[4096])\n{\nret;\n}\n"
	".visible .entry k(.param .u64 po, .param .u64 n)\n{\n.reg .b32 %t, %r;\n.reg .b64 %a, %o, %n;\n.reg .pred %p;\n"
	"mov.u32 %t, %tid.x;\nsetp.ne.u32 %p, %t, 0;\n@%p ret;\nld.param.u64 %o, [po];\nld.param.u64 %n, [n];\n"
	"{\n.param .b64 x;\n.param .b64 y;\nst.param.b64 [x], %n;\ncall.uni (y), malloc, (x);\nld.param.b64 %a, [y];\n}\n"
	"mov.u32 %r, 0;\nst.u32 [%a], %r;\nst.u32 [%a+28], %r;\nmov.u32 %r, 1;\nst.u32 [%a+4], %r;\nst.u32 [%a+8], %r;\n"
	"st.u32 [%a+12], %r;\nst.u32 [%a+16], %r;\nst.u32 [%a+20], %r;\nst.u32 [%a+24], %r;\nmov.u64 %n, 4096;\n"
	"st.u64 [%a+32], %n;\nadd.u64 %a, %a, 48;\nmov.u64 %n, 0;\n"
	"{\n.param .b64 x;\n.param .b64 y;\n.param .b32 z;\nst.param.b64 [x], %a;\nst.param.b64 [y], %n;\n"
	"call.uni (z), __cudaCDP2LaunchDeviceV2, (x, y);\nld.param.b32 %r, [z];\n}\nst.u32 [%o], %r;\nret;\n}\n";

static void launches(void)
{
	struct {
		int *out;
		uint64_t bytes;
	} p = {test_alloc(4), 48 + 4096};

	*p.out = -1;
	is_int(run(forged, &p), PTX_OK, "a launch of the kernel's own making");
	is_int(*p.out, 0, "with room for its parameters runs");
	p.bytes = 48;
	is_int(run(forged, &p), PTX_OK, "and without");
	is_int(*p.out, 1, "it is an invalid value");
}

/* ---- Size ---- */

/* Many registers with one value for all lanes, all live at each of as many loads: lists of them would fill the memory. */
static void many_registers(void)
{
	const unsigned n = 12000;
	char *text = malloc(n * 80 + 1000), *s = text;
	uint32_t *mem = test_alloc(4096);
	struct rusage before, after;

	for (unsigned k = 0; k < 64; k++)
		mem[k] = 1;
	s += sprintf(
		s, HEAD(".param .u64 p") ".reg .b32 %%r<%u>, %%s;\n.reg .b64 %%a;\nld.param.u64 %%a, [p];\nmov.u32 %%s, 0;\n", n);
	for (unsigned k = 0; k < n; k++)
		s += sprintf(s, "ld.global.u32 %%r%u, [%%a+%u];\n", k, k % 64 * 4);
	for (unsigned k = 0; k < n; k++)
		s += sprintf(s, "add.u32 %%s, %%s, %%r%u;\n", k);
	sprintf(s, "st.global.u32 [%%a+256], %%s;\nret;\n}\n");
	getrusage(RUSAGE_SELF, &before);
	is_int(run(text, &mem), PTX_OK, "%u live registers", n);
	getrusage(RUSAGE_SELF, &after);
	is_int(mem[64], n, "have their values");
	ok(after.ru_maxrss - before.ru_maxrss < 300 << 10, "and do not fill the memory");
	free(text);
}

int main(void)
{
	test_arena_init();
	tensor_maps();
	textures();
	launches();
	many_registers();
	return tap_done();
}
