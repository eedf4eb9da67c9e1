/* SPDX-License-Identifier: MIT */
/* What the driver tests share: TAP, the API in its newest ABI, and a context to start from. */
#ifndef TESTS_SOFTGPU_DRV_H
#define TESTS_SOFTGPU_DRV_H

#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "softgpu/softgpu_api.h"
#include "tests/tap.h"

/* One test: the call gives exactly this status. */
#define gives(call, want) is_int(call, want, "%s is %s", #call, #want)
#define works(call)	  gives(call, CUDA_SUCCESS)
/* No test of its own: a failure ends the program, since nothing after it would mean anything. */
#define must(call)                                                                                                               \
	do {                                                                                                                     \
		CUresult must_ = (call);                                                                                         \
		if (must_ != CUDA_SUCCESS) {                                                                                     \
			printf("Bail out! %s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_);                                   \
			exit(255);                                                                                               \
		}                                                                                                                \
	} while (0)

/* The primary context of device 0, current. */
__attribute__((unused)) static CUcontext drv_start(void)
{
	CUcontext c;
	CUdevice d;

	must(cuInit(0));
	must(cuDeviceGet(&d, 0));
	must(cuDevicePrimaryCtxRetain(&c, d));
	must(cuCtxSetCurrent(c));
	return c;
}

__attribute__((unused)) static void nap_ms(long ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

#endif
