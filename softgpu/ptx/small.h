/* SPDX-License-Identifier: MIT */
/* What lowering tells the handlers of conversions to and from short floats. */
#ifndef SOFTGPU_PTX_SMALL_H
#define SOFTGPU_PTX_SMALL_H

#include <string.h>

#include "softgpu/ptx/types.h"

enum small_flags { SF_RELU = 1, SF_SATFINITE = 2, SF_TWO = 4, SF_WIDE = 8 };
#define RND_S 7 /* beside enum rnd: by random bits */

struct small {
	u8 to, from;	     /* element of the result, or a pair's type */
	u8 rnd, flags, bits; /* bits: from one value of a pair to the next */
	u8 pad[3];
};

static inline u64 small_pack(struct small s)
{
	u64 v;

	memcpy(&v, &s, sizeof(v));
	return v;
}

static inline struct small small_unpack(u64 v)
{
	struct small s;

	memcpy(&s, &v, sizeof(s));
	return s;
}

#endif
