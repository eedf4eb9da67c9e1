// SPDX-License-Identifier: MIT
/* The CPU BLAS behind soft cuBLAS: OpenBLAS, loaded when it is first needed. */
#include "softgpu/blas/backend.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static struct blas_backend backend;
static bool loaded;

/*
 * OpenBLAS 0.3.21 takes CPUs that came after it for very old ones. It chooses its kernels when it is
 * loaded, from this variable if it is set. NULL leaves the choice to it.
 */
static const char *core_type(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
		return "SKYLAKEX";
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return __builtin_cpu_is("amd") ? "ZEN" : "HASWELL";
	if (__builtin_cpu_supports("avx"))
		return "SANDYBRIDGE";
	return NULL;
}

/* As many threads as the soft device has, which is how its kernels would run. */
static int threads(void)
{
	const char *s = getenv("RGPU_SOFTGPU_THREADS");
	cpu_set_t set;
	int n = s ? atoi(s) : 0;

	if (n > 0)
		return n;
	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static void load(void)
{
	const char *type = getenv("OPENBLAS_CORETYPE") ? NULL : core_type();
	void (*set_threads)(int n);
	void *lib;

	if (type)
		setenv("OPENBLAS_CORETYPE", type, 1);
	lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
	if (type)
		unsetenv("OPENBLAS_CORETYPE");
	if (!lib) {
		fprintf(stderr, "softcublas: no OpenBLAS: %s; install libopenblas0-pthread\n", dlerror());
		return;
	}
	backend.sgemm = dlsym(lib, "cblas_sgemm");
	backend.saxpy = dlsym(lib, "cblas_saxpy");
	backend.sdot = dlsym(lib, "cblas_sdot");
	set_threads = dlsym(lib, "openblas_set_num_threads");
	if (!backend.sgemm || !backend.saxpy || !backend.sdot) {
		fprintf(stderr, "softcublas: libopenblas.so.0 has no CBLAS interface; install libopenblas0-pthread\n");
		return;
	}
	if (set_threads)
		set_threads(threads());
	loaded = true;
}

const struct blas_backend *blas_backend(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return loaded ? &backend : NULL;
}
