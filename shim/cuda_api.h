/* SPDX-License-Identifier: MIT */
/* cuda.h with every symbol under its exported name, so that cuMemAlloc is the old ABI and cuMemAlloc_v2 today's. */
#ifndef RGPU_SHIM_CUDA_API_H
#define RGPU_SHIM_CUDA_API_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
/* A function that cuda.h declares is exported; all else of the library is hidden by the compiler's flags. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "shim/call.h"

/* Statuses of the Driver API are those of the lanes. */
#define RESULT(c, r) ((void)(c), (CUresult)(r))

#endif
