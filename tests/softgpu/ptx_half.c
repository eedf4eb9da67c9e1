/* SPDX-License-Identifier: MIT */
/* f16, bf16 and their pairs: each lane against the value by definition, rounded once. */
#include "tests/softgpu/ptx_fp.h"

enum half { ADD, SUB, MUL, FMA, MIN, MAX, NEG, ABS, EX2, TANH };
enum { FTZ = 1, SATURATE = 2, RELU = 4, NAN_WINS = 8, XORSIGN = 16 };

static u64 flush(u64 v, u32 ebits)
{
	u64 inf = ((1u << ebits) - 1) << (15 - ebits);

	return v & inf ? v : v & 0x8000;
}

static u64 min_or_max(u64 a, u64 b, u32 ebits, bool max, bool nan_wins)
{
	double x = H(a, ebits), y = H(b, ebits);

	if (isnan(x) || isnan(y))
		return nan_wins || (isnan(x) && isnan(y)) ? 0x7fff : isnan(x) ? b : a;
	if (x == y)
		return !!signbit(x) == max ? b : a;
	return (x < y) != max ? a : b;
}

static u64 one(const struct ptx_case *k, u64 a, u64 b, u64 c)
{
	u32 ebits = k->tag[0], how = k->tag[2];
	u64 inf = ((1u << ebits) - 1) << (15 - ebits), r;
	long double v = 0;

	a = (u16)a, b = (u16)b, c = (u16)c;
	if (how & FTZ)
		a = flush(a, ebits), b = flush(b, ebits), c = flush(c, ebits);
	switch ((enum half)k->tag[1]) {
	case ADD:
		v = (long double)H(a, ebits) + (long double)H(b, ebits);
		break;
	case SUB:
		v = (long double)H(a, ebits) - (long double)H(b, ebits);
		break;
	case MUL:
		v = (long double)H(a, ebits) * (long double)H(b, ebits);
		break;
	case FMA:
		v = fma_odd(H(a, ebits), H(b, ebits), H(c, ebits));
		break;
	case EX2:
		v = exp2l((long double)H(a, ebits));
		break;
	case TANH:
		v = tanhl((long double)H(a, ebits));
		break;
	case MIN:
	case MAX:
		if (how & XORSIGN) {
			r = min_or_max(a & 0x7fff, b & 0x7fff, ebits, k->tag[1] == MAX, how & NAN_WINS);
			return r == 0x7fff ? r : r | ((a ^ b) & 0x8000);
		}
		return min_or_max(a, b, ebits, k->tag[1] == MAX, how & NAN_WINS);
	case NEG:
		return a ^ 0x8000;
	case ABS:
		return a & 0x7fff;
	}
	if ((how & SATURATE) && !(v > 0))
		return 0;
	r = to_half(v, ebits, FE_TONEAREST);
	if (how & FTZ)
		r = flush(r, ebits);
	if ((how & RELU) && r & 0x8000 && (r & 0x7fff) <= inf)
		return 0;
	return how & SATURATE && v > 1 ? ((1u << (ebits - 1)) - 1) << (15 - ebits) : r;
}

static u64 ref_one(const struct ptx_case *k, const u64 *v)
{
	return one(k, v[0], v[1], v[2]);
}

static u64 ref_pair(const struct ptx_case *k, const u64 *v)
{
	return pair(one(k, v[0], v[1], v[2]), one(k, v[0] >> 16, v[1] >> 16, v[2] >> 16));
}

static const struct {
	const char *op;
	enum half what;
	u32 n, how;
	bool f16_only;
	u32 ulp;
} ops[] = {
	{"add{,.rn}", ADD, 2, 0, false, 0},
	{"add{,.rn}.ftz", ADD, 2, FTZ, true, 0},
	{"add{,.rn}.sat", ADD, 2, SATURATE, true, 0},
	{"sub{,.rn}", SUB, 2, 0, false, 0},
	{"sub{,.rn}.ftz", SUB, 2, FTZ, true, 0},
	{"sub{,.rn}.sat", SUB, 2, SATURATE, true, 0},
	{"mul{,.rn}", MUL, 2, 0, false, 0},
	{"mul{,.rn}.ftz", MUL, 2, FTZ, true, 0},
	{"mul{,.rn}.sat", MUL, 2, SATURATE, true, 0},
	{"fma.rn", FMA, 3, 0, false, 0},
	{"fma.rn.ftz", FMA, 3, FTZ, true, 0},
	{"fma.rn.sat", FMA, 3, SATURATE, true, 0},
	{"fma.rn.relu", FMA, 3, RELU, false, 0},
	{"min", MIN, 2, 0, false, 0},
	{"min.ftz", MIN, 2, FTZ, true, 0},
	{"min.NaN", MIN, 2, NAN_WINS, false, 0},
	{"max", MAX, 2, 0, false, 0},
	{"max.ftz", MAX, 2, FTZ, true, 0},
	{"max.NaN", MAX, 2, NAN_WINS, false, 0},
	{"min.ftz.NaN", MIN, 2, FTZ | NAN_WINS, true, 0},
	{"max.ftz.NaN", MAX, 2, FTZ | NAN_WINS, true, 0},
	{"min.xorsign.abs", MIN, 2, XORSIGN, false, 0},
	{"max.NaN.xorsign.abs", MAX, 2, XORSIGN | NAN_WINS, false, 0},
	{"min.ftz.NaN.xorsign.abs", MIN, 2, FTZ | XORSIGN | NAN_WINS, true, 0},
	{"max.ftz.xorsign.abs", MAX, 2, FTZ | XORSIGN, true, 0},
	{"add{,.rn}.ftz.sat", ADD, 2, FTZ | SATURATE, true, 0},
	{"sub{,.rn}.ftz.sat", SUB, 2, FTZ | SATURATE, true, 0},
	{"mul{,.rn}.ftz.sat", MUL, 2, FTZ | SATURATE, true, 0},
	{"fma.rn.ftz.sat", FMA, 3, FTZ | SATURATE, true, 0},
	{"fma.rn.ftz.relu", FMA, 3, FTZ | RELU, true, 0},
	{"neg", NEG, 1, 0, false, 0},
	{"neg.ftz", NEG, 1, FTZ, true, 0},
	{"abs", ABS, 1, 0, false, 0},
	{"abs.ftz", ABS, 1, FTZ, true, 0},
	{"ex2.approx", EX2, 1, 0, true, 1},
	{"tanh.approx", TANH, 1, 0, false, 1},
};

int main(void)
{
	static char names[4 * COUNT(ops) + 4][40];
	struct ptx_case cases[4 * COUNT(ops) + 4];
	u32 n = 0;

	for (u32 k = 0; k <= COUNT(ops); k++)
		for (u32 t = 0; t < 4; t++) {
			bool bf16 = t & 1, two = t & 2, last = k == COUNT(ops);
			const char *sig = two ? (bf16 ? "UUUU" : "TTTT") : bf16 ? "BBBB" : "HHHH";
			struct ptx_case *c = &cases[n];

			if (!last && bf16 && ops[k].f16_only)
				continue;
			/* ex2 of bf16 has .ftz, of f16 it may have it */
			snprintf(names[n], sizeof(names[n]), "%s.%sf16%s", last ? "ex2.approx.ftz" : ops[k].op, bf16 ? "b" : "",
				 two ? "x2" : "");
			*c = (struct ptx_case){
				names[n], sig + 3 - (last ? 1 : ops[k].n), two ? ref_pair : ref_one, 0, {bf16 ? 8 : 5}};
			c->tag[1] = last ? EX2 : ops[k].what;
			c->tag[2] = last ? FTZ : ops[k].how;
			c->ulp = last ? 1 : ops[k].ulp;
			n++;
		}
	run_cases(cases, n);
	forms_done("half");
	return tap_done();
}
