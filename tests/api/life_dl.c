// SPDX-License-Identifier: MIT
/* A program that opens libcuda.so.1 by itself, closes it while threads are in calls, and opens it again. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FUNCTIONS(X)                                                                                                             \
	X(cuInit)                                                                                                                \
	X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuMemAlloc_v2) X(cuMemsetD8_v2) X(cuMemcpyDtoH_v2) X(cuMemFree_v2)
#define POINTER(f) static __typeof__(&f) p_##f;
FUNCTIONS(POINTER)

static CUcontext ctx;

static void *open_it(const char *lib)
{
	void *h = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
#define LOOK(f) p_##f = h ? (__typeof__(p_##f))dlsym(h, #f) : NULL;
	FUNCTIONS(LOOK)
	if (!h)
		fprintf(stderr, "# %s\n", dlerror());
	return h;
}

static bool work(unsigned char value)
{
	CUdeviceptr d;
	unsigned char got = 0;

	return !p_cuCtxSetCurrent(ctx) && !p_cuMemAlloc_v2(&d, 64) && !p_cuMemsetD8_v2(d, value, 64) &&
	       !p_cuMemcpyDtoH_v2(&got, d + 63, 1) && !p_cuMemFree_v2(d) && got == value;
}

static void *some(void *arg)
{
	bool good = true;

	for (int i = 0; i < 50 && good; i++)
		good = work((unsigned char)i);
	*(bool *)arg = good;
	return NULL;
}

int main(int argc, char **argv)
{
	bool good[4];
	pthread_t t[4];
	void *h;

	if (argc != 2)
		return 4;
	h = open_it(argv[1]);
	if (!h || p_cuInit(0) || p_cuDevicePrimaryCtxRetain(&ctx, 0))
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, some, &good[i]);
	dlclose(h);
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		if (!good[i])
			return 2;
	}
	h = open_it(argv[1]);
	if (!h || p_cuInit(0) || !work(7))
		return 3;
	dlclose(h);
	return 0;
}
