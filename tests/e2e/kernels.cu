// SPDX-License-Identifier: MIT
// Kernels for the driver-API programs, which load them as PTX and as a fat binary.
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

// x[i] = x[i] * 3 + k: not commutative, so it shows the order of its launches.
extern "C" __global__ void step(unsigned int *x, unsigned int k, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] = x[i] * 3 + k;
}

// Adds up whole words: sum over i of x[i] * (i + 1), so that misplaced bytes show too.
extern "C" __global__ void checksum(const unsigned int *x, unsigned long long n, unsigned long long *out)
{
	unsigned long long sum = 0, stride = (unsigned long long)gridDim.x * blockDim.x;

	for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n; i += stride)
		sum += x[i] * (i + 1);
	atomicAdd(out, sum);
}

extern "C" __global__ void wild(unsigned int *p)
{
	p[1ull << 40] = threadIdx.x;
}
