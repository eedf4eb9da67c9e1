// SPDX-License-Identifier: MIT
/* Contexts: primary and created ones, and each thread's stack of current contexts, which lives here alone. */
#include "shim/ctx.h"
#include "shim/array.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/handles.h"
#include "shim/ipc.h"
#include "shim/hostfunc.h"
#include "shim/module.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/thread.h"
#include "shim/watch.h"

static _Atomic unsigned long long next_id = 1;

/* The stack of this thread. */

static int push(uint64_t handle)
{
	struct thread *t = thread_get();

	if (t->depth == t->room) {
		unsigned more = t->room ? t->room * 2 : 8;
		uint64_t *p = realloc(t->stack, more * sizeof(*p));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		t->stack = p;
		t->room = more;
	}
	t->stack[t->depth++] = handle;
	return 0;
}

static int check(CUcontext ctx, struct rgpu_obj **obj)
{
	int r = process_ready();

	if (r)
		return r;
	*obj = handle_find(KIND_context, (uint64_t)ctx);
	return *obj ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct rgpu_obj *obj;
	int r = check(ctx, &obj);

	return r ? r : push(obj->handle);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	struct thread *t = thread_get();
	int r = process_ready();

	if (r || !t->depth)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	t->depth--;
	if (pctx)
		*pctx = (CUcontext)t->stack[t->depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	struct thread *t = thread_get();
	struct rgpu_obj *obj;
	int r = process_ready();

	if (r)
		return r;
	if (!ctx) {
		t->depth -= t->depth > 0;
		return CUDA_SUCCESS;
	}
	r = check(ctx, &obj);
	if (r)
		return r;
	if (!t->depth)
		return push(obj->handle);
	t->stack[t->depth - 1] = obj->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	int r = process_ready();

	if (r || !pctx)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*pctx = (CUcontext)thread_context();
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

/* Life and death. */

/* Dead contexts, for the next ones: other threads may still look at one, so that its memory is never given back. */
static pthread_mutex_t retired_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ctx *retired;

static void ctx_retire(struct ctx *x)
{
	handle_free(x->obj);
	pthread_mutex_lock(&retired_lock);
	x->next = retired;
	retired = x;
	pthread_mutex_unlock(&retired_lock);
}

static struct ctx *ctx_memory(void)
{
	struct ctx *x;

	pthread_mutex_lock(&retired_lock);
	x = retired;
	if (x)
		retired = x->next;
	pthread_mutex_unlock(&retired_lock);
	return x ? x : calloc(1, sizeof(*x));
}

static struct ctx *ctx_new(struct device *d, unsigned flags, bool primary)
{
	struct rgpu_obj *obj = handle_new(KIND_context, NULL);
	struct ctx *x = obj ? ctx_memory() : NULL;

	if (!x) {
		if (obj)
			handle_free(obj);
		return NULL;
	}
	/* Field by field: who is late at a dead context finds a device at all times. */
	x->device = d;
	x->obj = obj;
	x->alive = false;
	atomic_store(&x->fault, 0);
	x->primary = primary;
	atomic_store(&x->attached, 0);
	x->flags = flags;
	x->api_version = 0;
	x->least = x->greatest = 0;
	memset(x->limits, 0, sizeof(x->limits));
	x->peers = 0;
	tally_clear(&x->work);
	atomic_store(&x->settled, 0);
	atomic_store(&x->idle, 0);
	atomic_store(&x->blocking, 0);
	memset(&x->legacy, 0, sizeof(x->legacy));
	x->cache = CU_FUNC_CACHE_PREFER_NONE;
	x->banks = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	x->id = atomic_fetch_add(&next_id, 1);
	obj->data = x;
	return x;
}

static void drop_stream(struct rgpu_obj *obj, void *context)
{
	if (obj->context != context)
		return;
	stream_forget(obj);
	handle_free(obj);
}

static void drop_event(struct rgpu_obj *obj, void *context)
{
	if (obj->context != context)
		return;
	event_forget(obj);
	handle_free(obj);
}

static void drop_link(struct rgpu_obj *obj, void *context)
{
	if (obj->context == context)
		link_forget(obj);
}

/* The context's objects died with it at the server. */
static void forget_objects(struct ctx *x)
{
	handle_each(KIND_stream, drop_stream, x->obj);
	handle_each(KIND_event, drop_event, x->obj);
	known_forget(&x->legacy);
	texture_drop_context(x->obj);
	texref_drop_context(x->obj);
	array_drop_context(x->obj);
	handle_each(KIND_linkstate, drop_link, x->obj);
	hostfunc_drop_context(x->obj);
	module_drop_context(x->obj);
	pinned_settled(x->obj, PINNED_ALL, UINT64_MAX);
	ordered_settled(x->obj, ORDERED_ALL, UINT64_MAX);
	heap_drop_context(x->obj);
	ipc_drop_context(x->obj);
	shared_drop_context(x->obj);
}

static int retain_locked(struct device *d)
{
	struct rgpu_call c = {.op = OP_CTX_RETAIN, .session = d->session};
	struct ctx *x;
	int r;

	if (!d->primary) {
		x = ctx_new(d, d->primary_flags, true);
		if (!x)
			return CUDA_ERROR_OUT_OF_MEMORY;
		d->primary = x->obj;
	}
	x = ctx_of(d->primary);
	if (d->retained && x->alive)
		goto done;
	r = session_start(d->session);
	if (!r)
		r = rpc_CTX_RETAIN(&c, x->obj->handle, d->index, d->primary_flags, &x->least, &x->greatest, &x->api_version,
				   x->limits);
	if (r)
		return r;
	x->flags = d->primary_flags;
	x->fault = 0;
	x->alive = true;
done:
	d->retained++;
	return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct device *d;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	r = retain_locked(d);
	if (!r)
		*pctx = (CUcontext)d->primary->handle;
	pthread_mutex_unlock(&d->lock);
	return r;
}

static int release(CUdevice dev, bool reset)
{
	struct device *d;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&d->lock);
	if (!reset && !d->retained)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (!reset)
		d->retained--;
	if (!r && d->primary && ctx_of(d->primary)->alive && (reset || !d->retained)) {
		struct rgpu_call c = {.op = OP_CTX_RELEASE, .session = d->session};
		struct ctx *x = ctx_of(d->primary);

		r = rpc_CTX_RELEASE(&c, d->primary->handle, d->index, reset);
		x->alive = false;
		forget_objects(x);
		/* Reset keeps the references: the next use of the context makes it anew. */
		if (!r && reset && d->retained) {
			d->retained--;
			r = retain_locked(d);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return release(dev, false);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return release(dev, false);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return release(dev, true);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return release(dev, true);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct device *d;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	d->primary_flags = flags;
	if (d->primary)
		ctx_of(d->primary)->flags = flags;
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *d;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	*flags = d->primary_flags;
	*active = d->primary && ctx_of(d->primary)->alive;
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct rgpu_call c = {.op = OP_CTX_CREATE};
	struct device *d;
	struct ctx *x;
	int r = process_ready();

	if (r)
		return r;
	d = device_find(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx || !ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	r = session_start(d->session);
	if (r)
		return r;
	x = ctx_new(d, flags, false);
	if (!x)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c.session = d->session;
	r = rpc_CTX_CREATE(&c, x->obj->handle, d->index, flags, &x->least, &x->greatest, &x->api_version, x->limits);
	if (!r)
		r = push(x->obj->handle);
	if (r) {
		ctx_retire(x);
		return r;
	}
	x->alive = true;
	*pctx = (CUcontext)x->obj->handle;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

/* Execution affinity partitions a GPU that runs MPS: there is none of that here. */
CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev)
{
	if (numParams)
		return paramsArray ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && params->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (params && params->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	struct thread *t = thread_get();
	struct rgpu_call c = {.op = OP_CTX_DESTROY};
	struct rgpu_obj *obj;
	struct ctx *x;
	int r = check(ctx, &obj);

	if (r)
		return r;
	x = ctx_of(obj);
	if (x->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (t->depth && t->stack[t->depth - 1] == obj->handle)
		t->depth--;
	c.session = x->device->session;
	x->alive = false;
	r = rpc_CTX_DESTROY(&c, obj->handle);
	forget_objects(x);
	ctx_retire(x);
	return r;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

/* Before cuCtxDestroy there was a count of users. */
CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r && (!pctx || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	atomic_fetch_add(&ctx_of(c.context)->attached, 1);
	*pctx = (CUcontext)c.ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	struct rgpu_obj *obj;
	int r = process_ready(), n;

	if (!r)
		r = check(ctx, &obj);
	if (r)
		return r;
	n = atomic_load(&ctx_of(obj)->attached);
	while (n > 0)
		if (atomic_compare_exchange_weak(&ctx_of(obj)->attached, &n, n - 1))
			return CUDA_SUCCESS;
	return cuCtxDestroy_v2(ctx);
}
