// SPDX-License-Identifier: MIT
/* User objects: the program's own things, counted, that live as long as the graphs that use them. */
#include "lib/graph/graph.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct userobj {
	struct ghandle h;
	struct userobj *next; /* once nobody uses it: in the list of those to destroy */
	void *ptr;
	CUhostFn destroy;
	uint64_t refs, own; /* all; those that the program may release by the handle */
};

static struct userobj *dead; /* graph_lock */

static void put(struct userobj *u, uint64_t n)
{
	u->refs -= n;
	if (u->refs)
		return;
	ghandle_drop(&u->h);
	u->next = dead;
	dead = u;
}

/* Destructors are the program's code: they run when the lock is no longer held. */
void graph_unlock(void)
{
	struct userobj *list = dead;

	dead = NULL;
	pthread_mutex_unlock(&graph_lock);
	while (list) {
		struct userobj *u = list;

		list = u->next;
		u->destroy(u->ptr);
		free(u);
	}
}

static struct userobj *find(CUuserObject handle)
{
	return ghandle_find(handle, GRAPH_KIND_USER);
}

CUresult guses_copy(const struct graph *from, struct graph *to)
{
	if (!from->nuse)
		return CUDA_SUCCESS;
	to->use = calloc(from->nuse, sizeof(*to->use));
	if (!to->use)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(to->use, from->use, from->nuse * sizeof(*to->use));
	to->nuse = from->nuse;
	for (unsigned int i = 0; i < to->nuse; i++)
		to->use[i].object->refs += to->use[i].count;
	return CUDA_SUCCESS;
}

void guses_free(struct graph *g)
{
	for (unsigned int i = 0; i < g->nuse; i++)
		put(g->use[i].object, g->use[i].count);
	free(g->use);
	g->use = NULL;
	g->nuse = 0;
}

CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned int count, unsigned int flags)
{
	struct userobj *u;
	CUresult r;

	GTRY(gb_enter());
	if (!out || !destroy || !count || count > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	u = calloc(1, sizeof(*u));
	if (!u)
		return CUDA_ERROR_OUT_OF_MEMORY;
	u->ptr = ptr;
	u->destroy = destroy;
	u->refs = u->own = count;
	pthread_mutex_lock(&graph_lock);
	r = ghandle_new(&u->h, GRAPH_KIND_USER);
	*out = (CUuserObject)(uintptr_t)u->h.value;
	graph_unlock();
	if (r != CUDA_SUCCESS)
		free(u);
	return r;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	struct userobj *u;

	GTRY(gb_enter());
	if (!count || count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	u = find(object);
	if (u) {
		u->refs += count;
		u->own += count;
	}
	graph_unlock();
	return u ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	struct userobj *u;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	GTRY(gb_enter());
	if (!count || count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	u = find(object);
	if (u && u->own >= count) {
		u->own -= count;
		put(u, count);
		r = CUDA_SUCCESS;
	}
	graph_unlock();
	return r;
}

static CUresult retain(struct graph *g, struct userobj *u, unsigned int count, bool move)
{
	unsigned int i = 0;
	struct guse *p;

	if (move && u->own < count)
		return CUDA_ERROR_INVALID_VALUE;
	while (i < g->nuse && g->use[i].object != u)
		i++;
	if (i == g->nuse) {
		p = realloc(g->use, (g->nuse + 1) * sizeof(*p));
		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		g->use = p;
		g->use[g->nuse++] = (struct guse){u, 0};
	}
	g->use[i].count += count;
	if (move)
		u->own -= count;
	else
		u->refs += count;
	return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct userobj *u;
	struct graph *g;

	GTRY(gb_enter());
	if (!count || count > INT_MAX || flags & ~CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = ghandle_find(graph, GRAPH_KIND_GRAPH);
	u = find(object);
	if (g && u)
		r = retain(g, u, count, flags);
	graph_unlock();
	return r;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct userobj *u;
	struct graph *g;

	GTRY(gb_enter());
	if (!count || count > INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = ghandle_find(graph, GRAPH_KIND_GRAPH);
	u = find(object);
	for (unsigned int i = 0; g && u && i < g->nuse; i++)
		if (g->use[i].object == u && g->use[i].count >= count) {
			g->use[i].count -= count;
			if (!g->use[i].count)
				g->use[i] = g->use[--g->nuse];
			put(u, count);
			r = CUDA_SUCCESS;
			break;
		}
	graph_unlock();
	return r;
}
