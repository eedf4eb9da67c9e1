// SPDX-License-Identifier: MIT
/* Memory and events that a session offers to others of its tenant, or takes from them (share.h). */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "server/quota.h"
#include "server/session.h"
#include "server/share.h"

/* The driver's own handle of physical memory that other processes can open. 0: it is no memory that can be offered. */
static CUresult descriptor(CUmemGenericAllocationHandle h, int *fd)
{
	if (!drv_cuda.cuMemExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	return drv_cuda.cuMemExportToShareableHandle(fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static CUresult offer(struct srv_session *s, uint64_t owner, CUmemGenericAllocationHandle h, unsigned device, uint64_t bytes,
		      void *name)
{
	struct share_item item = {.kind = SHARE_MEMORY, .device = s->device[device].list_index, .bytes = bytes};
	CUresult r;
	int fd;

	r = descriptor(h, &fd);
	if (r)
		return r;
	if (share_offer(owner, &item, fd, name))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	close(fd);
	return r;
}

static CUresult offer_lease(struct srv_session *s, uint64_t addr, struct rep_MEM_EXPORT *out)
{
	const struct srv_range_entry *e = NULL;
	CUmemGenericAllocationHandle h;
	CUresult r;

	for (unsigned i = 0; i < s->leases.n && !e; i++)
		if (s->leases.list[i].what == SRV_RANGE_LEASE && addr - s->leases.list[i].addr < s->leases.list[i].bytes)
			e = &s->leases.list[i];
	if (!e)
		return CUDA_ERROR_INVALID_VALUE;
	if (!drv_cuda.cuMemRetainAllocationHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* The mapping has it. */
	r = drv_cuda.cuMemRetainAllocationHandle(&h, (void *)e->addr);
	if (r)
		return r;
	out->start = e->addr;
	r = offer(s, e->addr, h, e->device, e->bytes, out->name);
	drv_cuda.cuMemRelease(h);
	return r;
}

/* Memory of a handle, or the lease that the address is in. */
void srv_MEM_EXPORT(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rep_MEM_EXPORT r = {0};
	struct rec_MEM_EXPORT a;
	const struct srv_phys *p;
	struct srv_slot slot;
	CUresult status;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	/* With the lock: nothing is released or unmapped meanwhile. */
	pthread_mutex_lock(&s->lock);
	if (!a.handle) {
		status = offer_lease(s, a.addr, &r);
	} else if (session_find(s, KIND_memhandle, a.handle, &slot)) {
		p = slot.real;
		status = offer(s, (uintptr_t)p, p->real, p->device, p->bytes, r.name);
	} else {
		status = CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_unlock(&s->lock);
	srv_fail(c, status);
	srv_answer(c, &r, sizeof(r));
}

/* The name that lies behind the record. NULL and the status set. */
static const uint8_t *name_of(struct srv_call *c, uint32_t fixed, uint32_t n)
{
	const uint8_t *name = n == SHARE_NAME ? srv_bytes(c, &fixed, SHARE_NAME) : NULL;

	if (!name)
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	return name;
}

/* Whether another client's key is what is wrong is no business of the one who asks. */
static CUresult found(int err)
{
	return !err ? CUDA_SUCCESS : err == -ENOENT || err == -EACCES ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult import(struct srv_session *s, const struct share_item *item, int fd, struct srv_phys **out, unsigned *device)
{
	struct srv_phys *p;
	CUresult r;

	*device = 0;
	while (*device < s->ndevices && s->device[*device].list_index != item->device)
		++*device;
	if (*device == s->ndevices)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!drv_cuda.cuMemImportFromShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* It would stay here when the session that made it has let it go: what it may use is counted for both. */
	if (!quota_take(item->device, item->bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = phys_new(*device, item->bytes, true);
	if (!p) {
		quota_give(item->device, item->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = drv_cuda.cuMemImportFromShareableHandle(&p->real, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (r) {
		phys_put(s, p);
		return r;
	}
	*out = p;
	return CUDA_SUCCESS;
}

void srv_MEM_IMPORT(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rep_MEM_IMPORT r = {0};
	struct share_item item = {0};
	struct rec_MEM_IMPORT a;
	struct srv_phys *p = NULL;
	const uint8_t *name;
	unsigned device = 0;
	CUresult status;
	int fd = -1;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_memhandle, a.handle) || !(name = name_of(c, sizeof(a), a.name_n)))
		return;
	status = found(share_find(name, &item, &fd));
	if (!status && (item.kind != SHARE_MEMORY || fd < 0))
		status = CUDA_ERROR_INVALID_HANDLE;
	if (!status)
		status = import(s, &item, fd, &p, &device);
	if (fd >= 0)
		close(fd);
	r.bytes = item.bytes;
	r.device = device;
	srv_fail(c, status);
	if (!status)
		srv_put(c, KIND_memhandle, a.handle, p, 0);
	srv_answer(c, &r, sizeof(r));
}

void srv_cuIpcGetEventHandle(struct srv_call *c)
{
	struct share_item item = {.kind = SHARE_EVENT};
	struct rep_cuIpcGetEventHandle r = {0};
	struct rec_cuIpcGetEventHandle a;
	CUipcEventHandle h;
	CUresult status;
	void *event;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	/* With the lock: who destroys it meanwhile withdraws it afterwards. */
	pthread_mutex_lock(&c->session->events_lock);
	if (!srv_use(c, KIND_event, a.hEvent, &event)) {
		pthread_mutex_unlock(&c->session->events_lock);
		return;
	}
	status = drv_cuda.cuIpcGetEventHandle ? drv_cuda.cuIpcGetEventHandle(&h, event) : CUDA_ERROR_NOT_SUPPORTED;
	if (!status) {
		_Static_assert(sizeof(h) == sizeof(item.data), "an event's handle has 64 bytes");
		memcpy(item.data, &h, sizeof(h));
		if (share_offer((uintptr_t)event, &item, -1, (uint8_t *)r.name))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&c->session->events_lock);
	srv_fail(c, status);
	srv_answer(c, &r, sizeof(r));
}

void srv_cuIpcOpenEventHandle(struct srv_call *c)
{
	struct rec_cuIpcOpenEventHandle a;
	struct share_item item;
	CUipcEventHandle h;
	const uint8_t *name;
	CUresult status;
	CUevent event;
	int fd = -1;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_fresh(c, KIND_event, a.phEvent) ||
	    !(name = name_of(c, sizeof(a), a.name_n)))
		return;
	if (share_is_ours(name)) {
		srv_fail(c, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	status = found(share_find(name, &item, &fd));
	if (fd >= 0)
		close(fd);
	if (!status && item.kind != SHARE_EVENT)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (!status && !drv_cuda.cuIpcOpenEventHandle)
		status = CUDA_ERROR_NOT_SUPPORTED;
	if (!status) {
		memcpy(&h, item.data, sizeof(h));
		status = drv_cuda.cuIpcOpenEventHandle(&event, h);
	}
	srv_fail(c, status);
	if (!status)
		srv_put(c, KIND_event, a.phEvent, event, a.ctx);
}
