/* SPDX-License-Identifier: MIT */
/* What bench-softgpu compares kernels with: plain C loops, compiled once for each set of flags. */
#include <stddef.h>

#define NAME2(n, s) n##_##s
#define NAME1(n, s) NAME2(n, s)
#define NAME(n)	    NAME1(n, FLAVOUR)

void NAME(c_vector_add)(const float *a, const float *b, float *c, size_t n);
float NAME(c_sum)(const float *a, size_t n);
void NAME(c_matmul)(const float *a, const float *b, float *c, size_t n);

void NAME(c_vector_add)(const float *a, const float *b, float *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		c[i] = a[i] + b[i];
}

float NAME(c_sum)(const float *a, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

void NAME(c_matmul)(const float *a, const float *b, float *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			float sum = 0;

			for (size_t k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			c[i * n + j] = sum;
		}
}
