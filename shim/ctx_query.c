// SPDX-License-Identifier: MIT
/* What may be asked of a context and set on it, waiting for it, and access between peers. */
#include "shim/ctx.h"
#include "shim/graph.h"

#include <stdio.h>
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/handles.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/session.h"

bool ctx_is_sticky(int status)
{
	switch (status) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
		return true;
	default:
		return false;
	}
}

int ctx_use(struct rgpu_call *c, CUcontext ctx)
{
	uint64_t wire;
	struct rgpu_obj *obj;

	if (ctx) {
		int r = rgpu_use(c, KIND_context, ctx, false, &wire, &obj);

		if (r)
			return r;
		if (!ctx_of(obj)->alive)
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		c->context = obj;
		c->ctx = wire;
		c->session = ctx_of(obj)->device->session;
	}
	return c->context ? 0 : CUDA_ERROR_INVALID_CONTEXT;
}

/* Enters a call on the current context, for functions that have an answer here. */
static int current(struct ctx **x)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		*x = ctx_of(c.context);
	return r;
}

static int named(CUcontext ctx, struct ctx **x)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = ctx_use(&c, ctx);
	if (!r)
		*x = ctx_of(c.context);
	return r;
}

#define ANSWER(out, value)                                                                                                       \
	do {                                                                                                                     \
		struct ctx *x;                                                                                                   \
		int r = current(&x);                                                                                             \
                                                                                                                                 \
		if (r || !(out))                                                                                                 \
			return r ? r : CUDA_ERROR_INVALID_VALUE;                                                                 \
		*(out) = (value);                                                                                                \
		return CUDA_SUCCESS;                                                                                             \
	} while (0)

CUresult cuCtxGetDevice(CUdevice *device)
{
	ANSWER(device, x->device->ordinal);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct ctx *x;
	int r = named(ctx, &x);

	if (r || !device)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*device = x->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	ANSWER(flags, x->flags);
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	struct ctx *x;
	int r = current(&x);

	if (r)
		return r;
	if (!ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	x->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct ctx *x;
	int r = named(ctx, &x);

	if (r || !ctxId)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*ctxId = x->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct ctx *x;
	int r = named(ctx, &x);

	if (r || !version)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	*version = x->api_version;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct ctx *x;
	int r = current(&x);

	if (r)
		return r;
	if (leastPriority)
		*leastPriority = x->least;
	if (greatestPriority)
		*greatestPriority = x->greatest;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	ANSWER(pconfig, x->cache);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct ctx *x;
	int r = current(&x);

	if (r || (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	x->cache = config; /* a hint, and without effect since compute capability 7 */
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	ANSWER(pConfig, x->banks);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct ctx *x;
	int r = current(&x);

	if (r || (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS; /* without effect on devices that this runs on, as documented */
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct ctx *x;
	int r = current(&x);

	if (r)
		return r;
	if (!pvalue || (unsigned)limit >= CTX_LIMITS)
		return CUDA_ERROR_INVALID_VALUE;
	if (x->limits[limit] == UINT64_MAX)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*pvalue = x->limits[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct rgpu_call c;
	uint64_t now;
	int r = rgpu_enter(&c, OP_cuCtxSetLimit);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	if ((unsigned)limit >= CTX_LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	r = rpc_cuCtxSetLimit(&c, limit, value, &now);
	if (!r)
		ctx_of(c.context)->limits[limit] = now;
	return r;
}

/* Waiting. */

struct contexts {
	struct device *device;
	struct rgpu_obj *list[64];
	unsigned n;
	bool more;
};

static void collect(struct rgpu_obj *obj, void *arg)
{
	struct contexts *all = arg;

	if (ctx_of(obj)->device != all->device || !ctx_of(obj)->alive)
		return;
	if (all->n == sizeof(all->list) / sizeof(*all->list))
		all->more = true;
	else
		all->list[all->n++] = obj;
}

static int wait_there(struct rgpu_call *c, uint32_t *text)
{
	static atomic_bool old; /* the server has no such record */
	int r = CUDA_ERROR_NOT_SUPPORTED;

	if (!atomic_load_explicit(&old, memory_order_relaxed)) {
		/* Its own status, not an earlier call's. */
		c->op = OP_CTX_WAIT;
		c->mute = true;
		r = rpc_CTX_WAIT(c, text);
		c->mute = false;
	}
	if (r != CUDA_ERROR_NOT_SUPPORTED)
		return r ? r : session_take_pending(c->session, c->op);
	atomic_store_explicit(&old, true, memory_order_relaxed);
	c->op = OP_CTX_SYNC;
	return rpc_CTX_SYNC(c, text);
}

static int sync_one(struct rgpu_call *c)
{
	uint64_t stamp = atomic_load(&c->session->counter), work = tally_sum(&ctx_of(c->context)->work);
	uint32_t text;
	int r;

	c->settles = true;
	r = wait_there(c, &text);
	if (!r) {
		ctx_settled(ctx_of(c->context), work);
		known_context(c->context, stamp);
		pinned_settled(c->context, PINNED_ALL, stamp);
		ordered_settled(c->context, ORDERED_ALL, stamp);
	}
	if (!r && text)
		print_fetch(c->session);
	return r;
}

int ctx_sync_device(struct device *d)
{
	struct contexts all = {.device = d};
	uint64_t stamp = atomic_load(&d->session->counter);
	int r = 0;

	handle_each(KIND_context, collect, &all);
	if (all.more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* One that failed does not excuse the others. */
	for (unsigned i = 0; i < all.n; i++) {
		struct rgpu_call c = {.session = d->session, .context = all.list[i], .ctx = all.list[i]->handle};
		int e = sync_one(&c);

		r = r ? r : e;
	}
	if (!r)
		heap_idle(d, stamp);
	return r;
}

int ctx_sync(struct rgpu_call *c)
{
	struct device *d = ctx_of(c->context)->device;
	struct contexts all = {.device = d};
	uint64_t stamp = atomic_load(&d->session->counter);
	int r = sync_one(c);

	/* With one context that is the device; else another context may still use what it freed. */
	handle_each(KIND_context, collect, &all);
	if (!r && all.n == 1)
		heap_idle(d, stamp);
	return r;
}

int ctx_quiesce(struct rgpu_call *c)
{
	struct ctx *x = ctx_of(c->context);

	c->settles = true;
	return tally_sum(&x->work) > atomic_load(&x->settled) ? ctx_sync(c) : x->fault;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_CTX_WAIT);

	if (!r)
		r = ctx_use(&c, ctx);
	if (!r)
		r = graph_unsafe_ctx((CUcontext)c.ctx);
	return r ? r : ctx_sync(&c);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

/* Peers. */

static int peer(CUcontext peerContext, bool enable, unsigned flags)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire, bit;
	struct ctx *x;
	int r = rgpu_enter(&c, OP_PEER), can = 0;

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		r = rgpu_use(&c, KIND_context, peerContext, false, &wire, &obj);
	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	x = ctx_of(c.context);
	bit = 1ull << ctx_of(obj)->device->ordinal;
	if (enable) {
		if (ctx_of(obj)->device == x->device)
			return CUDA_ERROR_INVALID_CONTEXT;
		cuDeviceCanAccessPeer(&can, x->device->ordinal, ctx_of(obj)->device->ordinal);
		if (!can)
			return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
		if (x->peers & bit)
			return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
		x->peers |= bit;
	} else {
		if (!(x->peers & bit))
			return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
		x->peers &= ~bit;
	}
	return rpc_PEER(&c, wire, enable, 0);
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	return peer(peerContext, true, Flags);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	return peer(peerContext, false, 0);
}

void print_fetch(struct rgpu_session *s)
{
	struct {
		struct rep_PRINT head;
		char text[RGPU_REP_MAX - sizeof(struct rgpu_rep) - sizeof(struct rep_PRINT)];
	} reply;

	do {
		struct rgpu_call c = {.op = OP_PRINT, .session = s, .mute = true};
		struct fence f = {.out = &reply, .room = sizeof(reply)};

		if (!rgpu_begin(&c, RGPU_REC_FENCE, 0, 0))
			return;
		call_expect(&c, &f);
		if (call_wait(&c, &f) || f.got < sizeof(reply.head))
			return;
		fwrite(reply.text, 1, f.got - sizeof(reply.head), stdout);
	} while (reply.head.more);
	fflush(stdout);
}
