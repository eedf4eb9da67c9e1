// SPDX-License-Identifier: MIT
/* cuBLAS: handle, stream and pointer mode, and results where they were asked for. */
#include "cublas_proto.h"
#include "tests/api/serve.h"

#define M 37
#define N 23
#define K 11

static float a[M * K], b[K * N], c[M * N], got[M * N];

/* The library's work on a stream that captures is captured with the rest. */
static void captured(cublasHandle_t h, CUstream s, CUdeviceptr x, CUdeviceptr y)
{
	float one = 1, got = -1;
	CUgraphExec exec;
	size_t n = 0;
	CUgraph g;

	cublasSetPointerMode_v2(h, CUBLAS_POINTER_MODE_HOST);
	must(cuMemsetD32(x, 0x3f800000, 16));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuMemsetD32Async(y, 0, 16, s));
	is_int(cublasSaxpy_v2(h, 16, &one, (float *)x, 1, (float *)y, 1), CUBLAS_STATUS_SUCCESS, "saxpy in a capture");
	one = 4;
	is_int(cublasSaxpy_v2(h, 16, &one, (float *)x, 1, (float *)y, 1), CUBLAS_STATUS_SUCCESS, "and another");
	must(cuStreamEndCapture(s, &g));
	must(cuGraphGetNodes(g, NULL, &n));
	is_int(n, 3, "three nodes");
	must(cuMemcpyDtoH(&got, y, 4));
	ok(got != 5, "nothing ran");
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphDestroy(g));
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&got, y, 4));
	ok(got == 5, "a replay does both: %g", got);
	must(cuMemsetD32(x, 0x40000000, 16));
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&got, y, 4));
	ok(got == 10, "on what the memory holds then: %g", got);
	must(cuGraphExecDestroy(exec));
}

/* While questions about the stream, and about its context, are open at the server. */
static void captured_when_asked(cublasHandle_t h, CUstream s, CUdeviceptr x, CUdeviceptr y)
{
	enum { TIMES = 500 };
	uint32_t *flag, failed = 0;
	float one = 1, got = -1;
	CUgraphExec exec;
	CUgraph g;

	must(cuMemsetD32(x, 0x3f800000, 16));
	must(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	must(cuStreamWaitValue32(s, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	for (int i = 0; i < 3; i++)
		failed += cuStreamQuery(s) != CUDA_ERROR_NOT_READY;
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuMemsetD32Async(y, 0, 16, s));
	for (int i = 0; i < TIMES; i++)
		failed += cublasSaxpy_v2(h, 16, &one, (float *)x, 1, (float *)y, 1) != CUBLAS_STATUS_SUCCESS;
	is_int(failed, 0, "%u calls in a capture on a stream that was asked about", TIMES);
	must(cuStreamEndCapture(s, &g));
	is_cu(cuGraphInstantiate(&exec, g, 0), CUDA_SUCCESS);
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&got, y, 4));
	ok(got == TIMES, "a replay does all: %g", got);
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuMemFreeHost(flag));
}

cublasStatus_t cublasSetVector(int n, int size, const void *x, int incx, void *y, int incy);
cublasStatus_t cublasGetVector_64(int64_t n, int64_t size, const void *x, int64_t incx, void *y, int64_t incy);
cublasStatus_t cublasSetMatrix(int rows, int cols, int size, const void *a, int lda, void *b, int ldb);
cublasStatus_t cublasGetMatrixAsync(int rows, int cols, int size, const void *a, int lda, void *b, int ldb, CUstream s);

/* The helpers that move vectors and matrices. */
static void moved(CUstream s, CUdeviceptr d)
{
	float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0}, m[12] = {0};

	must(cuMemsetD8(d, 0, 64));
	is_int(cublasSetVector(4, 4, x, 2, (void *)d, 3), CUBLAS_STATUS_SUCCESS, "every second element to every third");
	must(cuMemcpyDtoH(m, d, sizeof(m)));
	ok(m[0] == 1 && m[3] == 3 && m[6] == 5 && m[9] == 7 && !m[1] && !m[8], "they are there");
	is_int(cublasGetVector_64(4, 4, (void *)d, 3, y, 1), CUBLAS_STATUS_SUCCESS, "and back");
	ok(y[0] == 1 && y[1] == 3 && y[2] == 5 && y[3] == 7 && !y[4], "side by side");
	/* Two rows of three columns out of four rows. */
	is_int(cublasSetMatrix(2, 2, 4, x, 4, (void *)d, 2), CUBLAS_STATUS_SUCCESS, "a matrix");
	is_int(cublasGetMatrixAsync(2, 2, 4, (void *)d, 2, m, 3, s), CUBLAS_STATUS_SUCCESS, "in the order of a stream");
	must(cuStreamSynchronize(s));
	ok(m[0] == 1 && m[1] == 2 && m[3] == 5 && m[4] == 6, "%g %g %g %g", m[0], m[1], m[3], m[4]);
	is_int(cublasSetVector(0, 4, NULL, 1, NULL, 1), CUBLAS_STATUS_SUCCESS, "nothing to move");
	is_int(cublasSetVector(4, 4, x, 0, (void *)d, 1), CUBLAS_STATUS_INVALID_VALUE, "no step");
	is_int(cublasSetMatrix(4, 2, 4, x, 3, (void *)d, 4), CUBLAS_STATUS_INVALID_VALUE, "columns that overlap");
	is_int(cublasSetVector(1 << 28, 4, x, 1, (void *)d, 1), CUBLAS_STATUS_MAPPING_ERROR, "more than the memory there");
}

int main(void)
{
	cublasHandle_t h, old;
	cublasPointerMode_t mode;
	CUdeviceptr da, db, dc, dx;
	float alpha = 2, beta = 0.5f, dot = 0, want = 0, scal[2] = {3, 0};
	int version = 0, bad = 0;
	CUstream s, t = NULL;
	long before;

	serve(NULL, 1);
	is_int(cublasCreate_v2(&h), CUBLAS_STATUS_NOT_INITIALIZED, "before cuInit there is no handle");
	primary();
	is_int(cublasCreate_v2(NULL), CUBLAS_STATUS_INVALID_VALUE, "nowhere to put a handle");
	is_int(cublasCreate_v2(&h), CUBLAS_STATUS_SUCCESS, "a handle");
	is_int(cublasGetVersion_v2(h, &version), CUBLAS_STATUS_SUCCESS, "its version");
	is_int(version, 130000, "which is the soft library's");
	is_int(cublasGetPointerMode_v2(h, &mode), CUBLAS_STATUS_SUCCESS, "its pointer mode");
	is_int(mode, CUBLAS_POINTER_MODE_HOST, "which is the host's");
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	is_int(cublasSetStream_v2(h, s), CUBLAS_STATUS_SUCCESS, "a stream is set");
	is_int(cublasGetStream_v2(h, &t), CUBLAS_STATUS_SUCCESS, "and read back");
	ok(t == s, "it is that one");
	is_int(cublasSetStream_v2(h, (CUstream)0x99), CUBLAS_STATUS_NOT_INITIALIZED, "no stream at all");
	is_int(cublasSetPointerMode_v2(h, 5), CUBLAS_STATUS_INVALID_VALUE, "no pointer mode");

	for (int i = 0; i < M * K; i++)
		a[i] = (i * 7 % 13) - 6;
	for (int i = 0; i < K * N; i++)
		b[i] = (i * 5 % 11) - 5;
	for (int i = 0; i < M * N; i++)
		c[i] = i % 9;
	must(cuMemAlloc(&da, sizeof(a)));
	must(cuMemAlloc(&db, sizeof(b)));
	must(cuMemAlloc(&dc, sizeof(c)));
	must(cuMemAlloc(&dx, 64));
	must(cuMemcpyHtoD(da, a, sizeof(a)));
	must(cuMemcpyHtoD(db, b, sizeof(b)));
	must(cuMemcpyHtoD(dc, c, sizeof(c)));
	must(cuCtxSynchronize());
	before = rgpuRoundTrips(NULL);
	is_int(cublasSgemm_v2(h, CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, &alpha, (float *)da, M, (float *)db, K, &beta, (float *)dc,
			      M),
	       CUBLAS_STATUS_SUCCESS, "sgemm");
	alpha = 99; /* it was read at the call */
	is_int(rgpuRoundTrips(NULL), before, "without a round trip");
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(got, dc, sizeof(got)));
	for (int i = 0; i < M; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;

			for (int k = 0; k < K; k++)
				sum += a[i + k * M] * b[k + j * K];
			bad += got[i + j * M] != 2 * sum + 0.5f * c[i + j * M];
		}
	is_int(bad, 0, "every element");
	is_int(cublasSgemm_v2(h, 3, CUBLAS_OP_N, M, N, K, &alpha, (float *)da, M, (float *)db, K, &beta, (float *)dc, M),
	       CUBLAS_STATUS_INVALID_VALUE, "an operation that is none");
	is_int(cublasSgemm_v2(h, 0, 0, -1, N, K, &alpha, (float *)da, M, (float *)db, K, &beta, (float *)dc, M),
	       CUBLAS_STATUS_INVALID_VALUE, "a negative size");
	is_int(cublasSgemm_v2(h, 0, 0, M, N, K, &alpha, (float *)da, M - 1, (float *)db, K, &beta, (float *)dc, M),
	       CUBLAS_STATUS_INVALID_VALUE, "a leading dimension that is too small");
	is_int(cublasSgemm_v2(h, 0, 0, M, N, K + 1, &alpha, (float *)da, M, (float *)db, K + 1, &beta, (float *)dc, M),
	       CUBLAS_STATUS_INVALID_VALUE, "a matrix that reaches beyond its memory");

	alpha = 3;
	is_int(cublasSaxpy_v2(h, 200, &alpha, (float *)da, 2, (float *)dc, 1), CUBLAS_STATUS_SUCCESS, "saxpy");
	must(cuStreamSynchronize(s));
	memcpy(c, got, sizeof(c));
	must(cuMemcpyDtoH(got, dc, sizeof(got)));
	bad = 0;
	for (int i = 0; i < 200; i++)
		bad += got[i] != c[i] + 3 * a[2 * i];
	is_int(bad, 0, "every element");

	for (int i = 0; i < 100; i++)
		want += a[i] * b[i];
	before = rgpuRoundTrips("cublasSdot_v2");
	is_int(cublasSdot_v2(h, 100, (float *)da, 1, (float *)db, 1, &dot), CUBLAS_STATUS_SUCCESS, "sdot to the host");
	ok(dot == want, "%g", dot);
	is_int(rgpuRoundTrips("cublasSdot_v2"), before + 1, "is one round trip");
	moved(s, dx);
	is_int(cublasSetPointerMode_v2(h, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS, "pointers to the device");
	cublasGetPointerMode_v2(h, &mode);
	is_int(mode, CUBLAS_POINTER_MODE_DEVICE, "the mode is kept");
	must(cuMemcpyHtoD(dx, scal, sizeof(scal)));
	is_int(cublasSdot_v2(h, 100, (float *)da, 1, (float *)db, 1, (float *)(dx + 4)), CUBLAS_STATUS_SUCCESS,
	       "sdot to the device");
	is_int(rgpuRoundTrips("cublasSdot_v2"), before + 1, "is none");
	is_int(cublasSaxpy_v2(h, 100, (float *)dx, (float *)da, 1, (float *)db, 1), CUBLAS_STATUS_SUCCESS,
	       "a scalar on the device");
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(scal, dx, sizeof(scal)));
	ok(scal[1] == want, "the result lies there");
	must(cuMemcpyDtoH(got, db, 400));
	bad = 0;
	for (int i = 0; i < 100; i++)
		bad += got[i] != b[i] + 3 * a[i];
	is_int(bad, 0, "and was used from there");
	/* A scalar on the device is one of its stream: read when the stream has come there. */
	must(cuMemsetD32(dx + 8, 0, 1));
	must(cuMemsetD32(dx + 12, 0x40000000, 1));
	must(cuMemcpyHtoD(db, b, 400));
	must(cuStreamWaitValue32(s, dx + 8, 1, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemsetD32Async(dx + 12, 0x40a00000, 1, s));
	is_int(cublasSaxpy_v2(h, 100, (float *)(dx + 12), (float *)da, 1, (float *)db, 1), CUBLAS_STATUS_SUCCESS,
	       "a scalar that the stream has yet to write");
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuStreamWriteValue32(t, dx + 8, 1, 0));
	must(cuStreamSynchronize(s));
	must(cuStreamDestroy(t));
	must(cuMemcpyDtoH(got, db, 400));
	bad = 0;
	for (int i = 0; i < 100; i++)
		bad += got[i] != b[i] + 5 * a[i];
	is_int(bad, 0, "is what it wrote");
	captured(h, s, da, db);
	captured_when_asked(h, s, da, db);
	old = h;
	is_int(cublasDestroy_v2(h), CUBLAS_STATUS_SUCCESS, "destroyed");
	is_int(cublasDestroy_v2(old), CUBLAS_STATUS_NOT_INITIALIZED, "once");
	is_int(cublasSetStream_v2(old, s), CUBLAS_STATUS_NOT_INITIALIZED, "the handle is stale");
	is_int(cublasCreate_v2(&h), CUBLAS_STATUS_SUCCESS, "its place is free for another");
	is_int(cublasDestroy_v2(h), CUBLAS_STATUS_SUCCESS, "which goes, too");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	return tap_done();
}
