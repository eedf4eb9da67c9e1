/* SPDX-License-Identifier: MIT */
/* Divergence: control flow of any shape lane by lane against C, locks, barriers in arms, and deadlocks that end. */
#include <pthread.h>
#include <time.h>

#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

static uint64_t rng_state = 88172645463325252ull;

static uint32_t rnd(uint32_t n)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 33) % n;
}

static char text[1 << 18];
static size_t at;
#define ADD(...) (at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__))

static uint32_t *out;
static const volatile int *cancel;

static enum ptx_status launch(const char *source, uint32_t grid, uint32_t block)
{
	struct ptx_module *m = test_must_load(source);
	const struct ptx_launch l = {
		.grid = {grid, 1, 1}, .block = {block, 1, 1}, .params = &out, .threads = test_threads, .cancel = cancel};
	enum ptx_status st = ptx_launch(ptx_module_kernel(m, "k"), &l, &test_fault);

	ptx_module_free(m);
	return st;
}

/* ---- Graphs that no source language has: every lane walks its own way through random blocks ---- */

#define BLOCKS 24u
#define FUEL   40u

enum end { TWO_WAY, TABLE, CALL, LEAVE };

struct node {
	enum end end;
	uint32_t mul, add, bit, to[4];
};

struct graph {
	struct node node[2][BLOCKS]; /* of the kernel and of the function */
};

/* The function returns when its own fuel is gone; both count down @fuel, so that every walk ends. */
static uint32_t walk(const struct graph *g, uint32_t which, uint32_t x, uint32_t fuel, uint32_t depth)
{
	uint32_t n = 0;

	for (;;) {
		const struct node *b = &g->node[which][n];

		x = x * b->mul + b->add;
		if (!fuel--)
			return x ^ depth;
		switch (b->end) {
		case TWO_WAY:
			n = b->to[x >> b->bit & 1];
			break;
		case TABLE:
			n = b->to[x >> b->bit & 3];
			break;
		case CALL:
			if (depth < 5)
				x = walk(g, 1, x, (x >> b->bit) % 12, depth + 1);
			n = b->to[0];
			break;
		case LEAVE:
			if (!(x >> b->bit & 7))
				return x ^ depth;
			n = b->to[1];
			break;
		}
	}
}

static void graph_make(struct graph *g)
{
	for (uint32_t k = 0; k < 2 * BLOCKS; k++) {
		struct node *b = &g->node[k / BLOCKS][k % BLOCKS];

		*b = (struct node){.end = rnd(8) < 5 ? TWO_WAY
					  : rnd(3)   ? (enum end)(TABLE + rnd(2))
						     : LEAVE,
				   .mul = rnd(1u << 30) * 2 + 1,
				   .add = rnd(1u << 31),
				   .bit = rnd(29)};
		for (uint32_t t = 0; t < 4; t++)
			b->to[t] = rnd(4) ? (k % BLOCKS + 1 + rnd(3)) % BLOCKS
					  : rnd(BLOCKS); /* mostly near, some anywhere: irreducible */
	}
}

static void graph_body(const struct graph *g, uint32_t which)
{
	for (uint32_t k = 0; k < BLOCKS; k++) {
		const struct node *b = &g->node[which][k];

		ADD("B%u: mad.lo.u32 %%x, %%x, %u, %u; setp.eq.u32 %%q, %%fuel, 0; @%%q bra END; sub.u32 %%fuel, %%fuel, 1;\n", k,
		    b->mul, b->add);
		switch (b->end) {
		case TWO_WAY:
			ADD("shr.u32 %%y, %%x, %u; and.b32 %%y, %%y, 1; setp.ne.u32 %%q, %%y, 0;\n", b->bit);
			ADD(b->bit & 1 ? "@%%q bra B%u; bra B%u;\n" : "@!%%q bra B%u; bra B%u;\n", b->to[b->bit & 1 ? 1 : 0],
			    b->to[b->bit & 1 ? 0 : 1]);
			break;
		case TABLE:
			ADD("shr.u32 %%y, %%x, %u; and.b32 %%y, %%y, 3; T%u: .branchtargets B%u, B%u, B%u, B%u; brx.idx %%y, "
			    "T%u;\n",
			    b->bit, k, b->to[0], b->to[1], b->to[2], b->to[3], k);
			break;
		case CALL: /* half of them through a pointer */
			ADD("setp.ge.u32 %%q, %%depth, 5; @%%q bra N%u; shr.u32 %%y, %%x, %u; rem.u32 %%y, %%y, 12; add.u32 %%z, "
			    "%%depth, 1;\n",
			    k, b->bit);
			ADD("{ .param .b32 a; .param .b32 b; .param .b32 c; .param .b32 r; st.param.b32 [a], %%x; st.param.b32 "
			    "[b], %%y; st.param.b32 [c], %%z;\n");
			if (b->bit & 1)
				ADD("mov.u64 %%f, walk; P%u: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, "
				    ".param .b32 _); call (r), %%f, (a, "
				    "b, c), P%u;\n",
				    k, k);
			else
				ADD("call (r), walk, (a, b, c);\n");
			ADD("ld.param.b32 %%x, [r]; }\nN%u: bra B%u;\n", k, b->to[0]);
			break;
		case LEAVE:
			ADD("shr.u32 %%y, %%x, %u; and.b32 %%y, %%y, 7; setp.ne.u32 %%q, %%y, 0; @%%q bra B%u; bra END;\n",
			    b->bit, b->to[1]);
			break;
		}
	}
}

#define REGS ".reg .b32 %x, %y, %z, %fuel, %depth, %t; .reg .b64 %f, %o, %a; .reg .pred %q;\n"

static void run_graphs(void)
{
	uint32_t bad = 0, threads = 77;

	for (uint32_t k = 0; k < 60; k++) {
		struct graph g;
		enum ptx_status st;

		graph_make(&g);
		at = 0;
		ADD("%s.func (.param .b32 r) walk(.param .b32 a, .param .b32 b, .param .b32 c);\n", HEAD);
		ADD(".func (.param .b32 r) walk(.param .b32 a, .param .b32 b, .param .b32 c) {\n%sld.param.b32 %%x, [a]; "
		    "ld.param.b32 %%fuel, [b]; ld.param.b32 "
		    "%%depth, [c];\n",
		    REGS);
		graph_body(&g, 1);
		ADD("END: xor.b32 %%x, %%x, %%depth; st.param.b32 [r], %%x; ret; }\n");
		ADD(".visible .entry k(.param .u64 p) {\n%sld.param.u64 %%o, [p]; mov.u32 %%t, %%tid.x; mul.wide.u32 %%a, %%t, "
		    "4; add.u64 %%o, %%o, %%a;\n",
		    REGS);
		ADD("mul.lo.u32 %%x, %%t, 2654435761; mov.u32 %%fuel, %u; mov.u32 %%depth, 0;\n", FUEL);
		graph_body(&g, 0);
		ADD("END: xor.b32 %%x, %%x, %%depth; st.global.u32 [%%o], %%x; ret; }\n");
		st = launch(text, 1, threads);
		if (st != PTX_OK) {
			printf("# graph %u: status %d, %s\n", k, st, test_fault.text);
			bad++;
			continue;
		}
		for (uint32_t t = 0; t < threads; t++)
			if (out[t] != walk(&g, 0, t * 2654435761u, FUEL, 0) && bad++ < 3)
				printf("# graph %u thread %u: got %u want %u\n", k, t, out[t],
				       walk(&g, 0, t * 2654435761u, FUEL, 0));
	}
	ok(!bad, "60 random graphs with branches, tables, direct and indirect recursive calls and early ends");
}

/* ---- Kernels that say themselves what is right ---- */

#define KERNEL(body)                                                                                                             \
	HEAD ".visible .entry k(.param .u64 p) {\n"                                                                              \
	     ".reg .b32 %r<20>, %t, %l, %w; .reg .b64 %d<9>, %o, %a; .reg .pred %p<9>; .shared .align 8 .b32 s[256];\n"          \
	     "ld.param.u64 %o, [p]; mov.u32 %t, %tid.x; and.b32 %l, %t, 31; shr.u32 %w, %t, 5; mul.wide.u32 %a, %t, 4; add.u64 " \
	     "%a, %o, %a;\n" body "\nret; }\n"

/* Shared memory holds anything at first. */
#define ZERO "st.shared.u32 [s], 0; bar.sync 0;\n"

static void each(const char *source, uint32_t grid, uint32_t block, uint32_t (*want)(uint32_t t), const char *what)
{
	enum ptx_status st;
	uint32_t bad = 0;

	memset(out, 0, 4096 * 4);
	st = launch(source, grid, block);
	if (st != PTX_OK)
		printf("# status %d: %s\n", st, test_fault.text);
	for (uint32_t t = 0; t < block && st == PTX_OK; t++)
		if (out[t] != want(t) && bad++ < 3)
			printf("# thread %u: got %u want %u\n", t, out[t], want(t));
	ok(st == PTX_OK && !bad, "%s", what);
}

static uint32_t one(uint32_t t)
{
	(void)t;
	return 1;
}

static uint32_t total(uint32_t t)
{
	return t ? 0 : 4 * 96;
}

static uint32_t tickets(uint32_t t)
{
	return t == 64 || t == 65 ? 4 * 96 : total(t);
}

static void run_locks(void)
{
	/* out[0] counts, out[64] is the lock, out[65] … tickets */
	each(KERNEL("L: atom.global.cas.b32 %r1, [%o+256], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\n"
		    "ld.volatile.global.u32 %r2, [%o]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%o], %r2; membar.gl; "
		    "st.volatile.global.u32 [%o+256], 0;"),
	     4, 96, total, "a lock that every lane takes, its release behind the loop");
	each(KERNEL("mov.u32 %r9, 0; L: atom.global.exch.b32 %r1, [%o+256], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra N;\n"
		    "M: atom.global.cas.b32 %r1, [%o+260], 0, 1; setp.ne.u32 %p2, %r1, 0; @%p2 bra M;\n"
		    "ld.volatile.global.u32 %r2, [%o]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%o], %r2; membar.gl; "
		    "st.volatile.global.u32 [%o+260], 0; "
		    "st.volatile.global.u32 [%o+256], 0; mov.u32 %r9, 1;\nN: setp.eq.u32 %p1, %r9, 0; @%p1 bra L;"),
	     4, 96, total, "a lock within a lock, released inside the loop");
	each(KERNEL("atom.global.add.u32 %r3, [%o+256], 1; L: ld.acquire.gpu.global.u32 %r1, [%o+260]; setp.ne.u32 %p1, %r1, "
		    "%r3; @%p1 bra L;\n"
		    "ld.global.u32 %r2, [%o]; add.u32 %r2, %r2, 1; st.global.u32 [%o], %r2; add.u32 %r1, %r1, 1; "
		    "st.release.gpu.global.u32 [%o+260], %r1;"),
	     4, 96, tickets, "tickets: each lane waits for the one before it");
	test_threads = 3;
	each(KERNEL("atom.global.add.u32 %r3, [%o+256], 1; L: ld.acquire.gpu.global.u32 %r1, [%o+260]; setp.ne.u32 %p1, %r1, "
		    "%r3; @%p1 nanosleep.u32 20; @%p1 bra L;\n"
		    "ld.global.u32 %r2, [%o]; add.u32 %r2, %r2, 1; st.global.u32 [%o], %r2; add.u32 %r1, %r1, 1; "
		    "st.release.gpu.global.u32 [%o+260], %r1;"),
	     4, 96, tickets, "the same with blocks on three host threads and nanosleep");
	test_threads = 1;
	each(KERNEL(ZERO
		    "setp.eq.u32 %p1, %l, 31; @%p1 bra G; L: ld.volatile.shared.u32 %r1, [s]; setp.eq.u32 %p2, %r1, 0; @%p2 bra "
		    "L; st.global.u32 [%a], 1; bra E;\n"
		    "G: st.volatile.shared.u32 [s], 1; st.global.u32 [%a], 1; E:"),
	     1, 32, one, "31 lanes wait for the last one's flag");
}

static uint32_t arms(uint32_t t)
{
	return (t & 1) * 1000 + 128;
}

static uint32_t loops(uint32_t t)
{
	(void)t;
	return 10 * 64;
}

static uint32_t named(uint32_t t)
{
	return t < 64 ? 0 : 10 + t - 64;
}

static uint32_t reduced(uint32_t t)
{
	(void)t;
	return 40 + 100;
}

static uint32_t rounds(uint32_t t)
{
	return t < 32 ? 0 : 8 * 100 + 28;
}

static uint32_t left(uint32_t t)
{
	return t % 3 ? 0 : 32;
}

static void run_barriers(void)
{
	each(KERNEL(ZERO
		    "and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; atom.shared.add.u32 %r9, [s], 0; @%p1 bra ODD;\n"
		    "atom.shared.add.u32 %r2, [s], 1; bar.sync 0; ld.shared.u32 %r3, [s]; bra E;\n"
		    "ODD: atom.shared.add.u32 %r2, [s], 1; barrier.sync 0; ld.shared.u32 %r3, [s]; add.u32 %r3, %r3, 1000; E: "
		    "st.global.u32 [%a], %r3;"),
	     1, 128, arms, "a barrier in each arm of a branch is one barrier");
	each(KERNEL(ZERO "mov.u32 %r1, 0; mov.u32 %r2, 0; L: setp.lt.u32 %p1, %t, 40; @%p1 bra A;\n"
			 "atom.shared.add.u32 %r9, [s], 1; bar.sync 0; ld.shared.u32 %r3, [s]; bar.sync 0; bra N;\n"
			 "A: atom.shared.add.u32 %r9, [s], 1; bar.sync 0; ld.shared.u32 %r3, [s]; bar.sync 0;\n"
			 "N: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10; @%p1 bra L; st.global.u32 [%a], %r3;"),
	     1, 64, loops, "two barriers in each round of a diverged loop");
	/* warps 0 and 1 arrive at barrier 5, one of them in halves; warps 2 and 3 wait for them */
	each(KERNEL("setp.ge.u32 %p1, %t, 64; @%p1 bra C; add.u32 %r1, %t, 10; mul.wide.u32 %d1, %t, 4; mov.u64 %d2, s; add.u64 "
		    "%d1, %d1, %d2; st.shared.u32 [%d1], "
		    "%r1;\nsetp.lt.u32 %p2, %t, 16; @%p2 bra H; bar.arrive 5, 128; bra E; H: barrier.arrive 5, 128; bra E;\n"
		    "C: bar.sync 5, 128; sub.u32 %r1, %t, 64; mul.wide.u32 %d1, %r1, 4; mov.u64 %d2, s; add.u64 %d1, %d1, %d2; "
		    "ld.shared.u32 %r1, [%d1]; "
		    "st.global.u32 [%a], %r1; E:"),
	     1, 128, named, "bar.arrive of a warp in two parts, bar.sync of others");
	each(KERNEL("setp.lt.u32 %p1, %t, 40; setp.ge.u32 %p3, %t, 0; setp.lt.u32 %p2, %t, 17; @%p2 bra A;\n"
		    "barrier.red.popc.u32 %r1, 0, %p1; barrier.red.and.pred %p4, 0, %p3; bra E;\n"
		    "A: bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p4, 0, %p3; E: selp.u32 %r2, 100, 0, %p4; add.u32 %r1, "
		    "%r1, %r2; st.global.u32 [%a], %r1;"),
	     1, 96, reduced, "barrier reductions in two arms");
	/* a ring of one cell: the producer fills when barrier 2 says empty, the consumers read when barrier 1 says full */
	each(KERNEL("mov.u32 %r1, 0; mov.u32 %r2, 0; setp.ge.u32 %p1, %t, 32; @%p1 bra C;\n"
		    "P: add.u32 %r3, %r1, 100; setp.eq.u32 %p2, %l, 0; @%p2 st.shared.u32 [s], %r3; bar.arrive 1, 128; bar.sync "
		    "2, 128; add.u32 %r1, %r1, 1; "
		    "setp.lt.u32 %p3, %r1, 8; @%p3 bra P; bra E;\n"
		    "C: bar.sync 1, 128; ld.shared.u32 %r3, [s]; add.u32 %r2, %r2, %r3; bar.arrive 2, 128; add.u32 %r1, %r1, 1; "
		    "setp.lt.u32 %p3, %r1, 8; @%p3 bra C; "
		    "st.global.u32 [%a], %r2; E:"),
	     1, 128, rounds, "a producer warp and three consumer warps through eight rounds");
	each(KERNEL(ZERO "rem.u32 %r1, %t, 3; setp.ne.u32 %p1, %r1, 0; @%p1 exit; atom.shared.add.u32 %r9, [s], 1; bar.sync 0; "
			 "ld.shared.u32 %r3, [s]; st.global.u32 "
			 "[%a], %r3;"),
	     1, 96, left, "who left is not waited for at a barrier");
}

static uint32_t sums(uint32_t t)
{
	return t & 1 ? 16 * 5 : 16 * 3;
}

static uint32_t after_exit(uint32_t t)
{
	return t < 8 ? 0 : 24;
}

static void run_warp(void)
{
	each(KERNEL("and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra ODD;\n"
		    "mov.u32 %r2, 3; redux.sync.add.u32 %r3, %r2, 0x55555555; bra E; ODD: mov.u32 %r2, 5; redux.sync.add.u32 "
		    "%r3, %r2, 0xaaaaaaaa;\n"
		    "E: st.global.u32 [%a], %r3;"),
	     1, 64, sums, "a reduction of half the warp in each arm");
	each(KERNEL("setp.lt.u32 %p1, %l, 8; @%p1 exit; redux.sync.add.u32 %r3, 1, 0xffffffff; st.global.u32 [%a], %r3;"), 1, 32,
	     after_exit, "lanes that left are not waited for, and add nothing");
}

/* ---- What cannot end must be told ---- */

static void deadlock(const char *source, uint32_t block, const char *what)
{
	enum ptx_status st = launch(source, 2, block);

	if (!ok(st == PTX_DEADLOCK && test_fault.line && strstr(test_fault.text, "deadlock"), "%s", what))
		printf("# status %d: %s\n", st, test_fault.text);
}

static void run_deadlocks(void)
{
	deadlock(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra A; bar.sync 1; bra E; A: bar.sync 2; E:"), 32,
		 "two barriers that wait for each other");
	deadlock(KERNEL("setp.lt.u32 %p1, %t, 32; @%p1 bar.sync 1, 64; @!%p1 bar.sync 2, 64;"), 64,
		 "two warps at barriers of two warps each");
	deadlock(KERNEL("bar.sync 3, 96;"), 64, "a barrier for more threads than the block has");
	deadlock(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra A; bar.sync 0; bra E; A: shfl.sync.idx.b32 %r1, %t, 0, 31, "
			"0xffffffff; E:"),
		 32, "a shuffle that names a lane which sits in a barrier");
	deadlock(KERNEL("setp.lt.u32 %p1, %t, 16; @%p1 bra A; redux.sync.add.u32 %r1, %t, 0xffffffff; bra E; A: "
			"vote.sync.any.pred %p2, %p1, 0xffffffff; E:"),
		 32, "halves of a warp in different instructions that name all");
	deadlock(KERNEL("shl.b32 %r1, 3, %l; bar.warp.sync %r1; setp.eq.u32 %p1, %l, 5; @%p1 bar.sync 0; bar.warp.sync "
			"0xffffffff;"),
		 32, "bar.warp.sync with a lane in a barrier");
	deadlock(HEAD ".func f() { bar.sync 7; ret; } .visible .entry k(.param .u64 p) { .reg .b32 %t; .reg .pred %q; mov.u32 "
		      "%t, %tid.x; setp.lt.u32 %q, %t, 3; @%q "
		      "call f; bar.warp.sync 0xffffffff; ret; }",
		 32, "a barrier within a function that three lanes call");
}

static volatile int flag;

static void *set_flag(void *unused)
{
	const struct timespec wait = {0, 50000000};

	nanosleep(&wait, NULL);
	flag = 1;
	return unused;
}

static void cancelled(const char *source, uint32_t block, const char *what)
{
	pthread_t t;
	enum ptx_status st;

	flag = 0;
	cancel = &flag;
	pthread_create(&t, NULL, set_flag, NULL);
	st = launch(source, 3, block);
	pthread_join(t, NULL);
	cancel = NULL;
	if (!ok(st == PTX_CANCELLED, "%s", what))
		printf("# status %d: %s\n", st, test_fault.text);
}

static void run_endless(void)
{
	cancelled(KERNEL("L: bra L;"), 32, "a loop without end ends when it is cancelled");
	cancelled(KERNEL("st.global.u32 [%o], 1; L: atom.global.cas.b32 %r1, [%o], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;"),
		  64, "a lock that nobody releases");
	cancelled(KERNEL("setp.lt.u32 %p1, %t, 5; @%p1 bar.sync 0; L: nanosleep.u32 100; bra L;"), 64,
		  "a loop of nanosleep beside lanes in a barrier");
	cancelled(HEAD
		  ".func f() { .reg .b32 %x; L: mov.u32 %x, 0; ret; } .visible .entry k(.param .u64 p) { L: call f; bra L; }",
		  32, "a loop around a call");
	cancelled(KERNEL("mov.u32 %r1, 0; ts: .branchtargets A, B; A: xor.b32 %r1, %r1, 1; brx.idx %r1, ts; B: brx.idx 0, ts;"),
		  32, "a loop of brx.idx");
	cancelled(KERNEL("setp.eq.u32 %p1, %l, 9; @%p1 bra W; bar.warp.sync 0xfffffdff; L: bra L; W: bra W;"), 32,
		  "lanes that loop in two places");
}

static void run_faults(void)
{
	enum ptx_status st;

	st = launch(
		KERNEL("ts: .branchtargets A, B, A; setp.eq.u32 %p1, %t, 40; selp.u32 %r1, 3, 1, %p1; brx.idx %r1, ts; A: B:"), 1,
		64);
	ok(st == PTX_ILLEGAL_INSTRUCTION && test_fault.thread[0] == 40, "one lane's index is not in the table");
	st = launch(HEAD ".func f() { ret; } .visible .entry k(.param .u64 p) { .reg .b32 %t; .reg .b64 %f; .reg .pred %q; "
			 "mov.u64 %f, f; mov.u32 %t, %tid.x;\n"
			 "setp.eq.u32 %q, %t, 33; @%q add.u64 %f, %f, 8; P: .callprototype _ (); call %f, P; ret; }",
		    1, 64);
	ok(st == PTX_ILLEGAL_INSTRUCTION && test_fault.thread[0] == 33, "one lane calls what is no function");
	st = launch(HEAD ".func f(.param .b32 n) { .reg .b32 %n; .param .b32 q; .local .b8 big[512]; ld.param.b32 %n, [n]; "
			 "st.param.b32 [q], %n; call f, (q); ret; }\n"
			 ".visible .entry k(.param .u64 p) { .param .b32 q; st.param.b32 [q], 1; call f, (q); ret; }",
		    1, 64);
	ok(st == PTX_STACK, "recursion without end");
	st = launch(HEAD ".func f(.param .b32 n) { .reg .b32 %n; .param .b32 q; ld.param.b32 %n, [n]; st.param.b32 [q], %n; call "
			 "f, (q); ret; }\n"
			 ".visible .entry k(.param .u64 p) { .reg .b32 %t; .reg .pred %q; .param .b32 q; st.param.b32 [q], 1; "
			 "mov.u32 %t, %laneid; "
			 "setp.eq.u32 %q, %t, 4; @%q call f, (q); bar.sync 0; ret; }",
		    1, 64);
	ok(st == PTX_STACK, "of two lanes while the others wait in a barrier");
}

int main(void)
{
	test_arena_init();
	out = test_alloc(4096 * 4);
	run_graphs();
	run_locks();
	run_barriers();
	run_warp();
	run_deadlocks();
	run_endless();
	run_faults();
	return tap_done();
}
