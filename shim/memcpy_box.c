// SPDX-License-Identifier: MIT
/* Copies of two and three dimensions: memory's are taken apart into rows here, arrays' go as boxes. */
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/arrival.h"
#include "shim/copy.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/memcpy_box.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "lib/box.h"

#define SPAN_WASTE 4	       /* a copy down may fetch this many times its bytes to be one round trip */
#define SPAN_FREE  (64u << 10) /* so small that nobody asks */
#define SPAN_MAX   (64u << 20) /* and keep that many in memory */
#define ROWS_ALONE 64u
#define ROW_LONG   (16u << 10)

#define LENGTH_MAX (1ull << 48) /* beyond it nothing has an address; sums and, in 128 bits, products are exact */

/* What a copy says of one end. Rows: how many there are in a slice. */
struct said {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	uint64_t pitch, rows, x, y, z; /* pitch and rows: 0 where it says nothing */
};

#define PITCH_MAX INT32_MAX /* as CU_DEVICE_ATTRIBUTE_MAX_PITCH has it */

static int end_of(struct end *e, const struct said *s, const struct box *box)
{
	uint64_t pitch = s->pitch ? s->pitch : box->width; /* rows that touch */
	struct block b;
	__int128 n;

	if (box->width > LENGTH_MAX || box->height > LENGTH_MAX || s->rows > LENGTH_MAX || s->x > LENGTH_MAX ||
	    s->y > LENGTH_MAX || s->z > LENGTH_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	switch (s->type) {
	case CU_MEMORYTYPE_HOST:
		e->at = (uint64_t)s->host;
		e->host = true;
		break;
	case CU_MEMORYTYPE_DEVICE:
		e->at = s->device;
		e->device = true;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		e->at = s->device;
		e->device = heap_find(s->device, &b);
		e->host = !e->device || b.kind == BLOCK_MAPPED;
		break;
	case CU_MEMORYTYPE_ARRAY:
		if (!array_find(s->array, &e->info))
			return CUDA_ERROR_INVALID_HANDLE;
		e->is_array = true;
		e->array = (uint64_t)s->array;
		e->x = s->x;
		e->y = s->y;
		e->z = s->z;
		return 0;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (s->pitch > PITCH_MAX || (s->pitch && box->height && s->pitch < s->x + box->width) ||
	    (s->rows && box->depth > 1 && s->rows < s->y + box->height))
		return CUDA_ERROR_INVALID_VALUE;
	e->pitch = pitch;
	e->slice = (unsigned __int128)pitch * (s->rows ? s->rows : box->height);
	e->at += s->x + s->y * pitch + s->z * (uint64_t)e->slice;
	n = e->device ? 0 : box_span(e, box);
	if (n > 0 && n <= LENGTH_MAX && pinned_twin((void *)e->at, (uint64_t)n, &e->at))
		e->device = true;
	return 0;
}

__int128 box_span(const struct end *e, const struct box *b)
{
	if (e->slice > LENGTH_MAX || b->width > LENGTH_MAX || b->height > LENGTH_MAX || b->depth > LENGTH_MAX)
		return -1;
	return (__int128)(b->depth - 1) * e->slice + (__int128)(b->height - 1) * e->pitch + b->width;
}

static bool fits(uint64_t at, uint64_t n, uint64_t size)
{
	return n <= size && at <= size - n;
}

static int check(struct rgpu_call *c, const struct end *e, const struct box *b)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &e->info.desc;
	__int128 n = box_span(e, b);

	if (e->is_array)
		return fits(e->x, b->width, d->Width * e->info.texel) && fits(e->y, b->height, d->Height ? d->Height : 1) &&
				       fits(e->z, b->depth, d->Depth ? d->Depth : 1)
			       ? 0
			       : CUDA_ERROR_INVALID_VALUE;
	if (n < 0 || (b->height > 1 && e->pitch < b->width) ||
	    (b->depth > 1 && (__int128)e->slice < (__int128)(b->height - 1) * e->pitch + b->width))
		return CUDA_ERROR_INVALID_VALUE;
	if (e->device)
		return rgpu_check_range(c, e->at, n);
	return e->at ? 0 : CUDA_ERROR_INVALID_VALUE;
}

int box_check(struct rgpu_call *c, const struct box *b)
{
	int r = check(c, &b->src, b);

	return r ? r : check(c, &b->dst, b);
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
static int slice_down(struct rgpu_call *c, const struct box *b, uint64_t dst, uint64_t src, uint64_t stream, bool sync)
{
	struct rows rows = {(uint8_t *)dst, b->width, b->height, b->dst.pitch, b->src.pitch};
	uint64_t n = (b->height - 1) * b->src.pitch + b->width;
	uint8_t *all;
	int r;

	if (!sync && arrival_copy(c, &rows, (struct remote){src, NULL}, stream, &r))
		return r;
	all = malloc(n);
	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = copy_to_host(c, all, src, n, stream, true);
	for (uint64_t y = 0; y < b->height && !r; y++)
		memcpy((uint8_t *)dst + y * b->dst.pitch, all + y * b->src.pitch, b->width);
	free(all);
	return r;
}

/* Rows that go one by one and that nobody waits for, as is due to page-locked memory: many short ones would cost more. */
static bool rows_alone(const struct box *b)
{
	return (b->height <= ROWS_ALONE || b->width >= ROW_LONG) &&
	       pinned_bo((void *)b->dst.at, b->width, &(uint32_t){0}, &(uint64_t){0});
}

static bool slice_at_once(const struct box *b, bool sync)
{
	__int128 n = (__int128)(b->height - 1) * b->src.pitch + b->width;

	return b->src.device && !b->dst.device && b->height > 1 && n <= SPAN_MAX &&
	       (n <= SPAN_FREE || n <= (__int128)b->width * b->height * SPAN_WASTE) && (sync || !rows_alone(b));
}

/* ---- Arrays ---- */

static struct array_box part(const struct end *e, uint64_t y, uint64_t z, uint64_t width, uint64_t height, uint64_t depth)
{
	return (struct array_box){e->array, e->x, e->y + y, e->z + z, width, height, depth};
}

/* Both ends are at the server. */
static int box_there(struct rgpu_call *c, const struct box *b, uint64_t stream)
{
	const struct end *d = &b->dst, *s = &b->src;

	c->op = OP_BOX;
	return rpc_BOX(c, d->is_array ? d->array : d->at, d->x, d->y, d->z, d->pitch,
		       d->pitch ? (uint64_t)(d->slice / d->pitch) : 0, d->ctx, s->is_array ? s->array : s->at, s->x, s->y, s->z,
		       s->pitch, s->pitch ? (uint64_t)(s->slice / s->pitch) : 0, s->ctx, b->width, b->height, b->depth,
		       d->is_array, s->is_array, stream);
}

static int rows_of_array(struct rgpu_call *c, const struct box *b, uint64_t host, uint64_t z, uint64_t stream, bool sync)
{
	int r = 0;

	for (uint64_t y = 0; y < b->height && !r; y++) {
		struct array_box row = part(b->dst.is_array ? &b->dst : &b->src, y, z, b->width, 1, 1);
		struct remote at = {0, &row};

		r = b->dst.is_array ? copy_up(c, at, (const void *)(host + y * b->src.pitch), b->width, stream, sync)
				    : copy_down(c, (void *)(host + y * b->dst.pitch), at, b->width, stream, sync);
	}
	return r;
}

/* A slice whose rows do not touch in memory passes through a buffer where they do. */
static int slice_of_array(struct rgpu_call *c, const struct box *b, uint64_t host, uint64_t z, uint64_t stream, bool sync)
{
	struct array_box slice = part(b->dst.is_array ? &b->dst : &b->src, 0, z, b->width, b->height, 1);
	uint64_t n = b->width * b->height;
	uint8_t *all = malloc(n);
	int r;

	if (!all)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (b->dst.is_array) {
		for (uint64_t y = 0; y < b->height; y++)
			memcpy(all + y * b->width, (const uint8_t *)host + y * b->src.pitch, b->width);
		r = copy_up(c, (struct remote){0, &slice}, all, n, stream, sync);
	} else {
		r = copy_down(c, all, (struct remote){0, &slice}, n, stream, true);
		for (uint64_t y = 0; y < b->height && !r; y++)
			memcpy((uint8_t *)host + y * b->dst.pitch, all + y * b->width, b->width);
	}
	free(all);
	return r;
}

static int copy_array(struct rgpu_call *c, const struct box *b, uint64_t stream, bool sync)
{
	const struct end *array = b->dst.is_array ? &b->dst : &b->src, *host = b->dst.is_array ? &b->src : &b->dst;
	struct array_box whole = part(array, 0, 0, b->width, b->height, b->depth);
	uint64_t slice = b->width * b->height;
	struct pinned p;
	int r = 0;

	if (host->device || host->is_array) {
		r = box_there(c, b, stream);
		return !r && sync && !host->is_array && shared_has(host->at) ? stream_sync(c, stream) : r;
	}
	if ((b->height == 1 || host->pitch == b->width) && (b->depth == 1 || host->slice == slice))
		return b->dst.is_array
			       ? copy_up(c, (struct remote){0, &whole}, (const void *)host->at, slice * b->depth, stream, sync)
			       : copy_down(c, (void *)host->at, (struct remote){0, &whole}, slice * b->depth, stream, sync);
	for (uint64_t z = 0; z < b->depth && !r; z++) {
		uint64_t at = host->at + z * (uint64_t)host->slice;

		/* What pinned memory holds when the stream comes there is what counts: no buffer. */
		r = !sync && pinned_find((const void *)at, &p) ? rows_of_array(c, b, at, z, stream, sync)
							       : slice_of_array(c, b, at, z, stream, sync);
	}
	return r;
}

static int copy_box(struct box *b, CUstream hStream, bool sync)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t stream;
	int r = rgpu_enter(&c, OP_D2D);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &stream, &obj);
	if (r || !b->width || !b->height || !b->depth)
		return r;
	r = box_check(&c, b);
	if (!r)
		r = rgpu_capture(&c, stream);
	if (!r && c.capturing)
		return sync || b->src.ctx ? rgpu_capture_refuse(&c) : capture_box(&c, b);
	if (!r && (b->src.is_array || b->dst.is_array || b->src.ctx))
		return copy_array(&c, b, stream, sync);
	if (!r && !b->src.device && !b->dst.device)
		r = stream_sync(&c, stream);
	if (r)
		return r;
	join(b);
	for (uint64_t z = 0; z < b->depth && !r; z++) {
		uint64_t dst = b->dst.at + z * b->dst.slice, src = b->src.at + z * b->src.slice;

		c.op = OP_D2D;
		if (slice_at_once(b, sync)) {
			r = slice_down(&c, b, dst, src, stream, sync);
			continue;
		}
		for (uint64_t y = 0; y < b->height && !r; y++)
			r = row(&c, b, dst + y * b->dst.pitch, src + y * b->src.pitch, stream, sync);
	}
	if (!r && sync && (copies_end(b->dst.at) || copies_end(b->src.at)))
		r = stream_sync(&c, stream);
	return r;
}

static int copy2d(const CUDA_MEMCPY2D *p, CUstream hStream, bool sync)
{
	struct box b = {.depth = 1};
	struct said src, dst;
	int r;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	b.width = p->WidthInBytes;
	b.height = p->Height;
	src = (struct said){p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcPitch, 0, p->srcXInBytes, p->srcY, 0};
	dst = (struct said){p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstPitch, 0, p->dstXInBytes, p->dstY, 0};
	r = end_of(&b.src, &src, &b);
	if (!r)
		r = end_of(&b.dst, &dst, &b);
	return r ? r : copy_box(&b, hStream, sync);
}

int box_of(struct box *b, const CUDA_MEMCPY3D *p)
{
	struct said src, dst;
	int r;

	if (!p || p->reserved0 || p->reserved1 || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	*b = (struct box){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	src = (struct said){p->srcMemoryType, p->srcHost,     p->srcDevice, p->srcArray, p->srcPitch,
			    p->srcHeight,     p->srcXInBytes, p->srcY,	    p->srcZ};
	dst = (struct said){p->dstMemoryType, p->dstHost,     p->dstDevice, p->dstArray, p->dstPitch,
			    p->dstHeight,     p->dstXInBytes, p->dstY,	    p->dstZ};
	r = end_of(&b->src, &src, b);
	return r ? r : end_of(&b->dst, &dst, b);
}

static int copy3d(const CUDA_MEMCPY3D *p, CUstream hStream, bool sync)
{
	struct box b;
	int r = box_of(&b, p);

	return r ? r : copy_box(&b, hStream, sync);
}

/* Between contexts; where one end is the host's, it is as without. */
static int copy3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream hStream, bool sync)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	CUDA_MEMCPY3D q;
	struct box b;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r && !p)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	q = copy_of_peer(p);
	r = box_of(&b, &q);
	if (!r && (b.src.device || b.src.is_array) && (b.dst.device || b.dst.is_array)) {
		r = rgpu_use(&c, KIND_context, p->srcContext, false, &b.src.ctx, &obj);
		if (!r)
			r = rgpu_use(&c, KIND_context, p->dstContext, false, &b.dst.ctx, &obj);
	}
	return r ? r : copy_box(&b, hStream, sync);
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

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy3d_peer(pCopy, NULL, true);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy3d_peer(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return copy3d_peer(pCopy, hStream, false);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return copy3d_peer(pCopy, hStream ? hStream : CU_STREAM_PER_THREAD, false);
}
