// SPDX-License-Identifier: MIT
/* After an illegal address: the driver's errors stick. The last probe of a process, for the process is lost. */
#include "tests/fidelity/fidelity.h"

int main(void)
{
	CUmodule m;
	CUfunction f;
	CUdeviceptr p, q;
	CUstream s;
	int v;

	primary();
	must(cuMemAlloc(&p, 16));
	must(cuModuleLoadData(&m, kernels_ptx));
	must(cuModuleGetFunction(&f, m, "wild"));
	must(cuStreamCreate(&s, 0));
	/* Driver API, cuLaunchKernel: a launch is asynchronous, its fault comes later */
	cu(CUDA_SUCCESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	/* Driver API, CUresult, ILLEGAL_ADDRESS: told by what waits */
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
	/* Driver API, CUresult, ILLEGAL_ADDRESS: any further work gives the same error */
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&q, 16));
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&v, p, 4));
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
	cu(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(s));
	return tap_done();
}
