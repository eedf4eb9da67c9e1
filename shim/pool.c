// SPDX-License-Identifier: MIT
/* cuMemAllocAsync and memory pools. Pools are the client's own: the server sees leases only. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/ipc.h"
#include "shim/ordered.h"
#include "shim/session.h"
#include "shim/unsupported.h"

struct rgpu_obj *pool_new(struct device *d, const CUmemPoolProps *props)
{
	struct rgpu_obj *obj = handle_new(KIND_mempool, NULL);
	struct pool *p = calloc(1, sizeof(*p));

	if (!obj || !p) {
		if (obj)
			handle_free(obj);
		free(p);
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	p->device = d;
	p->props = *props;
	p->follow = p->opportunistic = p->internal = 1;
	p->visible_to = 1ull << d->ordinal;
	obj->data = p;
	return obj;
}

/* The device's default pool, made when somebody first asks. d->lock is held. */
static struct rgpu_obj *default_pool(struct device *d)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->ordinal},
	};

	if (!d->pool) {
		d->pool = d->current_pool = pool_new(d, &props);
		if (d->pool)
			((struct pool *)d->pool->data)->is_default = true;
	}
	return d->pool;
}

int pool_find(CUmemoryPool pool, struct pool **p)
{
	struct rgpu_obj *obj;
	int r = process_ready();

	if (r)
		return r;
	obj = handle_find(KIND_mempool, (uint64_t)pool);
	*p = obj ? obj->data : NULL;
	return *p ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static int device_pool(CUmemoryPool *pool, CUdevice dev, bool standard)
{
	struct rgpu_obj *obj;
	struct device *d;
	int r = process_ready();

	if (r || !pool)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&d->lock);
	obj = default_pool(d);
	if (obj && !standard)
		obj = d->current_pool;
	pthread_mutex_unlock(&d->lock);
	if (!obj)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pool = (CUmemoryPool)obj->handle;
	return 0;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	return device_pool(pool_out, dev, true);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	return device_pool(pool, dev, false);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct device *d;
	struct pool *p;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	r = pool_find(pool, &p);
	if (r || p->device != d || p->imported)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	if (default_pool(d))
		d->current_pool = handle_find(KIND_mempool, (uint64_t)pool);
	else
		r = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&d->lock);
	return r;
}

/* By place and type, as CUDA 13 asks: there are pools of device memory only. */
static int check_place(const CUmemLocation *location, CUmemAllocationType type)
{
	if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_ALLOCATION_TYPE_MANAGED || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return rgpu_unsupported("a memory pool of host or managed memory", NULL);
	return 0;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
	int r = process_ready();

	if (!r)
		r = check_place(location, type);
	return r ? r : device_pool(pool_out, location->id, true);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	int r = process_ready();

	if (!r)
		r = check_place(location, type);
	return r ? r : device_pool(pool, location->id, false);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	int r = process_ready();

	if (!r)
		r = check_place(location, type);
	if (!r)
		r = cuDeviceSetMemPool(location->id, pool);
	return r;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct rgpu_obj *obj;
	struct device *d;
	struct pool *p;
	int r = process_ready();

	if (r)
		return r;
	if (!pool || !poolProps || poolProps->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
		return CUDA_ERROR_INVALID_VALUE;
	r = check_place(&poolProps->location, poolProps->allocType);
	if (r)
		return r;
	if ((unsigned)poolProps->handleTypes & ~TOKEN_TYPES)
		return rgpu_unsupported("a memory pool with handles of another system", NULL);
	d = device_find(poolProps->location.id);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (poolProps->handleTypes && !device_attribute(d, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES))
		return CUDA_ERROR_NOT_SUPPORTED;
	obj = pool_new(d, poolProps);
	if (!obj)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = obj->data;
	if (poolProps->handleTypes && getrandom(&p->number, sizeof(p->number), 0) != sizeof(p->number)) {
		handle_free(obj);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*pool = (CUmemoryPool)obj->handle;
	return CUDA_SUCCESS;
}

/* Its allocations live on. The structure stays, as a context's does: others may be looking at it. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct rgpu_obj *obj;
	struct pool *p;
	int r = pool_find(pool, &p);

	if (r || p->is_default)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	obj = handle_find(KIND_mempool, (uint64_t)pool);
	pthread_mutex_lock(&p->device->lock);
	if (p->device->current_pool == obj)
		p->device->current_pool = p->device->pool;
	pthread_mutex_unlock(&p->device->lock);
	handle_free(obj);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct pool *p;
	uint64_t keep;
	int r = pool_find(pool, &p);

	if (r)
		return r;
	pthread_mutex_lock(&p->lock);
	keep = p->used > minBytesToKeep ? p->used : minBytesToKeep;
	if (p->reserved > keep)
		p->reserved = keep;
	pthread_mutex_unlock(&p->lock);
	heap_trim(p->device);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct pool *p;
	int r = pool_find(pool, &p);

	if (r || !value)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
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
		*(cuuint64_t *)value = p->reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = p->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = p->used;
		break;
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
	struct pool *p;
	int r = pool_find(pool, &p);

	if (r || !value)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
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
		/* The high marks can be reset, to 0 only. */
		if (*(cuuint64_t *)value)
			r = CUDA_ERROR_INVALID_VALUE;
		else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
			p->used_high = p->used;
		else
			p->reserved_high = p->reserved;
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

uint32_t pool_access(struct pool *p)
{
	struct rgpu_session *s = p->device->session;
	uint32_t access = 0;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < s->ndevices; i++)
		if (p->visible_to >> s->devices[i]->ordinal & 1)
			access |= 1u << i;
	pthread_mutex_unlock(&p->lock);
	return access;
}

/* Access is the device's as a whole at the server, as with peers: nothing is taken away there once it was given. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	struct pool *p;
	int r = pool_find(pool, &p), can;

	if (r || (count && !map))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct device *d = device_find(map[i].location.id);

		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			return CUDA_ERROR_INVALID_VALUE;
		if (!d || (d == p->device && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE))
			return CUDA_ERROR_INVALID_DEVICE;
		if (d != p->device && (cuDeviceCanAccessPeer(&can, d->ordinal, p->device->ordinal) || !can))
			return CUDA_ERROR_INVALID_DEVICE;
	}
	for (size_t i = 0; i < count; i++) {
		struct device *d = device_find(map[i].location.id);
		struct rgpu_call c = {.op = OP_VISIBLE, .session = d->session};
		bool give = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

		if (give && d != p->device && !(p->visible_to >> d->ordinal & 1)) {
			r = session_start(d->session);
			if (!r)
				r = p->imported ? ipc_give((uint64_t)pool, 1u << d->index)
						: rpc_VISIBLE(&c, p->device->index, d->index);
		}
		if (r)
			return r;
		pthread_mutex_lock(&p->lock);
		if (give)
			p->visible_to |= 1ull << d->ordinal;
		else
			p->visible_to &= ~(1ull << d->ordinal);
		pthread_mutex_unlock(&p->lock);
	}
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct device *d;
	struct pool *p;
	int r = pool_find(memPool, &p);

	if (r)
		return r;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !(d = device_find(location->id)))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = p->visible_to >> d->ordinal & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

int ordered_stream(const struct rgpu_call *c, uint64_t wire, uint64_t *stream)
{
	struct rgpu_lane *l;
	int r = 0;

	if (wire == (uint64_t)CU_STREAM_PER_THREAD) {
		l = session_lane(c->session, &r);
		*stream = l ? l->own : 0;
	} else {
		*stream = wire == (uint64_t)CU_STREAM_LEGACY ? 0 : wire;
	}
	return r;
}

static int enter(struct rgpu_call *c, CUstream hStream, uint64_t *wire, uint64_t *stream)
{
	struct rgpu_obj *obj;
	int r = rgpu_enter(c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(c, KIND_stream, hStream, true, wire, &obj);
	if (!r)
		r = ordered_stream(c, *wire, stream);
	return r ? r : ctx_of(c->context)->fault;
}

static int alloc(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream hStream)
{
	uint64_t wire, stream, addr = 0;
	struct rgpu_call c;
	struct pool *p;
	int r = enter(&c, hStream, &wire, &stream);

	if (!r && !pool)
		r = device_pool(&pool, ctx_of(c.context)->device->ordinal, false);
	if (!r)
		r = pool_find(pool, &p);
	if (!r && (!dptr || p->imported))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && bytes && p->props.maxSize) {
		pthread_mutex_lock(&p->lock);
		if (bytes > p->props.maxSize || p->used > p->props.maxSize - bytes)
			r = CUDA_ERROR_OUT_OF_MEMORY;
		pthread_mutex_unlock(&p->lock);
	}
	if (!r)
		r = rgpu_capture(&c, wire);
	if (!r && c.capturing)
		return capture_alloc(&c, bytes, dptr);
	/* Nothing of it: no memory, and no error. */
	if (!r && bytes)
		r = heap_alloc_ordered(p->device, c.context, stream, (uint64_t)pool, bytes, &addr);
	if (!r)
		*dptr = addr;
	return r;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return alloc(dptr, bytesize, NULL, hStream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return alloc(dptr, bytesize, NULL, hStream ? hStream : CU_STREAM_PER_THREAD);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return pool ? alloc(dptr, bytesize, pool, hStream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	return cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream ? hStream : CU_STREAM_PER_THREAD);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct rgpu_call c;
	uint64_t wire, stream;
	bool ours;
	int r = enter(&c, hStream, &wire, &stream);

	if (!r)
		r = rgpu_capture(&c, wire);
	if (r || !dptr)
		return r;
	if (c.capturing)
		return capture_free(&c, dptr);
	r = graph_mem_free(dptr, &ours);
	if (r || ours)
		return r;
	r = heap_free_ordered(dptr, c.context, stream);
	return r && allocs_at(dptr, BLOCK_IPC) ? ipc_close(&c, dptr, true) : r;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	return cuMemFreeAsync(dptr, hStream ? hStream : CU_STREAM_PER_THREAD);
}
