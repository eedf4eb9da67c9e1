/* SPDX-License-Identifier: MIT */
/*
 * Times softgpu's engine beside plain C and OpenBLAS, in one run. Every round times each thing once, one right
 * after the other, and gives one ratio for each line; what is printed is the median over the rounds. One-thread lines count the
 * thread's own CPU time, so that what else the machine does weighs little; scaling and launches are wall time.
 */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <time.h>

#include <cuda.h>

#include "tests/softgpu/test_arena.h"

#define ROUNDS	7
#define NVEC	(8u << 20)
#define NMAT	512u
#define NMMA	2000u
#define NBLAS	512u
#define WARPS	8u
#define NCOLL	20000u
#define NPARSE	20u
#define NLAUNCH 400u

#define C_SIDE(flavour)                                                                                                          \
	void c_vector_add_##flavour(const float *a, const float *b, float *c, size_t n);                                         \
	float c_sum_##flavour(const float *a, size_t n);                                                                         \
	void c_matmul_##flavour(const float *a, const float *b, float *c, size_t n);
C_SIDE(plain)
C_SIDE(fast)

static struct ptx_module *module;
static char *text;
static float *va, *vb, *vc, *ma, *mb, *mc;
static uint32_t *fragments, *steps;
static volatile float sink;
static void (*sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

static void must(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "bench-softgpu: %s: %s\n", what, test_fault.text[0] ? test_fault.text : test_log);
		exit(1);
	}
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const char *name, const uint32_t grid[3], const uint32_t block[3], const void *params)
{
	must(test_launch_dim(ptx_module_kernel(module, name), grid, block, 0, params, false) == PTX_OK, name);
}

/* The timed things. */
static void gpu_vector_add(void)
{
	struct {
		const float *a, *b;
		float *c;
		int n;
	} p = {va, vb, vc, NVEC};

	run("vector_add", (const uint32_t[]){NVEC / 256, 1, 1}, (const uint32_t[]){256, 1, 1}, &p);
}

static void gpu_reduce(void)
{
	struct {
		const float *a;
		float *out;
		int n;
	} p = {va, vc, NVEC};

	run("reduce", (const uint32_t[]){256, 1, 1}, (const uint32_t[]){256, 1, 1}, &p);
}

static void gpu_matmul(void)
{
	struct {
		const float *a, *b;
		float *c;
		int n;
	} p = {ma, mb, mc, NMAT};

	run("matmul", (const uint32_t[]){NMAT / 32, NMAT / 32, 1}, (const uint32_t[]){32, 32, 1}, &p);
}

static void gpu_mma(void)
{
	struct {
		float *out;
		const uint32_t *in;
		int n;
	} p = {vc, fragments, NMMA};

	run("mma_registers", (const uint32_t[]){WARPS, 1, 1}, (const uint32_t[]){32, 1, 1}, &p);
}

static void gpu_collatz(void)
{
	struct {
		uint32_t *out;
		int n;
	} p = {steps, NCOLL};

	run("collatz", (const uint32_t[]){(NCOLL + 255) / 256, 1, 1}, (const uint32_t[]){256, 1, 1}, &p);
}

static void c_vector_add(void)
{
	c_vector_add_plain(va, vb, vc, NVEC);
}

static void c_vector_add_f(void)
{
	c_vector_add_fast(va, vb, vc, NVEC);
}

static void c_sum(void)
{
	sink = c_sum_plain(va, NVEC);
}

static void c_sum_f(void)
{
	sink = c_sum_fast(va, NVEC);
}

static void c_matmul(void)
{
	c_matmul_plain(ma, mb, mc, NMAT);
}

static void c_matmul_f(void)
{
	c_matmul_fast(ma, mb, mc, NMAT);
}

static void c_collatz(void)
{
	for (uint32_t i = 0; i < NCOLL; i++) {
		uint32_t v = i + 1, n = 0;

		for (; v != 1; n++)
			v = v & 1 ? 3 * v + 1 : v >> 1;
		steps[i] = n;
	}
}

static void blas_sgemm(void)
{
	if (sgemm) /* row-major, not transposed */
		sgemm(101, 111, 111, NBLAS, NBLAS, NBLAS, 1, ma, NBLAS, mb, NBLAS, 0, mc, NBLAS);
}

/* Parses and lowers one kernel of about a thousand lines. */
static void load_thousand(void)
{
	struct ptx_module *m;

	for (unsigned k = 0; k < NPARSE; k++) {
		must(test_load(text, strlen(text), &m) == PTX_OK, "load");
		ptx_module_free(m);
	}
}

/* Through the driver API: a launch of an empty kernel and the wait for it. */
static CUfunction drv_empty;

static void drv_launch_sync(void)
{
	for (unsigned k = 0; k < NLAUNCH; k++) {
		cuLaunchKernel(drv_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
		cuStreamSynchronize(NULL);
	}
}

static void drv_launches(void)
{
	for (unsigned k = 0; k < NLAUNCH; k++)
		cuLaunchKernel(drv_empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
	cuStreamSynchronize(NULL);
}

static void launch_engine(void)
{
	for (unsigned k = 0; k < NLAUNCH; k++)
		run("empty", (const uint32_t[]){1, 1, 1}, (const uint32_t[]){32, 1, 1}, NULL);
}

enum thing {
	VADD,
	C_VADD,
	C_VADD_F,
	REDUCE,
	C_SUM,
	C_SUM_F,
	MATMUL,
	C_MATMUL,
	C_MATMUL_F,
	MMA,
	SGEMM,
	COLLATZ,
	C_COLLATZ,
	LOAD,
	VADD_W1,
	VADD_WN,
	MATMUL_W1,
	MATMUL_WN,
	LAUNCH_SYNC,
	LAUNCHES,
	LAUNCH_ENGINE,
	NTHINGS
};

/* Work in the unit's own measure; unit per second is what is shown. */
static const struct {
	void (*fn)(void);
	double work;
	const char *unit;
	int threads; /* 0: CPU time of one thread, else wall time with so many, −1: with all cores */
} things[NTHINGS] = {
	[VADD] = {gpu_vector_add, 12e-9 * NVEC, "GB/s", 0},
	[C_VADD] = {c_vector_add, 12e-9 * NVEC, "GB/s", 0},
	[C_VADD_F] = {c_vector_add_f, 12e-9 * NVEC, "GB/s", 0},
	[REDUCE] = {gpu_reduce, 4e-9 * NVEC, "GB/s", 0},
	[C_SUM] = {c_sum, 4e-9 * NVEC, "GB/s", 0},
	[C_SUM_F] = {c_sum_f, 4e-9 * NVEC, "GB/s", 0},
	[MATMUL] = {gpu_matmul, 2e-9 * NMAT *NMAT *NMAT, "GFLOP/s", 0},
	[C_MATMUL] = {c_matmul, 2e-9 * NMAT *NMAT *NMAT, "GFLOP/s", 0},
	[C_MATMUL_F] = {c_matmul_f, 2e-9 * NMAT *NMAT *NMAT, "GFLOP/s", 0},
	[MMA] = {gpu_mma, 4096e-9 * 4 * NMMA *WARPS, "GFLOP/s", 0},
	[SGEMM] = {blas_sgemm, 2e-9 * NBLAS *NBLAS *NBLAS, "GFLOP/s", 0},
	[COLLATZ] = {gpu_collatz, 1e-6 * NCOLL, "M threads/s", 0},
	[C_COLLATZ] = {c_collatz, 1e-6 * NCOLL, "M threads/s", 0},
	[LOAD] = {load_thousand, 1e-3 * NPARSE, "k loads/s", 0},
	[VADD_W1] = {gpu_vector_add, 12e-9 * NVEC, "GB/s", 1},
	[VADD_WN] = {gpu_vector_add, 12e-9 * NVEC, "GB/s", -1},
	[MATMUL_W1] = {gpu_matmul, 2e-9 * NMAT *NMAT *NMAT, "GFLOP/s", 1},
	[MATMUL_WN] = {gpu_matmul, 2e-9 * NMAT *NMAT *NMAT, "GFLOP/s", -1},
	[LAUNCH_SYNC] = {drv_launch_sync, 1e-3 * NLAUNCH, "k/s", 1},
	[LAUNCHES] = {drv_launches, 1e-3 * NLAUNCH, "k/s", 1},
	[LAUNCH_ENGINE] = {launch_engine, 1e-3 * NLAUNCH, "k/s", 1},
};

static double rate[NTHINGS][ROUNDS], cpu[NTHINGS][ROUNDS]; /* cpu: seconds of the whole process */
static unsigned cores;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v)
{
	double s[ROUNDS];

	memcpy(s, v, sizeof(s));
	qsort(s, ROUNDS, sizeof(s[0]), by_value);
	return s[ROUNDS / 2];
}

static void ratio(const char *what, enum thing a, enum thing b, double target)
{
	double r[ROUNDS], m;
	char goal[32] = "";

	for (unsigned k = 0; k < ROUNDS; k++)
		r[k] = rate[a][k] / rate[b][k];
	m = median(r);
	if (target > 0)
		snprintf(goal, sizeof(goal), "target %.2f %s", target, m >= target ? "met" : "MISSED");
	printf("%-44s %9.3f : %-9.3f %-11s ratio %-8.3f %s\n", what, median(rate[a]), median(rate[b]), things[a].unit, m, goal);
}

/* With threads that do not disturb each other, N of them use no more CPU time in all than one. */
static void scaling(const char *what, enum thing n, enum thing one)
{
	double r[ROUNDS];

	for (unsigned k = 0; k < ROUNDS; k++)
		r[k] = cpu[one][k] / cpu[n][k];
	ratio(what, n, one, 0);
	printf("%-44s CPU time of 1 thread : of %u threads, ratio %.3f target 0.90 %s\n", what, cores, median(r),
	       median(r) >= 0.9 ? "met" : "MISSED");
}

static void *open_blas(void)
{
	void (*set_threads)(int);
	void *lib;

	/* OpenBLAS 0.3.21 does not know newer CPUs: see softgpu/blas/backend.c. */
	__builtin_cpu_init();
	if (!getenv("OPENBLAS_CORETYPE") && __builtin_cpu_supports("x86-64-v4"))
		setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
	lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return NULL;
	set_threads = dlsym(lib, "openblas_set_num_threads");
	if (set_threads)
		set_threads(1);
	return dlsym(lib, "cblas_sgemm");
}

static void open_driver(const char *ptx)
{
	CUdevice dev;
	CUcontext ctx;
	CUmodule mod;

	must(!cuInit(0) && !cuDeviceGet(&dev, 0) && !cuDevicePrimaryCtxRetain(&ctx, dev) && !cuCtxSetCurrent(ctx) &&
		     !cuModuleLoadData(&mod, ptx) && !cuModuleGetFunction(&drv_empty, mod, "empty"),
	     "the driver API");
}

/* Only the kernel long_kernel of the file, for the time of a load. */
static char *long_kernel(const char *all)
{
	const char *first = strstr(all, ".visible .entry"), *k = strstr(all, ".visible .entry long_kernel");
	const char *end = k ? strstr(k, "\n}") : NULL;
	char *s;

	must(first && end, "no long_kernel");
	s = malloc((size_t)(first - all) + (size_t)(end - k) + 4);
	sprintf(s, "%.*s%.*s\n}\n", (int)(first - all), all, (int)(end - k), k);
	return s;
}

static void fill(float *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		p[k] = (float)(k * 2654435761u % 1024) / 1024 - 0.5f;
}

static void check_results(void)
{
	float want = 0, got = 0;

	gpu_matmul();
	for (unsigned k = 0; k < NMAT; k++)
		want = fmaf(ma[3 * NMAT + k], mb[k * NMAT + 5], want);
	must(mc[3 * NMAT + 5] == want, "matmul gives a wrong sum");
	gpu_vector_add();
	must(vc[NVEC - 7] == va[NVEC - 7] + vb[NVEC - 7], "vector_add gives a wrong sum");
	gpu_reduce();
	for (unsigned k = 0; k < 256; k++)
		got += vc[k];
	c_sum_f();
	must(fabsf(got - sink) < 16, "reduce gives a wrong sum");
}

int main(int argc, char **argv)
{
	size_t len, lines = 0;
	char *all = argc > 1 ? test_read_file(argv[1], &len) : NULL;
	cpu_set_t set;

	must(all, "usage: softgpu KERNELS.ptx");
	cores = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
	test_arena_init();
	module = test_must_load(all);
	text = long_kernel(all);
	for (const char *s = text; *s; s++)
		lines += *s == '\n';
	va = test_alloc(NVEC * 4);
	vb = test_alloc(NVEC * 4);
	vc = test_alloc(NVEC * 4);
	ma = test_alloc(NMAT * NMAT * 4);
	mb = test_alloc(NMAT * NMAT * 4);
	mc = test_alloc(NMAT * NMAT * 4);
	fragments = test_alloc(32 * 6 * 4);
	steps = test_alloc(NCOLL * 4);
	fill(va, NVEC);
	fill(vb, NVEC);
	fill(ma, NMAT * NMAT);
	fill(mb, NMAT * NMAT);
	for (unsigned k = 0; k < 32 * 6; k++)
		fragments[k] = 0x2c002e00 + k;
	sgemm = open_blas();
	open_driver(all);
	check_results();

	for (int r = -1; r < ROUNDS; r++) /* round −1 warms up */
		for (unsigned t = 0; t < NTHINGS; t++) {
			clockid_t clock = things[t].threads ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
			double t0, c0;

			test_threads = things[t].threads < 0 ? cores : 1;
			c0 = now(CLOCK_PROCESS_CPUTIME_ID);
			t0 = now(clock);
			things[t].fn();
			t0 = now(clock) - t0;
			if (r >= 0) {
				rate[t][r] = things[t].work / t0;
				cpu[t][r] = now(CLOCK_PROCESS_CPUTIME_ID) - c0;
			}
		}

	printf("softgpu, medians of %u rounds; C side: gcc -O3 (in brackets: -O3 -march=native -ffast-math)\n", ROUNDS);
	ratio("tiled matmul n=512 : naive C", MATMUL, C_MATMUL, 1.5);
	ratio("  [fast flags]", MATMUL, C_MATMUL_F, 0);
	ratio("vectorAdd 8M : C loop", VADD, C_VADD, 0.25);
	ratio("  [fast flags]", VADD, C_VADD_F, 0);
	ratio("shuffle reduction 8M : C sum", REDUCE, C_SUM, 0.10);
	ratio("  [fast flags]", REDUCE, C_SUM_F, 0);
	if (sgemm)
		ratio("mma.sync m16n8k16 f16 : OpenBLAS sgemm", MMA, SGEMM, 0.1);
	else
		printf("mma.sync: %.1f GFLOP/s; no libopenblas.so.0 to compare with\n", median(rate[MMA]));
	ratio("divergent loop (collatz) : C", COLLATZ, C_COLLATZ, 0);
	printf("load of a kernel of %zu lines: %.3f ms (target 1.00 %s)\n", lines, 1 / median(rate[LOAD]),
	       median(rate[LOAD]) >= 1 ? "met" : "MISSED");
	printf("%u threads and 1, wall time (cores that others use are missing here):\n", cores);
	scaling("  vectorAdd", VADD_WN, VADD_W1);
	scaling("  matmul", MATMUL_WN, MATMUL_W1);
	printf("empty kernel: launch and wait %.2f us, launches in a row %.2f us each, engine alone %.2f us\n",
	       1e3 / median(rate[LAUNCH_SYNC]), 1e3 / median(rate[LAUNCHES]), 1e3 / median(rate[LAUNCH_ENGINE]));
	return 0;
}
