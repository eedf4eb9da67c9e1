/* SPDX-License-Identifier: MIT */
/* What lowering tells the handlers of matrix products. */
#ifndef SOFTGPU_PTX_TENSOR_H
#define SOFTGPU_PTX_TENSOR_H

#include <string.h>

#include "softgpu/ptx/types.h"

struct tensor_shape {
	u8 m, n, k, d, a, b, c; /* sizes, then element types */
	u8 satfinite;
};

static inline u64 tensor_pack(struct tensor_shape s)
{
	u64 v;

	memcpy(&v, &s, sizeof(v));
	return v;
}

static inline struct tensor_shape tensor_unpack(u64 v)
{
	struct tensor_shape s;

	memcpy(&s, &v, sizeof(s));
	return s;
}

#endif
