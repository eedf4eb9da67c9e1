// SPDX-License-Identifier: MIT
/* Names and texts of errors: local, and there before cuInit. */
#include "shim/cuda_api.h"

static const struct {
	CUresult error;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text) {CUDA_##name, "CUDA_" #name, text},
#include "api/errors.def"
#undef ERROR
};

static int find(CUresult error)
{
	for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].error == error)
			return i;
	return -1;
}

CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **pStr)
{
	int i = find(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = i < 0 ? NULL : errors[i].text;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
