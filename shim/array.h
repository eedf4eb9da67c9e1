/* SPDX-License-Identifier: MIT */
/* What the client knows of an array: its extents and format. */
#ifndef RGPU_SHIM_ARRAY_H
#define RGPU_SHIM_ARRAY_H

#include "shim/cuda_api.h"

struct array_info {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int texel; /* bytes */
};

/* False: @handle names no living array. Extents that it does not have are 0. */
bool array_find(CUarray handle, struct array_info *out);

/* What lived in a context is gone with it. */
void array_drop_context(struct rgpu_obj *context);
void texture_drop_context(struct rgpu_obj *context);
void texref_drop_context(struct rgpu_obj *context);

#endif
