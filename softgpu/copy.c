// SPDX-License-Identifier: MIT
/* Copies of linear memory and arrays: one, two and three dimensions, between host, device and peers, in stream order. */
#include "softgpu/array.h"
#include "softgpu/copy.h"

#include <stdlib.h>
#include <string.h>
#include "lib/box.h"

struct copy_op {
	struct op op;
	struct copy copy;
	void *staged; /* the pageable source as it was at the call */
};

/* Bytes from the first to behind the last that a copy touches on one side; false when that overflows. */
static bool extent(const struct copy *c, size_t pitch, size_t plane, uint64_t *bytes)
{
	uint64_t a, b;

	if (!c->width || !c->rows || !c->planes) {
		*bytes = 0;
		return true;
	}
	return !__builtin_mul_overflow(c->rows - 1, pitch, &a) && !__builtin_mul_overflow(c->planes - 1, plane, &b) &&
	       !__builtin_add_overflow(a, b, &a) && !__builtin_add_overflow(a, c->width, bytes);
}

static void move(const struct copy *c, const char *src)
{
	char *dst = (char *)(uintptr_t)c->dst;

	for (size_t z = 0; z < c->planes; z++)
		for (size_t y = 0; y < c->rows; y++)
			memmove(dst + z * c->dst_plane + y * c->dst_pitch, src + z * c->src_plane + y * c->src_pitch, c->width);
}

/* Memory may have been unmapped since the call looked. */
static CUresult copy_run(struct op *op, struct stream *s)
{
	struct copy_op *o = container_of(op, struct copy_op, op);
	const struct copy *c = &o->copy;
	uint64_t bytes;

	(void)s;
	if (!c->dst_host && extent(c, c->dst_pitch, c->dst_plane, &bytes) && !softgpu_mapped(c->dst, bytes))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (!c->src_host && extent(c, c->src_pitch, c->src_plane, &bytes) && !softgpu_mapped(c->src, bytes))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	move(c, o->staged ? o->staged : (const char *)(uintptr_t)c->src);
	return CUDA_SUCCESS;
}

static void copy_drop(struct op *op)
{
	struct copy_op *o = container_of(op, struct copy_op, op);

	free(o->staged);
	free(o);
}

enum where {
	DEVICE_MEMORY, /* of a device, also managed */
	PINNED,	       /* page-locked host memory */
	PAGEABLE,
	NOWHERE,
};

static enum where where(uint64_t addr, uint64_t bytes)
{
	struct mapping m;
	struct alloc a;

	if (mem_find(addr, &a)) {
		if (bytes > a.bytes - (addr - a.base))
			/* Running over the end of registered memory is a host pointer's business. */
			return a.kind == ALLOC_REGISTERED ? PAGEABLE : NOWHERE;
		return a.kind == ALLOC_DEVICE || a.kind == ALLOC_MANAGED ? DEVICE_MEMORY : PINNED;
	}
	if (vmm_find(addr, &m))
		return softgpu_mapped(addr, bytes) ? m.device < 0 ? PINNED : DEVICE_MEMORY : NOWHERE;
	if (addr - (uint64_t)(uintptr_t)softgpu_arena.base < softgpu_arena.size)
		return NOWHERE;
	return addr ? PAGEABLE : NOWHERE;
}

/* The program asked that copies of this memory, or of this context, never return before they are done. */
static bool sync_memops(const struct ctx *c, uint64_t addr)
{
	struct alloc a;

	return c->flags & CU_CTX_SYNC_MEMOPS || (mem_find(addr, &a) && a.sync_memops);
}

/* Staging a copy of the source lets the call return at once; beyond this the memory for it is not worth it. */
#define STAGE_MAX (64ull << 20)

/*
 * What lies where is looked up, as in CUDA with unified addressing; dst_host and src_host permit the program's own
 * memory there. The copy also waits for all work of @also and @and_also, unless NULL.
 */
static CUresult submit(const struct copy *cp, struct stream *s, bool async, struct ctx *also, struct ctx *and_also)
{
	uint64_t dst_bytes, src_bytes;
	enum where from, to;
	struct copy_op *o;
	bool wait;

	if (!extent(cp, cp->dst_pitch, cp->dst_plane, &dst_bytes) || !extent(cp, cp->src_pitch, cp->src_plane, &src_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!dst_bytes)
		return CUDA_SUCCESS;
	from = where(cp->src, src_bytes);
	to = where(cp->dst, dst_bytes);
	if (from == NOWHERE || to == NOWHERE || (!cp->src_host && from == PAGEABLE) || (!cp->dst_host && to == PAGEABLE))
		return CUDA_ERROR_INVALID_VALUE;
	o = op_new(sizeof(*o), copy_run, copy_drop);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->copy = *cp;
	o->copy.src_host = from == PAGEABLE || !softgpu_mapped(cp->src, src_bytes);
	o->copy.dst_host = to == PAGEABLE || !softgpu_mapped(cp->dst, dst_bytes);
	if ((also && !op_depends_on_ctx(&o->op, also)) || (and_also && !op_depends_on_ctx(&o->op, and_also))) {
		copy_drop(&o->op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* As CUDA documents: host memory makes the plain calls wait, device to device does not. */
	wait = async ? to == PAGEABLE : from != DEVICE_MEMORY || to != DEVICE_MEMORY;
	wait = wait || sync_memops(s->ctx, cp->src) || sync_memops(s->ctx, cp->dst);
	if (!wait && from == PAGEABLE) {
		o->staged = src_bytes <= STAGE_MAX ? malloc(src_bytes) : NULL;
		if (o->staged)
			memcpy(o->staged, (const void *)(uintptr_t)cp->src, src_bytes);
		else
			wait = true;
	}
	return wait ? stream_submit_wait(s, &o->op) : stream_submit(s, &o->op, NULL);
}

/* ---- In graphs: what lies where is looked up for the node, host memory is read and written when a launch comes to it ---- */

static CUresult place(const struct copy *cp, enum where *from, enum where *to)
{
	uint64_t dst_bytes, src_bytes;

	if (!extent(cp, cp->dst_pitch, cp->dst_plane, &dst_bytes) || !extent(cp, cp->src_pitch, cp->src_plane, &src_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!dst_bytes) {
		*from = *to = PAGEABLE;
		return CUDA_SUCCESS;
	}
	*from = where(cp->src, src_bytes);
	*to = where(cp->dst, dst_bytes);
	if (*from == NOWHERE || *to == NOWHERE || (!cp->src_host && *from == PAGEABLE) || (!cp->dst_host && *to == PAGEABLE))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_op_for(const struct copy *cp, struct op **op)
{
	enum where from, to;
	struct copy_op *o;

	TRY(place(cp, &from, &to));
	o = op_new(sizeof(*o), copy_run, copy_drop);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->copy = *cp;
	o->copy.src_host = from == PAGEABLE || from == PINNED;
	o->copy.dst_host = to == PAGEABLE || to == PINNED;
	*op = &o->op;
	return CUDA_SUCCESS;
}

static CUresult capture(const struct copy *cp, struct stream *s)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	struct gstream gs = graph_stream(s);
	CUDA_MEMCPY3D *m = &p.memcpy.copy;
	enum where from, to;

	TRY(place(cp, &from, &to));
	p.memcpy.ctx = (CUcontext)s->ctx->obj.handle;
	*m = (CUDA_MEMCPY3D){.WidthInBytes = cp->width, .Height = cp->rows, .Depth = cp->planes};
	m->srcMemoryType = from == DEVICE_MEMORY ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	m->dstMemoryType = to == DEVICE_MEMORY ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	m->srcHost = from == DEVICE_MEMORY ? NULL : (void *)(uintptr_t)cp->src;
	m->srcDevice = from == DEVICE_MEMORY ? cp->src : 0;
	m->dstHost = to == DEVICE_MEMORY ? NULL : (void *)(uintptr_t)cp->dst;
	m->dstDevice = to == DEVICE_MEMORY ? cp->dst : 0;
	m->srcPitch = cp->src_pitch ? cp->src_pitch : cp->width;
	m->dstPitch = cp->dst_pitch ? cp->dst_pitch : cp->width;
	m->srcHeight = cp->src_plane ? cp->src_plane / m->srcPitch : cp->rows;
	m->dstHeight = cp->dst_plane ? cp->dst_plane / m->dstPitch : cp->rows;
	return graph_capture(&gs, &p);
}

CUresult copy_submit(const struct copy *cp, CUstream stream, bool async)
{
	AUTO_PUT struct stream *s = NULL;
	bool capturing;

	TRY(stream_resolve(stream, &s));
	TRY(stream_capturing(s, &capturing));
	if (capturing)
		return async ? capture(cp, s) : stream_not_capturing(s);
	return submit(cp, s, async, NULL, NULL);
}

static CUresult line(uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t bytes, CUstream stream, bool async)
{
	struct copy c = {.dst = dst, .src = src, .width = bytes, .rows = 1, .planes = 1};

	c.dst_host = dst_host;
	c.src_host = src_host;
	return copy_submit(&c, stream, async);
}

CUresult copy_h2d(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream, bool async)
{
	return line(dst, false, (uintptr_t)src, true, bytes, stream, async);
}

CUresult copy_d2h(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	return line((uintptr_t)dst, true, src, false, bytes, stream, async);
}

CUresult copy_d2d(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	return line(dst, false, src, false, bytes, stream, async);
}

CUresult copy_any(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	return line(dst, true, src, true, bytes, stream, async);
}

CUresult copy_peer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, CUstream stream,
		   bool async)
{
	struct copy c = {.dst = dst, .src = src, .width = bytes, .rows = 1, .planes = 1};
	AUTO_PUT struct stream *s = NULL;
	AUTO_PUT struct ctx *from = NULL;
	AUTO_PUT struct ctx *to = NULL;
	bool capturing;
	CUresult r;

	TRY(stream_resolve(stream, &s));
	if (!dst_ctx || !src_ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	TRY(ctx_resolve(dst_ctx, &to));
	TRY(ctx_resolve(src_ctx, &from));
	TRY(stream_capturing(s, &capturing));
	if (capturing)
		return async ? capture(&c, s) : stream_not_capturing(s);
	if (async)
		return submit(&c, s, true, NULL, NULL);
	/* In order with everything of both contexts, before and after. */
	r = submit(&c, s, false, from, to);
	if (r == CUDA_SUCCESS)
		r = stream_synchronize(s);
	return r;
}

/* ---- Two and three dimensions ---- */

/* One side of a box: where it begins, and the memory that this counts in. */
struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
};

/* Within a pitch and a height that the caller gives: false when a pitch can't hold a row or it overflows. */
static bool in_memory(const struct end *e, const struct copy *c, uint64_t base, uint64_t *addr, size_t *pitch, size_t *plane)
{
	uint64_t a, b, end;

	if (e->pitch > INT32_MAX || __builtin_add_overflow(e->x, c->width, &end)) /* MAX_PITCH */
		return false;
	*pitch = e->pitch;
	if (!*pitch && c->rows <= 1 && c->planes <= 1)
		*pitch = end;
	if (end > *pitch || (c->planes > 1 && e->height < e->y + c->rows))
		return false;
	*addr = base;
	return !__builtin_mul_overflow(*pitch, e->height, plane) && !__builtin_mul_overflow(e->z, *plane, &a) &&
	       !__builtin_mul_overflow(e->y, *pitch, &b) && !__builtin_add_overflow(*addr, a, addr) &&
	       !__builtin_add_overflow(*addr, b, addr) && !__builtin_add_overflow(*addr, e->x, addr);
}

static bool fits(size_t at, size_t n, size_t size)
{
	return n <= size && at <= size - n;
}

/* The array's own pitch counts, and its extents are the limits. */
static CUresult in_array(const struct end *e, const struct copy *c, uint64_t *addr, size_t *pitch, size_t *plane)
{
	AUTO_PUT struct array *a = obj_get(e->array, OBJ_ARRAY);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!fits(e->x, c->width, (size_t)a->image.width * a->format.bytes) || !fits(e->y, c->rows, a->image.height) ||
	    !fits(e->z, c->planes, a->image.depth))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = a->image.pitch;
	*plane = a->image.plane;
	*addr = a->image.base + e->z * *plane + e->y * *pitch + e->x;
	return CUDA_SUCCESS;
}

static CUresult side(const struct end *e, const struct copy *c, uint64_t *addr, size_t *pitch, size_t *plane, bool *is_host)
{
	*is_host = e->type == CU_MEMORYTYPE_HOST || e->type == CU_MEMORYTYPE_UNIFIED;
	switch (e->type) {
	case CU_MEMORYTYPE_HOST:
		return in_memory(e, c, (uintptr_t)e->host, addr, pitch, plane) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		return in_memory(e, c, e->device, addr, pitch, plane) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEMORYTYPE_ARRAY:
		return in_array(e, c, addr, pitch, plane);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult from_3d(const CUDA_MEMCPY3D *p, struct copy *c)
{
	struct end src, dst;

	if (!p || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	*c = (struct copy){.width = p->WidthInBytes, .rows = p->Height, .planes = p->Depth};
	src = (struct end){p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
			   p->srcY,	     p->srcZ,	 p->srcPitch,  p->srcHeight};
	dst = (struct end){p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
			   p->dstY,	     p->dstZ,	 p->dstPitch,  p->dstHeight};
	TRY(side(&src, c, &c->src, &c->src_pitch, &c->src_plane, &c->src_host));
	return side(&dst, c, &c->dst, &c->dst_pitch, &c->dst_plane, &c->dst_host);
}

CUresult copy_check(const CUDA_MEMCPY3D *p)
{
	enum where from, to;
	struct copy c;

	TRY(from_3d(p, &c));
	return place(&c, &from, &to);
}

CUresult copy_op_of(const CUDA_MEMCPY3D *p, struct op **op)
{
	struct copy c;

	TRY(from_3d(p, &c));
	return copy_op_for(&c, op);
}

CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
	struct copy c;

	TRY(from_3d(p, &c));
	return copy_submit(&c, stream, async);
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
	CUDA_MEMCPY3D q;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	q = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
	return copy_3d(&q, stream, async);
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
	AUTO_PUT struct ctx *from = NULL;
	AUTO_PUT struct ctx *to = NULL;
	CUDA_MEMCPY3D q;

	TRY(api_enter());
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(ctx_resolve(p->srcContext, &from));
	TRY(ctx_resolve(p->dstContext, &to));
	q = copy_of_peer(p);
	return copy_3d(&q, stream, async);
}
