/* SPDX-License-Identifier: MIT */
/* A kernel that never ends, and a program that waits for it for ever. */
#include "tests/e2e/e2e.h"

__global__ void spin(volatile int *until)
{
	while (!*until)
		;
}

int main(void)
{
	int *until;

	RT(cudaMalloc(&until, 64 << 20));
	RT(cudaMemset(until, 0, sizeof(*until)));
	RT(cudaDeviceSynchronize());
	spin<<<1, 32>>>(until);
	RT(cudaGetLastError());
	puts("spins");
	fflush(stdout);
	RT(cudaDeviceSynchronize());
	puts("it ended?");
	return 1;
}
