// SPDX-License-Identifier: MIT
/* Texture and surface objects: what they were made of, checked and turned into what the engine samples. */
#include "softgpu/array.h"

#include <stdlib.h>
#include <string.h>

/* Found by the object's value, which kernels carry: a list in a table of buckets. */
struct texobj {
	struct texobj *next;
	uint64_t object;
	struct ctx *ctx; /* only to compare */
	bool surface, has_view;
	struct obj *held; /* array or mipmapped array, a reference */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
};

#define BUCKETS 1024u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* buckets */
static struct texobj *bucket[BUCKETS];

/* Out of the table: the caller's alone. */
static struct texobj *take(uint64_t object, bool surface)
{
	struct texobj **p = &bucket[object % BUCKETS], *o = NULL;

	pthread_mutex_lock(&lock);
	while (*p && ((*p)->object != object || (*p)->surface != surface))
		p = &(*p)->next;
	if (*p) {
		o = *p;
		*p = o->next;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

static bool look(uint64_t object, bool surface, struct texobj *out)
{
	struct texobj *o;

	pthread_mutex_lock(&lock);
	o = bucket[object % BUCKETS];
	while (o && (o->object != object || o->surface != surface))
		o = o->next;
	if (o)
		*out = *o;
	pthread_mutex_unlock(&lock);
	return o;
}

static void destroy(struct texobj *o)
{
	ptx_texture_leave(o->object);
	if (o->held)
		obj_put(o->held);
	free(o);
}

void texture_objects_free_of_ctx(struct ctx *c)
{
	struct texobj *gone = NULL, *o;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct texobj **p = &bucket[i]; *p;) {
			o = *p;
			if (o->ctx != c) {
				p = &o->next;
				continue;
			}
			*p = o->next;
			o->next = gone;
			gone = o;
		}
	pthread_mutex_unlock(&lock);
	while ((o = gone)) {
		gone = o->next;
		destroy(o);
	}
}

/* ---- Resources ---- */

static void from_array(const struct array *a, struct ptx_texture *t)
{
	bool layered = a->desc.Flags & CUDA_ARRAY3D_LAYERED, cube = a->desc.Flags & CUDA_ARRAY3D_CUBEMAP;

	t->channel = (uint8_t)a->format.channel;
	t->channels = (uint8_t)a->desc.NumChannels;
	t->texel = (uint8_t)a->format.bytes;
	t->stays = 1;
	t->promote = a->format.norm;
	t->layered = layered;
	t->cubemap = cube;
	t->dims = !a->desc.Height ? 1 : a->desc.Depth && !layered && !cube ? 3 : 2;
}

static CUresult linear_memory(uint64_t addr, CUarray_format format, unsigned int channels, struct ptx_texture *t,
			      const struct device *d)
{
	struct texel_format f;
	int align;

	TRY(device_attribute(&align, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, d));
	TRY(array_format(format, channels, &f));
	if (!addr || addr % (unsigned int)align)
		return CUDA_ERROR_INVALID_VALUE;
	t->channel = (uint8_t)f.channel;
	t->channels = (uint8_t)channels;
	t->texel = (uint8_t)f.bytes;
	t->promote = f.norm;
	return CUDA_SUCCESS;
}

static CUresult from_linear(const CUDA_RESOURCE_DESC *r, struct ptx_texture *t, const struct device *d)
{
	size_t bytes = r->res.linear.sizeInBytes;
	int most;

	TRY(linear_memory(r->res.linear.devPtr, r->res.linear.format, r->res.linear.numChannels, t, d));
	TRY(device_attribute(&most, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, d));
	if (bytes < t->texel || bytes / t->texel > (unsigned int)most)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(mem_check(r->res.linear.devPtr, bytes));
	t->dims = 1;
	t->linear_memory = 1;
	t->level[0] = (struct ptx_image){r->res.linear.devPtr, bytes, bytes, (uint32_t)(bytes / t->texel), 1, 1};
	return CUDA_SUCCESS;
}

static CUresult from_pitch2d(const CUDA_RESOURCE_DESC *r, struct ptx_texture *t, const struct device *d)
{
	size_t w = r->res.pitch2D.width, h = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
	int align, most_w, most_h, most_pitch;

	TRY(linear_memory(r->res.pitch2D.devPtr, r->res.pitch2D.format, r->res.pitch2D.numChannels, t, d));
	TRY(device_attribute(&align, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, d));
	TRY(device_attribute(&most_w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, d));
	TRY(device_attribute(&most_h, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, d));
	TRY(device_attribute(&most_pitch, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, d));
	if (!w || !h || w > (unsigned int)most_w || h > (unsigned int)most_h || pitch > (unsigned int)most_pitch ||
	    pitch % (unsigned int)align || pitch < w * t->texel)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(mem_check(r->res.pitch2D.devPtr, pitch * (h - 1) + w * t->texel));
	t->dims = 2;
	t->level[0] = (struct ptx_image){r->res.pitch2D.devPtr, pitch, pitch * h, (uint32_t)w, (uint32_t)h, 1};
	return CUDA_SUCCESS;
}

/* Fills the image's part of @t; *@held gets a reference to what must outlive the object. */
static CUresult resource(const CUDA_RESOURCE_DESC *r, struct ptx_texture *t, struct obj **held, struct ctx *c)
{
	struct array *a;
	struct mipmap *m;

	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	t->nlevels = 1;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		a = obj_get(r->res.array.hArray, OBJ_ARRAY);
		if (!a)
			return CUDA_ERROR_INVALID_HANDLE;
		*held = &a->obj;
		from_array(a, t);
		t->level[0] = a->image;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		m = obj_get(r->res.mipmap.hMipmappedArray, OBJ_MIPMAP);
		if (!m)
			return CUDA_ERROR_INVALID_HANDLE;
		*held = &m->obj;
		from_array(m->level[0], t);
		t->nlevels = m->nlevels;
		for (unsigned int i = 0; i < m->nlevels; i++)
			t->level[i] = m->level[i]->image;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_LINEAR:
		return from_linear(r, t, c->dev);
	case CU_RESOURCE_TYPE_PITCH2D:
		return from_pitch2d(r, t, c->dev);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---- Views ---- */

static bool view_format(CUresourceViewFormat view, struct ptx_texture *t)
{
	static const uint8_t channel[] = {CH_U8, CH_S8, CH_U16, CH_S16, CH_U32, CH_S32, CH_F16, CH_F32};
	static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 2, 4};
	unsigned int i = (unsigned int)view - 1;

	if (t->texel != bytes[i / 3] << i % 3)
		return false;
	t->channel = channel[i / 3];
	t->channels = (uint8_t)(1 << i % 3);
	t->promote = 0;
	return true;
}

static CUresult apply_view(const CUDA_RESOURCE_VIEW_DESC *v, struct ptx_texture *t)
{
	const struct ptx_image *im = &t->level[0];
	size_t depth = t->dims == 3 ? im->depth : 0, height = t->dims > 1 ? im->height : 0;

	if (v->format > CU_RES_VIEW_FORMAT_FLOAT_4X32 && v->format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7) {
		log_line("a texture view of format 0x%x: block-compressed formats are not supported", v->format);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (v->format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7 || (v->format && !view_format(v->format, t)))
		return CUDA_ERROR_INVALID_VALUE;
	/* For layers and faces either the number or nothing is said in depth. */
	if (v->width != im->width || v->height != height || (v->depth != depth && v->depth != im->depth))
		return CUDA_ERROR_INVALID_VALUE;
	if (v->firstMipmapLevel > v->lastMipmapLevel || v->lastMipmapLevel >= t->nlevels || v->firstLayer > v->lastLayer ||
	    v->lastLayer >= (t->layered ? im->depth : 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (t->cubemap && t->layered && (v->firstLayer % 6 || (v->lastLayer + 1) % 6))
		return CUDA_ERROR_INVALID_VALUE;
	t->nlevels = v->lastMipmapLevel - v->firstMipmapLevel + 1;
	for (unsigned int i = 0; i < t->nlevels; i++) {
		t->level[i] = t->level[i + v->firstMipmapLevel];
		if (t->layered) {
			t->level[i].base += v->firstLayer * t->level[i].plane;
			t->level[i].depth = v->lastLayer - v->firstLayer + 1;
		}
	}
	return CUDA_SUCCESS;
}

/* ---- Samplers ---- */

static CUresult sampler(const CUDA_TEXTURE_DESC *d, CUresourcetype type, struct ptx_texture *t)
{
	const unsigned int known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
				   CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;

	if (d->flags & ~known || d->filterMode > CU_TR_FILTER_MODE_LINEAR || d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR ||
	    d->maxAnisotropy > 16)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < 3; i++) {
		if (d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		t->address[i] = (uint8_t)d->addressMode[i];
	}
	t->normalized = !!(d->flags & CU_TRSF_NORMALIZED_COORDINATES);
	t->promote = t->promote || !(d->flags & CU_TRSF_READ_AS_INTEGER);
	t->srgb = !!(d->flags & CU_TRSF_SRGB);
	t->seamless = !!(d->flags & CU_TRSF_SEAMLESS_CUBEMAP);
	t->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
	t->linear_mips = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	t->bias = d->mipmapLevelBias;
	t->min_level = d->minMipmapLevelClamp;
	t->max_level = d->maxMipmapLevelClamp;
	memcpy(t->border, d->borderColor, sizeof(t->border));
	/* Integers have no values between them, and sRGB is one of bytes. */
	if (t->linear && type != CU_RESOURCE_TYPE_LINEAR && !ptx_reads_float(t))
		return CUDA_ERROR_INVALID_VALUE;
	if (t->srgb && (t->channel != CH_U8 || !ptx_reads_float(t)))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_RESOURCE_TYPE_LINEAR)
		t->linear = t->normalized = 0; /* such textures have integer coordinates only */
	return CUDA_SUCCESS;
}

/* ---- The calls ---- */

static CUresult enter(struct texobj *o, const struct ptx_texture *t, struct ctx *c)
{
	o->ctx = c;
	o->object = ptx_texture_enter(t);
	if (!o->object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	o->next = bucket[o->object % BUCKETS];
	bucket[o->object % BUCKETS] = o;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static CUresult fill(struct texobj *o, struct ptx_texture *t, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
		     const CUDA_RESOURCE_VIEW_DESC *v, struct ctx *c)
{
	TRY(resource(r, t, &o->held, c));
	o->resource = *r;
	if (o->surface) {
		const struct array *a = container_of(o->held, struct array, obj);

		t->surface = 1;
		return a->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	if (v) {
		if (r->resType != CU_RESOURCE_TYPE_ARRAY && r->resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
			return CUDA_ERROR_INVALID_VALUE;
		TRY(apply_view(v, t));
		o->view = *v;
		o->has_view = true;
	}
	o->texture = *d;
	return sampler(d, r->resType, t);
}

static CUresult create(unsigned long long *out, bool surface, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
		       const CUDA_RESOURCE_VIEW_DESC *v)
{
	AUTO_PUT struct ctx *c = NULL;
	struct ptx_texture t = {0};
	struct texobj *o;
	CUresult res;

	TRY(ctx_enter(&c));
	if (!out || !r || (!surface && !d) || (surface && r->resType != CU_RESOURCE_TYPE_ARRAY))
		return CUDA_ERROR_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->surface = surface;
	res = fill(o, &t, r, d, v, c);
	if (res == CUDA_SUCCESS)
		res = enter(o, &t, c);
	if (res != CUDA_SUCCESS) {
		if (o->held)
			obj_put(o->held);
		free(o);
		return res;
	}
	*out = o->object;
	return CUDA_SUCCESS;
}

static CUresult end(unsigned long long object, bool surface)
{
	AUTO_PUT struct ctx *c = NULL;
	struct texobj *o;

	TRY(ctx_enter(&c));
	/* Kernels that were given it before still have it. */
	ctx_drain(c);
	o = take(object, surface);
	if (!o)
		return CUDA_ERROR_INVALID_VALUE;
	destroy(o);
	return CUDA_SUCCESS;
}

static CUresult find(unsigned long long object, bool surface, const void *out, struct texobj *o)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	return out && look(object, surface, o) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
			   const CUDA_RESOURCE_VIEW_DESC *v)
{
	return create(out, false, r, d, v);
}

CUresult cuTexObjectDestroy(CUtexObject object)
{
	return end(object, false);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject object)
{
	struct texobj o;

	TRY(find(object, false, out, &o));
	*out = o.resource;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject object)
{
	struct texobj o;

	TRY(find(object, false, out, &o));
	*out = o.texture;
	return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject object)
{
	struct texobj o;

	TRY(find(object, false, out, &o));
	if (!o.has_view)
		return CUDA_ERROR_INVALID_VALUE;
	*out = o.view;
	return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *r)
{
	return create(out, true, r, NULL, NULL);
}

CUresult cuSurfObjectDestroy(CUsurfObject object)
{
	return end(object, true);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject object)
{
	struct texobj o;

	TRY(find(object, true, out, &o));
	*out = o.resource;
	return CUDA_SUCCESS;
}
