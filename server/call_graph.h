/* SPDX-License-Identifier: MIT */
/* A graph in the worker: while it is put together, then executable. */
#ifndef RGPU_SERVER_CALL_GRAPH_H
#define RGPU_SERVER_CALL_GRAPH_H

#include "api/graph_wire.h"
#include "server/host.h"
#include "server/session.h"

struct graph_node {
	CUgraphNode real;
	uint32_t type;
	struct host_fn *fn; /* what the node calls; freed with the graph */
};

/* Bytes of the client's host memory. The driver's copies go from and to here. */
struct host_piece {
	uint8_t *p;
	uint64_t bytes;
	bool locked;
};

struct srv_graph {
	_Atomic unsigned refs; /* the table, and calls that work on it */
	pthread_mutex_t lock;  /* all below, over the driver's calls */
	struct srv_session *session;
	struct srv_ctx *x;
	CUgraph real;  /* kept: a node's name is of it */
	CUgraph *body; /* of its conditional nodes, in order */
	unsigned nbodies;
	CUgraphConditionalHandle *cond; /* that the driver made for it */
	unsigned nconds;
	CUgraphExec exec; /* NULL until it was made */
	CUresult status;  /* the first thing that went wrong, and with which node */
	uint32_t bad;
	struct graph_node *node;
	uint32_t n, room;
	struct host_piece piece[RGPU_HOST_PIECES];
	_Atomic unsigned npieces; /* only grows: what is there may be read without the lock */
	struct host_fn **old;	  /* that nodes called before they were changed */
	unsigned nold;
	CUevent done;		/* the last launch has ended */
	struct srv_ctx *done_x; /* the context that it was in: the event is of that one, and goes with it */
	bool launched;
};

/* A call's hold, let go where the variable ends. */
#define GRAPH_REF __attribute__((cleanup(graph_put))) struct srv_graph
void graph_put(struct srv_graph **g);
struct srv_graph *srv_graph(struct srv_call *c, enum rgpu_kind kind, uint64_t handle); /* NULL: the status is set */
/* [at, at + bytes) of its host memory. NULL: there is no such. */
uint8_t *graph_host(struct srv_graph *g, uint64_t at, uint64_t bytes);
bool graph_runs(struct srv_graph *g); /* with the lock: a launch has not ended, as far as is known */
CUresult graph_add_piece(struct srv_graph *g, uint64_t bytes);
void graph_drop(struct srv_graph *g, bool context_gone); /* it is off the table */
/* call_graph_node.c: adds node number g->n, or changes an executable graph's. The context is current; with the lock. */
CUresult graph_node(struct srv_call *c, struct srv_graph *g, const struct rec_GRAPH_NODE *a);

#endif
