// SPDX-License-Identifier: MIT
// Many threads at once, each with work and memory of its own, on streams of its own and on the per-thread default stream.
#include <pthread.h>
#include "tests/e2e/e2e.h"

#define N      4096
#define ROUNDS 25

__global__ void mix(unsigned int *x, unsigned int k)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	x[i] = x[i] * 5 + k;
}

static void *worker(void *arg)
{
	unsigned int me = (unsigned int)(size_t)arg, *x, *h = (unsigned int *)malloc(N * 4);
#ifdef DEFAULT_STREAM_ONLY
	cudaStream_t s = 0; // compiled with --default-stream per-thread
#else
	cudaStream_t s = cudaStreamPerThread;
#endif

	if (me & 1)
		RT(cudaStreamCreate(&s));
	for (unsigned int r = 0; r < ROUNDS; r++) {
		for (unsigned int i = 0; i < N; i++)
			h[i] = i + me;
		RT(cudaMalloc(&x, N * 4));
		RT(cudaMemcpyAsync(x, h, N * 4, cudaMemcpyHostToDevice, s));
		mix<<<N / 128, 128, 0, s>>>(x, me);
		mix<<<N / 128, 128, 0, s>>>(x, r);
		RT(cudaGetLastError());
		RT(cudaMemcpyAsync(h, x, N * 4, cudaMemcpyDeviceToHost, s));
		RT(cudaStreamSynchronize(s));
		for (unsigned int i = 0; i < N; i++)
			if (h[i] != ((i + me) * 5 + me) * 5 + r)
				die("thread %u round %u: x[%u] = %u, want %u", me, r, i, h[i], ((i + me) * 5 + me) * 5 + r);
		RT(cudaFree(x));
	}
	if (me & 1)
		RT(cudaStreamDestroy(s));
	free(h);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t n = e2e_arg(argc, argv, 1, 16);
	pthread_t *t = (pthread_t *)malloc(n * sizeof(*t));

	for (size_t i = 0; i < n; i++)
		pthread_create(&t[i], NULL, worker, (void *)i);
	for (size_t i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("threads: %zu threads, %d rounds each, right\n", n, ROUNDS);
	return 0;
}
