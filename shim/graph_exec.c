// SPDX-License-Identifier: MIT
/* Executable graphs: sent to the server node by node, changed there, and ended. */
#include <stdlib.h>
#include <string.h>
#include "api/graph_wire.h"
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/hostfunc.h"
#include "shim/module.h"
#include "shim/session.h"

#define DEPS_MAX 4096u /* of one node: what fits beside a kernel's parameters */

/* What a node does, as bytes. */
struct blob {
	uint32_t type;
	void *p;
	uint32_t bytes;
};

static void *blob_of(struct blob *b, uint32_t type, size_t bytes)
{
	b->type = type;
	b->bytes = (uint32_t)bytes;
	b->p = calloc(1, bytes ? bytes : 1);
	return b->p;
}

static int kernel_blob(struct blob *b, const struct gkernel *k)
{
	struct rgpu_wire_kernel *w;
	struct rgpu_obj *context;
	uint64_t module;
	struct func *f;
	int r = func_use(k->func ? (const void *)k->func : (const void *)k->kern, &f, &module, &context);

	if (r)
		return r;
	w = blob_of(b, CU_GRAPH_NODE_TYPE_KERNEL, sizeof(*w) + k->nattrs * sizeof(*k->attr) + k->param_bytes);
	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = (struct rgpu_wire_kernel){
		.module = module, .index = f->index, .nattrs = k->nattrs, .param_bytes = k->param_bytes, .shared = k->shared};
	memcpy(w->grid, k->grid, sizeof(w->grid));
	memcpy(w->block, k->block, sizeof(w->block));
	memcpy(w + 1, k->attr, k->nattrs * sizeof(*k->attr));
	memcpy((uint8_t *)(w + 1) + k->nattrs * sizeof(*k->attr), k->packed, k->param_bytes);
	return 0;
}

static struct rgpu_wire_end end_blob(const struct end *e, bool host, const struct operand *o)
{
	return (struct rgpu_wire_end){
		.at = e->is_array ? e->array
		      : host	  ? o->at
				  : e->at,
		.pitch = e->pitch,
		.height = e->pitch ? (uint64_t)(e->slice / e->pitch) : 0,
		.x = e->x,
		.y = e->y,
		.z = e->z,
		.place = e->is_array ? RGPU_PLACE_ARRAY
			 : host	     ? RGPU_PLACE_HOST
				     : RGPU_PLACE_DEVICE,
	};
}

static int copy_blob(struct blob *b, const struct wnode *n)
{
	struct rgpu_wire_copy *w;
	struct box x;
	int r = box_of(&x, &n->node->p.memcpy.copy);

	if (r)
		return r;
	if (!x.width || !x.height || !x.depth)
		return blob_of(b, CU_GRAPH_NODE_TYPE_EMPTY, 0) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	w = blob_of(b, CU_GRAPH_NODE_TYPE_MEMCPY, sizeof(*w));
	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = (struct rgpu_wire_copy){
		.dst = end_blob(&x.dst, n->has_down, &n->down),
		.src = end_blob(&x.src, n->has_up, &n->up),
		.width = x.width,
		.height = x.height,
		.depth = x.depth,
	};
	return 0;
}

static int fill_blob(struct blob *b, const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	struct rgpu_wire_fill *w;

	if (!p->width || !p->height)
		return blob_of(b, CU_GRAPH_NODE_TYPE_EMPTY, 0) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	w = blob_of(b, CU_GRAPH_NODE_TYPE_MEMSET, sizeof(*w));
	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = (struct rgpu_wire_fill){.dst = p->dst,
				     .pitch = p->pitch,
				     .width = p->width,
				     .height = p->height,
				     .value = p->value,
				     .bytes = p->elementSize};
	return 0;
}

static int handle_blob(struct blob *b, uint32_t type, uint64_t handle)
{
	uint64_t *w = blob_of(b, type, sizeof(*w));

	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = handle;
	return 0;
}

static int host_blob(struct blob *b, uint32_t type, uint64_t id, uint64_t at, uint64_t bytes)
{
	struct rgpu_wire_host *w = blob_of(b, type, sizeof(*w));

	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = (struct rgpu_wire_host){.id = id, .at = at, .bytes = bytes};
	return 0;
}

static int cond_blob(struct blob *b, const struct gcond *c)
{
	struct rgpu_wire_cond *w = blob_of(b, CU_GRAPH_NODE_TYPE_CONDITIONAL, sizeof(*w));

	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*w = (struct rgpu_wire_cond){.handle = c->handle, .type = c->type, .size = c->size};
	return 0;
}

static int memop_blob(struct blob *b, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	void *w = blob_of(b, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p->count * sizeof(*p->paramArray));

	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(w, p->paramArray, b->bytes);
	return 0;
}

static int make_blob(struct blob *b, const struct wnode *w)
{
	const struct gparams *p = &w->node->p;

	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_blob(b, &p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return copy_blob(b, w);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill_blob(b, &p->memset);
	case CU_GRAPH_NODE_TYPE_HOST:
		return host_blob(b, p->type, w->fn, 0, 0);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return handle_blob(b, p->type, (uint64_t)p->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return memop_blob(b, &p->memop);
	case GRAPH_NODE_GUEST:
		return handle_blob(b, RGPU_NODE_FRAGMENT, ((struct fragment *)p->guest)->graph->handle);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return cond_blob(b, &p->cond);
	default: /* memory is the client's business */
		return blob_of(b, CU_GRAPH_NODE_TYPE_EMPTY, 0) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	}
}

/* The context whose work a node is; the executable graph's own for all that do not say. */
static struct rgpu_obj *context_of(const struct shim_exec *e, const struct gparams *p)
{
	CUcontext c = NULL;

	if (p->type == CU_GRAPH_NODE_TYPE_KERNEL)
		c = p->kernel.ctx;
	else if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		c = p->memcpy.ctx;
	else if (p->type == CU_GRAPH_NODE_TYPE_MEMSET)
		c = p->memset.ctx;
	else if (p->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		c = p->memop.ctx;
	return c ? handle_find(KIND_context, (uint64_t)c) : e->context;
}

/* A change of what the client calls waits for its answer: both sides must go on with the same name. */
static int send_node(struct shim_exec *e, const struct wnode *w, uint64_t owner, bool changes, uint32_t number,
		     const uint32_t *dep, uint32_t ndep, const struct blob *b)
{
	bool fence = changes && (b->type == CU_GRAPH_NODE_TYPE_HOST || b->type == RGPU_NODE_PULL);
	struct rgpu_obj *context = context_of(e, &w->node->p);
	struct rgpu_call c = {.op = OP_GRAPH_NODE, .session = e->session, .context = context};
	size_t deps = RGPU_ALIGN8(ndep * sizeof(*dep));
	struct rec_GRAPH_NODE *rec;

	if (!context)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (ndep > DEPS_MAX) {
		rgpu_err("a node of a graph depends on %u others: at most %u are supported", ndep, DEPS_MAX);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	c.ctx = context->handle;
	rec = rgpu_begin(&c, fence ? RGPU_REC_FENCE : 0, 0, sizeof(*rec) + deps + b->bytes);
	if (!rec)
		return c.status;
	*rec = (struct rec_GRAPH_NODE){.ctx = c.ctx,
				       .owner = owner,
				       .changes = changes ? RGPU_NODE_CHANGES : RGPU_NODE_BODY(w->body),
				       .type = b->type,
				       .node = number,
				       .ndeps = ndep,
				       .bytes = b->bytes};
	memset(rec + 1, 0, deps);
	if (ndep)
		memcpy(rec + 1, dep, ndep * sizeof(*dep));
	memcpy((uint8_t *)(rec + 1) + deps, b->p, b->bytes);
	return fence ? rgpu_fence(&c, NULL, 0) : rgpu_send(&c);
}

/* Before the copy, one after the other: what brings its bytes. */
static int send_pulls(struct shim_exec *e, struct wnode *w, uint64_t graph, uint32_t *next, uint32_t *dep, uint32_t *ndep)
{
	int r = 0;

	for (unsigned k = 0; k < w->npull && !r; k++) {
		uint64_t off = (uint64_t)k * RGPU_CHUNK_MAX, left = w->up.span - off;
		struct blob b = {0};

		r = host_blob(&b, RGPU_NODE_PULL, w->pull[k], w->up.at + off, left < RGPU_CHUNK_MAX ? left : RGPU_CHUNK_MAX);
		if (!r)
			r = send_node(e, w, graph, false, *next, dep, *ndep, &b);
		free(b.p);
		dep[0] = (*next)++;
		*ndep = 1;
	}
	return r;
}

static int send_nodes(struct shim_exec *e, uint64_t graph, unsigned *at)
{
	uint32_t *dep = calloc(e->flat.n + 1, sizeof(*dep)), next = 0;
	int r = dep ? 0 : CUDA_ERROR_OUT_OF_MEMORY;

	for (unsigned i = 0; i < e->flat.n && !r; i++) {
		const struct gstep *s = &e->flat.step[i];
		struct wnode *w = &e->node[i];
		uint32_t ndep = s->ndep;
		struct blob b = {0};

		*at = i;
		for (uint32_t k = 0; k < ndep; k++)
			dep[k] = e->node[s->dep[k]].number;
		r = send_pulls(e, w, graph, &next, dep, &ndep);
		if (!r)
			r = make_blob(&b, w);
		w->number = next++;
		if (!r)
			r = send_node(e, w, graph, false, w->number, dep, ndep, &b);
		free(b.p);
	}
	free(dep);
	return r;
}

static void note_contexts(struct shim_exec *e)
{
	for (unsigned i = 0; i < e->flat.n; i++) {
		struct rgpu_obj *o = context_of(e, &e->node[i].node->p);
		unsigned k = 0;

		while (k < e->nother && e->other[k] != o)
			k++;
		if (o && o != e->context && k == e->nother && k < sizeof(e->other) / sizeof(*e->other))
			e->other[e->nother++] = o;
	}
}

/* One body's steps behind those that are there. */
static int add_body(struct shim_exec *e, struct graph *g, uint32_t **in, uint32_t number)
{
	struct gflat *all = &e->flat, f;
	int r = graph_flatten(g, &f);
	struct gstep *step;
	uint32_t *p;

	if (r)
		return r;
	step = realloc(all->step, (all->n + f.n + 1) * sizeof(*step));
	p = realloc(*in, (all->n + f.n + 1) * sizeof(*p));
	all->step = step ? step : all->step;
	*in = p ? p : *in;
	if (!step || !p) {
		gflat_free(&f);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned i = 0; i < f.n; i++) {
		for (unsigned k = 0; k < f.step[i].ndep; k++)
			f.step[i].dep[k] += all->n;
		(*in)[all->n + i] = number;
	}
	memcpy(all->step + all->n, f.step, f.n * sizeof(*step));
	all->n += f.n;
	free(f.step);
	return 0;
}

/* The bodies of conditional nodes, and of those in them, as the server counts them. */
static int add_bodies(struct shim_exec *e)
{
	uint32_t *in = calloc(e->flat.n + 1, sizeof(*in)), number = 0;
	int r = in ? 0 : CUDA_ERROR_OUT_OF_MEMORY;

	for (unsigned i = 0; i < e->flat.n && !r; i++) {
		const struct gparams *p = &e->flat.step[i].node->p;

		for (unsigned k = 0; p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < p->cond.size && !r; k++)
			r = add_body(e, p->cond.body[k], &in, ++number);
	}
	e->node = r ? NULL : calloc(e->flat.n + 1, sizeof(*e->node));
	for (unsigned i = 0; e->node && i < e->flat.n; i++)
		e->node[i].body = in[i];
	free(in);
	return r ? r : e->node ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUgraphConditionalHandle condition_of(const struct shim_exec *e)
{
	for (unsigned i = 0; i < e->flat.n; i++)
		if (e->node[i].node->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return e->node[i].node->p.cond.handle;
	return 0;
}

static int prepare(struct shim_exec *e, struct graph_exec *x, uint64_t *bytes)
{
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_GRAPH_BEGIN);

	if (!r)
		r = ctx_use(&c, NULL);
	if (r)
		return r;
	e->x = x;
	e->session = c.session;
	e->context = c.context;
	r = graph_flatten(x->graph, &e->flat);
	if (!r)
		r = add_bodies(e);
	if (r)
		return r;
	for (unsigned i = 0; i < e->flat.n; i++) {
		e->node[i].node = e->flat.step[i].node;
		e->node[i].exec = e;
		e->flat.step[i].node->priv = &e->node[i];
	}
	note_contexts(e);
	r = host_plan(e, bytes);
	return r ? r : host_functions(e);
}

static struct gnode *by_number(const struct shim_exec *e, uint32_t number)
{
	for (unsigned i = 0; i < e->flat.n; i++)
		if (e->node[i].number >= number)
			return e->node[i].node;
	return NULL;
}

/* The server keeps the first thing that went wrong with a graph, and says it when that is made executable. */
static int make(struct shim_exec *e, uint64_t host_bytes, struct gnode **bad)
{
	struct rgpu_call c = {.op = OP_GRAPH_BEGIN, .session = e->session, .context = e->context, .ctx = e->context->handle};
	struct rgpu_obj *graph = handle_new(KIND_graph, e->context);
	uint32_t number = 0;
	unsigned at = 0;
	int r;

	e->obj = handle_new(KIND_graphexec, e->context);
	if (!graph || !e->obj) {
		if (graph)
			rgpu_retire(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (condition_of(e)) {
		struct rgpu_obj *from;

		r = cond_adopt(condition_of(e), &from);
		if (r) {
			rgpu_retire(graph);
			return r;
		}
		c.op = OP_GRAPH_ADOPT;
		r = rpc_GRAPH_ADOPT(&c, graph->handle, from->handle, host_bytes);
		rgpu_retire(from);
	} else {
		r = rpc_GRAPH_BEGIN(&c, graph->handle, host_bytes);
	}
	if (!r) {
		r = send_nodes(e, graph->handle, &at);
		if (r && at < e->flat.n)
			*bad = e->node[at].node;
		if (r) {
			c.op = OP_GRAPH_DROP;
			rpc_GRAPH_DROP(&c, graph->handle);
		}
	}
	if (!r) {
		c.op = OP_GRAPH_MAKE;
		r = rpc_GRAPH_MAKE(&c, graph->handle, e->obj->handle, e->x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
				   &number);
		if (r)
			*bad = by_number(e, number);
	}
	rgpu_retire(graph);
	return r;
}

static void exec_free(struct shim_exec *e)
{
	host_functions_free(e);
	landing_exec_gone(e);
	gflat_free(&e->flat);
	free(e->node);
	free(e->block);
	free(e->copy);
	free(e);
}

CUresult gb_exec_new(struct graph_exec *x, struct gnode **bad)
{
	struct shim_exec *e = calloc(1, sizeof(*e));
	uint64_t bytes;
	int r;

	*bad = NULL;
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = prepare(e, x, &bytes);
	if (!r)
		r = make(e, bytes, bad);
	if (r) {
		if (e->obj)
			rgpu_retire(e->obj);
		exec_free(e);
		return r;
	}
	x->priv = e;
	return CUDA_SUCCESS;
}

/*
 * What the program gave it, functions and objects, must stay until it has run: then somebody must wait for that. Otherwise the
 * server ends it when it has.
 */
void gb_exec_free(struct graph_exec *x)
{
	struct shim_exec *e = x->priv;
	struct rgpu_call c = {.op = OP_GRAPH_EXEC_DESTROY, .session = e->session, .mute = true};
	bool wait = e->flying && (e->calls || x->graph->nuse);
	struct rec_GRAPH_EXEC_DESTROY *b = rgpu_begin(&c, wait ? RGPU_REC_FENCE : 0, 0, sizeof(*b));

	if (b) {
		*b = (struct rec_GRAPH_EXEC_DESTROY){.exec = e->obj->handle};
		if (wait)
			rgpu_fence(&c, NULL, 0);
		else
			rgpu_send(&c);
	}
	rgpu_retire(e->obj);
	exec_free(e);
}

/* ---- Changes ---- */

static int send_change(struct shim_exec *e, struct wnode *w)
{
	struct blob b = {0};
	int r = make_blob(&b, w);

	if (!r)
		r = send_node(e, w, e->obj->handle, true, w->number, NULL, 0, &b);
	free(b.p);
	return r;
}

static int change_host(struct shim_exec *e, struct wnode *w)
{
	uint64_t was = w->fn;
	int r;

	struct hostfunc f = {.fn = w->node->p.host.fn,
			     .data = w->node->p.host.userData,
			     .before = w->nfetch ? host_fetch : NULL,
			     .arg = w,
			     .context = e->context};

	r = host_rename(e, &f, &w->fn);
	if (!r)
		r = host_renamed(e, &w->fn, was, send_change(e, w));
	return r;
}

static int change_pulled(struct shim_exec *e, struct wnode *w)
{
	int r = 0;

	if (w->up.span > w->npull * RGPU_CHUNK_MAX) {
		rgpu_err("a graph's copy from host memory behind a host function cannot become longer than %llu bytes",
			 (unsigned long long)w->npull * RGPU_CHUNK_MAX);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	for (unsigned k = 0; k < w->npull && !r; k++) {
		uint64_t off = (uint64_t)k * RGPU_CHUNK_MAX, n = w->up.span > off ? w->up.span - off : 0;
		struct hostfunc f = {.src = (void *)(w->up.addr + off), .context = e->context};
		uint64_t was = w->pull[k];
		struct blob b = {0};

		f.bytes = n < RGPU_CHUNK_MAX ? n : RGPU_CHUNK_MAX;
		r = host_rename(e, &f, &w->pull[k]);
		if (r)
			break;
		r = host_blob(&b, RGPU_NODE_PULL, w->pull[k], w->up.at + off, f.bytes);
		if (!r)
			r = send_node(e, w, e->obj->handle, true, w->number - w->npull + k, NULL, 0, &b);
		r = host_renamed(e, &w->pull[k], was, r);
		free(b.p);
	}
	return r;
}

CUresult gb_exec_changed(struct graph_exec *x, struct gnode *n)
{
	struct rgpu_call c = {.op = OP_GRAPH_ENABLE};
	struct shim_exec *e = x->priv;
	struct wnode *w = n->priv;
	int r = 0;

	if (w->disabled != n->disabled) {
		c.session = e->session;
		c.context = e->context;
		c.ctx = e->context->handle;
		r = rpc_GRAPH_ENABLE(&c, e->obj->handle, w->number, !n->disabled);
		if (!r)
			w->disabled = n->disabled;
		return r;
	}
	if (n->p.type == CU_GRAPH_NODE_TYPE_HOST)
		return change_host(e, w);
	if (n->p.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
		r = host_replan(e, w);
		if (!r && w->npull)
			r = change_pulled(e, w);
	}
	return r ? r : send_change(e, w);
}
