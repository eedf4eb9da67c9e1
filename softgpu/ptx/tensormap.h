/* SPDX-License-Identifier: MIT */
/* softgpu's own layout of a CUtensorMap, which is opaque: made by cuTensorMapEncode*, read by tensor copies. */
#ifndef SOFTGPU_PTX_TENSORMAP_H
#define SOFTGPU_PTX_TENSORMAP_H

#include <stdint.h>

#define TENSORMAP_MAGIC 0x544d4753u

/* Types, swizzles and fills have the driver's numbers, and those of tensormap.replace, which are the same so far. */
struct tensormap {
	uint32_t magic;
	uint8_t rank, type, swizzle, fill_nan;
	uint64_t address;
	uint64_t stride[4]; /* bytes from one element of dimensions 1 to 4 to the next */
	uint32_t last[5];   /* elements less one */
	uint16_t box[5];
	uint8_t step[5];
};
_Static_assert(sizeof(struct tensormap) <= 128, "a CUtensorMap has 128 bytes");

#define TENSORMAP_TYPES 13 /* those below have a whole number of bytes */

static inline uint32_t tensormap_type_size(uint32_t type)
{
	static const uint8_t size[TENSORMAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

	return type < TENSORMAP_TYPES ? size[type] : 0;
}

#endif
