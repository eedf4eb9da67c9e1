// SPDX-License-Identifier: MIT
// Work that shows each call that is lost, run twice or out of order: three threads, a chain of operations each, compared bit by bit.
// Usage: chain [ROUNDS]; with 0 rounds it goes on until its standard input ends.
#include <pthread.h>
#include "tests/e2e/e2e.h"

#define N	96
#define THREADS 3
#define BULK	(120 * 1024) // words

__global__ void step(unsigned int *x, const unsigned int *k, unsigned int *ran)
{
	x[threadIdx.x] = x[threadIdx.x] * 3 + *k;
	if (!threadIdx.x)
		++*ran;
}

__global__ void fold(unsigned int *x, const unsigned int *bulk, unsigned int words, unsigned int *ran)
{
	unsigned int sum = 0;

	for (unsigned int i = threadIdx.x; i < words; i += blockDim.x * 61)
		sum = sum * 5 + bulk[i];
	x[threadIdx.x] ^= sum;
	if (!threadIdx.x)
		++*ran;
}

struct chain {
	unsigned int id, rounds, issued, mirror[N];
	unsigned int *x, *k, *ran, *bulk, *host, *pinned;
	cudaStream_t s;
};

static unsigned int rounds_wanted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool over;

static bool goes_on(unsigned int round)
{
	bool on;

	if (rounds_wanted)
		return round < rounds_wanted;
	pthread_mutex_lock(&lock);
	over = over || e2e_told_to_end();
	on = !over;
	pthread_mutex_unlock(&lock);
	return on;
}

static void compare(struct chain *c, const unsigned int *got, const char *what)
{
	for (int i = 0; i < N; i++)
		if (got[i] != c->mirror[i])
			die("thread %u, round %u, %s: x[%d] = %u, want %u", c->id, c->rounds, what, i, got[i], c->mirror[i]);
}

static void one_step(struct chain *c, uint32_t *seed)
{
	unsigned int v = e2e_next(seed);

	RT(cudaMemcpyAsync(c->k, &v, sizeof(v), cudaMemcpyHostToDevice, c->s));
	step<<<1, N, 0, c->s>>>(c->x, c->k, c->ran);
	RT(cudaGetLastError());
	c->issued++;
	for (int i = 0; i < N; i++)
		c->mirror[i] = c->mirror[i] * 3 + v;
}

// An upload from pageable memory that is larger than a frame, and what it does to the chain.
static void one_fold(struct chain *c, uint32_t *seed)
{
	unsigned int words = 4096 + e2e_next(seed) % (BULK - 4096);

	for (unsigned int i = 0; i < words; i += 61)
		c->host[i] = e2e_next(seed);
	RT(cudaMemcpyAsync(c->bulk, c->host, words * 4, cudaMemcpyHostToDevice, c->s));
	fold<<<1, N, 0, c->s>>>(c->x, c->bulk, words, c->ran);
	RT(cudaGetLastError());
	c->issued++;
	for (unsigned int t = 0; t < N; t++) {
		unsigned int sum = 0;

		for (unsigned int i = t; i < words; i += N * 61)
			sum = sum * 5 + c->host[i];
		c->mirror[t] ^= sum;
	}
}

static void *run(void *arg)
{
	struct chain *c = (struct chain *)arg;
	uint32_t seed = c->id * 7919 + 1;
	unsigned int got[N], ran;

	for (int i = 0; i < N; i++)
		c->mirror[i] = c->id + i;
	RT(cudaStreamCreate(&c->s));
	RT(cudaMalloc(&c->x, sizeof(got)));
	RT(cudaMalloc(&c->k, 4));
	RT(cudaMalloc(&c->ran, 4));
	RT(cudaMalloc(&c->bulk, BULK * 4));
	RT(cudaMallocHost(&c->pinned, BULK * 4));
	c->host = (unsigned int *)calloc(BULK, 4);
	RT(cudaMemset(c->ran, 0, 4));
	RT(cudaMemcpy(c->x, c->mirror, sizeof(got), cudaMemcpyHostToDevice));
	for (; goes_on(c->rounds); c->rounds++) {
		if (c->rounds == 1 && !c->id) {
			printf("chain: works\n");
			fflush(stdout);
		}
		for (unsigned int n = 1 + e2e_next(&seed) % 12; n; n--)
			one_step(c, &seed);
		if (c->rounds % 7 == c->id)
			one_fold(c, &seed);
		if (c->rounds % 5 == 3) {
			// Down into page-locked memory, behind work that still runs.
			RT(cudaMemcpyAsync(c->pinned, c->x, sizeof(got), cudaMemcpyDeviceToHost, c->s));
			RT(cudaMemcpyAsync(c->pinned + N, c->bulk, 100000, cudaMemcpyDeviceToHost, c->s));
			RT(cudaStreamSynchronize(c->s));
			compare(c, c->pinned, "pinned");
		} else {
			RT(cudaMemcpyAsync(got, c->x, sizeof(got), cudaMemcpyDeviceToHost, c->s));
			RT(cudaStreamSynchronize(c->s));
			compare(c, got, "pageable");
		}
	}
	RT(cudaMemcpy(&ran, c->ran, 4, cudaMemcpyDeviceToHost));
	if (ran != c->issued)
		die("thread %u: %u kernels ran, %u were issued", c->id, ran, c->issued);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct chain c[THREADS];
	pthread_t t[THREADS];
	unsigned int issued = 0, rounds = 0;

	rounds_wanted = e2e_arg(argc, argv, 1, 50);
	for (unsigned int i = 0; i < THREADS; i++) {
		c[i].id = i;
		pthread_create(&t[i], NULL, run, &c[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		issued += c[i].issued;
		rounds += c[i].rounds;
	}
	printf("chain: %u kernels issued, each ran once and in its place; %u rounds right\n", issued, rounds);
	return 0;
}
