// SPDX-License-Identifier: MIT
// Two threads hand work on one stream to each other, a thousand times: the device must see it in that order.
// Usage: handoff [TURNS]; with 0 turns it goes on until its standard input ends.
#include <pthread.h>
#include "tests/e2e/e2e.h"

#define N 64

__global__ void step(unsigned int *x, const unsigned int *k)
{
	x[threadIdx.x] = x[threadIdx.x] * 3 + *k;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static unsigned int turn, turns; // under lock: turn t belongs to thread t & 1, and there are none from turns on
static bool until_told;

static unsigned int *x, *k;
static cudaStream_t s;

static unsigned int value(unsigned int t)
{
	return t * 2654435761u >> 7;
}

// Waits for its turn; false when there are no more.
static bool my_turn(unsigned int t)
{
	bool mine;

	pthread_mutex_lock(&lock);
	while (turn != t && t < turns)
		pthread_cond_wait(&moved, &lock);
	if (until_told && t < turns && e2e_told_to_end()) {
		turns = t;
		pthread_cond_broadcast(&moved);
	}
	mine = t < turns;
	pthread_mutex_unlock(&lock);
	return mine;
}

static void *player(void *arg)
{
	for (unsigned int t = (unsigned int)(size_t)arg; my_turn(t); t += 2) {
		unsigned int v = value(t);

		// The copy and the launch must both follow the other thread's launch, and nothing waits for the device.
		RT(cudaMemcpyAsync(k, &v, sizeof(v), cudaMemcpyHostToDevice, s));
		step<<<1, N, 0, s>>>(x, k);
		RT(cudaGetLastError());
		pthread_mutex_lock(&lock);
		turn++;
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int got[N], want[N];
	pthread_t t[2];

	turns = e2e_arg(argc, argv, 1, 1000);
	until_told = !turns;
	if (until_told)
		turns = ~0u;
	for (int i = 0; i < N; i++)
		want[i] = i;
	RT(cudaStreamCreate(&s));
	RT(cudaMalloc(&x, sizeof(want)));
	RT(cudaMalloc(&k, sizeof(*k)));
	RT(cudaMemcpy(x, want, sizeof(want), cudaMemcpyHostToDevice));
	for (size_t i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, player, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	RT(cudaStreamSynchronize(s));
	RT(cudaMemcpy(got, x, sizeof(got), cudaMemcpyDeviceToHost));
	for (unsigned int n = 0; n < turns; n++)
		for (int i = 0; i < N; i++)
			want[i] = want[i] * 3 + value(n);
	for (int i = 0; i < N; i++)
		if (got[i] != want[i])
			die("x[%d] = %u, want %u: the turns were not taken in order", i, got[i], want[i]);
	printf("handoff: %u turns in order\n", turns);
	return 0;
}
