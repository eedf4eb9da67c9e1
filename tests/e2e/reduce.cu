// SPDX-License-Identifier: MIT
// Runtime API: sum by warp shuffles and one atomic a block, and a constant table, checked against the CPU.
#include "tests/e2e/e2e.h"

__constant__ int weight[32];

__global__ void reduce(const int *x, int n, unsigned long long *out)
{
	__shared__ int warps[32];
	int sum = 0, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += x[i] * weight[i & 31];
	for (int d = 16; d; d >>= 1)
		sum += __shfl_down_sync(~0u, sum, d);
	if (!lane)
		warps[warp] = sum;
	__syncthreads();
	if (!warp) {
		sum = lane < blockDim.x / 32 ? warps[lane] : 0;
		for (int d = 16; d; d >>= 1)
			sum += __shfl_xor_sync(~0u, sum, d);
		if (!lane)
			atomicAdd(out, (unsigned long long)sum);
	}
}

int main()
{
	const int n = (1 << 20) + 12345;
	int *x = (int *)malloc(n * sizeof(int)), table[32], *dx;
	unsigned long long want = 0, got = 0, *dout;
	uint32_t seed = 4;
	cudaStream_t s;
	cudaEvent_t done;

	for (int i = 0; i < 32; i++)
		table[i] = i + 1;
	for (int i = 0; i < n; i++) {
		x[i] = e2e_next(&seed) % 100;
		want += (unsigned long long)x[i] * table[i & 31];
	}
	RT(cudaStreamCreate(&s));
	RT(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	RT(cudaMemcpyToSymbol(weight, table, sizeof(table)));
	RT(cudaMalloc(&dx, n * sizeof(int)));
	RT(cudaMalloc(&dout, sizeof(*dout)));
	RT(cudaMemcpyAsync(dx, x, n * sizeof(int), cudaMemcpyHostToDevice, s));
	RT(cudaMemsetAsync(dout, 0, sizeof(*dout), s));
	reduce<<<64, 256, 0, s>>>(dx, n, dout);
	RT(cudaGetLastError());
	RT(cudaMemcpyAsync(&got, dout, sizeof(got), cudaMemcpyDeviceToHost, s));
	RT(cudaEventRecord(done, s));
	RT(cudaEventSynchronize(done));
	if (got != want)
		die("sum = %llu, want %llu", got, want);
	RT(cudaFree(dx));
	RT(cudaFree(dout));
	RT(cudaEventDestroy(done));
	RT(cudaStreamDestroy(s));
	printf("reduce: sum of %d right: %llu\n", n, got);
	return 0;
}
