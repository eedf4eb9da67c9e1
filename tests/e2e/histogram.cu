// SPDX-License-Identifier: MIT
// Runtime API: 256-bin histogram with atomics in shared and global memory, from pinned host memory, checked against the CPU.
#include "tests/e2e/e2e.h"

#define BINS 256

__global__ void histogram(const unsigned char *x, int n, unsigned int *bins)
{
	__shared__ unsigned int mine[BINS];

	for (int i = threadIdx.x; i < BINS; i += blockDim.x)
		mine[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&mine[x[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < BINS; i += blockDim.x)
		atomicAdd(&bins[i], mine[i]);
}

int main()
{
	const int n = 3 << 20;
	unsigned char *x, *dx;
	unsigned int want[BINS] = {0}, got[BINS], *dbins;
	uint32_t seed = 5;

	RT(cudaMallocHost(&x, n));
	for (int i = 0; i < n; i++) {
		x[i] = (e2e_next(&seed) & 0xff) * (e2e_next(&seed) & 0xff) >> 8; // crooked, so that no two bins look alike
		want[x[i]]++;
	}
	RT(cudaMalloc(&dx, n));
	RT(cudaMalloc(&dbins, sizeof(got)));
	RT(cudaMemset(dbins, 0, sizeof(got)));
	RT(cudaMemcpy(dx, x, n, cudaMemcpyHostToDevice));
	histogram<<<32, 128>>>(dx, n, dbins);
	RT(cudaGetLastError());
	RT(cudaMemcpy(got, dbins, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BINS; i++)
		if (got[i] != want[i])
			die("bin %d = %u, want %u", i, got[i], want[i]);
	RT(cudaFree(dx));
	RT(cudaFree(dbins));
	RT(cudaFreeHost(x));
	printf("histogram: %d values in %d bins right\n", n, BINS);
	return 0;
}
