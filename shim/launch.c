// SPDX-License-Identifier: MIT
/* Launches: checks what the driver would refuse at the call, packs the parameters, and sends one record. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/launch.h"
#include "shim/module_int.h"
#include "shim/pinned.h"
#include "shim/watch.h"
#include "lib/launch_attr.h"

#define ATTRS_MAX  64u
#define PARAMS_MAX 32768u

struct launch {
	CUlaunchConfig cfg;
	bool cooperative;
	void **params, **extra;
	const void *packed; /* parameters as one buffer, from extra */
	size_t packed_bytes;
};

/*
 * Whether all blocks of a cooperative or a cluster launch fit at once is the device's to say, and CUDA says it at the
 * call: such a launch waits for its answer.
 */
static bool asks_device(const struct launch *l, const struct func *f)
{
	bool ask = l->cooperative || f->attrs[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] > 0 ||
		   f->attrs[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] > 0;

	for (unsigned i = 0; i < l->cfg.numAttrs; i++)
		ask |= l->cfg.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE ||
		       l->cfg.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	return ask;
}

/* What CUDA refuses at the call: else the answer would come with a later one (law 3). */
static int check_shape(const struct device *d, const struct func *f, const CUlaunchConfig *g)
{
	uint64_t threads = (uint64_t)g->blockDimX * g->blockDimY * g->blockDimZ;
	int64_t shared = (int64_t)f->attrs[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + g->sharedMemBytes;
	const struct launch_limits *max = &d->launch;

	/* 0 becomes the largest number. */
	if (g->gridDimX - 1 >= max->grid[0] || g->gridDimY - 1 >= max->grid[1] || g->gridDimZ - 1 >= max->grid[2] ||
	    g->blockDimX - 1 >= max->block[0] || g->blockDimY - 1 >= max->block[1] || g->blockDimZ - 1 >= max->block[2] ||
	    threads > max->threads)
		return CUDA_ERROR_INVALID_VALUE;
	/* 48 KiB for all, more for kernels that were allowed more. */
	if (g->sharedMemBytes > INT32_MAX ||
	    (shared > max->shared && (int64_t)g->sharedMemBytes > f->attrs[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]))
		return CUDA_ERROR_INVALID_VALUE;
	/* Too many threads for the registers is one thing, more than the kernel's launch bounds another. */
	if (f->attrs[CU_FUNC_ATTRIBUTE_NUM_REGS] > 0 && f->attrs[CU_FUNC_ATTRIBUTE_NUM_REGS] * threads > max->registers)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (f->attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] > 0 &&
	    threads > (unsigned)f->attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

/* The `extra` form: a buffer and its size. */
static int read_extra(struct launch *l)
{
	for (void **e = l->extra; *e != CU_LAUNCH_PARAM_END; e += 2) {
		if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
			l->packed = e[1];
		else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
			l->packed_bytes = *(const size_t *)e[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	return l->packed || !l->packed_bytes ? 0 : CUDA_ERROR_INVALID_VALUE;
}

static int check_params(struct launch *l, const struct func *f)
{
	int r;

	if (l->extra && l->params)
		return CUDA_ERROR_INVALID_VALUE;
	if (f->param_bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (l->extra) {
		r = read_extra(l);
		if (r)
			return r;
		return l->packed_bytes < f->param_bytes ? CUDA_ERROR_INVALID_VALUE : 0;
	}
	if (f->nparams && !l->params)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < f->nparams; i++)
		if (!l->params[i])
			return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

/* An event that the launch records: of the launch's context, without times, and no other process's. */
static int check_event(CUevent handle, const struct rgpu_obj *context, int flags)
{
	struct rgpu_obj *event = handle_find(KIND_event, (uint64_t)handle);

	if (!event || event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	return flags || (event->field[0] & (CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)) != CU_EVENT_DISABLE_TIMING
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

/* What was known of events that the launch records is so no more. */
static void record_events(struct launch *l)
{
	for (unsigned i = 0; i < l->cfg.numAttrs; i++) {
		CUlaunchAttribute a = l->cfg.attrs[i];
		struct rgpu_obj *event;
		CUevent *handle;

		launch_attr_travels(&a, &handle);
		event = handle ? handle_find(KIND_event, (uint64_t)*handle) : NULL;
		if (!event)
			continue;
		graph_event_recorded(*handle);
		event_forget(event);
	}
}

/* Attributes travel as they are, handles in them under their wire names. One that is not known here is refused, not dropped. */
static int check_attrs(struct launch *l, const struct rgpu_obj *context, CUlaunchAttribute *out)
{
	if (l->cfg.numAttrs > ATTRS_MAX || (l->cfg.numAttrs && !l->cfg.attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < l->cfg.numAttrs; i++) {
		CUevent *event;
		int r;

		out[i] = l->cfg.attrs[i];
		if (!launch_attr_travels(&out[i], &event)) {
			rgpu_err("launch attribute %d is not supported", out[i].id);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		/* Both have their flags at one place. */
		r = event ? check_event(*event, context, out[i].value.launchCompletionEvent.flags) : 0;
		if (r)
			return r;
	}
	return 0;
}

static void pack(const struct launch *l, const struct func *f, uint8_t *at)
{
	if (l->extra) {
		memcpy(at, l->packed, f->param_bytes);
		return;
	}
	/* Holes between parameters carry no bytes of the ring's past. */
	if (f->holes)
		memset(at, 0, f->param_bytes);
	for (uint32_t i = 0; i < f->nparams; i++) {
		const struct rgpu_func_param p = f->params[i];

		/* Most are one of these two, which need no call. */
		if (p.bytes == 8)
			memcpy(at + p.offset, l->params[i], 8);
		else if (p.bytes == 4)
			memcpy(at + p.offset, l->params[i], 4);
		else
			memcpy(at + p.offset, l->params[i], p.bytes);
	}
}

int launch_check(const struct device *d, const void *handle, const CUlaunchConfig *cfg)
{
	CUlaunchAttribute attrs[ATTRS_MAX];
	struct launch l = {.cfg = *cfg};
	struct rgpu_obj *context;
	uint64_t module;
	struct func *f;
	int r = func_use(handle, &f, &module, &context);

	if (!r)
		r = check_shape(d, f, cfg);
	return r ? r : check_attrs(&l, context, attrs);
}

/* Page-locked memory that the kernel is given. */
static int reach_params(const struct rgpu_call *c, const struct launch *l, const struct func *f)
{
	int r;

	if (!pinned_may_reach())
		return 0;
	r = l->extra ? pinned_reached(c, l->packed, f->param_bytes) : 0;
	for (uint32_t i = 0; i < f->nparams && !l->extra && !r; i++)
		r = pinned_reached(c, l->params[i], f->params[i].bytes);
	return r;
}

bool launches_block(void)
{
	static atomic_int block = -1;

	if (__builtin_expect(atomic_load_explicit(&block, memory_order_relaxed) < 0, 0)) {
		const char *s = getenv("CUDA_LAUNCH_BLOCKING");

		atomic_store(&block, s && atoi(s));
	}
	return atomic_load_explicit(&block, memory_order_relaxed);
}

static int launch(struct launch *l, const void *handle)
{
	CUlaunchAttribute attrs[ATTRS_MAX];
	struct rgpu_obj *stream, *context;
	uint64_t wstream, wmodule;
	struct rec_LAUNCH *b;
	struct rgpu_call c;
	struct func *f;
	size_t nattrs;
	bool fence;
	int r = rgpu_enter(&c, OP_LAUNCH);

	if (!r)
		r = ctx_use(&c, NULL);
	if (!r)
		r = func_use(handle, &f, &wmodule, &context);
	if (!r)
		r = rgpu_use(&c, KIND_stream, l->cfg.hStream, false, &wstream, &stream);
	if (r)
		return r;
	if ((context && context != c.context) || (stream->context && stream->context != c.context))
		return CUDA_ERROR_INVALID_HANDLE;
	r = check_shape(ctx_of(c.context)->device, f, &l->cfg);
	if (!r)
		r = check_params(l, f);
	if (!r)
		r = check_attrs(l, c.context, attrs);
	if (!r)
		r = reach_params(&c, l, f);
	if (!r)
		r = rgpu_capture(&c, wstream);
	if (!r && c.capturing)
		return capture_launch(&c, &l->cfg, l->cooperative, (CUfunction)handle, l->params, l->extra);
	if (r)
		return r;
	nattrs = l->cfg.numAttrs * sizeof(*attrs);
	fence = asks_device(l, f);
	b = rgpu_begin(&c, fence ? RGPU_REC_FENCE : 0, 0, sizeof(*b) + nattrs + f->param_bytes);
	if (!b)
		return c.status;
	*b = (struct rec_LAUNCH){
		.ctx = c.ctx,
		.module = wmodule,
		.index = f->index,
		.cooperative = l->cooperative,
		.hStream = wstream,
		.grid_x = l->cfg.gridDimX,
		.grid_y = l->cfg.gridDimY,
		.grid_z = l->cfg.gridDimZ,
		.block_x = l->cfg.blockDimX,
		.block_y = l->cfg.blockDimY,
		.block_z = l->cfg.blockDimZ,
		.shared = l->cfg.sharedMemBytes,
		.nattrs = l->cfg.numAttrs,
		.param_bytes = f->param_bytes,
	};
	if (nattrs)
		memcpy(b + 1, attrs, nattrs);
	pack(l, f, (uint8_t *)(b + 1) + nattrs);
	record_events(l);
	r = fence ? rgpu_fence(&c, NULL, 0) : rgpu_send(&c);
	record_events(l);
	return r || !launches_block() ? r : stream_sync(&c, wstream);
}

static int launch_plain(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
			unsigned shared, CUstream stream, void **params, void **extra, bool cooperative)
{
	struct launch l = {
		.cfg = {.gridDimX = gx,
			.gridDimY = gy,
			.gridDimZ = gz,
			.blockDimX = bx,
			.blockDimY = by,
			.blockDimZ = bz,
			.sharedMemBytes = shared,
			.hStream = stream},
		.cooperative = cooperative,
		.params = params,
		.extra = extra,
	};

	return launch(&l, f);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			unsigned int bz, unsigned int shared, CUstream hStream, void **kernelParams, void **extra)
{
	return launch_plain(f, gx, gy, gz, bx, by, bz, shared, hStream, kernelParams, extra, false);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			     unsigned int bz, unsigned int shared, CUstream hStream, void **kernelParams, void **extra)
{
	return launch_plain(f, gx, gy, gz, bx, by, bz, shared, hStream ? hStream : CU_STREAM_PER_THREAD, kernelParams, extra,
			    false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				   unsigned int by, unsigned int bz, unsigned int shared, CUstream hStream, void **kernelParams)
{
	return launch_plain(f, gx, gy, gz, bx, by, bz, shared, hStream, kernelParams, NULL, true);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
					unsigned int by, unsigned int bz, unsigned int shared, CUstream hStream,
					void **kernelParams)
{
	return launch_plain(f, gx, gy, gz, bx, by, bz, shared, hStream ? hStream : CU_STREAM_PER_THREAD, kernelParams, NULL,
			    true);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	struct launch l = {.params = kernelParams, .extra = extra};

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	l.cfg = *config;
	return launch(&l, f);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	struct launch l = {.params = kernelParams, .extra = extra};

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	l.cfg = *config;
	if (!l.cfg.hStream)
		l.cfg.hStream = CU_STREAM_PER_THREAD;
	return launch(&l, f);
}
