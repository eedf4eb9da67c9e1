// SPDX-License-Identifier: MIT
/* The calls that begin, end and look into stream capture; with their names for the per-thread default stream. */
#include <stdlib.h>
#include <string.h>
#include "lib/graph/capture.h"

static CUstream own(CUstream s)
{
	return s ? s : CU_STREAM_PER_THREAD;
}

static CUresult begin(CUstream stream, CUgraph to, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
		      CUstreamCaptureMode mode, bool given)
{
	struct captured_stream *st = NULL;
	struct gstream s = {0};
	struct capture *c;
	struct graph *g;
	CUresult r;

	GTRY(gb_enter());
	if ((unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (n && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(gb_stream(stream, &s));
	/* The legacy stream cannot: it waits for all others. */
	if (s.legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&graph_lock);
	g = given ? ghandle_find(to, GRAPH_KIND_GRAPH) : graph_new();
	if (!g)
		r = given ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	else if (capture_find(s.key, &c) || (given && graph_is_captured_to(g)))
		r = CUDA_ERROR_ILLEGAL_STATE;
	else
		r = graph_handle(g);
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		struct gnode *node = ghandle_find(deps[i], GRAPH_KIND_NODE);

		if (!node || node->graph != g)
			r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS)
		r = capture_begin(&s, g, !given, mode, &st);
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
		if (!gset_add(&st->deps, ghandle_find(deps[i], GRAPH_KIND_NODE), data ? &data[i] : NULL)) {
			capture_find(s.key, &c);
			capture_end(c);
			r = CUDA_ERROR_OUT_OF_MEMORY;
		}
	if (r != CUDA_SUCCESS && g && !given)
		graph_free(g);
	graph_unlock();
	return r;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(stream, NULL, NULL, NULL, 0, mode, false);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(own(stream), NULL, NULL, NULL, 0, mode, false);
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	return begin(stream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}

CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
	return begin(own(stream), NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data,
				     size_t n, CUstreamCaptureMode mode)
{
	return begin(stream, graph, deps, data, n, mode, true);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *data,
					  size_t n, CUstreamCaptureMode mode)
{
	return begin(own(stream), graph, deps, data, n, mode, true);
}

static CUresult end(struct captured_stream *st, struct capture *c, CUgraph *out)
{
	CUresult r = CUDA_SUCCESS;

	/* Who captured into a graph has it already. */
	if (!out && c->own)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->streams != st)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !capture_is_mine(c))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (c->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (!capture_joined(c))
		r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	if (r == CUDA_SUCCESS && out)
		*out = (CUgraph)(uintptr_t)c->graph->h.value;
	else if (r != CUDA_SUCCESS && c->own)
		graph_free(c->graph);
	capture_end(c);
	return r;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	struct captured_stream *st;
	struct gstream s = {0};
	struct capture *c;
	CUresult r;

	GTRY(gb_enter());
	if (graph)
		*graph = NULL;
	GTRY(gb_stream(stream, &s));
	pthread_mutex_lock(&graph_lock);
	st = capture_find(s.key, &c);
	r = st ? end(st, c, graph) : CUDA_ERROR_ILLEGAL_STATE;
	graph_unlock();
	return r;
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	return cuStreamEndCapture(own(stream), graph);
}

/* ---- Questions ---- */

/* The nodes as the program calls them; the arrays live until the next question or the stream's next node. */
static bool show(struct captured_stream *st)
{
	CUgraphNode *nodes = realloc(st->shown, (st->deps.n + 1) * sizeof(*nodes));
	CUgraphEdgeData *data = realloc(st->shown_data, (st->deps.n + 1) * sizeof(*data));

	st->shown = nodes ? nodes : st->shown;
	st->shown_data = data ? data : st->shown_data;
	if (!nodes || !data)
		return false;
	for (unsigned int i = 0; i < st->deps.n; i++) {
		nodes[i] = (CUgraphNode)(uintptr_t)st->deps.edge[i].node->h.value;
		data[i] = st->deps.edge[i].data;
	}
	return true;
}

static bool only_plain(const struct gset *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (s->edge[i].data.from_port || s->edge[i].data.type)
			return false;
	return true;
}

static CUresult info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
		     const CUgraphEdgeData **data, size_t *n)
{
	struct captured_stream *st = NULL;
	struct gstream s = {0};
	struct capture *c = NULL;
	CUresult r = CUDA_SUCCESS;

	GTRY(gb_enter());
	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(gb_stream(stream, &s));
	if (s.legacy)
		GTRY(graph_legacy_asked(&s));
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!atomic_load_explicit(&graph_captures, memory_order_acquire))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&graph_lock);
	st = capture_find(s.key, &c);
	if (st) {
		*status = c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
		if (id)
			*id = c->id;
	}
	if (st && !c->invalid) {
		if (graph)
			*graph = (CUgraph)(uintptr_t)c->graph->h.value;
		if (deps && !data && !only_plain(&st->deps))
			r = CUDA_ERROR_LOSSY_QUERY;
		else if ((deps || data) && !show(st))
			r = CUDA_ERROR_OUT_OF_MEMORY;
		if (r == CUDA_SUCCESS && deps)
			*deps = st->shown;
		if (r == CUDA_SUCCESS && data)
			*data = st->shown_data;
		if (n)
			*n = st->deps.n;
	}
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	return info(stream, status, NULL, NULL, NULL, NULL, NULL);
}

CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
	return cuStreamIsCapturing(own(stream), status);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				   const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n)
{
	return info(stream, status, id, graph, deps, data, n);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
					const CUgraphNode **deps, const CUgraphEdgeData **data, size_t *n)
{
	return info(own(stream), status, id, graph, deps, data, n);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				   const CUgraphNode **deps, size_t *n)
{
	return info(stream, status, id, graph, deps, NULL, n);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
					const CUgraphNode **deps, size_t *n)
{
	return info(own(stream), status, id, graph, deps, NULL, n);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return info(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return info(own(stream), status, id, NULL, NULL, NULL, NULL);
}

/* ---- Changing what comes next ---- */

static CUresult update(struct captured_stream *st, const struct capture *c, const CUgraphNode *deps, const CUgraphEdgeData *data,
		       size_t n, unsigned int flags)
{
	struct gset set = {0};

	for (unsigned int i = 0; flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES && i < st->deps.n; i++)
		if (!gset_add(&set, st->deps.edge[i].node, &st->deps.edge[i].data)) {
			gset_clear(&set);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	for (size_t i = 0; i < n; i++) {
		struct gnode *node = ghandle_find(deps[i], GRAPH_KIND_NODE);
		bool fits = node && node->graph == c->graph;

		if (!fits || !gset_add(&set, node, data ? &data[i] : NULL)) {
			gset_clear(&set);
			return fits ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
		}
	}
	gset_clear(&st->deps);
	st->deps = set;
	return CUDA_SUCCESS;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
					      unsigned int flags)
{
	struct captured_stream *st;
	struct gstream s = {0};
	struct capture *c;
	CUresult r;

	GTRY(gb_enter());
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	GTRY(gb_stream(stream, &s));
	pthread_mutex_lock(&graph_lock);
	st = capture_find(s.key, &c);
	r = !st		 ? CUDA_ERROR_ILLEGAL_STATE
	    : c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
			 : update(st, c, deps, data, n, flags);
	pthread_mutex_unlock(&graph_lock);
	return r;
}

CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
						   unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(own(stream), deps, data, n, flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t n, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, deps, NULL, n, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *deps, size_t n, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(own(stream), deps, NULL, n, flags);
}
