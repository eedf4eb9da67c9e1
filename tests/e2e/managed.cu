// SPDX-License-Identifier: MIT
/* __managed__ variables, and a loop of kernels over managed memory as solvers have it. */
#include <cuda_runtime_api.h>
#include "tests/e2e/e2e.h"

#define N 4096

__managed__ int counter = 5;
__device__ __managed__ float table[100];
__managed__ char letters[3] = {'a', 'b', 'c'};

static __global__ void change(int *same)
{
	*same += 3;
	counter += 1;
	table[7] += 1.5f;
	letters[1]++;
}

/* One step of conjugate gradients on a tridiagonal matrix needs these. */
static __global__ void multiply(const double *x, double *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = 4 * x[i] - (i ? x[i - 1] : 0) - (i + 1 < n ? x[i + 1] : 0);
}

static __global__ void axpy(double a, const double *x, double *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

static double dot(const double *a, const double *b)
{
	double sum = 0;

	for (int i = 0; i < N; i++)
		sum += a[i] * b[i];
	return sum;
}

static void variables(void)
{
	if (counter != 5 || table[7] != 0 || letters[2] != 'c')
		die("the first values are %d, %g, %c", counter, table[7], letters[2]);
	counter = 10;
	table[7] = 1;
	change<<<1, 1>>>(&counter);
	RT(cudaGetLastError());
	RT(cudaDeviceSynchronize());
	if (counter != 14 || table[7] != 2.5f || letters[1] != 'c' || letters[0] != 'a')
		die("after the kernel they are %d, %g, %c%c", counter, table[7], letters[0], letters[1]);
	counter = 20;
	RT(cudaMemcpyFromSymbol(&letters[0], counter, 1));
	if (letters[0] != 20)
		die("a copy from the symbol gives %d", letters[0]);
}

/* A reset takes them along; the next use begins with their first values, at both ends. */
static void after_a_reset(void)
{
	RT(cudaDeviceReset());
	RT(cudaFree(0));
	if (counter != 5 || table[7] != 0 || letters[1] != 'b')
		die("after a reset they are %d, %g, %c", counter, table[7], letters[1]);
	counter = 30;
	change<<<1, 1>>>(&counter);
	RT(cudaGetLastError());
	RT(cudaDeviceSynchronize());
	if (counter != 34 || table[7] != 1.5f || letters[1] != 'c')
		die("after a reset and the kernel they are %d, %g, %c", counter, table[7], letters[1]);
}

/* The host adds up what the device multiplied, in turns. */
static void solve(void)
{
	double *x, *r, *p, *q, rr, before;
	struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	int steps = 0, mostly = 0;

	RT(cudaMallocManaged(&x, N * sizeof(double), cudaMemAttachGlobal));
	RT(cudaMallocManaged(&r, N * sizeof(double), cudaMemAttachGlobal));
	RT(cudaMallocManaged(&p, N * sizeof(double), cudaMemAttachGlobal));
	RT(cudaMallocManaged(&q, N * sizeof(double), cudaMemAttachGlobal));
	RT(cudaMemAdvise(p, N * sizeof(double), cudaMemAdviseSetReadMostly, here));
	RT(cudaMemRangeGetAttribute(&mostly, sizeof(mostly), cudaMemRangeAttributeReadMostly, p, N * sizeof(double)));
	if (mostly != 1)
		die("advice is not kept");
	RT(cudaMemPrefetchAsync(x, N * sizeof(double), here, 0, 0));
	for (int i = 0; i < N; i++) {
		x[i] = 0;
		p[i] = r[i] = 1 + i % 3;
	}
	for (rr = dot(r, r); rr > 1e-20 && steps < 100; steps++) {
		double alpha;

		multiply<<<N / 256, 256>>>(p, q, N);
		RT(cudaDeviceSynchronize());
		alpha = rr / dot(p, q);
		axpy<<<N / 256, 256>>>(alpha, p, x, N);
		axpy<<<N / 256, 256>>>(-alpha, q, r, N);
		RT(cudaDeviceSynchronize());
		before = rr;
		rr = dot(r, r);
		for (int i = 0; i < N; i++)
			p[i] = r[i] + rr / before * p[i];
	}
	for (int i = 1; i + 1 < N; i++) {
		double b = 4 * x[i] - x[i - 1] - x[i + 1] - (1 + i % 3);

		if (b > 1e-8 || b < -1e-8)
			die("after %d steps row %d is off by %g", steps, i, b);
	}
	RT(cudaFree(x));
	RT(cudaFree(r));
	RT(cudaFree(p));
	RT(cudaFree(q));
	printf("managed: solved in %d steps\n", steps);
}

/* With an argument, no variables. */
int main(int argc, char **argv)
{
	(void)argv;
	if (argc == 1) {
		variables();
		after_a_reset();
	}
	solve();
	return 0;
}
