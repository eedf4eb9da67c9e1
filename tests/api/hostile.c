// SPDX-License-Identifier: MIT
/* Records that no library of ours would write: the worker answers each with a status and goes on. */
#include <pthread.h>
#include <rgpu_wire.h>
#include "api/graph_wire.h"
#include "rgpu_ops.h"
#include "shim/call.h"
#include "tests/api/serve.h"

#define ROUNDS 40000

static const uint16_t ops[] = {
	OP_OPEN,
	OP_LANE_RESET,
	OP_CTX_RETAIN,
	OP_CTX_RELEASE,
	OP_CTX_CREATE,
	OP_CTX_DESTROY,
	OP_CTX_SYNC,
	OP_CTX_WAIT,
	OP_PEER,
	OP_LEASE,
	OP_UNLEASE,
	OP_H2D,
	OP_D2H,
	OP_D2D,
	OP_D2D_PEER,
	OP_H2A,
	OP_A2H,
	OP_BOX,
	OP_TEXOBJ_CREATE,
	OP_TEXOBJ_DESTROY,
	OP_STREAM_SYNC,
	OP_EVENT_SYNC,
	OP_LOAD_BEGIN,
	OP_LOAD_DATA,
	OP_LOAD_OPTION,
	OP_LOAD_END,
	OP_LOAD_TABLE,
	OP_UNLOAD,
	OP_GLOBAL,
	OP_FUNC_SET,
	OP_FUNC_CACHE,
	OP_OCCUPANCY,
	OP_CLUSTERS,
	OP_TENSOR_MAP,
	OP_TENSOR_MAP_ADDRESS,
	OP_LAUNCH,
	OP_GRAPH_BEGIN,
	OP_GRAPH_NODE,
	OP_GRAPH_COND,
	OP_GRAPH_ADOPT,
	OP_GRAPH_MAKE,
	OP_GRAPH_EXEC_DESTROY,
	OP_GRAPH_LAUNCH,
	OP_GRAPH_HOST,
	OP_GRAPH_PUT,
	OP_GRAPH_GET,
	OP_GRAPH_ENABLE,
	OP_GRAPH_UPLOAD,
	OP_GRAPH_DROP,
	OP_CAPTURE_END,
	OP_HOST_DONE,
	OP_LINK_CREATE,
	OP_LINK_DATA,
	OP_LINK_ADD,
	OP_LINK_COMPLETE,
	OP_LINK_IMAGE,
	OP_LINK_LOG,
	OP_LINK_DESTROY,
	OP_LOAD_LOG,
	OP_EVENT_WATCH,
	OP_STREAM_WATCH,
	OP_MEMORY_WATCH,
	OP_PRINT,
	OP_VISIBLE,
	OP_MEM_CREATE,
	OP_MEM_RELEASE,
	OP_MEM_MAP,
	OP_MEM_UNMAP,
	OP_MEM_ACCESS,
	OP_MEM_RETAIN,
	OP_SHARE,
	OP_UNSHARE,
	OP_SHARE_UP,
	OP_SHARE_DOWN,
	OP_SHARE_VAR,
	OP_cuCtxSetLimit,
	OP_cuMemGetInfo_v2,
	OP_cuArray3DCreate_v2,
	OP_cuArrayDestroy,
	OP_cuMipmappedArrayCreate,
	OP_cuMipmappedArrayGetLevel,
	OP_cuMipmappedArrayDestroy,
	OP_cuMemsetD8Async,
	OP_cuMemsetD2D32Async,
	OP_cuStreamCreateWithPriority,
	OP_cuStreamDestroy_v2,
	OP_cuStreamQuery,
	OP_cuStreamWaitEvent,
	OP_cuStreamWriteValue32_v2,
	OP_cuEventCreate,
	OP_cuEventDestroy_v2,
	OP_cuEventRecord,
	OP_cuEventQuery,
	OP_cuEventElapsedTime_v2,
	OP_cublasCreate_v2,
	OP_cublasDestroy_v2,
	OP_cublasSetStream_v2,
	OP_cublasSetPointerMode_v2,
	OP_cublasSgemm_v2,
	OP_cublasSdot_v2,
	0xffff,
	0x0fff,
};

static unsigned seed = 1;

static uint64_t rnd(void)
{
	return (uint64_t)rand_r(&seed) << 42 ^ (uint64_t)rand_r(&seed) << 21 ^ rand_r(&seed);
}

/* Half the words mean something: handles that live, that died, addresses that are leased, small and huge numbers. */
static uint64_t good[16];
static unsigned ngood;

static uint64_t word(void)
{
	switch (rnd() % 8) {
	case 0:
	case 1:
	case 2:
		return good[rnd() % ngood];
	case 3:
		return rnd() % 70;
	case 4:
		return good[rnd() % ngood] + rnd() % 4096 * 8;
	case 5:
		return UINT64_MAX - rnd() % 70;
	case 6:
		/* A handle of some kind, which this client never made. */
		return 0x5247ull << 48 | (rnd() % 32) << 43 | (rnd() % 4) << 24 | rnd() % 40;
	default:
		return rnd();
	}
}

/* One record of up to 20 words. A fence's reply is waited for; nothing is said about its status. */
static int send_one(uint16_t op, bool fence)
{
	struct rgpu_call c;
	unsigned n = rnd() % 20;
	uint64_t *body;

	/* What would rightly end this very test: its own context, and waits for what nobody will do. */
	if (op == OP_CTX_RELEASE || op == OP_CTX_DESTROY || op == OP_LAUNCH)
		n %= 3;
	if (rgpu_enter(&c, op))
		return 1;
	body = rgpu_begin(&c, fence ? RGPU_REC_FENCE : 0, 0, n * 8);
	if (!body)
		return 1;
	for (unsigned i = 0; i < n; i++)
		body[i] = word();
	if (n && (op == OP_CTX_RELEASE || op == OP_CTX_DESTROY))
		body[0] = rnd();
	if (fence)
		rgpu_fence(&c, NULL, 0);
	else
		rgpu_send(&c);
	return 0;
}

/* Loading, by hand: an image of what a client's library would never send, or the same module on two lanes at a time. */

#define MODULE	(0x5247ull << 48 | 4ull << 43 | 1ull << 24 | 5000)
#define IMAGE	49152u
#define PART	40000u
#define LOADERS 3
#define LOADS	1500

static int load_begin(uint64_t bytes)
{
	struct rec_LOAD_BEGIN *b;
	struct rgpu_call c;

	if (rgpu_enter(&c, OP_LOAD_BEGIN) || !(b = rgpu_begin(&c, 0, 0, sizeof(*b))))
		return 1;
	*b = (struct rec_LOAD_BEGIN){.ctx = c.ctx, .module = MODULE, .bytes = bytes};
	rgpu_send(&c);
	return 0;
}

static int load_data(const void *image, uint32_t n)
{
	struct rec_LOAD_DATA *b;
	struct rgpu_call c;

	if (rgpu_enter(&c, OP_LOAD_DATA) || !(b = rgpu_begin(&c, 0, 0, sizeof(*b) + n)))
		return 1;
	*b = (struct rec_LOAD_DATA){.module = MODULE, .bytes = n, .inlined = n};
	memcpy(b + 1, image, n);
	rgpu_send(&c);
	return 0;
}

static int load_end(void)
{
	struct rec_LOAD_END *b;
	struct rgpu_call c;

	if (rgpu_enter(&c, OP_LOAD_END) || !(b = rgpu_begin(&c, RGPU_REC_FENCE, 0, sizeof(*b))))
		return -1;
	c.mute = true;
	*b = (struct rec_LOAD_END){.ctx = c.ctx, .module = MODULE};
	return rgpu_fence(&c, NULL, 0);
}

static int unload(void)
{
	struct rec_UNLOAD *b;
	struct rgpu_call c;

	if (rgpu_enter(&c, OP_UNLOAD) || !(b = rgpu_begin(&c, 0, 0, sizeof(*b))))
		return 1;
	*b = (struct rec_UNLOAD){.ctx = c.ctx, .module = MODULE};
	rgpu_send(&c);
	return 0;
}

static void *loader(void *ctx)
{
	static const uint8_t image[PART];
	long bad = 0;

	cuCtxSetCurrent(ctx);
	for (int i = 0; i < LOADS && !bad; i++) {
		bad = load_begin(IMAGE) || load_data(image, PART) || load_data(image, PART);
		if (!bad && i % 3 == 0)
			bad = load_end() < 0;
		bad = bad || unload();
	}
	return (void *)bad;
}

/* Functions of the client's that the stream will never come to, asked for by two at a time. */
static void *ask_next(void *state)
{
	struct rgpu_call c = {0};
	uint64_t id = 0, number = 0;
	struct rep_HOST_NEXT reply = {0};
	struct rec_HOST_DONE *b;

	cuCtxSetCurrent((CUcontext)good[0]);
	if (rgpu_enter(&c, OP_HOST_NEXT))
		return NULL;
	c.mute = c.unordered = true;
	if (!rgpu_begin(&c, RGPU_REC_FENCE, 0, 0) || rgpu_fence(&c, &reply, sizeof(reply)))
		return NULL;
	id = reply.id;
	number = reply.number;
	*(int *)state = reply.state;
	if (!rgpu_enter(&c, OP_HOST_DONE)) {
		c.mute = c.unordered = true;
		b = rgpu_begin(&c, 0, 0, sizeof(*b));
		if (b) {
			*b = (struct rec_HOST_DONE){.number = number};
			rgpu_send(&c);
		}
	}
	return (void *)id;
}

static void refused_functions(void)
{
	int state[2] = {0};
	pthread_t t[2];
	void *id[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, ask_next, &state[i]);
	for (uint64_t i = 0; i < 2; i++) {
		struct rgpu_call c;
		struct rec_HOST_FUNC *b;

		if (rgpu_enter(&c, OP_HOST_FUNC) || !(b = rgpu_begin(&c, 0, 0, sizeof(*b))))
			break;
		*b = (struct rec_HOST_FUNC){.ctx = c.ctx, .hStream = 77, .id = 1000 + i};
		rgpu_send(&c);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &id[i]);
	ok((uintptr_t)id[0] + (uintptr_t)id[1] == 2001 && state[0] == -1 && state[1] == -1,
	   "each of two functions that a record gave in vain is told to one who asked");
	is_int(cuCtxSynchronize(), CUDA_ERROR_INVALID_HANDLE, "the records' own failure is told, too");
}

/* A condition that is no graph's, or another graph's. */
static int make_conditional(uint64_t handle)
{
	const uint64_t graph = 0x5247ull << 48 | 12ull << 43 | 1ull << 24 | 7000, exec = graph + (1ull << 43);
	struct rgpu_wire_cond w = {.handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1};
	struct rec_GRAPH_BEGIN *begin;
	struct rec_GRAPH_NODE *node;
	struct rec_GRAPH_MAKE *make;
	struct rgpu_call c;

	if (rgpu_enter(&c, OP_GRAPH_BEGIN) || !(begin = rgpu_begin(&c, 0, 0, sizeof(*begin))))
		return -1;
	*begin = (struct rec_GRAPH_BEGIN){.ctx = c.ctx, .graph = graph};
	rgpu_send(&c);
	if (rgpu_enter(&c, OP_GRAPH_NODE) || !(node = rgpu_begin(&c, 0, 0, sizeof(*node) + sizeof(w))))
		return -1;
	*node = (struct rec_GRAPH_NODE){.ctx = c.ctx, .owner = graph, .type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .bytes = sizeof(w)};
	memcpy(node + 1, &w, sizeof(w));
	rgpu_send(&c);
	if (rgpu_enter(&c, OP_GRAPH_MAKE) || !(make = rgpu_begin(&c, RGPU_REC_FENCE, 0, sizeof(*make))))
		return -1;
	*make = (struct rec_GRAPH_MAKE){.ctx = c.ctx, .graph = graph, .exec = exec};
	return rgpu_fence(&c, NULL, 0);
}

static void conditions(void)
{
	CUgraphConditionalHandle h;
	CUcontext ctx;
	CUgraph g;

	must(cuCtxGetCurrent(&ctx));
	must(cuGraphCreate(&g, 0));
	must(cuGraphConditionalHandleCreate(&h, g, ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	is_int(make_conditional(0x1234), CUDA_ERROR_INVALID_VALUE, "a condition that nobody made");
	is_int(make_conditional(h), CUDA_ERROR_INVALID_VALUE, "another graph's condition");
	must(cuGraphDestroy(g));
}

static void loads(CUcontext ctx)
{
	/* A wrapper, as in a program's data: its pointer is for the driver of that same process. */
	const struct {
		uint32_t magic, version;
		uint64_t container, unused;
	} wrapper = {0x466243b1, 1, 0x1000, 0};
	/* A container that says more than there is. */
	const struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
	} container = {0xba55ed50, 1, 16, 1ull << 40};
	pthread_t t[LOADERS];
	void *bad;
	long sum = 0;

	load_begin(sizeof(wrapper));
	load_data(&wrapper, sizeof(wrapper));
	is_int(load_end(), CUDA_ERROR_INVALID_IMAGE, "a pointer that came over the wire is not followed");
	unload();
	load_begin(sizeof(container));
	load_data(&container, sizeof(container));
	is_int(load_end(), CUDA_ERROR_INVALID_IMAGE, "a container is not believed");
	unload();
	for (int i = 0; i < LOADERS; i++)
		pthread_create(&t[i], NULL, loader, ctx);
	for (int i = 0; i < LOADERS; i++) {
		pthread_join(t[i], &bad);
		sum += (long)bad;
	}
	is_int(sum, 0, "%d threads load and unload one and the same module, and the session lives", LOADERS);
}

/* A record that begins an image of a GiB, or unloads it. What the server says. */
static int big_image(uint16_t op, uint64_t module)
{
	struct rec_LOAD_BEGIN *b;
	struct rec_UNLOAD *u;
	struct rgpu_call c;

	if (rgpu_enter(&c, op))
		return -1;
	c.mute = true;
	b = rgpu_begin(&c, RGPU_REC_FENCE, 0, sizeof(*b));
	if (!b)
		return -1;
	if (op == OP_LOAD_BEGIN) {
		*b = (struct rec_LOAD_BEGIN){.ctx = c.ctx, .module = module, .bytes = 1 << 30};
	} else {
		u = (struct rec_UNLOAD *)b;
		*u = (struct rec_UNLOAD){.ctx = c.ctx, .module = module};
	}
	return rgpu_fence(&c, NULL, 0);
}

/* Images that come in and never end: the server keeps so much for a session, and has it back. */
static void images(void)
{
	unsigned n = 0, again = 0;
	CUlinkState l;

	while (n < 100 && !big_image(OP_LOAD_BEGIN, MODULE + 1 + n))
		n++;
	ok(n >= 2 && n <= 8, "of images of a GiB that never come to an end there are %u at once", n);
	is_int(big_image(OP_LOAD_BEGIN, MODULE + 1 + n), CUDA_ERROR_OUT_OF_MEMORY, "the next has no memory");
	must(cuLinkCreate(0, NULL, NULL, &l));
	ok(cuLinkAddData(l, CU_JIT_INPUT_PTX, ".version 8.0\n.target sm_80\n.address_size 64\n", 46, "a", 0, NULL, NULL) != 0,
	   "nor has what is to be linked");
	for (unsigned i = 0; i < n; i++)
		again += !big_image(OP_UNLOAD, MODULE + 1 + i);
	is_int(again, n, "they are unloaded");
	for (unsigned i = 0; i < 10; i++)
		cuStreamQuery(NULL);
	is_cu(cuLinkAddData(l, CU_JIT_INPUT_PTX, ".version 8.0\n.target sm_80\n.address_size 64\n", 46, "a", 0, NULL, NULL),
	      CUDA_SUCCESS);
	must(cuLinkDestroy(l));
	for (again = 0; again < n && !big_image(OP_LOAD_BEGIN, MODULE + 1 + again); again++)
		;
	is_int(again, n, "and then there is room for as many");
	while (again)
		big_image(OP_UNLOAD, MODULE + again--);
}

/* Graphs, by hand: nodes that say anything, and launches with any ranges of host memory. */

#define GRAPH (0x5247ull << 48 | 12ull << 43 | 1ull << 24 | 5000)
#define EXEC  (0x5247ull << 48 | 13ull << 43 | 1ull << 24 | 5000)

static void *begin(struct rgpu_call *c, uint16_t op, bool fence, size_t bytes)
{
	if (rgpu_enter(c, op))
		return NULL;
	return rgpu_begin(c, fence ? RGPU_REC_FENCE : 0, 0, bytes);
}

static int any_node(bool changes)
{
	/* None that calls the client or waits for it. */
	static const uint32_t types[] = {0, 1, 2, 5, 6, 7, 100, 13, 77};
	struct rec_GRAPH_NODE *b;
	struct rgpu_call c;
	unsigned words = rnd() % 24, node = rnd() % 3;
	uint64_t *w;

	b = begin(&c, OP_GRAPH_NODE, false, sizeof(*b) + words * 8);
	if (!b)
		return 1;
	*b = (struct rec_GRAPH_NODE){.ctx = c.ctx,
				     .owner = changes ? EXEC : GRAPH,
				     .changes = changes,
				     .type = types[rnd() % (sizeof(types) / sizeof(*types))],
				     .node = node,
				     .ndeps = rnd() % 4 ? 0 : rnd() % 4,
				     .bytes = rnd() % 2 ? words * 8 : (uint32_t)rnd() % 300};
	w = (uint64_t *)(b + 1);
	for (unsigned i = 0; i < words; i++)
		w[i] = word();
	rgpu_send(&c);
	return 0;
}

static int any_launch(uint64_t stream)
{
	struct rec_GRAPH_LAUNCH *b;
	unsigned words = rnd() % 12;
	struct rgpu_call c;
	uint64_t *w;

	b = begin(&c, OP_GRAPH_LAUNCH, false, sizeof(*b) + words * 8);
	if (!b)
		return 1;
	*b = (struct rec_GRAPH_LAUNCH){.ctx = c.ctx,
				       .exec = EXEC,
				       .hStream = stream,
				       .up = rnd() % 4,
				       .down = rnd() % 3 ? 0 : rnd() % 3,
				       .inlined = rnd() % 2 ? 0 : rnd() % 100,
				       .tagged = rnd() % 5 == 0};
	w = (uint64_t *)(b + 1);
	for (unsigned i = 0; i < words; i++)
		w[i] = rnd() % 2 ? rnd() % 64 : word();
	rgpu_send(&c);
	return 0;
}

static int one_node(uint32_t type, const void *what, uint32_t bytes)
{
	struct rec_GRAPH_NODE *b;
	struct rgpu_call c;

	b = begin(&c, OP_GRAPH_NODE, false, sizeof(*b) + bytes);
	if (!b)
		return 1;
	*b = (struct rec_GRAPH_NODE){.ctx = c.ctx, .owner = GRAPH, .type = type, .bytes = bytes};
	if (bytes)
		memcpy(b + 1, what, bytes);
	rgpu_send(&c);
	return 0;
}

/* What the server says of a graph with this one node; it is gone again afterwards. */
static int made_of(uint32_t type, const void *what, uint32_t bytes, bool keep)
{
	struct rec_GRAPH_EXEC_DESTROY *d;
	struct rec_GRAPH_BEGIN *b;
	struct rec_GRAPH_MAKE *m;
	struct rgpu_call c;
	int r;

	b = begin(&c, OP_GRAPH_BEGIN, false, sizeof(*b));
	if (!b)
		return -1;
	*b = (struct rec_GRAPH_BEGIN){.ctx = c.ctx, .graph = GRAPH, .host_bytes = 64};
	rgpu_send(&c);
	if (one_node(type, what, bytes) || !(m = begin(&c, OP_GRAPH_MAKE, true, sizeof(*m))))
		return -1;
	c.mute = true;
	*m = (struct rec_GRAPH_MAKE){.ctx = c.ctx, .graph = GRAPH, .exec = EXEC};
	r = rgpu_fence(&c, NULL, 0);
	if (r || keep)
		return r;
	d = begin(&c, OP_GRAPH_EXEC_DESTROY, false, sizeof(*d));
	if (!d)
		return -1;
	*d = (struct rec_GRAPH_EXEC_DESTROY){.exec = EXEC};
	rgpu_send(&c);
	return 0;
}

/* Lengths whose product is a small number, if one computes with too few bits; operations whose address lies elsewhere. */
static void nodes(uint64_t d)
{
	struct rgpu_wire_copy w = {.src = {.at = d, .place = RGPU_PLACE_DEVICE, .pitch = 64, .height = 1},
				   .dst = {.at = d + 4096, .place = RGPU_PLACE_DEVICE, .pitch = 64, .height = 1},
				   .width = 64,
				   .height = 1,
				   .depth = 1};
	CUstreamBatchMemOpParams op = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .address = d + (1 << 20) - 4}};

	is_int(made_of(CU_GRAPH_NODE_TYPE_MEMCPY, &w, sizeof(w), false), 0, "a node by hand");
	w.height = 1;
	w.depth = (1ull << 44) + 1;
	w.src.pitch = w.dst.pitch = w.src.height = w.dst.height = 1ull << 42;
	is_int(made_of(CU_GRAPH_NODE_TYPE_MEMCPY, &w, sizeof(w), false), CUDA_ERROR_INVALID_VALUE, "extents that wrap round");
	w.height = 1024;
	w.depth = 1;
	w.src.pitch = w.dst.pitch = 0;
	is_int(made_of(CU_GRAPH_NODE_TYPE_MEMCPY, &w, sizeof(w), false), CUDA_ERROR_INVALID_VALUE, "a pitch that holds no row");
	is_int(made_of(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &op, sizeof(op), false), 0, "a write of a word");
	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op.writeValue.address = (uint64_t)-8;
	is_int(made_of(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &op, sizeof(op), false), CUDA_ERROR_INVALID_VALUE, "a write to nowhere");
	op.writeValue.address = d;
	op.operation = (CUstreamBatchMemOpType)77;
	is_int(made_of(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &op, sizeof(op), false), CUDA_ERROR_INVALID_VALUE,
	       "an operation that nobody knows has its address somewhere");
}

/* Launches that move nothing, again and again, while the stream is held: what they need must live until it goes on. */
static void empty_moves(CUdeviceptr flag, CUstream s)
{
	struct rec_GRAPH_EXEC_DESTROY *e;
	struct rec_GRAPH_LAUNCH *b;
	struct rgpu_call c;
	int bad;

	must(cuMemsetD32(flag, 0, 1));
	must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	bad = made_of(CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0, true);
	for (int i = 0; i < 500 && !bad; i++) {
		struct rgpu_wire_range r[2] = {{0, 0}, {0, 0}};

		b = begin(&c, OP_GRAPH_LAUNCH, false, sizeof(*b) + sizeof(r));
		bad = !b;
		if (bad)
			break;
		*b = (struct rec_GRAPH_LAUNCH){.ctx = c.ctx, .exec = EXEC, .hStream = (uint64_t)s, .up = 1, .down = 1};
		memcpy(b + 1, r, sizeof(r));
		rgpu_send(&c);
	}
	must(cuMemsetD32Async(flag, 1, 1, CU_STREAM_PER_THREAD));
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	e = begin(&c, OP_GRAPH_EXEC_DESTROY, false, sizeof(*e));
	bad = bad || !e;
	if (e) {
		*e = (struct rec_GRAPH_EXEC_DESTROY){.exec = EXEC};
		rgpu_send(&c);
	}
	is_int(bad, 0, "launches that move nothing");
}

static void graphs(uint64_t stream)
{
	struct rgpu_call c;
	int bad = 0, made = 0;

	for (int i = 0; i < 2000 && !bad; i++) {
		struct rec_GRAPH_BEGIN *b = begin(&c, OP_GRAPH_BEGIN, false, sizeof(*b));
		struct rec_GRAPH_EXEC_DESTROY *d;
		struct rec_GRAPH_MAKE *m;

		if (!b)
			break;
		*b = (struct rec_GRAPH_BEGIN){.ctx = c.ctx, .graph = GRAPH, .host_bytes = rnd() % 8 ? rnd() % 5000 : word()};
		rgpu_send(&c);
		for (unsigned n = rnd() % 3; n-- && !bad;)
			bad = any_node(false);
		m = begin(&c, OP_GRAPH_MAKE, true, sizeof(*m));
		if (!m)
			break;
		c.mute = true;
		*m = (struct rec_GRAPH_MAKE){.ctx = c.ctx, .graph = GRAPH, .exec = EXEC};
		made += !rgpu_fence(&c, NULL, 0);
		for (unsigned n = rnd() % 4; n-- && !bad;)
			bad = any_node(true) || any_launch(stream);
		d = begin(&c, OP_GRAPH_EXEC_DESTROY, false, sizeof(*d));
		bad = bad || !d;
		if (d) {
			*d = (struct rec_GRAPH_EXEC_DESTROY){.exec = EXEC};
			rgpu_send(&c);
		}
	}
	ok(!bad && made > 100, "graphs of rubbish, %d of them executable, and the session lives", made);
}

int main(void)
{
	CUdeviceptr d, e, f;
	int bad = 0, v = 0;
	CUstream s;
	CUevent ev;
	CUmodule m;

	serve(NULL, 2);
	good[ngood++] = (uint64_t)primary();
	refused_functions();
	conditions();
	must(cuStreamCreate(&s, 0));
	must(cuEventCreate(&ev, 0));
	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	must(cuMemAlloc(&d, 1 << 20));
	good[ngood++] = (uint64_t)s;
	good[ngood++] = (uint64_t)ev;
	good[ngood++] = (uint64_t)m;
	good[ngood++] = d;
	good[ngood++] = 0;
	good[ngood++] = 1;
	for (int i = 0; i < ROUNDS && !bad; i++)
		bad = send_one(ops[rnd() % (sizeof(ops) / sizeof(*ops))], rnd() % 4 == 0);
	is_int(bad, 0, "%d records of rubbish, and the session lives", ROUNDS);
	loads((CUcontext)good[0]);
	graphs((uint64_t)s);
	/* Earlier failures are told by now, or by one of these. */
	for (int i = 0; i < 10; i++)
		cuStreamQuery(NULL);
	must(cuMemAlloc(&e, 1 << 20));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	nodes(e);
	empty_moves(e, s);
	images();
	/* Earlier failures are told by now, or by one of these. */
	for (int i = 0; i < 10; i++)
		cuStreamQuery(NULL);
	is_cu(cuMemAlloc(&f, 4096), CUDA_SUCCESS);
	is_cu(cuMemsetD32(f, 77, 1024), CUDA_SUCCESS);
	is_cu(cuMemcpyDtoH(&v, f + 4092, 4), CUDA_SUCCESS);
	is_int(v, 77, "and works");
	return tap_done();
}
