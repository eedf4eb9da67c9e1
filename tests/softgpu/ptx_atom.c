/* SPDX-License-Identifier: MIT */
/* atom and red: every operation, type and space; final memory and the returned values equal some serial order of the lanes. */
#include "tests/softgpu/ptx_fp.h"

#define THREADS 96u
#define CELLS	8u

enum op { ADD, EXCH, CAS, MIN, MAX, INC, DEC, AND, OR, XOR };
static const char *const op_names[] = {"add", "exch", "cas", "min", "max", "inc", "dec", "and", "or", "xor"};

/* kind: b bits, u s integers, f float, h f16, g bf16, H G pairs of them */
static const struct {
	const char *name;
	u32 size;
	char kind;
	u32 ops;	 /* bit per operation */
	const char *mod; /* what PTX wants beside the type */
} types[] = {
	{"b16", 2, 'b', 1 << EXCH | 1 << CAS, ""},
	{"b32", 4, 'b', 1 << EXCH | 1 << CAS | 1 << AND | 1 << OR | 1 << XOR, ""},
	{"b64", 8, 'b', 1 << EXCH | 1 << CAS | 1 << AND | 1 << OR | 1 << XOR, ""},
	{"u32", 4, 'u', 1 << ADD | 1 << MIN | 1 << MAX | 1 << INC | 1 << DEC, ""},
	{"s32", 4, 's', 1 << ADD | 1 << MIN | 1 << MAX, ""},
	{"u64", 8, 'u', 1 << ADD | 1 << MIN | 1 << MAX, ""},
	{"s64", 8, 's', 1 << ADD | 1 << MIN | 1 << MAX, ""},
	{"f32", 4, 'f', 1 << ADD, ""},
	{"f64", 8, 'f', 1 << ADD, ""},
	{"f16", 2, 'h', 1 << ADD, ".noftz"},
	{"bf16", 2, 'g', 1 << ADD, ".noftz"},
	{"f16x2", 4, 'H', 1 << ADD, ".noftz"},
	{"bf16x2", 4, 'G', 1 << ADD, ".noftz"},
};

static const struct {
	const char *mod, *addr;
} spaces[] = {{".global", "add.u64 %d1, %cells, %off;"},
	      {"", "add.u64 %d1, %cells, %off;"},
	      {".shared", "mov.u64 %d1, sh; add.u64 %d1, %d1, %off;"},
	      {".shared::cta", "mov.u64 %d1, sh; add.u64 %d1, %d1, %off;"},
	      {"", "mov.u64 %d1, sh; cvta.shared.u64 %d1, %d1; add.u64 %d1, %d1, %off;"}};

/* Semantics and scopes that PTX may name; they change nothing that one can see here. */
static const char *const orders[] = {"", ".relaxed.gpu", ".acquire.sys", ".release.cta", ".acq_rel.gpu", ".relaxed.cluster"};

static u64 add_halves(u64 a, u64 b, u32 ebits, u32 n)
{
	u64 r = 0;

	for (u32 k = 0; k < n; k++)
		r |= to_half((long double)H((u16)(a >> 16 * k), ebits) + (long double)H((u16)(b >> 16 * k), ebits), ebits, N)
		     << 16 * k;
	return r;
}

/* One lane's step: the new value of the cell. */
static u64 step(u32 op, u32 t, u64 old, u64 b, u64 c)
{
	u64 mask = types[t].size == 8 ? ~0ull : (1ull << 8 * types[t].size) - 1;
	bool less;

	switch ((enum op)op) {
	case ADD:
		switch (types[t].kind) {
		case 'f':
			return types[t].size == 4 ? BF(F(old) + F(b)) : BD(D(old) + D(b));
		case 'h':
			return add_halves(old, b, 5, 1);
		case 'g':
			return add_halves(old, b, 8, 1);
		case 'H':
			return add_halves(old, b, 5, 2);
		case 'G':
			return add_halves(old, b, 8, 2);
		default:
			return (old + b) & mask;
		}
	case EXCH:
		return b;
	case CAS:
		return old == b ? c : old;
	case MIN:
	case MAX:
		less = types[t].kind == 'u' ? old < b : types[t].size == 4 ? (s32)old < (s32)b : (s64)old < (s64)b;
		return less == (op == MIN) ? old : b;
	case INC:
		return old >= b ? 0 : old + 1;
	case DEC:
		return !old || old > b ? b : old - 1;
	case AND:
		return old & b;
	case OR:
		return old | b;
	default:
		return old ^ b;
	}
}

static char text[1 << 19];
static size_t at;
#define ADDF(...) (at += (size_t)snprintf(text + at, sizeof(text) - at, __VA_ARGS__))

struct params {
	u64 *cells, *in, *out;
	u32 mask[THREADS / 32], cell_of;
};

static const char *form(char *buf, size_t size, bool red, u32 op, u32 t, u32 sp, u32 order)
{
	snprintf(buf, size, "%s%s%s.%s%s.%s", red ? "red" : "atom", orders[order], spaces[sp].mod, op_names[op], types[t].mod,
		 types[t].name);
	return buf;
}

static void kernel(u32 k, bool red, u32 op, u32 t, u32 sp, u32 order)
{
	char r = types[t].size == 2 ? 'h' : types[t].size == 4 ? 'w' : 'd', name[64];

	ADDF(".visible .entry k%u(.param .u64 cells, .param .u64 in, .param .u64 out, .param .u32 m0, .param .u32 m1, .param "
	     ".u32 m2, .param .u32 "
	     "cellof)\n{\n.shared .align 8 .b8 sh[64]; .reg .b16 %%h<8>; .reg .b32 %%w<8>, %%t, %%x, %%m; .reg .b64 %%d<8>, "
	     "%%cells, %%in, %%out, "
	     "%%off; .reg .pred %%on, %%q, %%s;\n",
	     k);
	ADDF("mov.u32 %%t, %%tid.x; ld.param.u64 %%cells, [cells]; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\n");
	ADDF("mul.wide.u32 %%off, %%t, 16; add.u64 %%in, %%in, %%off; mul.wide.u32 %%off, %%t, 8; add.u64 %%out, %%out, "
	     "%%off;\n");
	ADDF("ld.param.u32 %%m, [m0]; setp.ge.u32 %%q, %%t, 32; @%%q ld.param.u32 %%m, [m1]; setp.ge.u32 %%q, %%t, 64; @%%q "
	     "ld.param.u32 %%m, [m2];\n");
	ADDF("mov.u32 %%x, %%laneid; shr.u32 %%m, %%m, %%x; and.b32 %%m, %%m, 1; setp.ne.u32 %%on, %%m, 0;\n");
	/* the cells in shared memory and back: by the first threads */
	ADDF("setp.lt.u32 %%s, %%t, %u; add.u64 %%d1, %%cells, %%off; ld.global.u64 %%d2, [%%cells]; @%%s ld.global.u64 %%d2, "
	     "[%%d1]; mov.u64 %%d3, sh; "
	     "add.u64 %%d3, %%d3, %%off; @%%s st.shared.u64 [%%d3], %%d2; bar.sync 0;\n",
	     CELLS);
	ADDF("ld.param.u32 %%x, [cellof]; and.b32 %%x, %%t, %%x; mul.wide.u32 %%off, %%x, 8; %s\n", spaces[sp].addr);
	ADDF("ld.global.b%u %%%c3, [%%out]; ld.global.b%u %%%c4, [%%in]; ld.global.b%u %%%c5, [%%in+8];\n", 8 * types[t].size, r,
	     8 * types[t].size, r, 8 * types[t].size, r);
	form(name, sizeof(name), red, op, t, sp, order);
	if (k & 1)
		ADDF("@!%%on bra OUT;\n");
	ADDF("%s%s ", k & 1 ? "" : "@%on ", name);
	if (!red)
		ADDF("%%%c3, ", r);
	ADDF("[%%d1], %%%c4", r);
	if (op == CAS)
		ADDF(", %%%c5", r);
	ADDF(";\n%sst.global.b%u [%%out], %%%c3; bar.sync 0;\n", k & 1 ? "OUT: " : "", 8 * types[t].size, r);
	if (strstr(spaces[sp].addr, "sh;"))
		ADDF("mul.wide.u32 %%off, %%t, 8; mov.u64 %%d3, sh; add.u64 %%d3, %%d3, %%off; add.u64 %%d1, %%cells, %%off; "
		     "@%%s ld.shared.u64 %%d2, "
		     "[%%d3]; @%%s st.global.u64 [%%d1], %%d2;\n");
	ADDF("ret;\n}\n");
}

static u64 operand(u32 op, u32 t)
{
	u64 r = rng();

	switch (types[t].kind) {
	case 'f':
		return types[t].size == 4 ? (r & 1 ? f32_edges[(r >> 8) % COUNT(f32_edges)] : BF((float)(s32)r * 0.37f))
					  : (r & 1 ? f64_edges[(r >> 8) % COUNT(f64_edges)] : BD((double)(s64)r * 0.37));
	case 'h':
	case 'H':
		return pick_half(f16_edges, COUNT(f16_edges), r) |
		       (types[t].size == 4 ? pick_half(f16_edges, COUNT(f16_edges), rng()) << 16 : 0);
	case 'g':
	case 'G':
		return pick_half(bf16_edges, COUNT(bf16_edges), r) |
		       (types[t].size == 4 ? pick_half(bf16_edges, COUNT(bf16_edges), rng()) << 16 : 0);
	}
	if (op == CAS || op == INC || op == DEC)
		return r >> 20 & 3; /* few values, so that they meet */
	return r & 1 ? int_edges[(r >> 8) % COUNT(int_edges)] : r;
}

static char sig_of(u32 t)
{
	static const struct {
		char kind, sig;
	} s[] = {{'h', 'H'}, {'g', 'B'}, {'H', 'T'}, {'G', 'U'}};

	for (u32 k = 0; k < COUNT(s); k++)
		if (s[k].kind == types[t].kind)
			return s[k].sig;
	return types[t].kind == 'f' ? (types[t].size == 4 ? 'W' : 'D') : 'd';
}

/*
 * Finds a serial order of the lanes on one cell: repeatedly a lane that has not gone yet and whose returned value is the
 * cell's. When several fit and the first leads nowhere, the search goes back.
 */
static bool serial(u32 op, u32 t, const u64 (*in)[2], const u64 *got, const u32 *lanes, u32 n, u64 left_lo, u64 left_hi, u64 cell,
		   u64 final, u32 *budget)
{
	char sig = sig_of(t);
	u32 size = types[t].size;
	u64 mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;

	/* Who changes nothing may go at once: it takes no way from the others. */
	for (u32 k = 0; k < n; k++) {
		u64 bit = 1ull << (k & 63), *in_left = k < 64 ? &left_lo : &left_hi;

		if ((*in_left & bit) && same(got[lanes[k]] & mask, cell & mask, sig, 0) &&
		    step(op, t, cell & mask, in[lanes[k]][0] & mask, in[lanes[k]][1] & mask) == (cell & mask))
			*in_left &= ~bit;
	}
	if (!left_lo && !left_hi)
		return same(cell & mask, final & mask, sig, 0);
	for (u32 k = 0; k < n; k++) {
		u64 bit = 1ull << (k & 63), *in_left = k < 64 ? &left_lo : &left_hi;
		u64 next;

		if (!(*in_left & bit) || !same(got[lanes[k]] & mask, cell & mask, sig, 0))
			continue;
		if (!*budget || !--*budget)
			return false;
		next = step(op, t, cell & mask, in[lanes[k]][0] & mask, in[lanes[k]][1] & mask);
		*in_left &= ~bit;
		if (serial(op, t, in, got, lanes, n, left_lo, left_hi, next, final, budget))
			return true;
		*in_left |= bit;
	}
	return false;
}

/* Without returned values only what no order changes can be told: integer results, and floats that are exact. */
static u64 any_order(u32 op, u32 t, const u64 (*in)[2], const u32 *lanes, u32 n, u64 cell)
{
	u64 mask = types[t].size == 8 ? ~0ull : (1ull << 8 * types[t].size) - 1;

	for (u32 k = 0; k < n; k++)
		cell = step(op, t, cell & mask, in[lanes[k]][0] & mask, in[lanes[k]][1] & mask);
	return cell;
}

static void run_one(struct ptx_module *m, u32 k, bool red, u32 op, u32 t, u32 sp, u32 order)
{
	u64 *cells = test_alloc(CELLS * 8), (*in)[2] = test_alloc(THREADS * 16), *out = test_alloc(THREADS * 8), mark = test_used;
	struct params p = {.cells = cells, .in = in[0], .out = out};
	u64 before[CELLS], idle[THREADS], mask = types[t].size == 8 ? ~0ull : (1ull << 8 * types[t].size) - 1;
	char name[64];
	u32 bad = 0;

	/* all lanes on one cell, and spread over several */
	for (u32 round = 0; round < 4; round++) {
		p.cell_of = round & 1 ? CELLS - 1 : 0;
		for (u32 w = 0; w < THREADS / 32; w++)
			p.mask[w] = round < 2 ? FULL : w ? (u32)(rng() >> 16) : 1u << (rng() >> 20 & 31);
		for (u32 c = 0; c < CELLS; c++)
			before[c] = cells[c] = operand(op, t);
		for (u32 l = 0; l < THREADS; l++) {
			in[l][0] = operand(op, t);
			in[l][1] = operand(op, t);
			/* exact sums, so that a reduction has one result whatever the order */
			if (red && strchr("fhgHG", types[t].kind)) {
				u32 v = (u32)(rng() >> 30 & 3);

				in[l][0] = types[t].kind == 'f' ? (types[t].size == 4 ? BF((float)v) : BD((double)v))
								: add_halves(0, 0, 5, 1);
				if (types[t].kind != 'f')
					in[l][0] =
						to_half((long double)v, types[t].kind == 'h' || types[t].kind == 'H' ? 5 : 8, N);
			}
			idle[l] = out[l] = rng();
		}
		if (red && strchr("fhgHG", types[t].kind))
			for (u32 c = 0; c < CELLS; c++)
				before[c] = cells[c] = 0;
		snprintf(name, sizeof(name), "k%u", k);
		if (test_launch(ptx_module_kernel(m, name), 1, THREADS, &p) != PTX_OK) {
			printf("# %s\n", test_fault.text);
			bad++;
			break;
		}
		for (u32 c = 0; c < CELLS; c++) {
			u32 lanes[THREADS], n = 0, budget = 200000;
			bool good;

			/* The last warp at a barrier goes on first: in that order the search is short. */
			for (u32 i = 0; i < THREADS; i++) {
				u32 l = (i + THREADS - 32) % THREADS;
				bool on = p.mask[l / 32] >> l % 32 & 1;

				if ((l & p.cell_of) == c && on)
					lanes[n++] = l;
				else if ((l & p.cell_of) == c && (out[l] ^ idle[l]) & mask)
					bad++;
			}
			if (red)
				good = op == EXCH || op == CAS || op == INC || op == DEC ||
				       same(any_order(op, t, in, lanes, n, before[c]) & mask, cells[c] & mask, sig_of(t), 0);
			else
				good = serial(op, t, in, out, lanes, n, n > 63 ? ~0ull : (1ull << n) - 1,
					      n > 64 ? (1ull << (n - 64)) - 1 : 0, before[c], cells[c], &budget);
			/* the bytes beside a small cell are not touched */
			if (types[t].size < 8)
				good = good && !((before[c] ^ cells[c]) >> 8 * types[t].size);
			if (!good && bad < 3)
				printf("# cell %u: %u lanes, %llx became %llx\n", c, n, (unsigned long long)before[c],
				       (unsigned long long)cells[c]);
			bad += !good;
		}
	}
	ok(!bad, "%s%s", form(name, sizeof(name), red, op, t, sp, order), sp == 4 ? ", generic to shared" : "");
	form_ran(name);
	test_used = mark;
}

/* All lanes of several blocks and host threads add to one cell. */
static void run_blocks(void)
{
	u32 *cells = test_alloc(64);
	struct {
		u32 *cells;
	} p = {cells};
	struct ptx_module *m = test_must_load(
		".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %w; "
		"ld.param.u64 %d, [p];\n"
		"red.global.add.u32 [%d], 1; atom.global.inc.u32 %w, [%d+4], 999; atom.global.cas.b32 %w, [%d+8], 0, 5; "
		"red.global.max.u32 [%d+12], %w;\n"
		"mov.u32 %w, %tid.x; red.global.or.b32 [%d+16], %w; red.global.add.f32 [%d+20], 0f3f800000; ret; }");

	test_threads = 4;
	memset(cells, 0, 64);
	is_int(test_launch(ptx_module_kernel(m, "k"), 100, 128, &p), PTX_OK, "12800 threads in four host threads");
	test_threads = 1;
	ok(cells[0] == 12800 && cells[1] == 12800 % 1000 && cells[2] == 5 && cells[3] == 5 && cells[4] == 127 &&
		   F(cells[5]) == 12800.0f,
	   "no update is lost");
	ptx_module_free(m);
}

int main(void)
{
	struct ptx_module *m = NULL;

	test_arena_init();
	for (u32 t = 0; t < COUNT(types); t++) {
		for (int run = 0; run < 2; run++) {
			u32 k = 0;

			if (run) {
				m = test_must_load(text);
			} else {
				at = 0;
				ADDF(".version 9.0\n.target sm_100\n.address_size 64\n");
			}
			for (u32 op = ADD; op <= XOR; op++)
				for (u32 sp = 0; sp < COUNT(spaces) && types[t].ops >> op & 1; sp++)
					for (u32 red = 0; red < 2; red++) {
						u32 order = (op + sp + red) % COUNT(orders);

						if (red && (op == EXCH || op == CAS))
							continue; /* PTX has none */
						if (red && strstr(orders[order], "acq"))
							order = 1;
						if (run)
							run_one(m, k++, red, op, t, sp, order);
						else
							kernel(k++, red, op, t, sp, order);
					}
		}
		ptx_module_free(m);
	}
	run_blocks();
	forms_done("atom");
	return tap_done();
}
