// SPDX-License-Identifier: MIT
// Kernels for ptx_kernels.c: what nvcc makes of divergence, calls, shared memory, atomics, printf and the rest.
#include <cassert>
#include <cstdio>

#define K extern "C" __global__ void

struct pair_t {
	int a;
	float b;
	char c[5];
};

__constant__ int table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
__device__ float scale = 2.5f;
__device__ int counter;
__device__ float *scale_ptr = &scale;
__device__ const char *names[] = { "zero", "one", "two" };

K globals(float *o) { o[threadIdx.x] = table[threadIdx.x & 7] * *scale_ptr; atomicAdd(&counter, 1); }

K nested(int *o, int n)
{
	int r = 0;
	for (int i = 0; i <= (int)(threadIdx.x & 15); i++) {
		for (int j = 0; j < i; j++) {
			if ((i + j + threadIdx.x) % 3 == 0)
				continue;
			if (j == 7)
				break;
			r += i * j;
		}
		if (r > n)
			break;
	}
	o[threadIdx.x] = r;
}

// the classic SIMT deadlock: the lane that got the lock must run before the others stop spinning
K lane_lock(int *lock, volatile int *ctr)
{
	while (atomicCAS(lock, 0, 1) != 0)
		;
	__threadfence();
	*ctr = *ctr + 1;
	__threadfence();
	atomicExch(lock, 0);
}

K irreducible(int *o, int n)
{
	int i = threadIdx.x, c = 0;
	if (o[threadIdx.x] & 1)
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
	o[threadIdx.x] = i + c;
}

K barrier_in_arms(int *o)
{
	__shared__ int s[64];
	if (threadIdx.x & 1) {
		s[threadIdx.x] = 1;
		__syncthreads();
	} else {
		s[threadIdx.x] = 2;
		__syncthreads();
	}
	o[threadIdx.x] = s[threadIdx.x ^ 1] * 10 + s[threadIdx.x ^ 33];
}

K early_exit(int *o)
{
	__shared__ int s;
	if (threadIdx.x == 0)
		s = 0;
	__syncthreads();
	if (threadIdx.x % 3 == 1)
		return;
	atomicAdd(&s, 1);
	__syncthreads();
	o[threadIdx.x] = s;
}

K sync_reductions(int *o, int m)
{
	int c = __syncthreads_count(threadIdx.x > m);
	int a = __syncthreads_and(threadIdx.x < 1000);
	int b = __syncthreads_or(threadIdx.x == m);
	o[threadIdx.x] = c * 100 + (a != 0) * 10 + (b != 0);
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
K recursion(int *o) { o[threadIdx.x] = fib(threadIdx.x % 11); }

__device__ __noinline__ int forever(int n, int *p) { int a[8]; for (int i = 0; i < 8; i++) a[i] = p[i] + n; return n == -1 ? a[n & 7] : forever(n + 1, a) + a[(n + 1) & 7]; }
K bottomless(int *o) { o[threadIdx.x] = forever(threadIdx.x, o); }

typedef float (*op_t)(float, float);
__device__ float f_add(float a, float b) { return a + b; }
__device__ float f_mul(float a, float b) { return a * b; }
__device__ float f_sub(float a, float b) { return a - b; }
__device__ op_t ops[3] = { f_add, f_mul, f_sub };
K indirect(float *o, const int *s) { o[threadIdx.x] = ops[s[threadIdx.x]](o[threadIdx.x], 3.f); }
K wild_call(float *o, unsigned long long p) { o[threadIdx.x] = ((op_t)p)(1, 2); }

__device__ __noinline__ pair_t by_value(pair_t p, int k)
{
	p.a += k;
	p.b *= 2;
	p.c[4] = (char)k;
	return p;
}
K structs(pair_t in, int *o, float *f)
{
	pair_t r = by_value(in, threadIdx.x);
	o[threadIdx.x] = r.a * 256 + r.c[4] + in.c[0];
	f[threadIdx.x] = r.b;
}

K switches(int *o, const int *s)
{
	int v = s[threadIdx.x], r = 0;
	switch (v) {
	case 0: r = o[1]; break;
	case 1: r = o[5] * 3; break;
	case 2: r = o[2] - 9; break;
	case 3: r = o[7] / 3; break;
	case 4: r = o[8] % 5; break;
	case 5: r = o[9] << 2; break;
	case 6: r = __popc(o[3]); break;
	case 7: r = o[0] ^ 0x55; break;
	default: r = -1;
	}
	__syncthreads();
	o[threadIdx.x] = r;
}

K local_array(int *o, const int *idx, int n)
{
	int a[64];
	for (int i = 0; i < 64; i++)
		a[i] = i * threadIdx.x;
	for (int k = 0; k < n; k++)
		a[idx[k] & 63] += a[idx[k + 1] & 63];
	int s = 0;
	for (int i = 0; i < 64; i++)
		s += a[i] * i;
	o[threadIdx.x] = s;
}

// generic pointers into local, shared and global memory chosen at run time
K generic(int *o, int m)
{
	__shared__ int sh[64];
	int loc[4] = { 1, 2, 3, (int)threadIdx.x };
	sh[threadIdx.x] = threadIdx.x * 7;
	__syncthreads();
	int *p = threadIdx.x % 3 == 0 ? &loc[m & 3] : threadIdx.x % 3 == 1 ? &sh[threadIdx.x ^ m] : &o[64 + (threadIdx.x & m)];
	*p += 1;
	o[threadIdx.x] = *p + loc[3];
}

K shuffles(int *o)
{
	int v = threadIdx.x * 3, r;
	if (threadIdx.x & 1)
		r = __shfl_xor_sync(0xaaaaaaaau, v, 2);
	else
		r = __shfl_xor_sync(0x55555555u, v, 4) * 100;
	r += __shfl_sync(~0u, r, 3);
	r += __shfl_up_sync(~0u, v, 5) + __shfl_down_sync(~0u, v, 7, 16) + __shfl_xor_sync(~0u, v, 9, 16);
	o[threadIdx.x] = r;
}

K votes(unsigned *o, const int *in)
{
	int v = in[threadIdx.x], p;
	unsigned *q = o + threadIdx.x * 8;
	q[0] = __ballot_sync(~0u, v > 3);
	q[1] = __all_sync(~0u, v >= 0) * 2 + __any_sync(~0u, v == 5);
	q[2] = __match_any_sync(~0u, v);
	q[3] = __match_all_sync(~0u, v, &p);
	q[4] = p;
	if (v & 1)
		q[5] = __activemask();
	else
		q[5] = __ballot_sync(__activemask(), v > 2);
}

// half the lanes wait for the others at another place
K warpsync_places(int *o)
{
	__shared__ volatile int s[32];
	if (threadIdx.x < 16) {
		s[threadIdx.x] = threadIdx.x + 1;
		__syncwarp();
		o[threadIdx.x] = s[threadIdx.x + 16];
	} else {
		s[threadIdx.x] = threadIdx.x * 2;
		__syncwarp();
		o[threadIdx.x] = s[threadIdx.x - 16];
	}
}

K atomics(int *i, unsigned *u, float *f, double *d, unsigned long long *l)
{
	int t = threadIdx.x + blockIdx.x * blockDim.x;
	atomicAdd(&i[0], t);
	atomicSub(&i[1], 1);
	atomicMin(&i[2], -t);
	atomicMax(&i[3], t);
	atomicAnd(&i[4], ~(1 << (t & 31)));
	atomicOr(&i[5], 1 << (t & 15));
	atomicXor(&i[6], t);
	atomicInc(&u[0], 9);
	atomicDec(&u[1], 100);
	atomicMin(&u[2], 0x80000000u + t);
	atomicMax(&u[3], 0x80000000u + t);
	atomicAdd(&f[0], 1.0f);
	atomicAdd(&d[0], 0.5);
	atomicAdd(&l[0], 0x100000001ull);
	atomicMax(&l[1], (unsigned long long)t << 33);
	unsigned long long old = l[2], as;
	do {
		as = old;
		old = atomicCAS(&l[2], as, as + 3);
	} while (old != as);
	unsigned short *h = (unsigned short *)&l[3], o16 = h[1], a16;
	do {
		a16 = o16;
		o16 = atomicCAS(&h[1], a16, (unsigned short)(a16 + 1));
	} while (o16 != a16);
}

K shared_histogram(const unsigned char *d, unsigned *h, float *fh, int n)
{
	__shared__ unsigned s[256];
	__shared__ float fs[16];
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		s[i] = 0;
	if (threadIdx.x < 16)
		fs[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		atomicAdd(&s[d[i]], 1u);
		atomicAdd(&fs[d[i] & 15], 0.25f);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&h[i], s[i]);
	if (threadIdx.x < 16)
		atomicAdd(&fh[threadIdx.x], fs[threadIdx.x]);
}

K dynamic_shared(float *o, const float *in, int n)
{
	extern __shared__ float t[];
	__shared__ float one;
	if (threadIdx.x == 0)
		one = 1;
	t[threadIdx.x] = in[threadIdx.x];
	__syncthreads();
	o[threadIdx.x] = t[n - 1 - threadIdx.x] + one;
}

K prints(int n)
{
	if (threadIdx.x == 1)
		printf("%d|%5d|%-5d|%05d|%+d|%x|%#X|%o|%u|%c|%s|%8s|%.2s|%%|%p|%lld|%llu|%hd|%f|%.3f|%e|%g|%10.4f|%*d\n", n, n, n, n, n, n,
		       n, n, -n, 'q', names[1], names[2], names[0], (void *)0x1234, -5000000000ll, 5000000000ull, n, 1.5 * n, 2.0 / 3,
		       12345.678, 0.0001, -2.5, 6, n);
	if (threadIdx.x == 2)
		printf("no arguments\n");
}

K asserts(const int *p) { assert(p[threadIdx.x] != 0); }
K traps(int *p) { if (p[0] == 3) __trap(); p[1] = 4; }

K heap(int **p, int *ok)
{
	int *q = (int *)malloc(64 + threadIdx.x);
	q[0] = threadIdx.x;
	p[threadIdx.x] = q;
	__syncthreads();
	ok[threadIdx.x] = p[threadIdx.x ^ 1][0] == (int)(threadIdx.x ^ 1) && ((unsigned long long)q & 15) == 0;
	__syncthreads();
	free(q);
}
K heap_full(int *o) { o[threadIdx.x] = malloc(64 << 20) == nullptr; }

K store_at(int *p, long long off) { p[off * (int)threadIdx.x] = 1; }
K load_at(int *o, const char *p) { o[threadIdx.x] = *(const int *)(p + threadIdx.x * 4); }
K shared_at(int *o, int i) { __shared__ int s[4]; s[threadIdx.x & 3] = i; __syncthreads(); o[0] = s[i]; }

K last_block(const int *in, int *part, unsigned *cnt, int *out)
{
	__shared__ bool last;
	part[blockIdx.x] = in[blockIdx.x];
	__threadfence();
	if (threadIdx.x == 0)
		last = atomicInc(cnt, gridDim.x) == gridDim.x - 1;
	__syncthreads();
	if (last) {
		volatile int *v = part;
		int s = 0;
		for (int i = 0; i < gridDim.x; i++)
			s += v[i];
		*out = s;
	}
}

// blocks wait for a later block: only time slicing gets through
K later_block(volatile int *flag, int *o)
{
	if (blockIdx.x == gridDim.x - 1) {
		*flag = 1;
	} else {
		while (!*flag)
			;
	}
	o[blockIdx.x] = blockIdx.x;
}

K ring_of_warps(volatile int *o)
{
	__shared__ volatile int turn;
	if (threadIdx.x == 0)
		turn = 0;
	__syncthreads();
	int w = threadIdx.x / 32, last = blockDim.x / 32 - 1;
	while (turn != last - w)
		__nanosleep(10);
	__syncwarp();
	if (threadIdx.x % 32 == 0) {
		o[w] = turn;
		turn = turn + 1;
	}
}

K dims(unsigned *o)
{
	unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
	unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	unsigned n = blockDim.x * blockDim.y * blockDim.z;
	o[b * n + t] = threadIdx.x | threadIdx.y << 4 | threadIdx.z << 8 | blockIdx.x << 12 | blockIdx.y << 16 | blockIdx.z << 20;
}

K vectors(const float4 *a, float4 *o, const uchar4 *b, double2 *d, short2 *s)
{
	int t = threadIdx.x;
	float4 v = a[t];
	o[t] = make_float4(v.w, v.z, v.y, v.x);
	uchar4 c = b[t];
	s[t] = make_short2(c.x - c.y, -(c.z + c.w));
	d[t] = make_double2(v.x + c.x, v.y * c.y);
}

K spin_forever(volatile int *p) { while (!*p) ; }
