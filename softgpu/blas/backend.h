/* SPDX-License-Identifier: MIT */
/* The CPU BLAS behind soft cuBLAS: OpenBLAS, loaded when it is first needed. */
#ifndef SOFTGPU_BLAS_BACKEND_H
#define SOFTGPU_BLAS_BACKEND_H

#include <stdbool.h>

struct blas_backend {
	/* CBLAS; order 102 is column-major, trans 111 is no, 112 is transposed. */
	void (*sgemm)(int order, int transa, int transb, int m, int n, int k, float alpha, const float *a, int lda,
		      const float *b, int ldb, float beta, float *c, int ldc);
	void (*saxpy)(int n, float alpha, const float *x, int incx, float *y, int incy);
	float (*sdot)(int n, const float *x, int incx, const float *y, int incy);
};

/* NULL, after a line on stderr that says how to get it, when there is no OpenBLAS. Thread-safe. */
const struct blas_backend *blas_backend(void);

#endif
