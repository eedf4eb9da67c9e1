// SPDX-License-Identifier: MIT
// Runtime API: 512 × 512 matrix product in 32 × 32 tiles of shared memory, checked against the CPU.
#include "tests/e2e/e2e.h"

#define N    512
#define TILE 32

__global__ void matmul(const float *a, const float *b, float *c)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int x = threadIdx.x, y = threadIdx.y;
	int col = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
	float sum = 0;

	for (int t = 0; t < N; t += TILE) {
		ta[y][x] = a[row * N + t + x];
		tb[y][x] = b[(t + y) * N + col];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += ta[y][k] * tb[k][x];
		__syncthreads();
	}
	c[row * N + col] = sum;
}

int main()
{
	const size_t bytes = N * N * sizeof(float);
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes),
	      *want = (float *)calloc(1, bytes);
	float *da, *db, *dc;
	uint32_t seed = 3;

	// Products below 64 and 512 of them: every partial sum is a whole number that a float holds.
	for (int i = 0; i < N * N; i++) {
		a[i] = e2e_next(&seed) % 8;
		b[i] = e2e_next(&seed) % 8;
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				want[i * N + j] += a[i * N + k] * b[k * N + j];
	RT(cudaMalloc(&da, bytes));
	RT(cudaMalloc(&db, bytes));
	RT(cudaMalloc(&dc, bytes));
	RT(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	RT(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	matmul<<<dim3(N / TILE, N / TILE), dim3(TILE, TILE)>>>(da, db, dc);
	RT(cudaGetLastError());
	RT(cudaDeviceSynchronize());
	RT(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N * N; i++)
		if (c[i] != want[i])
			die("c[%d][%d] = %g, want %g", i / N, i % N, c[i], want[i]);
	RT(cudaFree(da));
	RT(cudaFree(db));
	RT(cudaFree(dc));
	printf("matmul: %d × %d products right\n", N, N);
	return 0;
}
