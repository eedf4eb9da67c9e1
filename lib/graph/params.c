// SPDX-License-Identifier: MIT
/* What a node is to do: taken from the program's structures, kept, copied, compared, and shown again. */
#include "lib/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#define ATTRS_MAX  64u
#define MEMOPS_MAX 256u

static void *dup_bytes(const void *from, size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (p && bytes)
		memcpy(p, from, bytes);
	return p;
}

/* ---- Kernels ---- */

static CUresult from_extra(struct gkernel *k, void **extra)
{
	const void *buffer = NULL;
	size_t bytes = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	/* Trailing padding may be there or not. */
	for (unsigned int i = 0; i < k->nparams; i++)
		if (!buffer || (size_t)k->param[i].offset + k->param[i].bytes > bytes)
			return CUDA_ERROR_INVALID_VALUE;
	if (k->param_bytes)
		memcpy(k->packed, buffer, bytes < k->param_bytes ? bytes : k->param_bytes);
	return CUDA_SUCCESS;
}

CUresult gkernel_pack(struct gkernel *k, CUfunction f, void **params, void **extra)
{
	GTRY(gb_layout(f, &k->ctx, &k->nparams, &k->param_bytes, &k->param));
	k->packed = calloc(1, k->param_bytes ? k->param_bytes : 1);
	k->pointers = calloc(k->nparams + 1, sizeof(void *));
	if (!k->packed || !k->pointers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < k->nparams; i++)
		k->pointers[i] = k->packed + k->param[i].offset;
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra)
		return from_extra(k, extra);
	if (k->nparams && !params)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < k->nparams; i++) {
		if (!params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(k->pointers[i], params[i], k->param[i].bytes);
	}
	return CUDA_SUCCESS;
}

CUresult gkernel_set_attrs(struct gkernel *k, const CUlaunchAttribute *attr, unsigned int n)
{
	unsigned int kept = 0;

	if (n > ATTRS_MAX || (n && !attr))
		return CUDA_ERROR_INVALID_VALUE;
	free(k->attr);
	k->nattrs = 0;
	k->attr = calloc(n + 1, sizeof(*attr));
	if (!k->attr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < n; i++)
		if (attr[i].id != CU_LAUNCH_ATTRIBUTE_IGNORE)
			k->attr[kept++] = attr[i];
	k->nattrs = kept;
	return CUDA_SUCCESS;
}

static CUresult take_kernel(struct gkernel *k, const CUDA_KERNEL_NODE_PARAMS_v3 *p, const struct gkernel *old)
{
	CUfunction f = p->func ? p->func : (CUfunction)p->kern;

	if (!f)
		return CUDA_ERROR_INVALID_VALUE;
	*k = (struct gkernel){
		.func = p->func,
		.kern = p->func ? NULL : p->kern,
		.ctx = p->ctx,
		.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
		.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
		.shared = p->sharedMemBytes,
	};
	GTRY(gkernel_pack(k, f, p->kernelParams, p->extra));
	return gkernel_set_attrs(k, old ? old->attr : NULL, old ? old->nattrs : 0);
}

static CUresult copy_kernel(struct gkernel *to, const struct gkernel *from)
{
	*to = *from;
	to->param = dup_bytes(from->param, from->nparams * sizeof(*from->param));
	to->packed = dup_bytes(from->packed, from->param_bytes);
	to->pointers = calloc(from->nparams + 1, sizeof(void *));
	to->attr = dup_bytes(from->attr, from->nattrs * sizeof(*from->attr));
	if (!to->param || !to->packed || !to->pointers || !to->attr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < to->nparams; i++)
		to->pointers[i] = to->packed + to->param[i].offset;
	return CUDA_SUCCESS;
}

static bool same_kernel(const struct gkernel *a, const struct gkernel *b)
{
	return a->func == b->func && a->kern == b->kern && a->ctx == b->ctx && !memcmp(a->grid, b->grid, sizeof(a->grid)) &&
	       !memcmp(a->block, b->block, sizeof(a->block)) && a->shared == b->shared && a->param_bytes == b->param_bytes &&
	       !memcmp(a->packed, b->packed, a->param_bytes) && a->nattrs == b->nattrs &&
	       !memcmp(a->attr, b->attr, a->nattrs * sizeof(*a->attr));
}

static void free_kernel(struct gkernel *k)
{
	free(k->param);
	free(k->packed);
	free(k->pointers);
	free(k->attr);
}

/* ---- The others ---- */

static CUresult take_memop(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *m, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	if (!p->count || p->count > MEMOPS_MAX || !p->paramArray || p->flags)
		return CUDA_ERROR_INVALID_VALUE;
	*m = *p;
	m->paramArray = NULL;
	GTRY(gb_context(&m->ctx));
	m->paramArray = dup_bytes(p->paramArray, p->count * sizeof(*p->paramArray));
	return m->paramArray ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_memset(CUDA_MEMSET_NODE_PARAMS_v2 *m, const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	*m = *p;
	if (m->elementSize != 1 && m->elementSize != 2 && m->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (m->height > 1 && m->pitch < m->width * m->elementSize)
		return CUDA_ERROR_INVALID_VALUE;
	return gb_context(&m->ctx);
}

static CUresult take_child(struct gparams *g, CUgraph handle, CUgraphChildGraphNodeOwnership ownership)
{
	struct graph *child = ghandle_find(handle, GRAPH_KIND_GRAPH);

	if (!child || (unsigned int)ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	if (ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
		if (child->owner || child->execs)
			return CUDA_ERROR_INVALID_VALUE;
		g->child = child;
		return CUDA_SUCCESS;
	}
	if (graph_has(child, CU_GRAPH_NODE_TYPE_MEM_ALLOC) || graph_has(child, CU_GRAPH_NODE_TYPE_MEM_FREE) ||
	    graph_has(child, CU_GRAPH_NODE_TYPE_CONDITIONAL))
		return CUDA_ERROR_NOT_SUPPORTED;
	return graph_copy(child, false, &g->child);
}

static CUresult take_alloc(struct gparams *g, const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
	g->alloc.p = *p;
	g->alloc.p.accessDescs = NULL;
	if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->poolProps.handleTypes || !p->bytesize ||
	    (p->accessDescCount && !p->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < p->accessDescCount; i++)
		if (p->accessDescs[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
	g->alloc.p.accessDescs = dup_bytes(p->accessDescs, p->accessDescCount * sizeof(*p->accessDescs));
	if (!g->alloc.p.accessDescs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	GTRY(galloc_new(&g->alloc.p, &g->alloc.mem));
	g->alloc.p.dptr = g->alloc.mem->dptr;
	return CUDA_SUCCESS;
}

static CUresult take_cond(struct gcond *c, const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	unsigned int least = 1, most = p->type == CU_GRAPH_COND_TYPE_IF ? 2 : p->type == CU_GRAPH_COND_TYPE_WHILE ? 1 : 4096;

	if ((unsigned int)p->type > CU_GRAPH_COND_TYPE_SWITCH || p->size < least || p->size > most || !p->handle)
		return CUDA_ERROR_INVALID_VALUE;
	*c = (struct gcond){.handle = p->handle, .type = p->type, .size = p->size, .ctx = p->ctx};
	GTRY(gb_context(&c->ctx));
	c->body = calloc(c->size, sizeof(*c->body));
	c->handles = calloc(c->size, sizeof(*c->handles));
	if (!c->body || !c->handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < c->size; i++) {
		c->body[i] = graph_new();
		if (!c->body[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
		GTRY(graph_handle(c->body[i]));
		c->handles[i] = (CUgraph)(uintptr_t)c->body[i]->h.value;
	}
	return CUDA_SUCCESS;
}

static CUresult take(struct gparams *g, const CUgraphNodeParams *p, const struct gparams *old)
{
	bool recorded;

	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return take_kernel(&g->kernel, &p->kernel, old ? &old->kernel : NULL);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		g->memcpy.copy = p->memcpy.copyParams;
		g->memcpy.ctx = p->memcpy.copyCtx;
		return p->memcpy.flags || p->memcpy.reserved ? CUDA_ERROR_INVALID_VALUE : gb_context(&g->memcpy.ctx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return take_memset(&g->memset, &p->memset);
	case CU_GRAPH_NODE_TYPE_HOST:
		g->host = p->host;
		return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return take_child(g, p->graph.graph, p->graph.ownership);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		g->event = p->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? p->eventWait.event : p->eventRecord.event;
		return g->event && gb_event(g->event, &recorded) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return take_alloc(g, &p->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		g->free = p->free.dptr;
		return galloc_known(g->free) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return take_memop(&g->memop, &p->memOp);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return take_cond(&g->cond, &p->conditional);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult gparams_take(struct gparams *out, const CUgraphNodeParams *p, const struct gparams *old)
{
	CUresult r;

	*out = (struct gparams){.type = p->type};
	if (old && old->type != p->type)
		return CUDA_ERROR_INVALID_VALUE;
	r = take(out, p, old);
	if (r == CUDA_SUCCESS)
		r = gb_check(out);
	if (r != CUDA_SUCCESS)
		gparams_free(out);
	return r;
}

void gparams_show(const struct gparams *g, CUgraphNodeParams *p)
{
	*p = (CUgraphNodeParams){.type = g->type};
	switch ((int)g->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		p->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
			.func = g->kernel.func,
			.gridDimX = g->kernel.grid[0],
			.gridDimY = g->kernel.grid[1],
			.gridDimZ = g->kernel.grid[2],
			.blockDimX = g->kernel.block[0],
			.blockDimY = g->kernel.block[1],
			.blockDimZ = g->kernel.block[2],
			.sharedMemBytes = g->kernel.shared,
			.kernelParams = g->kernel.pointers,
			.kern = g->kernel.kern,
			.ctx = g->kernel.ctx,
		};
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		p->memcpy.copyParams = g->memcpy.copy;
		p->memcpy.copyCtx = g->memcpy.ctx;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		p->memset = g->memset;
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		p->host = g->host;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		p->graph.graph = (CUgraph)(uintptr_t)g->child->h.value;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		p->eventWait.event = g->event;
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		p->eventRecord.event = g->event;
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		p->alloc = g->alloc.p;
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		p->free.dptr = g->free;
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		p->memOp = g->memop;
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		p->conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = g->cond.handle,
								.type = g->cond.type,
								.size = g->cond.size,
								.phGraph_out = g->cond.handles,
								.ctx = g->cond.ctx};
		break;
	default:
		break;
	}
}

static CUresult copy_cond(struct gcond *to, const struct gcond *from)
{
	*to = *from;
	to->handles = calloc(from->size, sizeof(*to->handles));
	to->body = calloc(from->size, sizeof(*to->body));
	if (!to->body || !to->handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < from->size; i++)
		GTRY(graph_copy(from->body[i], true, &to->body[i]));
	return CUDA_SUCCESS;
}

CUresult gparams_copy(struct gparams *to, const struct gparams *from, bool exec)
{
	CUresult r = CUDA_SUCCESS;

	*to = *from;
	switch ((int)from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		r = copy_kernel(&to->kernel, &from->kernel);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		to->child = NULL;
		r = graph_copy(from->child, exec, &to->child);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		galloc_ref(to->alloc.mem);
		to->alloc.p.accessDescs =
			dup_bytes(from->alloc.p.accessDescs, from->alloc.p.accessDescCount * sizeof(CUmemAccessDesc));
		r = to->alloc.p.accessDescs ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		to->memop.paramArray = dup_bytes(from->memop.paramArray, from->memop.count * sizeof(*from->memop.paramArray));
		r = to->memop.paramArray ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		r = copy_cond(&to->cond, &from->cond);
		break;
	case GRAPH_NODE_GUEST:
		atomic_fetch_add(&to->guest->refs, 1);
		break;
	}
	if (r != CUDA_SUCCESS)
		gparams_free(to);
	return r;
}

/* Graphs inside are compared by who walks them. */
bool gparams_equal(const struct gparams *a, const struct gparams *b)
{
	if (a->type != b->type)
		return false;
	switch ((int)a->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return same_kernel(&a->kernel, &b->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return !memcmp(&a->memcpy, &b->memcpy, sizeof(a->memcpy));
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return !memcmp(&a->memset, &b->memset, sizeof(a->memset));
	case CU_GRAPH_NODE_TYPE_HOST:
		return a->host.fn == b->host.fn && a->host.userData == b->host.userData;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return a->event == b->event;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return a->alloc.mem == b->alloc.mem;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return a->free == b->free;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return a->memop.ctx == b->memop.ctx && a->memop.count == b->memop.count &&
		       !memcmp(a->memop.paramArray, b->memop.paramArray, a->memop.count * sizeof(*a->memop.paramArray));
	case GRAPH_NODE_GUEST:
		return a->guest == b->guest;
	default:
		return true;
	}
}

void gparams_free(struct gparams *g)
{
	switch ((int)g->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		free_kernel(&g->kernel);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (g->child)
			graph_free(g->child);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		free((void *)g->alloc.p.accessDescs);
		if (g->alloc.mem)
			galloc_put(g->alloc.mem);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		free(g->memop.paramArray);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		for (unsigned int i = 0; g->cond.body && i < g->cond.size; i++)
			if (g->cond.body[i])
				graph_free(g->cond.body[i]);
		free(g->cond.body);
		free(g->cond.handles);
		break;
	case GRAPH_NODE_GUEST:
		if (atomic_fetch_sub(&g->guest->refs, 1) == 1)
			g->guest->drop(g->guest);
		break;
	}
	g->type = CU_GRAPH_NODE_TYPE_EMPTY;
}
