// SPDX-License-Identifier: MIT
/* Copies of two and three dimensions, taken apart into rows here: the records know only straight ones. */
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/copy.h"
#include "shim/ctx.h"
#include "shim/session.h"
#include "shim/unsupported.h"

#define SPAN_WASTE 4	       /* a copy down may fetch this many times its bytes to be one round trip */
#define SPAN_FREE  (64u << 10) /* so small that nobody asks */
#define SPAN_MAX   (64u << 20) /* and keep that many in memory */

#define LENGTH_MAX (1ull << 48) /* beyond it nothing has an address; sums and, in 128 bits, products are exact */

/* One end: where the first byte lies, and how far rows and slices are apart. */
struct end {
	bool device;
	uint64_t at, pitch;
	unsigned __int128 slice;
};

struct box {
	struct end src, dst;
	uint64_t width, height, depth;
};

static bool end_of(struct end *e, CUmemorytype type, const void *host, CUdeviceptr device, uint64_t pitch, uint64_t rows,
		   uint64_t x, uint64_t y, uint64_t z, int *err)
{
	struct block b;

	*err = CUDA_ERROR_INVALID_VALUE;
	if (pitch > LENGTH_MAX || rows > LENGTH_MAX || x > LENGTH_MAX || y > LENGTH_MAX || z > LENGTH_MAX)
		return false;
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		e->at = (uint64_t)host;
		break;
	case CU_MEMORYTYPE_DEVICE:
		e->at = device;
		e->device = true;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		e->at = device;
		e->device = heap_find(device, &b);
		break;
	case CU_MEMORYTYPE_ARRAY:
		*err = rgpu_unsupported("copies from and to CUDA arrays", NULL);
		return false;
	default:
		return false;
	}
	e->pitch = pitch;
	e->slice = (unsigned __int128)pitch * rows;
	e->at += x + y * pitch + z * (uint64_t)e->slice;
	return true;
}

/* Bytes from the first to behind the last, −1 when that is more than an address can say. */
static __int128 span(const struct end *e, const struct box *b)
{
	if (e->slice > LENGTH_MAX || b->width > LENGTH_MAX || b->height > LENGTH_MAX || b->depth > LENGTH_MAX)
		return -1;
	return (__int128)(b->depth - 1) * e->slice + (__int128)(b->height - 1) * e->pitch + b->width;
}

static int check(struct rgpu_call *c, const struct end *e, const struct box *b)
{
	__int128 n = span(e, b);

	if (n < 0 || (b->height > 1 && e->pitch < b->width) ||
	    (b->depth > 1 && (__int128)e->slice < (__int128)(b->height - 1) * e->pitch + b->width))
		return CUDA_ERROR_INVALID_VALUE;
	if (e->device)
		return rgpu_check_range(c, e->at, n);
	return e->at ? 0 : CUDA_ERROR_INVALID_VALUE;
}

/* Rows that lie one behind the other at both ends are one row. */
static void join(struct box *b)
{
	if (b->src.pitch == b->width && b->dst.pitch == b->width) {
		b->width *= b->height;
		b->height = 1;
		b->src.pitch = b->src.slice;
		b->dst.pitch = b->dst.slice;
		if (b->src.slice == b->width && b->dst.slice == b->width) {
			b->width *= b->depth;
			b->depth = 1;
		}
	}
}

static int row(struct rgpu_call *c, const struct box *b, uint64_t dst, uint64_t src, uint64_t stream, bool sync)
{
	if (b->src.device && b->dst.device)
		return rpc_D2D(c, dst, src, b->width, stream);
	if (b->dst.device)
		return copy_to_device(c, dst, (const void *)src, b->width, stream, sync);
	if (b->src.device)
		return copy_to_host(c, (void *)dst, src, b->width, stream, sync);
	memmove((void *)dst, (const void *)src, b->width);
	return 0;
}

/* All of a slice with what lies between its rows, in one answer. */
static int slice_down(struct rgpu_call *c, const struct box *b, uint64_t dst, uint64_t src, uint64_t stream)
{
	uint64_t n = (b->height - 1) * b->src.pitch + b->width;
	uint8_t *all = malloc(n);
	int r;

	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = copy_to_host(c, all, src, n, stream, true);
	for (uint64_t y = 0; y < b->height && !r; y++)
		memcpy((uint8_t *)dst + y * b->dst.pitch, all + y * b->src.pitch, b->width);
	free(all);
	return r;
}

static bool slice_at_once(const struct box *b)
{
	__int128 n = (__int128)(b->height - 1) * b->src.pitch + b->width;

	return b->src.device && !b->dst.device && b->height > 1 && n <= SPAN_MAX &&
	       (n <= SPAN_FREE || n <= (__int128)b->width * b->height * SPAN_WASTE);
}

static int copy_box(struct box *b, CUstream hStream, bool sync)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t stream;
	uint32_t text;
	int r = rgpu_enter(&c, OP_D2D);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &stream, &obj);
	if (r || !b->width || !b->height || !b->depth)
		return r;
	r = check(&c, &b->src, b);
	if (!r)
		r = check(&c, &b->dst, b);
	if (!r && !b->src.device && !b->dst.device) {
		c.op = OP_STREAM_SYNC;
		r = rpc_STREAM_SYNC(&c, stream, &text);
	}
	if (r)
		return r;
	join(b);
	for (uint64_t z = 0; z < b->depth && !r; z++) {
		uint64_t dst = b->dst.at + z * b->dst.slice, src = b->src.at + z * b->src.slice;

		c.op = OP_D2D;
		if (slice_at_once(b)) {
			r = slice_down(&c, b, dst, src, stream);
			continue;
		}
		for (uint64_t y = 0; y < b->height && !r; y++)
			r = row(&c, b, dst + y * b->dst.pitch, src + y * b->src.pitch, stream, sync);
	}
	return r;
}

static int copy2d(const CUDA_MEMCPY2D *p, CUstream hStream, bool sync)
{
	struct box b = {.depth = 1};
	int r;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	b.width = p->WidthInBytes;
	b.height = p->Height;
	/* A pitch of 0 means rows that touch. */
	if (!end_of(&b.src, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch ? p->srcPitch : b.width, 0, p->srcXInBytes,
		    p->srcY, 0, &r) ||
	    !end_of(&b.dst, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch ? p->dstPitch : b.width, 0, p->dstXInBytes,
		    p->dstY, 0, &r))
		return r;
	return copy_box(&b, hStream, sync);
}

static int copy3d(const CUDA_MEMCPY3D *p, CUstream hStream, bool sync)
{
	struct box b = {0};
	int r;

	if (!p || p->reserved0 || p->reserved1 || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	b.width = p->WidthInBytes;
	b.height = p->Height;
	b.depth = p->Depth;
	if (!end_of(&b.src, p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch ? p->srcPitch : b.width,
		    p->srcHeight ? p->srcHeight : b.height, p->srcXInBytes, p->srcY, p->srcZ, &r) ||
	    !end_of(&b.dst, p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch ? p->dstPitch : b.width,
		    p->dstHeight ? p->dstHeight : b.height, p->dstXInBytes, p->dstY, p->dstZ, &r))
		return r;
	return copy_box(&b, hStream, sync);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy2d(pCopy, NULL, true);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return copy2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return copy2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
	return copy2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy2d(pCopy, hStream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return copy2d(pCopy, hStream ? hStream : CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return copy3d(pCopy, NULL, true);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy)
{
	return copy3d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy3d(pCopy, hStream, false);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy3d(pCopy, hStream ? hStream : CU_STREAM_PER_THREAD, false);
}
