// SPDX-License-Identifier: MIT
/* After an illegal address: the runtime's errors stick. */
#include "tests/fidelity/fidelity.h"

int main(void)
{
	cudaLibrary_t lib;
	cudaKernel_t k;
	void *p;

	must(cudaLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	must(cudaLibraryGetKernel(&k, lib, "wild"));
	must(cudaLaunchKernel((const void *)k, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
	/* Runtime API, cudaDeviceSynchronize: gives errors of earlier launches */
	same(cudaDeviceSynchronize(), cudaErrorIllegalAddress, "the fault is told by the wait");
	/* Runtime API, cudaGetLastError: gives it, and does not clear an error that corrupts the context */
	same(cudaGetLastError(), cudaErrorIllegalAddress, "cudaGetLastError gives it");
	same(cudaGetLastError(), cudaErrorIllegalAddress, "cudaGetLastError can't clear it");
	same(cudaPeekAtLastError(), cudaErrorIllegalAddress, "nor is it gone for cudaPeekAtLastError");
	/* Runtime API, cudaError, IllegalAddress: any further work gives the same error */
	same(cudaMalloc(&p, 16), cudaErrorIllegalAddress, "cudaMalloc gives it");
	same(cudaDeviceSynchronize(), cudaErrorIllegalAddress, "so does the next wait");
	return tap_done();
}
