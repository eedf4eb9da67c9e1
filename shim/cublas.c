// SPDX-License-Identifier: MIT
/* The one thing of libcublas that is not generated: its statuses for what is found on the client. */
#include "shim/cublas_api.h"

cublasStatus_t cublas_status(int cu)
{
	switch (cu) {
	case CUDA_SUCCESS:
		return CUBLAS_STATUS_SUCCESS;
	case CUDA_ERROR_INVALID_VALUE:
		return CUBLAS_STATUS_INVALID_VALUE;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_INVALID_HANDLE:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	case CUDA_ERROR_NOT_SUPPORTED:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}
