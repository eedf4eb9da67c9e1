// SPDX-License-Identifier: MIT
/* A graph without child graphs: every node that does something, and the nodes that come before it, in one order. */
#include <stdlib.h>
#include <string.h>
#include "lib/graph/graph.h"

/* A set of steps. */
struct steps {
	unsigned int *at, n;
};

static bool steps_add(struct steps *s, unsigned int step)
{
	unsigned int *p;

	for (unsigned int i = 0; i < s->n; i++)
		if (s->at[i] == step)
			return true;
	p = realloc(s->at, (s->n + 1) * sizeof(*p));
	if (!p)
		return false;
	s->at = p;
	s->at[s->n++] = step;
	return true;
}

static bool steps_join(struct steps *to, const struct steps *from)
{
	for (unsigned int i = 0; i < from->n; i++)
		if (!steps_add(to, from->at[i]))
			return false;
	return true;
}

static bool add(struct gflat *f, struct gnode *n, struct steps *deps, struct steps *exits)
{
	struct gstep *s;

	if (f->n == f->room) {
		unsigned int room = f->room ? f->room * 2 : 16;

		s = realloc(f->step, room * sizeof(*s));
		if (!s)
			return false;
		f->step = s;
		f->room = room;
	}
	f->step[f->n++] = (struct gstep){.node = n, .dep = deps->at, .ndep = deps->n};
	*deps = (struct steps){0}; /* the step's now */
	return steps_add(exits, f->n - 1);
}

/* Adds @g behind @entry; *exits: what somebody who waits for all of it waits for. */
static bool flatten(struct gflat *f, struct graph *g, const struct steps *entry, struct steps *exits)
{
	struct gnode **order = calloc(g->n + 1, sizeof(*order));
	struct steps *of = calloc(g->n + 1, sizeof(*of)); /* by a node's place in its graph */
	bool good = order && of && graph_sort(g, order);

	for (unsigned int i = 0; i < g->n && good; i++) {
		struct gnode *n = order[i];
		struct steps deps = {0};

		good = n->nin || steps_join(&deps, entry);
		for (unsigned int k = 0; k < n->nin && good; k++)
			good = steps_join(&deps, &of[n->in[k].node->at]);
		if (good && n->p.type == CU_GRAPH_NODE_TYPE_GRAPH)
			good = flatten(f, n->p.child, &deps, &of[n->at]);
		else if (good)
			good = add(f, n, &deps, &of[n->at]);
		free(deps.at);
		good = good && (n->nout || steps_join(exits, &of[n->at]));
	}
	good = good && (g->n || steps_join(exits, entry));
	for (unsigned int i = 0; of && i < g->n; i++)
		free(of[i].at);
	free(of);
	free(order);
	return good;
}

CUresult graph_flatten(struct graph *g, struct gflat *out)
{
	struct steps none = {0}, exits = {0};
	bool good;

	*out = (struct gflat){0};
	good = flatten(out, g, &none, &exits);
	free(exits.at);
	if (good)
		return CUDA_SUCCESS;
	gflat_free(out);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void gflat_free(struct gflat *f)
{
	for (unsigned int i = 0; i < f->n; i++)
		free(f->step[i].dep);
	free(f->step);
	*f = (struct gflat){0};
}
