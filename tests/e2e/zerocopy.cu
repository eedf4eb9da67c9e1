// SPDX-License-Identifier: MIT
/* Host memory that kernels read and write where it is: page-locked, registered and managed. */
#include <cuda_runtime_api.h>
#include "tests/e2e/e2e.h"

#define N 100000

static __global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

/* Waits for the host to turn *flag to 1, and then turns it to 2. */
static __global__ void turn(volatile int *flag)
{
	while (*flag != 1)
		;
	*flag = 2;
}

static void run(float *a, float *b, float *c, float *da, float *db, float *dc, const char *what)
{
	for (int r = 1; r <= 3; r++) {
		for (int i = 0; i < N; i++) {
			a[i] = r * i;
			b[i] = i % 7;
		}
		add<<<(N + 255) / 256, 256>>>(da, db, dc, N);
		RT(cudaGetLastError());
		RT(cudaDeviceSynchronize());
		for (int i = 0; i < N; i++)
			if (c[i] != r * i + i % 7)
				die("%s, round %d: element %d is %g", what, r, i, c[i]);
	}
}

static void page_locked(void)
{
	float *h[3], *d[3];

	for (int i = 0; i < 3; i++) {
		RT(cudaHostAlloc(&h[i], N * sizeof(float), cudaHostAllocMapped));
		RT(cudaHostGetDevicePointer(&d[i], h[i], 0));
	}
	run(h[0], h[1], h[2], d[0], d[1], d[2], "page-locked");
	for (int i = 0; i < 3; i++)
		RT(cudaFreeHost(h[i]));
}

/* Nobody says that kernels will use it. */
static void unified(void)
{
	float *h[3];

	for (int i = 0; i < 3; i++)
		RT(cudaMallocHost(&h[i], N * sizeof(float)));
	run(h[0], h[1], h[2], h[0], h[1], h[2], "host pointers");
	for (int i = 0; i < 3; i++)
		RT(cudaFreeHost(h[i]));
}

static void registered(void)
{
	static float h[3][N];
	float *d[3];

	for (int i = 0; i < 3; i++) {
		RT(cudaHostRegister(h[i], sizeof(h[i]), cudaHostRegisterMapped));
		RT(cudaHostGetDevicePointer(&d[i], h[i], 0));
	}
	run(h[0], h[1], h[2], d[0], d[1], d[2], "registered");
	for (int i = 0; i < 3; i++)
		RT(cudaHostUnregister(h[i]));
}

static void managed(void)
{
	struct cudaPointerAttributes at;
	float *p[3];

	for (int i = 0; i < 3; i++)
		RT(cudaMallocManaged(&p[i], N * sizeof(float), cudaMemAttachGlobal));
	RT(cudaPointerGetAttributes(&at, p[1] + 5));
	if (at.type != cudaMemoryTypeManaged || at.hostPointer != p[1] + 5 || at.devicePointer != p[1] + 5)
		die("a managed pointer is of type %d", at.type);
	run(p[0], p[1], p[2], p[0], p[1], p[2], "managed");
	for (int i = 0; i < 3; i++)
		RT(cudaFree(p[i]));
}

static void flag(void)
{
	volatile int *f;
	int *d;

	RT(cudaHostAlloc((void **)&f, sizeof(*f), cudaHostAllocMapped));
	RT(cudaHostGetDevicePointer(&d, (void *)f, 0));
	*f = 0;
	turn<<<1, 1>>>(d);
	RT(cudaGetLastError());
	if (cudaStreamQuery(0) != cudaErrorNotReady)
		die("the kernel did not wait");
	*f = 1;
	for (int i = 0; *f != 2 && i < 600; i++)
		poll(NULL, 0, 100);
	if (*f != 2)
		die("the kernel's answer did not come while nobody called");
	RT(cudaDeviceSynchronize());
	RT(cudaFreeHost((void *)f));
}

int main(void)
{
	struct cudaDeviceProp prop;

	RT(cudaGetDeviceProperties(&prop, 0));
	if (!prop.canMapHostMemory || !prop.managedMemory || prop.concurrentManagedAccess)
		die("the device says %d, %d, %d", prop.canMapHostMemory, prop.managedMemory, prop.concurrentManagedAccess);
	page_locked();
	unified();
	registered();
	managed();
	flag();
	puts("zerocopy: ok");
	return 0;
}
