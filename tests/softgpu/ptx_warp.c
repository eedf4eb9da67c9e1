/* SPDX-License-Identifier: MIT */
/* Instructions in which lanes see each other, with whole warps, parts of warps, several groups at once and in diverged arms. */
#include "tests/softgpu/ptx_cases.h"

#define WARPS	6u
#define THREADS (WARPS * 32)

/* What a lane brings and gets; w is its warp's 32 of them. */
struct lane {
	u64 a;
	u32 b, c, q, mask, group; /* group 0 does not take part */
	u32 d, p;
	u32 arm;
};

/* One instruction: results %w0 and %p0, operands %w1 %d1 (a) %w2 %w3 %p1, member mask %wm. @ref says what lane @l gets. */
struct warp_case {
	const char *op;
	void (*ref)(const struct warp_case *c, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any);
	u32 tag;
	bool no_mask; /* the form takes whoever is there */
};

enum { UP, DOWN, BFLY, IDX };

static void ref_shfl(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	s32 lane = (s32)l, b = (s32)(w[l].b & 31), clamp = (s32)(w[l].c & 31), seg = (s32)(w[l].c >> 8 & 31);
	s32 max = (lane & seg) | (clamp & ~seg), min = lane & seg, j;
	bool in;

	switch (k->tag) {
	case UP:
		j = lane - b;
		in = j >= max;
		break;
	case DOWN:
		j = lane + b;
		in = j <= max;
		break;
	case BFLY:
		j = lane ^ b;
		in = j <= max;
		break;
	default:
		j = min | (b & ~seg);
		in = j <= max;
		break;
	}
	if (!in)
		j = lane;
	*p = in;
	/* what a lane gives that does not take part is not defined */
	*any = !(w[l].mask >> j & 1);
	*d = (u32)w[j & 31].a;
}

enum { ALL, ANY, UNI, BALLOT, NOT = 16 };

static void ref_vote(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	u32 yes = 0, m = w[l].mask;

	(void)any;
	for (u32 i = 0; i < 32; i++)
		yes |= (w[i].q != !!(k->tag & NOT)) ? m & 1u << i : 0;
	switch (k->tag & 15) {
	case ALL:
		*p = yes == m;
		break;
	case ANY:
		*p = !!yes;
		break;
	case UNI:
		*p = yes == m || !yes;
		break;
	default:
		*d = yes;
		break;
	}
}

static void ref_match(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	bool wide = k->tag & 2, all = k->tag & 1;
	u32 eq = 0, m = w[l].mask;

	(void)any;
	for (u32 i = 0; i < 32; i++)
		eq |= (wide ? w[i].a == w[l].a : (u32)w[i].a == (u32)w[l].a) ? m & 1u << i : 0;
	*d = all ? (eq == m ? m : 0) : eq;
	if (all)
		*p = eq == m;
}

enum { R_ADD, R_AND, R_OR, R_XOR, R_MINU, R_MAXU, R_MINS, R_MAXS };

static void ref_redux(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	static const u32 init[] = {0, FULL, 0, 0, FULL, 0, INT32_MAX, (u32)INT32_MIN};
	u32 r = init[k->tag];

	(void)p, (void)any;
	for (u32 m = w[l].mask; m; m &= m - 1) {
		u32 a = (u32)w[__builtin_ctz(m)].a;
		u32 values[] = {r + a,
				r & a,
				r | a,
				r ^ a,
				a < r ? a : r,
				a > r ? a : r,
				(s32)a < (s32)r ? a : r,
				(s32)a > (s32)r ? a : r};

		r = values[k->tag];
	}
	*d = r;
}

static void ref_active(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	(void)k, (void)p, (void)any;
	*d = w[l].mask; /* all forms with it run in one arm per group */
}

static void ref_elect(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	(void)any;
	*p = (u32)__builtin_ctz(w[l].mask) == l;
	if (k->tag)
		*d = (u32)__builtin_ctz(w[l].mask);
}

static void ref_nothing(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	(void)k, (void)w, (void)l, (void)d, (void)p, (void)any;
}

static void ref_shfl_d(const struct warp_case *k, const struct lane *w, u32 l, u32 *d, u32 *p, bool *any)
{
	u32 ignored;

	(void)p;
	ref_shfl(k, w, l, d, &ignored, any);
}

static const struct warp_case cases[] = {
	{"shfl.sync.up.b32 %w0|%p0, %w1, %w2, %w3, %wm;", ref_shfl, UP, false},
	{"shfl.sync.down.b32 %w0|%p0, %w1, %w2, %w3, %wm;", ref_shfl, DOWN, false},
	{"shfl.sync.bfly.b32 %w0|%p0, %w1, %w2, %w3, %wm;", ref_shfl, BFLY, false},
	{"shfl.sync.idx.b32 %w0|%p0, %w1, %w2, %w3, %wm;", ref_shfl, IDX, false},
	{"shfl.sync.idx.b32 %w0, %w1, %w2, %w3, %wm;", ref_shfl_d, IDX, false},
	{"shfl.up.b32 %w0|%p0, %w1, %w2, %w3;", ref_shfl, UP, true},
	{"shfl.down.b32 %w0|%p0, %w1, %w2, %w3;", ref_shfl, DOWN, true},
	{"shfl.bfly.b32 %w0|%p0, %w1, %w2, %w3;", ref_shfl, BFLY, true},
	{"shfl.idx.b32 %w0|%p0, %w1, %w2, %w3;", ref_shfl, IDX, true},
	/* the result in the place of the operand */
	{"shfl.sync.down.b32 %w1, %w1, %w2, %w3, %wm; mov.b32 %w0, %w1;", ref_shfl_d, DOWN, false},
	{"shfl.sync.bfly.b32 %w2, %w1, %w2, %w3, %wm; mov.b32 %w0, %w2;", ref_shfl_d, BFLY, false},
	{"vote.sync.all.pred %p0, %p1, %wm;", ref_vote, ALL, false},
	{"vote.sync.any.pred %p0, %p1, %wm;", ref_vote, ANY, false},
	{"vote.sync.uni.pred %p0, %p1, %wm;", ref_vote, UNI, false},
	{"vote.sync.ballot.b32 %w0, %p1, %wm;", ref_vote, BALLOT, false},
	{"vote.ballot.sync.b32 %w0, %p1, %wm;", ref_vote, BALLOT, false},
	{"vote.sync.all.pred %p0, !%p1, %wm;", ref_vote, ALL | NOT, false},
	{"vote.sync.ballot.b32 %w0, !%p1, %wm;", ref_vote, BALLOT | NOT, false},
	{"vote.all.pred %p0, %p1;", ref_vote, ALL, true},
	{"vote.any.pred %p0, %p1;", ref_vote, ANY, true},
	{"vote.uni.pred %p0, %p1;", ref_vote, UNI, true},
	{"vote.ballot.b32 %w0, %p1;", ref_vote, BALLOT, true},
	{"match.any.sync.b32 %w0, %w1, %wm;", ref_match, 0, false},
	{"match.any.sync.b64 %w0, %d1, %wm;", ref_match, 2, false},
	{"match.all.sync.b32 %w0|%p0, %w1, %wm;", ref_match, 1, false},
	{"match.all.sync.b64 %w0|%p0, %d1, %wm;", ref_match, 3, false},
	{"redux.sync.add.u32 %w0, %w1, %wm;", ref_redux, R_ADD, false},
	{"redux.sync.add.s32 %w0, %w1, %wm;", ref_redux, R_ADD, false},
	{"redux.sync.and.b32 %w0, %w1, %wm;", ref_redux, R_AND, false},
	{"redux.sync.or.b32 %w0, %w1, %wm;", ref_redux, R_OR, false},
	{"redux.sync.xor.b32 %w0, %w1, %wm;", ref_redux, R_XOR, false},
	{"redux.sync.min.u32 %w0, %w1, %wm;", ref_redux, R_MINU, false},
	{"redux.sync.max.u32 %w0, %w1, %wm;", ref_redux, R_MAXU, false},
	{"redux.sync.min.s32 %w0, %w1, %wm;", ref_redux, R_MINS, false},
	{"redux.sync.max.s32 %w0, %w1, %wm;", ref_redux, R_MAXS, false},
	{"activemask.b32 %w0;", ref_active, 0, true},
	{"elect.sync %w0|%p0, %wm;", ref_elect, 1, false},
	{"elect.sync _|%p0, %wm;", ref_elect, 0, false},
	{"bar.warp.sync %wm;", ref_nothing, 0, false},
};

/*
 * How the groups of a warp get to the instruction: all at once, each lane naming its own group; in one arm of a branch for
 * each group; in one arm, after work of different length (the lanes arrive one by one); each group spread over several arms.
 */
enum { TOGETHER, ARMS, LATE, SPREAD, WAYS };

static char text[1 << 18];
static size_t at;
#define ADD(...) (at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__))

static void kernel(u32 k, u32 way)
{
	ADD(".visible .entry k%u_%u(.param .u64 p)\n{\n.reg .b32 %%w<4>, %%wm, %%t, %%g, %%x, %%y; .reg .b64 %%d1, %%a; .reg "
	    ".pred %%p<2>, %%q;\n",
	    k, way);
	ADD("mov.u32 %%t, %%tid.x; ld.param.u64 %%a, [p]; mul.wide.u32 %%d1, %%t, %u; add.u64 %%a, %%a, %%d1;\n",
	    (u32)sizeof(struct lane));
	ADD("ld.global.u64 %%d1, [%%a]; ld.global.u32 %%w1, [%%a]; ld.global.u32 %%w2, [%%a+8]; ld.global.u32 %%w3, [%%a+12]; "
	    "ld.global.u32 %%x, [%%a+16]; "
	    "setp.ne.u32 %%p1, %%x, 0;\n");
	ADD("ld.global.u32 %%wm, [%%a+20]; ld.global.u32 %%g, [%%a+24]; ld.global.u32 %%w0, [%%a+28]; ld.global.u32 %%x, "
	    "[%%a+32]; setp.ne.u32 %%p0, %%x, 0;\n");
	ADD("setp.eq.u32 %%q, %%g, 0; @%%q bra OUT;\n");
	switch (way) {
	case TOGETHER:
		ADD("%s\n", cases[k].op);
		break;
	case SPREAD: /* registers of the arms differ, too */
		ADD("ld.global.u32 %%g, [%%a+36]; setp.eq.u32 %%q, %%g, 1; @%%q bra A; setp.eq.u32 %%q, %%g, 2; @%%q bra B;\n%s "
		    "bra OUT;\n"
		    "A: { .reg .b32 %%w<4>, %%wm; .reg .pred %%p<2>; ld.global.u32 %%w1, [%%a]; ld.global.u32 %%w2, [%%a+8]; "
		    "ld.global.u32 %%w3, [%%a+12]; "
		    "ld.global.u32 %%wm, [%%a+20]; ld.global.u32 %%x, [%%a+16]; setp.ne.u32 %%p1, %%x, 0; ld.global.u32 %%w0, "
		    "[%%a+28]; ld.global.u32 %%x, [%%a+32]; "
		    "setp.ne.u32 %%p0, %%x, 0;\n%s st.global.u32 [%%a+28], %%w0; selp.u32 %%x, 1, 0, %%p0; st.global.u32 "
		    "[%%a+32], %%x; ret; }\nB: %s\n",
		    cases[k].op, cases[k].op, cases[k].op);
		break;
	case ARMS:
		ADD("setp.eq.u32 %%q, %%g, 1; @%%q bra A; setp.eq.u32 %%q, %%g, 2; @%%q bra B;\n%s bra OUT;\nA: %s bra OUT;\nB: "
		    "%s\n",
		    cases[k].op, cases[k].op, cases[k].op);
		break;
	default:
		ADD("mov.u32 %%x, %%laneid; mul.lo.u32 %%x, %%x, 7; and.b32 %%x, %%x, 31; mov.u32 %%y, 0; @!%%p1 bra L2;\n");
		ADD("L1: add.u32 %%y, %%y, 1; setp.lt.u32 %%q, %%y, %%x; @%%q bra L1;\nL2: %s\n", cases[k].op);
		break;
	}
	ADD("OUT: st.global.u32 [%%a+28], %%w0; selp.u32 %%x, 1, 0, %%p0; st.global.u32 [%%a+32], %%x; ret;\n}\n");
}

/* Groups of a warp: one of all, one of some, several. */
static void groups(struct lane *w, u32 kind, u32 way, bool one_arm_each)
{
	u32 mask[4] = {0};

	for (u32 l = 0; l < 32; l++) {
		u64 r = rng() >> 20;

		w[l].group = kind == 0	 ? 1
			     : kind == 1 ? r & 1
			     : kind == 2 ? r & 3
			     : kind == 3 ? l == (u32)(w[0].a & 31)
					 : 1 + r % 3;
		/* without a member mask lanes that come together are one group */
		if (one_arm_each && way != ARMS)
			w[l].group = !!w[l].group;
		mask[w[l].group] |= 1u << l;
	}
	for (u32 l = 0; l < 32; l++)
		w[l].mask = mask[w[l].group];
}

static void run_one(struct ptx_module *m, u32 k, u32 way)
{
	struct lane *lanes = test_alloc(THREADS * sizeof(*lanes));
	static struct lane before[THREADS];
	struct {
		struct lane *l;
	} p = {lanes};
	u64 mark = test_used;
	char name[32];
	u32 bad = 0;

	snprintf(name, sizeof(name), "k%u_%u", k, way);
	for (u32 round = 0; round < 12; round++) {
		for (u32 t = 0; t < THREADS; t++) {
			u64 r = rng();
			u32 seg = (u32)(r >> 3 & 31), few = round % 3;

			lanes[t].a = few == 0 ? rng() : few == 1 ? (r >> 10 & 1) * 0x123456789 : 7;
			lanes[t].b = r & 1 ? (u32)(r >> 20) & 31 : (u32)(r >> 20);
			/* as warpSize/width gives it, and anything */
			lanes[t].c = r & 2 ? (u32)(r >> 30) : (0x1f & ~seg) << 8 | (r >> 50 & 1 ? 0x1f : 0);
			lanes[t].q = few == 2 ? round & 1 : r >> 40 & 1;
			lanes[t].d = (u32)(r >> 13);
			lanes[t].p = r >> 41 & 1;
			lanes[t].arm = (u32)(r >> 45) % 3;
		}
		for (u32 w = 0; w < WARPS; w++)
			groups(lanes + 32 * w, (w + round) % 5, way, cases[k].no_mask);
		memcpy(before, lanes, sizeof(before));
		if (test_launch(ptx_module_kernel(m, name), 1, THREADS, &p) != PTX_OK) {
			printf("# %s\n", test_fault.text);
			bad++;
			break;
		}
		for (u32 t = 0; t < THREADS; t++) {
			u32 d = before[t].d, pr = before[t].p;
			bool any = false;

			/* lanes that come late to a form without .sync meet whom they meet */
			if (before[t].group && cases[k].no_mask && way == LATE)
				continue;
			if (before[t].group)
				cases[k].ref(&cases[k], before + (t & ~31u), t & 31, &d, &pr, &any);
			if (((!any && lanes[t].d != d) || lanes[t].p != pr) && bad++ < 3)
				printf("# thread %u (group %u, mask %08x): got %x|%u want %x|%u\n", t, before[t].group,
				       before[t].mask, lanes[t].d, lanes[t].p, d, pr);
		}
	}
	ok(!bad, "%s %s", cases[k].op,
	   way == TOGETHER ? "all at once"
	   : way == ARMS   ? "an arm for each group"
			   : "one after the other");
	form_ran(cases[k].op);
	test_used = mark;
}

/* Special registers of lanes, warps and blocks of three dimensions. */
static void run_registers(void)
{
	static const char *const names[] = {
		"tid.x",	  "tid.y",	 "tid.z",	"ntid.x",      "ntid.y",      "ntid.z",	     "ctaid.x",
		"ctaid.y",	  "ctaid.z",	 "nctaid.x",	"nctaid.y",    "nctaid.z",    "laneid",	     "warpid",
		"nwarpid",	  "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "dynamic_smem_size",
		"total_smem_size"};
	u32 threads = 3 * 5 * 7, blocks = 2 * 3 * 4, n = COUNT(names), *out = test_alloc(threads * blocks * n * 4), bad = 0,
	    smid = 0;
	static char body[16384];
	struct {
		u32 *out;
	} p = {out};
	struct ptx_module *m;
	size_t len = 0;

#define B(...) (len += (size_t)snprintf(body + len, sizeof(body) - len, __VA_ARGS__))
	B(".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) { .reg .b64 %%d, %%o, %%e; .reg .b32 "
	  "%%w, %%x, %%y; .reg .b16 "
	  "%%h; .reg .pred %%q; .shared .b32 s[10]; ld.param.u64 %%o, [p];\n");
	B("mov.u32 %%x, %%ctaid.z; mov.u32 %%y, %%nctaid.y; mul.lo.u32 %%x, %%x, %%y; mov.u32 %%y, %%ctaid.y; add.u32 %%x, %%x, "
	  "%%y; mov.u32 %%y, "
	  "%%nctaid.x; mul.lo.u32 %%x, %%x, %%y; mov.u32 %%y, %%ctaid.x; add.u32 %%x, %%x, %%y;\n");
	B("mul.lo.u32 %%x, %%x, %u; mov.u32 %%y, %%tid.z; mad.lo.u32 %%x, %%y, 15, %%x; mov.u32 %%y, %%tid.y; mad.lo.u32 %%x, "
	  "%%y, 3, %%x; mov.u32 %%y, "
	  "%%tid.x; add.u32 %%x, %%x, %%y; mul.wide.u32 %%d, %%x, %u; add.u64 %%o, %%o, %%d;\n",
	  threads, 4 * n);
	for (u32 k = 0; k < n; k++) /* also under a guard, into 64 and 16 bits */
		B("setp.ge.u32 %%q, %%y, %u; mov.u32 %%w, 0; @!%%q mov.u32 %%w, %%%s; @%%q cvt.u32.u64 %%w, %%d; cvt.u64.u32 "
		  "%%e, %%w; @%%q mov.u64 %%e, "
		  "%%%s; cvt.u32.u64 %%w, %%e; st.global.u32 [%%o+%u], %%w;\n",
		  k % 3, names[k], names[k], 4 * k);
	B("mov.u32 %%w, %%smid; mov.u32 %%x, %%nsmid; setp.lt.u32 %%q, %%w, %%x; @!%%q trap; mov.u64 %%d, %%clock64; mov.u64 "
	  "%%e, %%globaltimer; mov.u32 %%w, "
	  "%%clock; mov.u32 %%w, %%clock_hi; mov.u32 %%w, %%globaltimer_lo; mov.u32 %%w, %%globaltimer_hi; mov.u64 %%e, "
	  "%%gridid; mov.u32 %%w, %%gridid; "
	  "mov.u32 %%w, %%envreg3; mov.u32 %%w, WARP_SZ; setp.eq.u32 %%q, %%w, 32; @!%%q trap; mov.u16 %%h, %%tid.x; ret; }");
	m = test_must_load(body);
	is_int(test_launch_dim(ptx_module_kernel(m, "k"), (const u32[3]){2, 3, 4}, (const u32[3]){3, 5, 7}, 48, &p, false),
	       PTX_OK, "special registers");
	for (u32 b = 0; b < blocks; b++)
		for (u32 t = 0; t < threads; t++) {
			u32 l = t % 32, *o = out + (b * threads + t) * n;
			u32 want[] = {t % 3,
				      t / 3 % 5,
				      t / 15,
				      3,
				      5,
				      7,
				      b % 2,
				      b / 2 % 3,
				      b / 6,
				      2,
				      3,
				      4,
				      l,
				      t / 32,
				      32,
				      1u << l,
				      FULL >> (31 - l),
				      (1u << l) - 1,
				      FULL << l,
				      ~(FULL >> (31 - l)),
				      48,
				      48 + 48};

			_Static_assert(COUNT(want) == COUNT(names), "a value for each name");
			want[21] = o[21]; /* as large as the static and dynamic parts and their alignment */
			smid += o[21] < 88;
			for (u32 k = 0; k < n; k++)
				if (o[k] != want[k] && bad++ < 5)
					printf("# block %u thread %u: %%%s is %u, want %u\n", b, t, names[k], o[k], want[k]);
		}
	ok(!bad && !smid, "%u special registers in blocks of three dimensions", n);
	ptx_module_free(m);
}

int main(void)
{
	struct ptx_module *m;

	test_arena_init();
	ADD(".version 9.0\n.target sm_90\n.address_size 64\n");
	for (u32 k = 0; k < COUNT(cases); k++)
		for (u32 way = 0; way < WAYS; way++)
			if (way != SPREAD || !cases[k].no_mask)
				kernel(k, way);
	m = test_must_load(text);
	for (u32 k = 0; k < COUNT(cases); k++)
		for (u32 way = 0; way < WAYS; way++)
			if (way != SPREAD || !cases[k].no_mask)
				run_one(m, k, way);
	ptx_module_free(m);
	run_registers();
	forms_done("warp");
	return tap_done();
}
