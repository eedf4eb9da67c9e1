// SPDX-License-Identifier: MIT
// Runtime API of CUDA 12: a kernel and a variable through libcudart.so.12, whatever the program was compiled with.
#include "tests/e2e/e2e.h"

__device__ int offset;

__global__ void fill(int *out)
{
	out[threadIdx.x] = 3 * threadIdx.x + offset;
}

int main()
{
	int *dev, host[32], seven = 7, version = 0;

	RT(cudaRuntimeGetVersion(&version));
	if (version / 1000 != 12)
		die("the runtime says that it is of CUDA %d", version / 1000);
	RT(cudaMemcpyToSymbol(offset, &seven, sizeof(seven)));
	RT(cudaMalloc(&dev, sizeof(host)));
	fill<<<1, 32>>>(dev);
	RT(cudaGetLastError());
	RT(cudaMemcpy(host, dev, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		if (host[i] != 3 * i + 7)
			die("out[%d] = %d, want %d", i, host[i], 3 * i + 7);
	printf("runtime12: version %d\n", version);
	return 0;
}
