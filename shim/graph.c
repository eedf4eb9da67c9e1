// SPDX-License-Identifier: MIT
/* What lib/graph asks of the client: streams, events and functions by their handles, checks of nodes, memory. */
#include "shim/graph.h"

#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/launch.h"
#include "shim/module.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/unsupported.h"
#include "shim/watch.h"

CUresult gb_enter(void)
{
	struct rgpu_call c;

	return rgpu_enter(&c, RGPU_NO_OP);
}

static int enter_context(struct rgpu_call *c, CUcontext ctx)
{
	int r = rgpu_enter(c, RGPU_NO_OP);

	return r ? r : ctx_use(c, ctx);
}

CUresult gb_context(CUcontext *ctx)
{
	struct rgpu_call c;
	int r = enter_context(&c, *ctx);

	if (!r)
		*ctx = (CUcontext)c.ctx;
	return r;
}

bool gb_device(CUdevice device)
{
	return device_find(device);
}

CUresult gb_stream(CUstream handle, struct gstream *out)
{
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t wire;
	int r = rgpu_enter(&c, RGPU_NO_OP);

	if (!r)
		r = rgpu_use(&c, KIND_stream, handle, true, &wire, &obj);
	if (!r)
		*out = capture_stream(&c, wire);
	return r;
}

CUresult gb_event(CUevent e, bool *recorded)
{
	struct rgpu_obj *obj = handle_find(KIND_event, (uint64_t)e);

	*recorded = obj && event_was_recorded(obj);
	return obj ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult gb_layout(CUfunction handle, CUcontext *ctx, unsigned int *n, unsigned int *bytes, struct gparam **param)
{
	struct rgpu_obj *context;
	uint64_t wire;
	struct func *f;
	int r = func_use(handle, &f, &wire, &context);

	if (!r && context)
		*ctx = (CUcontext)context->handle;
	else if (!r)
		r = gb_context(ctx);
	if (r)
		return r;
	*n = f->nparams;
	*bytes = f->param_bytes;
	*param = calloc(f->nparams + 1, sizeof(**param));
	if (!*param)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < f->nparams; i++)
		(*param)[i] = (struct gparam){f->params[i].offset, f->params[i].bytes};
	return CUDA_SUCCESS;
}

static int check_kernel(const struct gkernel *k)
{
	CUlaunchConfig cfg = {
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared,
		.attrs = k->attr,
		.numAttrs = k->nattrs,
	};
	struct rgpu_call c;
	int r = enter_context(&c, k->ctx);

	for (unsigned i = 0; i < k->nattrs && !r; i++)
		if (k->attr[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
		    k->attr[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			r = rgpu_unsupported("an event of a launch inside of a graph", NULL);
	if (!r && k->packed)
		r = pinned_reached(&c, k->packed, k->param_bytes);
	return r ? r : launch_check(ctx_of(c.context)->device, k->func ? (void *)k->func : (void *)k->kern, &cfg);
}

static int check_copy(const CUDA_MEMCPY3D *p, CUcontext ctx)
{
	struct rgpu_call c;
	struct box b;
	int r = enter_context(&c, ctx);

	if (!r)
		r = box_of(&b, p);
	if (r || !b.width || !b.height || !b.depth)
		return r;
	return box_check(&c, &b);
}

static int check_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	struct rgpu_call c;
	__int128 bytes = (__int128)p->width * p->elementSize;
	int r = enter_context(&c, p->ctx);

	if (!r && p->dst % p->elementSize)
		r = CUDA_ERROR_INVALID_VALUE;
	if (p->height > 1)
		bytes += (__int128)p->pitch * (p->height - 1);
	return r || !p->width || !p->height ? r : rgpu_check_range(&c, p->dst, bytes);
}

static int check_memops(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	struct rgpu_call c;
	int r = enter_context(&c, p->ctx);

	for (unsigned i = 0; i < p->count && !r; i++) {
		const CUstreamBatchMemOpParams *o = &p->paramArray[i];

		switch (o->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			r = o->waitValue.address % 4 ? (int)CUDA_ERROR_INVALID_VALUE
						     : rgpu_check_range(&c, o->waitValue.address, 4);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			r = o->waitValue.address % 8 ? (int)CUDA_ERROR_INVALID_VALUE
						     : rgpu_check_range(&c, o->waitValue.address, 8);
			break;
		case CU_STREAM_MEM_OP_BARRIER:
		case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
			break;
		default:
			r = CUDA_ERROR_INVALID_VALUE;
		}
	}
	return r;
}

CUresult gb_check(const struct gparams *p)
{
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return check_kernel(&p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return check_copy(&p->memcpy.copy, p->memcpy.ctx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return check_fill(&p->memset);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return check_memops(&p->memop);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return cond_known(p->cond.handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_SUCCESS;
	}
}

void gb_log(const char *text)
{
	rgpu_err("%s", text);
}

/* Graphs' memory is the heap's, and stays theirs: the server sees leases only. */
CUresult gb_alloc(int device, uint64_t bytes, CUdeviceptr *dptr, uint64_t *id)
{
	struct device *d = device_find(device);
	struct rgpu_call c;
	struct block b;
	uint64_t addr;
	int r = enter_context(&c, NULL);

	if (!r && !d)
		r = CUDA_ERROR_INVALID_DEVICE;
	if (!r)
		r = heap_alloc(d, c.context, bytes, &addr);
	if (!r) {
		*dptr = addr;
		*id = heap_find(addr, &b) ? b.id : 0;
	}
	return r;
}

/* It may have gone with its context. */
void gb_alloc_free(CUdeviceptr dptr, uint64_t id)
{
	struct block b;

	if (heap_find(dptr, &b) && b.id == id)
		heap_free(dptr);
}
