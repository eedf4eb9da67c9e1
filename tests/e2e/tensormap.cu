// SPDX-License-Identifier: MIT
// A matrix transposed tile by tile: loaded and stored by tensor copies, whose maps the driver encodes.
#include <cuda.h>
#include "tests/e2e/e2e.h"

enum { TILE = 32, ROWS = 80, COLS = 96 };

static __device__ unsigned smem(const void *p)
{
	return (unsigned)__cvta_generic_to_shared(p);
}

__global__ void transpose(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to)
{
	__shared__ alignas(1024) int tile[TILE][TILE], turned[TILE][TILE];
	__shared__ uint64_t bar;
	int x = blockIdx.x * TILE, y = blockIdx.y * TILE;

	if (threadIdx.x == 0) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(smem(&bar)) : "memory");
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(&bar)), "r"((unsigned)sizeof(tile)) : "memory");
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(smem(tile)),
			     "l"(&from), "r"(x), "r"(y), "r"(smem(&bar))
			     : "memory");
	}
	__syncthreads();
	asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again;}" ::"r"(smem(&bar)) : "memory");
	// the loaded tile is swizzled over 128 bytes, a row: chunk c of row r lies at c ^ r % 8
	for (int k = threadIdx.x; k < TILE * TILE; k += blockDim.x) {
		int r = k / TILE, c = k % TILE;

		turned[c][r] = tile[r][(c / 4 ^ r % 8) * 4 + c % 4];
	}
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x == 0) {
		asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(y), "r"(x), "r"(smem(turned)) : "memory");
		asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
	}
}

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
			      const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUresult encode(encode_fn fn, CUtensorMap *map, void *at, cuuint64_t cols, cuuint64_t rows, CUtensorMapSwizzle swizzle, cuuint32_t wide)
{
	const cuuint64_t dim[2] = {cols, rows}, stride[1] = {cols * sizeof(int)};
	const cuuint32_t box[2] = {wide, TILE}, step[2] = {1, 1};

	return fn(map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, at, dim, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

int main(void)
{
	static int in[ROWS][COLS], out[COLS][ROWS];
	cudaDriverEntryPointQueryResult found;
	CUtensorMap from, to;
	encode_fn fn;
	CUresult (*move)(CUtensorMap *, void *);
	int *din, *dout, has = 0, bad = 0;

	for (int i = 0; i < ROWS * COLS; i++)
		in[i / COLS][i % COLS] = i * 7;
	RT(cudaDeviceGetAttribute(&has, (cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0));
	bad += has != 1;
	RT(cudaMalloc(&din, sizeof(in)));
	RT(cudaMalloc(&dout, sizeof(out)));
	RT(cudaMemcpy(din, in, sizeof(in), cudaMemcpyHostToDevice));
	RT(cudaMemset(dout, 0, sizeof(out)));
	RT(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&fn, 12000, cudaEnableDefault, &found));
	bad += found != cudaDriverEntryPointSuccess;
	RT(cudaGetDriverEntryPointByVersion("cuTensorMapReplaceAddress", (void **)&move, 12000, cudaEnableDefault, &found));
if (encode(fn, &from, din, COLS, ROWS, CU_TENSOR_MAP_SWIZZLE_128B, TILE) || encode(fn, &to, din, ROWS, COLS, CU_TENSOR_MAP_SWIZZLE_NONE, TILE) ||
	    move(&to, dout))
		die("the maps were refused");
	transpose<<<dim3((COLS + TILE - 1) / TILE, (ROWS + TILE - 1) / TILE), 64>>>(from, to);
	RT(cudaMemcpy(out, dout, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < ROWS * COLS; i++)
		bad += out[i % COLS][i / COLS] != in[i / COLS][i % COLS];
	// what the driver refuses: a row that is wider than the swizzle, an address off by 4
	bad += encode(fn, &from, din, COLS, ROWS, CU_TENSOR_MAP_SWIZZLE_128B, 64) != CUDA_ERROR_INVALID_VALUE;
	bad += encode(fn, &from, din + 1, COLS, ROWS, CU_TENSOR_MAP_SWIZZLE_NONE, TILE) != CUDA_ERROR_INVALID_VALUE;
	printf("%d wrong\n", bad);
	return bad != 0;
}
