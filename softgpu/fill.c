// SPDX-License-Identifier: MIT
/* Memset of 8, 16 and 32 bits, in one and two dimensions, in stream order. */
#include "softgpu/graph.h"

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
	if (!softgpu_reaches(f->dst, (f->rows - 1) * f->pitch + f->width * f->bytes))
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

/* What cannot be filled is told by the call, or by the one that makes the node. */
static CUresult check(CUdeviceptr dst, size_t pitch, unsigned int bytes, size_t width, size_t rows, uint64_t *all)
{
	uint64_t line;

	*all = 0;
	if (__builtin_mul_overflow(width, bytes, &line) || dst % bytes || (rows > 1 && (pitch < line || pitch % bytes)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!width || !rows)
		return CUDA_SUCCESS;
	if (__builtin_mul_overflow(rows - 1, pitch, all) || __builtin_add_overflow(*all, line, all))
		return CUDA_ERROR_INVALID_VALUE;
	return mem_check(dst, *all);
}

CUresult fill_check(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	uint64_t all;

	return check(p->dst, p->pitch, p->elementSize, p->width, p->height, &all);
}

static CUresult fill_op(CUdeviceptr dst, size_t pitch, unsigned int value, unsigned int bytes, size_t width, size_t rows,
			uint64_t all, struct op **op)
{
	struct fill_op *f = op_new(sizeof(*f), fill_run, op_free);

	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	f->dst = dst;
	f->pitch = pitch;
	f->value = value;
	f->bytes = bytes;
	f->width = width;
	f->rows = rows;
	f->op.quick = all <= 4096;
	*op = &f->op;
	return CUDA_SUCCESS;
}

CUresult fill_op_of(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct op **op)
{
	uint64_t all;

	TRY(check(p->dst, p->pitch, p->elementSize, p->width, p->height, &all));
	if (!all) {
		*op = NULL;
		return CUDA_SUCCESS;
	}
	return fill_op(p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, all, op);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned int value, unsigned int bytes, size_t width, size_t rows,
		     CUstream stream, bool async)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {dst, pitch, value, bytes, width, rows, NULL}};
	AUTO_PUT struct stream *s = NULL;
	struct gstream gs;
	struct alloc a;
	struct op *op;
	bool capturing;
	uint64_t all;

	TRY(stream_resolve(stream, &s));
	TRY(check(dst, pitch, bytes, width, rows, &all));
	TRY(stream_capturing(s, &capturing));
	if (capturing) {
		gs = graph_stream(s);
		p.memset.ctx = gs.ctx;
		return all ? graph_capture(&gs, &p) : CUDA_SUCCESS;
	}
	if (!all)
		return CUDA_SUCCESS;
	TRY(fill_op(dst, pitch, value, bytes, width, rows, all, &op));
	/* A memset of device memory never waits; one of page-locked host memory does, unless asked not to. */
	if (!async && mem_find(dst, &a) && a.kind != ALLOC_DEVICE)
		return stream_submit_wait(s, op);
	return stream_submit(s, op, NULL);
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
