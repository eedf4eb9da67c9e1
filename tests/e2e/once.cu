// SPDX-License-Identifier: MIT
// Rounds of operations that come out wrong if any of them is done twice, or not, or in another order. What is copied back lands in
// pinned memory that is used again at once: a copy that came a second time would be seen there.
// Usage: once [OPERATIONS]; a round for each line of standard input, until that ends. "round N: M operations in T ms" is told of each.
#include <time.h>
#include "tests/e2e/e2e.h"

#define N 1024

__global__ void add(uint32_t *x, uint32_t k)
{
	x[threadIdx.x] += k;
}

__global__ void scale(uint32_t *x, uint32_t k)
{
	x[threadIdx.x] = x[threadIdx.x] * 3 + k;
}

__global__ void add_from(uint32_t *x, const uint32_t *y)
{
	x[threadIdx.x] += y[threadIdx.x];
}

__global__ void count(uint32_t *n)
{
	atomicAdd(n, 1);
}

static uint32_t *x, *y, *n;                // on the device
static uint32_t *up, *down;                // pinned
static uint32_t want[N], launches, called; // what x has to be; counts; `called` by the host function
static cudaStream_t s;
static cudaEvent_t uploaded;
static uint32_t seed = 1;

static void host_function(void *arg)
{
	++*(uint32_t *)arg;
}

static void compare(const uint32_t *got, int op)
{
	for (int i = 0; i < N; i++)
		if (got[i] != want[i])
			die("operation %d: x[%d] is %u, not %u", op, i, got[i], want[i]);
}

// From pinned memory that is free again once the event says so, and is overwritten then.
static void upload_pinned()
{
	RT(cudaEventSynchronize(uploaded));
	for (int i = 0; i < N; i++)
		up[i] = e2e_next(&seed);
	RT(cudaMemcpyAsync(y, up, N * sizeof(*up), cudaMemcpyHostToDevice, s));
	RT(cudaEventRecord(uploaded, s));
	add_from<<<1, N, 0, s>>>(x, y);
	for (int i = 0; i < N; i++)
		want[i] += up[i];
}

static void upload_pageable()
{
	uint32_t v[N];

	for (int i = 0; i < N; i++)
		v[i] = e2e_next(&seed);
	RT(cudaMemcpyAsync(y, v, sizeof(v), cudaMemcpyHostToDevice, s));
	add_from<<<1, N, 0, s>>>(x, y);
	for (int i = 0; i < N; i++)
		want[i] += v[i];
}

static uint32_t mark; // what `down` was filled with since the last copy

static void check_mark(int op)
{
	for (int i = 0; mark && i < N; i++)
		if (down[i] != mark)
			die("operation %d: a copy that had ended was done again, at %d", op, i);
}

static void download_pinned(int op)
{
	check_mark(op);
	RT(cudaMemcpyAsync(down, x, N * sizeof(*down), cudaMemcpyDeviceToHost, s));
	RT(cudaStreamSynchronize(s));
	compare(down, op);
	mark = e2e_next(&seed) | 1;
	for (int i = 0; i < N; i++)
		down[i] = mark;
}

static void download_pageable(int op)
{
	uint32_t got[N];

	RT(cudaMemcpy(got, x, sizeof(got), cudaMemcpyDeviceToHost));
	compare(got, op);
}

static void operate(int op)
{
	uint32_t r = e2e_next(&seed), k = r >> 4;

	switch (r % 16) {
	case 0:
		download_pinned(op);
		break;
	case 1:
		download_pageable(op);
		break;
	case 2:
	case 3:
		upload_pinned();
		break;
	case 4:
	case 5:
		upload_pageable();
		break;
	case 6:
		RT(cudaLaunchHostFunc(s, host_function, &called));
		launches++;
		count<<<1, 1, 0, s>>>(n);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		scale<<<1, N, 0, s>>>(x, k);
		for (int i = 0; i < N; i++)
			want[i] = want[i] * 3 + k;
		break;
	default:
		add<<<1, N, 0, s>>>(x, k);
		for (int i = 0; i < N; i++)
			want[i] += k;
	}
	RT(cudaGetLastError());
}

static double now_ms()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int operations = e2e_arg(argc, argv, 1, 1000);
	uint32_t counted;
	char line[16];

	RT(cudaStreamCreate(&s));
	RT(cudaEventCreate(&uploaded));
	RT(cudaMalloc(&x, sizeof(want)));
	RT(cudaMalloc(&y, sizeof(want)));
	RT(cudaMalloc(&n, sizeof(*n)));
	RT(cudaHostAlloc(&up, sizeof(want), 0));
	RT(cudaHostAlloc(&down, sizeof(want), 0));
	RT(cudaMemset(x, 0, sizeof(want)));
	RT(cudaMemset(n, 0, sizeof(*n)));
	RT(cudaDeviceSynchronize());
	for (int round = 1; fgets(line, sizeof(line), stdin); round++) {
		double begin = now_ms();

		for (int op = 0; op < operations; op++)
			operate(op);
		download_pinned(operations);
		RT(cudaMemcpy(&counted, n, sizeof(counted), cudaMemcpyDeviceToHost));
		check_mark(operations);
		if (counted != launches || called != launches)
			die("round %d: %u launches were counted and %u host functions called, not %u", round, counted, called, launches);
		printf("round %d: %d operations in %.0f ms\n", round, operations, now_ms() - begin);
		fflush(stdout);
	}
	return 0;
}
