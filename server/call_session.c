// SPDX-License-Identifier: MIT
/* The session's own records: the address window, leases in it, contexts, peers and device printf. */
#include <stdlib.h>
#include <string.h>
#include "api/hello.h"
#include "server/call_array.h"
#include "server/call_graph.h"
#include "server/call_link.h"
#include "server/call_module.h"
#include "server/quota.h"
#include "server/session.h"
#include "server/share.h"

#define GRANULE	       (2ull << 20)
#define WINDOW_MIN     (4ull << 30)
#define IMAGES_PTX     1u
#define IMAGES_PTX_ELF 3u

void srv_OPEN(struct srv_call *c)
{
	struct rep_OPEN r = {.images = driver_takes_elf() ? IMAGES_PTX_ELF : IMAGES_PTX, .server_version = RGPU_API_VERSION};
	struct srv_session *s = c->session;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
	struct rec_OPEN a;
	CUdeviceptr base;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	if (a.api_version > RGPU_API_VERSION || a.bytes % GRANULE || a.hint % GRANULE) {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	pthread_mutex_lock(&s->lock);
	if (s->leases.n) {
		pthread_mutex_unlock(&s->lock);
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (s->window_bytes)
		drv_cuda.cuMemAddressFree(s->window, s->window_bytes);
	s->window_bytes = 0;
	/* As much as both can have: a process limit may leave less than what was asked. */
	for (uint64_t n = a.bytes; status && n >= WINDOW_MIN; n = n / 2 / GRANULE * GRANULE) {
		status = drv_cuda.cuMemAddressReserve(&base, n, GRANULE, a.hint, 0);
		if (!status) {
			s->window = r.base = base;
			s->window_bytes = r.size = n;
		}
	}
	pthread_mutex_unlock(&s->lock);
	srv_fail(c, status);
	srv_answer(c, &r, sizeof(r));
}

static CUresult set_access(struct srv_session *s, uint64_t addr, uint64_t bytes, unsigned owner)
{
	CUmemAccessDesc desc[SRV_DEVICES_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < s->ndevices; i++)
		if (s->device[owner].visible_to & 1u << i)
			desc[n++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device[i].dev},
						      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return drv_cuda.cuMemSetAccess(addr, bytes, desc, n);
}

static CUresult lease(struct srv_session *s, const struct rec_LEASE *a)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes = s->device[a->device].handle_type,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = s->device[a->device].dev}};
	CUmemGenericAllocationHandle h;
	bool listed;
	CUresult r;

	if (!quota_take(s->device[a->device].list_index, a->bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = drv_cuda.cuMemCreate(&h, a->bytes, &prop, 0);
	if (r) {
		quota_give(s->device[a->device].list_index, a->bytes);
		return r;
	}
	r = drv_cuda.cuMemMap(a->addr, a->bytes, 0, h, 0);
	/* The mapping keeps the memory. */
	drv_cuda.cuMemRelease(h);
	if (r) {
		quota_give(s->device[a->device].list_index, a->bytes);
		return r;
	}
	r = set_access(s, a->addr, a->bytes, a->device);
	if (!r) {
		pthread_rwlock_wrlock(&s->ranges_lock);
		listed = ranges_add(&s->leases,
				    &(struct srv_range_entry){.addr = a->addr, .bytes = a->bytes, .device = a->device});
		pthread_rwlock_unlock(&s->ranges_lock);
		if (!listed)
			r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r) {
		drv_cuda.cuMemUnmap(a->addr, a->bytes);
		quota_give(s->device[a->device].list_index, a->bytes);
	} else
		atomic_fetch_add(&s->device[a->device].used, a->bytes);
	return r;
}

void srv_LEASE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_LEASE a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&s->lock);
	if (a.device >= s->ndevices || !session_in_window(s, a.addr, a.bytes))
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	else
		srv_fail(c, lease(s, &a));
	pthread_mutex_unlock(&s->lock);
}

void srv_UNLEASE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_UNLEASE a;
	struct srv_range_entry e;
	bool mine;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	pthread_mutex_lock(&s->lock);
	pthread_rwlock_wrlock(&s->ranges_lock);
	mine = ranges_drop(&s->leases, a.addr, a.bytes, SRV_RANGE_LEASE, &e);
	pthread_rwlock_unlock(&s->ranges_lock);
	if (mine) {
		share_withdraw(SHARE_MEMORY, a.addr);
		srv_fail(c, drv_cuda.cuMemUnmap(a.addr, a.bytes));
		atomic_fetch_sub(&s->device[e.device].used, a.bytes);
		quota_give(s->device[e.device].list_index, a.bytes);
	} else {
		srv_fail(c, CUDA_ERROR_INVALID_VALUE);
	}
	pthread_mutex_unlock(&s->lock);
}

static struct srv_ctx *ctx_new(CUcontext real, unsigned device, bool primary)
{
	struct srv_ctx *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->real = real;
	x->device = device;
	x->primary = primary;
	pthread_mutex_init(&x->lock, NULL);
	pthread_mutex_init(&x->streams_lock, NULL);
	pthread_rwlock_init(&x->life, NULL);
	locked_init(&x->locked);
	return x;
}

/* What the client answers about a context from then on; its two replies are laid out alike. */
static void describe(struct srv_call *c, struct srv_ctx *x)
{
	struct rep_CTX_RETAIN r = {0};

	ctx_enter(x);
	if (!drv_cuda.cuCtxGetApiVersion || drv_cuda.cuCtxGetApiVersion(x->real, &r.api_version))
		r.api_version = 0;
	if (drv_cuda.cuCtxGetStreamPriorityRange)
		drv_cuda.cuCtxGetStreamPriorityRange(&r.least, &r.greatest);
	for (unsigned i = 0; i < sizeof(r.limits) / sizeof(*r.limits); i++) {
		size_t v;

		r.limits[i] = drv_cuda.cuCtxGetLimit && !drv_cuda.cuCtxGetLimit(&v, i) ? v : UINT64_MAX;
	}
	srv_answer(c, &r, sizeof(r));
}
_Static_assert(sizeof(struct rep_CTX_RETAIN) == sizeof(struct rep_CTX_CREATE), "one answer for both");

/* A thread that waits sleeps, unless the program wished otherwise: others' sessions want the processors, too. */
static unsigned ctx_flags(unsigned flags)
{
	return flags & CU_CTX_SCHED_MASK ? flags : flags | CU_CTX_SCHED_BLOCKING_SYNC;
}

void srv_CTX_RETAIN(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_CTX_RETAIN a;
	struct srv_ctx *x;
	CUcontext real;
	CUresult r = CUDA_SUCCESS;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_context, a.handle))
		return;
	if (a.device >= s->ndevices) {
		srv_fail(c, CUDA_ERROR_INVALID_DEVICE);
		return;
	}
	if (drv_cuda.cuDevicePrimaryCtxSetFlags_v2)
		r = drv_cuda.cuDevicePrimaryCtxSetFlags_v2(s->device[a.device].dev, ctx_flags(a.flags));
	if (!r)
		r = drv_cuda.cuDevicePrimaryCtxRetain(&real, s->device[a.device].dev);
	if (r) {
		srv_fail(c, r);
		return;
	}
	x = ctx_new(real, a.device, true);
	if (!x) {
		drv_cuda.cuDevicePrimaryCtxRelease_v2(s->device[a.device].dev);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	srv_put(c, KIND_context, a.handle, x, 0);
	describe(c, x);
}

void srv_CTX_CREATE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_CTX_CREATE a;
	struct srv_ctx *x;
	CUcontext real;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !srv_fresh(c, KIND_context, a.handle))
		return;
	if (a.device >= s->ndevices || !drv_cuda.cuCtxCreate_v2 || !drv_cuda.cuCtxDestroy_v2) {
		srv_fail(c, a.device >= s->ndevices ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	r = drv_cuda.cuCtxCreate_v2(&real, ctx_flags(a.flags), s->device[a.device].dev);
	/* It has become current here, unasked. */
	ctx_forget_current();
	if (r) {
		srv_fail(c, r);
		return;
	}
	x = ctx_new(real, a.device, false);
	if (!x) {
		drv_cuda.cuCtxDestroy_v2(real);
		srv_fail(c, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	srv_put(c, KIND_context, a.handle, x, 0);
	describe(c, x);
}

/* The driver ends what lived in a context; what is ours of it ends here. */
static void drop(struct srv_session *s, enum rgpu_kind kind, void *real)
{
	if (kind == KIND_module || kind == KIND_library)
		module_drop(s, real, false);
	if (kind == KIND_graph || kind == KIND_graphexec)
		graph_drop(real, true);
	if (kind == KIND_mipmap)
		mipmap_drop(s, real);
	if (kind == KIND_array)
		array_drop(s, real);
	if (kind == KIND_linkstate)
		link_drop(real);
	if (kind == KIND_event) {
		/* With the lock: a call that found it just before has offered it by now. */
		pthread_mutex_lock(&s->events_lock);
		share_withdraw(SHARE_EVENT, (uintptr_t)real);
		pthread_mutex_unlock(&s->events_lock);
	}
}

static void forget(struct srv_session *s, uint64_t ctx)
{
	session_drop_context(s, ctx, drop);
	shared_drop_of(s, NULL, ctx);
	pthread_rwlock_wrlock(&s->ranges_lock);
	ranges_drop_of(&s->globals, NULL, ctx);
	pthread_rwlock_unlock(&s->ranges_lock);
}

/*
 * Calls that are still answered later hold the context's own structure, so it stays, a few bytes until the session ends.
 * The driver lets nothing run on when it has destroyed a context: what they waited for has come to its end.
 */
static CUresult destroy(struct srv_session *s, struct srv_ctx *x, bool reset)
{
	CUdevice dev = s->device[x->device].dev;
	CUresult r = CUDA_SUCCESS;

	pthread_rwlock_wrlock(&x->life);
	if (!x->primary) {
		r = drv_cuda.cuCtxDestroy_v2(x->real);
	} else {
		if (reset && drv_cuda.cuDevicePrimaryCtxReset_v2)
			r = drv_cuda.cuDevicePrimaryCtxReset_v2(dev);
		/* A driver may take a reset for the release of all references. */
		if (!r)
			r = drv_cuda.cuDevicePrimaryCtxRelease_v2(dev);
		if (reset && r == CUDA_ERROR_INVALID_CONTEXT)
			r = CUDA_SUCCESS;
	}
	x->dead = true;
	pthread_rwlock_unlock(&x->life);
	locked_close(&x->locked);
	ctx_forget_current();
	return r;
}

void srv_CTX_RELEASE(struct srv_call *c)
{
	struct rec_CTX_RELEASE a;
	struct srv_ctx *x;
	void *real;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.handle)))
		return;
	if (!x->primary) {
		srv_fail(c, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (!srv_take(c, KIND_context, a.handle, &real))
		return;
	forget(c->session, a.handle);
	srv_fail(c, destroy(c->session, real, a.reset));
}

void srv_CTX_DESTROY(struct srv_call *c)
{
	struct rec_CTX_DESTROY a;
	struct srv_ctx *x;
	void *real;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.handle)))
		return;
	if (x->primary) {
		srv_fail(c, CUDA_ERROR_INVALID_CONTEXT);
		return;
	}
	if (!srv_take(c, KIND_context, a.handle, &real))
		return;
	forget(c->session, a.handle);
	srv_fail(c, destroy(c->session, real, false));
}

/*
 * Leased memory has its access per device, whatever the contexts: what is leased later follows visible_to. Access that was given
 * is not taken back: another context or pool may have it.
 */
static CUresult make_visible(struct srv_session *s, unsigned owner, unsigned to)
{
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&s->lock);
	if (!(s->device[owner].visible_to & 1u << to)) {
		s->device[owner].visible_to |= 1u << to;
		for (unsigned i = 0; i < s->leases.n && !r; i++)
			if (s->leases.list[i].device == owner && s->leases.list[i].what == SRV_RANGE_LEASE)
				r = set_access(s, s->leases.list[i].addr, s->leases.list[i].bytes, owner);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

void srv_PEER(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct srv_ctx *x, *peer;
	struct rec_PEER a;
	CUresult r;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !(peer = srv_context(c, a.peer)) ||
	    !srv_enter(c, a.ctx))
		return;
	if (!drv_cuda.cuCtxEnablePeerAccess || !drv_cuda.cuCtxDisablePeerAccess) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	r = a.enable ? drv_cuda.cuCtxEnablePeerAccess(peer->real, 0) : drv_cuda.cuCtxDisablePeerAccess(peer->real);
	if (!r && a.enable)
		r = make_visible(s, peer->device, x->device);
	srv_fail(c, r);
}

void srv_VISIBLE(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rec_VISIBLE a;

	if (!srv_body(c, &a, sizeof(a)))
		return;
	if (a.device >= s->ndevices || a.to >= s->ndevices)
		srv_fail(c, CUDA_ERROR_INVALID_DEVICE);
	else
		srv_fail(c, make_visible(s, a.device, a.to));
}

void srv_cuCtxSetLimit(struct srv_call *c)
{
	struct rec_cuCtxSetLimit a;
	struct rep_cuCtxSetLimit r = {0};
	size_t now = 0;
	CUresult status;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx))
		return;
	if (!drv_cuda.cuCtxSetLimit || !drv_cuda.cuCtxGetLimit) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	status = drv_cuda.cuCtxSetLimit(a.limit, a.value);
	if (!status)
		status = drv_cuda.cuCtxGetLimit(&now, a.limit);
	r.now = now;
	srv_fail(c, status);
	srv_answer(c, &r, sizeof(r));
}

/* What of it this session may have. */
CUresult ctx_memory(struct srv_session *s, struct srv_ctx *x, uint64_t *free_bytes, uint64_t *total)
{
	size_t f, t;
	CUresult r = drv_cuda.cuMemGetInfo_v2(&f, &t);

	*free_bytes = f;
	*total = t;
	if (!r)
		quota_view(s->device[x->device].list_index, free_bytes, total);
	return r;
}

void srv_cuMemGetInfo_v2(struct srv_call *c)
{
	struct rec_cuMemGetInfo_v2 a;
	struct rep_cuMemGetInfo_v2 r = {0};
	struct srv_ctx *x;

	if (!srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx)) || !srv_enter(c, a.ctx))
		return;
	srv_fail(c, ctx_memory(c->session, x, &r.free, &r.total));
	srv_answer(c, &r, sizeof(r));
}

void srv_PRINT(struct srv_call *c)
{
	struct srv_session *s = c->session;
	struct rep_PRINT r = {0};
	size_t n;

	pthread_mutex_lock(&s->print_lock);
	n = s->text_len < SRV_OUT_MAX - sizeof(r) ? s->text_len : SRV_OUT_MAX - sizeof(r);
	r.more = n < s->text_len;
	srv_answer(c, &r, sizeof(r));
	if (n)
		memcpy(c->out + sizeof(r), s->text, n);
	c->out_len += n;
	s->text_len -= n;
	if (s->text_len)
		memmove(s->text, s->text + n, s->text_len);
	else
		s->text_lost = false;
	pthread_mutex_unlock(&s->print_lock);
}
