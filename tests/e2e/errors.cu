// SPDX-License-Identifier: MIT
// The runtime's errors, each at the call where CUDA gives it. Usage: errors CASE
#include "tests/e2e/e2e.h"

__global__ void fill(int *p, int v)
{
	p[threadIdx.x] = v;
}

__global__ void wild(int *p)
{
	p[(1ull << 40) + threadIdx.x] = 1;
}

#define EXPECT(call, want)                                                                                                       \
	do {                                                                                                                     \
		cudaError_t e_ = (call);                                                                                         \
		if (e_ != want)                                                                                                  \
			die("%s: %s, want %s", #call, cudaGetErrorName(e_), cudaGetErrorName(want));                             \
	} while (0)

// The device still works: an error of one call is not the next one's.
static void works(int *p)
{
	int got[32];

	fill<<<1, 32>>>(p, 77);
	EXPECT(cudaGetLastError(), cudaSuccess);
	EXPECT(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost), cudaSuccess);
	for (int i = 0; i < 32; i++)
		if (got[i] != 77)
			die("after the error: p[%d] = %d, want 77", i, got[i]);
}

static void dimensions(int *p)
{
	fill<<<1, 2048>>>(p, 1);
	EXPECT(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
	EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
	EXPECT(cudaGetLastError(), cudaSuccess);
	fill<<<0, 32>>>(p, 1);
	EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
	fill<<<dim3(1, 1, 1 << 20), 32>>>(p, 1);
	EXPECT(cudaGetLastError(), cudaErrorInvalidConfiguration);
	fill<<<1, 32, 1 << 30>>>(p, 1);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	works(p);
}

static void function(int *p)
{
	void *args[] = {NULL};

	EXPECT(cudaLaunchKernel((const void *)function, dim3(1), dim3(1), args, 0, 0), cudaErrorInvalidDeviceFunction);
	EXPECT(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
	works(p);
}

static void memory(int *p)
{
	void *q;

	EXPECT(cudaMalloc(&q, (size_t)1 << 50), cudaErrorMemoryAllocation);
	EXPECT(cudaGetLastError(), cudaErrorMemoryAllocation);
	EXPECT(cudaFree((char *)p + 4), cudaErrorInvalidValue);
	EXPECT(cudaMemcpy(p, p, 4, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
	EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
	works(p);
}

static void wild_access(int *p)
{
	int got;

	wild<<<1, 32>>>(p);
	EXPECT(cudaGetLastError(), cudaSuccess); // the launch itself is fine
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	// From here on the context is dead, whatever is asked.
	EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
	EXPECT(cudaMemcpy(&got, p, 4, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
	EXPECT(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
	EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	int *p;

	EXPECT(cudaMalloc(&p, 4096), cudaSuccess);
	if (!strcmp(which, "dimensions"))
		dimensions(p);
	else if (!strcmp(which, "function"))
		function(p);
	else if (!strcmp(which, "memory"))
		memory(p);
	else if (!strcmp(which, "wild"))
		wild_access(p);
	else
		die("no case '%s'", which);
	printf("errors: %s as CUDA has it\n", which);
	return 0;
}
