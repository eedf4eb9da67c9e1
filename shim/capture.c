// SPDX-License-Identifier: MIT
/* Calls on streams that capture: they become nodes of the client's graph; a library's work is captured by the server. */
#include <stdlib.h>
#include <string.h>
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/handles.h"
#include "shim/known.h"
#include "shim/session.h"
#include "shim/thread.h"

struct gstream capture_stream(const struct rgpu_call *c, uint64_t stream)
{
	struct rgpu_obj *obj = stream < RGPU_SENTINELS_stream ? NULL : handle_find(KIND_stream, stream);
	struct gstream s = {
		.handle = (CUstream)stream,
		.ctx = (CUcontext)c->ctx,
		.key = stream,
		.legacy = stream < (uint64_t)CU_STREAM_PER_THREAD,
		.blocking = !obj || !(obj->field[0] & CU_STREAM_NON_BLOCKING),
	};

	/* A thread's own stream, of each context: no handle's number. */
	if (stream == (uint64_t)CU_STREAM_PER_THREAD)
		s.key = 1ull << 63 | ((uint64_t)thread_get() << 8 ^ HANDLE_INDEX(c->ctx));
	return s;
}

int rgpu_capture(struct rgpu_call *c, uint64_t stream)
{
	struct gstream s;

	known_gives(c, stream);
	if (__builtin_expect(!atomic_load_explicit(&graph_captures, memory_order_acquire), 1))
		return 0;
	s = capture_stream(c, stream);
	c->capture_stream = stream;
	return graph_capturing(&s, &c->capturing);
}

int rgpu_capture_refuse(struct rgpu_call *c)
{
	struct gstream s = capture_stream(c, c->capture_stream);

	return graph_capture_refuse(&s);
}

static int add(struct rgpu_call *c, struct gparams *p)
{
	struct gstream s = capture_stream(c, c->capture_stream);

	return graph_capture(&s, p);
}

int capture_launch(struct rgpu_call *c, const CUlaunchConfig *cfg, bool cooperative, CUfunction f, void **params, void **extra)
{
	CUlaunchAttribute attr[cfg->numAttrs + 1];
	struct gparams p = {
		.type = CU_GRAPH_NODE_TYPE_KERNEL,
		.kernel = {.func = f,
			   .ctx = (CUcontext)c->ctx,
			   .grid = {cfg->gridDimX, cfg->gridDimY, cfg->gridDimZ},
			   .block = {cfg->blockDimX, cfg->blockDimY, cfg->blockDimZ},
			   .shared = cfg->sharedMemBytes},
	};
	unsigned n = cfg->numAttrs;
	CUresult r;

	if (n)
		memcpy(attr, cfg->attrs, n * sizeof(*attr));
	if (cooperative)
		attr[n++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	r = gkernel_pack(&p.kernel, f, params, extra);
	if (!r)
		r = gkernel_set_attrs(&p.kernel, attr, n);
	if (!r)
		r = gb_check(&p);
	if (r) {
		gparams_free(&p);
		return r;
	}
	return add(c, &p);
}

static void place(CUmemorytype *type, const void **host, CUdeviceptr *device, uint64_t at, bool is_device)
{
	*type = is_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	*host = is_device ? NULL : (const void *)at;
	*device = is_device ? at : 0;
}

int capture_copy(struct rgpu_call *c, uint64_t dst, bool dst_device, uint64_t src, bool src_device, uint64_t bytes)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.ctx = (CUcontext)c->ctx}};
	CUDA_MEMCPY3D *m = &p.memcpy.copy;

	if (!bytes)
		return 0;
	*m = (CUDA_MEMCPY3D){.WidthInBytes = bytes, .Height = 1, .Depth = 1};
	place(&m->srcMemoryType, &m->srcHost, &m->srcDevice, src, src_device);
	place(&m->dstMemoryType, (const void **)&m->dstHost, &m->dstDevice, dst, dst_device);
	return add(c, &p);
}

int capture_box(struct rgpu_call *c, const struct box *b)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.ctx = (CUcontext)c->ctx}};
	CUDA_MEMCPY3D *m = &p.memcpy.copy;

	*m = (CUDA_MEMCPY3D){.WidthInBytes = b->width, .Height = b->height, .Depth = b->depth};
	place(&m->srcMemoryType, &m->srcHost, &m->srcDevice, b->src.at, b->src.device);
	place(&m->dstMemoryType, (const void **)&m->dstHost, &m->dstDevice, b->dst.at, b->dst.device);
	m->srcPitch = b->src.pitch;
	m->dstPitch = b->dst.pitch;
	m->srcHeight = b->src.pitch ? (size_t)(b->src.slice / b->src.pitch) : 0;
	m->dstHeight = b->dst.pitch ? (size_t)(b->dst.slice / b->dst.pitch) : 0;
	if (b->src.is_array) {
		m->srcMemoryType = CU_MEMORYTYPE_ARRAY;
		m->srcArray = (CUarray)b->src.array;
		m->srcXInBytes = b->src.x;
		m->srcY = b->src.y;
		m->srcZ = b->src.z;
	}
	if (b->dst.is_array) {
		m->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		m->dstArray = (CUarray)b->dst.array;
		m->dstXInBytes = b->dst.x;
		m->dstY = b->dst.y;
		m->dstZ = b->dst.z;
	}
	return add(c, &p);
}

int capture_host(struct rgpu_call *c, CUhostFn fn, void *data)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = fn, .userData = data}};

	return add(c, &p);
}

int capture_alloc(struct rgpu_call *c, uint64_t bytes, CUdeviceptr *dptr)
{
	struct gstream s = capture_stream(c, c->capture_stream);

	return graph_capture_alloc(&s, ctx_of(c->context)->device->ordinal, bytes, dptr);
}

int capture_free(struct rgpu_call *c, CUdeviceptr dptr)
{
	struct gstream s = capture_stream(c, c->capture_stream);

	return graph_capture_free(&s, dptr);
}

/* ---- What the table's calls become (capture= in api/cuda.api) ---- */

static int fill(struct rgpu_call *c, CUdeviceptr dst, size_t pitch, unsigned value, unsigned bytes, size_t width, size_t height)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
			    .memset = {dst, pitch, value, bytes, width, height, (CUcontext)c->ctx}};

	return width && height ? add(c, &p) : 0;
}

#define FILL(bits, type)                                                                                                         \
	int capture_fill##bits(struct rgpu_call *c, CUdeviceptr dst, type value, size_t n, CUstream s);                          \
	int capture_fill##bits(struct rgpu_call *c, CUdeviceptr dst, type value, size_t n, CUstream s)                           \
	{                                                                                                                        \
		(void)s;                                                                                                         \
		return fill(c, dst, 0, value, bits / 8, n, 1);                                                                   \
	}                                                                                                                        \
	int capture_fill2d##bits(struct rgpu_call *c, CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,    \
				 CUstream s);                                                                                    \
	int capture_fill2d##bits(struct rgpu_call *c, CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,    \
				 CUstream s)                                                                                     \
	{                                                                                                                        \
		(void)s;                                                                                                         \
		return fill(c, dst, pitch, value, bits / 8, width, height);                                                      \
	}

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)

/* The union's halves lie alike. */
static int memop(struct rgpu_call *c, CUstreamBatchMemOpType op, CUdeviceptr addr, uint64_t value, unsigned flags)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memop = {.ctx = (CUcontext)c->ctx, .count = 1}};
	CUstreamBatchMemOpParams *o = calloc(1, sizeof(*o));

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->operation = op;
	o->waitValue.address = addr;
	o->waitValue.value64 = value;
	o->waitValue.flags = flags;
	p.memop.paramArray = o;
	return add(c, &p);
}

#define MEMOP(name, type, op)                                                                                                    \
	int capture_##name(struct rgpu_call *c, CUstream s, CUdeviceptr addr, type value, unsigned int flags);                   \
	int capture_##name(struct rgpu_call *c, CUstream s, CUdeviceptr addr, type value, unsigned int flags)                    \
	{                                                                                                                        \
		(void)s;                                                                                                         \
		return memop(c, op, addr, value, flags);                                                                         \
	}

MEMOP(wait32, unsigned int, CU_STREAM_MEM_OP_WAIT_VALUE_32)
MEMOP(wait64, unsigned long long, CU_STREAM_MEM_OP_WAIT_VALUE_64)
MEMOP(write32, unsigned int, CU_STREAM_MEM_OP_WRITE_VALUE_32)
MEMOP(write64, unsigned long long, CU_STREAM_MEM_OP_WRITE_VALUE_64)

/* ---- Fragments ---- */

static void fragment_drop(struct gguest *head)
{
	struct fragment *f = (struct fragment *)head;
	struct rgpu_call c = {.op = OP_GRAPH_DROP, .session = f->session};

	rpc_GRAPH_DROP(&c, f->graph->handle);
	rgpu_retire(f->graph);
	free(f);
}

int rgpu_fragment_begin(struct rgpu_call *c)
{
	struct rgpu_call b = *c;
	struct rec_CAPTURE_BEGIN *rec;

	b.op = OP_CAPTURE_BEGIN;
	rec = rgpu_begin(&b, 0, 0, sizeof(*rec));
	if (!rec)
		return b.status;
	*rec = (struct rec_CAPTURE_BEGIN){.ctx = c->ctx, .hStream = c->capture_stream};
	call_part(&b);
	return 0;
}

/* The capture at the server ends whatever became of the call. */
int rgpu_fragment_end(struct rgpu_call *c, int r)
{
	struct gparams p = {.type = GRAPH_NODE_GUEST};
	struct fragment *f = calloc(1, sizeof(*f));
	struct rec_CAPTURE_END *rec;
	struct rgpu_call e = *c;
	int s = 0;

	e.op = OP_CAPTURE_END;
	e.mute = true;
	if (f) {
		f->session = c->session;
		f->head.drop = fragment_drop;
		atomic_init(&f->head.refs, 1);
		f->graph = handle_new(KIND_graph, c->context);
	}
	rec = rgpu_begin(&e, 0, 0, sizeof(*rec));
	if (!rec)
		s = e.status;
	if (rec) {
		*rec = (struct rec_CAPTURE_END){
			.ctx = c->ctx, .hStream = c->capture_stream, .graph = f && f->graph ? f->graph->handle : 0};
		rgpu_send(&e);
	}
	if (!f || !f->graph || s) {
		if (f && f->graph)
			rgpu_retire(f->graph);
		free(f);
		return r ? r : s ? s : CUDA_ERROR_OUT_OF_MEMORY;
	}
	p.guest = &f->head;
	s = add(c, &p);
	return r ? r : s;
}
