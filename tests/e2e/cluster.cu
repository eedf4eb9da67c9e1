// SPDX-License-Identifier: MIT
// Clusters: a reduction over distributed shared memory, launched in each of the ways that CUDA has, and what is refused.
#include <cooperative_groups.h>
#include "tests/e2e/e2e.h"

namespace cg = cooperative_groups;

__device__ void reduce(int *out, const int *in)
{
	__shared__ int sum;
	cg::cluster_group c = cg::this_cluster();

	if (threadIdx.x == 0)
		sum = 0;
	c.sync();
	// Everything goes to the cluster's first block.
	atomicAdd(c.map_shared_rank(&sum, 0), in[blockIdx.x * blockDim.x + threadIdx.x]);
	c.sync();
	if (threadIdx.x == 0)
		out[blockIdx.x] = *c.map_shared_rank(&sum, 0);
	c.sync();
}

__global__ void sums(int *out, const int *in)
{
	reduce(out, in);
}

__global__ void __cluster_dims__(2, 1, 1) pairs(int *out, const int *in)
{
	reduce(out, in);
}

static int check(int *dout, const int *in, int blocks, int threads, int size)
{
	int out[64], bad = 0;

	RT(cudaMemcpy(out, dout, blocks * sizeof(int), cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++) {
		int want = 0;

		for (int t = 0; t < size * threads; t++)
			want += in[b / size * size * threads + t];
		bad += out[b] != want;
	}
	RT(cudaMemset(dout, 0, blocks * sizeof(int)));
	return bad;
}

int main(void)
{
	const int blocks = 16, threads = 64;
	int in[blocks * threads], *din, *dout, n = -1, most = -1, bad = 0;
	cudaLaunchAttribute attr = {};
	cudaLaunchConfig_t cfg = {};

	for (int i = 0; i < blocks * threads; i++)
		in[i] = i * 7 % 101;
	RT(cudaMalloc(&din, sizeof(in)));
	RT(cudaMalloc(&dout, blocks * sizeof(int)));
	RT(cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice));
	attr.id = cudaLaunchAttributeClusterDimension;
	attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
	cfg.gridDim = blocks;
	cfg.blockDim = threads;
	cfg.attrs = &attr;
	cfg.numAttrs = 1;

	for (unsigned size = 1; size <= 8; size *= 2) {
		attr.val.clusterDim.x = size;
		RT(cudaLaunchKernelEx(&cfg, sums, dout, (const int *)din));
		bad += check(dout, in, blocks, threads, (int)size);
	}
	pairs<<<blocks, threads>>>(dout, din);
	RT(cudaGetLastError());
	bad += check(dout, in, blocks, threads, 2);

	attr.val.clusterDim.x = 4;
	RT(cudaOccupancyMaxActiveClusters(&n, sums, &cfg));
	RT(cudaOccupancyMaxPotentialClusterSize(&most, sums, &cfg));
	bad += n < 1 || most != 8;
	RT(cudaOccupancyMaxPotentialClusterSize(&most, pairs, &cfg));
	bad += most != 2;

	attr.val.clusterDim.x = 16; // more than any device may be asked for without the kernel's word
	bad += cudaLaunchKernelEx(&cfg, sums, dout, (const int *)din) != cudaErrorInvalidClusterSize;
	RT(cudaFuncSetAttribute(sums, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	RT(cudaLaunchKernelEx(&cfg, sums, dout, (const int *)din));
	bad += check(dout, in, blocks, threads, 16);
	attr.val.clusterDim.x = 4;
	bad += cudaLaunchKernelEx(&cfg, pairs, dout, (const int *)din) != cudaErrorInvalidClusterSize;
	cfg.gridDim = 6;
	bad += cudaLaunchKernelEx(&cfg, sums, dout, (const int *)din) != cudaErrorInvalidClusterSize;
	bad += cudaFuncSetAttribute(pairs, cudaFuncAttributeRequiredClusterWidth, 4) != cudaErrorNotPermitted;
	(void)cudaGetLastError();
	RT(cudaDeviceSynchronize());
	printf("%d wrong\n", bad);
	return bad != 0;
}
