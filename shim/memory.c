// SPDX-License-Identifier: MIT
/* cuMemAlloc and its kin: the heap answers, the server only when memory must be leased. */
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/ipc.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/watch.h"

static int enter(struct rgpu_call *c, uint16_t op)
{
	int r = rgpu_enter(c, op);

	if (!r)
		r = ctx_use(c, NULL);
	return r ? r : ctx_of(c->context)->fault;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct rgpu_call c;
	uint64_t addr;
	int r = enter(&c, RGPU_NO_OP);

	if (!r && (!dptr || !bytesize))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = graph_unsafe();
	if (!r)
		r = heap_alloc(ctx_of(c.context)->device, c.context, bytesize, &addr);
	if (!r)
		*dptr = addr;
	return r;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
	size_t pitch = (WidthInBytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN;
	CUresult r;

	if (!pPitch || !WidthInBytes || !Height || pitch < WidthInBytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (Height > SIZE_MAX / pitch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = cuMemAlloc_v2(dptr, pitch * Height);
	if (!r)
		*pPitch = pitch;
	return r;
}

/* Its place is given to others at once, so nothing may work with it any longer. */
static int free_managed(struct rgpu_call *c, uint64_t addr)
{
	int r = sync_devices(c->session), e = shared_free(addr, true);

	return e ? e : r;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct rgpu_call c;
	bool ours;
	int r = enter(&c, RGPU_NO_OP);

	if (r)
		return r;
	if (!dptr)
		return CUDA_SUCCESS;
	r = graph_unsafe();
	if (!r)
		r = graph_mem_free(dptr, &ours);
	if (r || ours)
		return r;
	r = heap_free(dptr);
	if (r && allocs_at(dptr, BLOCK_IPC))
		return ipc_close(&c, dptr, true);
	return r && allocs_at(dptr, BLOCK_MANAGED) ? free_managed(&c, dptr) : r;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct rgpu_call c;
	struct block b;
	int r = enter(&c, RGPU_NO_OP);

	if (r)
		return r;
	if (!heap_find(dptr, &b))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = b.range.start;
	if (psize)
		*psize = b.asked;
	return CUDA_SUCCESS;
}

/* Whether the last answer stands: nobody told us otherwise, and nothing of this program's could have changed it. */
static bool remember(struct rgpu_call *c, uint64_t *free, uint64_t *total)
{
	struct meminfo *m = &ctx_of(c->context)->device->meminfo;
	bool good;

	pthread_mutex_lock(&m->lock);
	good = watch_look(&m->watch) == WATCH_QUIET && m->changes == atomic_load(&c->session->changes) &&
	       !session_dead(c->session);
	*free = m->free;
	*total = m->total;
	pthread_mutex_unlock(&m->lock);
	return good;
}

static int ask(struct rgpu_call *c, uint64_t *free, uint64_t *total)
{
	struct meminfo *m = &ctx_of(c->context)->device->meminfo;
	uint64_t changes = atomic_load(&c->session->changes), w;
	int r = rpc_cuMemGetInfo_v2(c, free, total);

	if (r)
		return r;
	w = watch_begin(c, OP_MEMORY_WATCH, *free);
	pthread_mutex_lock(&m->lock);
	watch_end(&m->watch);
	m->watch = w;
	m->changes = changes;
	m->free = *free;
	m->total = *total;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* What is leased and not in use is free for this program, though not for others. */
CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct rgpu_call c;
	uint64_t f, t;
	int r = enter(&c, OP_cuMemGetInfo_v2);

	if (!r && (!free || !total))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	r = remember(&c, &f, &t) ? session_take_pending(c.session, c.op) : ask(&c, &f, &t);
	if (r)
		return r;
	*free = f + heap_unused(ctx_of(c.context)->device);
	*total = t;
	return CUDA_SUCCESS;
}
