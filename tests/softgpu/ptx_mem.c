/* SPDX-License-Identifier: MIT */
/* Loads and stores: every width, register, vector and state space, with all patterns of addresses and masks. */
#include "tests/softgpu/ptx_mem.h"

static void move_text(u32 sp, u32 t, char r, u32 n, bool store, u32 k)
{
	char name[32], op[64], list[64];
	/* with and without a constant offset; a 32-bit address in local memory is widened before it is added */
	s32 imm = sp % 2 || !strcmp(spaces[sp].name, "local, 32 bits") ? 0 : (s32)(types[t].size * n);

	snprintf(name, sizeof(name), "k%u", k);
	kernel_head(name);
	for (u32 e = 0; e < n; e++)
		ADD("ld.global.b%u %%%c%u, [%%out+%u];\n", 8 * reg_bytes(r), r, 3 + e, 8 * e);
	ADD("%s sub.u64 %%d1, %%d1, %d; sub.u32 %%w1, %%w1, %d;\n", spaces[sp].address, imm, imm);
	op_name(op, sizeof(op), store, spaces[sp].mod, n, types[t].name);
	regs(list, sizeof(list), r, n);
	if (k & 1)
		ADD("@!%%on bra OUT;\n");
	if (store)
		ADD("%s%s [%s+%d], %s;\n", k & 1 ? "" : "@%on ", op, spaces[sp].base, imm, list);
	else
		ADD("%s%s %s, [%s+%d];\n", k & 1 ? "" : "@%on ", op, list, spaces[sp].base, imm);
	if (k & 1)
		ADD("OUT:\n");
	if (!store) {
		for (u32 e = 0; e < n; e++)
			ADD("st.global.b%u [%%out+%u], %%%c%u;\n", 8 * reg_bytes(r), 8 * e, r, 3 + e);
	} else if (spaces[sp].place == SHARED) { /* back to where it came from */
		ADD("bar.sync 0; mul.lo.u32 %%x, %%t, %u; cvt.u64.u32 %%b, %%x; add.u64 %%a, %%in, %%b; mov.u32 %%w1, sh; "
		    "add.u32 %%w1, %%w1, "
		    "%%x; mov.u32 %%k, 0;\n",
		    SPACE_SIZE / THREADS);
		ADD("BS: ld.shared.b32 %%x, [%%w1]; st.global.b32 [%%a], %%x; add.u64 %%a, %%a, 4; add.u32 %%w1, %%w1, 4; "
		    "add.u32 %%k, %%k, 4; "
		    "setp.lt.u32 %%q, %%k, %u; @%%q bra BS;\n",
		    SPACE_SIZE / THREADS);
	} else if (spaces[sp].place == LOCAL) { /* each lane's own, behind the input */
		ADD("mul.lo.u32 %%x, %%t, %u; cvt.u64.u32 %%b, %%x; add.u64 %%a, %%in, %%b; add.u64 %%a, %%a, %u; mov.u64 %%b, "
		    "lo; mov.u32 "
		    "%%k, 0;\n",
		    LOCAL_SIZE, SPACE_SIZE);
		ADD("BL: ld.local.b32 %%x, [%%b]; st.global.b32 [%%a], %%x; add.u64 %%a, %%a, 4; add.u64 %%b, %%b, 4; add.u32 "
		    "%%k, %%k, 4; "
		    "setp.lt.u32 %%q, %%k, %u; @%%q bra BL;\n",
		    LOCAL_SIZE);
	}
	ADD("ret;\n}\n");
}

/* Byte offsets of the threads in units of one access; stores need one each. */
static u32 slot(u32 pattern, u32 t, u32 slots, bool own)
{
	switch (pattern) {
	case 0:
		return t % slots;
	case 1:
		return own ? (THREADS - 1 - t) % slots : 3;
	case 2:
		return (THREADS - 1 - t) % slots;
	case 3:
		return own ? (t * 37 + 11) % THREADS % slots : (u32)rng() % slots;
	default: /* half of a warp in order, half not */
		return t & 16 ? (t ^ 5) % slots : t % slots;
	}
}

static u64 extend(const u8 *p, u32 t)
{
	u64 v = 0;

	memcpy(&v, p, types[t].size);
	return types[t].is_signed && types[t].size < 8 && v >> (8 * types[t].size - 1) & 1 ? v | ~0ull << 8 * types[t].size : v;
}

static void run_move(struct ptx_module *m, u32 sp, u32 t, char r, u32 n, bool store, u32 k)
{
	static u8 image[SPACE_SIZE + THREADS * LOCAL_SIZE], old[THREADS][32];
	u8 *in = test_alloc(sizeof(image)), *out = test_alloc(THREADS * 32), *co;
	u32 *idx = test_alloc(THREADS * 4), size = types[t].size * n, bad = 0, rb = reg_bytes(r);
	struct params p = {.in = in, .out = out, .idx = idx};
	enum place place = spaces[sp].place;
	u32 room = place == LOCAL || place == PARAM ? LOCAL_SIZE : SPACE_SIZE;
	u64 addr, mark = test_used;
	char name[64];
	size_t bytes;

	if (!ptx_module_global(m, "co", &addr, &bytes))
		abort();
	co = (u8 *)(uintptr_t)addr;
	for (u32 pattern = 0; pattern < 5; pattern++) {
		for (u32 b = 0; b < SPACE_SIZE; b++)
			in[b] = (u8)(rng() >> 20);
		memcpy(co, in, SPACE_SIZE);
		memcpy(p.image, in, LOCAL_SIZE);
		memcpy(image, in, SPACE_SIZE);
		for (u32 l = 0; l < THREADS; l++)
			for (u32 b = 0; b < LOCAL_SIZE; b++)
				image[SPACE_SIZE + l * LOCAL_SIZE + b] = in[SPACE_SIZE + l * LOCAL_SIZE + b] = in[b] ^ (u8)l;
		for (u32 l = 0; l < THREADS; l++) {
			idx[l] = slot(pattern, l, room / size, store) * size;
			for (u32 b = 0; b < 32; b++)
				out[l * 32 + b] = old[l][b] = (u8)(rng() >> 20);
		}
		p.mask[0] = pattern == 0 ? FULL : pattern == 4 ? 1u << (rng() >> 20 & 31) : (u32)(rng() >> 16) | 0xffff0000;
		p.mask[1] = pattern <= 2 ? FULL : (u32)(rng() >> 16);
		snprintf(name, sizeof(name), "k%u", k);
		if (test_launch(ptx_module_kernel(m, name), 1, THREADS, &p) != PTX_OK) {
			printf("# %s\n", test_fault.text);
			bad++;
			continue;
		}
		for (u32 l = 0; l < THREADS; l++) {
			u8 *at_mem = image + (place == LOCAL ? SPACE_SIZE + l * LOCAL_SIZE : 0) + idx[l];

			if (!(p.mask[l / 32] >> l % 32 & 1))
				continue;
			for (u32 e = 0; e < n; e++) {
				u64 v = extend(at_mem + e * types[t].size, t);

				if (store)
					memcpy(at_mem + e * types[t].size, old[l] + 8 * e, types[t].size);
				else
					memcpy(old[l] + 8 * e, &v, rb);
			}
		}
		bad += !!memcmp(out, old, sizeof(old));
		if (store)
			bad += !!memcmp(in, image, place == LOCAL ? sizeof(image) : SPACE_SIZE);
	}
	op_name(name, sizeof(name), store, spaces[sp].mod, n, types[t].name);
	ok(!bad, "%s, %u-bit register, %s", name, 8 * rb, spaces[sp].name);
	form_ran(name);
	test_used = mark;
}

static void run_space(u32 sp, bool store)
{
	u32 k = 0;

	for (int run = 0; run < 2; run++) {
		struct ptx_module *m = NULL;

		if (run)
			m = test_must_load(text);
		else
			begin();
		k = 0;
		for (u32 t = 0; t < COUNT(types); t++)
			for (const char *r = types[t].regs; *r; r++)
				for (u32 n = 1; n <= 4; n *= 2, k++) {
					if (run)
						run_move(m, sp, t, *r, n, store, k);
					else
						move_text(sp, t, *r, n, store, k);
				}
		ptx_module_free(m);
	}
}

/* One instruction in the middle of a kernel with the default pattern: hints that change nothing. */
static void run_hints(void)
{
	static const char *const loads[] = {"ld.global.ca.u32",
					    "ld.global.cg.u32",
					    "ld.global.cs.u32",
					    "ld.global.lu.u32",
					    "ld.global.cv.u32",
					    "ld.global.nc.u32",
					    "ld.volatile.global.u32",
					    "ld.weak.global.u32",
					    "ld.relaxed.gpu.global.u32",
					    "ld.relaxed.cta.u32",
					    "ld.acquire.gpu.u32",
					    "ld.acquire.sys.global.u32",
					    "ld.relaxed.cluster.global.u32",
					    "ld.u32",
					    "ld.global.nc.L1::evict_last.u32",
					    "ld.global.L2::128B.u32",
					    "ldu.global.u32",
					    "ld.mmio.relaxed.sys.global.u32"};
	static const char *const stores[] = {"st.global.wb.u32",
					     "st.global.cg.u32",
					     "st.global.cs.u32",
					     "st.global.wt.u32",
					     "st.volatile.global.u32",
					     "st.weak.global.u32",
					     "st.relaxed.gpu.global.u32",
					     "st.release.gpu.u32",
					     "st.release.sys.global.u32",
					     "st.u32",
					     "st.global.L1::no_allocate.u32",
					     "st.mmio.relaxed.sys.global.u32"};
	static const char *const others[] = {"membar.cta;",
					     "membar.gl;",
					     "membar.sys;",
					     "fence.sc.gpu;",
					     "fence.acq_rel.sys;",
					     "fence.acq_rel.cta;",
					     "fence.proxy.alias;",
					     "prefetch.global.L1 [%in];",
					     "prefetch.global.L2 [%d2];",
					     "prefetch.L1 [%d2];",
					     "prefetchu.L1 [%d2];",
					     "prefetch.global.L2::evict_last [%in];",
					     "discard.global.L2 [%in], 128;",
					     "applypriority.global.L2::evict_normal [%in], 128;"};
	u8 *in = test_alloc(SPACE_SIZE + THREADS * LOCAL_SIZE), *out = test_alloc(THREADS * 32);
	u32 *idx = test_alloc(THREADS * 4);
	struct params p = {.in = in, .out = out, .idx = idx, .mask = {FULL, 0x0ff0ff0f}};
	struct ptx_module *m;
	u32 n = 0, bad;

	begin();
	for (u32 k = 0; k < COUNT(loads) + COUNT(stores) + COUNT(others); k++) {
		char name[32];

		snprintf(name, sizeof(name), "k%u", k);
		kernel_head(name);
		ADD("add.u64 %%d1, %%in, %%idx; mov.u64 %%d2, 1234567; mov.u32 %%w3, %u; @!%%on bra OUT;\n", k);
		if (k < COUNT(loads))
			ADD("%s %%w3, [%%d1]; OUT: st.global.u32 [%%out], %%w3;\n", loads[k]);
		else if (k < COUNT(loads) + COUNT(stores))
			ADD("%s [%%out], %%w3; OUT:\n", stores[k - COUNT(loads)]);
		else
			ADD("%s st.global.u32 [%%out], %%w3; OUT:\n", others[k - COUNT(loads) - COUNT(stores)]);
		ADD("ret;\n}\n");
	}
	m = test_must_load(text);
	for (u32 k = 0; k < COUNT(loads) + COUNT(stores) + COUNT(others); k++) {
		const char *op = k < COUNT(loads)		    ? loads[k]
				 : k < COUNT(loads) + COUNT(stores) ? stores[k - COUNT(loads)]
								    : others[k - COUNT(loads) - COUNT(stores)];
		char name[32];

		snprintf(name, sizeof(name), "k%u", k);
		for (u32 t = 0; t < THREADS; t++) {
			idx[t] = (t * 7 % THREADS) * 4;
			((u32 *)in)[t] = t * 1000 + 7;
			((u32 *)out)[8 * t] = 99;
		}
		bad = test_launch(ptx_module_kernel(m, name), 1, THREADS, &p) != PTX_OK;
		for (u32 t = 0; t < THREADS; t++) {
			bool on = p.mask[t / 32] >> t % 32 & 1;
			u32 want = on ? (k < COUNT(loads) ? idx[t] / 4 * 1000 + 7 : k) : k < COUNT(loads) ? k : 99;

			bad += ((u32 *)out)[8 * t] != want;
		}
		ok(!bad, "%s", op);
		form_ran(op);
		n++;
	}
	ptx_module_free(m);
}

/* Parameters and results of device functions: every width through .param variables. */
static void run_calls(void)
{
	u8 *in = test_alloc(SPACE_SIZE + THREADS * LOCAL_SIZE), *out = test_alloc(THREADS * 32);
	u32 *idx = test_alloc(THREADS * 4);
	struct params p = {.in = in, .out = out, .idx = idx, .mask = {0xffff0ff1, FULL}};

	for (u32 t = 0; t < COUNT(types); t++)
		for (const char *r = types[t].regs; *r; r++)
			for (u32 n = 1; n <= 4; n *= 2) {
				char ld[64], st[64], list[64];
				u32 size = types[t].size * n, bad, rb = reg_bytes(*r);
				struct ptx_module *m;

				regs(list, sizeof(list), *r, n);
				op_name(ld, sizeof(ld), false, ".param", n, types[t].name);
				op_name(st, sizeof(st), true, ".param", n, types[t].name);
				begin();
				ADD(".func (.param .align 32 .b8 r[64]) f(.param .align 32 .b8 x[64]) { .reg .b16 %%h<8>; .reg "
				    ".b32 %%w<8>; .reg .b64 "
				    "%%d<8>;\n%s %s, [x+%u]; %s [r+%u], %s; ret; }\n",
				    ld, list, size, st, size, list);
				kernel_head("k");
				for (u32 e = 0; e < n; e++)
					ADD("ld.global.b%u %%%c%u, [%%in+%u];\n", 8 * rb, *r, 3 + e, 8 * e);
				ADD("{ .param .align 32 .b8 a[64]; .param .align 32 .b8 b[64];\n");
				ADD("%s [a+%u], %s; @%%on call (b), f, (a);\n", st, size, list);
				for (u32 e = 0; e < n; e++)
					ADD("ld.global.b%u %%%c%u, [%%out+%u];\n", 8 * rb, *r, 3 + e, 8 * e);
				ADD("@%%on %s %s, [b+%u]; }\n", ld, list, size);
				for (u32 e = 0; e < n; e++)
					ADD("st.global.b%u [%%out+%u], %%%c%u;\n", 8 * rb, 8 * e, *r, 3 + e);
				ADD("ret;\n}\n");
				m = test_must_load(text);
				for (u32 b = 0; b < 32; b++)
					in[b] = (u8)(rng() >> 20);
				memset(out, 0x5a, THREADS * 32);
				bad = test_launch(ptx_module_kernel(m, "k"), 1, THREADS, &p) != PTX_OK;
				for (u32 l = 0; l < THREADS; l++)
					for (u32 e = 0; e < n; e++) {
						u64 v = extend(in + 8 * e, t);
						static const u8 old[8] = {0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a, 0x5a};

						bad += !!memcmp(out + 32 * l + 8 * e,
								p.mask[l / 32] >> l % 32 & 1 ? (u8 *)&v : old, rb);
					}
				ok(!bad, "%s and %s, %u-bit register, to a function and back", st, ld, 8 * rb);
				form_ran(st);
				form_ran(ld);
				ptx_module_free(m);
			}
}

/* Kernel parameters by name, all widths. */
static void run_params(void)
{
	u8 *in = test_alloc(SPACE_SIZE + THREADS * LOCAL_SIZE), *out = test_alloc(THREADS * 32);
	u32 *idx = test_alloc(THREADS * 4), k = 0;
	struct params p = {.in = in, .out = out, .idx = idx, .mask = {FULL, 0xc0ffee11}};
	struct ptx_module *m = NULL;

	for (int run = 0; run < 2; run++) {
		if (run)
			m = test_must_load(text);
		else
			begin();
		k = 0;
		for (u32 t = 0; t < COUNT(types); t++)
			for (const char *r = types[t].regs; *r; r++)
				for (u32 n = 1; n <= 4; n *= 2, k++) {
					char name[32], ld[64], list[64];
					u32 bad;

					snprintf(name, sizeof(name), "k%u", k);
					op_name(ld, sizeof(ld), false, ".param", n, types[t].name);
					regs(list, sizeof(list), *r, n);
					if (!run) {
						kernel_head(name);
						for (u32 e = 0; e < n; e++)
							ADD("mov.b%u %%%c%u, 123;\n", 8 * reg_bytes(*r), *r, 3 + e);
						ADD("@!%%on bra OUT; %s %s, [image+%u]; OUT:\n", ld, list, 32);
						for (u32 e = 0; e < n; e++)
							ADD("st.global.b%u [%%out+%u], %%%c%u;\n", 8 * reg_bytes(*r), 8 * e, *r,
							    3 + e);
						ADD("ret;\n}\n");
						continue;
					}
					for (u32 b = 0; b < 32; b++)
						p.image[32 + b] = (u8)(rng() >> 20);
					bad = test_launch(ptx_module_kernel(m, name), 1, THREADS, &p) != PTX_OK;
					for (u32 l = 0; l < THREADS; l++)
						for (u32 e = 0; e < n; e++) {
							u64 v = p.mask[l / 32] >> l % 32 & 1
									? extend(p.image + 32 + e * types[t].size, t)
									: 123;

							bad += !!memcmp(out + 32 * l + 8 * e, &v, reg_bytes(*r));
						}
					ok(!bad, "%s of a kernel parameter, %u-bit register", ld, 8 * reg_bytes(*r));
					form_ran(ld);
				}
	}
	ptx_module_free(m);
}

int main(void)
{
	test_arena_init();
	for (u32 sp = 0; sp < COUNT(spaces); sp++) {
		run_space(sp, false);
		if (spaces[sp].place != CONST && spaces[sp].place != PARAM)
			run_space(sp, true);
	}
	run_hints();
	run_params();
	run_calls();
	forms_done("mem");
	return tap_done();
}
