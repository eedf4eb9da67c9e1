/* SPDX-License-Identifier: MIT */
/*
 * The whole-warp form of kernels against the general form: random kernels run in both, and every byte of memory that they
 * leave must be the same. RGPU_FUZZ_SEEDS=N runs N kernels, RGPU_FUZZ_FIRST=S begins with seed S, and with
 * RGPU_FUZZ_SHOW=1 the PTX of each kernel is printed.
 */
#include <stdarg.h>

#include "tests/softgpu/ptx_whole.h"

#define NINT	 10u
#define NLONG	 6u
#define NFLOAT	 5u
#define NPRED	 5u
#define TABLE	 1024u /* words of `in`, and of the table in shared memory (its first quarter) */
#define OUT	 64u   /* words a thread */
#define MAX_THRD 1024u

static uint64_t rng;
static char ptx[1u << 17];
static size_t at;
static unsigned label, depth, budget;
static bool may_exit, may_sync, full_warps, long_loops;

static unsigned rnd(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)((rng * 0x2545f4914f6cdd1dull >> 33) % n);
}

__attribute__((format(printf, 1, 2))) static void put(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	at += (size_t)vsnprintf(ptx + at, sizeof(ptx) - at, fmt, ap);
	va_end(ap);
	if (at >= sizeof(ptx))
		abort();
}

#define PICK(...)                                                                                                                \
	({                                                                                                                       \
		static const char *const list_[] = {__VA_ARGS__};                                                                \
		list_[rnd(sizeof(list_) / sizeof(list_[0]))];                                                                    \
	})

/* Operands. Strings live for one statement. */
__attribute__((format(printf, 1, 2))) static const char *text(const char *fmt, ...)
{
	static char buf[16][32];
	static unsigned k;
	char *s = buf[k++ % 16];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s, sizeof(buf[0]), fmt, ap);
	va_end(ap);
	return s;
}

static const char *r(void)
{
	return text("%%r%u", rnd(NINT));
}

static const char *rd(void)
{
	return text("%%rd%u", rnd(NLONG));
}

static const char *f(void)
{
	return text("%%f%u", rnd(NFLOAT));
}

static const char *p(void)
{
	return text("%%p%u", rnd(NPRED));
}

/* A register or a constant. */
static const char *rc(void)
{
	switch (rnd(6)) {
	case 0:
		return text("%d", (int)rnd(9) - 2);
	case 1:
		return PICK("31", "-32", "32", "255", "0x7fffffff", "-2147483648", "65535", "5");
	default:
		return r();
	}
}

static const char *guard(void)
{
	return rnd(8) ? "" : text("@%s%s ", rnd(2) ? "!" : "", p());
}

static void int_op(void)
{
	const char *g = guard();

	switch (rnd(16)) {
	case 0:
	case 1:
	case 2:
		put("%s%s %s, %s, %s;\n", g, PICK("add.s32", "sub.s32", "add.u32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32"),
		    r(), r(), rc());
		break;
	case 3:
		if (rnd(3))
			put("%s%s %s, %s, %u;\n", g, PICK("shl.b32", "shr.u32", "shr.s32"), r(), r(), rnd(34));
		else /* warp and lane of a thread's number */
			put("%s%s;\n", g,
			    text(PICK("shr.u32 %s, %s, 5", "and.b32 %s, %s, 31", "and.b32 %s, %s, -32", "shr.u32 %s, %s, 6",
				      "and.b32 %s, %s, 63"),
				 r(), rnd(2) ? r() : PICK("%tx", "%tl", "%tt")));
		break;
	case 4:
		put("%smad.lo.s32 %s, %s, %s, %s;\n", g, r(), r(), rc(), rc());
		break;
	case 5:
		put("%s%s %s, %s, %s;\n", g, PICK("min.s32", "max.u32", "min.u32", "mul.hi.s32", "mul.hi.u32"), r(), r(), rc());
		break;
	case 6:
		put("%s%s %s, %s;\n", g,
		    PICK("neg.s32", "not.b32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "mov.u32", "cvt.u32.u8",
			 "cvt.s32.s8"),
		    r(), r());
		break;
	case 7:
		put("%s%s %s, %s, %s;\n", g, PICK("div.u32", "rem.u32", "div.s32", "rem.s32"), r(), r(), rc());
		break;
	case 8:
		put("%s%s %s, %s, %s;\n", g, PICK("mul.wide.s32", "mul.wide.u32"), rd(), r(), rc());
		break;
	case 9:
		put("%s%s %s, %s, %s, %s;\n", g, PICK("mad.wide.s32", "mad.wide.u32"), rd(), r(), rc(), rd());
		break;
	case 10:
		put("%s%s %s, %s, %s;\n", g, PICK("add.s64", "sub.s64", "mul.lo.s64", "and.b64", "xor.b64"), rd(), rd(), rd());
		break;
	case 11:
		put("%s%s %s, %s, %d;\n", g, PICK("add.s64", "shl.b64", "mul.lo.s64", "shr.u64"), rd(), rd(), (int)rnd(40));
		break;
	case 12:
		put("%s%s %s, %s;\n", g, PICK("cvt.u64.u32", "cvt.s64.s32"), rd(), r());
		break;
	case 13:
		put("%scvt.u32.u64 %s, %s;\n", g, r(), rd());
		break;
	case 14:
		if (rnd(3))
			put("%s%s %s, %s, %s, %s;\n", g, PICK("bfe.u32", "prmt.b32", "shf.l.wrap.b32"), r(), r(), rc(), r());
		else
			put("%slop3.b32 %s, %s, %s, %s, %u;\n", g, r(), r(), rc(), r(), rnd(256));
		break;
	default:
		put("%sselp.b32 %s, %s, %s, %s;\n", g, r(), rc(), rc(), p());
		break;
	}
}

/* Sizes, carries and pairs that the analysis has no rule for, beside those that it has. */
static void rare_op(void)
{
	const char *g = guard();

	switch (rnd(13)) {
	case 10: /* the same in all warps, or a thread's number in the grid */
		put("%s%s %s, %s;\n", g, "mov.u32", r(), PICK("%ntid.x", "%nctaid.x", "%ctaid.x", "%tid.x"));
		break;
	case 11:
		put("ld.param.u32 %%t0, [pn];\n%s%s %s, %%t0, %s;\n", g, PICK("add.u32", "mul.lo.u32", "xor.b32"), r(),
		    PICK("3", "-1", "%t0"));
		break;
	case 12:
		put("mov.u32 %%t0, %%%s.x;\nmov.u32 %%t1, %%%s.x;\nmad.lo.u32 %s, %%t%u, %s, %%t1;\n", PICK("ctaid", "tid"),
		    PICK("tid", "ctaid"), r(), rnd(4) ? 0 : 1, rc());
		break;
	case 0:
		put("add.cc.u32 %s, %s, %s;\naddc.u32 %s, %s, %s;\n", r(), r(), rc(), r(), r(), rc());
		break;
	case 1:
		put("%smov.b64 %s, {%s, %s};\n", g, rd(), r(), r());
		break;
	case 2:
		put("%smov.b64 {%%r%u, %%r%u}, %s;\n", g, rnd(NINT / 2), NINT / 2 + rnd(NINT / 2), rd());
		break;
	case 3:
		put("%scvt.u16.u32 %%h%u, %s;\n", g, rnd(3), r());
		break;
	case 4:
		put("%s%s %%h%u, %%h%u, %%h%u;\n", g, PICK("add.s16", "mul.lo.s16", "min.u16", "and.b16"), rnd(3), rnd(3),
		    rnd(3));
		break;
	case 5:
		put("%s%s %s, %%h%u;\n", g, PICK("cvt.u32.u16", "cvt.s32.s16"), r(), rnd(3));
		break;
	case 6:
		put("%sselp.b64 %s, %s, %s, %s;\nselp.b16 %%h%u, %%h%u, %%h%u, %s;\n", g, rd(), rd(), rd(), p(), rnd(3), rnd(3),
		    rnd(3), p());
		break;
	case 7:
		put("%smul.wide.u16 %s, %%h%u, %%h%u;\n", g, r(), rnd(3), rnd(3));
		break;
	case 8:
		put("mov.u64 %%td0, buf;\n%sst.local.v2.u32 [%%td0+%u], {%s, %s};\nld.local.u64 %s, [%%td0+%u];\n", g, 8 * rnd(8),
		    r(), r(), rd(), 8 * rnd(8));
		break;
	default:
		put("%ssetp.%s.u16 %s, %%h%u, %%h%u;\n", g, PICK("lt", "eq", "ge"), p(), rnd(3), rnd(3));
		break;
	}
}

static void float_op(void)
{
	const char *g = guard();

	switch (rnd(6)) {
	case 0:
		put("%s%s %s, %s, %s;\n", g, PICK("add.f32", "sub.f32", "mul.f32", "min.f32", "max.f32"), f(), f(), f());
		break;
	case 1:
		put("%sfma.rn.f32 %s, %s, %s, %s;\n", g, f(), f(), f(), f());
		break;
	case 2:
		put("%s%s %s, %s;\n", g, PICK("cvt.rn.f32.s32", "cvt.rn.f32.u32"), f(), r());
		break;
	case 3:
		put("%scvt.rzi.s32.f32 %s, %s;\n", g, r(), f());
		break;
	case 4:
		put("%smul.f32 %s, %s, 0f3E800000;\n", g, f(), f());
		break;
	default:
		put("%sselp.f32 %s, %s, %s, %s;\n", g, f(), f(), f(), p());
		break;
	}
}

static void pred_op(void)
{
	switch (rnd(5)) {
	case 0:
		put("%s %s, %s, %s;\n", PICK("and.pred", "or.pred", "xor.pred"), p(), p(), p());
		break;
	case 1:
		put("setp.%s.f32 %s, %s, %s;\n", PICK("lt", "ge", "eq", "neu"), p(), f(), f());
		break;
	case 2:
		put("setp.%s.%s %s, %s, %s;\n", PICK("lt", "ge", "eq", "ne"), PICK("s64", "u64"), p(), rd(), rd());
		break;
	default:
		put("%ssetp.%s.%s %s, %s, %s;\n", guard(), PICK("lt", "ge", "eq", "ne", "gt", "le"), PICK("s32", "u32"), p(), r(),
		    rc());
		break;
	}
}

/* A value below @n words as a byte offset in %t0: of one value, steps or anything. */
static void offset(unsigned n, unsigned align)
{
	put("and.b32 %%t0, %s, %u;\n", r(), n - 1);
	if (rnd(3) == 0)
		put("mov.u32 %%t0, %u;\n", rnd(n));
	else if (rnd(3) == 0)
		put("add.u32 %%t0, %%tx, %u;\n", rnd(8) * align);
	else if (rnd(4) == 0) /* 31 − lane and the like */
		put("sub.u32 %%t0, %u, %%tx;\n", n / 2);
	put("and.b32 %%t0, %%t0, %u;\nshl.b32 %%t0, %%t0, 2;\nand.b32 %%t0, %%t0, %u;\n", n - 1, ~(4 * align - 1) & 0xffff);
}

/* An address whose steps the analysis can see: not masked. */
static void plain_address(const char *base, unsigned step)
{
	put("mul.wide.u32 %%td0, %%tx, %u;\nadd.s64 %%td0, %%td0, %s;\n", step, base);
}

static void load(void)
{
	unsigned k = rnd(8), n = rnd(3) ? 1 : 2u << rnd(2);
	const char *g = guard();

	if (k < 3) {
		plain_address("%in", n > 1 ? 4 * n << rnd(2) : 4u << rnd(3));
	} else {
		offset(TABLE / 2, 4);
		put("cvt.u64.u32 %%td0, %%t0;\nadd.s64 %%td0, %%td0, %%in;\n");
	}
	if (n == 2)
		put("%sld.global.v2.u32 {%%r0, %%r1}, [%%td0+%u];\n", g, 8 * rnd(3));
	if (n == 4)
		put("%sld.global.v4.u32 {%%r2, %%r3, %%r4, %%r5}, [%%td0+%u];\n", g, 16 * rnd(3));
	if (n > 1)
		return;
	switch (rnd(5)) {
	case 0:
		put("%sld.global.f32 %%f4, [%%td0+%u];\n", g, 4 * rnd(9));
		put("and.b32 %%t0, %s, 255;\ncvt.rn.f32.u32 %%f4, %%t0;\n", r());
		break;
	case 1:
		put("%sld.global.%s %s, [%%td0+%u];\n", g, PICK("u8", "s8", "s16", "u16"), r(), 4 * rnd(4));
		break;
	case 2:
		put("%sld.global.u32 %s, [%%td0+%u];\n", g, rd(), 4 * rnd(4));
		break;
	default:
		put("%sld.global.u32 %s, [%%td0+%u];\n", g, r(), 4 * rnd(4));
		break;
	}
}

static void shared(void)
{
	const char *g = guard();

	switch (rnd(4)) {
	case 0: /* the table, which nobody writes */
		offset(TABLE / 4, 1);
		put("mov.u32 %%t1, table;\nadd.u32 %%t0, %%t0, %%t1;\n%sld.shared.u32 %s, [%%t0];\n", g, r());
		break;
	case 1: { /* one address and steps, visible to the analysis, as a product of matrices has them */
		const char *x = rnd(2) ? "%g0" : "%f2", *y = rnd(2) ? "%g1" : "%f3";

		put("mov.u32 %%t1, table;\nmad.lo.u32 %%t0, %%tl, %u, %%t1;\n", rnd(3) ? 4 : 4 * rnd(3));
		if (rnd(2))
			put("ld.shared.f32 %s, [%%t0+%u];\n%sld.shared.f32 %s, [%%t1+%u];\n", y, 4 * rnd(64), g, x, 4 * rnd(64));
		else
			put("ld.shared.f32 %s, [%%t1+%u];\n%sld.shared.f32 %s, [%%t0+%u];\n", x, 4 * rnd(64), g, y, 4 * rnd(64));
		put("fma.rn.f32 %s, %s, %s, %s;\n", f(), x, y, f());
		break;
	}
	case 2: /* the thread's own word */
		put("mov.u32 %%t1, mine;\nmad.lo.u32 %%t0, %%tt, 4, %%t1;\n%sst.shared.u32 [%%t0], %s;\n", g, r());
		break;
	default:
		put("mov.u32 %%t1, mine;\nmad.lo.u32 %%t0, %%tt, 4, %%t1;\n%sld.shared.u32 %s, [%%t0];\n", g, r());
		break;
	}
}

static void store(void)
{
	const char *g = guard();

	switch (rnd(6)) {
	case 5:
		put("mul.wide.%c32 %%td0, %%gt, 4;\nadd.s64 %%td0, %%td0, %%out2;\nst.global.u32 [%%td0+%u], %s;\n",
		    rnd(2) ? 's' : 'u', MAX_THRD * 4 * rnd(8), r());
		break;
	case 0: /* consecutive: word k of all threads */
		put("mad.wide.u32 %%td0, %%gt, 4, %%out2;\n%sst.global.u32 [%%td0+%u], %s;\n", g, MAX_THRD * 4 * rnd(8), r());
		break;
	case 1:
		put("mad.wide.u32 %%td0, %%gt, 8, %%out2;\n%sst.global.v2.u32 [%%td0+%u], {%s, %s};\n", g,
		    MAX_THRD * (32 + 8 * rnd(2)), r(), r());
		break;
	case 2:
		put("and.b32 %%t0, %s, 7;\nshl.b32 %%t0, %%t0, 2;\ncvt.u64.u32 %%td0, %%t0;\nadd.s64 %%td0, %%td0, %%mem;\n"
		    "%sst.global.u32 [%%td0+64], %s;\n",
		    r(), g, r());
		break;
	case 3:
		put("%satom.global.add.u32 %s, [%%mem+128], %s;\n", g, r(), r());
		break;
	default:
		put("and.b32 %%t0, %s, 7;\nshl.b32 %%t0, %%t0, 2;\ncvt.u64.u32 %%td0, %%t0;\nadd.s64 %%td0, %%td0, %%mem;\n"
		    "%sld.global.u32 %s, [%%td0+64];\n",
		    r(), g, r());
		break;
	}
}

static void local(void)
{
	put("and.b32 %%t0, %s, 7;\nshl.b32 %%t0, %%t0, 2;\nmov.u64 %%td0, buf;\ncvt.u64.u32 %%td1, %%t0;\nadd.s64 %%td0, %%td0, "
	    "%%td1;\n",
	    r());
	put("%sst.local.u32 [%%td0], %s;\nld.local.u32 %s, [buf+%u];\n", guard(), r(), r(), 4 * rnd(8));
}

static void call(void)
{
	put("{\n.param .b32 pa;\n.param .b32 pb;\n.param .b32 pr;\nst.param.b32 [pa], %s;\nst.param.b32 [pb], %s;\n"
	    "call.uni (pr), helper, (pa, pb);\nld.param.b32 %s, [pr];\n}\n",
	    r(), r(), r());
}

/* Only where all lanes that live come by. */
static void together(void)
{
	switch (rnd(full_warps ? 4 : 3)) {
	case 3: /* a lane that is not there has no value to give */
		put("shfl.sync.%s.b32 %s|%s, %s, %u, 31, -1;\n", PICK("bfly", "idx"), r(), p(), r(), rnd(32));
		break;
	case 1:
		put("vote.sync.%s.pred %s, %s, -1;\n", PICK("all", "any"), p(), p());
		break;
	case 2:
		put("vote.sync.ballot.b32 %s, %s, -1;\n", r(), p());
		break;
	default:
		put("bar.sync 0;\n");
		break;
	}
}

static void statements(unsigned n, unsigned again, unsigned out);

static void branch_if(unsigned again, unsigned out)
{
	unsigned l = label++;
	bool other = rnd(2);
	const char *on = p();

	if (rnd(2))
		put("setp.%s.%s %s, %s, %s;\n", PICK("lt", "ge", "eq", "ne", "gt", "le"), PICK("s32", "u32"), on, r(), rc());
	put("@%s%s bra ELSE%u;\n", rnd(2) ? "!" : "", on, l);
	statements(1 + rnd(5), again, out);
	if (other)
		put("bra END%u;\n", l);
	put("ELSE%u:\n", l);
	if (other)
		statements(1 + rnd(4), again, out);
	put("END%u:\n", l);
}

static void loop(void)
{
	unsigned l = label++, c = depth;

	/* %c0 … %c3 count down and are written by nothing else, so each loop ends */
	if (rnd(2))
		put("mov.u32 %%c%u, %u;\n", c, 1 + rnd(long_loops && !c ? 150 : 6));
	else
		put("and.b32 %%c%u, %s, %u;\n", c, r(), long_loops && !c ? 127 : 7);
	put("LOOP%u:\n", l);
	put("setp.eq.u32 %%q, %%c%u, 0;\n@%%q bra OUT%u;\nsub.u32 %%c%u, %%c%u, 1;\n", c, l, c, c);
	statements(1 + rnd(long_loops && !c ? 3 : 6), l, l);
	if (rnd(2))
		put("bra LOOP%u;\nOUT%u:\n", l, l);
	else /* tested at both ends */
		put("setp.%s.%s32 %%q, %%c%u, 0;\n@%%q bra LOOP%u;\nOUT%u:\n", PICK("ne", "gt"), rnd(2) ? "u" : "s", c, l, l);
}

static void table_branch(void)
{
	unsigned l = label++;

	put("and.b32 %%t0, %s, 3;\nTAB%u: .branchtargets CA%u, CB%u, CC%u, CB%u;\nbrx.idx %%t0, TAB%u;\n", r(), l, l, l, l, l, l);
	put("CA%u:\n", l);
	statements(1 + rnd(2), 0, 0);
	put("bra CE%u;\nCB%u:\n", l, l);
	statements(1 + rnd(2), 0, 0);
	put("CC%u:\n", l);
	statements(1 + rnd(2), 0, 0);
	put("CE%u:\n", l);
}

static void statement(unsigned again, unsigned out)
{
	unsigned k = rnd(100);

	if (budget)
		budget--;
	if (k < 34) {
		int_op();
	} else if (k < 40) {
		rare_op();
	} else if (k < 50) {
		float_op();
	} else if (k < 60) {
		pred_op();
	} else if (k < 67) {
		load();
	} else if (k < 73) {
		shared();
	} else if (k < 78) {
		store();
	} else if (k < 80) {
		local();
	} else if (k < 88 && depth < 4 && budget) {
		depth++;
		branch_if(again, out);
		depth--;
	} else if (k < 93 && depth < 4 && budget) {
		depth++;
		loop();
		depth--;
	} else if (k < 94 && depth < 3 && budget) {
		depth++;
		table_branch();
		depth--;
	} else if (k < 96) {
		call();
	} else if (k < 97 && out) {
		put("@%s bra %s%u;\n", p(), rnd(2) ? "LOOP" : "OUT", rnd(2) ? out : again);
	} else if (k < 98 && may_exit && depth) {
		put("@%s exit;\n", p());
	} else if (!depth && may_sync) {
		together();
	} else {
		int_op();
	}
}

static void statements(unsigned n, unsigned again, unsigned out)
{
	while (n--)
		statement(again, out);
}

static void generate(uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ull + 12345;
	for (unsigned k = 0; k < 8; k++)
		rnd(2);
	at = 0;
	label = 1;
	depth = 0;
	budget = 40 + rnd(60);
	may_exit = rnd(3) == 0;
	may_sync = !may_exit;
	long_loops = rnd(6) == 0;
	put(".version 8.0\n.target sm_80\n.address_size 64\n"
	    ".func (.param .b32 ret) helper(.param .b32 a, .param .b32 b)\n{\n.reg .b32 %%h<4>;\n.reg .pred %%z;\n"
	    "ld.param.b32 %%h0, [a];\nld.param.b32 %%h1, [b];\nsetp.lt.s32 %%z, %%h0, %%h1;\n@%%z bra L;\n"
	    "mul.lo.s32 %%h0, %%h0, 3;\nL: add.s32 %%h0, %%h0, %%h1;\nst.param.b32 [ret], %%h0;\nret;\n}\n");
	put(".visible .entry k(.param .u64 po, .param .u64 po2, .param .u64 pi, .param .u32 pn)\n{\n"
	    ".reg .b32 %%r<%u>, %%c<5>, %%t<4>;\n.reg .b64 %%rd<%u>, %%td<3>;\n.reg .f32 %%f<%u>;\n.reg .pred %%p<%u>, %%q;\n"
	    ".reg .b32 %%tx, %%tl, %%tt, %%gt;\n.reg .b16 %%h<3>;\n.reg .f32 %%g<2>;\n.reg .b64 %%in, %%mem, %%out2;\n"
	    ".shared .align 16 .b8 table[%u];\n.shared .align 16 .b8 mine[4096];\n.local .align 16 .b8 buf[64];\n",
	    NINT, NLONG, NFLOAT, NPRED, TABLE);
	put("ld.param.u64 %%mem, [po];\nld.param.u64 %%out2, [po2];\nld.param.u64 %%in, [pi];\nmov.u32 %%tx, %%tid.x;\n"
	    "mov.u32 %%t0, %%tid.y;\nmov.u32 %%t1, %%tid.z;\nmov.u32 %%t2, %%ntid.x;\nmov.u32 %%t3, %%ntid.y;\n"
	    "mad.lo.u32 %%tt, %%t1, %%t3, %%t0;\nmad.lo.u32 %%tt, %%tt, %%t2, %%tx;\nmov.u32 %%t3, %%ntid.z;\n"
	    "mul.lo.u32 %%t2, %%t2, %%t3;\nmov.u32 %%t3, %%ntid.y;\nmul.lo.u32 %%t2, %%t2, %%t3;\nmov.u32 %%t3, %%ctaid.x;\n"
	    "mad.lo.u32 %%gt, %%t2, %%t3, %%tt;\nmad.wide.u32 %%mem, %%gt, %u, %%mem;\nmov.u32 %%tl, %%laneid;\n",
	    OUT * 4);
	/* fill the table: each word has one value, whoever writes it */
	put("and.b32 %%t0, %%tt, %u;\nmov.u32 %%t1, table;\nmov.u32 %%c0, 0;\nFILL: shl.b32 %%t2, %%c0, 2;\ncvt.u64.u32 %%td0, "
	    "%%t2;\n"
	    "add.s64 %%td0, %%td0, %%in;\nld.global.u8 %%t3, [%%td0];\ncvt.rn.f32.u32 %%f0, %%t3;\nadd.u32 %%t2, %%t2, %%t1;\n"
	    "st.shared.f32 [%%t2], %%f0;\nadd.u32 %%c0, %%c0, 1;\nsetp.lt.u32 %%q, %%c0, %u;\n@%%q bra FILL;\n"
	    "mov.u32 %%t1, mine;\nmad.lo.u32 %%t0, %%tt, 4, %%t1;\nst.shared.u32 [%%t0], %%tt;\nbar.sync 0;\n",
	    31, TABLE / 4);
	/* every register has a value: one for all, with steps, or any */
	for (unsigned k = 0; k < NINT; k++)
		switch (rnd(6)) {
		case 0:
			put("mov.u32 %%r%u, %s;\n", k, PICK("%tx", "%tt", "%gt", "%tl"));
			break;
		case 1:
			put("mov.u32 %%r%u, %s;\n", k, PICK("%ctaid.x", "%ntid.x", "%nctaid.x", "%tid.y", "%tid.z", "%warpid"));
			break;
		case 2:
			put("ld.param.u32 %%r%u, [pn];\n", k);
			break;
		case 3:
			put("mov.u32 %%r%u, %d;\n", k, (int)rnd(70) - 20);
			break;
		case 4:
			put("mad.lo.u32 %%r%u, %%tx, %d, %u;\n", k, (int)rnd(9) - 4, rnd(100));
			break;
		default:
			put("mul.lo.u32 %%r%u, %%gt, %u;\nshr.u32 %%r%u, %%r%u, %u;\n", k, 2654435761u, k, k, rnd(28));
			break;
		}
	for (unsigned k = 0; k < NLONG; k++)
		put("%s %%rd%u, %s;\n", PICK("cvt.u64.u32", "cvt.s64.s32"), k, r());
	for (unsigned k = 0; k < NFLOAT; k++)
		put("and.b32 %%t0, %s, 1023;\ncvt.rn.f32.u32 %%f%u, %%t0;\n", r(), k);
	for (unsigned k = 0; k < NPRED; k++)
		put("setp.lt.s32 %%p%u, %s, %s;\n", k, r(), rc());
	for (unsigned k = 0; k < 4; k++)
		put("mov.u32 %%c%u, 0;\n", k);
	for (unsigned k = 0; k < 8; k++)
		put("mov.u32 %%t0, %u;\nst.local.u32 [buf+%u], %%t0;\nst.local.u32 [buf+%u], %%t0;\n", k * k, 4 * k, 32 + 4 * k);
	put("mov.f32 %%g0, 0f00000000;\nmov.f32 %%g1, 0f00000000;\nmov.u32 %%t1, 0;\nmov.u32 %%t2, 0;\nmov.u64 %%td0, "
	    "0;\nmov.u64 %%td1, 0;\ncvt.u16.u32 %%h0, %%tx;\ncvt.u16.u32 %%h1, %%ctaid.x;\nmov.u16 %%h2, 9;\n");
	while (budget)
		statements(1, 0, 0);
	/* not all of them: a register that ends in a comparison or an address only is kept in another way */
	for (unsigned k = 0; k < NINT; k++)
		if (rnd(2))
			put("st.global.u32 [%%mem+%u], %%r%u;\n", 4 * k, k);
	put("add.u32 %%t0, %s, %s;\nst.global.u32 [%%mem+60], %%t0;\n", r(), r());
	for (unsigned k = 0; k < NFLOAT; k++)
		put("st.global.f32 [%%mem+%u], %%f%u;\n", 4 * (NINT + k), k);
	for (unsigned k = 0; k < NLONG; k++)
		if (rnd(2))
			put("st.global.u64 [%%mem+%u], %%rd%u;\n", 136 + 8 * k, k);
	for (unsigned k = 0; k < NPRED; k++)
		put("selp.u32 %%t0, 1, 0, %%p%u;\nst.global.u32 [%%mem+%u], %%t0;\n", k, 200 + 4 * k);
	put("ret;\n}\n");
}

static const uint32_t shapes[][3] = {{32, 1, 1}, {64, 1, 1},  {48, 1, 1}, {100, 1, 1}, {33, 1, 1}, {8, 8, 1},
				     {16, 4, 1}, {32, 3, 1},  {64, 2, 1}, {4, 4, 4},   {32, 2, 2}, {17, 3, 1},
				     {5, 7, 2},	 {128, 1, 1}, {1, 32, 1}, {1, 1, 40}};

/* One random kernel in both forms; false when they differ. */
static bool compare(uint64_t seed, bool show)
{
	const size_t bytes = MAX_THRD * OUT * 4, bytes2 = MAX_THRD * 64;
	uint8_t *mem[2], *in;
	const uint32_t *shape;
	struct ptx_module *m;
	struct ptx_func *k;
	enum ptx_status st[2];
	uint32_t blocks;
	bool same;

	test_arena_reset();
	rng = seed * 77777 + 99;
	shape = shapes[rnd(sizeof(shapes) / sizeof(shapes[0]))];
	full_warps = shape[0] * shape[1] * shape[2] % 32 == 0;
	generate(seed);
	if (show)
		fputs(ptx, stdout);
	m = test_must_load(ptx);
	k = ptx_module_kernel(m, "k");
	blocks = 1 + rnd(3);
	in = test_alloc(TABLE * 4 + 65536);
	for (unsigned n = 0; n < TABLE; n++)
		((uint32_t *)in)[n] = n % 3 ? rnd(1000) : rnd(4);
	mem[0] = test_alloc(bytes + bytes2);
	mem[1] = test_alloc(bytes + bytes2);
	/* The general form last: a frame that it left has the right values already. */
	for (unsigned n = 2; n-- > 0;) {
		struct {
			uint8_t *out, *out2, *in;
			uint32_t n;
		} params = {mem[n], mem[n] + bytes, in, (uint32_t)seed % 50};

		memset(mem[n], 0, bytes + bytes2);
		st[n] = launch(k, shape, blocks, &params, n == 0);
	}
	same = st[0] == st[1] && !memcmp(mem[0], mem[1], bytes + bytes2);
	if (!same || st[0] != PTX_OK)
		printf("# seed %llu, blocks of %ux%ux%u: status %d and %d %s\n", (unsigned long long)seed, shape[0], shape[1],
		       shape[2], st[0], st[1], test_fault.text);
	for (size_t n = 0, shown = 0; !same && n < bytes + bytes2 && shown < 4; n += 4)
		if (memcmp(mem[0] + n, mem[1] + n, 4)) {
			printf("# at %zu (thread %zu, word %zu): general %08x, whole %08x\n", n, n / (OUT * 4), n / 4 % OUT,
			       *(uint32_t *)(mem[0] + n), *(uint32_t *)(mem[1] + n));
			shown++;
		}
	ptx_module_free(m);
	return same && st[0] == PTX_OK;
}

static unsigned number(const char *name, unsigned normal)
{
	const char *s = getenv(name);

	return s ? (unsigned)strtoul(s, NULL, 0) : normal;
}

int main(void)
{
	unsigned first = number("RGPU_FUZZ_FIRST", 1), seeds = number("RGPU_FUZZ_SEEDS", 300), bad = 0;

	test_arena_init();
	for (unsigned s = first; s < first + seeds; s++)
		bad += !compare(s, number("RGPU_FUZZ_SHOW", 0));
	is_int(bad, 0, "%u random kernels leave the same memory in both forms", seeds);
	return tap_done();
}
