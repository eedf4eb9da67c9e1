/* SPDX-License-Identifier: MIT */
/* cvt: every pair of types with every rounding mode and modifier that PTX has, and none that it has not. */
#include "tests/softgpu/ptx_fp.h"

static const struct {
	const char *name;
	u32 bits;
	bool is_float, is_signed;
	char sig;
} types[] = {{"u8", 8, false, false, 'h'},   {"s8", 8, false, true, 'h'},    {"u16", 16, false, false, 'h'},
	     {"s16", 16, false, true, 'h'},  {"u32", 32, false, false, 'w'}, {"s32", 32, false, true, 'w'},
	     {"u64", 64, false, false, 'd'}, {"s64", 64, false, true, 'd'},  {"f16", 16, true, true, 'H'},
	     {"bf16", 16, true, true, 'B'},  {"f32", 32, true, true, 'W'},   {"f64", 64, true, true, 'D'}};
enum { F16 = 8, BF16, F32, F64, TYPES };

static const struct {
	const char *name;
	int mode;
	bool integral;
} modes[] = {{"", -1, false},	 {".rn", FE_TONEAREST, false}, {".rz", RZ, false}, {".rm", RM, false},
	     {".rp", RP, false}, {".rni", FE_TONEAREST, true}, {".rzi", RZ, true}, {".rmi", RM, true},
	     {".rpi", RP, true}, {".rna", -2, false}};

/* What the manual and ptxas allow. */
static bool legal(u32 d, u32 s, u32 m, bool ftz, bool sat)
{
	bool none = !m, fp = m >= 1 && m <= 4, integral = m >= 5 && m <= 8;
	bool with_f32 = d == F32 || s == F32, any_bf16 = d == BF16 || s == BF16;

	if (ftz && !with_f32)
		return false;
	if (any_bf16) {
		if (sat || (ftz && !(d == F32 || (d == BF16 && s == F32))))
			return false;
		if (d == s)
			return none || integral;
		if (!types[d].is_float)
			return integral;
		if (!types[s].is_float)
			return fp;
		return fp || (none && s != F32 && s != F64);
	}
	if (!types[d].is_float && !types[s].is_float)
		return none && (!sat || !(types[d].bits - types[d].is_signed >= types[s].bits - types[s].is_signed &&
					  types[d].is_signed >= types[s].is_signed));
	if (!types[d].is_float)
		return integral;
	if (d == s)
		return none || integral;
	if (types[s].is_float && types[s].bits < types[d].bits)
		return none;
	return fp;
}

enum { TO, FROM, MODE, HOW };
enum { FTZ = 1, SATURATE = 2, WIDE = 4 };

static double read_float(u32 t, u64 v)
{
	return t == F16 ? HF(v) : t == BF16 ? HB(v) : t == F32 ? (double)F(v) : D(v);
}

static __int128 read_int(u32 t, u64 v)
{
	u32 bits = types[t].bits;

	if (types[t].is_signed)
		return (s64)(v << (64 - bits)) >> (64 - bits);
	return v << (64 - bits) >> (64 - bits);
}

/* The value, exact in @v, in type @t: 64 bits of mantissa hold every source. */
static u64 write_float(u32 t, long double v, int mode)
{
	volatile long double in = v;
	volatile float f;
	volatile double d;

	if (t == F16 || t == BF16)
		return to_half(v, t == F16 ? 5 : 8, mode);
	fesetround(mode);
	f = (float)in;
	d = (double)in;
	fesetround(FE_TONEAREST);
	return t == F32 ? BF(f) : BD(d);
}

static double integral(double v, int mode)
{
	return mode == RZ ? trunc(v) : mode == RM ? floor(v) : mode == RP ? ceil(v) : rint(v);
}

static u64 convert(const struct ptx_case *k, const u64 *v)
{
	u32 d = k->tag[TO], s = k->tag[FROM], how = k->tag[HOW], bits = types[d].bits;
	int mode = modes[k->tag[MODE]].mode < 0 ? N : modes[k->tag[MODE]].mode;
	long double x;
	u64 r;

	if (!types[d].is_float) {
		__int128 i, lo = types[d].is_signed ? -((__int128)1 << (bits - 1)) : 0;
		__int128 hi = ((__int128)1 << (bits - types[d].is_signed)) - 1;

		if (types[s].is_float) {
			double f = read_float(s, v[0]);

			if (how & FTZ)
				f = (double)Z(v[0]);
			i = (__int128)to_int(f, s == F64, mode, types[d].is_signed, bits);
		} else {
			i = read_int(s, v[0]);
			if (how & SATURATE)
				i = i < lo ? lo : i > hi ? hi : i;
		}
		return (u64)read_int(d, (u64)i);
	}
	if (types[s].is_float) {
		double f = read_float(s, v[0]);

		if (s == F32 && how & FTZ)
			f = (double)Z(v[0]);
		if (modes[k->tag[MODE]].integral)
			f = integral(f, mode);
		x = (long double)f;
	} else {
		x = (long double)read_int(s, v[0]);
	}
	if (how & SATURATE)
		x = x > 0 ? (x < 1 ? x : 1) : 0;
	r = write_float(d, x, mode);
	return d == F32 && how & FTZ ? BF(ZF(F(r))) : r;
}

static u64 ref_cvt(const struct ptx_case *k, const u64 *v)
{
	return convert(k, v);
}

static bool loads(const char *op, const char *d, const char *s)
{
	struct ptx_module *m;
	char text[512];
	bool r;

	snprintf(text, sizeof(text),
		 ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() { .reg .b16 %%h<2>; .reg .b32 %%w<2>; .reg .b64 "
		 "%%d<2>; "
		 "%s %%%s0, %%%s1; ret; }",
		 op, d, s);
	r = test_load(text, strlen(text), &m) == PTX_OK;
	ptx_module_free(m);
	return r;
}

/* All pairs, also from and into registers wider than the type. */
static void run_pairs(void)
{
	static char names[2048][40];
	static struct ptx_case cases[2048];
	u32 n = 0, refused = 0, wrong = 0;

	for (u32 k = 0; k < TYPES * TYPES * COUNT(modes) * 4; k++) {
		u32 how = k & 3, m = k / 4 % COUNT(modes), s = k / 4 / COUNT(modes) % TYPES, d = k / 4 / COUNT(modes) / TYPES;
		char dr[2] = {case_reg(types[d].sig), 0}, sr[2] = {case_reg(types[s].sig), 0};
		static const char *const sigs[TYPES][2] = {{"h", "w"},	{"h", "w"},  {"h", "w"},  {"h", "w"},
							   {"w", "d"},	{"w", "d"},  {"d", NULL}, {"d", NULL},
							   {"H", NULL}, {"B", NULL}, {"W", NULL}, {"D", NULL}};
		static char sig[2048][4];
		bool takes;

		snprintf(names[n], sizeof(names[n]), "cvt%s%s%s.%s.%s", modes[m].name, how & FTZ ? ".ftz" : "",
			 how & SATURATE ? ".sat" : "", types[d].name, types[s].name);
		takes = loads(names[n], dr, sr);
		if (takes != legal(d, s, m, how & FTZ, how & SATURATE)) {
			printf("# %s is %s\n", names[n], takes ? "taken" : "refused");
			takes ? wrong++ : refused++;
		}
		if (!takes)
			continue;
		for (u32 wide = 0; wide < 2 && n + 1 < COUNT(cases); wide++) {
			if (wide && !sigs[d][1] && !sigs[s][1])
				continue;
			if (wide)
				memcpy(names[n], names[n - 1], sizeof(names[n]));
			snprintf(sig[n], sizeof(sig[n]), "%s%s", sigs[d][wide && sigs[d][1]], sigs[s][wide && sigs[s][1]]);
			cases[n] = (struct ptx_case){names[n], sig[n], ref_cvt, 0, {d, s, m, how}};
			n++;
		}
	}
	is_int(wrong, 0, "no form is taken that PTX has not");
	is_int(refused, 0, "no form is refused that PTX has");
	run_cases(cases, n);
}

static u64 relu16(u64 v)
{
	return v & 0x8000 && (v & 0x7fff) <= 0x7f80 ? 0 : v;
}

static u64 sat_int(s64 v, s64 lo, s64 hi)
{
	return (u64)(v < lo ? lo : v > hi ? hi : v);
}

/* To f16 (5 bits of exponent) or bf16 (8), with .relu and .satfinite as asked. */
static u64 shorter(u32 ebits, int mode, bool relu, bool finite, u64 v)
{
	u64 most = (((1u << ebits) - 2) << (15 - ebits)) | ((1u << (15 - ebits)) - 1), r;

	if (isnan(F(v)))
		return 0x7fff;
	if (relu && signbit(F(v)))
		return 0;
	r = to_half((long double)F(v), ebits, mode);
	return finite && (r & 0x7fff) > most ? (r & 0x8000) | most : r;
}

static u64 short_tf32(u64 v, u32 up, bool relu, bool finite)
{
	u32 r;

	if (isnan(F(v)))
		return 0x7fffffff;
	if (relu && signbit(F(v)))
		return 0;
	r = isinf(F(v)) ? (u32)v : ((u32)v + up) & 0xffffe000;
	return finite && (r & 0x7fffffff) >= 0x7f800000 ? (r & 0x80000000) | 0x7f7fe000 : r;
}

#define SHORT(e, m, r, f, v) shorter(e, m, r, f, v)
#define SHORT2(e, m, r, f)   pair(shorter(e, m, r, f, b), shorter(e, m, r, f, a))
#define RELU(f)		     (isnan(f) || (f) > 0 ? (f) : 0)
#define LF(v)		     ((long double)F(v))
#define TF32(a, up)	     (isnan(F(a)) || isinf(F(a)) ? (u32)(a) : ((u32)(a) + (up)) & 0xffffe000)
#define FP8X2(m, x, y)	     (to_fp8(x, m) << 8 | to_fp8(y, m))
#define HPAIR(m)	     pair(TH((long double)fp8((u8)a, m)), TH((long double)fp8((u8)(a >> 8), m)))

#define CASES(X)                                                                                                                 \
	X(hff, "cvt.rn.f16x2.f32", "TWW", pair(TH(LF(b)), TH(LF(a))))                                                            \
	X(bff, "cvt.rn.bf16x2.f32", "UWW", pair(TB(LF(b)), TB(LF(a))))                                                           \
	X(hffr, "cvt.rn.relu.f16x2.f32", "TWW", pair(TH(RELU(LF(b))), TH(RELU(LF(a)))))                                          \
	X(bffr, "cvt.rn.relu.bf16x2.f32", "UWW", pair(TB(RELU(LF(b))), TB(RELU(LF(a)))))                                         \
	X(hfr, "cvt.rn.relu.f16.f32", "HW", TH(RELU(LF(a))))                                                                     \
	X(bfr, "cvt.rn.relu.bf16.f32", "BW", relu16(TB(LF(a))))                                                                  \
	X(tfrna, "cvt.rna.tf32.f32", "wW", TF32(a, 0x1000))                                                                      \
	X(tfrn, "cvt.rn.tf32.f32", "wW", TF32(a, 0xfff + ((u32)a >> 13 & 1)))                                                    \
	X(tfrz, "cvt.rz.tf32.f32", "wW", (u32)a & 0xffffe000)                                                                    \
	X(e4m3, "cvt.rn.satfinite.e4m3x2.f32", "hWW", FP8X2(3, (double)F(a), (double)F(b)))                                      \
	X(e5m2, "cvt.rn.satfinite.e5m2x2.f32", "hWW", FP8X2(2, (double)F(a), (double)F(b)))                                      \
	X(e4m3r, "cvt.rn.satfinite.relu.e4m3x2.f32", "hWW", FP8X2(3, (double)RELU(F(a)), (double)RELU(F(b))))                    \
	X(e5m2r, "cvt.rn.satfinite.relu.e5m2x2.f32", "hWW", FP8X2(2, (double)RELU(F(a)), (double)RELU(F(b))))                    \
	X(e4m3h, "cvt.rn.satfinite.e4m3x2.f16x2", "hT", FP8X2(3, HF(a >> 16), HF(a)))                                            \
	X(e5m2h, "cvt.rn.satfinite.e5m2x2.f16x2", "hT", FP8X2(2, HF(a >> 16), HF(a)))                                            \
	X(he4m3, "cvt.rn.f16x2.e4m3x2", "Th", HPAIR(3))                                                                          \
	X(he5m2, "cvt.rn.f16x2.e5m2x2", "Th", HPAIR(2))                                                                          \
	X(hf, "cvt.rn.satfinite.f16.f32", "HW", SHORT(5, FE_TONEAREST, false, true, a))                                          \
	X(hfrf, "cvt.rn{.relu.satfinite,.satfinite.relu}.f16.f32", "HW", SHORT(5, FE_TONEAREST, true, true, a))                  \
	X(hfz, "cvt.rz.satfinite.f16.f32", "HW", SHORT(5, FE_TOWARDZERO, false, true, a))                                        \
	X(hfzr, "cvt.rz.relu.f16.f32", "HW", SHORT(5, FE_TOWARDZERO, true, false, a))                                            \
	X(hfzrf, "cvt.rz{.relu.satfinite,.satfinite.relu}.f16.f32", "HW", SHORT(5, FE_TOWARDZERO, true, true, a))                \
	X(bf, "cvt.rn.satfinite.bf16.f32", "BW", SHORT(8, FE_TONEAREST, false, true, a))                                         \
	X(bfrf, "cvt.rn{.relu.satfinite,.satfinite.relu}.bf16.f32", "BW", SHORT(8, FE_TONEAREST, true, true, a))                 \
	X(bfz, "cvt.rz.satfinite.bf16.f32", "BW", SHORT(8, FE_TOWARDZERO, false, true, a))                                       \
	X(bfzr, "cvt.rz.relu.bf16.f32", "BW", SHORT(8, FE_TOWARDZERO, true, false, a))                                           \
	X(bfzrf, "cvt.rz{.relu.satfinite,.satfinite.relu}.bf16.f32", "BW", SHORT(8, FE_TOWARDZERO, true, true, a))               \
	X(h2f, "cvt.rn.satfinite.f16x2.f32", "TWW", SHORT2(5, FE_TONEAREST, false, true))                                        \
	X(h2rf, "cvt.rn{.relu.satfinite,.satfinite.relu}.f16x2.f32", "TWW", SHORT2(5, FE_TONEAREST, true, true))                 \
	X(h2z, "cvt.rz.f16x2.f32", "TWW", SHORT2(5, FE_TOWARDZERO, false, false))                                                \
	X(h2zf, "cvt.rz.satfinite.f16x2.f32", "TWW", SHORT2(5, FE_TOWARDZERO, false, true))                                      \
	X(h2zr, "cvt.rz.relu.f16x2.f32", "TWW", SHORT2(5, FE_TOWARDZERO, true, false))                                           \
	X(h2zrf, "cvt.rz{.relu.satfinite,.satfinite.relu}.f16x2.f32", "TWW", SHORT2(5, FE_TOWARDZERO, true, true))               \
	X(b2f, "cvt.rn.satfinite.bf16x2.f32", "UWW", SHORT2(8, FE_TONEAREST, false, true))                                       \
	X(b2rf, "cvt.rn{.relu.satfinite,.satfinite.relu}.bf16x2.f32", "UWW", SHORT2(8, FE_TONEAREST, true, true))                \
	X(b2z, "cvt.rz.bf16x2.f32", "UWW", SHORT2(8, FE_TOWARDZERO, false, false))                                               \
	X(b2zf, "cvt.rz.satfinite.bf16x2.f32", "UWW", SHORT2(8, FE_TOWARDZERO, false, true))                                     \
	X(b2zr, "cvt.rz.relu.bf16x2.f32", "UWW", SHORT2(8, FE_TOWARDZERO, true, false))                                          \
	X(b2zrf, "cvt.rz{.relu.satfinite,.satfinite.relu}.bf16x2.f32", "UWW", SHORT2(8, FE_TOWARDZERO, true, true))              \
	X(tf, "cvt.rn.satfinite.tf32.f32", "wW", short_tf32(a, 0xfff + ((u32)a >> 13 & 1), false, true))                         \
	X(tfr, "cvt.rn.relu.tf32.f32", "wW", short_tf32(a, 0xfff + ((u32)a >> 13 & 1), true, false))                             \
	X(tfrf, "cvt.rn{.relu.satfinite,.satfinite.relu}.tf32.f32", "wW", short_tf32(a, 0xfff + ((u32)a >> 13 & 1), true, true)) \
	X(tfz, "cvt.rz.satfinite.tf32.f32", "wW", short_tf32(a, 0, false, true))                                                 \
	X(tfzr, "cvt.rz.relu.tf32.f32", "wW", short_tf32(a, 0, true, false))                                                     \
	X(tfzrf, "cvt.rz{.relu.satfinite,.satfinite.relu}.tf32.f32", "wW", short_tf32(a, 0, true, true))                         \
	X(tfna, "cvt.rna.satfinite.tf32.f32", "wW", short_tf32(a, 0x1000, false, true))                                          \
	X(packu4, "cvt.pack.sat.u4.s32.b32", "wwww", (u32)c << 8 | sat_int((s32)a, 0, 15) << 4 | sat_int((s32)b, 0, 15))         \
	X(packs4, "cvt.pack.sat.s4.s32.b32", "wwww",                                                                             \
	  (u32)c << 8 | (sat_int((s32)a, -8, 7) & 15) << 4 | (sat_int((s32)b, -8, 7) & 15))                                      \
	X(packu2, "cvt.pack.sat.u2.s32.b32", "wwww", (u32)c << 4 | sat_int((s32)a, 0, 3) << 2 | sat_int((s32)b, 0, 3))           \
	X(packs2, "cvt.pack.sat.s2.s32.b32", "wwww",                                                                             \
	  (u32)c << 4 | (sat_int((s32)a, -2, 1) & 3) << 2 | (sat_int((s32)b, -2, 1) & 3))                                        \
	X(packu8, "cvt.pack.sat.u8.s32.b32", "wwww", (u32)c << 16 | sat_int((s32)a, 0, 255) << 8 | sat_int((s32)b, 0, 255))      \
	X(packs8, "cvt.pack.sat.s8.s32.b32", "wwww",                                                                             \
	  (u32)c << 16 | (sat_int((s32)a, -128, 127) & 255) << 8 | (sat_int((s32)b, -128, 127) & 255))                           \
	X(packu16, "cvt.pack.sat.u16.s32", "www", sat_int((s32)a, 0, 65535) << 16 | sat_int((s32)b, 0, 65535))                   \
	X(packs16, "cvt.pack.sat.s16.s32", "www", sat_int((s32)a, -32768, 32767) << 16 | (u16)sat_int((s32)b, -32768, 32767))

CASES(CASE)
#define ENTRY(name, op, sig, ...) {op, sig, ref_##name, 0, {0}},
static const struct ptx_case packed[] = {CASES(ENTRY)};

int main(void)
{
	test_arena_init();
	run_pairs();
	run_cases(packed, COUNT(packed));
	forms_done("cvt");
	return tap_done();
}
