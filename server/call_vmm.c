// SPDX-License-Identifier: MIT
/* Physical memory that the program creates and maps itself, in the session's window. */
#include <stdlib.h>
#include "server/quota.h"
#include "server/session.h"
#include "server/share.h"

struct srv_phys *phys_new(unsigned device, uint64_t bytes, bool imported)
{
	struct srv_phys *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->bytes = bytes;
	p->device = device;
	p->imported = imported;
	p->refs = 1;
	return p;
}

void phys_put(struct srv_session *s, struct srv_phys *p)
{
	if (--p->refs)
		return;
	share_withdraw(SHARE_MEMORY, (uintptr_t)p);
	if (!p->imported)
		atomic_fetch_sub(&s->device[p->device].used, p->bytes);
	quota_give(s->device[p->device].list_index, p->bytes);
	free(p);
}

void srv_MEM_CREATE(struct srv_call *c)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	struct srv_session *s = c->session;
	struct rec_MEM_CREATE a;
	struct srv_phys *p;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_memhandle, a.handle))
		return;
	p = a.device < s->ndevices ? phys_new(a.device, a.bytes, false) : NULL;
	if (!p) {
		srv_fail(c, a.device < s->ndevices ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_DEVICE);
		return;
	}
	prop.location.id = s->device[a.device].dev;
	prop.requestedHandleTypes = s->device[a.device].handle_type;
	if (!quota_take(s->device[a.device].list_index, a.bytes)) {
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		free(p);
		return;
	}
	r = drv_cuda.cuMemCreate(&p->real, a.bytes, &prop, 0);
	srv_fail(c, r);
	if (r) {
		quota_give(s->device[a.device].list_index, a.bytes);
		free(p);
		return;
	}
	atomic_fetch_add(&s->device[a.device].used, a.bytes);
	srv_put(c, KIND_memhandle, a.handle, p, 0);
}

void srv_MEM_RELEASE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_MEM_RELEASE a;
	struct srv_phys *p;
	void *real;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	/* With the lock: another lane may just be mapping from it. */
	pthread_mutex_lock(&s->lock);
	if (srv_take(c, KIND_memhandle, a.handle, &real)) {
		p = real;
		srv_fail(c, drv_cuda.cuMemRelease(p->real));
		phys_put(s, p);
	}
	pthread_mutex_unlock(&s->lock);
}

void srv_MEM_MAP(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_MEM_MAP a;
	struct srv_slot slot;
	struct srv_phys *p;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool listed;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	/* With the lock, so that no other lane's release ends it in between. */
	pthread_mutex_lock(&s->lock);
	if (!session_find(s, KIND_memhandle, a.handle, &slot)) {
		r = CUDA_ERROR_INVALID_HANDLE;
	} else if (session_in_window(s, a.addr, a.bytes)) {
		p = slot.real;
		r = drv_cuda.cuMemMap(a.addr, a.bytes, 0, p->real, 0);
		if (!r) {
			pthread_rwlock_wrlock(&s->ranges_lock);
			listed = ranges_add(&s->leases, &(struct srv_range_entry){.addr = a.addr,
										  .bytes = a.bytes,
										  .device = p->device,
										  .what = SRV_RANGE_PHYS,
										  .owner = p});
			pthread_rwlock_unlock(&s->ranges_lock);
			p->refs += listed;
			if (!listed) {
				drv_cuda.cuMemUnmap(a.addr, a.bytes);
				r = CUDA_ERROR_INVALID_VALUE;
			}
		}
	}
	pthread_mutex_unlock(&s->lock);
	srv_fail(c, r);
}

void srv_MEM_UNMAP(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_range_entry e;
	struct rec_MEM_UNMAP a;
	bool mine;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&s->lock);
	pthread_rwlock_wrlock(&s->ranges_lock);
	mine = ranges_drop(&s->leases, a.addr, a.bytes, SRV_RANGE_PHYS, &e);
	pthread_rwlock_unlock(&s->ranges_lock);
	if (mine) {
		srv_fail(c, drv_cuda.cuMemUnmap(a.addr, a.bytes));
		phys_put(s, e.owner);
	} else {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Whole mappings of the program, side by side. s->lock is held. */
static bool is_mapped(struct srv_session *s, uint64_t addr, uint64_t bytes)
{
	for (unsigned i = 0; i < s->leases.n && bytes; i++) {
		const struct srv_range_entry *e = &s->leases.list[i];

		if (e->addr != addr)
			continue;
		if (e->what != SRV_RANGE_PHYS || e->bytes > bytes)
			return false;
		addr += e->bytes;
		bytes -= e->bytes;
	}
	return !bytes;
}

void srv_MEM_ACCESS(struct srv_call *c)
{
	CUmemAccessDesc desc[SRV_DEVICES_MAX];
	struct srv_session *s = c->session;
	struct rec_MEM_ACCESS a;
	unsigned n = 0;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	for (unsigned i = 0; i < s->ndevices; i++) {
		uint32_t bit = 1u << i;

		if (!((a.readwrite | a.read | a.none) & bit))
			continue;
		desc[n++] = (CUmemAccessDesc){
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device[i].dev},
			.flags = a.readwrite & bit ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				 : a.read & bit	   ? CU_MEM_ACCESS_FLAGS_PROT_READ
						   : CU_MEM_ACCESS_FLAGS_PROT_NONE,
		};
	}
	pthread_mutex_lock(&s->lock);
	if (n && a.bytes && is_mapped(s, a.addr, a.bytes))
		r = drv_cuda.cuMemSetAccess(a.addr, a.bytes, desc, n);
	pthread_mutex_unlock(&s->lock);
	srv_fail(c, r);
}

/* A new handle for memory that is mapped and whose handle was released. */
void srv_MEM_RETAIN(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_phys *p = NULL;
	struct rec_MEM_RETAIN a;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_memhandle, a.handle))
		return;
	if (!drv_cuda.cuMemRetainAllocationHandle) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->leases.n && !p; i++)
		if (s->leases.list[i].what == SRV_RANGE_PHYS && a.addr - s->leases.list[i].addr < s->leases.list[i].bytes)
			p = s->leases.list[i].owner;
	if (p)
		r = drv_cuda.cuMemRetainAllocationHandle(&p->real, (void *)a.addr);
	if (!r)
		p->refs++;
	pthread_mutex_unlock(&s->lock);
	srv_fail(c, r);
	if (!r)
		srv_put(c, KIND_memhandle, a.handle, p, 0);
}
