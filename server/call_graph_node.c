// SPDX-License-Identifier: MIT
/* One node of a graph: what came off the wire, checked and given to the driver. */
#include <stdlib.h>
#include <string.h>
#include "server/call_graph.h"
#include "server/call_launch.h"
#include "server/call_module.h"

#define ATTRS_MAX 64u

/* What a node is made of: where it goes, and what came with it. */
struct made {
	struct srv_call *c;
	struct srv_graph *g;
	struct srv_ctx *x;
	const struct rec_GRAPH_NODE *a;
	const uint8_t *blob;
	CUgraphNode *dep;
	CUgraph into;	  /* the graph, or the body of a conditional node of it */
	CUgraphNode real; /* the node, to be changed */
	bool changes;
	struct host_fn *fn;
};

/* A status that a check of the call has set. */
static CUresult refused(struct srv_call *c)
{
	return c->status ? (CUresult)c->status : CUDA_ERROR_INVALID_VALUE;
}

static CUresult kernel(struct made *m)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
	CUlaunchAttribute attr[ATTRS_MAX];
	struct rgpu_wire_kernel w;
	MODULE_REF *module = NULL;
	const uint8_t *packed;
	struct srv_func *f;
	CUresult r;

	if (!drv_cuda.cuGraphAddKernelNode_v2 || !drv_cuda.cuGraphExecKernelNodeSetParams_v2)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (m->a->bytes < sizeof(w))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&w, m->blob, sizeof(w));
	f = srv_function(m->c, w.module, w.index, &module, &p.func);
	if (!f)
		return refused(m->c);
	if (w.nattrs > ATTRS_MAX || w.param_bytes != f->param_bytes || f->nparams > LAUNCH_PARAMS_MAX ||
	    m->a->bytes != sizeof(w) + w.nattrs * sizeof(*attr) + w.param_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(attr, m->blob + sizeof(w), w.nattrs * sizeof(*attr));
	if (!launch_attrs(m->c, attr, w.nattrs))
		return refused(m->c);
	packed = m->blob + sizeof(w) + w.nattrs * sizeof(*attr);
	{
		void *params[f->nparams + 1];

		for (uint32_t i = 0; i < f->nparams; i++)
			params[i] = (uint8_t *)packed + module->param[f->first_param + i].offset;
		p.gridDimX = w.grid[0];
		p.gridDimY = w.grid[1];
		p.gridDimZ = w.grid[2];
		p.blockDimX = w.block[0];
		p.blockDimY = w.block[1];
		p.blockDimZ = w.block[2];
		p.sharedMemBytes = w.shared;
		p.kernelParams = f->nparams ? params : NULL;
		if (m->changes)
			return drv_cuda.cuGraphExecKernelNodeSetParams_v2(m->g->exec, m->real, &p);
		r = drv_cuda.cuGraphAddKernelNode_v2(&m->real, m->into, m->dep, m->a->ndeps, &p);
	}
	for (uint32_t i = 0; i < w.nattrs && !r; i++) {
		if (attr[i].id == CU_LAUNCH_ATTRIBUTE_IGNORE)
			continue;
		r = drv_cuda.cuGraphKernelNodeSetAttribute
			    ? drv_cuda.cuGraphKernelNodeSetAttribute(m->real, attr[i].id, &attr[i].value)
			    : CUDA_ERROR_NOT_SUPPORTED;
	}
	return r;
}

/* Bytes from an end's first to behind its last. */
static __int128 span(const struct rgpu_wire_end *e, const struct rgpu_wire_copy *w)
{
	const uint64_t most = 1ull << 40; /* of three such the product is a number yet */

	/* What does not hold a row, or a slice, a driver may take for something else. */
	if (e->pitch > most || e->height > most || w->width > most || w->height > most || w->depth > most ||
	    (e->place != RGPU_PLACE_ARRAY && ((w->height > 1 && e->pitch < w->width) || (w->depth > 1 && e->height < w->height))))
		return -1;
	return (__int128)(w->depth - 1) * e->pitch * e->height + (__int128)(w->height - 1) * e->pitch + w->width;
}

static bool place(struct made *m, const struct rgpu_wire_end *e, const struct rgpu_wire_copy *w, CUmemorytype *type, void **host,
		  CUdeviceptr *device, CUarray *array)
{
	__int128 bytes = span(e, w);
	void *real;

	if (bytes < 0)
		return false;
	switch (e->place) {
	case RGPU_PLACE_DEVICE:
		/* A node stays one of host memory or of a device's, and the program's memory is the former, twin or not. */
		if (shared_is_host(m->c->session, e->at)) {
			*type = CU_MEMORYTYPE_HOST;
			*host = (void *)e->at;
		} else {
			*type = CU_MEMORYTYPE_DEVICE;
			*device = e->at;
		}
		return srv_range(m->c, e->at, bytes);
	case RGPU_PLACE_HOST:
		*type = CU_MEMORYTYPE_HOST;
		*host = bytes > UINT64_MAX ? NULL : graph_host(m->g, e->at, (uint64_t)bytes);
		return *host;
	case RGPU_PLACE_ARRAY:
		*type = CU_MEMORYTYPE_ARRAY;
		if (!srv_use(m->c, KIND_array, e->at, &real))
			return false;
		*array = real;
		return true;
	default:
		return false;
	}
}

static CUresult copy(struct made *m)
{
	struct rgpu_wire_copy w;
	CUDA_MEMCPY3D p = {0};
	bool array;

	if (m->a->bytes != sizeof(w))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&w, m->blob, sizeof(w));
	if (!w.width || !w.height || !w.depth ||
	    !place(m, &w.src, &w, &p.srcMemoryType, (void **)&p.srcHost, &p.srcDevice, &p.srcArray) ||
	    !place(m, &w.dst, &w, &p.dstMemoryType, &p.dstHost, &p.dstDevice, &p.dstArray))
		return refused(m->c);
	p.WidthInBytes = w.width;
	p.Height = w.height;
	p.Depth = w.depth;
	p.srcPitch = w.src.pitch;
	p.srcHeight = w.src.height;
	p.dstPitch = w.dst.pitch;
	p.dstHeight = w.dst.height;
	array = w.src.place == RGPU_PLACE_ARRAY;
	p.srcXInBytes = array ? w.src.x : 0;
	p.srcY = array ? w.src.y : 0;
	p.srcZ = array ? w.src.z : 0;
	array = w.dst.place == RGPU_PLACE_ARRAY;
	p.dstXInBytes = array ? w.dst.x : 0;
	p.dstY = array ? w.dst.y : 0;
	p.dstZ = array ? w.dst.z : 0;
	if (!drv_cuda.cuGraphAddMemcpyNode || !drv_cuda.cuGraphExecMemcpyNodeSetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return m->changes ? drv_cuda.cuGraphExecMemcpyNodeSetParams(m->g->exec, m->real, &p, m->x->real)
			  : drv_cuda.cuGraphAddMemcpyNode(&m->real, m->into, m->dep, m->a->ndeps, &p, m->x->real);
}

static CUresult fill(struct made *m)
{
	CUDA_MEMSET_NODE_PARAMS_v1 p;
	struct rgpu_wire_fill w;
	__int128 bytes;

	if (m->a->bytes != sizeof(w))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&w, m->blob, sizeof(w));
	if ((w.bytes != 1 && w.bytes != 2 && w.bytes != 4) || !w.width || !w.height || w.width > 1ull << 48 ||
	    w.pitch > 1ull << 48 || w.height > 1ull << 48)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = (__int128)w.width * w.bytes + (w.height > 1 ? (__int128)w.pitch * (w.height - 1) : 0);
	if (!srv_range(m->c, w.dst, bytes))
		return refused(m->c);
	p = (CUDA_MEMSET_NODE_PARAMS_v1){
		.dst = w.dst, .pitch = w.pitch, .value = w.value, .elementSize = w.bytes, .width = w.width, .height = w.height};
	if (!drv_cuda.cuGraphAddMemsetNode || !drv_cuda.cuGraphExecMemsetNodeSetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return m->changes ? drv_cuda.cuGraphExecMemsetNodeSetParams(m->g->exec, m->real, &p, m->x->real)
			  : drv_cuda.cuGraphAddMemsetNode(&m->real, m->into, m->dep, m->a->ndeps, &p, m->x->real);
}

static CUresult host(struct made *m)
{
	CUDA_HOST_NODE_PARAMS_v1 p = {.fn = host_fn_call};
	struct rgpu_wire_host w;

	if (!drv_cuda.cuGraphAddHostNode || !drv_cuda.cuGraphExecHostNodeSetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (m->a->bytes != sizeof(w))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&w, m->blob, sizeof(w));
	m->fn = host_fn_new(m->c->session, w.id, false);
	if (!m->fn)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (m->a->type == RGPU_NODE_PULL) {
		m->fn->bytes = w.bytes;
		m->fn->into = graph_host(m->g, w.at, w.bytes);
		if (!m->fn->into || w.bytes > RGPU_CHUNK_MAX)
			return CUDA_ERROR_INVALID_VALUE;
	}
	p.userData = m->fn;
	return m->changes ? drv_cuda.cuGraphExecHostNodeSetParams(m->g->exec, m->real, &p)
			  : drv_cuda.cuGraphAddHostNode(&m->real, m->into, m->dep, m->a->ndeps, &p);
}

static CUresult event(struct made *m)
{
	bool wait = m->a->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	uint64_t handle;
	void *e;

	if (m->a->bytes != sizeof(handle))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&handle, m->blob, sizeof(handle));
	if (!srv_use(m->c, KIND_event, handle, &e))
		return refused(m->c);
	if (!drv_cuda.cuGraphAddEventWaitNode || !drv_cuda.cuGraphAddEventRecordNode ||
	    !drv_cuda.cuGraphExecEventWaitNodeSetEvent || !drv_cuda.cuGraphExecEventRecordNodeSetEvent)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (m->changes)
		return wait ? drv_cuda.cuGraphExecEventWaitNodeSetEvent(m->g->exec, m->real, e)
			    : drv_cuda.cuGraphExecEventRecordNodeSetEvent(m->g->exec, m->real, e);
	return wait ? drv_cuda.cuGraphAddEventWaitNode(&m->real, m->into, m->dep, m->a->ndeps, e)
		    : drv_cuda.cuGraphAddEventRecordNode(&m->real, m->into, m->dep, m->a->ndeps, e);
}

/* A known one, for where another has its address is not known either. */
static bool memop(struct made *m, const CUstreamBatchMemOpParams *op)
{
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return srv_range(m->c, op->waitValue.address, 4);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return srv_range(m->c, op->waitValue.address, 8);
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return true;
	default:
		return false;
	}
}

static CUresult memops(struct made *m)
{
	CUstreamBatchMemOpParams op[256];
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = {.ctx = m->x->real, .count = m->a->bytes / sizeof(*op), .paramArray = op};

	if (!p.count || p.count > 256 || m->a->bytes % sizeof(*op))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(op, m->blob, m->a->bytes);
	for (unsigned i = 0; i < p.count; i++)
		if (!memop(m, &op[i]))
			return refused(m->c);
	if (!drv_cuda.cuGraphAddBatchMemOpNode || !drv_cuda.cuGraphExecBatchMemOpNodeSetParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return m->changes ? drv_cuda.cuGraphExecBatchMemOpNodeSetParams(m->g->exec, m->real, &p)
			  : drv_cuda.cuGraphAddBatchMemOpNode(&m->real, m->into, m->dep, m->a->ndeps, &p);
}

/* The driver takes a copy of it. */
static CUresult fragment(struct made *m)
{
	GRAPH_REF *part = NULL;
	uint64_t handle;
	CUresult r;

	if (m->a->bytes != sizeof(handle) || m->changes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&handle, m->blob, sizeof(handle));
	part = srv_graph(m->c, KIND_graph, handle);
	if (!part || part == m->g)
		return part ? CUDA_ERROR_INVALID_VALUE : refused(m->c);
	/* Nobody works on a fragment meanwhile but a client that means harm: two of them might wait for each other. */
	if (pthread_mutex_trylock(&part->lock))
		return CUDA_ERROR_INVALID_VALUE;
	if (part->status || !part->real)
		r = part->status ? part->status : CUDA_ERROR_INVALID_VALUE;
	else if (!drv_cuda.cuGraphAddChildGraphNode)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = drv_cuda.cuGraphAddChildGraphNode(&m->real, m->into, m->dep, m->a->ndeps, part->real);
	pthread_mutex_unlock(&part->lock);
	return r;
}

/* A driver need not look behind the number. */
static bool has_condition(const struct srv_graph *g, CUgraphConditionalHandle h)
{
	for (unsigned i = 0; i < g->nconds; i++)
		if (g->cond[i] == h)
			return true;
	return false;
}

static CUresult conditional(struct made *m)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	struct srv_graph *g = m->g;
	struct rgpu_wire_cond w;
	CUgraph *body;
	CUresult r;

	if (m->a->bytes != sizeof(w) || m->changes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&w, m->blob, sizeof(w));
	if (!has_condition(g, w.handle))
		return CUDA_ERROR_INVALID_VALUE;
	if (!w.size || w.size > 4096 || !drv_cuda.cuGraphAddNode_v2)
		return w.size && w.size <= 4096 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	body = realloc(g->body, (g->nbodies + w.size) * sizeof(*body));
	if (!body)
		return CUDA_ERROR_OUT_OF_MEMORY;
	g->body = body;
	p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
		.handle = w.handle, .type = (CUgraphConditionalNodeType)w.type, .size = w.size, .ctx = m->x->real};
	r = drv_cuda.cuGraphAddNode_v2(&m->real, m->into, m->dep, NULL, m->a->ndeps, &p);
	for (uint32_t i = 0; i < w.size && !r; i++)
		g->body[g->nbodies++] = p.conditional.phGraph_out[i];
	return r;
}

static CUresult empty(struct made *m)
{
	if (m->changes || !drv_cuda.cuGraphAddEmptyNode)
		return m->changes ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	return drv_cuda.cuGraphAddEmptyNode(&m->real, m->into, m->dep, m->a->ndeps);
}

static CUresult by_type(struct made *m)
{
	switch (m->a->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel(m);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy(m);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill(m);
	case CU_GRAPH_NODE_TYPE_HOST:
	case RGPU_NODE_PULL:
		return host(m);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return event(m);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return memops(m);
	case RGPU_NODE_FRAGMENT:
		return fragment(m);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return empty(m);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return conditional(m);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static bool enter_node(struct made *m)
{
	struct srv_graph *g = m->g;

	if (g->n == g->room) {
		uint32_t room = g->room ? g->room * 2 : 16;
		struct graph_node *p = realloc(g->node, room * sizeof(*p));

		if (!p)
			return false;
		g->node = p;
		g->room = room;
	}
	g->node[g->n++] = (struct graph_node){.real = m->real, .type = m->a->type, .fn = m->fn};
	return true;
}

/* Before the driver has the new function: then there is no way back. */
static bool room_for_old(struct srv_graph *g)
{
	struct host_fn **p = realloc(g->old, (g->nold + 1) * sizeof(*p));

	if (p)
		g->old = p;
	return p;
}

/* A launch that is under way may still call the old one: it is freed when one is exchanged while nothing runs. */
static void exchange_fn(struct srv_graph *g, struct graph_node *n, struct host_fn *fn)
{
	if (n->fn)
		g->old[g->nold++] = n->fn;
	n->fn = fn;
	if (graph_runs(g))
		return;
	while (g->nold)
		free(g->old[--g->nold]);
}

CUresult graph_node(struct srv_call *c, struct srv_graph *g, const struct rec_GRAPH_NODE *a)
{
	struct made m = {.c = c, .g = g, .a = a, .changes = a->changes & RGPU_NODE_CHANGES};
	uint32_t at = sizeof(*a);
	const uint32_t *deps;
	CUresult r;

	m.x = srv_context(c, a->ctx);
	deps = m.x ? srv_bytes(c, &at, a->ndeps * sizeof(*deps)) : NULL;
	m.blob = deps ? srv_bytes(c, &at, a->bytes) : NULL;
	if (!m.blob)
		return refused(c);
	if (RGPU_NODE_IN(a->changes) > g->nbodies)
		return CUDA_ERROR_INVALID_VALUE;
	m.into = RGPU_NODE_IN(a->changes) ? g->body[RGPU_NODE_IN(a->changes) - 1] : g->real;
	if (m.changes ? a->ndeps || a->node >= g->n || g->node[a->node].type != a->type : a->node != g->n)
		return CUDA_ERROR_INVALID_VALUE;
	if (m.changes)
		m.real = g->node[a->node].real;
	m.dep = calloc(a->ndeps + 1, sizeof(*m.dep));
	r = m.dep && (!m.changes || room_for_old(g)) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < a->ndeps && !r; i++) {
		if (deps[i] >= g->n)
			r = CUDA_ERROR_INVALID_VALUE;
		else
			m.dep[i] = g->node[deps[i]].real;
	}
	if (!r)
		r = by_type(&m);
	free(m.dep);
	if (!r && m.changes && m.fn)
		exchange_fn(g, &g->node[a->node], m.fn);
	else if (!r && !m.changes && !enter_node(&m))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		free(m.fn);
	return r;
}
