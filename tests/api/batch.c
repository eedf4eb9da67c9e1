// SPDX-License-Identifier: MIT
/* Batches of copies, flat and as boxes. */
#include "tests/api/serve.h"

static void flat(void)
{
	CUmemcpyAttributes attr = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	int up[2] = {3, 4}, down[2] = {0};
	CUdeviceptr d, dst[4], src[4];
	size_t bytes[4] = {4, 4, 4, 4}, first = 0;
	CUstream s;

	must(cuMemAlloc(&d, 16));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	dst[0] = d;
	src[0] = (CUdeviceptr)&up[0];
	dst[1] = d + 4;
	src[1] = (CUdeviceptr)&up[1];
	dst[2] = (CUdeviceptr)&down[1];
	src[2] = d;
	dst[3] = (CUdeviceptr)&down[0];
	src[3] = d + 4;
	is_cu(cuMemcpyBatchAsync(dst, src, bytes, 4, &attr, &first, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyBatchAsync(dst, src, bytes, 0, &attr, &first, 1, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyBatchAsync(dst, src, bytes, 4, &attr, &first, 0, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyBatchAsync(dst, src, bytes, 4, &attr, &first, 1, s), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	ok(down[0] == 4 && down[1] == 3, "up and down in one batch: %d %d", down[0], down[1]);
	bytes[2] = 0;
	is_cu(cuMemcpyBatchAsync(dst, src, bytes, 4, &attr, &first, 1, s), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

static void boxes(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUDA_MEMCPY3D_BATCH_OP op[2] = {0};
	float up[3][4], down[3][4] = {{0}};
	CUarray a;
	CUstream s;

	for (int i = 0; i < 12; i++)
		up[i / 4][i % 4] = i + 1;
	must(cuArray3DCreate(&a, &desc));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	op[0].src.type = op[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op[0].dst.type = op[1].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	op[0].src.op.ptr.ptr = (CUdeviceptr)up;
	op[1].dst.op.ptr.ptr = (CUdeviceptr)down;
	op[0].dst.op.array.array = op[1].src.op.array.array = a;
	op[0].dst.op.array.offset = op[1].src.op.array.offset = (CUoffset3D){2, 1, 0};
	op[0].extent = op[1].extent = (CUextent3D){4, 3, 1};
	op[0].srcAccessOrder = op[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	is_cu(cuMemcpy3DBatchAsync(0, op, 0, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpy3DBatchAsync(2, op, 1, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpy3DBatchAsync(2, op, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpy3DBatchAsync(2, op, 0, s), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	ok(!memcmp(up, down, sizeof(up)), "a box into an array and back");
	op[1].src.type = (CUmemcpy3DOperandType)9;
	is_cu(cuMemcpy3DBatchAsync(2, op, 0, s), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
	must(cuArrayDestroy(a));
}

int main(void)
{
	serve(NULL, 1);
	primary();
	flat();
	boxes();
	return tap_done();
}
