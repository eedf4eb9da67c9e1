// SPDX-License-Identifier: MIT
// cuBLAS: C = 2·A·Bᵀ − C on a stream, checked against the CPU; prototypes by hand, as the compiler's packages have no cuBLAS
// header.
#include "tests/e2e/e2e.h"

extern "C" {
typedef struct cublasContext *cublasHandle_t;
int cublasCreate_v2(cublasHandle_t *h);
int cublasDestroy_v2(cublasHandle_t h);
int cublasSetStream_v2(cublasHandle_t h, cudaStream_t s);
int cublasSgemm_v2(cublasHandle_t h, int transa, int transb, int m, int n, int k, const float *alpha, const float *a, int lda,
		   const float *b, int ldb, const float *beta, float *c, int ldc);
}

#define BLAS(call)                                                                                                               \
	do {                                                                                                                     \
		int st_ = (call);                                                                                                \
		if (st_)                                                                                                         \
			die("%s: cuBLAS status %d", #call, st_);                                                                 \
	} while (0)

int main()
{
	const int m = 211, n = 128, k = 97; // column-major, all three different
	float *a = (float *)malloc(m * k * 4), *b = (float *)malloc(n * k * 4), *c = (float *)malloc(m * n * 4),
	      *want = (float *)malloc(m * n * 4);
	float *da, *db, *dc, alpha = 2, beta = -1;
	uint32_t seed = 6;
	cublasHandle_t h;
	cudaStream_t s;

	for (int i = 0; i < m * k; i++)
		a[i] = (int)(e2e_next(&seed) % 15) - 7;
	for (int i = 0; i < n * k; i++)
		b[i] = (int)(e2e_next(&seed) % 15) - 7;
	for (int i = 0; i < m * n; i++)
		c[i] = (int)(e2e_next(&seed) % 15) - 7;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;

			for (int l = 0; l < k; l++)
				sum += a[i + l * m] * b[j + l * n];
			want[i + j * m] = alpha * sum + beta * c[i + j * m];
		}
	RT(cudaStreamCreate(&s));
	RT(cudaMalloc(&da, m * k * 4));
	RT(cudaMalloc(&db, n * k * 4));
	RT(cudaMalloc(&dc, m * n * 4));
	RT(cudaMemcpyAsync(da, a, m * k * 4, cudaMemcpyHostToDevice, s));
	RT(cudaMemcpyAsync(db, b, n * k * 4, cudaMemcpyHostToDevice, s));
	RT(cudaMemcpyAsync(dc, c, m * n * 4, cudaMemcpyHostToDevice, s));
	BLAS(cublasCreate_v2(&h));
	BLAS(cublasSetStream_v2(h, s));
	BLAS(cublasSgemm_v2(h, 0 /* as it is */, 1 /* transposed */, m, n, k, &alpha, da, m, db, n, &beta, dc, m));
	RT(cudaMemcpyAsync(c, dc, m * n * 4, cudaMemcpyDeviceToHost, s));
	RT(cudaStreamSynchronize(s));
	BLAS(cublasDestroy_v2(h));
	for (int i = 0; i < m * n; i++)
		if (c[i] != want[i])
			die("c[%d,%d] = %g, want %g", i % m, i / m, c[i], want[i]);
	printf("sgemm: %d × %d × %d right\n", m, n, k);
	return 0;
}
