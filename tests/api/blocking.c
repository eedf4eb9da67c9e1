// SPDX-License-Identifier: MIT
/* CUDA_LAUNCH_BLOCKING=1, with which people look for the launch that fails: each launch is over when it returns. */
#include <stdlib.h>
#include "tests/api/serve.h"

static CUmodule m;

static CUfunction kernel(const char *name)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, m, name));
	return f;
}

int main(void)
{
	CUfunction fill, wild;
	int *shown, n = 4, v = 77;
	CUgraphExec exec;
	CUdeviceptr d;
	CUgraph g;
	CUstream s;

	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	serve(NULL, 1);
	primary();
	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	fill = kernel("fill");
	wild = kernel("wild");
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemHostAlloc((void **)&shown, 64, CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&d, shown, 0));
	shown[3] = 0;
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, s, (void *[]){&d, &n, &v}, NULL), CUDA_SUCCESS);
	is_int(shown[3], 77, "a launch is over when it returns");
	v = 78;
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, s, (void *[]){&d, &n, &v}, NULL), CUDA_SUCCESS);
	must(cuStreamEndCapture(s, &g));
	is_int(shown[3], 77, "one that is captured is not run");
	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	is_cu(cuGraphLaunch(exec, s), CUDA_SUCCESS);
	is_int(shown[3], 78, "a graph's launch is over, too");
	is_cu(cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&d}, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuLaunchKernel(fill, 1, 1, 1, 32, 1, 1, 0, s, (void *[]){&d, &n, &v}, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	return tap_done();
}
