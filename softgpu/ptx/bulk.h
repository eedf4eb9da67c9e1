/* SPDX-License-Identifier: MIT */
/* What lowering tells the handlers of bulk copies. */
#ifndef SOFTGPU_PTX_BULK_H
#define SOFTGPU_PTX_BULK_H

#include <string.h>

#include "softgpu/ptx/types.h"

enum bulk_op { BULK_COPY, BULK_ADD, BULK_MIN, BULK_MAX, BULK_INC, BULK_DEC, BULK_AND, BULK_OR, BULK_XOR };

enum bulk_flags {
	BF_TO_SHARED = 1,   /* else from shared to global memory */
	BF_FROM_SHARED = 2, /* to another block's */
	BF_MULTICAST = 4,
	BF_BYTE_MASK = 8,
	BF_ROWS = 16, /* tile::gather4 and tile::scatter4: one column, four rows */
};

/* imm of a bulk copy. Its registers: 1 the shared address, 2 the other one or the map's, 3 the bytes, 4 the mbarrier, 5 a mask.
 */
struct bulk {
	u8 op, type, flags, rank;
	u32 pad;
};

static inline u64 bulk_pack(struct bulk b)
{
	u64 v;

	memcpy(&v, &b, sizeof(v));
	return v;
}

static inline struct bulk bulk_unpack(u64 v)
{
	struct bulk b;

	memcpy(&b, &v, sizeof(b));
	return b;
}

#endif
