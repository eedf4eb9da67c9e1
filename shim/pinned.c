// SPDX-License-Identifier: MIT
/* cuMemHostAlloc, cuMemHostRegister and their kin. */
#include "shim/pinned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rgpu_rpc.h"
#include "shim/arrival.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/shared.h"
#include "shim/unsupported.h"

#define HOST_PAGE 4096u

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* the ranges and their pending copies */
static struct range *ranges;
atomic_uint pinned_unreached;
static atomic_uint npending; /* in all ranges: usually 0, and then nobody looks */

#define PENDING_STREAMS 16u /* beyond so many of a range, a context's are told apart no more */

/* Copies of a stream, as ordered.h names it, or of all of a context (PINNED_ALL). */
struct pending {
	struct pending *next;
	uint64_t context, stream, stamp; /* of the latest */
	uint64_t from, to;		 /* from the first byte that any of them brings to behind the last */
};

bool pinned_find(const void *p, struct pinned *out)
{
	struct range *r;

	pthread_rwlock_rdlock(&lock);
	r = ranges_find(ranges, (uint64_t)p);
	if (r)
		*out = *(struct pinned *)r;
	pthread_rwlock_unlock(&lock);
	return r;
}

bool pinned_bo(const void *p, uint64_t bytes, uint32_t *bo, uint64_t *off)
{
	struct pinned m;

	if (!pinned_find(p, &m) || !m.bo.handle || (uint64_t)p - m.range.start + bytes > m.range.bytes)
		return false;
	*bo = m.bo.handle;
	*off = (uint64_t)p - m.range.start;
	return true;
}

bool pinned_twin(const void *p, uint64_t bytes, uint64_t *dev)
{
	struct pinned m;

	if (!shared_any())
		return false;
	*dev = (uint64_t)p;
	if (shared_has(*dev))
		return true;
	if (!pinned_find(p, &m) || !m.mirror || (uint64_t)p - m.range.start + bytes > m.range.bytes)
		return false;
	*dev = m.mirror + ((uint64_t)p - m.range.start);
	return true;
}

/* The note that a copy of this stream joins; NULL: it needs one of its own. */
static struct pending *note_of(struct pinned *m, uint64_t context, uint64_t stream)
{
	struct pending *same = NULL;
	unsigned n = 0;

	for (struct pending *p = m->pending; p; p = p->next, n++) {
		if (p->context != context)
			continue;
		if (p->stream == stream || p->stream == PINNED_ALL)
			return p;
		same = p;
	}
	if (same && n >= PENDING_STREAMS)
		same->stream = PINNED_ALL;
	return n < PENDING_STREAMS ? NULL : same;
}

void pinned_receives(const void *p, uint64_t bytes, const struct rgpu_call *c, uint64_t wire)
{
	uint64_t stream, stamp = c->rec->stamp, from = (uint64_t)p, to = from + bytes;
	struct pending *n;
	struct pinned *m;

	if (ordered_stream(c, wire, &stream))
		stream = PINNED_ALL;
	pthread_rwlock_wrlock(&lock);
	m = (struct pinned *)ranges_find(ranges, (uint64_t)p);
	n = m ? note_of(m, c->ctx, stream) : NULL;
	if (m && !n) {
		n = malloc(sizeof(*n));
		/* As in landing.c: without a note old bytes would be read, and it is small. */
		if (!n)
			abort();
		*n = (struct pending){.next = m->pending, .context = c->ctx, .stream = stream, .from = from, .to = to};
		m->pending = n;
		atomic_fetch_add(&npending, 1);
	}
	if (n) {
		n->stamp = stamp > n->stamp ? stamp : n->stamp;
		n->from = from < n->from ? from : n->from;
		n->to = to > n->to ? to : n->to;
	}
	pthread_rwlock_unlock(&lock);
}

bool pinned_pending(const void *p, uint64_t bytes)
{
	uint64_t from = (uint64_t)p;
	bool found = false;
	struct pinned *m;

	if (!atomic_load_explicit(&npending, memory_order_relaxed))
		return false;
	pthread_rwlock_rdlock(&lock);
	m = (struct pinned *)ranges_find(ranges, from);
	for (struct pending *n = m ? m->pending : NULL; n && !found; n = n->next)
		found = from < n->to && from + bytes > n->from;
	pthread_rwlock_unlock(&lock);
	return found;
}

/* With the lock. Those of a stream, or PINNED_ALL, of a context, or 0: of any; given before @stamp. */
static void settle(struct pinned *m, uint64_t context, uint64_t stream, uint64_t stamp)
{
	for (struct pending **at = &m->pending, *n; (n = *at);) {
		if (n->stamp > stamp || (context && n->context != context) || (stream != PINNED_ALL && n->stream != stream)) {
			at = &n->next;
			continue;
		}
		*at = n->next;
		free(n);
		atomic_fetch_sub(&npending, 1);
	}
}

void pinned_settled(struct rgpu_obj *context, uint64_t stream, uint64_t stamp)
{
	if (!atomic_load_explicit(&npending, memory_order_relaxed))
		return;
	pthread_rwlock_wrlock(&lock);
	for (struct range *r = ranges_next(ranges, 0); r; r = ranges_next(ranges, r->start + 1))
		settle((struct pinned *)r, context->handle, stream, stamp);
	pthread_rwlock_unlock(&lock);
}

int sync_devices(struct rgpu_session *s)
{
	int r = 0;

	for (unsigned i = 0; i < process_get()->ndevices; i++) {
		struct device *d = process_get()->devices[i];
		int e = d->session == s && tally_most(&d->heap.busy) ? ctx_sync_device(d) : 0;

		r = r ? r : e;
	}
	return r;
}

/* At an address that is free at the server, so that it can be the same for kernels. Without one it stays where it is. */
static void into_window(struct pinned *m)
{
	uint64_t at = window_take(m->device, m->bo.bytes);

	if (at && rgpu_transport_bo_map(m->device->session->transport, &m->bo, (void *)at)) {
		window_give(m->device, at, m->bo.bytes);
		return;
	}
	if (!at)
		return;
	m->range.start = at;
	m->in_window = true;
	atomic_fetch_add(&pinned_unreached, 1);
}

/* Nothing is sent from there or received there any more. */
static void out_of_window(struct pinned *m)
{
	if (!m->in_window)
		return;
	mmap((void *)m->range.start, m->bo.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	window_give(m->device, m->range.start, m->bo.bytes);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	struct rgpu_call c;
	struct pinned *m;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r && (!pp || !bytesize || Flags & ~7u))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (Flags & CU_MEMHOSTALLOC_DEVICEMAP) {
		uint64_t addr;

		r = shared_alloc(ctx_of(c.context)->device, c.context, bytesize, false, Flags, &addr);
		if (!r)
			*pp = (void *)addr;
		return r;
	}
	m = calloc(1, sizeof(*m));
	if (!m || bytesize + page < bytesize) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rgpu_transport_bo_create(c.session->transport, (bytesize + page - 1) / page * page, &m->bo)) {
		free(m);
		return session_error(c.session, CUDA_ERROR_OUT_OF_MEMORY, "no page-locked memory");
	}
	m->range.start = (uint64_t)m->bo.base;
	m->range.bytes = bytesize;
	m->context = c.context;
	m->device = ctx_of(c.context)->device;
	m->flags = Flags;
	into_window(m);
	pthread_rwlock_wrlock(&lock);
	ranges_insert(&ranges, &m->range);
	pthread_rwlock_unlock(&lock);
	*pp = (void *)m->range.start;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

static struct pinned *take(const void *p, bool registered)
{
	struct pinned *m;

	pthread_rwlock_wrlock(&lock);
	m = (struct pinned *)ranges_find(ranges, (uint64_t)p);
	if (m && (m->range.start != (uint64_t)p || registered != !m->bo.handle))
		m = NULL;
	if (m) {
		ranges_remove(&ranges, &m->range);
		settle(m, 0, PINNED_ALL, UINT64_MAX);
		if (m->in_window && !m->mirror)
			atomic_fetch_sub(&pinned_unreached, 1);
	}
	pthread_rwlock_unlock(&lock);
	return m;
}

/* Copies from and to it may be on their way: as cuMemFreeHost does, this waits for the devices that have work. */
CUresult cuMemFreeHost(void *p)
{
	struct rgpu_call c;
	struct pinned *m;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	m = take(p, false);
	if (!m && !allocs_at((uint64_t)p, BLOCK_MAPPED))
		return CUDA_ERROR_INVALID_VALUE;
	r = sync_devices(c.session);
	if (!m) {
		int e = shared_free((uint64_t)p, false);

		return e ? e : r;
	}
	if (m->mirror)
		shared_unmirror(m->mirror);
	/*
	 * A context that failed does not wait. Its records must have left all the same, and their answers come, before the memory
	 * goes: this fence comes after all of them, whatever their context.
	 */
	if (r)
		print_fetch(c.session);
	arrival_forget(m->range.start, m->range.bytes);
	out_of_window(m);
	rgpu_transport_bo_destroy(c.session->transport, &m->bo);
	free(m);
	return r;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct shared *s;
	struct pinned m;
	int r = process_ready();

	if (r)
		return r;
	s = (struct shared *)allocs_at((uint64_t)p, BLOCK_MAPPED);
	if (pFlags && s) {
		*pFlags = s->flags;
		return CUDA_SUCCESS;
	}
	if (!pFlags || !pinned_find(p, &m) || !m.bo.handle)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = m.flags;
	return CUDA_SUCCESS;
}

/*
 * Page-locked memory that was not asked for as mapped, and registered memory, gets its twin now. Its address there is another, as
 * CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM says.
 */
static int mirror(const struct rgpu_call *c, void *p, uint64_t *addr)
{
	struct pinned *m;
	int r = CUDA_ERROR_INVALID_VALUE;

	pthread_rwlock_wrlock(&lock);
	m = (struct pinned *)ranges_find(ranges, (uint64_t)p);
	if (m) {
		if (m->mirror) {
			r = 0;
		} else {
			r = shared_mirror(ctx_of(c->context)->device, c->context, (void *)m->range.start, m->range.bytes,
					  m->flags, &m->mirror);
			atomic_fetch_sub(&pinned_unreached, !r && m->in_window);
		}
		*addr = m->mirror + ((uint64_t)p - m->range.start);
	}
	pthread_rwlock_unlock(&lock);
	return r;
}

int pinned_reached(const struct rgpu_call *c, const void *data, size_t bytes)
{
	int r = 0;

	if (!pinned_may_reach())
		return 0;
	for (size_t i = 0; i + sizeof(uint64_t) <= bytes && !r; i += sizeof(uint64_t)) {
		struct pinned m;
		uint64_t v;

		memcpy(&v, (const uint8_t *)data + i, sizeof(v));
		if (v - c->session->window.base >= c->session->window.size || !pinned_find((void *)v, &m) || m.mirror ||
		    !m.in_window)
			continue;
		r = mirror(c, (void *)v, &v);
		/* Where no twin can be had, the address is an illegal one. */
		if (r == CUDA_ERROR_NOT_SUPPORTED)
			return 0;
	}
	return r;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct rgpu_call c;
	uint64_t addr = (uint64_t)p;
	struct block b;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	if (!pdptr || Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!heap_find(addr, &b))
		r = mirror(&c, p, &addr);
	else if (b.kind != BLOCK_MAPPED && b.kind != BLOCK_MANAGED)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*pdptr = addr;
	return r;
}

/* All of these pages are the program's: there is something to lock. */
static bool mapped_here(uint64_t start, uint64_t bytes)
{
	unsigned char in_core[1024];
	uint64_t page = start / HOST_PAGE, left = (start + bytes - 1) / HOST_PAGE - page + 1;

	for (uint64_t n; left; page += n, left -= n) {
		n = left < sizeof(in_core) ? left : sizeof(in_core);
		if (mincore((void *)(page * HOST_PAGE), n * HOST_PAGE, in_core) && errno != EAGAIN)
			return false;
	}
	return true;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct rgpu_call c;
	struct pinned *m;
	struct range *next;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r && (!p || !bytesize || (uint64_t)p + bytesize < (uint64_t)p || Flags & ~0xfu))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && Flags & CU_MEMHOSTREGISTER_IOMEMORY)
		r = rgpu_unsupported("cuMemHostRegister of I/O memory", NULL);
	if (!r && !mapped_here((uint64_t)p, bytesize))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->range.start = (uint64_t)p;
	m->range.bytes = bytesize;
	m->context = c.context;
	m->flags = Flags;
	pthread_rwlock_wrlock(&lock);
	next = ranges_next(ranges, (uint64_t)p);
	if (ranges_find(ranges, (uint64_t)p) || (next && next->start - (uint64_t)p < bytesize))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else
		ranges_insert(&ranges, &m->range);
	pthread_rwlock_unlock(&lock);
	if (r)
		free(m);
	return r;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

/* Copies to it may be on their way. */
CUresult cuMemHostUnregister(void *p)
{
	struct rgpu_call c;
	struct pinned *m;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (r)
		return r;
	m = take(p, true);
	if (!m)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	r = sync_devices(process_get()->session);
	arrival_forget(m->range.start, m->range.bytes);
	if (m->mirror)
		shared_unmirror(m->mirror);
	free(m);
	return r;
}
