/* SPDX-License-Identifier: MIT */
/* A capture from the inside: for the files that begin and end captures, and that keep them. All under graph_lock. */
#ifndef RGPU_GRAPH_CAPTURE_H
#define RGPU_GRAPH_CAPTURE_H

#include "lib/graph/graph.h"

struct gset {
	struct gedge *edge;
	unsigned int n;
};

/* A stream that takes part: its next node depends on deps. */
struct captured_stream {
	struct captured_stream *next;
	uint64_t key;
	CUcontext ctx;
	bool blocking;
	struct gset deps;
	CUgraphNode *shown; /* what GetCaptureInfo handed out */
	CUgraphEdgeData *shown_data;
};

struct capture {
	struct capture *next;
	cuuint64_t id;
	CUstreamCaptureMode mode;
	const void *thread; /* that began it */
	struct graph *graph;
	bool own; /* the graph is new, and no program's yet */
	bool invalid;
	struct captured_stream *streams; /* the first is where it began */
};

/* An event whose latest record was captured: what came before it then. */
struct captured_event {
	struct captured_event *next;
	CUevent event;
	cuuint64_t capture;
	struct gset deps;
};

bool gset_add(struct gset *s, struct gnode *n, const CUgraphEdgeData *data);
void gset_clear(struct gset *s);
struct captured_stream *capture_find(uint64_t key, struct capture **capture);
void capture_void(struct capture *c);
CUresult capture_begin(const struct gstream *s, struct graph *g, bool own, CUstreamCaptureMode mode,
		       struct captured_stream **out);
bool capture_is_mine(const struct capture *c);
bool capture_joined(struct capture *c);
void capture_end(struct capture *c);

#endif
