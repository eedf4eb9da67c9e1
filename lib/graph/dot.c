// SPDX-License-Identifier: MIT
/* A graph as a file for Graphviz. */
#include "lib/graph/graph.h"

#include <stdio.h>

static const char *const names[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = "KERNEL",
	[CU_GRAPH_NODE_TYPE_MEMCPY] = "MEMCPY",
	[CU_GRAPH_NODE_TYPE_MEMSET] = "MEMSET",
	[CU_GRAPH_NODE_TYPE_HOST] = "HOST",
	[CU_GRAPH_NODE_TYPE_GRAPH] = "CHILD",
	[CU_GRAPH_NODE_TYPE_EMPTY] = "EMPTY",
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = "EVENT_WAIT",
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = "EVENT_RECORD",
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = "MEM_ALLOC",
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = "MEM_FREE",
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = "BATCH_MEM_OP",
	[CU_GRAPH_NODE_TYPE_CONDITIONAL] = "CONDITIONAL",
};

static void label(FILE *f, const struct gnode *n, unsigned int flags)
{
	const struct gparams *p = &n->p;
	bool all = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;

	fprintf(f, "%u\\n%s", n->at, p->type == GRAPH_NODE_GUEST ? "KERNEL" : names[p->type]);
	if (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)
		fprintf(f, "\\nhandle %#llx", (unsigned long long)n->h.value);
	if (p->type == CU_GRAPH_NODE_TYPE_KERNEL && (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(f, "\\ngrid %u %u %u block %u %u %u shared %u", p->kernel.grid[0], p->kernel.grid[1], p->kernel.grid[2],
			p->kernel.block[0], p->kernel.block[1], p->kernel.block[2], p->kernel.shared);
	if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(f, "\\n%zu x %zu x %zu bytes", p->memcpy.copy.WidthInBytes, p->memcpy.copy.Height, p->memcpy.copy.Depth);
	if (p->type == CU_GRAPH_NODE_TYPE_MEMSET && (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(f, "\\n%#llx: %zu x %zu of %u bytes, value %#x", (unsigned long long)p->memset.dst, p->memset.width,
			p->memset.height, p->memset.elementSize, p->memset.value);
	if (p->type == CU_GRAPH_NODE_TYPE_HOST && (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS))
		fprintf(f, "\\nfn %p data %p", (void *)p->host.fn, p->host.userData);
}

static void print(FILE *f, const struct graph *g, unsigned int flags)
{
	fprintf(f, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", (unsigned long long)g->id, (unsigned long long)g->id);
	for (unsigned int i = 0; i < g->n; i++) {
		const struct gnode *n = g->node[i];

		fprintf(f, "graph_%llu_node_%u [shape=record, label=\"", (unsigned long long)g->id, i);
		label(f, n, flags);
		fprintf(f, "\"];\n");
		for (unsigned int k = 0; k < n->nout; k++)
			fprintf(f, "graph_%llu_node_%u -> graph_%llu_node_%u;\n", (unsigned long long)g->id, i,
				(unsigned long long)g->id, n->out[k].node->at);
		if (n->p.type == CU_GRAPH_NODE_TYPE_GRAPH)
			print(f, n->p.child, flags);
		for (unsigned int k = 0; n->p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size; k++)
			print(f, n->p.cond.body[k], flags);
	}
	fprintf(f, "}\n");
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct graph *g;
	FILE *f = NULL;

	GTRY(gb_enter());
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&graph_lock);
	g = ghandle_find(graph, GRAPH_KIND_GRAPH);
	if (g) {
		f = fopen(path, "w");
		r = f ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (f) {
		fprintf(f, "digraph dot {\n");
		print(f, g, flags);
		fprintf(f, "}\n");
		if (ferror(f) | fclose(f))
			r = CUDA_ERROR_OPERATING_SYSTEM;
	}
	graph_unlock();
	return r;
}
