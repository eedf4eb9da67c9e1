/* SPDX-License-Identifier: MIT */
/* What the lowering of mma and that of wmma and the matrix moves share. */
#ifndef SOFTGPU_PTX_LOWER_TENSOR_H
#define SOFTGPU_PTX_LOWER_TENSOR_H

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/tensor.h"

struct mma_types {
	enum type d, a, b, c;
};

/* Finds the shape modifier m16n8k16 and the like; false when there is none. */
bool tensor_shape(struct lower *lo, u32 *m, u32 *n, u32 *k);
u32 fragment_len(struct lower *lo, const struct opnd *o);
void add_fragment(struct lower *lo, const struct opnd *o, char sig, bool def);
/* The fragment must hold @elements, once or, where @repeated, several times. */
void check_fragment(struct lower *lo, const struct opnd *o, u32 elements, enum type t, bool repeated);
char fragment_sig(enum type t);
/* All lanes of the warp take part: .aligned says so. */
struct ins *emit_aligned(struct lower *lo, const char *name, u32 first, u32 ndef);
/* d, a, b, c are operands 0 to 3; r[0] to r[2] get the lengths of the first three. */
struct ins *emit_product(struct lower *lo, const char *name, u32 m, u32 n, u32 k, u32 a_elements, struct mma_types t, u32 flags);

#endif
