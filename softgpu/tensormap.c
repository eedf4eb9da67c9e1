// SPDX-License-Identifier: MIT
/* Tensor maps: what the driver would refuse, and the encoding that the engine reads. */
#include "softgpu/softgpu.h"

#include <string.h>

#include "softgpu/ptx/tensormap.h"

_Static_assert(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ == TENSORMAP_TYPES - 1, "the engine's types are the driver's");

static CUresult not_here(const char *what)
{
	log_line("tensor maps with %s are not supported yet", what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* What all kinds of maps have. */
static CUresult check_common(const CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, uint64_t address,
			     const cuuint64_t *dim, const cuuint64_t *strides, const cuuint32_t *step,
			     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
			     CUtensorMapFloatOOBfill fill)
{
	bool packed = type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
	uint64_t align = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
	bool floating = type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;

	TRY(api_enter());
	if (!map || (uintptr_t)map % 64 || (unsigned int)type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B || !rank || rank > 5 ||
	    !dim || (rank > 1 && !strides) || !step || (unsigned int)interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
	    (unsigned int)swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
	    (unsigned int)promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
	    (unsigned int)fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
		return CUDA_ERROR_INVALID_VALUE;
	if ((interleave && rank < 3) || address % align || (fill && !floating) ||
	    (interleave == CU_TENSOR_MAP_INTERLEAVE_32B && swizzle != CU_TENSOR_MAP_SWIZZLE_32B))
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t d = 0; d < rank; d++) {
		if (!dim[d] || dim[d] > 1ull << 32 || (d + 1 < rank && (strides[d] % align || strides[d] >= 1ull << 40)))
			return CUDA_ERROR_INVALID_VALUE;
		if ((d || interleave) && (!step[d] || step[d] > 8))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (packed)
		return not_here("packed types of 4 and 6 bits");
	return interleave ? not_here("interleaved layouts") : CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dim,
				const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *step,
				CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				CUtensorMapFloatOOBfill fill)
{
	static const uint32_t span[] = {UINT32_MAX, 32, 64, 128, 128, 128, 128};
	struct tensormap m = {.magic = TENSORMAP_MAGIC};
	uint32_t row;

	TRY(check_common(map, type, rank, (uint64_t)(uintptr_t)address, dim, strides, step, interleave, swizzle, promotion,
			 fill));
	if (!box)
		return CUDA_ERROR_INVALID_VALUE;
	row = box[0] * tensormap_type_size(type);
	if (row % 16 || row > span[swizzle])
		return CUDA_ERROR_INVALID_VALUE;
	m.rank = (uint8_t)rank;
	m.type = (uint8_t)type;
	m.swizzle = (uint8_t)swizzle;
	m.fill_nan = (uint8_t)fill;
	m.address = (uint64_t)(uintptr_t)address;
	for (cuuint32_t d = 0; d < rank; d++) {
		if (!box[d] || box[d] > 256)
			return CUDA_ERROR_INVALID_VALUE;
		m.last[d] = (uint32_t)(dim[d] - 1);
		m.box[d] = (uint16_t)box[d];
		m.step[d] = (uint8_t)(d ? step[d] : 1);
		if (d)
			m.stride[d - 1] = strides[d - 1];
	}
	memset(map, 0, sizeof(*map));
	memcpy(map, &m, sizeof(m));
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				 const cuuint64_t *dim, const cuuint64_t *strides, const int *lower, const int *upper,
				 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *step, CUtensorMapInterleave interleave,
				 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	TRY(check_common(map, type, rank, (uint64_t)(uintptr_t)address, dim, strides, step, interleave, swizzle, promotion,
			 fill));
	if (!lower || !upper || rank < 3 || !channels || channels > 256 || !pixels || pixels > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	return not_here("the im2col mode");
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
				     const cuuint64_t *dim, const cuuint64_t *strides, int lower, int upper, cuuint32_t channels,
				     cuuint32_t pixels, const cuuint32_t *step, CUtensorMapInterleave interleave,
				     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				     CUtensorMapFloatOOBfill fill)
{
	(void)lower;
	(void)upper;
	TRY(check_common(map, type, rank, (uint64_t)(uintptr_t)address, dim, strides, step, interleave, swizzle, promotion,
			 fill));
	if (rank < 3 || !channels || channels > 256 || !pixels || pixels > 1024 ||
	    (unsigned int)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128)
		return CUDA_ERROR_INVALID_VALUE;
	return not_here("the wide im2col mode");
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct tensormap m;

	TRY(api_enter());
	if (!map || (uintptr_t)map % 64 || (uintptr_t)address % 16)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&m, map, sizeof(m));
	if (m.magic != TENSORMAP_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	m.address = (uint64_t)(uintptr_t)address;
	memcpy(map, &m, sizeof(m));
	return CUDA_SUCCESS;
}
