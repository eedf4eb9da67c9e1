// SPDX-License-Identifier: MIT
/* Arrays and mipmapped arrays: rows of texels in device memory that no pointer names. */
#include "softgpu/array.h"

#include <stdlib.h>

#define ROW_ALIGN 32u

/* The engine counts its channel types as lib/texel.h does. */
_Static_assert((int)TEXEL_U8 == (int)CH_U8 && (int)TEXEL_S16 == (int)CH_S16 && (int)TEXEL_F32 == (int)CH_F32, "channel types");

CUresult array_format(CUarray_format format, unsigned int channels, struct texel_format *out)
{
	CUresult r = texel_format(format, channels, out);

	if (r == CUDA_ERROR_NOT_SUPPORTED)
		log_line("an array of format 0x%x: block-compressed, YUV and packed formats are not supported", format);
	return r;
}

/* ---- Shapes ---- */

static unsigned int limit(const struct device *d, CUdevice_attribute attr)
{
	int v = 0;

	device_attribute(&v, attr, d);
	return (unsigned int)v;
}

static bool within(const struct device *d, size_t w, CUdevice_attribute aw, size_t h, CUdevice_attribute ah, size_t n,
		   CUdevice_attribute an)
{
	return w <= limit(d, aw) && (!ah || h <= limit(d, ah)) && (!an || n <= limit(d, an));
}

/* The extents must make a shape that the flags name, within the limits that the attributes tell. */
static CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR *a, const struct device *d)
{
	size_t w = a->Width, h = a->Height, n = a->Depth;
	bool layered = a->Flags & CUDA_ARRAY3D_LAYERED, cube = a->Flags & CUDA_ARRAY3D_CUBEMAP, good;

	if (!w)
		return CUDA_ERROR_INVALID_VALUE;
	if (cube && layered)
		good = w == h && n && n % 6 == 0 &&
		       within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 0, 0, n,
			      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
	else if (cube)
		good = w == h && n == 6 && within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 0, 0, 0, 0);
	else if (layered && h)
		good = n && within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, h,
				   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, n,
				   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
	else if (layered)
		good = n && within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 0, 0, n,
				   CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS);
	else if (n)
		good = h &&
		       (within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, h, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
			       n, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH) ||
			within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, h,
			       CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, n,
			       CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE));
	else if (h)
		good = within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, h, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
			      0, 0);
	else
		good = within(d, w, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 0, 0, 0, 0);
	if ((a->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) && (!h || n || layered || cube))
		good = false;
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *a, const struct device *d, struct texel_format *format)
{
	const unsigned int never = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
				   CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
	const unsigned int known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
				   CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;

	if (a->Flags & ~(known | never))
		return CUDA_ERROR_INVALID_VALUE;
	if (a->Flags & never) {
		log_line("an array with flags 0x%x: depth, sparse, deferred and video arrays are not supported", a->Flags);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	TRY(array_format(a->Format, a->NumChannels, format));
	return check_shape(a, d);
}

/* ---- Arrays ---- */

static void array_release(struct obj *o)
{
	struct array *a = container_of(o, struct array, obj);

	mem_free_array(&a->mem);
	free(a);
}

/* Not published yet. */
static CUresult array_new(struct ctx *c, const CUDA_ARRAY3D_DESCRIPTOR *desc, const struct texel_format *format,
			  struct array **out)
{
	struct array *a = calloc(1, sizeof(*a));
	uint64_t bytes;
	CUresult r;

	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->desc = *desc;
	a->format = *format;
	a->image = (struct ptx_image){
		.width = (uint32_t)desc->Width,
		.height = desc->Height ? (uint32_t)desc->Height : 1,
		.depth = desc->Depth ? (uint32_t)desc->Depth : 1,
	};
	a->image.pitch = ((uint64_t)a->image.width * format->bytes + ROW_ALIGN - 1) & ~(uint64_t)(ROW_ALIGN - 1);
	a->image.plane = a->image.pitch * a->image.height;
	r = __builtin_mul_overflow(a->image.plane, a->image.depth, &bytes) ? CUDA_ERROR_OUT_OF_MEMORY
									   : mem_alloc_array(c->dev, bytes, &a->mem);
	if (r != CUDA_SUCCESS) {
		free(a);
		return r;
	}
	a->image.base = a->mem.base;
	obj_init(&a->obj, OBJ_ARRAY, c, array_release);
	*out = a;
	return CUDA_SUCCESS;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct array *a = NULL;
	struct texel_format format;

	TRY(ctx_enter(&c));
	if (!out || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(check(desc, c->dev, &format));
	TRY(array_new(c, desc, &format, &a));
	if (!obj_publish(&a->obj))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (CUarray)a->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return create(out, desc);
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {0};

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	d.Width = desc->Width;
	d.Height = desc->Height;
	d.Format = desc->Format;
	d.NumChannels = desc->NumChannels;
	return create(out, &d);
}

static CUresult array_enter(CUarray handle, struct ctx **c, struct array **out)
{
	TRY(ctx_enter(c));
	*out = obj_get(handle, OBJ_ARRAY);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray handle)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct array *a = NULL;

	TRY(array_enter(handle, &c, &a));
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	*desc = a->desc;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray handle)
{
	CUDA_ARRAY3D_DESCRIPTOR d;

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(cuArray3DGetDescriptor_v2(&d, handle));
	*desc = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray handle)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct array *a = NULL;

	TRY(array_enter(handle, &c, &a));
	if (a->level)
		return CUDA_ERROR_INVALID_HANDLE;
	ctx_drain(a->obj.ctx);
	return obj_retire(&a->obj) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Questions about kinds of arrays that cannot be made here. */
static CUresult of_no_such_array(CUarray handle, const void *out)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct array *a = NULL;

	TRY(array_enter(handle, &c, &a));
	(void)out;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetPlane(CUarray *out, CUarray handle, unsigned int plane)
{
	(void)plane;
	return of_no_such_array(handle, out);
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray handle)
{
	return of_no_such_array(handle, out);
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle, CUdevice dev)
{
	(void)dev;
	return of_no_such_array(handle, out);
}

/* ---- Mipmapped arrays ---- */

static void mipmap_release(struct obj *o)
{
	struct mipmap *m = container_of(o, struct mipmap, obj);

	for (unsigned int i = 0; i < m->nlevels; i++)
		if (m->level[i])
			obj_put(&m->level[i]->obj);
	free(m);
}

static void mipmap_retire(struct mipmap *m)
{
	for (unsigned int i = 0; i < m->nlevels; i++)
		if (m->level[i])
			obj_retire(&m->level[i]->obj);
}

static CUresult make_levels(struct ctx *c, struct mipmap *m, const struct texel_format *format)
{
	for (unsigned int i = 0; i < m->nlevels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR d = mipmap_level(&m->desc, i);

		TRY(array_new(c, &d, format, &m->level[i]));
		m->level[i]->level = true;
		if (!obj_publish(&m->level[i]->obj))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int nlevels)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct mipmap *m = NULL;
	struct texel_format format;
	CUresult r;

	TRY(ctx_enter(&c));
	if (!out || !desc || !nlevels)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(check(desc, c->dev, &format));
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&m->obj, OBJ_MIPMAP, c, mipmap_release);
	m->desc = *desc;
	/* More levels than there can be are cut to those. */
	m->nlevels = nlevels < mipmap_levels(desc) ? nlevels : mipmap_levels(desc);
	r = make_levels(c, m, &format);
	if (r == CUDA_SUCCESS && !obj_publish(&m->obj))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		mipmap_retire(m);
		return r;
	}
	*out = (CUmipmappedArray)m->obj.handle;
	return CUDA_SUCCESS;
}

static CUresult mipmap_enter(CUmipmappedArray handle, struct ctx **c, struct mipmap **out)
{
	TRY(ctx_enter(c));
	*out = obj_get(handle, OBJ_MIPMAP);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned int level)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct mipmap *m = NULL;

	TRY(mipmap_enter(handle, &c, &m));
	if (!out || level >= m->nlevels)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUarray)m->level[level]->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct mipmap *m = NULL;

	TRY(mipmap_enter(handle, &c, &m));
	ctx_drain(m->obj.ctx);
	if (!obj_retire(&m->obj))
		return CUDA_ERROR_INVALID_HANDLE;
	mipmap_retire(m);
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray handle)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct mipmap *m = NULL;

	(void)out;
	TRY(mipmap_enter(handle, &c, &m));
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray handle, CUdevice dev)
{
	(void)dev;
	return cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)out, handle);
}

void arrays_free_of_ctx(struct ctx *c)
{
	static const enum obj_kind kinds[] = {OBJ_MIPMAP, OBJ_ARRAY};
	struct obj *o;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		while ((o = obj_first_of(c, kinds[i]))) {
			obj_retire(o);
			obj_put(o);
		}
}
