/* SPDX-License-Identifier: MIT */
/* Kernels compiled by nvcc (ptx_kernels.cu), run by the PTX engine and compared with the same computation in C. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/softgpu/test_arena.h"
#include "tests/softgpu/ptx_forms.h"
#include "tests/tap.h"

static struct ptx_module *m;

static struct ptx_func *kernel(const char *name)
{
	struct ptx_func *f = ptx_module_kernel(m, name);

	if (!f) {
		printf("Bail out! no kernel %s\n", name);
		exit(1);
	}
	return f;
}

static enum ptx_status run(const char *name, uint32_t grid, uint32_t block, const void *params)
{
	enum ptx_status st = test_launch(kernel(name), grid, block, params);

	if (st != PTX_OK)
		printf("# %s: status %d, %s\n", name, st, test_fault.text);
	return st;
}

static int *ints(size_t n)
{
	int *p = test_alloc(n * sizeof(int));

	memset(p, 0, n * sizeof(int));
	return p;
}

/* Compares @n results with @want(index). */
#define EACH(n, got, want, what)                                                                                                 \
	do {                                                                                                                     \
		int bad_ = 0;                                                                                                    \
		for (int t = 0; t < (int)(n); t++)                                                                               \
			if ((got) != (want) && bad_++ < 3)                                                                       \
				printf("# %s: at %d got %lld want %lld\n", what, t, (long long)(got), (long long)(want));        \
		ok(!bad_, what);                                                                                                 \
	} while (0)

static void test_globals(void)
{
	static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
	float *o = test_alloc(64 * sizeof(float));
	struct {
		float *o;
	} p = {o};
	uint64_t addr;
	size_t bytes;

	run("globals", 2, 64, &p);
	EACH(64, o[t] * 2, table[t & 7] * 5, "constants, initialised globals, a pointer to a global");
	ok(ptx_module_global(m, "counter", &addr, &bytes) && bytes == 4, "a global by name");
	is_int(*(int *)(uintptr_t)addr, 128, "what the kernel left in it");
	*(float *)(uintptr_t)(ptx_module_global(m, "scale", &addr, &bytes), addr) = 10;
	run("globals", 1, 64, &p);
	EACH(64, o[t], table[t & 7] * 10, "a global changed from outside");
	ok(!ptx_module_global(m, "nothing", &addr, &bytes), "no such global");
}

static int nested(int tid, int n)
{
	int r = 0;

	for (int i = 0; i <= (tid & 15); i++) {
		for (int j = 0; j < i; j++) {
			if ((unsigned)(i + j + tid) % 3 == 0)
				continue;
			if (j == 7)
				break;
			r += i * j;
		}
		if (r > n)
			break;
	}
	return r;
}

static int irreducible(int tid, int odd)
{
	int i = tid, c = 0;

	if (odd)
		goto b;
a:
	i += 3;
	if (i > 1000)
		goto e;
b:
	i = i * 3 + 1;
	c++;
	if (i < 5000)
		goto a;
e:
	return i + c;
}

static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void test_flow(void)
{
	int *o = ints(1024), *ctr = ints(64), *s = ints(1024);
	struct {
		int *o;
		int n;
	} p = {o, 100};
	struct {
		int *lock, *ctr;
	} lock = {ctr + 1, ctr};
	struct {
		int *o, *s;
	} sw = {o, s};
	struct {
		int *o, *idx;
		int n;
	} la = {o, s, 500};
	float *f = test_alloc(1024 * sizeof(float));
	struct {
		float *f;
		int *s;
	} ind = {f, s};
	int old[1024];

	run("nested", 1, 96, &p);
	EACH(96, o[t], nested(t, 100), "nested loops with break and continue");
	run("lane_lock", 4, 64, &lock);
	is_int(*ctr, 256, "a lock taken lane by lane");
	for (int i = 0; i < 64; i++)
		o[i] = i * 7;
	run("irreducible", 1, 64, &p);
	EACH(64, o[t], irreducible(t, t * 7 & 1), "an irreducible loop");
	run("barrier_in_arms", 1, 64, &p);
	EACH(64, o[t], ((t ^ 1) & 1 ? 1 : 2) * 10 + ((t ^ 33) & 1 ? 1 : 2), "barriers in both arms of a branch");
	memset(o, 0, 4096);
	run("early_exit", 1, 100, &p);
	EACH(100, o[t], t % 3 == 1 ? 0 : 67, "a barrier after some threads left, partial last warp");
	p.n = 70;
	run("sync_reductions", 1, 100, &p);
	EACH(100, o[t], 29 * 100 + 11, "barrier reductions");
	run("recursion", 2, 64, &p);
	EACH(64, o[t], fib(t % 11), "recursion of different depth in each lane");
	for (int i = 0; i < 64; i++) {
		s[i] = i % 3;
		f[i] = (float)i;
	}
	run("indirect", 1, 64, &ind);
	EACH(64, f[t], t % 3 == 0 ? t + 3 : t % 3 == 1 ? t * 3 : t - 3, "indirect calls with different targets");
	for (int i = 0; i < 64; i++) {
		o[i] = i * 11 + 5;
		s[i] = i % 9;
	}
	memcpy(old, o, sizeof(old));
	run("switches", 1, 64, &sw);
#define SWITCH(v)                                                                                                                \
	(v == 0	  ? old[1]                                                                                                       \
	 : v == 1 ? old[5] * 3                                                                                                   \
	 : v == 2 ? old[2] - 9                                                                                                   \
	 : v == 3 ? old[7] / 3                                                                                                   \
	 : v == 4 ? old[8] % 5                                                                                                   \
	 : v == 5 ? old[9] << 2                                                                                                  \
	 : v == 6 ? __builtin_popcount((unsigned)old[3])                                                                         \
	 : v == 7 ? (old[0] ^ 0x55)                                                                                              \
		  : -1)
	EACH(64, o[t], SWITCH(t % 9), "switch");
	for (int i = 0; i < 1024; i++)
		s[i] = i * 37 % 101;
	run("local_array", 1, 64, &la);
	for (int t = 0; t < 64; t++) {
		int a[64], sum = 0;

		for (int i = 0; i < 64; i++)
			a[i] = i * t;
		for (int k = 0; k < 500; k++)
			a[s[k] & 63] = (int)((unsigned)a[s[k] & 63] + (unsigned)a[s[k + 1] & 63]);
		for (int i = 0; i < 64; i++)
			sum = (int)((unsigned)sum + (unsigned)a[i] * (unsigned)i);
		old[t] = sum;
	}
	EACH(64, o[t], old[t], "local arrays");
}

struct pair {
	int a;
	float b;
	char c[5];
};

static void test_memory(void)
{
	int *o = ints(1024);
	float *f = test_alloc(4096);
	struct {
		struct pair in;
		int *o;
		float *f;
	} st = {{7, 1.5f, "abcd"}, o, f};
	struct {
		int *o;
		int m;
	} gen = {o, 2};
	int want[64];

	run("structs", 1, 64, &st);
	EACH(64, o[t], (7 + t) * 256 + (char)t + 'a', "structs by value to and from a function");
	EACH(64, f[t], 3, "and their floats");
	for (int i = 0; i < 128; i++)
		o[i] = i;
	run("generic", 1, 64, &gen);
	for (int t = 0; t < 64; t++) {
		int loc[4] = {1, 2, 3, t};

		if (t % 3 == 0)
			want[t] = ++loc[2] + loc[3];
		else if (t % 3 == 1)
			want[t] = (t ^ 2) * 7 + 1 + t;
		else
			want[t] = 64 + (t & 2) + 1 + t;
	}
	EACH(64, t % 3 == 2 ? want[t] : o[t], want[t], "generic pointers to local, shared and global memory");

	float *a = test_alloc(64 * 16), *o4 = test_alloc(64 * 16);
	unsigned char *b = test_alloc(256);
	double *d = test_alloc(64 * 16);
	short *s = test_alloc(256);
	struct {
		float *a, *o;
		unsigned char *b;
		double *d;
		short *s;
	} vec = {a, o4, b, d, s};

	for (int i = 0; i < 256; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = (unsigned char)(i * 77);
	}
	run("vectors", 1, 64, &vec);
	EACH(256, o4[t] * 2, a[(t & ~3) + 3 - (t & 3)] * 2, "vector loads and stores of floats");
	EACH(64, s[2 * t], b[4 * t] - b[4 * t + 1], "of bytes and shorts");
	EACH(64, d[2 * t] * 2, (a[4 * t] + (float)b[4 * t]) * 2, "of doubles");

	float *in = test_alloc(4096), *out = test_alloc(4096);
	struct {
		float *o, *in;
		int n;
	} dy = {out, in, 200};

	for (int i = 0; i < 200; i++)
		in[i] = (float)i;
	is_int(test_launch_dim(kernel("dynamic_shared"), (uint32_t[]){1, 1, 1}, (uint32_t[]){200, 1, 1}, 800, &dy, false), PTX_OK,
	       "a launch with dynamic shared memory");
	EACH(200, out[t], 199 - t + 1, "dynamic beside static shared memory");
}

static void test_warp(void)
{
	int *o = ints(256), *in = ints(32);
	struct {
		int *o;
	} p = {o};
	struct {
		int *o, *in;
	} v = {o, in};
	int r[32], want[32];

	run("shuffles", 1, 32, &p);
	for (int t = 0; t < 32; t++)
		r[t] = t & 1 ? (t ^ 2) * 3 : (t ^ 4) * 300;
	for (int t = 0; t < 32; t++) {
		int up = t >= 5 ? t - 5 : t, down = t % 16 + 7 < 16 ? t + 7 : t;

		want[t] = r[t] + r[3] + up * 3 + down * 3 + (t ^ 9) * 3;
	}
	EACH(32, o[t], want[t], "shuffles, in both arms of a branch and together");

	for (int i = 0; i < 32; i++)
		in[i] = i % 7;
	run("votes", 1, 32, &v);
	unsigned gt3 = 0, odd = 0, even2 = 0, same[7] = {0};

	for (int i = 0; i < 32; i++) {
		gt3 |= (unsigned)(i % 7 > 3) << i;
		odd |= (unsigned)(i % 7 & 1) << i;
		even2 |= (unsigned)(!(i % 7 & 1) && i % 7 > 2) << i;
		same[i % 7] |= 1u << i;
	}
	EACH(32, (unsigned)o[8 * t], gt3, "ballot");
	EACH(32, o[8 * t + 1], 3, "all and any");
	EACH(32, (unsigned)o[8 * t + 2], same[t % 7], "match.any");
	EACH(32, o[8 * t + 3] | o[8 * t + 4], 0, "match.all of different values");
	EACH(32, (unsigned)o[8 * t + 5], t % 7 & 1 ? odd : even2, "activemask and a ballot of those present");
	run("warpsync_places", 1, 32, &p);
	EACH(32, o[t], t < 16 ? (t + 16) * 2 : t - 15, "lanes meet at two different bar.warp.sync");
}

static void test_atomics(void)
{
	int *i = ints(16);
	unsigned *u = (unsigned *)ints(16), wu[2] = {0, 5};
	float *f = test_alloc(64);
	double *d = test_alloc(64);
	unsigned long long *l = test_alloc(64);
	struct {
		int *i;
		unsigned *u;
		float *f;
		double *d;
		unsigned long long *l;
	} p = {i, u, f, d, l};
	enum { N = 1024 };

	i[4] = -1;
	u[1] = 5;
	u[2] = 0xffffffff;
	*f = 0;
	*d = 0;
	memset(l, 0, 64);
	test_threads = 4;
	run("atomics", 8, 128, &p);
	test_threads = 1;
	for (int t = 0; t < N; t++) {
		wu[0] = wu[0] >= 9 ? 0 : wu[0] + 1;
		wu[1] = !wu[1] || wu[1] > 100 ? 100 : wu[1] - 1;
	}
	is_int(i[0], N * (N - 1) / 2, "add");
	is_int(i[1], -N, "sub");
	is_int(i[2], -(N - 1), "min");
	is_int(i[3], N - 1, "max");
	is_int(i[4], 0, "and");
	is_int(i[5], 0xffff, "or");
	is_int(i[6], 0, "xor");
	is_int(u[0], wu[0], "inc");
	is_int(u[1], wu[1], "dec");
	is_int(u[2], 0x80000000u, "unsigned min");
	is_int(u[3], 0x80000000u + N - 1, "unsigned max");
	is_int(*f, N, "float add");
	is_int(*d * 2, N, "double add");
	is_int(l[0], 0x100000001ull * N, "64-bit add");
	is_int(l[1], (unsigned long long)(N - 1) << 33, "64-bit max");
	is_int(l[2], 3 * N, "a 64-bit compare-and-swap loop");
	is_int(l[3], (unsigned long long)N << 16, "a 16-bit compare-and-swap loop");

	enum { BYTES = 100001 };
	unsigned char *data = test_alloc(BYTES);
	unsigned *h = (unsigned *)ints(256), ref[256] = {0}, fref[16] = {0};
	float *fh = test_alloc(64);
	struct {
		unsigned char *d;
		unsigned *h;
		float *fh;
		int n;
	} hp = {data, h, fh, BYTES};

	memset(fh, 0, 64);
	for (int t = 0; t < BYTES; t++) {
		data[t] = (unsigned char)(t * 2654435761u >> 13);
		ref[data[t]]++;
		fref[data[t] & 15]++;
	}
	test_threads = 3;
	run("shared_histogram", 37, 192, &hp);
	test_threads = 1;
	EACH(256, h[t], ref[t], "histogram with shared and global atomics");
	EACH(16, fh[t] * 4, fref[t], "with floats");
}

static void test_output(void)
{
	struct {
		int n;
	} p = {42};
	char want[1024];
	int *q = ints(64);
	struct {
		int *p;
	} as = {q};

	run("prints", 1, 32, &p);
	snprintf(want, sizeof(want),
		 "%d|%5d|%-5d|%05d|%+d|%x|%#X|%o|%u|%c|%s|%8s|%.2s|%%|%p|%lld|%llu|%hd|%f|%.3f|%e|%g|%10.4f|%*d\n"
		 "no arguments\n",
		 42, 42, 42, 42, 42, 42, 42, 42, (unsigned)-42, 'q', "one", "two", "zero", (void *)0x1234, -5000000000ll,
		 5000000000ull, (short)42, 63.0, 2.0 / 3, 12345.678, 0.0001, -2.5, 6, 42);
	is_str(test_text, want, "printf with every conversion");

	for (int i = 0; i < 64; i++)
		q[i] = i != 37;
	is_int(test_launch(kernel("asserts"), 1, 64, &as), PTX_ASSERT, "a failed assertion");
	is_int(test_fault.thread[0], 37, "of the right thread");
	ok(strstr(test_text, "ptx_kernels.cu:") &&
		   strstr(test_text, ": block: [0,0,0], thread: [37,0,0] Assertion `p[threadIdx.x] != 0` failed.\n"),
	   "printed as CUDA does");
	printf("# %s", test_text);
	q[0] = 3;
	is_int(test_launch(kernel("traps"), 1, 32, &as), PTX_ILLEGAL_INSTRUCTION, "a trap");
	q[0] = 2;
	is_int(test_launch(kernel("traps"), 1, 32, &as), PTX_OK, "no trap");
}

static void test_heap(void)
{
	int **q = test_alloc(64 * 8), *good = ints(64);
	struct {
		int **q;
		int *ok;
	} p = {q, good};
	struct {
		int *o;
	} full = {good};

	run("heap", 1, 64, &p);
	EACH(64, good[t], 1, "malloc and free");
	run("heap_full", 1, 32, &full);
	EACH(32, good[t], 1, "malloc of more than there is");
}

static void test_faults(void)
{
	int *o = ints(1024);
	struct {
		int *p;
		long long off;
	} st = {o, 1ll << 28};
	struct {
		int *o;
		const char *p;
	} ld = {o, (const char *)o + 2};
	struct {
		int *o;
		int i;
	} sh = {o, 100000};
	struct {
		float *o;
		unsigned long long p;
	} wild = {(float *)o, 0x1234};
	struct {
		int *o;
	} one = {o};
	uint8_t *unmapped = softgpu_arena.base + TEST_ARENA_MAPPED * SOFTGPU_GRANULE;

	is_int(test_launch(kernel("store_at"), 1, 32, &st), PTX_ILLEGAL_ADDRESS, "a store far outside");
	is_int(test_fault.addr, (long long)(uintptr_t)o + (1ll << 30), "its address");
	is_int(test_fault.thread[0], 1, "its thread");
	printf("# %s\n", test_fault.text);
	st.off = 0;
	is_int(test_launch(kernel("store_at"), 1, 32, &st), PTX_OK, "the engine works after a fault");
	is_int(test_launch(kernel("load_at"), 1, 32, &ld), PTX_MISALIGNED, "a misaligned load");
	for (int k = 0; k < 4; k++) {
		static const char *const what[] = {"NULL", "an address outside the arena", "the last mapped words",
						   "a wild non-canonical one"};
		const char *at[] = {NULL, (const char *)&o, (const char *)unmapped - 64, (const char *)0xdead000000000000};

		ld.p = at[k];
		is_int(test_launch(kernel("load_at"), 1, 32, &ld), PTX_ILLEGAL_ADDRESS, "a load through %s", what[k]);
		if (k == 2)
			is_int(test_fault.addr, (long long)(uintptr_t)unmapped, "faults at the first byte behind");
	}
	is_int(test_launch(kernel("shared_at"), 1, 32, &sh), PTX_ILLEGAL_ADDRESS, "shared memory out of range");
	is_int(test_launch(kernel("wild_call"), 1, 32, &wild), PTX_ILLEGAL_INSTRUCTION, "a call through a wild pointer");
	is_int(test_launch(kernel("bottomless"), 1, 32, &one), PTX_STACK, "recursion without an end");
	is_int(test_launch(kernel("nested"), 0, 32, &st), PTX_OUT_OF_RESOURCES, "an empty grid");
	is_int(test_launch(kernel("nested"), 1, 1025, &st), PTX_OUT_OF_RESOURCES, "too many threads");
}

static void *cancel_soon(void *flag)
{
	usleep(50000);
	*(volatile int *)flag = 1;
	return NULL;
}

static void test_blocks(void)
{
	int *o = ints(4096), *in = ints(256), *cnt = ints(4), *part = ints(256);
	struct {
		int *in, *part;
		int *cnt, *out;
	} lb = {in, part, cnt, o};
	struct {
		int *flag, *o;
	} later = {cnt + 1, o};
	struct {
		int *o;
	} ring = {o};
	volatile int cancel = 0;
	struct ptx_launch l = {.grid = {2, 1, 1}, .block = {64, 1, 1}, .threads = 2, .cancel = &cancel};
	pthread_t t;

	for (int i = 0; i < 200; i++)
		in[i] = i * i;
	test_threads = 4;
	run("last_block", 200, 64, &lb);
	is_int(o[0], 199 * 200 * 399 / 6, "the last block sums what the others wrote");
	test_threads = 1;
	memset(o, 0xff, 4096);
	run("later_block", 20, 64, &later);
	EACH(20, o[t], t, "blocks that wait for a later one, on one thread");
	run("ring_of_warps", 1, 512, &ring);
	EACH(16, o[t], 15 - t, "warps that wait for each other without a barrier");
	is_int(test_launch_dim(kernel("dims"), (uint32_t[]){3, 2, 2}, (uint32_t[]){5, 3, 2}, 0, &ring, false), PTX_OK,
	       "3-D shapes");
	EACH(12 * 30, o[t],
	     t % 30 % 5 | (t % 30 / 5 % 3) << 4 | (t % 30 / 15) << 8 | (t / 30 % 3) << 12 | (t / 30 / 3 % 2) << 16 |
		     (t / 30 / 6) << 20,
	     "every thread and block index");

	*o = 0;
	l.params = &ring;
	pthread_create(&t, NULL, cancel_soon, (void *)(uintptr_t)&cancel);
	is_int(ptx_launch(kernel("spin_forever"), &l, &test_fault), PTX_CANCELLED, "a launch without an end is cancelled");
	pthread_join(t, NULL);
}

int main(int argc, char **argv)
{
	char *text;

	(void)argc;
	m = test_module_beside(argv[0], &text);
	test_globals();
	test_flow();
	test_memory();
	test_warp();
	test_atomics();
	test_output();
	test_heap();
	test_faults();
	test_blocks();
	ptx_module_free(m);
	free(text);
	forms_done("kernels");
	return tap_done();
}
