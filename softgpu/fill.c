// SPDX-License-Identifier: MIT
/* Memset of 8, 16 and 32 bits, in one and two dimensions, in stream order. */
#include "softgpu/softgpu.h"

#include <string.h>

struct fill_op {
	struct op op;
	uint64_t dst;
	size_t pitch, width, rows; /* width in elements */
	unsigned int value, bytes;
};

static CUresult fill_run(struct op *op, struct stream *s)
{
	struct fill_op *f = container_of(op, struct fill_op, op);

	(void)s;
	if (!softgpu_mapped(f->dst, (f->rows - 1) * f->pitch + f->width * f->bytes))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t y = 0; y < f->rows; y++) {
		void *row = (void *)(uintptr_t)(f->dst + y * f->pitch);

		if (f->bytes == 1) {
			memset(row, (int)f->value, f->width);
		} else if (f->bytes == 2) {
			for (size_t i = 0; i < f->width; i++)
				((uint16_t *)row)[i] = (uint16_t)f->value;
		} else {
			for (size_t i = 0; i < f->width; i++)
				((uint32_t *)row)[i] = f->value;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned int value, unsigned int bytes, size_t width, size_t rows,
		     CUstream stream, bool async)
{
	AUTO_PUT struct stream *s = NULL;
	uint64_t line, all;
	struct fill_op *f;
	struct alloc a;

	TRY(stream_resolve(stream, &s));
	if (__builtin_mul_overflow(width, bytes, &line) || dst % bytes || (rows > 1 && pitch < line))
		return CUDA_ERROR_INVALID_VALUE;
	if (!width || !rows)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(rows - 1, pitch, &all) || __builtin_add_overflow(all, line, &all))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(mem_check(dst, all));
	/* Registered memory has no device address here (docs/limits.md). */
	if (!softgpu_mapped(dst, all))
		return CUDA_ERROR_INVALID_VALUE;
	f = op_new(sizeof(*f), fill_run, op_free);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->dst = dst;
	f->pitch = pitch;
	f->value = value;
	f->bytes = bytes;
	f->width = width;
	f->rows = rows;
	f->op.quick = all <= 4096;
	/* A memset of device memory never waits; one of page-locked host memory does, unless asked not to. */
	if (!async && mem_find(dst, &a) && a.kind == ALLOC_HOST)
		return stream_submit_wait(s, &f->op);
	return stream_submit(s, &f->op, NULL);
}

#define MEMSET(bits, type)                                                                                                       \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t n)                                                     \
	{                                                                                                                        \
		return fill(dst, 0, value, bits / 8, n, 1, CU_STREAM_LEGACY, false);                                             \
	}                                                                                                                        \
	CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr dst, type value, size_t n)                                                \
	{                                                                                                                        \
		return fill(dst, 0, value, bits / 8, n, 1, CU_STREAM_PER_THREAD, false);                                         \
	}                                                                                                                        \
	CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t n, CUstream stream)                                  \
	{                                                                                                                        \
		return fill(dst, 0, value, bits / 8, n, 1, stream, true);                                                        \
	}                                                                                                                        \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height)                  \
	{                                                                                                                        \
		return fill(dst, pitch, value, bits / 8, width, height, CU_STREAM_LEGACY, false);                                \
	}                                                                                                                        \
	CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height)             \
	{                                                                                                                        \
		return fill(dst, pitch, value, bits / 8, width, height, CU_STREAM_PER_THREAD, false);                            \
	}                                                                                                                        \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream st)   \
	{                                                                                                                        \
		return fill(dst, pitch, value, bits / 8, width, height, st, true);                                               \
	}

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)
