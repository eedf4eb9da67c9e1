// SPDX-License-Identifier: MIT
// The other half of separate.cu: device code that nvcc does not see there.
__device__ int offset_of_half;

__device__ int from_half(int x)
{
	return 3 * x + offset_of_half;
}
