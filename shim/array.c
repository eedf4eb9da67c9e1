// SPDX-License-Identifier: MIT
/* Arrays and mipmapped arrays: made and ended by the server, described from what the client keeps with the handle. */
#include "shim/array.h"

#include <pthread.h>
#include <stdlib.h>
#include "lib/texel.h"
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/unsupported.h"

/* An array's fields. Extents have no more than 32 bits: a width of texels has 17. */
enum { EXTENTS, DEPTH_FLAGS, FORMAT, LEVEL };

struct levels {
	unsigned int n;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	pthread_mutex_t lock;
	struct rgpu_obj *level[]; /* NULL until it was asked for */
};

static void describe(struct rgpu_obj *obj, const CUDA_ARRAY3D_DESCRIPTOR *d, bool level)
{
	obj->field[EXTENTS] = d->Width | (uint64_t)d->Height << 32;
	obj->field[DEPTH_FLAGS] = d->Depth | (uint64_t)d->Flags << 32;
	obj->field[FORMAT] = d->Format | (uint64_t)d->NumChannels << 32;
	obj->field[LEVEL] = level;
}

static CUDA_ARRAY3D_DESCRIPTOR description(const struct rgpu_obj *obj)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = (uint32_t)obj->field[EXTENTS],
		.Height = obj->field[EXTENTS] >> 32,
		.Depth = (uint32_t)obj->field[DEPTH_FLAGS],
		.Flags = obj->field[DEPTH_FLAGS] >> 32,
		.Format = (CUarray_format)(uint32_t)obj->field[FORMAT],
		.NumChannels = obj->field[FORMAT] >> 32,
	};
}

bool array_find(CUarray handle, struct array_info *out)
{
	struct rgpu_obj *obj = handle_find(KIND_array, (uint64_t)handle);
	struct texel_format f;

	if (!obj)
		return false;
	out->desc = description(obj);
	out->texel = texel_format(out->desc.Format, out->desc.NumChannels, &f) ? 0 : f.bytes;
	return true;
}

/* The driver checks shapes and limits; here only what the client would not understand later. */
static int check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	const unsigned int later = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
	struct texel_format f;
	int r;

	if (d->Width > UINT32_MAX || d->Height > UINT32_MAX || d->Depth > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & later)
		return rgpu_unsupported("arrays without memory of their own (sparse, deferred mapping)", NULL);
	r = texel_format(d->Format, d->NumChannels, &f);
	if (r == CUDA_ERROR_NOT_SUPPORTED)
		return rgpu_unsupported("arrays of block-compressed, YUV or packed formats", NULL);
	return r;
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuArray3DCreate_v2);

	if (!r && (!pHandle || !d))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check(d);
	if (!r)
		r = rgpu_mint(&c, KIND_array, &wire, &obj);
	if (r)
		return r;
	describe(obj, d, false);
	c.settles = true;
	r = rpc_cuArray3DCreate_v2(&c, wire, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags);
	if (r)
		rgpu_retire(obj);
	else
		*pHandle = (CUarray)wire;
	return r;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR d3 = {0};

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	d3.Width = d->Width;
	d3.Height = d->Height;
	d3.Format = d->Format;
	d3.NumChannels = d->NumChannels;
	return cuArray3DCreate_v2(pHandle, &d3);
}

static int use_array(struct rgpu_call *c, uint16_t op, CUarray handle, uint64_t *wire, struct rgpu_obj **obj)
{
	int r = rgpu_enter(c, op);

	return r ? r : rgpu_use(c, KIND_array, handle, true, wire, obj);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray hArray)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = use_array(&c, RGPU_NO_OP, hArray, &wire, &obj);

	if (!r && !d)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*d = description(obj);
	return r;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d3;
	CUresult r = d ? cuArray3DGetDescriptor_v2(&d3, hArray) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*d = (CUDA_ARRAY_DESCRIPTOR){d3.Width, d3.Height, d3.Format, d3.NumChannels};
	return r;
}

/*
 * CUDA ends no array that is in use. The program's thread waits for that here: a record that waits at the server would hold
 * what comes after it, which may be what lets the work go on.
 */
CUresult cuArrayDestroy(CUarray hArray)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = use_array(&c, OP_cuArrayDestroy, hArray, &wire, &obj);

	if (!r && obj->field[LEVEL])
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r)
		r = ctx_quiesce(&c);
	if (r)
		return r;
	c.op = OP_cuArrayDestroy;
	r = rpc_cuArrayDestroy(&c, wire);
	if (c.sent)
		rgpu_retire(obj);
	return r;
}

/* Of kinds of arrays that are not made here: as the driver says for all others. */
static int not_of_this(CUarray hArray)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = use_array(&c, RGPU_NO_OP, hArray, &wire, &obj);

	return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	(void)pPlaneArray;
	(void)planeIdx;
	return not_of_this(hArray);
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	(void)sparseProperties;
	return not_of_this(array);
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	(void)memoryRequirements;
	(void)device;
	return not_of_this(array);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev)
{
	struct texel_format f;
	int n;
	CUresult r = cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, dev);

	if (!r && !maxWidthInElements)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = texel_format(format, numChannels, &f);
	if (!r)
		*maxWidthInElements = n;
	return r;
}

/* Mipmapped arrays. */

static void drop_mipmap(struct rgpu_obj *obj)
{
	struct levels *l = obj->data;

	obj->data = NULL;
	handle_free(obj);
	for (unsigned int i = 0; i < l->n; i++)
		if (l->level[i])
			handle_free(l->level[i]);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int numMipmapLevels)
{
	struct levels *l = NULL;
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = rgpu_enter(&c, OP_cuMipmappedArrayCreate);

	if (!r && (!pHandle || !d || !numMipmapLevels))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check(d);
	if (r)
		return r;
	/* More levels than there can be are cut to those. */
	if (numMipmapLevels > mipmap_levels(d))
		numMipmapLevels = mipmap_levels(d);
	l = calloc(1, sizeof(*l) + numMipmapLevels * sizeof(l->level[0]));
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->n = numMipmapLevels;
	l->desc = *d;
	pthread_mutex_init(&l->lock, NULL);
	r = rgpu_mint(&c, KIND_mipmap, &wire, &obj);
	if (r) {
		free(l);
		return r;
	}
	obj->data = l;
	c.settles = true;
	r = rpc_cuMipmappedArrayCreate(&c, wire, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags, l->n);
	if (r)
		drop_mipmap(obj);
	else
		*pHandle = (CUmipmappedArray)wire;
	return r;
}

static int use_mipmap(struct rgpu_call *c, uint16_t op, CUmipmappedArray handle, uint64_t *wire, struct rgpu_obj **obj)
{
	int r = rgpu_enter(c, op);

	return r ? r : rgpu_use(c, KIND_mipmap, handle, true, wire, obj);
}

/* Each level is asked for once and then has its handle. */
CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct rgpu_call c;
	struct rgpu_obj *obj, *a = NULL;
	struct levels *l;
	uint64_t wire, array;
	int r = use_mipmap(&c, OP_cuMipmappedArrayGetLevel, hMipmappedArray, &wire, &obj);

	if (r)
		return r;
	l = obj->data;
	if (!pLevelArray || level >= l->n)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&l->lock);
	if (!l->level[level]) {
		r = rgpu_mint(&c, KIND_array, &array, &a);
		if (!r) {
			r = rpc_cuMipmappedArrayGetLevel(&c, array, wire, level);
			if (r) {
				rgpu_retire(a);
			} else {
				d = mipmap_level(&l->desc, level);
				describe(a, &d, true);
				l->level[level] = a;
			}
		}
	}
	if (!r)
		*pLevelArray = (CUarray)l->level[level]->handle;
	pthread_mutex_unlock(&l->lock);
	return r;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = use_mipmap(&c, OP_cuMipmappedArrayDestroy, hMipmappedArray, &wire, &obj);

	if (!r)
		r = ctx_quiesce(&c);
	if (r)
		return r;
	c.op = OP_cuMipmappedArrayDestroy;
	r = rpc_cuMipmappedArrayDestroy(&c, wire);
	if (c.sent)
		drop_mipmap(obj);
	return r;
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire;
	int r = use_mipmap(&c, RGPU_NO_OP, mipmap, &wire, &obj);

	(void)sparseProperties;
	return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
					       CUdevice device)
{
	(void)memoryRequirements;
	(void)device;
	return cuMipmappedArrayGetSparseProperties(NULL, mipmap);
}

static void drop_array_of(struct rgpu_obj *obj, void *context)
{
	if (obj->context == context)
		handle_free(obj);
}

static void drop_mipmap_of(struct rgpu_obj *obj, void *context)
{
	if (obj->context == context)
		drop_mipmap(obj);
}

void array_drop_context(struct rgpu_obj *context)
{
	handle_each(KIND_mipmap, drop_mipmap_of, context);
	handle_each(KIND_array, drop_array_of, context);
}
