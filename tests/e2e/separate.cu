// SPDX-License-Identifier: MIT
// Runtime API: device code in two files, compiled to PTX and linked when the program starts.
#include "tests/e2e/e2e.h"

extern __device__ int offset_of_half;
extern __device__ int from_half(int x);

__global__ void both(int *out)
{
	out[threadIdx.x] = from_half(threadIdx.x);
}

int main()
{
	int *dev, host[32], seven = 7;

	RT(cudaMemcpyToSymbol(offset_of_half, &seven, sizeof(seven)));
	RT(cudaMalloc(&dev, sizeof(host)));
	both<<<1, 32>>>(dev);
	RT(cudaGetLastError());
	RT(cudaMemcpy(host, dev, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		if (host[i] != 3 * i + 7)
			die("out[%d] = %d, want %d", i, host[i], 3 * i + 7);
	printf("separate: the two halves were linked\n");
	return 0;
}
