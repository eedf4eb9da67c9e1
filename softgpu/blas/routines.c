// SPDX-License-Identifier: MIT
/* The BLAS routines: checks at the call as cuBLAS makes them, and the work on the stream. */
#include "softgpu/blas/handle.h"

#define COL_MAJOR 102

static int cblas_op(cublasOperation_t op)
{
	return op == CUBLAS_OP_N ? 111 : 112; /* of real numbers the conjugate is themselves */
}

struct gemm {
	cublasOperation_t transa, transb;
	int m, n, k, lda, ldb, ldc;
	struct blas_scalar alpha, beta;
	const float *a, *b;
	float *c;
};

static int gemm_run(void *work)
{
	const struct gemm *g = work;
	float alpha, beta;

	if (!blas_scalar_read(&g->alpha, &alpha) || !blas_scalar_read(&g->beta, &beta) ||
	    !blas_matrix_there(g->c, g->m, g->n, g->ldc))
		return BLAS_ILLEGAL_ADDRESS;
	/* With alpha 0 the factors are not looked at. */
	if (alpha != 0 && g->k &&
	    (!blas_matrix_there(g->a, g->transa ? g->k : g->m, g->transa ? g->m : g->k, g->lda) ||
	     !blas_matrix_there(g->b, g->transb ? g->n : g->k, g->transb ? g->k : g->n, g->ldb)))
		return BLAS_ILLEGAL_ADDRESS;
	blas_backend()->sgemm(COL_MAJOR, cblas_op(g->transa), cblas_op(g->transb), g->m, g->n, g->k, alpha, g->a, g->lda, g->b,
			      g->ldb, beta, g->c, g->ldc);
	return 0;
}

static bool valid_op(cublasOperation_t op)
{
	return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

static int at_least_1(int n)
{
	return n > 1 ? n : 1;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
			      const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
			      int ldc)
{
	struct gemm g = {transa, transb, m, n, k, lda, ldb, ldc, {0, NULL}, {0, NULL}, a, b, c};
	struct blas_settings s;

	if (blas_settings(handle, &s) != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!valid_op(transa) || !valid_op(transb) || m < 0 || n < 0 || k < 0 || lda < at_least_1(transa ? k : m) ||
	    ldb < at_least_1(transb ? n : k) || ldc < at_least_1(m))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!m || !n)
		return CUBLAS_STATUS_SUCCESS;
	if (blas_scalar(&g.alpha, &s, alpha) || blas_scalar(&g.beta, &s, beta))
		return CUBLAS_STATUS_INVALID_VALUE;
	return blas_submit(&s, gemm_run, &g, sizeof(g), false);
}

struct axpy {
	int n, incx, incy;
	struct blas_scalar alpha;
	const float *x;
	float *y;
};

static int axpy_run(void *work)
{
	const struct axpy *a = work;
	float alpha;

	if (!blas_scalar_read(&a->alpha, &alpha) || !blas_vector_there(a->x, a->n, a->incx) ||
	    !blas_vector_there(a->y, a->n, a->incy))
		return BLAS_ILLEGAL_ADDRESS;
	blas_backend()->saxpy(a->n, alpha, a->x, a->incx, a->y, a->incy);
	return 0;
}

cublasStatus_t cublasSaxpy_v2(cublasHandle_t handle, int n, const float *alpha, const float *x, int incx, float *y, int incy)
{
	struct axpy a = {n, incx, incy, {0, NULL}, x, y};
	struct blas_settings s;

	if (blas_settings(handle, &s) != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (n <= 0)
		return CUBLAS_STATUS_SUCCESS;
	if (blas_scalar(&a.alpha, &s, alpha))
		return CUBLAS_STATUS_INVALID_VALUE;
	return blas_submit(&s, axpy_run, &a, sizeof(a), false);
}

struct dot {
	int n, incx, incy;
	const float *x, *y;
	float *result;
	bool on_device;
};

static int dot_run(void *work)
{
	const struct dot *d = work;

	if (!blas_vector_there(d->x, d->n, d->incx) || !blas_vector_there(d->y, d->n, d->incy) ||
	    (d->on_device && !softgpu_accessible((uintptr_t)d->result, sizeof(float))))
		return BLAS_ILLEGAL_ADDRESS;
	*d->result = d->n > 0 ? blas_backend()->sdot(d->n, d->x, d->incx, d->y, d->incy) : 0;
	return 0;
}

/* A result on the host is there when the call returns. */
cublasStatus_t cublasSdot_v2(cublasHandle_t handle, int n, const float *x, int incx, const float *y, int incy, float *result)
{
	struct dot d = {n, incx, incy, x, y, result, false};
	struct blas_settings s;

	if (blas_settings(handle, &s) != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!result)
		return CUBLAS_STATUS_INVALID_VALUE;
	d.on_device = s.mode == CUBLAS_POINTER_MODE_DEVICE;
	return blas_submit(&s, dot_run, &d, sizeof(d), !d.on_device);
}
