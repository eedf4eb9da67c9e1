// SPDX-License-Identifier: MIT
// One half of what tests/api/link.c links: a function and a variable that the other half uses, and names that both have.
extern "C" {
__device__ int shared_value = 40;
static __device__ int own = 1;

__device__ int half_function(int x)
{
	return x + own;
}
}
