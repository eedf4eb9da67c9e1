/* SPDX-License-Identifier: MIT */
/* setp and set: every comparison of every type, with both results, with the predicate operand, and none that PTX has not. */
#include "tests/softgpu/ptx_fp.h"

static const struct {
	const char *name;
	u32 bits;  /* of a pair: of its halves */
	char kind; /* b u s f */
	char sig;
} types[] = {{"b16", 16, 'b', 'h'}, {"u16", 16, 'u', 'h'},   {"s16", 16, 's', 'h'},   {"b32", 32, 'b', 'w'},
	     {"u32", 32, 'u', 'w'}, {"s32", 32, 's', 'w'},   {"b64", 64, 'b', 'd'},   {"u64", 64, 'u', 'd'},
	     {"s64", 64, 's', 'd'}, {"f16", 16, 'f', 'H'},   {"bf16", 16, 'f', 'B'},  {"f32", 32, 'f', 'W'},
	     {"f64", 64, 'f', 'D'}, {"f16x2", 16, 'f', 'T'}, {"bf16x2", 16, 'f', 'U'}};
enum { F16 = 9, BF16, F32, F64, F16X2, BF16X2 };

static const char *const cmps[] = {"eq", "ne",	"lt",  "le",  "gt",  "ge",  "lo",  "ls",  "hi",
				   "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
enum { EQ, NE, LT, LE, GT, GE, LO, LS, HI, HS, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NANS };
static const char *const bools[] = {"", ".and", ".or", ".xor"};

static bool has_ftz(u32 t)
{
	return t == F16 || t == F32 || t == F16X2;
}

static bool legal(u32 cmp, u32 t, bool ftz)
{
	if (ftz && !has_ftz(t))
		return false;
	switch (types[t].kind) {
	case 'b':
		return cmp <= NE;
	case 's':
		return cmp <= GE;
	case 'u':
		return cmp <= HS;
	default:
		return cmp <= GE || cmp >= EQU;
	}
}

enum { TYPE, CMP, FLUSH, BOOL, WHAT, RESULT };
enum { NEGATED_RESULT = 1, NEGATED_OPERAND = 2, HIGH = 4 };

static double value(u32 t, u64 v, bool ftz)
{
	double d;

	switch (t) {
	case F16:
	case F16X2:
		return ftz && !(v & 0x7c00) ? 0 : HF(v);
	case BF16:
	case BF16X2:
		return HB(v);
	case F32:
		return (double)(ftz ? Z(v) : F(v));
	default:
		d = D(v);
		return d;
	}
}

/* −1, 0, 1, or 2 when a NaN is among them. */
static int order(u32 t, u64 a, u64 b, bool ftz)
{
	u32 up = 64 - types[t].bits;

	if (types[t].kind == 'f') {
		double x = value(t, a, ftz), y = value(t, b, ftz);

		return isnan(x) || isnan(y) ? 2 : x < y ? -1 : x > y;
	}
	a <<= up;
	b <<= up;
	if (types[t].kind == 's')
		return (s64)a < (s64)b ? -1 : (s64)a > (s64)b;
	return a < b ? -1 : a > b;
}

static bool compare(u32 cmp, int o)
{
	switch (cmp) {
	case EQ:
		return o == 0;
	case NE:
		return o == -1 || o == 1;
	case LT:
	case LO:
		return o == -1;
	case LE:
	case LS:
		return o == -1 || o == 0;
	case GT:
	case HI:
		return o == 1;
	case GE:
	case HS:
		return o == 1 || o == 0;
	case EQU:
		return o == 0 || o == 2;
	case NEU:
		return o;
	case LTU:
		return o == -1 || o == 2;
	case LEU:
		return o != 1;
	case GTU:
		return o > 0;
	case GEU:
		return o >= 0;
	case NUM:
		return o != 2;
	default:
		return o == 2;
	}
}

static bool result(const struct ptx_case *k, const u64 *v, u32 shift)
{
	bool r = compare(k->tag[CMP], order(k->tag[TYPE], v[0] >> shift, v[1] >> shift, k->tag[FLUSH])), c = v[2] & 1;

	if (k->tag[WHAT] & NEGATED_RESULT)
		r = !r;
	if (k->tag[WHAT] & NEGATED_OPERAND)
		c = !c;
	return k->tag[BOOL] == 1 ? r && c : k->tag[BOOL] == 2 ? r || c : k->tag[BOOL] == 3 ? r != c : r;
}

static u64 ref_setp(const struct ptx_case *k, const u64 *v)
{
	return result(k, v, k->tag[WHAT] & HIGH ? 16 : 0);
}

static u64 ref_set(const struct ptx_case *k, const u64 *v)
{
	u32 d = k->tag[RESULT], t = k->tag[TYPE];
	u64 one = types[d].kind != 'f' ? ~0ull : d == F16 || d == F16X2 ? 0x3c00 : d == BF16 || d == BF16X2 ? 0x3f80 : 0x3f800000;

	if (t == F16X2 || t == BF16X2)
		return (result(k, v, 0) ? one & 0xffff : 0) | (result(k, v, 16) ? (one & 0xffff) << 16 : 0);
	return result(k, v, 0) ? one : 0;
}

static bool loads(const char *ins)
{
	struct ptx_module *m;
	char text[512];
	bool r;

	snprintf(text, sizeof(text),
		 ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b16 %%h<4>; .reg .b32 %%w<4>; .reg .b64 "
		 "%%d<4>; "
		 ".reg .pred %%p<4>; %s; ret; }",
		 ins);
	r = test_load(text, strlen(text), &m) == PTX_OK;
	ptx_module_free(m);
	return r;
}

#define MAX_CASES 4096u
static char names[MAX_CASES][72], sigs[MAX_CASES][5];
static struct ptx_case cases[MAX_CASES];
static u32 ncases, taken, refused;

static void add(const char *text, const char *sig, u64 (*ref)(const struct ptx_case *, const u64 *), u32 t, u32 cmp, bool ftz,
		u32 bop, u32 what, u32 d)
{
	if (ncases == MAX_CASES) {
		ok(false, "too many cases");
		return;
	}
	snprintf(names[ncases], sizeof(names[0]), "%s", text);
	snprintf(sigs[ncases], sizeof(sigs[0]), "%s", sig);
	cases[ncases] = (struct ptx_case){names[ncases], sigs[ncases], ref, 0, {t, cmp, ftz, bop, what, d}};
	ncases++;
}

static bool check(bool want, const char *ins)
{
	bool takes = loads(ins);

	if (takes != want) {
		printf("# '%s' is %s\n", ins, takes ? "taken" : "refused");
		takes ? taken++ : refused++;
	}
	return takes;
}

static void setp_cases(u32 t, u32 cmp, bool ftz)
{
	bool packed = t == F16X2 || t == BF16X2;
	char r = case_reg(types[t].sig), ins[96], text[72], sig[5] = {'p', types[t].sig, types[t].sig, 0};

	for (u32 b = 0; b < COUNT(bools); b++) {
		snprintf(text, sizeof(text), "setp.%s%s%s.%s", cmps[cmp], bools[b], ftz ? ".ftz" : "", types[t].name);
		snprintf(ins, sizeof(ins), "%s %s, %%%c1, %%%c2%s", text, packed ? "%p0|%p1" : "%p0", r, r, b ? ", %p2" : "");
		if (!check(legal(cmp, t, ftz), ins))
			continue;
		sig[3] = b ? 'p' : 0;
		snprintf(ins, sizeof(ins), packed ? "%s $0|%%q, $1, $2%s;" : "%s $0, $1, $2%s;", text, b ? ", $3" : "");
		add(ins, sig, ref_setp, t, cmp, ftz, b, 0, 0);
		snprintf(ins, sizeof(ins), "%s %%q|$0, $1, $2%s;", text, b ? ", !$3" : "");
		add(ins, sig, ref_setp, t, cmp, ftz, b, (packed ? HIGH : NEGATED_RESULT) | NEGATED_OPERAND, 0);
	}
}

static bool legal_set(u32 d, u32 t)
{
	bool integer = types[t].kind != 'f';

	switch (types[d].kind) {
	case 'b':
		return false;
	case 'u':
	case 's':
		return types[d].bits == 32 || (types[d].bits == 16 && (t == F16 || t == BF16));
	}
	if (d == F16X2 || d == BF16X2)
		return t == d;
	if (t == F16X2 || t == BF16X2 || d == F64)
		return false;
	return integer || t == F32 || t == F64 || t == d || (d == BF16 && t == F16);
}

static void set_cases(u32 d, u32 t, u32 cmp, bool ftz)
{
	char r = case_reg(types[t].sig), ins[96], text[72], sig[5] = {types[d].sig, types[t].sig, types[t].sig, 'p', 0};
	bool to_bf16 = d == BF16 || d == BF16X2;
	u32 other = 1 + (d + t + cmp) % 3; /* the predicate operand is the same code for all */

	for (u32 b = 0; b < 4; b += other) {
		snprintf(text, sizeof(text), "set.%s%s%s.%s.%s", cmps[cmp], bools[b], ftz ? ".ftz" : "", types[d].name,
			 types[t].name);
		snprintf(ins, sizeof(ins), "%s %%%c0, %%%c1, %%%c2%s", text, case_reg(types[d].sig), r, r, b ? ", %p2" : "");
		if (!check(legal(cmp, t, ftz) && legal_set(d, t) && !(ftz && to_bf16), ins))
			return;
		sig[3] = b ? 'p' : 0;
		snprintf(ins, sizeof(ins), "%s $0, $1, $2%s;", text, b ? ", $3" : "");
		add(ins, sig, ref_set, t, cmp, ftz, b, 0, d);
		if (b)
			break;
	}
}

int main(void)
{
	test_arena_init();
	for (u32 t = 0; t < COUNT(types); t++)
		for (u32 cmp = 0; cmp < COUNT(cmps); cmp++)
			for (u32 ftz = 0; ftz < 2; ftz++)
				setp_cases(t, cmp, ftz);
	for (u32 k = 0; k < COUNT(types) * COUNT(types) * COUNT(cmps) * 2; k++) {
		u32 cmp = k / 2 % COUNT(cmps), t = k / 2 / COUNT(cmps) % COUNT(types), d = k / 2 / COUNT(cmps) / COUNT(types);

		set_cases(d, t, cmp, k & 1);
	}
	is_int(taken, 0, "no form is taken that PTX has not");
	is_int(refused, 0, "no form is refused that PTX has");
	run_cases(cases, ncases);
	forms_done("setp");
	return tap_done();
}
