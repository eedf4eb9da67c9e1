// SPDX-License-Identifier: MIT
/* Launches of graphs: nodes become operations on streams of the graph's own, so branches run at once as streams would. */
#include "softgpu/graph.h"

#include <stdlib.h>

/* One piece of work of a launch. */
struct step {
	struct gnode *node;
	unsigned int lane;
	const unsigned int *dep; /* steps that come before: the flat graph's */
	unsigned int ndep;
	struct op *op, *last; /* of the launch that is being put together: a chain of operations, by next */
	uint64_t seq;
	bool continued;	    /* another step follows it in its lane */
	struct plan **body; /* a conditional's */
};

struct plan {
	struct gflat flat;
	struct step *step;
	unsigned int nsteps;
	struct stream **lane; /* references; lane 0 stands for the stream of the launch where it is of the same context */
	struct ctx **ctx;     /* of each lane; a reference */
	unsigned int nlanes;
	struct stream *done; /* the last launch's end; a reference */
	uint64_t done_seq;
	struct gcond_value **cond; /* those to be set anew at each launch */
	unsigned int nconds;
};

/* ---- Making a plan ---- */

/* Where a node's work is charged; NULL: it does not matter. */
static CUcontext context_of(const struct gparams *p)
{
	switch ((int)p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return p->kernel.ctx;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return p->memcpy.ctx;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return p->memset.ctx;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return p->memop.ctx;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return p->cond.ctx;
	default:
		return NULL;
	}
}

static CUresult new_lane(struct plan *p, struct ctx *c, unsigned int *out)
{
	struct stream **lane = realloc(p->lane, (p->nlanes + 1) * sizeof(*lane));
	struct ctx **ctx;

	if (!lane)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->lane = lane;
	ctx = realloc(p->ctx, (p->nlanes + 1) * sizeof(*ctx));
	if (!ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->ctx = ctx;
	p->lane[p->nlanes] = NULL;
	/* The first is the stream of the launch, where it can be. */
	if (p->nlanes)
		TRY(stream_create(c, CU_STREAM_NON_BLOCKING, 0, &p->lane[p->nlanes]));
	obj_ref(&c->obj);
	p->ctx[p->nlanes] = c;
	*out = p->nlanes++;
	return CUDA_SUCCESS;
}

/* Goes on where a step before it was the last; else a lane of its own. */
static CUresult choose_lane(struct plan *p, struct step *s)
{
	CUcontext want = context_of(&s->node->p);
	AUTO_PUT struct ctx *c = NULL;

	for (unsigned int i = 0; i < s->ndep; i++) {
		struct step *d = &p->step[s->dep[i]];

		if (d->continued || (want && (CUcontext)p->ctx[d->lane]->obj.handle != want))
			continue;
		d->continued = true;
		s->lane = d->lane;
		return CUDA_SUCCESS;
	}
	if (!want && p->nlanes) {
		obj_ref(&p->ctx[0]->obj);
		c = p->ctx[0];
	} else {
		TRY(ctx_resolve(want, &c));
	}
	return new_lane(p, c, &s->lane);
}

static CUresult plan_make(struct graph *g, struct plan **out);
static void plan_free(struct plan *p);

static CUresult note_condition(struct plan *p, struct gcond_value *v)
{
	struct gcond_value **list = realloc(p->cond, (p->nconds + 1) * sizeof(*list));

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->cond = list;
	p->cond[p->nconds++] = v;
	return CUDA_SUCCESS;
}

static CUresult plan_bodies(struct plan *p, struct step *s)
{
	struct gcond *c = &s->node->p.cond;
	struct gcond_value *v = cond_find(c->handle);

	if (!v)
		return CUDA_ERROR_INVALID_VALUE;
	if (v->assign)
		TRY(note_condition(p, v));
	s->body = calloc(c->size, sizeof(struct plan *));
	if (!s->body)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < c->size; i++) {
		TRY(plan_make(c->body[i], &s->body[i]));
		/* Those of conditions inside are set with ours. */
		for (unsigned int k = 0; k < s->body[i]->nconds; k++)
			TRY(note_condition(p, s->body[i]->cond[k]));
		s->body[i]->nconds = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult plan_make(struct graph *g, struct plan **out)
{
	struct plan *p = calloc(1, sizeof(*p));
	CUresult r = p ? graph_flatten(g, &p->flat) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r == CUDA_SUCCESS) {
		p->step = calloc(p->flat.n + 1, sizeof(*p->step));
		r = p->step ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned int i = 0; r == CUDA_SUCCESS && i < p->flat.n; i++) {
		struct step *s = &p->step[p->nsteps++];

		s->node = p->flat.step[i].node;
		s->dep = p->flat.step[i].dep;
		s->ndep = p->flat.step[i].ndep;
		r = choose_lane(p, s);
		if (r == CUDA_SUCCESS && s->node->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			r = plan_bodies(p, s);
	}
	if (r != CUDA_SUCCESS)
		plan_free(p);
	else
		*out = p;
	return r;
}

static void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->nsteps; i++) {
		for (unsigned int k = 0; p->step[i].body && k < p->step[i].node->p.cond.size; k++)
			plan_free(p->step[i].body[k]);
		free(p->step[i].body);
	}
	for (unsigned int i = 0; i < p->nlanes; i++) {
		if (p->lane[i])
			obj_put(&p->lane[i]->obj);
		obj_put(&p->ctx[i]->obj);
	}
	if (p->done)
		obj_put(&p->done->obj);
	gflat_free(&p->flat);
	free(p->step);
	free(p->lane);
	free(p->ctx);
	free(p->cond);
	free(p);
}

/* ---- Launching ---- */

static CUresult nothing(struct op *op, struct stream *s)
{
	(void)op;
	(void)s;
	return CUDA_SUCCESS;
}

static struct op *empty_op(void)
{
	struct op *op = op_new(sizeof(*op), nothing, op_free);

	if (op)
		op->quick = true;
	return op;
}

struct cond_op {
	struct op op;
	struct step *step;
};

static CUresult plan_submit(struct plan *p, struct stream *s);

static CUresult run_body(struct plan *body, struct stream *s)
{
	TRY(plan_submit(body, s));
	stream_wait_seq(body->done, body->done_seq);
	return atomic_load(&s->ctx->error);
}

/* On a thread of the pool, where waiting holds nobody else. */
static CUresult cond_run(struct op *op, struct stream *s)
{
	struct step *step = container_of(op, struct cond_op, op)->step;
	const struct gcond *c = &step->node->p.cond;
	struct gcond_value *v = cond_find(c->handle);
	struct stream *own;
	unsigned int value;
	CUresult r;

	if (!v)
		return CUDA_ERROR_LAUNCH_FAILED;
	TRY(stream_create(s->ctx, CU_STREAM_NON_BLOCKING, 0, &own));
	value = atomic_load(&v->value);
	r = CUDA_SUCCESS;
	if (c->type == CU_GRAPH_COND_TYPE_IF) {
		if (value)
			r = run_body(step->body[0], own);
		else if (c->size == 2)
			r = run_body(step->body[1], own);
	} else if (c->type == CU_GRAPH_COND_TYPE_SWITCH) {
		if (value < c->size)
			r = run_body(step->body[value], own);
	} else {
		while (r == CUDA_SUCCESS && atomic_load(&v->value))
			r = run_body(step->body[0], own);
	}
	obj_put(&own->obj);
	return r;
}

static CUresult append(struct step *s, struct op *op)
{
	if (!op)
		return CUDA_SUCCESS;
	if (s->last)
		s->last->next = op;
	else
		s->op = op;
	s->last = op;
	return CUDA_SUCCESS;
}

static CUresult build_memops(struct step *s)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *m = &s->node->p.memop;
	struct op *op;

	for (unsigned int i = 0; i < m->count; i++) {
		TRY(memop_op_of(&m->paramArray[i], &op));
		append(s, op);
	}
	return CUDA_SUCCESS;
}

static CUresult build(struct plan *p, struct step *s)
{
	struct gparams *g = &s->node->p;
	struct op *op = NULL;
	struct cond_op *c;

	s->op = s->last = NULL;
	switch (s->node->disabled ? (int)CU_GRAPH_NODE_TYPE_EMPTY : (int)g->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		TRY(launch_op_of(&g->kernel, p->ctx[s->lane], &op));
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		TRY(copy_op_of(&g->memcpy.copy, &op));
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		TRY(fill_op_of(&g->memset, &op));
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		TRY(host_op_of(g->host.fn, g->host.userData, &op));
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		TRY(build_memops(s));
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		c = op_new(sizeof(*c), cond_run, op_free);
		if (!c)
			return CUDA_ERROR_OUT_OF_MEMORY;
		c->step = s;
		op = &c->op;
		break;
	case GRAPH_NODE_GUEST:
		TRY(guest_op_of(g->guest, &op));
		break;
	default:
		break;
	}
	append(s, op);
	if (!s->op)
		append(s, empty_op());
	return s->op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void unbuild(struct plan *p)
{
	for (unsigned int i = 0; i < p->nsteps; i++)
		while (p->step[i].op) {
			struct op *op = p->step[i].op;

			p->step[i].op = op->next;
			while (op->ndeps)
				obj_put(&op->deps[--op->ndeps].stream->obj);
			free(op->deps);
			op->drop(op);
		}
}

static CUresult give(struct stream *s, struct step *step)
{
	struct op *next;

	for (; step->op; step->op = next) {
		next = step->op->next;
		step->op->next = NULL;
		TRY(stream_submit(s, step->op, &step->seq));
	}
	if (step->node->p.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && !step->node->disabled)
		return event_record(step->node->p.event, s, &step->seq);
	return CUDA_SUCCESS;
}

struct begin_op {
	struct op op;
	struct plan *plan;
};

static CUresult begin_run(struct op *op, struct stream *s)
{
	struct plan *p = container_of(op, struct begin_op, op)->plan;

	(void)s;
	for (unsigned int i = 0; p && i < p->nconds; i++)
		atomic_store(&p->cond[i]->value, p->cond[i]->initial);
	return CUDA_SUCCESS;
}

/* Behind what @s has, and behind the launch before: an executable graph runs once at a time. */
static CUresult submit_begin(struct plan *p, struct stream *s, uint64_t *seq)
{
	struct begin_op *o = op_new(sizeof(*o), begin_run, op_free);

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->plan = p->nconds ? p : NULL;
	o->op.quick = true;
	if (p->done && p->done != s && !op_depends(&o->op, p->done, p->done_seq)) {
		free(o);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return stream_submit(s, &o->op, seq);
}

static struct stream *lane_of(struct plan *p, unsigned int lane, struct stream *s)
{
	return p->lane[lane] ? p->lane[lane] : s;
}

static CUresult submit_steps(struct plan *p, struct stream *s, uint64_t begin, struct op *end)
{
	for (unsigned int i = 0; i < p->nsteps; i++) {
		struct step *step = &p->step[i];
		struct stream *lane = lane_of(p, step->lane, s);
		bool good = step->ndep || lane == s || op_depends(step->op, s, begin);

		for (unsigned int k = 0; k < step->ndep && good; k++) {
			struct step *d = &p->step[step->dep[k]];
			struct stream *on = lane_of(p, d->lane, s);

			good = on == lane || op_depends(step->op, on, d->seq);
		}
		if (!good)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (step->node->p.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
			TRY(event_depend(step->op, lane, step->node->p.event));
		TRY(give(lane, step));
		if (!step->continued && lane != s && !op_depends(end, lane, step->seq))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult plan_submit(struct plan *p, struct stream *s)
{
	struct op *end = empty_op();
	CUresult r = end ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t begin, seq;

	/* Lane 0 is @s itself, unless that is of another context. */
	if (r == CUDA_SUCCESS && p->nlanes && p->ctx[0] != s->ctx && !p->lane[0])
		r = stream_create(p->ctx[0], CU_STREAM_NON_BLOCKING, 0, &p->lane[0]);
	for (unsigned int i = 0; i < p->nsteps && r == CUDA_SUCCESS; i++)
		r = build(p, &p->step[i]);
	if (r == CUDA_SUCCESS)
		r = submit_begin(p, s, &begin);
	if (r == CUDA_SUCCESS)
		r = submit_steps(p, s, begin, end);
	if (r != CUDA_SUCCESS)
		unbuild(p);
	if (!end)
		return r;
	/* Also when something failed: what was given is waited for. */
	if (stream_submit(s, end, &seq) == CUDA_SUCCESS) {
		obj_ref(&s->obj);
		if (p->done)
			obj_put(&p->done->obj);
		p->done = s;
		p->done_seq = seq;
	}
	return r;
}

/* ---- What lib/graph calls ---- */

CUresult gb_exec_new(struct graph_exec *x, struct gnode **bad)
{
	struct plan *p;

	*bad = NULL;
	TRY(plan_make(x->graph, &p));
	x->priv = p;
	return CUDA_SUCCESS;
}

void gb_exec_free(struct graph_exec *x)
{
	struct plan *p = x->priv;

	/* Operations have all that they need, but for conditions and the program's own objects. */
	if (p->done && (x->graph->nuse || graph_has(x->graph, CU_GRAPH_NODE_TYPE_CONDITIONAL)))
		stream_wait_seq(p->done, p->done_seq);
	plan_free(p);
}

CUresult gb_exec_changed(struct graph_exec *x, struct gnode *n)
{
	(void)x;
	(void)n;
	return CUDA_SUCCESS; /* operations are made at each launch */
}

CUresult gb_exec_launch(struct graph_exec *x, CUstream handle)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(handle, &s));
	return plan_submit(x->priv, s);
}

CUresult gb_exec_upload(struct graph_exec *x, CUstream handle)
{
	AUTO_PUT struct stream *s = NULL;

	(void)x;
	return stream_resolve(handle, &s);
}
