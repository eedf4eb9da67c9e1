// SPDX-License-Identifier: MIT
/* Tensor maps, made by the device's own driver. A map can name any address: what it does not own the device refuses to copy. */
#include <string.h>
#include "api/tensor_shape.h"
#include "server/call_module.h"

static CUresult encode(const struct rec_TENSOR_MAP *a, const struct rgpu_tensor_shape *s, CUtensorMap *map)
{
	void *at = (void *)(uintptr_t)a->address;

	if (a->mode == RGPU_TENSOR_TILED)
		return !drv_cuda.cuTensorMapEncodeTiled
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : drv_cuda.cuTensorMapEncodeTiled(map, a->type, a->rank, at, s->dim, s->stride, s->box, s->step,
								 a->interleave, a->swizzle, a->promotion, a->fill);
	if (a->mode == RGPU_TENSOR_IM2COL)
		return !drv_cuda.cuTensorMapEncodeIm2col
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : drv_cuda.cuTensorMapEncodeIm2col(map, a->type, a->rank, at, s->dim, s->stride, s->lower,
								  s->upper, s->channels, s->pixels, s->step, a->interleave,
								  a->swizzle, a->promotion, a->fill);
	if (a->mode == RGPU_TENSOR_IM2COL_WIDE)
		return !drv_cuda.cuTensorMapEncodeIm2colWide
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : drv_cuda.cuTensorMapEncodeIm2colWide(map, a->type, a->rank, at, s->dim, s->stride, s->lower[0],
								      s->upper[0], s->channels, s->pixels, s->step, a->interleave,
								      a->wide, a->swizzle, a->promotion, a->fill);
	return CUDA_ERROR_INVALID_VALUE;
}

void srv_TENSOR_MAP(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_TENSOR_MAP);
	struct rep_TENSOR_MAP r = {0};
	struct rgpu_tensor_shape s;
	struct rec_TENSOR_MAP a;
	const void *bytes;
	CUtensorMap map;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	/* The arrays have five elements, whatever the rank. */
	if (a.shape_n != sizeof(s) || !a.rank || a.rank > 5) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	bytes = srv_bytes(c, &at, sizeof(s));
	if (!bytes)
		return;
	memcpy(&s, bytes, sizeof(s));
	srv_fail(c, encode(&a, &s, &map));
	if (!c->status)
		memcpy(r.map, &map, sizeof(r.map));
	srv_answer(c, &r, sizeof(r));
}

void srv_TENSOR_MAP_ADDRESS(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_TENSOR_MAP_ADDRESS);
	struct rep_TENSOR_MAP_ADDRESS r = {0};
	struct rec_TENSOR_MAP_ADDRESS a;
	const void *bytes;
	CUtensorMap map;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	if (a.old_n != sizeof(map)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	bytes = srv_bytes(c, &at, sizeof(map));
	if (!bytes)
		return;
	memcpy(&map, bytes, sizeof(map));
	if (!drv_cuda.cuTensorMapReplaceAddress)
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
	else
		srv_fail(c, drv_cuda.cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)a.address));
	if (!c->status)
		memcpy(r.map, &map, sizeof(r.map));
	srv_answer(c, &r, sizeof(r));
}
