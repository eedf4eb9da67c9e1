/* SPDX-License-Identifier: MIT */
/* The CUDA driver as our runtime sees it: a table of libcuda.so.1's functions, filled once by dlopen. */
#ifndef RGPU_CUDART_DRV_H
#define RGPU_CUDART_DRV_H

#include <cuda.h>
#include <cudaProfiler.h>

/* cuda.h's macros rename the members where they are declared and where they are used: drv.cuMemAlloc is drv.cuMemAlloc_v2. */
struct drv {
#define DRV(name) __typeof__(name) *name;
#include "shim/cudart/drv_calls.h"
#undef DRV
};

extern struct drv drv;

/*
 * Loads libcuda.so.1 on the first call, from any thread. cudaErrorInsufficientDriver's number when it
 * is absent or is no driver, after one line on stderr; 0 otherwise. A function that an old driver has
 * not got returns CUDA_ERROR_NOT_SUPPORTED.
 */
int drv_load(void);

#endif
