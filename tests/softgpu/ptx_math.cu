// SPDX-License-Identifier: MIT
// nvcc's math library over the PTX engine: one kernel for each function (ptx_math.c compares with libm).
#include <cuda_fp16.h>

#define F1(T, name) extern "C" __global__ void T##_##name(const T *x, const T *y, T *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = name(x[i]); }
#define F2(T, name) extern "C" __global__ void T##_##name(const T *x, const T *y, T *o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = name(x[i], y[i]); }
#include "tests/softgpu/ptx_math.def"

extern "C" __global__ void half_exp(const float *x, const float *y, float *o, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		o[i] = __half2float(hexp(__float2half(x[i])) + __hmul(__float2half(y[i]), __float2half(2.f)));
}
