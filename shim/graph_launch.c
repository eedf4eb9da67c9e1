// SPDX-License-Identifier: MIT
/* A replay: one record, with the host memory that its copies read at this moment, and the places for what they bring down. */
#include <stdlib.h>
#include <string.h>
#include "api/graph_wire.h"
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/hostfunc.h"
#include "shim/launch.h"
#include "shim/pinned.h"
#include "shim/session.h"
#include "shim/shared.h"
#include "shim/staging.h"
#include "shim/watch.h"

#define INLINE_MAX (24u << 10)
#define SEGS	   (RGPU_SEG_MAX - 1) /* one is the landing's word */

/* What one launch moves. */
struct replay {
	struct rgpu_call *c;
	struct shim_exec *e;
	uint64_t stream;
	struct rgpu_wire_range up[SEGS], down[SEGS];
	struct rgpu_seg seg[RGPU_SEG_MAX];
	unsigned nup, ndown, nseg;
	uint64_t inlined;
	const struct operand *inline_op[SEGS];
	struct slot *slot;
	struct landing *landing;
	uint64_t landed;
};

static bool goes_up(const struct wnode *w)
{
	return w->has_up && !w->after_host && !w->node->disabled;
}

static bool comes_down(const struct wnode *w)
{
	return w->has_down && !w->before_host && !w->node->disabled;
}

/* Straight into the program's memory, without gaps between what comes. */
static bool straight(const struct operand *o, uint32_t *bo, uint64_t *off)
{
	bool rows = o->width == o->span;

	return rows && pinned_bo((void *)o->addr, o->span, bo, off);
}

/* Earlier work may write what this launch reads: functions of the program, or copies to there that have not come yet. */
static bool sources_change(const struct replay *p)
{
	if (hostfunc_outstanding())
		return true;
	for (unsigned i = 0; i < p->e->ncopies; i++) {
		const struct wnode *w = p->e->copy[i];

		if (goes_up(w) && (pinned_pending((void *)w->up.addr, w->up.span) || landing_pending(w->up.addr, w->up.span)))
			return true;
	}
	return false;
}

/* Then the server asks for what is to go up when the stream has come here. */
static int pull_sources(struct replay *p)
{
	int r = 0;

	for (unsigned i = 0; i < p->e->ncopies && !r; i++) {
		const struct wnode *w = p->e->copy[i];

		for (uint64_t off = 0; goes_up(w) && off < w->up.span && !r; off += RGPU_CHUNK_MAX) {
			uint64_t left = w->up.span - off, id;
			struct hostfunc f = {.src = (void *)(w->up.addr + off),
					     .bytes = left < RGPU_CHUNK_MAX ? left : RGPU_CHUNK_MAX,
					     .once = true};

			p->c->op = OP_GRAPH_PULL;
			r = hostfunc_announce(p->c, &f, &id);
			if (r)
				break;
			r = rpc_GRAPH_PULL(p->c, p->e->obj->handle, p->stream, w->up.at + off, f.bytes, id);
			if (!p->c->sent)
				hostfunc_withdraw(id);
		}
	}
	return r;
}

/* One piece in a record of its own, before the launch. */
static int put(struct replay *p, uint64_t addr, uint64_t at, uint64_t bytes)
{
	struct rgpu_seg seg = {.dir = RGPU_SEG_SEND, .len = bytes};
	struct slot *slot = NULL;
	struct rec_GRAPH_PUT *b;
	struct rgpu_lane *l;
	uint64_t off;

	l = session_lane(p->c->session, &p->c->status);
	if (!l)
		return p->c->status;
	if (!pinned_bo((void *)addr, bytes, &seg.bo, &off)) {
		slot = staging_slot(l, &p->c->status);
		if (!slot)
			return p->c->status;
		memcpy(slot->mem, (void *)addr, bytes);
		seg.bo = slot->bo;
		off = slot->off;
	}
	seg.off = off;
	p->c->op = OP_GRAPH_PUT;
	b = rgpu_begin(p->c, 0, 1, sizeof(*b));
	if (!b)
		return p->c->status;
	*b = (struct rec_GRAPH_PUT){.ctx = p->c->ctx, .exec = p->e->obj->handle, .hStream = p->stream, .at = at, .bytes = bytes};
	*rgpu_segs(p->c) = seg;
	if (slot)
		slot->seq = l->seq + 1;
	call_part(p->c);
	return 0;
}

static int put_all(struct replay *p)
{
	int r = 0;

	for (unsigned i = 0; i < p->e->ncopies && !r; i++) {
		const struct operand *o = &p->e->copy[i]->up;

		for (uint64_t off = 0; goes_up(p->e->copy[i]) && off < o->span && !r; off += RGPU_CHUNK_MAX) {
			uint64_t left = o->span - off;

			r = put(p, o->addr + off, o->at + off, left < RGPU_CHUNK_MAX ? left : RGPU_CHUNK_MAX);
		}
	}
	return r;
}

/* Small ones lie in the record itself, others in its segments: page-locked ones where they are, the rest in a staging slot. */
static int gather_up(struct replay *p)
{
	uint64_t bytes = 0, staged = 0, off;
	unsigned n = 0;
	struct rgpu_lane *l;

	for (unsigned i = 0; i < p->e->ncopies; i++)
		if (goes_up(p->e->copy[i])) {
			bytes += p->e->copy[i]->up.span;
			n++;
		}
	if (n > SEGS || bytes > RGPU_CHUNK_MAX)
		return put_all(p);
	for (unsigned i = 0; i < p->e->ncopies; i++) {
		const struct operand *o = &p->e->copy[i]->up;
		struct rgpu_seg *s = &p->seg[p->nseg];

		if (!goes_up(p->e->copy[i]))
			continue;
		p->inline_op[p->nup] = o;
		p->up[p->nup++] = (struct rgpu_wire_range){o->at, o->span};
		if (bytes <= INLINE_MAX)
			continue;
		*s = (struct rgpu_seg){.dir = RGPU_SEG_SEND, .len = o->span};
		if (!pinned_bo((void *)o->addr, o->span, &s->bo, &off)) {
			l = session_lane(p->c->session, &p->c->status);
			if (l && !p->slot)
				p->slot = staging_slot(l, &p->c->status);
			if (!p->slot)
				return p->c->status;
			memcpy(p->slot->mem + staged, (void *)o->addr, o->span);
			s->bo = p->slot->bo;
			off = p->slot->off + staged;
			staged += o->span;
		}
		s->off = off;
		p->nseg++;
	}
	p->inlined = bytes <= INLINE_MAX ? bytes : 0;
	return 0;
}

/* What fits into the record's own answer; false: the rest takes other ways. */
static bool fits(const struct replay *p, const struct operand *o, uint64_t bytes)
{
	return p->ndown < SEGS && p->nseg < SEGS && bytes + o->span <= RGPU_CHUNK_MAX - 64;
}

static int gather_down(struct replay *p)
{
	uint64_t bytes = 0, at = 0, off = 0, place;
	uint32_t bo = 0;
	int r = 0;

	/* How large the landing is must be known before its place. */
	for (unsigned pass = 0; pass < 2 && !r; pass++) {
		unsigned ndown = p->ndown, nseg = p->nseg;

		bytes = 0;
		for (unsigned i = 0; i < p->e->ncopies; i++) {
			const struct operand *o = &p->e->copy[i]->down;
			struct rgpu_seg *s = &p->seg[p->nseg];

			if (!comes_down(p->e->copy[i]) || !fits(p, o, bytes))
				continue;
			bytes += o->span;
			*s = (struct rgpu_seg){.dir = RGPU_SEG_RECV, .len = o->span};
			p->down[p->ndown++] = (struct rgpu_wire_range){o->at, o->span};
			p->nseg++;
			if (straight(o, &s->bo, &place)) {
				s->off = place;
				continue;
			}
			if (!pass) {
				p->landed += o->span;
				continue;
			}
			s->bo = bo;
			s->off = off + at;
			at += o->span;
			landing_add(p->landing, o);
		}
		if (pass || !p->landed)
			break;
		p->ndown = ndown;
		p->nseg = nseg;
		p->landing = landing_new(p->c, p->e, p->landed, &bo, &off, &r);
	}
	if (p->landing)
		p->seg[p->nseg++] =
			(struct rgpu_seg){.bo = bo, .dir = RGPU_SEG_RECV, .off = off + RGPU_ALIGN8(p->landed), .len = 8};
	return r;
}

static int send(struct replay *p)
{
	size_t ranges = (p->nup + p->ndown) * sizeof(struct rgpu_wire_range);
	struct rec_GRAPH_LAUNCH *b;
	uint8_t *at;
	int r;

	p->c->op = OP_GRAPH_LAUNCH;
	b = rgpu_begin(p->c, 0, p->nseg, sizeof(*b) + ranges + p->inlined);
	if (!b)
		return p->c->status;
	*b = (struct rec_GRAPH_LAUNCH){.ctx = p->c->ctx,
				       .exec = p->e->obj->handle,
				       .hStream = p->stream,
				       .up = p->nup,
				       .down = p->ndown,
				       .inlined = (uint32_t)p->inlined,
				       .tagged = p->landing != NULL,
				       .tag = p->landing ? landing_tag(p->landing) : 0};
	memcpy(rgpu_segs(p->c), p->seg, p->nseg * sizeof(*p->seg));
	at = (uint8_t *)(b + 1);
	memcpy(at, p->up, p->nup * sizeof(*p->up));
	memcpy(at + p->nup * sizeof(*p->up), p->down, p->ndown * sizeof(*p->down));
	at += ranges;
	for (unsigned i = 0; p->inlined && i < p->nup; i++) {
		memcpy(at, (void *)p->inline_op[i]->addr, p->inline_op[i]->span);
		at += p->inline_op[i]->span;
	}
	if (p->slot)
		p->slot->seq = p->c->lane->seq + 1;
	if (p->landing)
		landing_sent(p->landing, p->c, p->stream);
	r = rgpu_send(p->c);
	p->landing = NULL;
	return r;
}

/* Page-locked memory in pieces of its own records; other memory is waited for. */
static int get(struct replay *p, const struct operand *o)
{
	uint8_t *all = NULL;
	uint64_t off = 0;
	uint32_t bo = 0;
	int r = 0;

	if (!straight(o, &bo, &off)) {
		all = malloc(o->span);
		if (!all)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint64_t done = 0; done < o->span && !r; done += RGPU_CHUNK_MAX) {
		uint64_t n = o->span - done < RGPU_CHUNK_MAX ? o->span - done : RGPU_CHUNK_MAX;
		struct rgpu_lane *l = session_lane(p->c->session, &r);
		struct slot *slot = l && all ? staging_slot(l, &r) : NULL;
		struct rec_GRAPH_GET *b;
		struct fence f = {0};

		if (!l || (all && !slot))
			break;
		p->c->op = OP_GRAPH_GET;
		b = rgpu_begin(p->c, all ? RGPU_REC_FENCE : 0, 1, sizeof(*b));
		if (!b) {
			r = p->c->status;
			break;
		}
		*b = (struct rec_GRAPH_GET){
			.ctx = p->c->ctx, .exec = p->e->obj->handle, .hStream = p->stream, .at = o->at + done, .bytes = n};
		*rgpu_segs(p->c) = (struct rgpu_seg){
			.bo = all ? slot->bo : bo, .dir = RGPU_SEG_RECV, .off = all ? slot->off : off + done, .len = n};
		if (!all) {
			r = rgpu_send(p->c);
			pinned_receives((void *)(o->addr + done), n, p->c, p->stream);
			continue;
		}
		call_expect(p->c, &f);
		r = call_wait(p->c, &f);
		if (!r && f.bulk != n)
			r = CUDA_ERROR_UNKNOWN;
		if (!r)
			memcpy(all + done, slot->mem, n);
	}
	if (all && !r)
		operand_scatter(o, all);
	free(all);
	return r;
}

static int get_rest(struct replay *p)
{
	uint64_t bytes = 0;
	int r = 0;
	struct replay again = {.nseg = p->nseg};

	/* The same choice as gather_down() made. */
	again.nseg = p->inlined || !p->nup ? 0 : p->nup;
	for (unsigned i = 0; i < p->e->ncopies && !r; i++) {
		const struct operand *o = &p->e->copy[i]->down;

		if (!comes_down(p->e->copy[i]))
			continue;
		if (fits(&again, o, bytes)) {
			bytes += o->span;
			again.ndown++;
			again.nseg++;
		} else {
			r = get(p, o);
		}
	}
	return r;
}

static void note_received(const struct replay *p)
{
	uint64_t off;
	uint32_t bo;

	for (unsigned i = 0; i < p->e->ncopies; i++) {
		const struct operand *o = &p->e->copy[i]->down;

		if (comes_down(p->e->copy[i]) && straight(o, &bo, &off))
			pinned_receives((void *)o->addr, o->span, p->c, p->stream);
	}
}

/* The other devices are at work now, too; and events that the graph records are recorded. */
static void note_work(const struct shim_exec *e, struct rgpu_lane *l)
{
	for (unsigned i = 0; i < e->nother; i++) {
		struct ctx *x = ctx_of(e->other[i]);

		tally_add(&x->work, l, 1);
		heap_busy(x->device, l, atomic_load(&e->session->counter));
	}
}

static void forget_events(const struct shim_exec *e)
{
	for (unsigned i = 0; i < e->flat.n && e->records; i++) {
		const struct gparams *p = &e->node[i].node->p;
		struct rgpu_obj *event;

		if (p->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD)
			continue;
		event = handle_find(KIND_event, (uint64_t)p->event);
		if (event)
			event_forget(event);
	}
}

static int expect_calls(struct shim_exec *e)
{
	int r = 0;

	for (unsigned i = 0; i < e->flat.n && !r && e->calls; i++) {
		struct wnode *w = &e->node[i];

		for (unsigned k = 0; k < w->npull && !r; k++)
			r = hostfunc_expect(e->session, w->pull[k]);
		if (!r && w->fn)
			r = hostfunc_expect(e->session, w->fn);
	}
	return r;
}

CUresult gb_exec_launch(struct graph_exec *x, CUstream handle)
{
	struct replay p = {.e = x->priv};
	struct rgpu_obj *obj;
	struct rgpu_call c;
	int r = rgpu_enter(&c, OP_GRAPH_LAUNCH);

	if (!r)
		r = rgpu_use(&c, KIND_stream, handle, true, &p.stream, &obj);
	if (r)
		return r;
	p.c = &c;
	if (shared_any())
		r = shared_push_for(c.session, OP_GRAPH_LAUNCH);
	if (!r)
		r = sources_change(&p) ? pull_sources(&p) : gather_up(&p);
	if (!r)
		r = gather_down(&p);
	if (!r)
		r = expect_calls(p.e);
	if (!r) {
		forget_events(p.e);
		p.e->flying = true;
		known_gives(&c, p.stream);
		r = send(&p);
		forget_events(p.e);
		note_work(p.e, p.c->lane);
		if (c.sent) {
			note_received(&p);
			if (shared_any())
				shared_watch(c.session);
		}
	}
	if (p.landing)
		landing_cancel(p.landing);
	if (!r)
		r = get_rest(&p);
	return r || !launches_block() ? r : stream_sync(&c, p.stream);
}

CUresult gb_exec_upload(struct graph_exec *x, CUstream handle)
{
	struct shim_exec *e = x->priv;
	struct rgpu_obj *obj;
	struct rgpu_call c;
	uint64_t stream;
	int r = rgpu_enter(&c, OP_GRAPH_UPLOAD);

	if (!r)
		r = rgpu_use(&c, KIND_stream, handle, true, &stream, &obj);
	return r ? r : rpc_GRAPH_UPLOAD(&c, e->obj->handle, stream);
}
