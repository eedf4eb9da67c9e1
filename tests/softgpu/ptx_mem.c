/* SPDX-License-Identifier: MIT */
/* Loads and stores: every width, register, vector and state space, with all patterns of addresses, masks and faults. */
#include "tests/softgpu/ptx_cases.h"

#define THREADS	   64u
#define SPACE_SIZE 4096u
#define LOCAL_SIZE 256u

static const struct {
	const char *name;
	u32 size;
	bool is_signed;
	const char *regs; /* the registers that it may be moved to and from */
} types[] = {{"b8", 1, false, "hwd"},  {"u8", 1, false, "hwd"}, {"s8", 1, true, "hwd"}, {"b16", 2, false, "hwd"},
	     {"u16", 2, false, "hwd"}, {"s16", 2, true, "hwd"}, {"f16", 2, false, "h"}, {"b32", 4, false, "wd"},
	     {"u32", 4, false, "wd"},  {"s32", 4, true, "wd"},	{"f32", 4, false, "w"}, {"f16x2", 4, false, "w"},
	     {"b64", 8, false, "d"},   {"u64", 8, false, "d"},	{"s64", 8, true, "d"},	{"f64", 8, false, "d"}};

/* A way to reach memory: the modifier, how %d1 or %w1 becomes the address of offset %idx, and where that is. */
enum place { GLOBAL, SHARED, LOCAL, CONST, PARAM };
static const struct {
	const char *name, *mod, *address, *base;
	enum place place;
} spaces[] = {
	{"global", ".global", "add.u64 %d1, %in, %idx;", "%d1", GLOBAL},
	{"generic to global", "", "add.u64 %d1, %in, %idx;", "%d1", GLOBAL},
	{"shared, 32 bits", ".shared", "mov.u32 %w1, sh; cvt.u32.u64 %w2, %idx; add.u32 %w1, %w1, %w2;", "%w1", SHARED},
	{"shared::cta, 64 bits", ".shared::cta", "mov.u64 %d1, sh; add.u64 %d1, %d1, %idx;", "%d1", SHARED},
	{"generic to shared", "", "mov.u64 %d1, sh; cvta.shared.u64 %d1, %d1; add.u64 %d1, %d1, %idx;", "%d1", SHARED},
	{"local", ".local", "mov.u64 %d1, lo; add.u64 %d1, %d1, %idx;", "%d1", LOCAL},
	{"local, 32 bits", ".local", "mov.u32 %w1, lo; cvt.u32.u64 %w2, %idx; add.u32 %w1, %w1, %w2;", "%w1", LOCAL},
	{"generic to local", "", "mov.u64 %d1, lo; cvta.local.u64 %d1, %d1; add.u64 %d1, %d1, %idx;", "%d1", LOCAL},
	{"const", ".const", "mov.u64 %d1, co; add.u64 %d1, %d1, %idx;", "%d1", CONST},
	{"param by register", ".param", "mov.u64 %d1, image; add.u64 %d1, %d1, %idx;", "%d1", PARAM},
	{"generic to param", "", "mov.u64 %d1, image; cvta.param.u64 %d1, %d1; add.u64 %d1, %d1, %idx;", "%d1", PARAM},
};

/* The kernel's parameters; image is what .param loads read. */
struct params {
	u8 *in, *out;
	u32 *idx;
	u32 mask[2];
	_Alignas(32) u8 image[LOCAL_SIZE];
};

static char text[1 << 20];
static size_t at;
#define ADD(...) (at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__))

static void begin(void)
{
	at = 0;
	ADD(".version 9.0\n.target sm_100\n.address_size 64\n.const .align 32 .b8 co[%u];\n", SPACE_SIZE);
}

/* %in, %out (the thread's own 32 bytes), %idx and %on; the thread's share of shared memory and its local memory are filled. */
static void kernel_head(const char *name)
{
	ADD(".visible .entry %s(.param .u64 in, .param .u64 out, .param .u64 idx, .param .u32 m0, .param .u32 m1, .param .align "
	    "32 .b8 "
	    "image[%u])\n{\n.shared .align 32 .b8 sh[%u]; .local .align 32 .b8 lo[%u];\n",
	    name, LOCAL_SIZE, SPACE_SIZE, LOCAL_SIZE);
	ADD(".reg .b16 %%h<8>; .reg .b32 %%w<8>, %%t, %%m, %%x, %%k; .reg .b64 %%d<8>, %%in, %%out, %%idx, %%a, %%b; .reg .pred "
	    "%%on, %%q;\n");
	ADD("mov.u32 %%t, %%tid.x; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; ld.param.u64 %%a, [idx];\n");
	ADD("mul.wide.u32 %%b, %%t, 4; add.u64 %%a, %%a, %%b; ld.global.u32 %%x, [%%a]; cvt.u64.u32 %%idx, %%x;\n");
	ADD("mul.wide.u32 %%b, %%t, 32; add.u64 %%out, %%out, %%b;\n");
	ADD("ld.param.u32 %%m, [m0]; setp.ge.u32 %%q, %%t, 32; @%%q ld.param.u32 %%m, [m1];\n");
	ADD("mov.u32 %%x, %%laneid; shr.u32 %%m, %%m, %%x; and.b32 %%m, %%m, 1; setp.ne.u32 %%on, %%m, 0;\n");
	ADD("mul.lo.u32 %%x, %%t, %u; cvt.u64.u32 %%b, %%x; add.u64 %%a, %%in, %%b; mov.u32 %%w1, sh; add.u32 %%w1, %%w1, %%x; "
	    "mov.u32 %%k, "
	    "0;\n",
	    SPACE_SIZE / THREADS);
	ADD("FS: ld.global.b32 %%x, [%%a]; st.shared.b32 [%%w1], %%x; add.u64 %%a, %%a, 4; add.u32 %%w1, %%w1, 4; add.u32 %%k, "
	    "%%k, 4;\n");
	ADD("setp.lt.u32 %%q, %%k, %u; @%%q bra FS;\n", SPACE_SIZE / THREADS);
	ADD("mov.u64 %%b, lo; mov.b64 %%a, %%in; mov.u32 %%k, 0; mul.lo.u32 %%w2, %%t, 0x01010101;\n");
	ADD("FL: ld.global.b32 %%x, [%%a]; xor.b32 %%x, %%x, %%w2; st.local.b32 [%%b], %%x; add.u64 %%a, %%a, 4; add.u64 %%b, "
	    "%%b, 4; add.u32 "
	    "%%k, %%k, 4;\n");
	ADD("setp.lt.u32 %%q, %%k, %u; @%%q bra FL;\nbar.sync 0;\n", LOCAL_SIZE);
}

static const char *op_name(char *buf, size_t size, bool store, const char *mod, u32 n, const char *type)
{
	snprintf(buf, size, "%s%s%s.%s", store ? "st" : "ld", mod, n == 1 ? "" : n == 2 ? ".v2" : ".v4", type);
	return buf;
}

/* Registers 3 … of class @r as an operand. */
static const char *regs(char *buf, size_t size, char r, u32 n)
{
	snprintf(buf, size, n == 1 ? "%%%c3" : n == 2 ? "{%%%c3, %%%c4}" : "{%%%c3, %%%c4, %%%c5, %%%c6}", r, r, r, r);
	return buf;
}

static u32 reg_bytes(char r)
{
	return r == 'h' ? 2 : r == 'w' ? 4 : 8;
}

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
	static const u32 want[5] = {1 | 8, 2, 4, 1 | 8, 16}; /* constants lie in global memory */
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
	run_spaces();
	run_faults();
	forms_done("mem");
	return tap_done();
}
