/* SPDX-License-Identifier: MIT */
/*
 * CUDA graphs as data, and stream capture: nodes with their parameters, edges, clones, updates, user objects. Both softgpu and
 * the client library are built from this; what a node does when it runs is the business of each (the backend, gb_…).
 */
#ifndef RGPU_GRAPH_H
#define RGPU_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All ABI versions of every name, exported. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

/* Returns from the calling function when @call gives an error. */
#define GTRY(call)                                                                                                               \
	do {                                                                                                                     \
		CUresult gtry_ = (CUresult)(call);                                                                               \
		if (gtry_ != CUDA_SUCCESS)                                                                                       \
			return gtry_;                                                                                            \
	} while (0)

/* ---- Handles (handle.c). Everything named by one begins with a struct ghandle. ---- */

enum gkind { GRAPH_KIND_GRAPH = 1, GRAPH_KIND_EXEC, GRAPH_KIND_NODE, GRAPH_KIND_USER };

struct ghandle {
	uint64_t value;
};

/* One lock for all of the model: graphs are for one thread at a time anyway, and nothing waits while it is held. */
extern pthread_mutex_t graph_lock;

CUresult ghandle_new(struct ghandle *h, enum gkind kind);
void ghandle_drop(struct ghandle *h);
void *ghandle_find(const void *handle, enum gkind kind); /* NULL: stale or invented */

/* ---- Nodes' parameters (params.c) ---- */

/* Work of a library that was captured: the backend's, shown as a kernel node that cannot be looked into. */
#define GRAPH_NODE_GUEST ((CUgraphNodeType)100)

struct gparam {
	uint32_t offset, bytes;
};

struct gkernel {
	CUfunction func; /* as given: one of the two */
	CUkernel kern;
	CUcontext ctx;
	unsigned int grid[3], block[3], shared;
	unsigned int nparams, param_bytes;
	struct gparam *param;
	unsigned char *packed;
	void **pointers; /* into packed: what GetParams hands out */
	unsigned int nattrs;
	CUlaunchAttribute *attr;
};

struct gcond {
	CUgraphConditionalHandle handle;
	CUgraphConditionalNodeType type;
	unsigned int size;
	CUcontext ctx;
	struct graph **body;
	CUgraph *handles; /* theirs: what phGraph_out points to */
};

struct gparams {
	CUgraphNodeType type;
	union {
		struct gkernel kernel;
		struct {
			CUDA_MEMCPY3D copy;
			CUcontext ctx;
		} memcpy;
		CUDA_MEMSET_NODE_PARAMS_v2 memset;
		CUDA_HOST_NODE_PARAMS_v2 host;
		struct graph *child;
		CUevent event;
		struct {
			CUDA_MEM_ALLOC_NODE_PARAMS_v2 p; /* accessDescs is ours */
			struct galloc *mem;
		} alloc;
		CUdeviceptr free;
		CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 memop; /* paramArray is ours */
		struct gcond cond;
		struct gguest *guest;
	};
};

/* Begins the backend's own struct for what was captured; the last one to let it go calls @drop. */
struct gguest {
	atomic_uint refs;
	void (*drop)(struct gguest *g);
};

/* Takes what the program gave, checked; @old, unless NULL, has what a change keeps. */
CUresult gparams_take(struct gparams *out, const CUgraphNodeParams *p, const struct gparams *old);
void gparams_show(const struct gparams *g, CUgraphNodeParams *p);
CUresult gparams_copy(struct gparams *to, const struct gparams *from, bool exec);
bool gparams_equal(const struct gparams *a, const struct gparams *b);
void gparams_free(struct gparams *g);
/* Packs a launch's parameters, from either form, as the kernel's layout says; fills in all of @k but the shape. */
CUresult gkernel_pack(struct gkernel *k, CUfunction f, void **params, void **extra);
CUresult gkernel_set_attrs(struct gkernel *k, const CUlaunchAttribute *attr, unsigned int n);

/* ---- Graphs (model.c) ---- */

struct gedge {
	struct gnode *node;
	CUgraphEdgeData data;
};

struct gnode {
	struct ghandle h;
	struct graph *graph;
	uint64_t id, origin; /* origin: id of the node that this one is a clone of */
	unsigned int at;     /* index in its graph */
	unsigned int mark;   /* for whoever walks the graph */
	struct gedge *in, *out;
	unsigned int nin, nout, in_room, out_room;
	bool disabled; /* of an executable graph */
	void *priv;    /* the backend's, of an executable graph */
	struct gparams p;
};

struct guse {
	struct userobj *object;
	unsigned int count;
};

struct graph {
	struct ghandle h;
	uint64_t id, origin;
	struct gnode **node; /* as they were added */
	unsigned int n, room;
	struct gnode *owner; /* a child graph or a conditional's body: dies with that node */
	unsigned int execs;  /* that live */
	bool exec;	     /* inside an executable graph: nodes without handles */
	struct guse *use;
	unsigned int nuse;
	CUgraphConditionalHandle *cond; /* handles made for it */
	unsigned int ncond;
};

struct graph *graph_new(void); /* NULL: no memory; no handle yet */
void graph_free(struct graph *g);
CUresult graph_copy(const struct graph *g, bool exec, struct graph **out);
struct gnode *graph_origin(struct graph *g, uint64_t origin, bool deep); /* the clone of that node */
bool graph_has(const struct graph *g, CUgraphNodeType type);		 /* deep */
/* An order in which every node comes after those that it depends on; false: there is a cycle. Sets at to it in @order[]. */
bool graph_sort(const struct graph *g, struct gnode **order);

/* The same, deep: child graphs are their nodes. A conditional is one step; its bodies are flattened by themselves (flat.c). */
struct gstep {
	struct gnode *node;
	unsigned int *dep; /* steps that come before */
	unsigned int ndep;
};
struct gflat {
	struct gstep *step;
	unsigned int n, room;
};
CUresult graph_flatten(struct graph *g, struct gflat *out);
void gflat_free(struct gflat *f);

CUresult node_new(struct graph *g, struct gparams *p, struct gnode **out); /* takes @p over when it succeeds */
void node_replace(struct gnode *n, struct gparams *p);			   /* takes @p over */
void node_free(struct gnode *n);
CUresult node_link(struct gnode *from, struct gnode *to, const CUgraphEdgeData *data); /* INVALID_VALUE: there already */
bool node_unlink(struct gnode *from, struct gnode *to, const CUgraphEdgeData *data);
CUresult graph_handle(struct graph *g); /* gives it one */

/* ---- Executable graphs (exec.c) ---- */

struct graph_exec {
	struct ghandle h;
	atomic_uint refs;
	pthread_mutex_t lock; /* launches and changes, one after the other; outside graph_lock */
	cuuint64_t flags;
	struct graph *graph; /* our own copy */
	CUgraph from;	     /* the graph that it was made of, and its id */
	uint64_t source;
	struct gnode **order; /* the top level, sorted */
	void *priv;
};

/* ---- Memory of graphs (mem.c) ---- */

struct galloc {
	struct galloc *next;
	CUdeviceptr dptr;
	uint64_t bytes;
	int device;
	uint64_t id;	   /* the backend's: the address may be another's by and by */
	unsigned int refs; /* nodes, clones included */
	bool live;	   /* between the alloc node and what frees it */
};

CUresult galloc_new(const CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p, struct galloc **out);
void galloc_ref(struct galloc *a);
void galloc_put(struct galloc *a);
bool galloc_known(CUdeviceptr dptr);
CUresult galloc_launch(struct graph_exec *x); /* what a launch allocates and frees; INVALID_VALUE when it may not */
/* A free outside of graphs; *ours: @dptr is a graph's memory, and this is what became of it. */
CUresult graph_mem_free(CUdeviceptr dptr, bool *ours);

/* ---- User objects (user.c) ---- */

void graph_unlock(void); /* of graph_lock; then runs the destructors that are due */

CUresult guses_copy(const struct graph *from, struct graph *to);
void guses_free(struct graph *g);

/* ---- Capture (capture.c) ---- */

/* What a stream handle means, from the backend. */
struct gstream {
	CUstream handle; /* resolved where that has a meaning: never NULL */
	CUcontext ctx;
	uint64_t key; /* names the stream, also a thread's default one */
	bool legacy;
	bool blocking; /* orders with the legacy stream */
};

extern atomic_uint graph_captures; /* that are under way: 0 nearly always */
extern atomic_uint graph_captured_events;

/*
 * Asked by every call that gives a stream work, before it does: whether that work is captured. An error when the stream's capture
 * is void, or when the legacy stream would have to wait for a stream that captures.
 */
CUresult graph_capturing(const struct gstream *s, bool *capturing);
/* Whether the legacy stream could be used now: to ask is no work, so it ends no capture. */
CUresult graph_legacy_asked(const struct gstream *s);
/* Adds a node behind what @s has captured; takes @p over, also on failure. */
CUresult graph_capture(const struct gstream *s, struct gparams *p);
/* Stream-ordered allocations. */
CUresult graph_capture_alloc(const struct gstream *s, int device, uint64_t bytes, CUdeviceptr *dptr);
CUresult graph_capture_free(const struct gstream *s, CUdeviceptr dptr);
/* A call that cannot be captured was made on a capturing stream: the capture is void. Returns the error. */
CUresult graph_capture_refuse(const struct gstream *s);
/* Nothing else may have come between: graph_capturing() said yes. */
CUresult graph_capture_record(const struct gstream *s, CUevent e, unsigned int flags);
/* cuEventRecord outside of captures: the event is a plain one again. */
void graph_event_recorded(CUevent e);
/* *done: the wait was dealt with, or refused; otherwise it is an ordinary one. */
CUresult graph_capture_wait(const struct gstream *s, CUevent e, unsigned int flags, bool *done);
CUresult graph_event_check(CUevent e);		  /* of a query or a wait of the host: CAPTURED_EVENT */
bool graph_is_captured_to(const struct graph *g); /* a capture under way adds to it */
void graph_event_gone(CUevent e);
void graph_stream_gone(uint64_t key);
/* A call that may not be made while a capture is under way, as the modes have it. */
CUresult graph_unsafe(void);
CUresult graph_unsafe_ctx(CUcontext ctx); /* a wait for all of a context */

/* ---- The backend ---- */

CUresult gb_enter(void);
CUresult gb_context(CUcontext *ctx); /* the current one for NULL */
bool gb_device(CUdevice device);
CUresult gb_stream(CUstream s, struct gstream *out);
CUresult gb_event(CUevent e, bool *recorded);
/* A function's or kernel's parameters (malloc'd), and the context that a CUfunction is of. */
CUresult gb_layout(CUfunction f, CUcontext *ctx, unsigned int *n, unsigned int *bytes, struct gparam **param);
CUresult gb_check(const struct gparams *p); /* refuses what the driver would at the call */
CUresult gb_alloc(int device, uint64_t bytes, CUdeviceptr *dptr, uint64_t *id);
void gb_alloc_free(CUdeviceptr dptr, uint64_t id);
void gb_log(const char *text);

/* Its graph is made; *bad: the node that does not work. */
CUresult gb_exec_new(struct graph_exec *x, struct gnode **bad);
void gb_exec_free(struct graph_exec *x);
/* A node of x->graph (or of a graph in it) has other parameters, or was switched on or off. */
CUresult gb_exec_changed(struct graph_exec *x, struct gnode *n);
CUresult gb_exec_launch(struct graph_exec *x, CUstream s);
CUresult gb_exec_upload(struct graph_exec *x, CUstream s);
CUresult gb_cond_new(CUcontext ctx, struct graph *g, unsigned int value, unsigned int flags, CUgraphConditionalHandle *out);
void gb_cond_free(CUgraphConditionalHandle h);

#endif
