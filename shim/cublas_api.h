/* SPDX-License-Identifier: MIT */
/* cuBLAS's functions, exported, and how a status of the lanes becomes one of cuBLAS. */
#ifndef RGPU_SHIM_CUBLAS_API_H
#define RGPU_SHIM_CUBLAS_API_H

#pragma GCC visibility push(default)
#include "cublas_proto.h"
#pragma GCC visibility pop

#include <string.h>
#include "shim/call.h"

/* What the server answered is cuBLAS's own; what was found here is a CUresult. */
cublasStatus_t cublas_status(int cu);

#define RESULT(c, r) ((r) && !(c)->remote ? cublas_status(r) : (cublasStatus_t)(r))

#endif
