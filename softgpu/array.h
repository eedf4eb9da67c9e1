/* SPDX-License-Identifier: MIT */
/* Arrays, mipmapped arrays, and texture and surface objects on them. */
#ifndef SOFTGPU_ARRAY_H
#define SOFTGPU_ARRAY_H

#include "softgpu/softgpu.h"
#include "lib/texel.h"
#include "softgpu/ptx/texture.h"

/* texel_format(), and a line about formats that are not supported. */
CUresult array_format(CUarray_format format, unsigned int channels, struct texel_format *out);

struct array {
	struct obj obj;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	struct texel_format format;
	struct ptx_image image;
	struct alloc mem;
	bool level; /* of a mipmapped array: destroyed with it */
};

struct mipmap {
	struct obj obj;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned int nlevels;
	struct array *level[PTX_LEVELS]; /* a reference each */
};

/* Destroys all that belongs to @c: objects first, for they hold arrays. */
void arrays_free_of_ctx(struct ctx *c);
void texture_objects_free_of_ctx(struct ctx *c);

#endif
