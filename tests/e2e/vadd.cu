// SPDX-License-Identifier: MIT
// Runtime API: vectorAdd of 4 Mi floats, checked against the CPU. Usage: vadd [ROUNDS]; with 0 it goes on until its standard input ends.
#include "tests/e2e/e2e.h"

__global__ void vadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main(int argc, char **argv)
{
	const int n = 4 << 20;
	const size_t bytes = n * sizeof(float);
	long rounds = e2e_arg(argc, argv, 1, 1), r;
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
	float *da, *db, *dc;
	uint32_t seed = 2;

	for (int i = 0; i < n; i++) {
		a[i] = e2e_next(&seed) % 4096;
		b[i] = e2e_next(&seed) % 4096;
	}
	RT(cudaMalloc(&da, bytes));
	RT(cudaMalloc(&db, bytes));
	RT(cudaMalloc(&dc, bytes));
	RT(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	RT(cudaMemcpy(db, b, bytes, cudaMemcpyDefault));
	for (r = 0; rounds ? r < rounds : !e2e_told_to_end(); r++) {
		RT(cudaMemset(dc, 0xff, bytes));
		vadd<<<(n + 255) / 256, 256>>>(da, db, dc, n);
		RT(cudaGetLastError());
		RT(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++)
			if (c[i] != a[i] + b[i])
				die("round %ld: c[%d] = %g, want %g", r, i, c[i], a[i] + b[i]);
	}
	RT(cudaFree(da));
	RT(cudaFree(db));
	RT(cudaFree(dc));
	printf("vadd: %d sums right, %ld time%s\n", n, r, r == 1 ? "" : "s");
	return 0;
}
