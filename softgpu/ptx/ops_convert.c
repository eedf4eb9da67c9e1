/* SPDX-License-Identifier: MIT */
/* cvt: the forms that matter for speed; ops_general.c knows all the others. */
#include <math.h>

#include "softgpu/ptx/half.h"
#include "softgpu/ptx/whole_handlers.h"

static inline f32 relu(f32 v)
{
	return v > 0 ? v : v != v ? v : 0.0f;
}

/* Out of range saturates, NaN is 0. The comparisons keep the C conversion defined. */
static inline s32 f32_to_s32(f32 v)
{
	s32 r = (s32)(v >= -0x1p31f && v < 0x1p31f ? v : 0.0f);

	r = v >= 0x1p31f ? INT32_MAX : r;
	return v < -0x1p31f ? INT32_MIN : r;
}

static inline u32 f32_to_u32(f32 v)
{
	u32 r = (u32)(v > 0 && v < 0x1p32f ? v : 0.0f);

	return v >= 0x1p32f ? FULL : r;
}

static inline s32 f64_to_s32(f64 v)
{
	s32 r = (s32)(v >= -0x1p31 && v < 0x1p31 ? v : 0.0);

	r = v >= 0x1p31 ? INT32_MAX : r;
	return v >= -0x1p31 ? r : INT32_MIN; /* NaN too, from f64 */
}

#define OP OP_FUNC
#include "softgpu/ptx/ops_convert.def"
#undef OP

#define OP OP_ROW
TABLE(convert) = {
#include "softgpu/ptx/ops_convert.def"
	{NULL, NULL, NULL, 0},
};

#undef OP
#define OP WHOLE_FUNC
#include "softgpu/ptx/ops_convert.def"
#undef OP

#define OP WHOLE_ROW
WHOLE_TABLE(convert) = {
#include "softgpu/ptx/ops_convert.def"
	{NULL, NULL, NULL, NULL, NULL},
};
