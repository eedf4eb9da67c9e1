// SPDX-License-Identifier: MIT
/* cuBLAS's helpers that move vectors and matrices between host and device: copies of the Driver API's, in one row or in many. */
#include "shim/cublas_api.h"

#define API __attribute__((visibility("default"))) cublasStatus_t

/* @rows pieces of @width bytes, that many bytes apart on each side. */
struct pieces {
	const void *src;
	void *dst;
	size_t width, src_pitch, dst_pitch, rows;
};

static cublasStatus_t move(const struct pieces *p, bool up, CUstream stream, bool sync)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = up ? p->src : NULL,
		.srcDevice = up ? 0 : (CUdeviceptr)p->src,
		.srcPitch = p->src_pitch,
		.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstHost = up ? NULL : p->dst,
		.dstDevice = up ? (CUdeviceptr)p->dst : 0,
		.dstPitch = p->dst_pitch,
		.WidthInBytes = p->width,
		.Height = p->rows,
	};
	CUresult r;

	if (!p->width || !p->rows)
		return CUBLAS_STATUS_SUCCESS;
	if (!p->src || !p->dst)
		return CUBLAS_STATUS_INVALID_VALUE;
	r = sync ? cuMemcpy2DUnaligned_v2(&c) : cuMemcpy2DAsync_v2(&c, stream);
	return r ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t vector(int64_t n, int64_t size, const void *x, int64_t incx, void *y, int64_t incy, bool up, CUstream s,
			     bool sync)
{
	struct pieces p = {x, y, size, size * incx, size * incy, n};

	if (n < 0 || size <= 0 || incx <= 0 || incy <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (incx == 1 && incy == 1)
		p = (struct pieces){x, y, size * n, size * n, size * n, 1};
	return move(&p, up, s, sync);
}

/* In columns, which lie one leading dimension apart. */
static cublasStatus_t matrix(int64_t rows, int64_t cols, int64_t size, const void *a, int64_t lda, void *b, int64_t ldb, bool up,
			     CUstream s, bool sync)
{
	struct pieces p = {a, b, size * rows, size * lda, size * ldb, cols};

	if (rows < 0 || cols < 0 || size <= 0 || lda < rows || ldb < rows || lda <= 0 || ldb <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	return move(&p, up, s, sync);
}

#define HELPERS(suffix, integer)                                                                                                 \
	API cublasSetVector##suffix(integer n, integer size, const void *x, integer incx, void *y, integer incy)                 \
	{                                                                                                                        \
		return vector(n, size, x, incx, y, incy, true, NULL, true);                                                      \
	}                                                                                                                        \
	API cublasGetVector##suffix(integer n, integer size, const void *x, integer incx, void *y, integer incy)                 \
	{                                                                                                                        \
		return vector(n, size, x, incx, y, incy, false, NULL, true);                                                     \
	}                                                                                                                        \
	API cublasSetMatrix##suffix(integer rows, integer cols, integer size, const void *a, integer lda, void *b, integer ldb)  \
	{                                                                                                                        \
		return matrix(rows, cols, size, a, lda, b, ldb, true, NULL, true);                                               \
	}                                                                                                                        \
	API cublasGetMatrix##suffix(integer rows, integer cols, integer size, const void *a, integer lda, void *b, integer ldb)  \
	{                                                                                                                        \
		return matrix(rows, cols, size, a, lda, b, ldb, false, NULL, true);                                              \
	}

#define ASYNC_HELPERS(suffix, integer)                                                                                           \
	API cublasSetVectorAsync##suffix(integer n, integer size, const void *x, integer incx, void *y, integer incy,            \
					 CUstream s)                                                                             \
	{                                                                                                                        \
		return vector(n, size, x, incx, y, incy, true, s, false);                                                        \
	}                                                                                                                        \
	API cublasGetVectorAsync##suffix(integer n, integer size, const void *x, integer incx, void *y, integer incy,            \
					 CUstream s)                                                                             \
	{                                                                                                                        \
		return vector(n, size, x, incx, y, incy, false, s, false);                                                       \
	}                                                                                                                        \
	API cublasSetMatrixAsync##suffix(integer rows, integer cols, integer size, const void *a, integer lda, void *b,          \
					 integer ldb, CUstream s)                                                                \
	{                                                                                                                        \
		return matrix(rows, cols, size, a, lda, b, ldb, true, s, false);                                                 \
	}                                                                                                                        \
	API cublasGetMatrixAsync##suffix(integer rows, integer cols, integer size, const void *a, integer lda, void *b,          \
					 integer ldb, CUstream s)                                                                \
	{                                                                                                                        \
		return matrix(rows, cols, size, a, lda, b, ldb, false, s, false);                                                \
	}

HELPERS(, int)
HELPERS(_64, int64_t)
ASYNC_HELPERS(, int)
ASYNC_HELPERS(_64, int64_t)
