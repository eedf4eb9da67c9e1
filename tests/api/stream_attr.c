// SPDX-License-Identifier: MIT
/* Stream attributes, and batches of stream memory operations. */
#include "tests/api/serve.h"

static void attributes(void)
{
	CUstreamAttrValue v = {.priority = -3}, got = {0};
	CUstream s, t;
	int p = 9;

	must(cuStreamCreate(&s, 0));
	must(cuStreamCreate(&t, 0));
	is_cu(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v), CUDA_SUCCESS);
	is_cu(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got), CUDA_SUCCESS);
	is_int(got.priority, -3, "the priority is what was set");
	is_cu(cuStreamGetPriority(s, &p), CUDA_SUCCESS);
	is_int(p, -3, "asked otherwise, too");
	v.syncPolicy = CU_SYNC_POLICY_SPIN;
	is_cu(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v), CUDA_SUCCESS);
	is_cu(cuStreamCopyAttributes(t, s), CUDA_SUCCESS);
	is_cu(cuStreamGetAttribute(t, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &got), CUDA_SUCCESS);
	is_int(got.syncPolicy, CU_SYNC_POLICY_SPIN, "copied to another stream");
	is_cu(cuStreamGetAttribute(t, (CUstreamAttrID)77, &got), CUDA_ERROR_INVALID_VALUE);
	v.accessPolicyWindow = (CUaccessPolicyWindow){.base_ptr = (void *)0x1000, .num_bytes = 64};
	is_cu(cuStreamSetAttribute(t, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamGetAttribute((CUstream)&v, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got), CUDA_ERROR_INVALID_HANDLE);
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

static void batches(void)
{
	CUstreamBatchMemOpParams op[4] = {0};
	unsigned int out[4] = {0};
	CUdeviceptr d;
	CUstream s;

	must(cuMemAlloc(&d, 16));
	must(cuMemsetD8(d, 0, 16));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	op[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[0].writeValue.address = d;
	op[0].writeValue.value = 5;
	op[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
	op[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[2].waitValue.address = d;
	op[2].waitValue.value = 5;
	op[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[3].writeValue.address = d + 8;
	op[3].writeValue.value64 = 6;
	is_cu(cuStreamBatchMemOp(s, 0, op, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamBatchMemOp(s, 4, op, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamBatchMemOp(s, 4, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamBatchMemOp(s, 4, op, 0), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	must(cuMemcpyDtoH(out, d, 16));
	ok(out[0] == 5 && out[2] == 6, "both writes are there, and the wait between them ended");
	op[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	is_cu(cuStreamBatchMemOp(s, 1, op, 0), CUDA_ERROR_NOT_SUPPORTED);
	op[0].operation = (CUstreamBatchMemOpType)99;
	is_cu(cuStreamBatchMemOp(s, 1, op, 0), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamDestroy(s));
	must(cuMemFree(d));
}

int main(void)
{
	serve(NULL, 1);
	primary();
	attributes();
	batches();
	return tap_done();
}
