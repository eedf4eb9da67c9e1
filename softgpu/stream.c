// SPDX-License-Identifier: MIT
/* The stream calls: what a stream handle means, creation, queries, waits, host functions. */
#include "softgpu/graph.h"

#include <stdlib.h>

/* ---- The calling thread's default stream of each context ---- */

static _Thread_local struct {
	struct {
		uintptr_t ctx, stream;
	} * pair;
	size_t n, room;
} mine;
static pthread_key_t mine_key;
static pthread_once_t mine_once = PTHREAD_ONCE_INIT;

static void mine_free(void *pairs)
{
	for (size_t i = 0; i < mine.n; i++) {
		struct stream *s = obj_get((void *)mine.pair[i].stream, OBJ_STREAM);

		if (s) {
			stream_close(s);
			obj_put(&s->obj);
		}
	}
	free(pairs);
	mine.pair = NULL;
	mine.n = mine.room = 0;
}

static void mine_key_make(void)
{
	pthread_key_create(&mine_key, mine_free);
}

static CUresult per_thread(struct ctx *c, struct stream **out)
{
	size_t i;

	for (i = 0; i < mine.n; i++)
		if (mine.pair[i].ctx == c->obj.handle)
			break;
	if (i < mine.n) {
		*out = obj_get((void *)mine.pair[i].stream, OBJ_STREAM);
		/* Gone with an earlier life of the context. */
		if (*out)
			return CUDA_SUCCESS;
		mine.pair[i] = mine.pair[--mine.n];
	}
	if (mine.n == mine.room) {
		size_t room = mine.room ? mine.room * 2 : 4;
		void *p = realloc(mine.pair, room * sizeof(*mine.pair));

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		pthread_once(&mine_once, mine_key_make);
		pthread_setspecific(mine_key, p);
		mine.pair = p;
		mine.room = room;
	}
	TRY(stream_create(c, CU_STREAM_DEFAULT, 0, out));
	if (!obj_publish(&(*out)->obj)) {
		obj_put(&(*out)->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	mine.pair[mine.n].ctx = c->obj.handle;
	mine.pair[mine.n].stream = (*out)->obj.handle;
	mine.n++;
	return CUDA_SUCCESS;
}

static CUresult resolve(CUstream handle, struct stream **out)
{
	AUTO_PUT struct ctx *c = NULL;

	*out = NULL;
	TRY(api_enter());
	if (handle == CU_STREAM_PER_THREAD || handle == CU_STREAM_LEGACY || !handle) {
		TRY(ctx_resolve(NULL, &c));
		if (handle == CU_STREAM_PER_THREAD)
			return per_thread(c, out);
		*out = sched_legacy(c);
		return *out ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	*out = obj_get(handle, OBJ_STREAM);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_resolve(CUstream handle, struct stream **out)
{
	CUresult r = resolve(handle, out);

	return r == CUDA_SUCCESS ? (CUresult)atomic_load(&(*out)->ctx->error) : r;
}

/* ---- Creation ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	AUTO_PUT struct ctx *c = NULL;
	struct stream *s;

	TRY(ctx_enter(&c));
	if (!stream || flags & ~CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_create(c, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, &s));
	if (!obj_publish(&s->obj)) {
		obj_put(&s->obj);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*stream = (CUstream)s->obj.handle;
	obj_put(&s->obj);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(api_enter());
	s = obj_get(stream, OBJ_STREAM);
	if (!s || !obj_retire(&s->obj))
		return CUDA_ERROR_INVALID_HANDLE;
	graph_stream_gone((uintptr_t)stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
	return cuStreamDestroy_v2(stream);
}

/* ---- Questions ---- */

CUresult cuStreamQuery(CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	TRY(stream_not_capturing(s));
	TRY(graph_unsafe());
	if (!sched_idle(s))
		return CUDA_ERROR_NOT_READY;
	return atomic_load(&s->ctx->error);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	TRY(stream_not_capturing(s));
	return stream_synchronize(s);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = s->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	*priority = s->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = s->id;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	*ctx = (CUcontext)s->ctx->obj.handle;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	TRY(cuStreamGetCtx(stream, ctx));
	if (green)
		*green = NULL;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	AUTO_PUT struct stream *s = NULL;

	TRY(stream_resolve(stream, &s));
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = s->ctx->dev->index;
	return CUDA_SUCCESS;
}

/* ---- Host functions ---- */

struct host_op {
	struct op op;
	CUhostFn fn;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

static CUresult host_run(struct op *op, struct stream *s)
{
	struct host_op *h = container_of(op, struct host_op, op);

	if (h->callback)
		h->callback(h->stream, atomic_load(&s->ctx->error), h->data);
	else
		h->fn(h->data);
	return CUDA_SUCCESS;
}

CUresult host_op_of(CUhostFn fn, void *data, struct op **op)
{
	struct host_op *h = op_new(sizeof(*h), host_run, op_free);

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->fn = fn;
	h->data = data;
	*op = &h->op;
	return CUDA_SUCCESS;
}

static CUresult host_submit(CUstream stream, CUhostFn fn, CUstreamCallback callback, void *data)
{
	struct gparams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = fn, .userData = data}};
	AUTO_PUT struct stream *s = NULL;
	struct gstream gs;
	struct host_op *h;
	bool capturing;

	TRY(stream_resolve(stream, &s));
	if (!fn && !callback)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(stream_capturing(s, &capturing));
	if (capturing) {
		gs = graph_stream(s);
		return callback ? graph_capture_refuse(&gs) : graph_capture(&gs, &p);
	}
	h = op_new(sizeof(*h), host_run, op_free);
	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->fn = fn;
	h->callback = callback;
	h->stream = stream;
	h->data = data;
	/* A callback is told of an error, a host function isn't called then. */
	h->op.always = callback;
	return stream_submit(s, &h->op, NULL);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	return host_submit(stream, fn, NULL, data);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return host_submit(stream, NULL, callback, data);
}

/* ---- Work of the soft math libraries ---- */

struct guest_op {
	struct op op;
	int (*fn)(void *arg);
	void (*free_arg)(void *arg);
	void *arg;
};

static CUresult guest_run(struct op *op, struct stream *s)
{
	struct guest_op *g = container_of(op, struct guest_op, op);

	(void)s;
	return g->fn(g->arg);
}

static void guest_drop(struct op *op)
{
	struct guest_op *g = container_of(op, struct guest_op, op);

	if (g->free_arg)
		g->free_arg(g->arg);
	free(g);
}

/* Captured: the work may run many times, and its argument lives as long as a graph has it. */
struct captured_guest {
	struct gguest head;
	int (*fn)(void *arg);
	void (*free_arg)(void *arg);
	void *arg;
};

static void captured_drop(struct gguest *head)
{
	struct captured_guest *g = container_of(head, struct captured_guest, head);

	if (g->free_arg)
		g->free_arg(g->arg);
	free(g);
}

static void captured_put(void *arg)
{
	struct captured_guest *g = arg;

	if (atomic_fetch_sub(&g->head.refs, 1) == 1)
		captured_drop(&g->head);
}

static int captured_run(void *arg)
{
	struct captured_guest *g = arg;

	return g->fn(g->arg);
}

CUresult guest_op_of(struct gguest *head, struct op **op)
{
	struct guest_op *o = op_new(sizeof(*o), guest_run, guest_drop);

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_fetch_add(&head->refs, 1);
	o->fn = captured_run;
	o->free_arg = captured_put;
	o->arg = container_of(head, struct captured_guest, head);
	*op = &o->op;
	return CUDA_SUCCESS;
}

static CUresult guest_capture(struct stream *s, int (*fn)(void *), void *arg, void (*drop)(void *))
{
	struct gparams p = {.type = GRAPH_NODE_GUEST};
	struct gstream gs = graph_stream(s);
	struct captured_guest *g = calloc(1, sizeof(*g));

	if (!g) {
		if (drop)
			drop(arg);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_init(&g->head.refs, 1);
	g->head.drop = captured_drop;
	g->fn = fn;
	g->arg = arg;
	g->free_arg = drop;
	p.guest = &g->head;
	return graph_capture(&gs, &p);
}

static int guest_submit(CUstream stream, int (*fn)(void *), void *arg, void (*drop)(void *), bool wait)
{
	AUTO_PUT struct stream *s = NULL;
	struct guest_op *g = NULL;
	bool capturing = false;
	CUresult r;

	r = fn ? stream_resolve(stream, &s) : CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = wait ? stream_not_capturing(s) : stream_capturing(s, &capturing);
	if (r == CUDA_SUCCESS && capturing)
		return guest_capture(s, fn, arg, drop);
	if (r == CUDA_SUCCESS) {
		g = op_new(sizeof(*g), guest_run, guest_drop);
		r = g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		if (drop)
			drop(arg);
		return r;
	}
	g->fn = fn;
	g->arg = arg;
	g->free_arg = drop;
	return wait ? stream_submit_wait(s, &g->op) : stream_submit(s, &g->op, NULL);
}

int softgpu_enqueue(CUstream stream, int (*fn)(void *), void *arg, void (*drop)(void *))
{
	return guest_submit(stream, fn, arg, drop, false);
}

int softgpu_enqueue_wait(CUstream stream, int (*fn)(void *), void *arg, void (*drop)(void *))
{
	return guest_submit(stream, fn, arg, drop, true);
}

bool softgpu_accessible(uint64_t addr, size_t len)
{
	return softgpu_mapped(addr, len);
}
