// SPDX-License-Identifier: MIT
/* Names and texts of errors are local: no server is needed for them. */
#include "tests/api/serve.h"

int main(void)
{
	const char *s = NULL;

	is_cu(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &s), CUDA_SUCCESS);
	is_str(s, "CUDA_ERROR_OUT_OF_MEMORY", "a name");
	is_cu(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &s), CUDA_SUCCESS);
	is_str(s, "out of memory", "a text");
	is_cu(cuGetErrorName(CUDA_SUCCESS, &s), CUDA_SUCCESS);
	is_str(s, "CUDA_SUCCESS", "success has one, too");
	is_cu(cuGetErrorName((CUresult)12345, &s), CUDA_ERROR_INVALID_VALUE);
	ok(!s, "an unknown error has no name");
	is_cu(cuGetErrorString((CUresult)12345, &s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
	/* No server at all: one error, at cuInit, and what comes after it is not half there. */
	setenv("RGPU_SERVER", "127.0.0.1:1", 1);
	setenv("RGPU_KEY", "/nonexistent", 1);
	ok(cuInit(0) != CUDA_SUCCESS, "cuInit fails without a server");
	is_cu(cuDeviceGetCount(&(int){0}), CUDA_ERROR_NOT_INITIALIZED);
	is_cu(cuMemAlloc(&(CUdeviceptr){0}, 4), CUDA_ERROR_NOT_INITIALIZED);
	return tap_done();
}
