// SPDX-License-Identifier: MIT
/* The host memory of an executable graph's copies: what of it goes up when, what comes down when, and where the server keeps it.
 */
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
#include "shim/session.h"
#include "shim/staging.h"

static struct operand operand_of(const struct end *e, const struct box *b)
{
	return (struct operand){
		.addr = e->at,
		.span = (uint64_t)box_span(e, b),
		.width = b->width,
		.height = b->height,
		.depth = b->depth,
		.pitch = e->pitch,
		.slice = (uint64_t)e->slice,
	};
}

/* The node's copy was checked when it was made. */
static int find_operands(struct wnode *w)
{
	const struct gparams *p = &w->node->p;
	struct box b;

	w->has_up = w->has_down = w->sized = w->from_host = w->to_host = false;
	if (p->type != CU_GRAPH_NODE_TYPE_MEMCPY || box_of(&b, &p->memcpy.copy))
		return p->type == CU_GRAPH_NODE_TYPE_MEMCPY ? CUDA_ERROR_INVALID_VALUE : 0;
	if (!b.width || !b.height || !b.depth)
		return 0;
	w->sized = true;
	w->from_host = b.src.host;
	w->to_host = b.dst.host;
	w->has_up = !b.src.device && !b.src.is_array;
	w->has_down = !b.dst.device && !b.dst.is_array;
	if (w->has_up)
		w->up = operand_of(&b.src, &b);
	if (w->has_down)
		w->down = operand_of(&b.dst, &b);
	return 0;
}

static bool locate(const struct shim_exec *e, struct operand *o)
{
	for (unsigned i = 0; i < e->nblocks; i++) {
		const struct hblock *b = &e->block[i];

		if (o->addr >= b->addr && o->addr - b->addr < b->bytes && o->span <= b->bytes - (o->addr - b->addr)) {
			o->at = b->at + (o->addr - b->addr);
			return true;
		}
	}
	return false;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct hblock *)a)->addr, y = ((const struct hblock *)b)->addr;

	return x < y ? -1 : x > y;
}

/* Copies of memory that overlaps share its bytes: what one brings down, a later one of the same graph may take up. */
static void join_blocks(struct shim_exec *e)
{
	unsigned kept = 0;

	qsort(e->block, e->nblocks, sizeof(*e->block), by_address);
	for (unsigned i = 0; i < e->nblocks; i++) {
		struct hblock *b = kept ? &e->block[kept - 1] : NULL;
		uint64_t end = e->block[i].addr + e->block[i].bytes;

		if (b && e->block[i].addr < b->addr + b->bytes) {
			if (end > b->addr + b->bytes)
				b->bytes = end - b->addr;
			continue;
		}
		e->block[kept++] = e->block[i];
	}
	e->nblocks = kept;
}

/* Which copies have a host function before or behind them. Steps are in order. */
static void mark_host(struct shim_exec *e)
{
	for (unsigned i = 0; i < e->flat.n; i++)
		for (unsigned k = 0; k < e->flat.step[i].ndep; k++) {
			struct wnode *d = &e->node[e->flat.step[i].dep[k]];

			if (d->node->p.type == CU_GRAPH_NODE_TYPE_HOST || d->after_host)
				e->node[i].after_host = true;
		}
	for (unsigned i = e->flat.n; i--;)
		for (unsigned k = 0; k < e->flat.step[i].ndep; k++)
			if (e->node[i].node->p.type == CU_GRAPH_NODE_TYPE_HOST || e->node[i].before_host)
				e->node[e->flat.step[i].dep[k]].before_host = true;
}

/* What host function @h is to find in memory: the copies down before it, as far as no other host function has seen them. */
static int find_fetches(struct shim_exec *e, unsigned h)
{
	struct wnode *w = &e->node[h];
	bool *seen = calloc(e->flat.n, sizeof(*seen));
	unsigned *todo = calloc(e->flat.n, sizeof(*todo)), n = 0;

	w->fetch = calloc(e->flat.n, sizeof(*w->fetch));
	if (!seen || !todo || !w->fetch) {
		free(seen);
		free(todo);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	todo[n++] = h;
	while (n) {
		const struct gstep *s = &e->flat.step[todo[--n]];

		for (unsigned k = 0; k < s->ndep; k++) {
			unsigned d = s->dep[k];

			if (seen[d])
				continue;
			seen[d] = true;
			if (e->node[d].node->p.type == CU_GRAPH_NODE_TYPE_MEMCPY)
				w->fetch[w->nfetch++] = d;
			if (e->node[d].node->p.type != CU_GRAPH_NODE_TYPE_HOST)
				todo[n++] = d;
		}
	}
	free(seen);
	free(todo);
	return 0;
}

int host_plan(struct shim_exec *e, uint64_t *bytes)
{
	int r = 0;

	*bytes = 0;
	e->block = calloc(2 * e->flat.n + 1, sizeof(*e->block));
	e->copy = calloc(e->flat.n + 1, sizeof(struct wnode *));
	if (!e->block || !e->copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < e->flat.n && !r; i++) {
		struct wnode *w = &e->node[i];

		r = find_operands(w);
		if (!r && w->has_up)
			e->block[e->nblocks++] = (struct hblock){.addr = w->up.addr, .bytes = w->up.span};
		if (!r && w->has_down)
			e->block[e->nblocks++] = (struct hblock){.addr = w->down.addr, .bytes = w->down.span};
		if (!r && w->node->p.type == CU_GRAPH_NODE_TYPE_MEMCPY)
			e->copy[e->ncopies++] = w;
		e->calls = e->calls || w->node->p.type == CU_GRAPH_NODE_TYPE_HOST;
		e->records = e->records || w->node->p.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	}
	if (r)
		return r;
	join_blocks(e);
	for (unsigned i = 0; i < e->nblocks; i++) {
		struct hblock *b = &e->block[i];

		/* As far from a cache line as in the program's memory. */
		b->at = RGPU_HOST_AT(0, ((*bytes + 63) & ~63ull) + b->addr % 64);
		b->room = b->bytes;
		*bytes = b->at + b->bytes;
	}
	e->npieces = 1;
	for (unsigned i = 0; i < e->flat.n; i++) {
		struct wnode *w = &e->node[i];

		if ((w->has_up && !locate(e, &w->up)) || (w->has_down && !locate(e, &w->down)))
			return CUDA_ERROR_INVALID_VALUE;
	}
	mark_host(e);
	for (unsigned i = 0; i < e->flat.n && !r && e->calls; i++)
		if (e->node[i].node->p.type == CU_GRAPH_NODE_TYPE_HOST)
			r = find_fetches(e, i);
	return *bytes > RGPU_HOST_MAX ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

static int more_room(struct shim_exec *e, struct operand *o)
{
	struct rgpu_call c = {.op = OP_GRAPH_HOST, .session = e->session, .context = e->context, .ctx = e->context->handle};
	struct hblock *p = realloc(e->block, (e->nblocks + 1) * sizeof(*p));
	int r;

	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->block = p;
	if (e->npieces == RGPU_HOST_PIECES || o->span > RGPU_HOST_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = rpc_GRAPH_HOST(&c, e->obj->handle, e->npieces, o->span + 64);
	if (r)
		return r;
	e->block[e->nblocks] =
		(struct hblock){.addr = o->addr, .bytes = o->span, .at = RGPU_HOST_AT(e->npieces, o->addr % 64), .room = o->span};
	o->at = e->block[e->nblocks++].at;
	e->npieces++;
	return 0;
}

static bool used_by_other(const struct shim_exec *e, const struct hblock *b, const struct wnode *but)
{
	for (unsigned i = 0; i < e->flat.n; i++) {
		const struct wnode *w = &e->node[i];

		if (w != but && ((w->has_up && w->up.addr >= b->addr && w->up.addr < b->addr + b->bytes) ||
				 (w->has_down && w->down.addr >= b->addr && w->down.addr < b->addr + b->bytes)))
			return true;
	}
	return false;
}

/* Where the bytes of the node's old memory were, those of the new one may be, if nobody else's are there. */
static int find_room(struct shim_exec *e, struct wnode *w, struct operand *o)
{
	if (locate(e, o))
		return 0;
	for (unsigned i = 0; i < e->nblocks; i++) {
		struct hblock *b = &e->block[i];

		if (b->room < o->span || used_by_other(e, b, w) || (w->has_up && o != &w->up && w->up.addr == b->addr) ||
		    (w->has_down && o != &w->down && w->down.addr == b->addr))
			continue;
		b->addr = o->addr;
		b->bytes = o->span;
		o->at = b->at;
		return 0;
	}
	return more_room(e, o);
}

int host_replan(struct shim_exec *e, struct wnode *w)
{
	struct wnode was = *w;
	int r = find_operands(w);

	/* An empty copy is of no memory at all, and may become any. */
	if (!r && was.sized && w->sized && (was.from_host != w->from_host || was.to_host != w->to_host))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && w->after_host && w->has_up != !!w->npull) {
		rgpu_err("a graph's copy behind a host function cannot change between host memory that kernels reach and other");
		r = CUDA_ERROR_NOT_SUPPORTED;
	}
	if (r) {
		*w = was;
		return r;
	}
	if (!r && w->has_up)
		r = find_room(e, w, &w->up);
	if (!r && w->has_down)
		r = find_room(e, w, &w->down);
	return r;
}

/* ---- Functions ---- */

static int name_pulls(struct shim_exec *e, struct wnode *w)
{
	unsigned n = (unsigned)((w->up.span + RGPU_CHUNK_MAX - 1) / RGPU_CHUNK_MAX);
	int r = 0;

	w->pull = calloc(n, sizeof(*w->pull));
	if (!w->pull)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t at = 0; at < w->up.span && !r; at += RGPU_CHUNK_MAX) {
		uint64_t left = w->up.span - at;
		struct hostfunc f = {.src = (void *)(w->up.addr + at),
				     .bytes = left < RGPU_CHUNK_MAX ? left : RGPU_CHUNK_MAX,
				     .context = e->context};

		r = hostfunc_new(&f, &w->pull[w->npull]);
		w->npull += !r;
	}
	return r;
}

int host_functions(struct shim_exec *e)
{
	int r = 0;

	for (unsigned i = 0; i < e->flat.n && !r; i++) {
		struct wnode *w = &e->node[i];

		if (w->has_up && w->after_host)
			r = name_pulls(e, w);
		if (w->node->p.type == CU_GRAPH_NODE_TYPE_HOST) {
			struct hostfunc f = {.fn = w->node->p.host.fn,
					     .data = w->node->p.host.userData,
					     .before = w->nfetch ? host_fetch : NULL,
					     .arg = w,
					     .context = e->context};

			r = hostfunc_new(&f, &w->fn);
		}
	}
	return r;
}

/*
 * A name stands for what it stood for when a launch was given, so what is new gets new names; the old ones are kept until no
 * launch is to come to them any more.
 */
int host_rename(struct shim_exec *e, const struct hostfunc *f, uint64_t *id)
{
	uint64_t *old = realloc(e->old, (e->nold + 1) * sizeof(*old));

	if (!old)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->old = old;
	return hostfunc_new(f, id);
}

int host_renamed(struct shim_exec *e, uint64_t *id, uint64_t was, int status)
{
	unsigned kept = 0;

	if (status) {
		hostfunc_free(*id);
		*id = was;
		return status;
	}
	e->old[e->nold++] = was;
	for (unsigned i = 0; i < e->nold; i++)
		if (!hostfunc_free_idle(e->old[i]))
			e->old[kept++] = e->old[i];
	e->nold = kept;
	return 0;
}

void host_functions_free(struct shim_exec *e)
{
	for (unsigned i = 0; i < e->nold; i++)
		hostfunc_free(e->old[i]);
	free(e->old);
	for (unsigned i = 0; i < e->flat.n && e->node; i++) {
		struct wnode *w = &e->node[i];

		for (unsigned k = 0; k < w->npull; k++)
			hostfunc_free(w->pull[k]);
		if (w->fn)
			hostfunc_free(w->fn);
		free(w->pull);
		free(w->fetch);
	}
}

/* On the thread that runs the program's functions, while the graph waits: no other call's order concerns it. */
static bool fetch(struct shim_exec *e, const struct operand *o)
{
	uint8_t *all = malloc(o->span);
	bool good = all;

	for (uint64_t done = 0; done < o->span && good; done += RGPU_CHUNK_MAX) {
		struct rgpu_call c = {.op = OP_GRAPH_GET, .session = e->session, .unordered = true, .mute = true};
		uint64_t n = o->span - done < RGPU_CHUNK_MAX ? o->span - done : RGPU_CHUNK_MAX;
		struct rgpu_lane *l = session_lane(c.session, &c.status);
		struct slot *slot = l ? staging_slot(l, &c.status) : NULL;
		struct fence f = {0};
		struct rec_GRAPH_GET *b = slot ? rgpu_begin(&c, RGPU_REC_FENCE, 1, sizeof(*b)) : NULL;

		if (!b) {
			good = false;
			break;
		}
		*b = (struct rec_GRAPH_GET){
			.ctx = e->context->handle, .exec = e->obj->handle, .at = o->at + done, .bytes = n, .now = 1};
		*rgpu_segs(&c) = (struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_RECV, .off = slot->off, .len = n};
		call_expect(&c, &f);
		good = !call_wait(&c, &f) && f.bulk == n;
		if (good)
			memcpy(all + done, slot->mem, n);
	}
	if (good)
		operand_scatter(o, all);
	free(all);
	return good;
}

void host_fetch(void *wnode)
{
	struct wnode *w = wnode;

	for (unsigned i = 0; i < w->nfetch; i++)
		if (w->exec->node[w->fetch[i]].has_down)
			fetch(w->exec, &w->exec->node[w->fetch[i]].down);
}
