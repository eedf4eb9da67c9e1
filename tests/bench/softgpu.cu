// SPDX-License-Identifier: MIT
// The kernels of bench-softgpu, as a CUDA programmer writes them.
#include <cstdint>

#define K extern "C" __global__ void

K empty() {}

K vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

K matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float as[32][32], bs[32][32];
	int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
	float sum = 0;

	for (int t = 0; t < n; t += 32) {
		as[y][x] = a[row * n + t + x];
		bs[y][x] = b[(t + y) * n + col];
		__syncthreads();
		for (int k = 0; k < 32; k++)
			sum += as[y][k] * bs[k][x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

K reduce(const float *in, float *out, int n)
{
	__shared__ float warps[32];
	float sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += in[i];
	for (int d = 16; d; d >>= 1)
		sum += __shfl_down_sync(0xffffffff, sum, d);
	if (threadIdx.x % 32 == 0)
		warps[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < 32) {
		sum = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : 0;
		for (int d = 16; d; d >>= 1)
			sum += __shfl_down_sync(0xffffffff, sum, d);
		if (threadIdx.x == 0)
			out[blockIdx.x] = sum;
	}
}

__device__ void mma16816(float *c, const uint32_t *a, const uint32_t *b)
{
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four accumulators, operands in registers: what the instruction itself can do.
K mma_registers(float *out, const uint32_t *in, int n)
{
	uint32_t a[4], b[2];
	float c[4][4] = {};

	for (int i = 0; i < 4; i++)
		a[i] = in[threadIdx.x * 6 + i];
	for (int i = 0; i < 2; i++)
		b[i] = in[threadIdx.x * 6 + 4 + i];
	for (int k = 0; k < n; k++)
		for (int i = 0; i < 4; i++)
			mma16816(c[i], a, b);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			out[(blockIdx.x * blockDim.x + threadIdx.x) * 16 + i * 4 + j] = c[i][j];
}

// A divergent branch in every iteration, and a trip count of its own for each thread.
K collatz(uint32_t *out, int n)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, v = i + 1, steps = 0;

	if (i >= (uint32_t)n)
		return;
	while (v != 1) {
		if (v & 1)
			v = 3 * v + 1;
		else
			v >>= 1;
		steps++;
	}
	out[i] = steps;
}

// About a thousand lines of PTX: what a module load costs.
K long_kernel(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float v[8];

#pragma unroll
	for (int k = 0; k < 8; k++)
		v[k] = in[i + k * n];
#pragma unroll
	for (int r = 0; r < 8; r++) {
#pragma unroll
		for (int k = 0; k < 8; k++) {
			v[k] = v[k] * v[(k + r) & 7] + in[(i + r * k) % n];
			if (v[k] > 1e6f)
				v[k] -= out[(i * k + r) & 255];
		}
		__syncthreads();
	}
#pragma unroll
	for (int k = 0; k < 8; k++)
		out[i + k * n] = v[k];
}
