// SPDX-License-Identifier: MIT
/* Arrays, mipmapped arrays, texture and surface objects, and copies of boxes that stay at the server. */
#include <stdlib.h>
#include <string.h>
#include "server/call_array.h"
#include "server/quota.h"
#include "lib/box.h"

static bool has(struct srv_call *c, const void *fn)
{
	if (!fn)
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
	return fn;
}

/* What an array takes, alignment aside; all levels of a mipmapped one come to less than a half more. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, bool levels)
{
	unsigned __int128 n = d->Width;

	n *= (d->Height ? d->Height : 1) * (unsigned __int128)(d->Depth ? d->Depth : 1);
	n *= d->NumChannels;
	switch (d->Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		n *= 4;
		break;
	default:
		n *= 2;
	}
	if (levels)
		n += n / 2;
	return n > UINT64_MAX / 8 ? UINT64_MAX / 8 : n;
}

static unsigned listed_as(struct srv_call *c, uint64_t ctx)
{
	struct srv_ctx *x = srv_context(c, ctx);

	return x ? c->session->device[x->device].list_index : 0;
}

/* The context that is about to go has it still. Its memory is the account's again. */
void array_drop(struct srv_session *s, void *real)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUdevice dev;

	if (!drv_cuda.cuArray3DGetDescriptor_v2 || drv_cuda.cuArray3DGetDescriptor_v2(&d, real) || drv_cuda.cuCtxGetDevice(&dev))
		return;
	for (unsigned i = 0; i < s->ndevices; i++)
		if (s->device[i].dev == dev)
			quota_give(s->device[i].list_index, array_bytes(&d, false));
}

void srv_cuArray3DCreate_v2(struct srv_call *c)
{
	struct rec_cuArray3DCreate_v2 a;
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUarray real;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_array, a.pHandle) ||
	    !has(c, drv_cuda.cuArray3DCreate_v2))
		return;
	d = (CUDA_ARRAY3D_DESCRIPTOR){a.width, a.height, a.depth, (CUarray_format)a.format, a.channels, a.flags};
	if (!quota_take(listed_as(c, a.ctx), array_bytes(&d, false))) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	r = drv_cuda.cuArray3DCreate_v2(&real, &d);
	if (r)
		quota_give(listed_as(c, a.ctx), array_bytes(&d, false));
	else
		srv_put(c, KIND_array, a.pHandle, real, a.ctx);
	srv_fail(c, r);
}

/* A level of a mipmapped array dies with that one alone; its handle names it as others name their context. */
void srv_cuArrayDestroy(struct srv_call *c)
{
	struct rec_cuArrayDestroy a;
	struct srv_slot slot;
	void *real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !has(c, drv_cuda.cuArrayDestroy))
		return;
	if (!session_find(c->session, KIND_array, a.hArray, &slot) || SRV_HANDLE_KIND(slot.ctx) != KIND_context) {
		srv_fail(c, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	if (srv_take(c, KIND_array, a.hArray, &real)) {
		array_drop(c->session, real);
		srv_fail(c, drv_cuda.cuArrayDestroy(real));
	}
}

/* Mipmapped arrays. */

/* Another lane may just look at it: like contexts' structures these stay, a few bytes each, until the session ends. */
struct srv_mipmap {
	CUmipmappedArray real;
	uint64_t handle, bytes;
	unsigned device; /* in the server's list */
};

static void drop_level(struct srv_session *s, enum rgpu_kind kind, void *real)
{
	(void)s;
	(void)kind;
	(void)real; /* the mipmapped array's */
}

void mipmap_drop(struct srv_session *s, void *mipmap)
{
	struct srv_mipmap *m = mipmap;

	session_drop_context(s, m->handle, drop_level);
	quota_give(m->device, m->bytes);
}

void srv_cuMipmappedArrayCreate(struct srv_call *c)
{
	struct rec_cuMipmappedArrayCreate a;
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct srv_mipmap *m;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_mipmap, a.pHandle) ||
	    !has(c, drv_cuda.cuMipmappedArrayCreate))
		return;
	m = calloc(1, sizeof(*m));
	if (!m) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	d = (CUDA_ARRAY3D_DESCRIPTOR){a.width, a.height, a.depth, (CUarray_format)a.format, a.channels, a.flags};
	m->handle = a.pHandle;
	m->bytes = array_bytes(&d, true);
	m->device = listed_as(c, a.ctx);
	if (!quota_take(m->device, m->bytes)) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		free(m);
		return;
	}
	r = drv_cuda.cuMipmappedArrayCreate(&m->real, &d, a.levels);
	if (r) {
		quota_give(m->device, m->bytes);
		free(m);
	} else
		srv_put(c, KIND_mipmap, a.pHandle, m, a.ctx);
	srv_fail(c, r);
}

void srv_cuMipmappedArrayGetLevel(struct srv_call *c)
{
	struct rec_cuMipmappedArrayGetLevel a;
	void *mipmap;
	CUarray real;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_use(c, KIND_mipmap, a.hMipmap, &mipmap) ||
	    !srv_fresh(c, KIND_array, a.pLevel) || !has(c, drv_cuda.cuMipmappedArrayGetLevel))
		return;
	r = drv_cuda.cuMipmappedArrayGetLevel(&real, ((struct srv_mipmap *)mipmap)->real, a.level);
	if (!r)
		srv_put(c, KIND_array, a.pLevel, real, a.hMipmap);
	srv_fail(c, r);
}

void srv_cuMipmappedArrayDestroy(struct srv_call *c)
{
	struct rec_cuMipmappedArrayDestroy a;
	void *mipmap;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !has(c, drv_cuda.cuMipmappedArrayDestroy) ||
	    !srv_take(c, KIND_mipmap, a.hMipmap, &mipmap))
		return;
	mipmap_drop(c->session, mipmap);
	srv_fail(c, drv_cuda.cuMipmappedArrayDestroy(((struct srv_mipmap *)mipmap)->real));
}

/* Texture and surface objects. */

static bool linear_range(struct srv_call *c, const struct rec_TEXOBJ_CREATE *a)
{
	unsigned __int128 bytes = a->width;

	/* The driver knows texels and takes what it needs of the last row: that is no more than its pitch. */
	if (a->type == CU_RESOURCE_TYPE_PITCH2D) {
		struct texel_format f;
		CUresult r = texel_format((CUarray_format)a->format, a->channels, &f);

		/* Larger ones no device has, and the sum would not be a number any more. */
		if (!r && (a->height > UINT32_MAX || a->pitch > UINT32_MAX || a->width > UINT32_MAX))
			r = CUDA_ERROR_INVALID_VALUE;
		if (r || !a->height) {
			srv_fail(c, r ? r : CUDA_ERROR_INVALID_VALUE);
			return false;
		}
		bytes = (unsigned __int128)a->pitch * (a->height - 1) + (unsigned __int128)a->width * f.bytes;
	}
	if (bytes > (unsigned __int128)INT64_MAX) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	return srv_range(c, a->resource, (__int128)bytes);
}

static bool resource(struct srv_call *c, const struct rec_TEXOBJ_CREATE *a, CUDA_RESOURCE_DESC *r)
{
	void *real;

	memset(r, 0, sizeof(*r));
	r->resType = (CUresourcetype)a->type;
	switch (a->type) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (!srv_use(c, KIND_array, a->resource, &real))
			return false;
		r->res.array.hArray = real;
		return true;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (!srv_use(c, KIND_mipmap, a->resource, &real))
			return false;
		r->res.mipmap.hMipmappedArray = ((struct srv_mipmap *)real)->real;
		return true;
	case CU_RESOURCE_TYPE_LINEAR:
		r->res.linear.devPtr = a->resource;
		r->res.linear.format = (CUarray_format)a->format;
		r->res.linear.numChannels = a->channels;
		r->res.linear.sizeInBytes = a->width;
		return linear_range(c, a);
	case CU_RESOURCE_TYPE_PITCH2D:
		r->res.pitch2D.devPtr = a->resource;
		r->res.pitch2D.format = (CUarray_format)a->format;
		r->res.pitch2D.numChannels = a->channels;
		r->res.pitch2D.width = a->width;
		r->res.pitch2D.height = a->height;
		r->res.pitch2D.pitchInBytes = a->pitch;
		return linear_range(c, a);
	default:
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
}

void srv_TEXOBJ_CREATE(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_TEXOBJ_CREATE);
	struct rep_TEXOBJ_CREATE rep = {0};
	struct rec_TEXOBJ_CREATE a;
	CUDA_RESOURCE_VIEW_DESC view;
	CUDA_TEXTURE_DESC tex;
	CUDA_RESOURCE_DESC res;
	const void *t, *v;
	unsigned long long object = 0;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(t = srv_bytes(c, &at, sizeof(tex))) || !(v = srv_bytes(c, &at, sizeof(view))) ||
	    !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_texobj, a.handle) || !resource(c, &a, &res) ||
	    !has(c, a.surface ? (void *)drv_cuda.cuSurfObjectCreate : (void *)drv_cuda.cuTexObjectCreate))
		return;
	memcpy(&tex, t, sizeof(tex));
	memcpy(&view, v, sizeof(view));
	if (a.surface)
		r = drv_cuda.cuSurfObjectCreate(&object, &res);
	else
		r = drv_cuda.cuTexObjectCreate(&object, &res, &tex, a.has_view ? &view : NULL);
	if (!r)
		srv_put(c, KIND_texobj, a.handle, (void *)(uintptr_t)object, a.ctx);
	srv_fail(c, r);
	rep.object = object;
	srv_answer(c, &rep, sizeof(rep));
}

void srv_TEXOBJ_DESTROY(struct srv_call *c)
{
	struct rec_TEXOBJ_DESTROY a;
	void *real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) ||
	    !has(c, a.surface ? (void *)drv_cuda.cuSurfObjectDestroy : (void *)drv_cuda.cuTexObjectDestroy) ||
	    !srv_take(c, KIND_texobj, a.handle, &real))
		return;
	srv_fail(c, a.surface ? drv_cuda.cuSurfObjectDestroy((CUsurfObject)(uintptr_t)real)
			      : drv_cuda.cuTexObjectDestroy((CUtexObject)(uintptr_t)real));
}

/* Boxes. */

/* One end of a box in the driver's words; memory must be the session's. */
struct end {
	CUmemorytype type;
	CUdeviceptr device;
	CUarray array;
};

static bool end_of(struct srv_call *c, uint64_t what, bool is_array, uint64_t pitch, uint64_t height, const struct rec_BOX *a,
		   struct end *e)
{
	const uint64_t most = 1ull << 40;
	void *real;
	__int128 span;

	if (is_array) {
		if (!srv_use(c, KIND_array, what, &real))
			return false;
		*e = (struct end){.type = CU_MEMORYTYPE_ARRAY, .array = real};
		return true;
	}
	/* What does not hold a row, or a slice, a driver may take for something else. */
	if (pitch > most || height > most || a->width > most || a->height > most || a->depth > most ||
	    (a->height > 1 && pitch < a->width) || (a->depth > 1 && height < a->height)) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return false;
	}
	span = (__int128)(a->depth - 1) * pitch * height + (__int128)(a->height - 1) * pitch + a->width;
	*e = (struct end){.type = CU_MEMORYTYPE_DEVICE, .device = what};
	return srv_range(c, what, span);
}

void srv_BOX(struct srv_call *c)
{
	CUDA_MEMCPY3D_PEER p;
	struct end dst, src;
	struct rec_BOX a;
	void *stream;

	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream))
		return;
	if (!a.width || !a.height || !a.depth || (!a.dst_array && (a.dst_x || a.dst_y || a.dst_z)) ||
	    (!a.src_array && (a.src_x || a.src_y || a.src_z))) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (!end_of(c, a.dst, a.dst_array, a.dst_pitch, a.dst_height, &a, &dst) ||
	    !end_of(c, a.src, a.src_array, a.src_pitch, a.src_height, &a, &src) || !srv_enter(c, a.ctx))
		return;
	p = (CUDA_MEMCPY3D_PEER){.srcXInBytes = a.src_x,
				 .srcY = a.src_y,
				 .srcZ = a.src_z,
				 .srcMemoryType = src.type,
				 .srcDevice = src.device,
				 .srcArray = src.array,
				 .srcPitch = a.src_pitch,
				 .srcHeight = a.src_height,
				 .dstXInBytes = a.dst_x,
				 .dstY = a.dst_y,
				 .dstZ = a.dst_z,
				 .dstMemoryType = dst.type,
				 .dstDevice = dst.device,
				 .dstArray = dst.array,
				 .dstPitch = a.dst_pitch,
				 .dstHeight = a.dst_height,
				 .WidthInBytes = a.width,
				 .Height = a.height,
				 .Depth = a.depth};
	if (a.dst_ctx || a.src_ctx) {
		struct srv_ctx *to = srv_context(c, a.dst_ctx), *from = to ? srv_context(c, a.src_ctx) : NULL;

		if (!to || !from || !has(c, drv_cuda.cuMemcpy3DPeerAsync))
			return;
		p.srcContext = from->real;
		p.dstContext = to->real;
		srv_fail(c, drv_cuda.cuMemcpy3DPeerAsync(&p, stream));
	} else if (has(c, drv_cuda.cuMemcpy3DAsync_v2)) {
		CUDA_MEMCPY3D q = copy_of_peer(&p);

		srv_fail(c, drv_cuda.cuMemcpy3DAsync_v2(&q, stream));
	}
}
