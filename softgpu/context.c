// SPDX-License-Identifier: MIT
/* Contexts: creation, the stack of current ones that each thread has, limits and flags, sticky errors, destruction. */
#include "softgpu/array.h"
#include "softgpu/graph.h"

#include <stdlib.h>
#include <string.h>

static const size_t default_limit[CU_LIMIT_MAX] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

/* ---- The calling thread's stack ---- */

static _Thread_local struct {
	uintptr_t *handle;
	size_t n, room;
} stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static void stack_free(void *handles)
{
	free(handles);
	stack.handle = NULL;
	stack.n = stack.room = 0;
}

static void stack_key_make(void)
{
	pthread_key_create(&stack_key, stack_free);
}

static CUresult push(uintptr_t handle)
{
	if (stack.n == stack.room) {
		size_t room = stack.room ? stack.room * 2 : 8;
		uintptr_t *p = realloc(stack.handle, room * sizeof(*p));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pthread_once(&stack_once, stack_key_make);
		pthread_setspecific(stack_key, p);
		stack.handle = p;
		stack.room = room;
	}
	stack.handle[stack.n++] = handle;
	return CUDA_SUCCESS;
}

static uintptr_t top(void)
{
	return stack.n ? stack.handle[stack.n - 1] : 0;
}

CUresult ctx_push(CUcontext handle)
{
	return push((uintptr_t)handle);
}

void ctx_forget(CUcontext handle)
{
	if (stack.n && top() == (uintptr_t)handle)
		stack.n--;
}

struct CUctx_st *softgpu_current_context(void)
{
	return (CUcontext)top();
}

CUresult ctx_resolve(CUcontext handle, struct ctx **out)
{
	uintptr_t h = handle ? (uintptr_t)handle : top();
	struct ctx *c;

	*out = NULL;
	if (!h)
		return CUDA_ERROR_INVALID_CONTEXT;
	c = obj_get((void *)h, OBJ_CTX);
	if (!c)
		return handle ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!atomic_load(&c->alive)) {
		obj_put(&c->obj);
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	*out = c;
	return CUDA_SUCCESS;
}

CUresult ctx_enter(struct ctx **out)
{
	*out = NULL;
	TRY(api_enter());
	TRY(ctx_resolve(NULL, out));
	return atomic_load(&(*out)->error);
}

/* ---- Life and death ---- */

static void ctx_release(struct obj *o)
{
	struct ctx *c = container_of(o, struct ctx, obj);

	pthread_mutex_destroy(&c->lock);
	free(c);
}

CUresult ctx_create(struct device *d, unsigned int flags, bool primary, struct ctx **out)
{
	static atomic_ullong next_id = 1;
	struct ctx *c = calloc(1, sizeof(*c));

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&c->obj, OBJ_CTX, NULL, ctx_release);
	c->dev = d;
	c->primary = primary;
	c->flags = flags;
	c->api_version = 3020;
	c->id = atomic_fetch_add(&next_id, 1);
	list_init(&c->streams);
	pthread_mutex_init(&c->lock, NULL);
	if (!obj_publish(&c->obj)) {
		obj_put(&c->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = c;
	return CUDA_SUCCESS;
}

CUresult ctx_activate(struct ctx *c)
{
	static atomic_ullong life;
	struct stream *s;

	c->lives = 1 + atomic_fetch_add(&life, 1);
	atomic_store(&c->error, CUDA_SUCCESS);
	__atomic_store_n(&c->cancel, 0, __ATOMIC_RELAXED);
	c->peers = 0;
	memcpy(c->limit, default_limit, sizeof(c->limit));
	c->cache = CU_FUNC_CACHE_PREFER_NONE;
	c->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	TRY(stream_create(c, CU_STREAM_DEFAULT, 0, &s));
	sched_set_legacy(c, s);
	atomic_store(&c->alive, true);
	return CUDA_SUCCESS;
}

void ctx_teardown(struct ctx *c)
{
	static const enum obj_kind kinds[] = {OBJ_STREAM, OBJ_EVENT, OBJ_LINK};
	struct stream *legacy;
	struct obj *o;

	if (!atomic_exchange(&c->alive, false))
		return;
	/* Kernels stop at their next back-edge, everything that still waits is dropped. */
	ctx_fail(c, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ctx_drain(c);
	legacy = sched_set_legacy(c, NULL);
	if (legacy)
		obj_put(&legacy->obj);
	while ((o = obj_first_of(c, OBJ_MODULE))) {
		module_retire(container_of(o, struct module, obj));
		obj_put(o);
	}
	texture_objects_free_of_ctx(c);
	arrays_free_of_ctx(c);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		while ((o = obj_first_of(c, kinds[i]))) {
			obj_retire(o);
			obj_put(o);
		}
	mem_free_of_ctx(c);
}

void ctx_fail(struct ctx *c, CUresult error)
{
	int none = CUDA_SUCCESS;

	/* As on a GPU, whatever else of it runs is ended, too. */
	if (atomic_compare_exchange_strong(&c->error, &none, error)) {
		__atomic_store_n(&c->cancel, 1, __ATOMIC_RELAXED);
		sched_wake_ctx(c);
	}
}

/* ---- Creating and destroying ---- */

static CUresult create(CUcontext *out, unsigned int flags, CUdevice dev, unsigned int api_version)
{
	struct device *d;
	struct ctx *c;
	CUresult r;

	TRY(api_enter());
	if (!out || !ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	d = device_get(dev);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(ctx_create(d, flags, false, &c));
	c->api_version = api_version;
	r = ctx_activate(c);
	if (r == CUDA_SUCCESS)
		r = push(c->obj.handle);
	if (r != CUDA_SUCCESS) {
		ctx_teardown(c);
		obj_retire(&c->obj);
	} else {
		*out = (CUcontext)c->obj.handle;
	}
	obj_put(&c->obj);
	return r;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev, 3010);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int n, unsigned int flags, CUdevice dev)
{
	if (n < 0 || (n && !params))
		return CUDA_ERROR_INVALID_VALUE;
	if (n)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(pctx, flags, dev, 3020);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && params->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (params && params->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(pctx, flags, dev, 3020);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	c = obj_get(ctx, OBJ_CTX);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (c->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!obj_retire(&c->obj))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	ctx_teardown(c);
	ctx_forget(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

/* ---- The stack ---- */

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	TRY(ctx_resolve(ctx, &c));
	return push((uintptr_t)ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	TRY(api_enter());
	if (!stack.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = (CUcontext)top();
	stack.n--;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	if (!ctx) {
		if (stack.n)
			stack.n--;
		return CUDA_SUCCESS;
	}
	TRY(ctx_resolve(ctx, &c));
	if (!stack.n)
		return push((uintptr_t)ctx);
	stack.handle[stack.n - 1] = (uintptr_t)ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	TRY(api_enter());
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = (CUcontext)top();
	return CUDA_SUCCESS;
}

/* ---- Questions and settings ---- */

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(ctx_resolve(ctx, &c));
	*device = c->dev->index;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = c->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	c->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(ctx_resolve(ctx, &c));
	*id = c->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(ctx_resolve(ctx, &c));
	*version = c->api_version;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(api_enter());
	TRY(ctx_resolve(ctx, &c));
	TRY(graph_unsafe_ctx((CUcontext)c->obj.handle));
	ctx_drain(c);
	return atomic_load(&c->error);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if ((unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
		value = (value + 4095) & ~(size_t)4095;
		if (value > c->dev->total)
			return CUDA_ERROR_OUT_OF_MEMORY;
		/* A heap is made with its module, where CUDA makes it with the first launch. */
		if (value != c->limit[limit] && atomic_load(&c->dev->heaps)) {
			log_line("cuCtxSetLimit: a module that uses device malloc is loaded already; set the limit before that");
			return CUDA_ERROR_INVALID_VALUE;
		}
		atomic_store(&c->dev->heap_bytes, value);
	}
	/* Nothing to persist in a CPU's caches, as the attribute says. */
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		value = 0;
	if (limit == CU_LIMIT_STACK_SIZE)
		value = (value + 15) & ~(size_t)15;
	if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&c->lock);
	c->limit[limit] = value;
	pthread_mutex_unlock(&c->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!value || (unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	pthread_mutex_lock(&c->lock);
	*value = c->limit[limit];
	pthread_mutex_unlock(&c->lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = c->cache;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	c->cache = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = c->shared_config;
	return CUDA_SUCCESS;
}

/* Bank sizes are a matter of old hardware: like every GPU since Maxwell, softgpu accepts a setting and has one size. */
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	AUTO_PUT struct ctx *c = NULL;

	return ctx_enter(&c);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_enter(&c));
	if (!param || type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

/* ---- Peers ---- */

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct ctx *p = NULL;
	CUresult r = CUDA_SUCCESS;
	uint32_t bit;

	TRY(ctx_enter(&c));
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!peer || ctx_resolve(peer, &p) != CUDA_SUCCESS || p == c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (p->dev == c->dev)
		return CUDA_ERROR_INVALID_DEVICE;
	bit = 1u << p->dev->index;
	pthread_mutex_lock(&c->lock);
	if (c->peers & bit)
		r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	c->peers |= bit;
	pthread_mutex_unlock(&c->lock);
	return r;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct ctx *p = NULL;
	CUresult r = CUDA_SUCCESS;
	uint32_t bit;

	TRY(ctx_enter(&c));
	if (!peer || ctx_resolve(peer, &p) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	bit = 1u << p->dev->index;
	pthread_mutex_lock(&c->lock);
	if (!(c->peers & bit))
		r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	c->peers &= ~bit;
	pthread_mutex_unlock(&c->lock);
	return r;
}
