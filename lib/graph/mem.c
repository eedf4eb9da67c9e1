// SPDX-License-Identifier: MIT
/*
 * Memory that graphs allocate: an address for as long as a graph has the node, and the memory with it. What a launch allocates
 * and frees is only booked: two graphs never share such memory, and nothing is to be given back when it is trimmed.
 */
#include "lib/graph/graph.h"

#include <stdlib.h>

#define DEVICES 64

static struct galloc *all; /* graph_lock, and all below */
static uint64_t used[DEVICES], used_high[DEVICES], reserved[DEVICES], reserved_high[DEVICES];

static void account(uint64_t *now, uint64_t *high, int64_t bytes)
{
	*now += (uint64_t)bytes;
	if (*now > *high)
		*high = *now;
}

CUresult galloc_new(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p, struct galloc **out)
{
	struct galloc *a;
	CUresult r;

	if (p->poolProps.location.id < 0 || p->poolProps.location.id >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	a = calloc(1, sizeof(*a));
	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*a = (struct galloc){.bytes = p->bytesize, .device = p->poolProps.location.id, .refs = 1};
	r = gb_alloc(a->device, a->bytes, &a->dptr, &a->id);
	if (r != CUDA_SUCCESS) {
		free(a);
		return r;
	}
	account(&reserved[a->device], &reserved_high[a->device], (int64_t)a->bytes);
	a->next = all;
	all = a;
	*out = a;
	return CUDA_SUCCESS;
}

void galloc_ref(struct galloc *a)
{
	a->refs++;
}

/* Without a node, and freed: the address is nobody's. */
static void drop_idle(struct galloc *a)
{
	struct galloc **at = &all;

	if (a->refs || a->live)
		return;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	account(&reserved[a->device], &reserved_high[a->device], -(int64_t)a->bytes);
	gb_alloc_free(a->dptr, a->id);
	free(a);
}

void galloc_put(struct galloc *a)
{
	a->refs--;
	drop_idle(a);
}

static void set_live(struct galloc *a, bool live)
{
	if (a->live == live)
		return;
	a->live = live;
	account(&used[a->device], &used_high[a->device], live ? (int64_t)a->bytes : -(int64_t)a->bytes);
}

static struct galloc *find(CUdeviceptr dptr)
{
	struct galloc *a = all;

	while (a && a->dptr != dptr)
		a = a->next;
	return a;
}

bool galloc_known(CUdeviceptr dptr)
{
	return find(dptr);
}

CUresult graph_capture_alloc(const struct gstream *s, int device, uint64_t bytes, CUdeviceptr *dptr)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUresult r;

	if (!dptr || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	p.alloc.p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.alloc.p.poolProps.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
	p.alloc.p.bytesize = bytes;
	pthread_mutex_lock(&graph_lock);
	r = galloc_new(&p.alloc.p, &p.alloc.mem);
	pthread_mutex_unlock(&graph_lock);
	GTRY(r);
	p.alloc.p.dptr = *dptr = p.alloc.mem->dptr;
	return graph_capture(s, &p);
}

CUresult graph_capture_free(const struct gstream *s, CUdeviceptr dptr)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = dptr};
	bool known;

	pthread_mutex_lock(&graph_lock);
	known = find(dptr);
	pthread_mutex_unlock(&graph_lock);
	return known ? graph_capture(s, &p) : CUDA_ERROR_INVALID_VALUE;
}

CUresult graph_mem_free(CUdeviceptr dptr, bool *ours)
{
	CUresult r = CUDA_SUCCESS;
	struct galloc *a;

	pthread_mutex_lock(&graph_lock);
	a = find(dptr);
	*ours = a;
	if (a && !a->live) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (a) {
		set_live(a, false);
		drop_idle(a);
	}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

/* Memory nodes are at the top level and in child graphs that were moved. */
static CUresult walk(const struct graph *g, bool check, bool release)
{
	struct galloc *a;

	for (unsigned int i = 0; i < g->n; i++) {
		const struct gparams *p = &g->node[i]->p;

		if (p->type == CU_GRAPH_NODE_TYPE_GRAPH) {
			GTRY(walk(p->child, check, release));
		} else if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			if (check && p->alloc.mem->live && !release)
				return CUDA_ERROR_INVALID_VALUE;
			if (!check)
				set_live(p->alloc.mem, true);
		} else if (p->type == CU_GRAPH_NODE_TYPE_MEM_FREE && check) {
			/* Of this graph, or live from an earlier launch of another. */
			if (!find(p->free))
				return CUDA_ERROR_INVALID_VALUE;
		}
	}
	/* A node's free comes after its alloc: they are in one order or the graph is wrong. */
	for (unsigned int i = 0; i < g->n && !check; i++)
		if (g->node[i]->p.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
			a = find(g->node[i]->p.free);
			if (a)
				set_live(a, false);
		}
	return CUDA_SUCCESS;
}

CUresult galloc_launch(struct graph_exec *x)
{
	if (!all)
		return CUDA_SUCCESS;
	GTRY(walk(x->graph, true, x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	return walk(x->graph, false, false);
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	GTRY(gb_enter());
	return gb_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	GTRY(gb_enter());
	if (!gb_device(device) || device >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = used[device];
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = used_high[device];
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = reserved[device];
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = reserved_high[device];
		break;
	default:
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

/* Only the high marks can be set, and only to 0, which makes them what is in use now. */
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	CUresult r = CUDA_SUCCESS;

	GTRY(gb_enter());
	if (!gb_device(device) || device >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || *(cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		used_high[device] = used[device];
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		reserved_high[device] = reserved[device];
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&graph_lock);
	return r;
}
