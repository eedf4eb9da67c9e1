// SPDX-License-Identifier: MIT
// Kernels that launch kernels: order on the device's streams, tail launches, recursion, errors.
#include "tests/e2e/e2e.h"

#include <vector>

#define WANT(cond)                                                                                                               \
	do {                                                                                                                     \
		if (!(cond))                                                                                                     \
			die("not so: %s", #cond);                                                                                \
	} while (0)

struct log_lines {
	int n;
	int line[64];
};

__global__ void note(log_lines *l, int what)
{
	l->line[l->n++] = what;
}

__global__ void middle(log_lines *l)
{
	note<<<1, 1>>>(l, 3);
	l->line[l->n++] = 2;
}

// The order in which all of it ends is the same on every device: each stream's own, and the tail behind everything.
__global__ void parent(log_lines *l, int *errors)
{
	cudaStream_t s;

	l->line[l->n++] = 1;
	middle<<<1, 1, 0, cudaStreamTailLaunch>>>(l);
	errors[0] = cudaGetLastError();
	note<<<1, 2000>>>(l, 99);
	errors[1] = cudaPeekAtLastError();
	errors[2] = cudaGetLastError();
	errors[3] = cudaGetLastError();
	errors[4] = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	cudaMemsetAsync(l->line + 60, 0x11, 4, s);
	cudaMemcpyAsync(l->line + 61, l->line + 60, 4, cudaMemcpyDeviceToDevice, s);
	errors[5] = cudaStreamDestroy(s);
}

struct range {
	unsigned int *v;
	int from, to;
};

// A quicksort as the textbook has it: each call sorts two parts by two grids.
__global__ void quicksort(range r, int depth)
{
	if (r.to - r.from < 16 || depth > 20) {
		for (int i = r.from + 1; i < r.to; i++)
			for (int k = i; k > r.from && r.v[k] < r.v[k - 1]; k--) {
				unsigned int t = r.v[k];

				r.v[k] = r.v[k - 1];
				r.v[k - 1] = t;
			}
		return;
	}
	unsigned int pivot = r.v[(r.from + r.to) / 2];
	int i = r.from, k = r.to - 1;

	while (i <= k) {
		while (r.v[i] < pivot)
			i++;
		while (r.v[k] > pivot)
			k--;
		if (i <= k) {
			unsigned int t = r.v[i];

			r.v[i++] = r.v[k];
			r.v[k--] = t;
		}
	}
	if (r.from < k + 1)
		quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(range{r.v, r.from, k + 1}, depth + 1);
	if (i < r.to)
		quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(range{r.v, i, r.to}, depth + 1);
}

__global__ void wild(int *p)
{
	p[threadIdx.x] = 1;
}

__global__ void bad_parent()
{
	wild<<<1, 32>>>((int *)0x1000);
}

int main()
{
	const int n = 1500;
	std::vector<unsigned int> v(n);
	log_lines *l, h;
	unsigned int *d;
	int *errors, e[6];

	RT(cudaMalloc(&l, sizeof(*l)));
	RT(cudaMemset(l, 0, sizeof(*l)));
	RT(cudaMalloc(&errors, sizeof(e)));
	parent<<<1, 1>>>(l, errors);
	note<<<1, 1>>>(l, 4); // behind the parent, and so behind its children
	RT(cudaMemcpy(&h, l, sizeof(h), cudaMemcpyDefault));
	RT(cudaMemcpy(e, errors, sizeof(e), cudaMemcpyDefault));
	WANT(h.n == 4 && h.line[0] == 1 && h.line[1] == 2 && h.line[2] == 3 && h.line[3] == 4);
	WANT(h.line[60] == 0x11111111 && h.line[61] == 0x11111111);
	WANT(e[0] == cudaSuccess && e[1] == cudaErrorInvalidConfiguration && e[2] == e[1] && e[3] == cudaSuccess && e[4] == cudaSuccess &&
	     e[5] == cudaSuccess);

	for (int i = 0; i < n; i++)
		v[i] = (i * 2654435761u) >> 7;
	RT(cudaMalloc(&d, n * sizeof(*d)));
	RT(cudaMemcpy(d, v.data(), n * sizeof(*d), cudaMemcpyDefault));
	quicksort<<<1, 1>>>(range{d, 0, n}, 0);
	RT(cudaDeviceSynchronize());
	RT(cudaMemcpy(v.data(), d, n * sizeof(*d), cudaMemcpyDefault));
	for (int i = 1; i < n; i++)
		WANT(v[i - 1] <= v[i]);

	bad_parent<<<1, 1>>>(); // a child's fault is the launch's
	WANT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	puts("cdp: ok");
	return 0;
}
