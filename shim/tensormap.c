// SPDX-License-Identifier: MIT
/* Tensor maps: what they describe goes to the device's own driver, and its 128 opaque bytes come back. */
#include <string.h>
#include "api/tensor_shape.h"
#include "rgpu_rpc.h"
#include "shim/handles.h"
#include "shim/module_int.h"

struct map {
	CUtensorMap *to;
	unsigned mode, type, rank, interleave, swizzle, promotion, fill, wide;
	const void *address;
	const cuuint64_t *dim, *stride;
	const cuuint32_t *box, *step;
	struct rgpu_tensor_shape shape;
};

static int encode(struct map *m)
{
	struct rgpu_call c;
	uint64_t out[16];
	int r = rgpu_enter(&c, OP_TENSOR_MAP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	/* What must be so that the arrays can be read; all else is the driver's to judge. */
	if (!m->to || (uintptr_t)m->to % 64 || !m->rank || m->rank > 5 || !m->dim || (m->rank > 1 && !m->stride) || !m->step ||
	    (m->mode == RGPU_TENSOR_TILED && !m->box))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned d = 0; d < m->rank; d++) {
		m->shape.dim[d] = m->dim[d];
		m->shape.step[d] = m->step[d];
		if (d + 1 < m->rank)
			m->shape.stride[d] = m->stride[d];
		if (m->box)
			m->shape.box[d] = m->box[d];
	}
	r = rpc_TENSOR_MAP(&c, m->mode, m->type, m->rank, m->interleave, m->swizzle, m->promotion, m->fill, m->wide,
			   (uint64_t)m->address, (const unsigned char *)&m->shape, sizeof(m->shape), out);
	if (!r)
		memcpy(m->to, out, sizeof(out));
	return r;
}

/* The arguments that all three have. */
#define DESCRIBED                                                                                                                \
	.to = tensorMap, .type = type, .rank = rank, .address = address, .dim = dim, .stride = strides, .step = step,            \
	.interleave = interleave, .swizzle = swizzle, .promotion = promotion, .fill = fill

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType type, cuuint32_t rank, void *address,
				const cuuint64_t *dim, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *step,
				CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				CUtensorMapFloatOOBfill fill)
{
	struct map m = {DESCRIBED, .mode = RGPU_TENSOR_TILED, .box = box};

	return encode(&m);
}

/* The corners have a number for each dimension between the channels and the batch. */
static int corners(struct map *m, const int *lower, const int *upper)
{
	if (m->rank < 3 || m->rank > 5 || !lower || !upper)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned d = 0; d < m->rank - 2; d++) {
		m->shape.lower[d] = lower[d];
		m->shape.upper[d] = upper[d];
	}
	return 0;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType type, cuuint32_t rank, void *address,
				 const cuuint64_t *dim, const cuuint64_t *strides, const int *lower, const int *upper,
				 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *step, CUtensorMapInterleave interleave,
				 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	struct map m = {DESCRIBED, .mode = RGPU_TENSOR_IM2COL, .shape = {.channels = channels, .pixels = pixels}};
	int r = corners(&m, lower, upper);

	return r ? r : encode(&m);
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType type, cuuint32_t rank, void *address,
				     const cuuint64_t *dim, const cuuint64_t *strides, int lower, int upper, cuuint32_t channels,
				     cuuint32_t pixels, const cuuint32_t *step, CUtensorMapInterleave interleave,
				     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
				     CUtensorMapFloatOOBfill fill)
{
	struct map m = {DESCRIBED, .mode = RGPU_TENSOR_IM2COL_WIDE, .wide = mode,
			.shape = {.lower = {lower}, .upper = {upper}, .channels = channels, .pixels = pixels}};

	return encode(&m);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *address)
{
	struct rgpu_call c;
	uint64_t out[16];
	int r = rgpu_enter(&c, OP_TENSOR_MAP_ADDRESS);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r && (!tensorMap || (uintptr_t)tensorMap % 64))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	r = rpc_TENSOR_MAP_ADDRESS(&c, (const unsigned char *)tensorMap, sizeof(*tensorMap), (uint64_t)address, out);
	if (!r)
		memcpy(tensorMap, out, sizeof(out));
	return r;
}
