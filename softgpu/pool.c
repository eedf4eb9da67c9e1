// SPDX-License-Identifier: MIT
/* Stream-ordered allocation and memory pools. */
#include "softgpu/graph.h"

#include <stdlib.h>

/*
 * Address space is plentiful and pages come when they are touched, so an allocation is made at the call, not in
 * stream order, and a free gives its bytes back to the device's account at the call too: a program that frees and
 * allocates in one stream never runs out because the stream is behind. The memory itself goes when the stream
 * gets there.
 */
struct pool {
	struct obj obj;
	struct device *dev;
	bool is_default;
	CUmemPoolProps props;
	pthread_mutex_t lock; /* the fields below */
	uint64_t used, used_high, threshold;
	int follow, opportunistic, internal; /* reuse policies: all the same here, kept for who asks */
};

static void pool_release(struct obj *o)
{
	struct pool *p = container_of(o, struct pool, obj);

	pthread_mutex_destroy(&p->lock);
	free(p);
}

static struct pool *pool_new(struct device *d, const CUmemPoolProps *props)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	obj_init(&p->obj, OBJ_POOL, NULL, pool_release);
	p->dev = d;
	p->props = *props;
	p->follow = p->opportunistic = p->internal = 1;
	pthread_mutex_init(&p->lock, NULL);
	if (!obj_publish(&p->obj)) {
		obj_put(&p->obj);
		return NULL;
	}
	return p;
}

CUresult pool_init(struct device *d)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->index},
	};

	d->pool = d->current_pool = pool_new(d, &props);
	if (!d->pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->pool->is_default = true;
	return CUDA_SUCCESS;
}

static void account(struct pool *p, int64_t bytes)
{
	pthread_mutex_lock(&p->lock);
	p->used += (uint64_t)bytes;
	if (p->used > p->used_high)
		p->used_high = p->used;
	pthread_mutex_unlock(&p->lock);
}

void pool_uncharge(const struct alloc *a)
{
	struct pool *p = a->pool ? obj_get((void *)a->pool, OBJ_POOL) : NULL;

	if (!p)
		return;
	account(p, -(int64_t)a->room);
	obj_put(&p->obj);
}

/* A reference to the pool that @d takes from now. */
static struct pool *current(struct device *d)
{
	struct pool *p;

	pthread_mutex_lock(&d->lock);
	p = d->current_pool;
	obj_ref(&p->obj);
	pthread_mutex_unlock(&d->lock);
	return p;
}

static CUresult alloc_from(struct pool *p, CUdeviceptr *ptr, size_t bytes, struct stream *s)
{
	struct gstream gs = graph_stream(s);
	struct alloc a;
	bool capturing;

	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_capturing(s, &capturing));
	if (capturing)
		return graph_capture_alloc(&gs, p->dev->index, bytes, ptr);
	if (!bytes) {
		*ptr = 0;
		return CUDA_SUCCESS;
	}
	if (p->props.maxSize && (bytes > p->props.maxSize || p->used > p->props.maxSize - bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	TRY(mem_alloc_pool(s->ctx, p->dev, bytes, p->obj.handle, &a));
	account(p, (int64_t)a.room);
	*ptr = a.base;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;
	AUTO_PUT struct pool *p = NULL;

	TRY(stream_resolve(stream, &s));
	p = current(s->ctx->dev);
	return alloc_from(p, ptr, bytes, s);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;
	AUTO_PUT struct pool *p = NULL;

	TRY(stream_resolve(stream, &s));
	p = obj_get(pool, OBJ_POOL);
	return p ? alloc_from(p, ptr, bytes, s) : CUDA_ERROR_INVALID_VALUE;
}

struct free_op {
	struct op op;
	struct alloc a;
};

static CUresult free_run(struct op *op, struct stream *s)
{
	struct free_op *f = container_of(op, struct free_op, op);

	(void)s;
	mem_release(&f->a, false);
	return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;
	struct gstream gs;
	struct free_op *f;
	struct alloc a;
	bool capturing, ours;

	TRY(stream_resolve(stream, &s));
	if (!ptr)
		return CUDA_SUCCESS;
	TRY(stream_capturing(s, &capturing));
	gs = graph_stream(s);
	if (capturing)
		return graph_capture_free(&gs, ptr);
	TRY(graph_mem_free(ptr, &ours));
	if (ours)
		return CUDA_SUCCESS;
	if (!mem_find(ptr, &a) || a.base != ptr || a.kind != ALLOC_DEVICE || a.hidden)
		return CUDA_ERROR_INVALID_VALUE;
	f = op_new(sizeof(*f), free_run, op_free);
	if (!f)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* From now on the address is nobody's; work queued before may still use it. */
	if (!mem_remove(ptr, &f->a)) {
		free(f);
		return CUDA_ERROR_INVALID_VALUE;
	}
	device_uncharge(f->a.dev, f->a.room);
	pool_uncharge(&f->a);
	f->op.always = f->op.quick = true;
	return stream_submit(s, &f->op, NULL);
}

/* ---- Pools ---- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	struct device *d;
	struct pool *p;

	TRY(api_enter());
	if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes || props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	d = device_get(props->location.id);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	p = pool_new(d, props);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pool = (CUmemoryPool)p->obj.handle;
	obj_put(&p->obj);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!p || p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&p->dev->lock);
	if (p->dev->current_pool == p)
		p->dev->current_pool = p->dev->pool;
	pthread_mutex_unlock(&p->dev->lock);
	return obj_retire(&p->obj) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	struct device *d = device_get(dev);

	TRY(api_enter());
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = (CUmemoryPool)d->pool->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	struct device *d = device_get(dev);
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	p = current(d);
	*pool = (CUmemoryPool)p->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct device *d = device_get(dev);
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!p || p->dev != d)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	d->current_pool = p;
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

/* The same by place and type: there are pools of device memory only. */
static CUresult place_check(const CUmemLocation *where, CUmemAllocationType type)
{
	TRY(api_enter());
	if (!where || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	TRY(place_check(where, type));
	return cuDeviceGetDefaultMemPool(pool, where->id);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	TRY(place_check(where, type));
	return cuDeviceGetMemPool(pool, where->id);
}

CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
	TRY(place_check(where, type));
	return cuDeviceSetMemPool(where->id, pool);
}

/* Nothing is kept back, so there is nothing to trim. */
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	(void)keep;
	p = obj_get(pool, OBJ_POOL);
	return p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	AUTO_PUT struct pool *p = NULL;
	CUresult r = CUDA_SUCCESS;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&p->lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		*(int *)value = p->follow;
		break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		*(int *)value = p->opportunistic;
		break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = p->internal;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = p->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = p->used;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = p->used_high;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	AUTO_PUT struct pool *p = NULL;
	CUresult r = CUDA_SUCCESS;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&p->lock);
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
		p->follow = !!*(int *)value;
		break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
		p->opportunistic = !!*(int *)value;
		break;
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->internal = !!*(int *)value;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(cuuint64_t *)value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(cuuint64_t *)value)
			r = CUDA_ERROR_INVALID_VALUE;
		else
			p->used_high = p->used;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

/* Every soft device reaches every pool: there is nothing to grant, and the owner's access can't be taken away. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!p || (count && !desc))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!device_get(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].location.id == p->dev->index)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	AUTO_PUT struct pool *p = NULL;

	TRY(api_enter());
	p = obj_get(pool, OBJ_POOL);
	if (!p || !flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_get(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}
