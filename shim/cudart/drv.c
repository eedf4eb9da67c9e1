/* SPDX-License-Identifier: MIT */
/* Finds libcuda.so.1 and fills the table of its functions. */
#include "shim/cudart/cudart.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

struct drv drv;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int outcome = cudaErrorInsufficientDriver;

/* In place of every function that this driver is too old to have; arguments are the caller's to clean up on x86-64. */
static CUresult absent(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		fprintf(stderr,
			"libcudart (rgpu): no CUDA driver: %s; run the program with `rgpu run -- …` or install rgpu's "
			"libcuda.so.1\n",
			dlerror());
		return;
	}
#define NAME_(name) #name
#define NAME(name)  NAME_(name)
#define DRV(name)                                                                                                                \
	drv.name = (__typeof__(drv.name))dlsym(lib, NAME(name));                                                                 \
	if (!drv.name)                                                                                                           \
		drv.name = (__typeof__(drv.name))(void *)absent;
#include "shim/cudart/drv_calls.h"
#undef DRV
	if ((void *)drv.cuInit == (void *)absent) {
		fprintf(stderr, "libcudart (rgpu): the libcuda.so.1 that was found has no cuInit; look at LD_LIBRARY_PATH\n");
		return;
	}
	outcome = cudaSuccess;
}

int drv_load(void)
{
	pthread_once(&once, load);
	return outcome;
}
