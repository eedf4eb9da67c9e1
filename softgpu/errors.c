// SPDX-License-Identifier: MIT
/* The names and texts of CUDA's errors. */
#include "softgpu/softgpu.h"

static const struct {
	CUresult code;
	const char *name, *text;
} table[] = {
#define ERROR(name, text) {CUDA_##name, "CUDA_" #name, text},
#include "softgpu/errors.def"
#undef ERROR
};

static int find(CUresult code)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].code == code)
			return (int)i;
	return -1;
}

CUresult cuGetErrorName(CUresult error, const char **str)
{
	int i = find(error);

	if (!str)
		return CUDA_ERROR_INVALID_VALUE;
	*str = i < 0 ? NULL : table[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **str)
{
	int i = find(error);

	if (!str)
		return CUDA_ERROR_INVALID_VALUE;
	*str = i < 0 ? NULL : table[i].text;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
