/* SPDX-License-Identifier: MIT */
/* What the lowering of texture and surface instructions tells their handlers: imm, packed, and the order of operands. */
#ifndef SOFTGPU_PTX_TEX_INS_H
#define SOFTGPU_PTX_TEX_INS_H

#include "softgpu/ptx/types.h"

enum tex_lod { LOD_NONE, LOD_BASE, LOD_LEVEL, LOD_GRAD };
enum tex_result { RESULT_32, RESULT_F16, RESULT_F16X2 };

/* The list: results; layer, coordinates, level or gradients (all of x, then of y), offsets. The object is in r[4]. */
struct tex_ins {
	u8 dims, cube, layered, integer, lod, offsets, gather, result;
};
_Static_assert(sizeof(struct tex_ins) == sizeof(u64), "fits into imm");

enum surf_op { SURF_LOAD, SURF_STORE, SURF_ADD, SURF_MIN, SURF_MAX, SURF_AND, SURF_OR };
enum surf_mode { SURF_TRAP, SURF_CLAMP, SURF_ZERO };

/* The list: what is loaded; layer, coordinates; what is stored. The object is in r[4]. */
struct surf_ins {
	u8 op, dims, layered, mode, count, formatted;
	u8 type; /* enum type, of an element or the atomic's */
	u8 cls;	 /* of the registers */
};
_Static_assert(sizeof(struct surf_ins) == sizeof(u64), "fits into imm");

enum tex_query { TXQ_WIDTH, TXQ_HEIGHT, TXQ_DEPTH, TXQ_LAYERS, TXQ_LEVELS, TXQ_NORMALIZED, TXQ_SAMPLES };

#endif
