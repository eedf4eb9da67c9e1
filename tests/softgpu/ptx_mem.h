/* SPDX-License-Identifier: MIT */
/* What the tests of loads, stores and their faults share: types, ways to an address, the head of their kernels. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_MEM_H
#define RGPU_TESTS_SOFTGPU_PTX_MEM_H

#include "tests/softgpu/ptx_cases.h"

#define THREADS	   64u
#define SPACE_SIZE 4096u
#define LOCAL_SIZE 256u

static __attribute__((unused)) const struct {
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
static __attribute__((unused)) const struct {
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

static __attribute__((unused)) void begin(void)
{
	at = 0;
	ADD(".version 9.0\n.target sm_100\n.address_size 64\n.const .align 32 .b8 co[%u];\n", SPACE_SIZE);
}

/* %in, %out (the thread's own 32 bytes), %idx and %on; the thread's share of shared memory and its local memory are filled. */
static __attribute__((unused)) void kernel_head(const char *name)
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

static __attribute__((unused)) const char *op_name(char *buf, size_t size, bool store, const char *mod, u32 n, const char *type)
{
	snprintf(buf, size, "%s%s%s.%s", store ? "st" : "ld", mod, n == 1 ? "" : n == 2 ? ".v2" : ".v4", type);
	return buf;
}

/* Registers 3 … of class @r as an operand. */
static __attribute__((unused)) const char *regs(char *buf, size_t size, char r, u32 n)
{
	snprintf(buf, size, n == 1 ? "%%%c3" : n == 2 ? "{%%%c3, %%%c4}" : "{%%%c3, %%%c4, %%%c5, %%%c6}", r, r, r, r);
	return buf;
}

static __attribute__((unused)) u32 reg_bytes(char r)
{
	return r == 'h' ? 2 : r == 'w' ? 4 : 8;
}

#endif
