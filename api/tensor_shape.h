/* SPDX-License-Identifier: MIT */
/* What TENSOR_MAP carries of a tensor's shape. */
#ifndef RGPU_API_TENSOR_SHAPE_H
#define RGPU_API_TENSOR_SHAPE_H

#include <stdint.h>

enum { RGPU_TENSOR_TILED, RGPU_TENSOR_IM2COL, RGPU_TENSOR_IM2COL_WIDE };

struct rgpu_tensor_shape {
	uint64_t dim[5], stride[4];
	uint32_t box[5], step[5];
	int32_t lower[3], upper[3]; /* of the im2col modes, wide: the first of each */
	uint32_t channels, pixels;
};
_Static_assert(sizeof(struct rgpu_tensor_shape) == 144, "the record's array");

#endif
