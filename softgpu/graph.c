// SPDX-License-Identifier: MIT
/* What lib/graph asks of softgpu: streams, events and functions by their handles, checks of nodes, memory, conditions. */
#include "softgpu/copy.h"
#include "softgpu/graph.h"

#include <stdlib.h>

struct gstream graph_stream(const struct stream *s)
{
	/* Only the legacy stream has no handle of its own. */
	return (struct gstream){
		.handle = s->obj.handle ? (CUstream)s->obj.handle : CU_STREAM_LEGACY,
		.ctx = (CUcontext)s->ctx->obj.handle,
		.key = s->obj.handle,
		.legacy = !s->obj.handle,
		.blocking = s->blocking,
	};
}

CUresult stream_capturing(const struct stream *s, bool *capturing)
{
	struct gstream gs = graph_stream(s);

	return graph_capturing(&gs, capturing);
}

CUresult stream_not_capturing(const struct stream *s)
{
	struct gstream gs = graph_stream(s);
	bool capturing;

	TRY(graph_capturing(&gs, &capturing));
	return capturing ? graph_capture_refuse(&gs) : CUDA_SUCCESS;
}

CUresult gb_enter(void)
{
	return api_enter();
}

CUresult gb_context(CUcontext *ctx)
{
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_resolve(*ctx, &c));
	*ctx = (CUcontext)c->obj.handle;
	return CUDA_SUCCESS;
}

bool gb_device(CUdevice device)
{
	return device_get(device);
}

CUresult gb_stream(CUstream handle, struct gstream *out)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(handle, &s));
	*out = graph_stream(s);
	return CUDA_SUCCESS;
}

CUresult gb_event(CUevent e, bool *recorded)
{
	CUresult r;

	*recorded = event_recorded(e, &r);
	return r;
}

CUresult gb_layout(CUfunction handle, CUcontext *ctx, unsigned int *n, unsigned int *bytes, struct gparam **param)
{
	AUTO_PUT struct function *f = NULL;
	AUTO_PUT struct ctx *c = NULL;

	TRY(ctx_resolve(*ctx, &c));
	TRY(function_resolve(handle, c, &f));
	if (f->obj.ctx)
		*ctx = (CUcontext)f->obj.ctx->obj.handle;
	*n = f->info->nparams;
	*bytes = f->info->param_bytes;
	*param = calloc(*n + 1, sizeof(**param));
	if (!*param)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < *n; i++)
		(*param)[i] = (struct gparam){f->info->params[i].offset, f->info->params[i].size};
	return CUDA_SUCCESS;
}

CUresult gb_check(const struct gparams *p)
{
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return launch_check(&p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy_check(&p->memcpy.copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_check(&p->memset);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		for (unsigned int i = 0; i < p->memop.count; i++)
			TRY(memop_check(&p->memop.paramArray[i]));
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return cond_find(p->cond.handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_SUCCESS;
	}
}

void gb_log(const char *text)
{
	log_line("%s", text);
}

/* ---- Memory ---- */

CUresult gb_alloc(int device, uint64_t bytes, CUdeviceptr *dptr, uint64_t *id)
{
	struct device *d = device_get(device);
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	TRY(ctx_resolve(NULL, &c));
	TRY(mem_alloc(c, d, ALLOC_DEVICE, bytes, &a));
	*dptr = a.base;
	*id = a.id;
	return CUDA_SUCCESS;
}

struct late_free {
	struct op op;
	struct alloc a;
};

static CUresult late_run(struct op *op, struct stream *s)
{
	(void)s;
	mem_release(&container_of(op, struct late_free, op)->a, true);
	return CUDA_SUCCESS;
}

/* Behind all work of its context, for nobody may wait here: a stream that nobody knows does that. */
static void free_later(struct ctx *c, const struct alloc *a)
{
	struct late_free *f = op_new(sizeof(*f), late_run, op_free);
	struct stream *s = NULL;

	if (f && op_depends_on_ctx(&f->op, c) && stream_create(c, CU_STREAM_NON_BLOCKING, 0, &s) == CUDA_SUCCESS) {
		f->a = *a;
		f->op.always = f->op.quick = true;
		stream_submit(s, &f->op, NULL);
		obj_put(&s->obj);
		return;
	}
	free(f);
	ctx_drain(c);
	mem_release(a, true);
}

void gb_alloc_free(CUdeviceptr dptr, uint64_t id)
{
	AUTO_PUT struct ctx *c = NULL;
	struct alloc a;

	/* It may have gone with its context. */
	if (!mem_find(dptr, &a) || a.id != id || !mem_remove(dptr, &a))
		return;
	if (a.ctx_handle && ctx_resolve((CUcontext)a.ctx_handle, &c) == CUDA_SUCCESS)
		free_later(c, &a);
	else
		mem_release(&a, true);
}

/* ---- Conditions: a number that a kernel may set ---- */

#define CONDS 1024

static struct gcond_value conds[CONDS];
static unsigned int conds_used; /* graph_lock */

struct gcond_value *cond_find(CUgraphConditionalHandle h)
{
	unsigned int i = h & 0xffff;

	return h && i < CONDS && conds[i].handle == h ? &conds[i] : NULL;
}

void cond_set(uint64_t h, uint32_t value)
{
	struct gcond_value *v = cond_find(h);

	if (v)
		atomic_store(&v->value, value);
}

CUresult gb_cond_new(CUcontext ctx, struct graph *g, unsigned int value, unsigned int flags, CUgraphConditionalHandle *out)
{
	unsigned int i = 0;

	(void)ctx;
	(void)g;
	while (i < CONDS && conds[i].handle)
		i++;
	if (i == CONDS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	conds[i].initial = value;
	conds[i].assign = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
	atomic_store(&conds[i].value, value);
	conds[i].handle = *out = (CUgraphConditionalHandle)++conds_used << 16 | i;
	return CUDA_SUCCESS;
}

void gb_cond_free(CUgraphConditionalHandle h)
{
	struct gcond_value *v = cond_find(h);

	if (v)
		v->handle = 0;
}
