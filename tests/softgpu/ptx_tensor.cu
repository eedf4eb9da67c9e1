// SPDX-License-Identifier: MIT
// Kernels for ptx_tensor.c: matrix products in several shapes and types, asynchronous copies, barriers, grid barriers.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#define K extern "C" __global__ void
using namespace nvcuda;
namespace cg = cooperative_groups;

template <int M, int N, int D, class T, class A, class LA, class LB>
__device__ void product(const T *a, const T *b, A *c, wmma::layout_t lc)
{
	wmma::fragment<wmma::matrix_a, M, N, D, T, LA> fa;
	wmma::fragment<wmma::matrix_b, M, N, D, T, LB> fb;
	wmma::fragment<wmma::accumulator, M, N, D, A> fc;
	wmma::load_matrix_sync(fc, c, lc == wmma::mem_row_major ? N : M, lc);
	wmma::load_matrix_sync(fa, a, std::is_same<LA, wmma::row_major>::value ? D : M);
	wmma::load_matrix_sync(fb, b, std::is_same<LB, wmma::row_major>::value ? N : D);
	wmma::mma_sync(fc, fa, fb, fc);
	for (int i = 0; i < fc.num_elements; i++)
		fc.x[i] = fc.x[i] + fc.x[i];
	wmma::store_matrix_sync(c, fc, lc == wmma::mem_row_major ? N : M, lc);
}
using row = wmma::row_major;
using col = wmma::col_major;
K wmma_f32(const half *a, const half *b, float *c) { product<16, 16, 16, half, float, row, row>(a, b, c, wmma::mem_row_major); }
K wmma_f16(const half *a, const half *b, half *c) { product<16, 16, 16, half, half, col, row>(a, b, c, wmma::mem_col_major); }
K wmma_wide(const half *a, const half *b, float *c) { product<8, 32, 16, half, float, row, col>(a, b, c, wmma::mem_row_major); }
K wmma_tall(const half *a, const half *b, float *c) { product<32, 8, 16, half, float, col, col>(a, b, c, wmma::mem_col_major); }
K wmma_s8(const signed char *a, const signed char *b, int *c) { product<16, 16, 16, signed char, int, row, col>(a, b, c, wmma::mem_row_major); }
K wmma_u8(const unsigned char *a, const unsigned char *b, int *c) { product<16, 16, 16, unsigned char, int, col, row>(a, b, c, wmma::mem_row_major); }
K wmma_bf16(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) { product<16, 16, 16, __nv_bfloat16, float, row, row>(a, b, c, wmma::mem_row_major); }
K wmma_f64(const double *a, const double *b, double *c) { product<8, 8, 4, double, double, row, col>(a, b, c, wmma::mem_row_major); }

// D = A·B + C for one warp, from row-major matrices, with the fragments filled as the manual says
#define REG2(p) (*(const unsigned *)(p))
K mma_f16_k16(const half *a, const half *bt, float *c)
{
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	unsigned A[4] = { REG2(a + g * 16 + 2 * t), REG2(a + (g + 8) * 16 + 2 * t), REG2(a + g * 16 + 2 * t + 8), REG2(a + (g + 8) * 16 + 2 * t + 8) };
	unsigned B[2] = { REG2(bt + g * 16 + 2 * t), REG2(bt + g * 16 + 2 * t + 8) };
	float *p = c + g * 8 + 2 * t, *q = p + 64;
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		     : "+f"(p[0]), "+f"(p[1]), "+f"(q[0]), "+f"(q[1]) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

// the same through shared memory and ldmatrix; B is row-major there and transposed on the way
K mma_ldmatrix(const half *a, const half *b, half *c)
{
	__shared__ __align__(16) half sa[16 * 16], sb[16 * 8];
	for (int i = threadIdx.x; i < 256; i += 32)
		sa[i] = a[i];
	for (int i = threadIdx.x; i < 128; i += 32)
		sb[i] = b[i];
	__syncwarp();
	unsigned A[4], B[2], C[2], l = threadIdx.x;
	unsigned pa = (unsigned)__cvta_generic_to_shared(sa + (l % 16) * 16 + l / 16 * 8), pb = (unsigned)__cvta_generic_to_shared(sb + (l % 16) * 8);
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(A[0]), "=r"(A[1]), "=r"(A[2]), "=r"(A[3]) : "r"(pa));
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];" : "=r"(B[0]), "=r"(B[1]) : "r"(pb));
	int g = l / 4, t = l % 4;
	C[0] = REG2(c + g * 8 + 2 * t);
	C[1] = REG2(c + (g + 8) * 8 + 2 * t);
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};"
		     : "+r"(C[0]), "+r"(C[1]) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
	*(unsigned *)(c + g * 8 + 2 * t) = C[0];
	*(unsigned *)(c + (g + 8) * 8 + 2 * t) = C[1];
}

K mma_s8_k32(const signed char *a, const signed char *bt, int *c)
{
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	unsigned A[4] = { REG2(a + g * 32 + 4 * t), REG2(a + (g + 8) * 32 + 4 * t), REG2(a + g * 32 + 4 * t + 16), REG2(a + (g + 8) * 32 + 4 * t + 16) };
	unsigned B[2] = { REG2(bt + g * 32 + 4 * t), REG2(bt + g * 32 + 4 * t + 16) };
	int *p = c + g * 8 + 2 * t, *q = p + 64;
	asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		     : "+r"(p[0]), "+r"(p[1]), "+r"(q[0]), "+r"(q[1]) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

K mma_tf32_k8(const float *a, const float *bt, float *c)
{
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	unsigned A[4] = { REG2(a + g * 8 + t), REG2(a + (g + 8) * 8 + t), REG2(a + g * 8 + t + 4), REG2(a + (g + 8) * 8 + t + 4) };
	unsigned B[2] = { REG2(bt + g * 8 + t), REG2(bt + g * 8 + t + 4) };
	float *p = c + g * 8 + 2 * t, *q = p + 64;
	asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
		     : "+f"(p[0]), "+f"(p[1]), "+f"(q[0]), "+f"(q[1]) : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

K mma_f64_k4(const double *a, const double *bt, double *c)
{
	int g = threadIdx.x / 4, t = threadIdx.x % 4;
	double *p = c + g * 8 + 2 * t;
	asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(p[0]), "+d"(p[1]) : "d"(a[g * 4 + t]), "d"(bt[g * 4 + t]));
}

K reductions(int *o, const int *in)
{
	int v = in[threadIdx.x];
	o[threadIdx.x] = __reduce_add_sync(~0u, v);
	o[32 + threadIdx.x] = __reduce_min_sync(~0u, v);
	o[64 + threadIdx.x] = __reduce_max_sync(threadIdx.x < 16 ? 0xffffu : 0xffff0000u, (unsigned)v);
	o[96 + threadIdx.x] = __reduce_xor_sync(~0u, (unsigned)v);
}

K pipeline(const float *in, float *o, int n)
{
	__shared__ __align__(16) float s[2][256];
	__pipeline_memcpy_async(&s[0][threadIdx.x * 4], in + threadIdx.x * 4, 16);
	__pipeline_commit();
	for (int k = 1; k < n; k++) {
		__pipeline_memcpy_async(&s[k & 1][threadIdx.x * 4], in + k * 256 + threadIdx.x * 4, 16);
		__pipeline_commit();
		__pipeline_wait_prior(1);
		__syncthreads();
		o[(k - 1) * 64 + threadIdx.x] = s[(k - 1) & 1][255 - threadIdx.x];
		__syncthreads();
	}
	__pipeline_wait_prior(0);
}

// warps in two roles over two mbarriers
K barriers(int *o, int rounds)
{
#pragma nv_diag_suppress 20054
	__shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
	__shared__ int box;
	if (threadIdx.x == 0) {
		init(&full, 33);
		init(&empty, 32);
	}
	__syncthreads();
	if (threadIdx.x < 32) {
		for (int k = 0; k < rounds; k++) {
			full.arrive_and_wait();
			o[k * 32 + threadIdx.x] = box;
			(void)empty.arrive();
		}
	} else if (threadIdx.x == 32) {
		for (int k = 0; k < rounds; k++) {
			if (k)
				empty.wait_parity((k - 1) & 1);
			box = 100 + k;
			(void)full.arrive();
		}
	}
}

K grid_sync(int *x, int n)
{
	auto g = cg::this_grid();
	int *y = x + g.size();
	for (int k = 0; k < n; k++) {
		y[g.thread_rank()] = x[(g.thread_rank() + 33) % g.size()] + 1;
		g.sync();
		x[g.thread_rank()] = y[(g.thread_rank() + 65) % g.size()] + 1;
		g.sync();
	}
}
