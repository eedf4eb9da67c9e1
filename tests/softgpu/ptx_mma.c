/* SPDX-License-Identifier: MIT */
/* mma, mma.sp and the matrix moves in every shape and type: fragments by the manual's formulas, against sums in plain C. */
#include <math.h>

#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

typedef uint32_t u32;
typedef uint64_t u64;

enum elem { F16, BF16, TF32, F32, F64, E4M3, E5M2, E3M2, E2M3, E2M1, S8, U8, S4, U4, B1, S32 };

static const struct {
	const char *name;
	u32 bits, per_reg;   /* in a register */
	int exp, mant, bias; /* of a float */
} elems[] = {
	[F16] = {"f16", 16, 2, 5, 10, 15},  [BF16] = {"bf16", 16, 2, 8, 7, 127}, [TF32] = {"tf32", 32, 1, 8, 23, 127},
	[F32] = {"f32", 32, 1, 8, 23, 127}, [F64] = {"f64", 64, 1, 0, 0, 0},	 [E4M3] = {"e4m3", 8, 4, 4, 3, 7},
	[E5M2] = {"e5m2", 8, 4, 5, 2, 15},  [E3M2] = {"e3m2", 8, 4, 3, 2, 3},	 [E2M3] = {"e2m3", 8, 4, 2, 3, 1},
	[E2M1] = {"e2m1", 8, 4, 2, 1, 1},   [S8] = {"s8", 8, 4, 0, 0, 0},	 [U8] = {"u8", 8, 4, 0, 0, 0},
	[S4] = {"s4", 4, 8, 0, 0, 0},	    [U4] = {"u4", 4, 8, 0, 0, 0},	 [B1] = {"b1", 1, 32, 0, 0, 0},
	[S32] = {"s32", 32, 1, 0, 0, 0},
};

static u64 rng_state = 0x2545f4914f6cdd1d;

static u32 rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (u32)(rng_state >> 16);
}

/* The value of a float's bits, by definition; only finite ones are made here. */
static double float_value(u32 v, enum elem e)
{
	int exp = elems[e].exp, mant = elems[e].mant;
	int x = (int)(v >> mant & ((1u << exp) - 1));
	double m = v & ((1u << mant) - 1), r;

	r = x ? ldexp(m + ldexp(1, mant), x - elems[e].bias - mant) : ldexp(m, 1 - elems[e].bias - mant);
	return v >> (exp + mant) & 1 ? -r : r;
}

/* The one f16 or bf16 with the value (@n − 16) / 4. */
static u32 quarter(u32 n, enum elem e)
{
	static u32 found[2][33];
	u32 inf = e == F16 ? 0x7c00 : 0x7f80, *at = &found[e == F16][n];

	while (n != 16 && !*at)
		for (u32 b = 1; b < 0x10000 && !*at; b++)
			if ((b & inf) != inf && float_value(b, e) == ((int)n - 16) / 4.0)
				*at = b;
	return *at;
}

/* A random element: its bits and its value. Floats are such that all sums are exact. */
static double pick(enum elem e, u64 *bits)
{
	u32 r = rng();
	double v;

	switch (e) {
	case F64:
		v = (int)(r % 2001) - 1000;
		memcpy(bits, &v, 8);
		return v;
	case TF32:
	case F32:
	case F16:
	case BF16:
		v = ((int)(r % 33) - 16) / 4.0;
		*bits = quarter(r % 33, e == F16 ? F16 : BF16);
		if (e != F16 && e != BF16)
			*bits <<= 16;
		return v;
	case E4M3:
	case E5M2:
	case E3M2:
	case E2M3:
	case E2M1:
		/* exponents from subnormal to where sums of 64 products are still exact in f32 */
		do
			*bits = rng() & ((1u << (1 + elems[e].exp + elems[e].mant)) - 1);
		while (fabs(float_value((u32)*bits, e)) > 8 ||
		       (float_value((u32)*bits, e) != 0 && fabs(float_value((u32)*bits, e)) < 1.0 / 64));
		v = float_value((u32)*bits, e);
		if (e == E2M1)
			*bits <<= 2; /* in the middle of its byte */
		return v;
	case S8:
		*bits = r & 0xff;
		return (int8_t)r;
	case U8:
		*bits = r & 0xff;
		return (uint8_t)r;
	case S4:
		*bits = r & 15;
		return (int)(*bits ^ 8) - 8;
	case U4:
		*bits = r & 15;
		return (double)*bits;
	case B1:
		*bits = r & 1;
		return (double)*bits;
	default:
		*bits = r;
		return (int32_t)r;
	}
}

struct mma {
	u32 m, n, k;
	enum elem d, a, b, c;
	const char *extra; /* modifiers behind row.col */
	int sel;	   /* sparse: the selector, else −1 */
	const char *end;   /* modifiers behind the types */
};

#define D -1, ""
static const struct mma cases[] = {
	{16, 8, 8, F32, F16, F16, F32, "", D},
	{16, 8, 8, F16, F16, F16, F16, "", D},
	{16, 8, 16, F32, F16, F16, F32, "", D},
	{16, 8, 16, F16, F16, F16, F16, "", D},
	{16, 8, 8, F32, BF16, BF16, F32, "", D},
	{16, 8, 16, F32, BF16, BF16, F32, "", D},
	{16, 8, 4, F32, TF32, TF32, F32, "", D},
	{16, 8, 8, F32, TF32, TF32, F32, "", D},
	{16, 8, 16, F32, E4M3, E4M3, F32, "", D},
	{16, 8, 32, F32, E4M3, E5M2, F32, "", D},
	{16, 8, 32, F32, E5M2, E5M2, F32, "", D},
	{16, 8, 16, F16, E5M2, E4M3, F16, "", D},
	{16, 8, 32, F16, E4M3, E4M3, F16, "", D},
	{16, 8, 32, F32, E3M2, E2M3, F32, ".kind::f8f6f4", D},
	{16, 8, 32, F32, E2M1, E4M3, F32, ".kind::f8f6f4", D},
	{16, 8, 32, F16, E2M1, E3M2, F16, ".kind::f8f6f4", D},
	{8, 8, 4, F64, F64, F64, F64, "", D},
	{16, 8, 4, F64, F64, F64, F64, "", D},
	{16, 8, 8, F64, F64, F64, F64, "", D},
	{16, 8, 16, F64, F64, F64, F64, "", D},
	{8, 8, 16, S32, S8, S8, S32, "", D},
	{8, 8, 16, S32, U8, S8, S32, ".satfinite", D},
	{16, 8, 16, S32, S8, U8, S32, "", D},
	{16, 8, 32, S32, U8, U8, S32, ".satfinite", D},
	{8, 8, 32, S32, S4, S4, S32, "", D},
	{8, 8, 32, S32, U4, S4, S32, ".satfinite", D},
	{16, 8, 32, S32, S4, U4, S32, "", D},
	{16, 8, 64, S32, S4, S4, S32, ".satfinite", D},
	{16, 8, 64, S32, U4, U4, S32, "", D},
	{8, 8, 128, S32, B1, B1, S32, "", -1, ".xor.popc"},
	{16, 8, 128, S32, B1, B1, S32, "", -1, ".and.popc"},
	{16, 8, 256, S32, B1, B1, S32, "", -1, ".xor.popc"},
	{16, 8, 256, S32, B1, B1, S32, "", -1, ".and.popc"},
	{16, 8, 16, F32, F16, F16, F32, "", 0, ""},
	{16, 8, 16, F16, F16, F16, F16, "", 3, ""},
	{16, 8, 32, F32, F16, F16, F32, "", 0, ""},
	{16, 8, 32, F16, F16, F16, F16, "", 1, ""},
	{16, 8, 16, F32, BF16, BF16, F32, "", 2, ""},
	{16, 8, 32, F32, BF16, BF16, F32, "", 1, ""},
	{16, 8, 8, F32, TF32, TF32, F32, "", 1, ""},
	{16, 8, 16, F32, TF32, TF32, F32, "", 1, ""},
	{16, 8, 64, F32, E4M3, E5M2, F32, "", 0, ""},
	{16, 8, 64, F32, E2M1, E3M2, F32, ".kind::f8f6f4", 0, ""},
	{16, 8, 32, S32, S8, U8, S32, "", 1, ""},
	{16, 8, 64, S32, S8, S8, S32, ".satfinite", 0, ""},
	{16, 8, 64, S32, U4, S4, S32, "", 1, ""},
	{16, 8, 128, S32, S4, S4, S32, "", 0, ""},
};

#define NCASES (sizeof(cases) / sizeof(cases[0]))

static u32 regs(u32 elements, enum elem e)
{
	return elements / 32 / elems[e].per_reg;
}

#define ADD(...) (at += (size_t)snprintf(buf + at, at < size ? size - at : 0, __VA_ARGS__))

static size_t registers(char *buf, size_t size, char name, u32 n)
{
	size_t at = 0;

	ADD("{");
	for (u32 i = 0; i < n; i++)
		ADD("%s%%%c%u", i ? ", " : "", name, i);
	ADD("}");
	return at;
}

/* Lane l's registers lie one behind the other: a kernel of (a, b, c, d, metadata). */
static size_t kernel_text(char *buf, size_t size, const char *name, const char *op, const u32 n[4], bool wide, int sel)
{
	const char *type = wide ? "b64" : "b32";
	u32 bytes = wide ? 8 : 4;
	size_t at = 0;

	ADD(".visible .entry %s(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e)\n{\n", name);
	ADD(".reg .%s %%a<9>, %%b<9>, %%c<9>, %%d<9>; .reg .b32 %%l, %%e; .reg .b64 %%p, %%o;\nmov.u32 %%l, %%laneid;\n", type);
	for (u32 k = 0; k < 3; k++) {
		ADD("ld.param.u64 %%p, [%c]; mul.wide.u32 %%o, %%l, %u; add.s64 %%p, %%p, %%o;\n", "abc"[k], n[k] * bytes);
		for (u32 i = 0; i < n[k]; i++)
			ADD("ld.global.%s %%%c%u, [%%p+%u];\n", type, "abc"[k], i, i * bytes);
	}
	ADD("ld.param.u64 %%p, [e]; mul.wide.u32 %%o, %%l, 4; add.s64 %%p, %%p, %%o; ld.global.u32 %%e, [%%p];\n%s ", op);
	at += registers(buf + at, size - at, 'd', n[3]);
	for (u32 k = 0; k < 3; k++) {
		ADD(", ");
		at += registers(buf + at, size - at, "abc"[k], n[k]);
	}
	if (sel >= 0)
		ADD(", %%e, %d", sel);
	ADD(";\nld.param.u64 %%p, [d]; mul.wide.u32 %%o, %%l, %u; add.s64 %%p, %%p, %%o;\n", n[3] * bytes);
	for (u32 i = 0; i < n[3]; i++)
		ADD("st.global.%s [%%p+%u], %%d%u;\n", type, i * bytes, i);
	ADD("ret;\n}\n");
	return at;
}

static void op_text(char *buf, size_t size, const struct mma *t)
{
	snprintf(buf, size, "mma%s.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s",
		 t->sel < 0					   ? ""
		 : (*t->extra && t->extra[1] == 'k') || t->sel & 1 ? ".sp::ordered_metadata"
								   : ".sp",
		 t->m, t->n, t->k, t->extra, elems[t->d].name, elems[t->a].name, elems[t->b].name, elems[t->c].name, t->end);
}

static u32 *mem[5]; /* a, b, c, d, metadata */

static void put(u32 *fragment, u32 nregs, u32 lane, u32 i, enum elem e, u64 bits)
{
	u32 per = elems[e].per_reg, width = elems[e].bits;
	u32 *r = fragment + lane * nregs + i / per;

	if (width == 64)
		memcpy(fragment + (lane * nregs + i) * 2, &bits, 8);
	else if (width == 32)
		*r = (u32)bits;
	else
		*r |= (u32)bits << (width * (i % per));
}

static u64 get(const u32 *fragment, u32 nregs, u32 lane, u32 i, enum elem e)
{
	u64 v;

	if (elems[e].bits == 64) {
		memcpy(&v, fragment + (lane * nregs + i) * 2, 8);
		return v;
	}
	v = fragment[lane * nregs + i / elems[e].per_reg];
	return elems[e].bits == 32 ? v : v >> (16 * (i % 2)) & 0xffff;
}

/*
 * The manual's formulas: with groupID and threadID_in_group, registers of a alternate between rows groupID and groupID + 8, each
 * pair of them (or each, when m is 8) going on where the columns of the four threads before ended.
 */
static void place_a(const struct mma *t, u32 lane, u32 i, u32 *row, u32 *col)
{
	u32 per = elems[t->a].per_reg, r = i / per, tall = t->m / 8;

	*row = lane / 4 + (r % tall ? 8 : 0);
	*col = lane % 4 * per + i % per + r / tall * 4 * per;
}

static double A[16 * 256], B[256 * 8], C[16 * 8];

/* Metadata nibble @n of a row: which word of which lane, and where in it. */
static void meta_put(const struct mma *t, u32 row, u32 n, u32 bits)
{
	u32 quad = row % 8 * 4, sel = (u32)t->sel, per_row = t->k / (t->a == TF32 ? 2 : t->a == S4 || t->a == U4 ? 8 : 4);
	bool halves = t->a == F16 || t->a == BF16 || t->a == TF32;

	if (halves) /* bits 0..15: row groupID, 16..31: groupID + 8; 16 bits of columns a thread */
		mem[4][quad + sel * (per_row / 4) + n / 4] |= bits << (16 * (row / 8) + 4 * (n % 4));
	else /* 32 bits of columns: row groupID, then row groupID + 8, in consecutive threads */
		mem[4][quad + 2 * sel + n / 8 * 2 + row / 8] |= bits << (4 * (n % 8));
}

/* Fills a with half of its elements, the metadata and the whole A. */
static void fill_sparse(const struct mma *t, u32 na)
{
	u32 half = t->k / 2, group = t->a == TF32 ? 1 : t->a == S4 || t->a == U4 ? 4 : 2;
	u64 bits[16][64];

	memset(A, 0, sizeof(A));
	for (u32 row = 0; row < t->m; row++)
		for (u32 chunk = 0; chunk < half / group; chunk++) {
			u32 first = rng() % 3, second = first + 1 + rng() % (3 - first), nibble = first | second << 2;

			if (group == 1)
				nibble = rng() & 1 ? 14 : 4;
			meta_put(t, row, chunk, nibble);
			for (u32 q = 0; q < group; q++) {
				u32 place = group == 1	 ? nibble == 14
					    : group == 2 ? (q ? second : first)
							 : 2 * (q / 2 ? second : first) + q % 2;

				A[row * t->k + chunk * 2 * group + place] = pick(t->a, &bits[row][chunk * group + q]);
			}
		}
	for (u32 lane = 0; lane < 32; lane++)
		for (u32 i = 0; i < na * elems[t->a].per_reg; i++) {
			u32 row, col;

			place_a(t, lane, i, &row, &col);
			put(mem[0], na, lane, i, t->a, bits[row][col]);
		}
}

static double accumulated(const struct mma *t, u32 row, u32 col)
{
	double sum = C[row * 8 + col];

	for (u32 q = 0; q < t->k; q++) {
		double a = A[row * t->k + q], b = B[q * 8 + col];

		sum += t->a != B1 ? a * b : t->end[1] == 'x' ? a != b : a && b;
	}
	if (t->d == S32) {
		if (!strcmp(t->extra, ".satfinite"))
			return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
		return (int32_t)(u32)(int64_t)sum;
	}
	return sum;
}

static bool equals(u64 bits, enum elem e, double want)
{
	double d;

	switch (e) {
	case F64:
		memcpy(&d, &bits, 8);
		return d == want;
	case S32:
		return (int32_t)bits == want;
	case F16:
		/* one rounding to nearest even */
		d = float_value((u32)bits, F16);
		return fabs(d - want) * 2 <= ldexp(1, (want != 0 ? ilogb(want) : -14) - 10) ||
		       (fabs(want) < ldexp(1, -14) && fabs(d - want) * 2 <= ldexp(1, -24));
	default:
		return float_value((u32)bits, F32) == want;
	}
}

static void run_case(struct ptx_module *m, u32 k)
{
	const struct mma *t = &cases[k];
	u32 na = regs(t->m * t->k / (t->sel < 0 ? 1 : 2), t->a), nb = regs(t->n * t->k, t->b), nc = regs(t->m * t->n, t->c);
	u32 bad = 0, row, col;
	char name[32], op[160];
	u64 bits;

	snprintf(name, sizeof(name), "mma_%u", k);
	op_text(op, sizeof(op), t);
	for (u32 round = 0; round < 3; round++) {
		for (u32 q = 0; q < 5; q++)
			memset(mem[q], 0, 4096);
		if (t->sel >= 0)
			fill_sparse(t, na);
		for (u32 lane = 0; lane < 32; lane++) {
			for (u32 i = 0; t->sel < 0 && i < na * elems[t->a].per_reg; i++) {
				place_a(t, lane, i, &row, &col);
				A[row * t->k + col] = pick(t->a, &bits);
				put(mem[0], na, lane, i, t->a, bits);
			}
			for (u32 i = 0; i < nb * elems[t->b].per_reg; i++) {
				u32 per = elems[t->b].per_reg;

				B[(lane % 4 * per + i % per + i / per * 4 * per) * 8 + lane / 4] = pick(t->b, &bits);
				put(mem[1], nb, lane, i, t->b, bits);
			}
			for (u32 i = 0; i < nc * elems[t->c].per_reg; i++) {
				C[(lane / 4 + (i / 2) * 8) * 8 + lane % 4 * 2 + i % 2] = pick(t->c, &bits);
				put(mem[2], nc, lane, i, t->c, bits);
			}
		}
		if (test_launch(ptx_module_kernel(m, name), 1, 32, mem) != PTX_OK) {
			printf("# %s: %s\n", op, test_fault.text);
			bad++;
			break;
		}
		for (u32 lane = 0; lane < 32; lane++)
			for (u32 i = 0; i < t->m * 8 / 32; i++) {
				u64 got = get(mem[3], regs(t->m * t->n, t->d), lane, i, t->d);
				double want = accumulated(t, lane / 4 + (i / 2) * 8, lane % 4 * 2 + i % 2);

				if (!equals(got, t->d, want) && bad++ < 3)
					printf("# %s: lane %u, element %u: %llx is not %g\n", op, lane, i,
					       (unsigned long long)got, want);
			}
	}
	ok(!bad, "%s", op);
}

/* m8n8k4: four products of 8×8×4, in all layouts. */
static void run_884(struct ptx_module *m, u32 k)
{
	bool a_col = k & 1, b_col = k & 2, d32 = k & 4, c32 = k & 8;
	u32 na = 2, nb = 2, nc = c32 ? 8 : 4, nd = d32 ? 8 : 4, bad = 0;
	double a[4][8][4], b[4][4][8], c[4][8][8];
	char name[32];
	u64 bits;

	snprintf(name, sizeof(name), "mma884_%u", k);
	for (u32 q = 0; q < 5; q++)
		memset(mem[q], 0, 4096);
	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 lane = 0; lane < 32; lane++) {
			u32 p = lane % 16 / 4, x = lane < 16 ? lane % 4 : lane % 4 + 4;

			for (u32 i = 0; !pass && i < 4; i++) {
				u32 high = lane < 16 ? i : i + 4;

				*(a_col ? &a[p][high][lane % 4] : &a[p][x][i]) = pick(F16, &bits);
				put(mem[0], na, lane, i, F16, bits);
				*(b_col ? &b[p][i][x] : &b[p][lane % 4][high]) = pick(F16, &bits);
				put(mem[1], nb, lane, i, F16, bits);
			}
			for (u32 i = 0; i < 8; i++) {
				bool f32 = pass ? d32 : c32;
				u32 row = f32 ? (lane & 1) + (i & 2) + (lane < 16 ? 0 : 4) : x;
				u32 col = f32 ? (i & 4) + (lane & 2) + (i & 1) : i;
				double want;

				if (!pass) {
					c[p][row][col] = pick(c32 ? F32 : F16, &bits);
					put(mem[2], nc, lane, i, c32 ? F32 : F16, bits);
					continue;
				}
				want = c[p][row][col];
				for (u32 q = 0; q < 4; q++)
					want += a[p][row][q] * b[p][q][col];
				if (!equals(get(mem[3], nd, lane, i, d32 ? F32 : F16), d32 ? F32 : F16, want) && bad++ < 3)
					printf("# m8n8k4 %u: lane %u, element %u is not %g\n", k, lane, i, want);
			}
		}
		if (!pass && test_launch(ptx_module_kernel(m, name), 1, 32, mem) != PTX_OK)
			bad++;
	}
	ok(!bad, "m8n8k4, a by %s, b by %s, d %s, c %s", a_col ? "columns" : "rows", b_col ? "columns" : "rows",
	   d32 ? "f32" : "f16", c32 ? "f32" : "f16");
}

static bool has_884(u32 k)
{
	return !(k & 8) || k & 4; /* c of f32 wants d of f32 */
}

static const char *const refused[] = {
	"mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {d,d,d,d}, {a,a,a,a}, {a,a}, {d,d,d,d}",
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {d,d,d,d}, {a,a,a,a}, {a,a}, {d,d,d,d}",
	"mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32 {d,d,d,d}, {a,a,a,a}, {a,a}, {d,d,d,d}",
	"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d,d,d,d}, {a,a,a}, {a,a}, {d,d,d,d}",
	"mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e4m3.f32 {d,d,d,d}, {a,a,a,a}, {a,a}, {d,d,d,d}",
	"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {d,d,d,d}, {a,a,a,a}, {a,a,a,a}, {d,d,d,d}, a, 2",
	"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.or.popc {a,a}, {a}, {a}, {a,a}",
};

static void test_refused(void)
{
	for (u32 k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
		struct ptx_module *m;
		char text[512];

		snprintf(text, sizeof(text),
			 ".version 9.0\n.target sm_120a\n.address_size 64\n.visible .entry f()\n{\n.reg .f32 d; .reg .b32 "
			 "a;\n%s;\n}\n",
			 refused[k]);
		is_int(test_load(text, strlen(text), &m), PTX_UNSUPPORTED, "refused: %.70s", refused[k]);
	}
}

/* wmma of 4 bits and of one, and the moves of byte matrices, as PTX of their own: (a, b, c) and (in, out). */
static const char small_text[] = ".version 9.0\n.target sm_120a\n.address_size 64\n"
#define WMMA(name, k, type, op)                                                                                                  \
	".visible .entry " name                                                                                                  \
	"(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n.reg .b32 %x, %y, %z<2>; .reg .b64 %p, %q, %r;\n"                     \
	"ld.param.u64 %p, [a]; ld.param.u64 %q, [b]; ld.param.u64 %r, [c];\n"                                                    \
	"wmma.load.a.sync.aligned.row." k ".global." type " {%x}, [%p], 256;\n"                                                  \
	"wmma.load.b.sync.aligned.col." k ".global." type " {%y}, [%q], 256;\n"                                                  \
	"wmma.load.c.sync.aligned.row." k ".global.s32 {%z0, %z1}, [%r], 8;\n"                                                   \
	"wmma.mma" op ".sync.aligned.row.col." k ".s32." type "." type ".s32 {%z0, %z1}, {%x}, {%y}, {%z0, %z1};\n"              \
	"wmma.store.d.sync.aligned.col." k ".global.s32 [%r], {%z0, %z1}, 8;\nret;\n}\n"
	WMMA("s4", "m8n8k32", "s4", "")
		WMMA("b1", "m8n8k128", "b1",
		     ".xor.popc") ".visible .entry bytes(.param .u64 in, .param .u64 out)\n{\n.shared .align 16 .b8 s[512]; "
				  ".shared .align 16 .b8 t[512];\n"
				  ".reg .b32 %l, %a, %r<4>, %v<4>; .reg .b64 %p, %q, %o;\nmov.u32 %l, %laneid; shl.b32 %l, %l, "
				  "4; cvt.u64.u32 %o, %l;\n"
				  "ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; add.s64 %p, %p, %o; add.s64 %q, %q, %o;\n"
				  "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%p]; mov.u32 %a, s; add.u32 %a, %a, %l;\n"
				  "st.shared.v4.u32 [%a], {%v0, %v1, %v2, %v3}; bar.warp.sync -1;\n"
				  "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {%r0, %r1, %r2, %r3}, [%a];\n"
				  "st.global.v4.u32 [%q], {%r0, %r1, %r2, %r3}; mov.u32 %a, t; add.u32 %a, %a, %l;\n"
				  "stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 [%a], {%r0, %r1, %r2, %r3}; bar.warp.sync -1;\n"
				  "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; st.global.v4.u32 [%q+512], {%v0, %v1, %v2, "
				  "%v3};\nret;\n}\n";

static void test_small(void)
{
	struct ptx_module *m = test_must_load(small_text);
	uint8_t *a = test_alloc(2048), *b = test_alloc(2048), *out = test_alloc(1024);
	int32_t *c = test_alloc(256), was[64];
	void *p[3] = {a, b, c}, *q[2] = {a, out};

	for (u32 bits = 4; bits; bits = bits == 4 ? 1 : 0) {
		u32 k = bits == 4 ? 32 : 128, pitch = 256 * bits / 8, bad = 0;

		for (u32 i = 0; i < 2048; i++) {
			a[i] = (uint8_t)rng();
			b[i] = (uint8_t)rng();
		}
		for (u32 i = 0; i < 64; i++)
			was[i] = c[i] = (int32_t)(rng() % 1000);
		bad += test_launch(ptx_module_kernel(m, bits == 4 ? "s4" : "b1"), 1, 32, p) != PTX_OK;
		for (u32 r = 0; r < 8; r++)
			for (u32 j = 0; j < 8; j++) {
				int32_t want = was[r * 8 + j];

				for (u32 e = 0; e < k; e++) {
					int x = a[r * pitch + e * bits / 8] >> (e * bits % 8),
					    y = b[j * pitch + e * bits / 8] >> (e * bits % 8);

					want += bits == 4 ? (((x & 15) ^ 8) - 8) * (((y & 15) ^ 8) - 8) : (x ^ y) & 1;
				}
				bad += c[j * 8 + r] != want;
			}
		ok(!bad, "wmma of %u bits", bits);
	}
	{
		u32 loads = 0, stores = 0;

		if (test_launch(ptx_module_kernel(m, "bytes"), 1, 32, q) != PTX_OK)
			loads++;
		for (u32 l = 0; l < 32; l++)
			for (u32 k = 0; k < 4; k++)
				for (u32 e = 0; e < 4; e++) {
					uint8_t v = out[l * 16 + k * 4 + e];

					loads += v != a[(16 * (k / 2) + 4 * (l % 4) + e) * 16 + l / 4 + 8 * (k % 2)];
					stores += v != out[512 + (8 * k + 2 * (l % 4) + e % 2) * 16 + l / 4 + 8 * (e / 2)];
				}
		ok(!loads, "ldmatrix of two 16×16 matrices of bytes, transposed");
		ok(!stores, "stmatrix of four 16×8 matrices of bytes");
	}
	ptx_module_free(m);
}

int main(void)
{
	static char text[1 << 19], op[160];
	size_t at = 0, size = sizeof(text);
	char name[32], *buf = text;
	struct ptx_module *m;

	test_arena_init();
	ADD(".version 9.0\n.target sm_120a\n.address_size 64\n");
	for (u32 k = 0; k < NCASES; k++) {
		const struct mma *t = &cases[k];
		u32 n[4] = {regs(t->m * t->k / (t->sel < 0 ? 1 : 2), t->a), regs(t->n * t->k, t->b), regs(t->m * t->n, t->c),
			    regs(t->m * t->n, t->d)};

		snprintf(name, sizeof(name), "mma_%u", k);
		op_text(op, sizeof(op), t);
		at += kernel_text(text + at, size - at, name, op, n, t->d == F64, t->sel);
	}
	for (u32 k = 0; k < 16; k++) {
		u32 n[4] = {2, 2, k & 8 ? 8 : 4, k & 4 ? 8 : 4};

		snprintf(name, sizeof(name), "mma884_%u", k);
		snprintf(op, sizeof(op), "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s", k & 1 ? "col" : "row",
			 k & 2 ? "col" : "row", k & 4 ? "f32" : "f16", k & 8 ? "f32" : "f16");
		if (has_884(k))
			at += kernel_text(text + at, size - at, name, op, n, false, -1);
	}
	m = test_must_load(text);
	for (u32 k = 0; k < 5; k++)
		mem[k] = test_alloc(4096);
	for (u32 k = 0; k < NCASES; k++)
		run_case(m, k);
	for (u32 k = 0; k < 16; k++)
		if (has_884(k))
			run_884(m, k);
	test_refused();
	test_small();
	ptx_module_free(m);
	forms_done("mma");
	return tap_done();
}
