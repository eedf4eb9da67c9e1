// SPDX-License-Identifier: MIT
/* Texture and surface objects. Their values are the server driver's own, for kernels carry them: making one asks and waits. */
#include <pthread.h>
#include <stdlib.h>
#include "rgpu_rpc.h"
#include "shim/array.h"
#include "shim/ctx.h"
#include "shim/handles.h"

/* What the program may ask about an object, found by its value. */
struct object {
	struct object *next;
	uint64_t value;
	struct rgpu_obj *obj;
	bool surface, has_view;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
};

#define BUCKETS 256u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* buckets; nothing is taken inside */
static struct object *bucket[BUCKETS];

/* Values are small numbers here and there, or have their count in the upper half. */
static struct object **bucket_of(uint64_t value)
{
	return &bucket[(value ^ value >> 20 ^ value >> 40) % BUCKETS];
}

/* Another context's driver may have given the same number. */
static struct object **find_locked(const struct rgpu_call *c, uint64_t value, bool surface)
{
	struct object **p = bucket_of(value);

	while (*p && ((*p)->value != value || (*p)->surface != surface || (*p)->obj->context != c->context))
		p = &(*p)->next;
	return p;
}

void texture_drop_context(struct rgpu_obj *context)
{
	struct object *gone = NULL, *o;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < BUCKETS; i++)
		for (struct object **p = &bucket[i]; (o = *p);) {
			if (o->obj->context != context) {
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
		handle_free(o->obj);
		free(o);
	}
}

/* The resource in the record's words. */
struct words {
	uint64_t resource, width, height, pitch;
	uint32_t format, channels;
};

static int read_resource(struct rgpu_call *c, const CUDA_RESOURCE_DESC *r, struct words *w)
{
	struct rgpu_obj *obj;

	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return rgpu_use(c, KIND_array, r->res.array.hArray, false, &w->resource, &obj);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return rgpu_use(c, KIND_mipmap, r->res.mipmap.hMipmappedArray, false, &w->resource, &obj);
	case CU_RESOURCE_TYPE_LINEAR:
		w->resource = r->res.linear.devPtr;
		w->format = r->res.linear.format;
		w->channels = r->res.linear.numChannels;
		w->width = r->res.linear.sizeInBytes;
		return w->width ? rgpu_check_range(c, w->resource, w->width) : CUDA_ERROR_INVALID_VALUE;
	case CU_RESOURCE_TYPE_PITCH2D:
		w->resource = r->res.pitch2D.devPtr;
		w->format = r->res.pitch2D.format;
		w->channels = r->res.pitch2D.numChannels;
		w->width = r->res.pitch2D.width;
		w->height = r->res.pitch2D.height;
		w->pitch = r->res.pitch2D.pitchInBytes;
		/* The last row may end early: the server knows texels and looks. */
		return w->width && w->height ? 0 : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static int create(unsigned long long *out, bool surface, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
		  const CUDA_RESOURCE_VIEW_DESC *v)
{
	struct words w = {0};
	struct object *o;
	struct rgpu_call c;
	uint64_t wire;
	int err = rgpu_enter(&c, OP_TEXOBJ_CREATE);

	if (!err && (!out || !r || (!surface && !t) || (surface && r->resType != CU_RESOURCE_TYPE_ARRAY)))
		err = CUDA_ERROR_INVALID_VALUE;
	if (!err)
		err = ctx_use(&c, NULL);
	if (!err)
		err = read_resource(&c, r, &w);
	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->surface = surface;
	o->resource = *r;
	o->has_view = v;
	if (t)
		o->texture = *t;
	if (v)
		o->view = *v;
	err = rgpu_mint(&c, KIND_texobj, &wire, &o->obj);
	if (err) {
		free(o);
		return err;
	}
	c.settles = true; /* it only makes a name */
	err = rpc_TEXOBJ_CREATE(&c, wire, surface, r->resType, w.resource, w.format, w.channels, w.width, w.height, w.pitch, !!v,
				(const uint8_t *)&o->texture, sizeof(o->texture), (const uint8_t *)&o->view, sizeof(o->view),
				&o->value);
	if (err) {
		rgpu_retire(o->obj);
		free(o);
		return err;
	}
	*out = o->value;
	pthread_mutex_lock(&lock);
	o->next = *bucket_of(o->value);
	*bucket_of(o->value) = o;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Kernels that were given it still have it: as with arrays, the program's thread waits for them. */
static int destroy(uint64_t value, bool surface)
{
	struct object **p, *o;
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_TEXOBJ_DESTROY);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	p = find_locked(&c, value, surface);
	o = *p;
	if (o)
		*p = o->next;
	pthread_mutex_unlock(&lock);
	if (!o)
		return CUDA_ERROR_INVALID_VALUE;
	r = rgpu_use(&c, KIND_texobj, (void *)o->obj->handle, true, &value, &o->obj);
	if (!r)
		r = ctx_quiesce(&c);
	if (!r) {
		c.op = OP_TEXOBJ_DESTROY;
		r = rpc_TEXOBJ_DESTROY(&c, value, surface);
	}
	rgpu_retire(o->obj);
	free(o);
	return r;
}

static int look(uint64_t value, bool surface, const void *out, struct object *o)
{
	struct object *found = NULL;
	struct rgpu_call c;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	found = *find_locked(&c, value, surface);
	if (found)
		*o = *found;
	pthread_mutex_unlock(&lock);
	return found && out ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
			   const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	return create(pTexObject, false, pResDesc, pTexDesc, pResViewDesc);
}

CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	return destroy(texObject, false);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	struct object o;
	int r = look(texObject, false, pResDesc, &o);

	if (!r)
		*pResDesc = o.resource;
	return r;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	struct object o;
	int r = look(texObject, false, pTexDesc, &o);

	if (!r)
		*pTexDesc = o.texture;
	return r;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	struct object o;
	int r = look(texObject, false, pResViewDesc, &o);

	if (!r && !o.has_view)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*pResViewDesc = o.view;
	return r;
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	return create(pSurfObject, true, pResDesc, NULL, NULL);
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return destroy(surfObject, true);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	struct object o;
	int r = look(surfObject, true, pResDesc, &o);

	if (!r)
		*pResDesc = o.resource;
	return r;
}
