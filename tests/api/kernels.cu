// SPDX-License-Identifier: MIT
// Kernels for the API tests: each does one thing that can be seen from outside.
#include <stdio.h>

struct odd {
	char c;
	double d;
	short s[3];
};

__device__ int counter = 7;
__constant__ int table[4] = {1, 2, 3, 4};

extern "C" __global__ void fill(int *p, int n, int v)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = v;
}

extern "C" __global__ void times3(unsigned int *p, unsigned int k)
{
	*p = *p * 3 + k;
}

extern "C" __global__ void params(double *out, char a, double b, struct odd o, int c)
{
	out[0] = a;
	out[1] = b;
	out[2] = o.c + o.d + o.s[2];
	out[3] = c + table[3];
	out[4] = atomicAdd(&counter, 1);
}

extern "C" __global__ void shared(int *p)
{
	extern __shared__ int s[];

	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	p[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) small(int *p)
{
	p[threadIdx.x] = 1;
}

extern "C" __global__ void wild(int *p)
{
	p[1ll << 40] = 1;
}

extern "C" __global__ void say(int n)
{
	printf("kernel says %d\n", n);
}

extern "C" __global__ void wait_for(volatile int *flag, int *out)
{
	while (!*flag)
		;
	*out = 5;
}

// The host counts up in *ask, the kernel answers in *answer.
extern "C" __global__ void answer(volatile int *ask, volatile int *answer, int rounds)
{
	for (int i = 1; i <= rounds; i++) {
		while (*ask < i)
			;
		*answer = 10 * i;
		__threadfence_system();
	}
}

extern "C" __global__ void add(int *p, long long n, int v)
{
	for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
		p[i] += v;
}
