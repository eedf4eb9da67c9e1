// SPDX-License-Identifier: MIT
// cuRAND's generators in a kernel: Philox by its definition, XORWOW and MRG32k3a by their recurrences from the state that the kernel made.
#include "tests/e2e/e2e.h"

#include <curand_kernel.h>
#include <string.h>

#define DRAWS 64

template <typename S> __global__ void draw(S *state, unsigned int *out, float *uniform)
{
	int t = threadIdx.x;
	S s;

	curand_init(1234, t, 5, &s);
	state[t] = s;
	for (int k = 0; k < DRAWS; k++)
		out[t * DRAWS + k] = curand(&s);
	uniform[t] = curand_uniform(&s);
}

// Salmon and others, "Parallel random numbers: as easy as 1, 2, 3": ten rounds of two products.
static void philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
	for (int r = 0; r < 10; r++) {
		uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
		uint32_t n[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1, (uint32_t)a};

		memcpy(c, n, sizeof(n));
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

static uint32_t next_philox(int t, int draw)
{
	uint64_t at = draw + 5;
	uint32_t c[4] = {(uint32_t)(at / 4), 0, (uint32_t)t, 0};

	philox(c, 1234, 0);
	return c[at % 4];
}

// Marsaglia, "Xorshift RNGs": five words of xorshift and a Weyl sequence.
static uint32_t next_xorwow(curandStateXORWOW_t *s)
{
	uint32_t t = s->v[0] ^ s->v[0] >> 2;

	memmove(s->v, s->v + 1, 16);
	s->v[4] = (s->v[4] ^ s->v[4] << 4) ^ (t ^ t << 1);
	s->d += 362437;
	return s->v[4] + s->d;
}

// L'Ecuyer's MRG32k3a; the first draw lies in (0, m1].
static double next_mrg(double s1[3], double s2[3])
{
	const long long m1 = 4294967087, m2 = 4294944443;
	long long p1 = (1403580 * (long long)s1[1] - 810728 * (long long)s1[0]) % m1;
	long long p2 = (527612 * (long long)s2[2] - 1370589 * (long long)s2[0]) % m2;

	p1 += p1 < 0 ? m1 : 0;
	p2 += p2 < 0 ? m2 : 0;
	s1[0] = s1[1], s1[1] = s1[2], s1[2] = (double)p1;
	s2[0] = s2[1], s2[1] = s2[2], s2[2] = (double)p2;
	return (double)(p1 > p2 ? p1 - p2 : p1 - p2 + m1);
}

static unsigned int out[32][DRAWS];

template <typename S> static void run(S *host)
{
	unsigned int *o;
	float *u, uniform[32];
	S *s;

	RT(cudaMalloc(&s, 32 * sizeof(S)));
	RT(cudaMalloc(&o, sizeof(out)));
	RT(cudaMalloc(&u, sizeof(uniform)));
	draw<<<1, 32>>>(s, o, u);
	RT(cudaMemcpy(host, s, 32 * sizeof(S), cudaMemcpyDefault));
	RT(cudaMemcpy(out, o, sizeof(out), cudaMemcpyDefault));
	RT(cudaMemcpy(uniform, u, sizeof(uniform), cudaMemcpyDefault));
	for (float x : uniform)
		if (!(x > 0 && x <= 1))
			die("a uniform number is %f", x);
}

int main()
{
	static curandStatePhilox4_32_10_t ph[32];
	static curandStateXORWOW_t xw[32];
	static curandStateMRG32k3a_t mrg[32];

	run(ph);
	for (int t = 0; t < 32; t++)
		for (int k = 0; k < DRAWS; k++)
			if (out[t][k] != next_philox(t, k))
				die("Philox: thread %d draw %d is %08x, want %08x", t, k, out[t][k], next_philox(t, k));
	run(xw);
	for (int t = 0; t < 32; t++)
		for (int k = 0; k < DRAWS; k++)
			if (out[t][k] != next_xorwow(&xw[t]))
				die("XORWOW: thread %d draw %d", t, k);
	run(mrg);
	for (int t = 0; t < 32; t++) {
		double s1[3], s2[3];

		for (int k = 0; k < 3; k++)
			s1[k] = mrg[t].s1[k], s2[k] = mrg[t].s2[k];
		for (int k = 0; k < DRAWS; k++) {
			double x = next_mrg(s1, s2);

			// cuRAND stretches (0, m1] over 32 bits
			if ((unsigned int)(x * 1.000000048662) != out[t][k])
				die("MRG32k3a: thread %d draw %d is %u, of %.0f", t, k, out[t][k], x);
		}
	}
	puts("rand: ok");
	return 0;
}
