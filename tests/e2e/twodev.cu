// SPDX-License-Identifier: MIT
// Two devices in one program: copies between them, and one's stream waiting for the other's event.
#include "tests/e2e/e2e.h"

#define N (1 << 18)

// Slow on purpose, and only its last round writes the values that count.
__global__ void slow_fill(unsigned int *x, unsigned int seed, int rounds)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int r = rounds; r >= 0; r--)
		x[i] = (i ^ seed) + r;
}

__global__ void twice(unsigned int *x)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	x[i] *= 2;
}

static void there_and_check(int from, int to, unsigned int seed)
{
	unsigned int *a, *b, *got = (unsigned int *)malloc(N * 4);
	cudaStream_t sa, sb;
	cudaEvent_t filled;

	RT(cudaSetDevice(from));
	RT(cudaStreamCreateWithFlags(&sa, cudaStreamNonBlocking));
	RT(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
	RT(cudaMalloc(&a, N * 4));
	RT(cudaSetDevice(to));
	RT(cudaStreamCreateWithFlags(&sb, cudaStreamNonBlocking));
	RT(cudaMalloc(&b, N * 4));
	RT(cudaMemset(b, 0, N * 4));
	RT(cudaDeviceSynchronize());

	RT(cudaSetDevice(from));
	slow_fill<<<N / 256, 256, 0, sa>>>(a, seed, 50);
	RT(cudaGetLastError());
	RT(cudaEventRecord(filled, sa));
	RT(cudaSetDevice(to));
	RT(cudaStreamWaitEvent(sb, filled, 0));
	RT(cudaMemcpyPeerAsync(b, to, a, from, N * 4, sb));
	twice<<<N / 256, 256, 0, sb>>>(b);
	RT(cudaGetLastError());
	RT(cudaMemcpyAsync(got, b, N * 4, cudaMemcpyDeviceToHost, sb));
	RT(cudaStreamSynchronize(sb));
	for (unsigned int i = 0; i < N; i++)
		if (got[i] != (i ^ seed) * 2)
			die("from device %d to %d: x[%u] = %u, want %u", from, to, i, got[i], (i ^ seed) * 2);
	// Back again, by the call that waits.
	RT(cudaMemcpyPeer(a, from, b, to, N * 4));
	RT(cudaSetDevice(from));
	memset(got, 0, N * 4);
	RT(cudaMemcpy(got, a, N * 4, cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < N; i++)
		if (got[i] != (i ^ seed) * 2)
			die("back on device %d: x[%u] = %u, want %u", from, i, got[i], (i ^ seed) * 2);
	RT(cudaFree(a));
	RT(cudaFree(b));
	RT(cudaEventDestroy(filled));
	RT(cudaStreamDestroy(sa));
	RT(cudaStreamDestroy(sb));
	free(got);
}

int main()
{
	struct cudaDeviceProp p[2];
	int n, current;

	RT(cudaGetDeviceCount(&n));
	if (n < 2)
		die("%d device: this needs two", n);
	RT(cudaGetDeviceProperties(&p[0], 0));
	RT(cudaGetDeviceProperties(&p[1], 1));
	if (!memcmp(&p[0].uuid, &p[1].uuid, sizeof(p[0].uuid)))
		die("both devices have the same UUID");
	there_and_check(0, 1, 0x1234);
	there_and_check(1, 0, 0xabcd);
	RT(cudaGetDevice(&current));
	if (current != 1)
		die("the current device is %d, want 1", current);
	printf("twodev: peer copies and event waits both ways between %s and %s\n", p[0].name, p[1].name);
	return 0;
}
