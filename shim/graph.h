/* SPDX-License-Identifier: MIT */
/* Where the client's calls meet lib/graph: work that is captured instead of sent, and executable graphs at the server. */
#ifndef RGPU_SHIM_GRAPH_H
#define RGPU_SHIM_GRAPH_H

#include "lib/graph/graph.h"
#include "shim/call.h"
#include "shim/cuda_api.h"
#include "shim/memcpy_box.h"

/* ---- Capture (capture.c). The call's stream captures; the status is a CUresult. ---- */

int capture_launch(struct rgpu_call *c, const CUlaunchConfig *cfg, bool cooperative, CUfunction f, void **params, void **extra);
int capture_copy(struct rgpu_call *c, uint64_t dst, bool dst_device, uint64_t src, bool src_device, uint64_t bytes);
int capture_box(struct rgpu_call *c, const struct box *b);
int capture_host(struct rgpu_call *c, CUhostFn fn, void *data);
int capture_alloc(struct rgpu_call *c, uint64_t bytes, CUdeviceptr *dptr);
int capture_free(struct rgpu_call *c, CUdeviceptr dptr);
struct gstream capture_stream(const struct rgpu_call *c, uint64_t stream);

/* What the server captured: a graph of its own, under a handle of ours. */
struct fragment {
	struct gguest head;
	struct rgpu_session *session;
	struct rgpu_obj *graph;
};

/* ---- Executable graphs (graph_exec.c, graph_host.c, graph_launch.c) ---- */

/* Host memory that a graph copies from or to, and where the server keeps its bytes. */
struct hblock {
	uint64_t addr, bytes; /* 0: free for others */
	uint64_t at, room;    /* RGPU_HOST_AT */
};

/* A copy's host side. */
struct operand {
	uint64_t addr, span; /* from the first byte to behind the last */
	uint64_t at;	     /* RGPU_HOST_AT of the first */
	uint64_t width, height, depth, pitch, slice;
};

/* A node as the server knows it, by step of the flat graph. */
struct wnode {
	struct gnode *node;
	uint32_t body;		 /* the conditional body that it is in; 0: the graph itself */
	uint32_t number;	 /* at the server */
	bool has_up, has_down;	 /* a copy from, to host memory that has no twin */
	bool from_host, to_host; /* … with or without one */
	bool sized;		 /* a copy of more than nothing */
	bool after_host;	 /* a host function comes before: its bytes are asked for when the graph has come there */
	bool before_host;	 /* a host function comes after: its bytes come down before that one is called */
	struct operand up, down;
	uint64_t *pull; /* hostfuncs that bring the bytes */
	unsigned npull;
	bool disabled;		 /* as the server has it */
	uint64_t fn;		 /* a host node's hostfunc */
	unsigned *fetch, nfetch; /* steps whose bytes a host function wants down, where they have some */
	struct shim_exec *exec;
};

struct landing_pad;

struct shim_exec {
	struct graph_exec *x;
	struct rgpu_session *session;
	struct rgpu_obj *context; /* that it was made in */
	struct rgpu_obj *obj;	  /* KIND_graphexec */
	struct gflat flat;
	struct wnode *node;
	struct hblock *block;
	unsigned nblocks, npieces;
	struct rgpu_obj *other[8]; /* further contexts that its nodes are of */
	unsigned nother;
	struct wnode **copy; /* those that may have host memory */
	unsigned ncopies;
	bool calls;   /* it has host nodes */
	bool records; /* … and nodes that record events */
	bool flying;  /* launched since it was last seen idle */
	struct landing_pad *pad;
	uint64_t *old; /* hostfuncs that nodes had before they were changed: a launch may still come to them */
	unsigned nold;
};

/* graph_cond.c. With graph_lock: whether there is such a condition. */
bool cond_known(CUgraphConditionalHandle h);
/* The server's graph that has it, for the one executable graph that can be made of it. A CUresult. */
int cond_adopt(CUgraphConditionalHandle h, struct rgpu_obj **graph);

/* Finds the host memory of all copies and gives it places; *bytes: how much there is in the first piece. */
int host_plan(struct shim_exec *e, uint64_t *bytes);
/* A copy's host side is another now: a place for it, in a new piece if need be. */
int host_replan(struct shim_exec *e, struct wnode *w);
/* Host functions and asked-for bytes get their names. */
int host_functions(struct shim_exec *e);
void host_functions_free(struct shim_exec *e);
struct hostfunc;
/* A new name for what a node calls from now on, in place of *id. */
int host_rename(struct shim_exec *e, const struct hostfunc *f, uint64_t *id);
/* The server's answer: with 0 the new name stands, and @was is kept for launches that are under way; else it is @was again. Gives
 * @status. */
int host_renamed(struct shim_exec *e, uint64_t *id, uint64_t was, int status);
void host_fetch(void *wnode); /* before a host function is called: what it wants to see comes down */
/* Rows from where they lie one behind the other with gaps, as in the operand, to the program's memory. */
void operand_scatter(const struct operand *o, const uint8_t *from);

/* ---- What comes down into ordinary memory (landing.c) ---- */

/* What has arrived is put where the program looks for it. Called by whatever may have seen work done. */
void landing_poll(void);
/* Bytes of [addr, addr + bytes) may be on their way. */
bool landing_pending(uint64_t addr, uint64_t bytes);
/* A place for @bytes in shared memory; *r says why there is none. */
struct landing *landing_new(struct rgpu_call *c, struct shim_exec *e, uint64_t bytes, uint32_t *bo, uint64_t *off, int *r);
void landing_add(struct landing *l, const struct operand *o);			/* its bytes are next */
void landing_sent(struct landing *l, const struct rgpu_call *c, uint64_t wire); /* the record is on its way, on that stream */
void landing_cancel(struct landing *l);
uint64_t landing_tag(const struct landing *l); /* the word that arrives last */
void landing_exec_gone(struct shim_exec *e);

#endif
