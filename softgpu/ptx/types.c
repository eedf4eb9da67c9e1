/* SPDX-License-Identifier: MIT */
/* Names and sizes of PTX's fundamental types. */
#include <string.h>

#include "softgpu/ptx/types.h"

static const struct {
	const char *name;
	u8 size;
} types[TY_COUNT] = {
	[TY_NONE] = {"", 0},	     [TY_B8] = {"b8", 1},	  [TY_B16] = {"b16", 2},	 [TY_B32] = {"b32", 4},
	[TY_B64] = {"b64", 8},	     [TY_B128] = {"b128", 16},	  [TY_U8] = {"u8", 1},		 [TY_U16] = {"u16", 2},
	[TY_U32] = {"u32", 4},	     [TY_U64] = {"u64", 8},	  [TY_S8] = {"s8", 1},		 [TY_S16] = {"s16", 2},
	[TY_S32] = {"s32", 4},	     [TY_S64] = {"s64", 8},	  [TY_F16] = {"f16", 2},	 [TY_F32] = {"f32", 4},
	[TY_F64] = {"f64", 8},	     [TY_BF16] = {"bf16", 2},	  [TY_F16X2] = {"f16x2", 4},	 [TY_BF16X2] = {"bf16x2", 4},
	[TY_U16X2] = {"u16x2", 4},   [TY_S16X2] = {"s16x2", 4},	  [TY_PRED] = {"pred", 0},	 [TY_TF32] = {"tf32", 4},
	[TY_E4M3] = {"e4m3", 1},     [TY_E5M2] = {"e5m2", 1},	  [TY_E4M3X2] = {"e4m3x2", 2},	 [TY_E5M2X2] = {"e5m2x2", 2},
	[TY_E3M2] = {"e3m2", 1},     [TY_E2M3] = {"e2m3", 1},	  [TY_E2M1] = {"e2m1", 1},	 [TY_E3M2X2] = {"e3m2x2", 2},
	[TY_E2M3X2] = {"e2m3x2", 2}, [TY_E2M1X2] = {"e2m1x2", 1}, [TY_UE8M0X2] = {"ue8m0x2", 2}, [TY_S4] = {"s4", 1},
	[TY_U4] = {"u4", 1},	     [TY_B1] = {"b1", 1},
};

u32 type_size(enum type t)
{
	return types[t].size;
}

enum type type_by_name(const char *s, size_t len)
{
	if (len < 2 || !strchr("busfpte", s[0]))
		return TY_NONE;
	for (int t = 1; t < TY_COUNT; t++)
		if (!strncmp(types[t].name, s, len) && !types[t].name[len])
			return t;
	return TY_NONE;
}

bool type_is_float(enum type t)
{
	return (t >= TY_F16 && t <= TY_BF16X2) || (t >= TY_TF32 && t <= TY_UE8M0X2);
}

bool type_is_signed(enum type t)
{
	return t >= TY_S8 && t <= TY_S64;
}
