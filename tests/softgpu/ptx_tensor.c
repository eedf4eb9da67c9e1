/* SPDX-License-Identifier: MIT */
/* Matrix products, asynchronous copies, mbarriers and cooperative launches of the PTX engine (kernels: ptx_tensor.cu). */
#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

static struct ptx_module *m;

static enum ptx_status run(const char *name, uint32_t grid, uint32_t block, const void *params, bool cooperative)
{
	struct ptx_func *f = ptx_module_kernel(m, name);
	enum ptx_status st =
		test_launch_dim(f, (const uint32_t[3]){grid, 1, 1}, (const uint32_t[3]){block, 1, 1}, 0, params, cooperative);

	if (st != PTX_OK)
		printf("# %s: status %d, %s\n", name, st, test_fault.text);
	return st;
}

/* Elements are small integers, exact in every type. */
enum kind { HALF, BFLOAT, FLOAT, DOUBLE, INT8, UINT8, INT32 };

static const size_t size_of[] = {2, 2, 4, 8, 1, 1, 4};

/* Small integers as f16 and bf16, by their definition. */
static uint16_t short_float(int v, int mantissa, int bias)
{
	uint16_t sign = v < 0 ? 0x8000 : 0;
	unsigned a = (unsigned)(v < 0 ? -v : v);
	int e = 0;

	if (!a)
		return 0;
	while (a >> (e + 1))
		e++;
	return (uint16_t)(sign | (unsigned)(e + bias) << mantissa | ((a << (mantissa - e)) & ((1u << mantissa) - 1)));
}

static void put(void *p, enum kind k, size_t i, int v)
{
	switch (k) {
	case HALF:
		((uint16_t *)p)[i] = short_float(v, 10, 15);
		break;
	case BFLOAT:
		((uint16_t *)p)[i] = short_float(v, 7, 127);
		break;
	case FLOAT:
		((float *)p)[i] = (float)v;
		break;
	case DOUBLE:
		((double *)p)[i] = v;
		break;
	case INT8:
	case UINT8:
		((uint8_t *)p)[i] = (uint8_t)v;
		break;
	default:
		((int *)p)[i] = v;
		break;
	}
}

static bool holds(const void *p, enum kind k, size_t i, int want)
{
	_Alignas(8) uint8_t a[8] = {0};

	put(a, k, 0, want);
	return !memcmp((const uint8_t *)p + i * size_of[k], a, size_of[k]);
}

struct product {
	const char *kernel;
	int m, n, k;
	enum kind ab, c;
	bool a_col, b_col, c_col; /* stored by columns */
	int factor;		  /* the kernel multiplies the result by this */
};

static void check(const struct product *t)
{
	int A[32 * 64], B[64 * 32], C[32 * 32], bad = 0;
	void *a = test_alloc(8192), *b = test_alloc(8192), *c = test_alloc(8192);
	struct {
		void *a, *b, *c;
	} p = {a, b, c};
	int low = t->ab == UINT8 ? 0 : -3;

	for (int i = 0; i < t->m; i++)
		for (int k = 0; k < t->k; k++) {
			A[i * t->k + k] = (i * 7 + k * 3 + i * k) % 7 + low;
			put(a, t->ab, (size_t)(t->a_col ? k * t->m + i : i * t->k + k), A[i * t->k + k]);
		}
	for (int k = 0; k < t->k; k++)
		for (int j = 0; j < t->n; j++) {
			B[k * t->n + j] = (k * 5 + j * 11 + k * j * 3) % 6 + (low ? -2 : 0);
			put(b, t->ab, (size_t)(t->b_col ? j * t->k + k : k * t->n + j), B[k * t->n + j]);
		}
	for (int i = 0; i < t->m; i++)
		for (int j = 0; j < t->n; j++) {
			C[i * t->n + j] = (i * 13 + j) % 19 - 9;
			put(c, t->c, (size_t)(t->c_col ? j * t->m + i : i * t->n + j), C[i * t->n + j]);
		}
	if (run(t->kernel, 1, 32, &p, false) != PTX_OK)
		bad++;
	for (int i = 0; i < t->m; i++)
		for (int j = 0; j < t->n; j++) {
			int want = C[i * t->n + j];

			for (int k = 0; k < t->k; k++)
				want += A[i * t->k + k] * B[k * t->n + j];
			want *= t->factor;
			if (!holds(c, t->c, (size_t)(t->c_col ? j * t->m + i : i * t->n + j), want) && bad++ < 3)
				printf("# %s: (%d,%d) is not %d\n", t->kernel, i, j, want);
		}
	ok(!bad, "%s", t->kernel);
}

static const struct product products[] = {
	{"wmma_f32", 16, 16, 16, HALF, FLOAT, false, false, false, 2},
	{"wmma_f16", 16, 16, 16, HALF, HALF, true, false, true, 2},
	{"wmma_wide", 8, 32, 16, HALF, FLOAT, false, true, false, 2},
	{"wmma_tall", 32, 8, 16, HALF, FLOAT, true, true, true, 2},
	{"wmma_s8", 16, 16, 16, INT8, INT32, false, true, false, 2},
	{"wmma_u8", 16, 16, 16, UINT8, INT32, true, false, false, 2},
	{"wmma_bf16", 16, 16, 16, BFLOAT, FLOAT, false, false, false, 2},
	{"wmma_f64", 8, 8, 4, DOUBLE, DOUBLE, false, true, false, 2},
	{"mma_f16_k16", 16, 8, 16, HALF, FLOAT, false, true, false, 1},
	{"mma_ldmatrix", 16, 8, 16, HALF, HALF, false, false, false, 1},
	{"mma_s8_k32", 16, 8, 32, INT8, INT32, false, true, false, 1},
	{"mma_tf32_k8", 16, 8, 8, FLOAT, FLOAT, false, true, false, 1},
	{"mma_f64_k4", 8, 8, 4, DOUBLE, DOUBLE, false, true, false, 1},
};

#define EACH(n, got, want, what)                                                                                                 \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		for (int t = 0; t < (int)(n); t++)                                                                               \
			if ((got) != (want) && bad_++ < 3)                                                                       \
				printf("# %s: at %d got %lld want %lld\n", what, t, (long long)(got), (long long)(want));        \
		ok(!bad_, what);                                                                                                 \
	} while (0)

static void test_warp_reductions(void)
{
	int *in = test_alloc(128), *o = test_alloc(512), sum = 0, x = 0;
	unsigned most[2] = {0};
	struct {
		int *o, *in;
	} p = {o, in};

	for (int i = 0; i < 32; i++) {
		in[i] = i * 77 % 31 - 9;
		sum += in[i];
		x ^= in[i];
		if ((unsigned)in[i] > most[i / 16])
			most[i / 16] = (unsigned)in[i];
	}
	run("reductions", 1, 32, &p, false);
	EACH(32, o[t], sum, "redux.add");
	EACH(32, o[32 + t], -9, "redux.min");
	EACH(32, (unsigned)o[64 + t], most[t / 16], "redux.max of two halves");
	EACH(32, o[96 + t], x, "redux.xor");
}

static void test_async(void)
{
	float *in = test_alloc(8 * 1024), *out = test_alloc(8 * 256);
	struct {
		float *in, *o;
		int n;
	} p = {in, out, 8};
	int *box = test_alloc(4096);
	struct {
		int *o;
		int rounds;
	} b = {box, 20};

	for (int i = 0; i < 2048; i++)
		in[i] = (float)i;
	run("pipeline", 1, 64, &p, false);
	EACH(7 * 64, out[t], t / 64 * 256 + 255 - t % 64, "cp.async in two stages");
	run("barriers", 1, 64, &b, false);
	EACH(20 * 32, box[t], 100 + t / 32, "producer and consumers over mbarriers");
}

static void test_cooperative(void)
{
	enum { N = 96 * 40, ROUNDS = 5 };
	int *x = test_alloc(2 * N * sizeof(int)), *w = malloc(N * sizeof(int)), *v = malloc(N * sizeof(int));
	struct {
		int *x;
		int n;
	} p = {x, ROUNDS};

	for (int threads = 1; threads <= 3; threads += 2) {
		for (int i = 0; i < N; i++)
			x[i] = w[i] = i * 31 % 1000;
		for (int k = 0; k < ROUNDS; k++) {
			for (int i = 0; i < N; i++)
				v[i] = w[(i + 33) % N] + 1;
			for (int i = 0; i < N; i++)
				w[i] = v[(i + 65) % N] + 1;
		}
		test_threads = (unsigned)threads;
		is_int(run("grid_sync", 40, 96, &p, true), PTX_OK, "a cooperative launch on %d threads", threads);
		EACH(N, x[t], w[t], "blocks meet at the grid's barrier");
	}
	test_threads = 1;
	free(v);
	free(w);
}

/* Each thread fills a row of 16 bytes; then the matrices go to registers' order and back, or are transposed in registers. */
static void test_moves(void)
{
	static const char moves[] =
		".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry moves(.param .u64 po)\n{\n"
		".reg .b32 %l, %a, %r<4>, %v<4>; .reg .b64 %o, %d;\n.shared .align 16 .b8 s[1024];\n"
		"ld.param.u64 %o, [po]; mov.u32 %l, %laneid; mul.wide.u32 %d, %l, 16; add.s64 %o, %o, %d;\n"
		"mov.u32 %a, s; mad.lo.u32 %a, %l, 16, %a;\nmul.lo.u32 %r0, %l, 0x01010101;\n"
		"add.u32 %r1, %r0, 0x40404040; xor.b32 %r2, %r0, 0x80808080; xor.b32 %r3, %r0, 0xc0c0c0c0;\n"
		"stmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%r0, %r1, %r2, %r3};\nbar.warp.sync -1;\n"
		"ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; st.global.v4.u32 [%o], {%v0, %v1, %v2, %v3};\nbar.warp.sync -1;\n"
		"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%a], {%r0, %r1};\nbar.warp.sync -1;\n"
		"ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%a]; st.global.v4.u32 [%o+512], {%v0, %v1, %v2, %v3};\n"
		"movmatrix.sync.aligned.m8n8.trans.b16 %r0, %l; st.global.u32 [%o+1024], %r0;\nret;\n}\n";
	struct ptx_module *mod = test_must_load(moves);
	u16(*out)[8] = test_alloc(1536);
	static const u8 of[4] = {0, 0x40, 0x80, 0xc0};
	u32 bad = 0, bad_trans = 0, bad_move = 0;

	is_int(test_launch(ptx_module_kernel(mod, "moves"), 1, 32, &out), PTX_OK, "stmatrix and movmatrix");
	/* element (r, c) of a matrix is half c % 2 of thread 4 r + c / 2's register */
	for (u32 row = 0; row < 32; row++)
		for (u32 c = 0; c < 8; c++) {
			u32 r = row % 8;
			u8 plain = (u8)((4 * r + c / 2) ^ of[row / 8]), trans = (u8)((4 * c + r / 2) ^ of[row / 8]);

			bad += out[row][c] != plain * 0x101;
			bad_trans += row < 16 && out[32 + row][c] != trans * 0x101;
		}
	/* the value of thread l is l, in the even element of its two */
	for (u32 l = 0; l < 32; l++) {
		u32 r = l / 4, c = 2 * (l % 4), got = *(const u32 *)out[64 + l];
		u32 low = r % 2 ? 0 : 4 * c + r / 2, high = r % 2 ? 0 : 4 * (c + 1) + r / 2;

		bad_move += got != (low | high << 16);
	}
	is_int(bad, 0, "stmatrix of four matrices");
	is_int(bad_trans, 0, "of two, transposed");
	is_int(bad_move, 0, "movmatrix transposes");
	ptx_module_free(mod);
}

int main(int argc, char **argv)
{
	char *text;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	for (size_t k = 0; k < sizeof(products) / sizeof(products[0]); k++)
		check(&products[k]);
	test_warp_reductions();
	test_async();
	test_cooperative();
	ptx_module_free(m);
	test_moves();
	free(text);
	forms_done("tensor");
	return tap_done();
}
