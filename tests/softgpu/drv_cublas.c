// SPDX-License-Identifier: MIT
/* Tests of soft cuBLAS: results against plain loops, pointer modes, stream order, and what it refuses. */
#include "tests/softgpu/drv.h"

#include <math.h>
#include <stdlib.h>
#include "softgpu/blas/cublas_abi.h"

#define N 96

static float a[N * N], b[N * N], c[N * N], want[N * N];
static cublasHandle_t h;

static float pseudo(unsigned int i)
{
	return (float)(int)(i * 2654435761u >> 16 & 0xff) / 64.0f - 2.0f;
}

static CUdeviceptr upload(const float *p, size_t n)
{
	CUdeviceptr d;

	must(cuMemAlloc(&d, n * sizeof(*p)));
	must(cuMemcpyHtoD(d, p, n * sizeof(*p)));
	return d;
}

static float at(const float *p, int trans, int row, int col, int ld)
{
	return trans ? p[row * ld + col] : p[col * ld + row];
}

/* All is small integers over 64, so that sums of this length are exact enough to compare closely. */
static void gemm(int ta, int tb, int m, int n, int k, float alpha, float beta, CUstream s)
{
	CUdeviceptr da, db, dc;
	float worst = 0;

	for (unsigned int i = 0; i < N * N; i++) {
		a[i] = pseudo(i);
		b[i] = pseudo(i + 77777);
		c[i] = want[i] = pseudo(i + 999999);
	}
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double sum = 0;

			for (int l = 0; l < k; l++)
				sum += (double)at(a, ta, i, l, N) * at(b, tb, l, j, N);
			want[j * N + i] = (float)(alpha * sum + beta * c[j * N + i]);
		}
	da = upload(a, N * N);
	db = upload(b, N * N);
	dc = upload(c, N * N);
	is_int(cublasSetStream_v2(h, s), CUBLAS_STATUS_SUCCESS, "set the stream");
	is_int(cublasSgemm_v2(h, ta, tb, m, n, k, &alpha, (void *)da, N, (void *)db, N, &beta, (void *)dc, N),
	       CUBLAS_STATUS_SUCCESS, "sgemm %d%d %dx%dx%d", ta, tb, m, n, k);
	alpha = beta = NAN; /* read at the call */
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(c, dc, sizeof(c)));
	for (int i = 0; i < N * N; i++)
		worst = fmaxf(worst, fabsf(c[i] - want[i]));
	ok(worst < 1e-3f, "its result is the loop's (worst %g)", worst);
	must(cuMemFree(da));
	must(cuMemFree(db));
	must(cuMemFree(dc));
}

static void vectors(CUstream s)
{
	float x[100], y[100], got[100], alpha = 3, dot, host_dot = 0, expect = 0;
	CUdeviceptr dx, dy, scalar, gate;
	int wrong = 0;

	for (unsigned int i = 0; i < 100; i++) {
		x[i] = pseudo(i);
		y[i] = pseudo(i + 5);
	}
	dx = upload(x, 100);
	dy = upload(y, 100);
	is_int(cublasSdot_v2(h, 50, (void *)dx, 2, (void *)dy, -1, &dot), CUBLAS_STATUS_SUCCESS, "sdot to the host");
	for (int i = 0; i < 50; i++)
		expect += x[2 * i] * y[49 - i];
	ok(fabsf(dot - expect) < 1e-4f, "sdot with strides, one of them backwards: %g", dot);
	is_int(cublasSdot_v2(h, 0, (void *)dx, 1, (void *)dy, 1, &dot), CUBLAS_STATUS_SUCCESS, "an empty sdot");
	ok(dot == 0, "is 0");

	/* Device scalars are read and written in stream order, behind a gate. */
	must(cuMemAlloc(&gate, 64));
	must(cuMemsetD32(gate, 0, 1));
	scalar = upload(&alpha, 1);
	must(cuStreamWaitValue32(s, gate, 1, 0));
	is_int(cublasSetPointerMode_v2(h, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS, "device scalars");
	is_int(cublasSaxpy_v2(h, 100, (void *)scalar, (void *)dx, 1, (void *)dy, 1), CUBLAS_STATUS_SUCCESS, "saxpy");
	is_int(cublasSdot_v2(h, 100, (void *)dx, 1, (void *)dy, 1, (void *)scalar), CUBLAS_STATUS_SUCCESS, "sdot to the device");
	gives(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	must(cuMemsetD32Async(gate, 1, 1, CU_STREAM_PER_THREAD));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(got, dy, sizeof(got)));
	must(cuMemcpyDtoH(&dot, scalar, 4));
	for (int i = 0; i < 100; i++) {
		wrong += got[i] != alpha * x[i] + y[i];
		host_dot += x[i] * got[i];
	}
	is_int(wrong, 0, "saxpy took its scalar from the device");
	ok(fabsf(dot - host_dot) < 1e-3f * fabsf(host_dot), "and sdot came behind it: %g", dot);
	is_int(cublasSetPointerMode_v2(h, CUBLAS_POINTER_MODE_HOST), CUBLAS_STATUS_SUCCESS, "host scalars again");
	must(cuMemFree(dx));
	must(cuMemFree(dy));
	must(cuMemFree(scalar));
	must(cuMemFree(gate));
}

static void refusals(void)
{
	float one = 1;
	CUdeviceptr d = upload(a, N * N);
	float *p = (void *)d;
	cublasPointerMode_t mode;
	cudaStream_t s;
	int v;

	is_int(cublasSgemm_v2(h, 0, 0, -1, 1, 1, &one, p, 1, p, 1, &one, p, 1), CUBLAS_STATUS_INVALID_VALUE, "a negative m");
	is_int(cublasSgemm_v2(h, 0, 0, 8, 8, 8, &one, p, 7, p, 8, &one, p, 8), CUBLAS_STATUS_INVALID_VALUE, "a short lda");
	is_int(cublasSgemm_v2(h, 0, 1, 8, 9, 8, &one, p, 8, p, 8, &one, p, 8), CUBLAS_STATUS_INVALID_VALUE, "a short ldb");
	is_int(cublasSgemm_v2(h, 0, 0, 8, 8, 8, &one, p, 8, p, 8, &one, p, 7), CUBLAS_STATUS_INVALID_VALUE, "a short ldc");
	is_int(cublasSgemm_v2(h, 7, 0, 8, 8, 8, &one, p, 8, p, 8, &one, p, 8), CUBLAS_STATUS_INVALID_VALUE, "a bad operation");
	is_int(cublasSgemm_v2(h, 0, 0, 8, 8, 8, NULL, p, 8, p, 8, &one, p, 8), CUBLAS_STATUS_INVALID_VALUE, "no alpha");
	is_int(cublasSgemm_v2(h, 0, 0, 0, 8, 8, &one, p, 8, p, 8, &one, p, 8), CUBLAS_STATUS_SUCCESS, "nothing to do");
	is_int(cublasSetPointerMode_v2(h, 5), CUBLAS_STATUS_INVALID_VALUE, "a bad pointer mode");
	is_int(cublasGetPointerMode_v2(h, &mode), CUBLAS_STATUS_SUCCESS, "the mode");
	is_int(mode, CUBLAS_POINTER_MODE_HOST, "is as it was");
	is_int(cublasGetStream_v2(h, &s), CUBLAS_STATUS_SUCCESS, "the stream");
	is_int(cublasGetVersion_v2(h, &v), CUBLAS_STATUS_SUCCESS, "the version");
	is_int(v / 10000, 13, "is of CUDA 13");
	is_int(cublasSaxpy_v2((cublasHandle_t)&one, 1, &one, p, 1, p, 1), CUBLAS_STATUS_NOT_INITIALIZED, "no handle");
	is_int(cublasSaxpy_v2(NULL, 1, &one, p, 1, p, 1), CUBLAS_STATUS_NOT_INITIALIZED, "a NULL handle");
	is_int(cublasSetStream_v2(h, (cudaStream_t)0x1234560), CUBLAS_STATUS_SUCCESS, "a stream is looked at when it is used");
	is_int(cublasSaxpy_v2(h, 1, &one, p, 1, p, 1), CUBLAS_STATUS_EXECUTION_FAILED, "a bad stream");
	is_int(cublasSetStream_v2(h, NULL), CUBLAS_STATUS_SUCCESS, "back to the NULL stream");
	must(cuMemFree(d));
}

/* Memory that the device can't reach is a fault of the context, as in a kernel. */
static void fault(void)
{
	float one = 1, x[4];
	CUcontext c;

	must(cuCtxCreate(&c, NULL, 0, 0));
	is_int(cublasSaxpy_v2(h, 4, &one, x, 1, x, 1), CUBLAS_STATUS_SUCCESS, "host vectors are not noticed at the call");
	gives(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_int(cublasSaxpy_v2(h, 4, &one, x, 1, x, 1), CUBLAS_STATUS_EXECUTION_FAILED, "afterwards the context refuses");
	works(cuCtxDestroy(c));
}

int main(void)
{
	CUstream s;

	is_int(cublasCreate_v2(&h), CUBLAS_STATUS_NOT_INITIALIZED, "no handle without a context");
	drv_start();
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	is_int(cublasCreate_v2(&h), CUBLAS_STATUS_SUCCESS, "a handle");
	for (int t = 0; t < 4; t++)
		gemm(t & 1, t >> 1, 33, 65, 17, 1.5f, t & 1 ? 0 : -0.5f, t & 1 ? s : NULL);
	gemm(CUBLAS_OP_C, 0, N, N, N, 1, 0, s);
	gemm(0, 0, 8, 8, 0, 1, 2, s);
	vectors(s);
	refusals();
	fault();
	is_int(cublasDestroy_v2(h), CUBLAS_STATUS_SUCCESS, "destroyed");
	is_int(cublasDestroy_v2(h), CUBLAS_STATUS_NOT_INITIALIZED, "only once");
	return tap_done();
}
