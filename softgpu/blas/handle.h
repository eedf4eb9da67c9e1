/* SPDX-License-Identifier: MIT */
/* cuBLAS handles, and how a routine gets onto the handle's stream. */
#ifndef SOFTGPU_BLAS_HANDLE_H
#define SOFTGPU_BLAS_HANDLE_H

#include <stdint.h>
#include "softgpu/blas/backend.h"
#include "softgpu/blas/cublas_abi.h"
#include "softgpu/softgpu_api.h"

/* What a handle was set to, copied at the call: later settings don't touch queued work. */
struct blas_settings {
	cudaStream_t stream;
	cublasPointerMode_t mode;
};

/* NOT_INITIALIZED when @handle is none. */
cublasStatus_t blas_settings(cublasHandle_t handle, struct blas_settings *s);

/*
 * Queues @fn with a copy of the @bytes at @work. @fn gives a CUresult; other than 0 it fails the
 * context, as a kernel's fault would. @wait: return when it has run.
 */
cublasStatus_t blas_submit(const struct blas_settings *s, int (*fn)(void *work), const void *work, size_t bytes, bool wait);

/* CUresult of a routine that was handed memory that the device can't reach. */
#define BLAS_ILLEGAL_ADDRESS 700

/* A scalar that is the host's value, read at the call, or an address in device memory, read when the work runs. */
struct blas_scalar {
	float value;
	const float *device;
};

cublasStatus_t blas_scalar(struct blas_scalar *out, const struct blas_settings *s, const float *p);
bool blas_scalar_read(const struct blas_scalar *in, float *value);

/* True when the device can reach a column-major matrix, or a vector of @n elements with the given stride. */
bool blas_matrix_there(const float *p, int rows, int columns, int ld);
bool blas_vector_there(const float *p, int n, int inc);

#endif
