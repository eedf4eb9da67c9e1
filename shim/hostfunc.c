// SPDX-License-Identifier: MIT
/*
 * cuLaunchHostFunc and cuStreamAddCallback, the thread that hears what the server has come to, and the one that runs what those
 * were given: the program's functions may block, and bytes for other streams are asked for meanwhile.
 */
#include "shim/hostfunc.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "api/hostfunc.h"
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/graph.h"
#include "shim/ordered.h"
#include "shim/pinned.h"
#include "shim/shared.h"
#include "shim/staging.h"
#include "shim/thread.h"

struct entry {
	struct hostfunc f;
	uint32_t gen;	  /* odd while it is in use */
	uint32_t pending; /* calls that are expected */
	uint32_t next_free;
};

#define NO_ENTRY UINT32_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct entry *entries;
static uint32_t nentries, free_entry = NO_ENTRY;
static _Atomic uint64_t expected; /* calls that the server will make, as far as we know: while there are none, nobody listens */
static bool
	listen_on; /* a context went with calls that were expected: some may still come, and hold it until they are answered */
static bool listening; /* the threads are there */

/* Functions of the program that are due, for the thread that runs them. */
struct due {
	uint64_t id, number;
	int status;
	struct due *next;
};

static struct due *due_first, **due_last = &due_first;
static pthread_cond_t more_due = PTHREAD_COND_INITIALIZER;
static bool running;

int hostfunc_new(const struct hostfunc *f, uint64_t *id)
{
	int r = CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	if (free_entry == NO_ENTRY) {
		uint32_t n = nentries ? 2 * nentries : 64;
		struct entry *grown = n > nentries ? realloc(entries, n * sizeof(*entries)) : NULL;

		if (!grown)
			goto out;
		entries = grown;
		for (uint32_t i = nentries; i < n; i++)
			entries[i] = (struct entry){.next_free = i + 1 < n ? i + 1 : NO_ENTRY};
		free_entry = nentries;
		nentries = n;
	}
	*id = (uint64_t)++entries[free_entry].gen << 32 | free_entry;
	entries[free_entry].f = *f;
	entries[free_entry].pending = 0;
	free_entry = entries[free_entry].next_free;
	r = 0;
out:
	pthread_mutex_unlock(&lock);
	return r;
}

static void free_locked(uint32_t i)
{
	entries[i].gen++;
	entries[i].next_free = free_entry;
	free_entry = i;
}

/* With the lock. NULL: there is none of this name. */
static struct entry *find(uint64_t id)
{
	struct entry *e = (uint32_t)id < nentries ? &entries[(uint32_t)id] : NULL;

	return e && e->gen == id >> 32 && e->gen & 1 ? e : NULL;
}

void hostfunc_free(uint64_t id)
{
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(id);
	if (e) {
		expected -= e->pending;
		free_locked((uint32_t)id);
	}
	pthread_mutex_unlock(&lock);
}

bool hostfunc_free_idle(uint64_t id)
{
	struct entry *e;
	bool idle;

	pthread_mutex_lock(&lock);
	e = find(id);
	idle = !e || !e->pending;
	if (e && idle)
		free_locked((uint32_t)id);
	pthread_mutex_unlock(&lock);
	return idle;
}

void hostfunc_drop_context(struct rgpu_obj *context)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < nentries; i++)
		if (entries[i].gen & 1 && entries[i].f.context == context) {
			listen_on = listen_on || entries[i].pending;
			expected -= entries[i].pending;
			entries[i].pending = 0;
			if (entries[i].f.land)
				entries[i].f.land(entries[i].f.data, false);
			if (entries[i].f.once)
				free_locked(i);
		}
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

/* The server has come to the function of this name. false: it is gone. */
static bool take(uint64_t id, struct hostfunc *out)
{
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(id);
	/* What is not expected went with its context. */
	if (e && !e->pending)
		e = NULL;
	if (e) {
		*out = e->f;
		e->pending--;
		if (out->once)
			free_locked((uint32_t)id);
	}
	pthread_mutex_unlock(&lock);
	return e;
}

/* Of the program, which may block. */
static bool is_function(uint64_t id)
{
	struct entry *e;
	bool yes;

	pthread_mutex_lock(&lock);
	e = find(id);
	yes = e && (e->f.fn || e->f.callback);
	pthread_mutex_unlock(&lock);
	return yes;
}

static void returned(void)
{
	pthread_mutex_lock(&lock);
	expected--;
	pthread_mutex_unlock(&lock);
}

static void call(const struct hostfunc *f, int status)
{
	struct rgpu_session *s = process_get()->session;

	/* It may look at what the stream wrote, and what it writes itself is for what comes later in the stream. */
	if (shared_any())
		shared_pull(s, true);
	if (f->before)
		f->before(f->arg);
	/* That it runs says that all before it in its stream is done. */
	known_waited(s, f->stamp ? f->stamp : atomic_load(&s->counter));
	thread_get()->in_host_function = true;
	if (f->fn)
		f->fn(f->data);
	else
		f->callback(f->stream, (CUresult)status, f->data);
	thread_get()->in_host_function = false;
	if (shared_any())
		shared_push(s, true);
}

/*
 * These records wait for no other: one that another thread sent before them may be a call that blocks in the driver until the
 * function has returned.
 */
static int next(struct rgpu_session *s, uint64_t *id, uint64_t *number, int *status)
{
	struct rgpu_call c = {.op = OP_HOST_NEXT, .session = s, .unordered = true};

	return rpc_HOST_NEXT(&c, id, number, status);
}

/* A buffer object's bytes leave from where they are, others from a staging slot. NULL: there is no session any more. */
static struct rec_HOST_DONE *begin_with_bytes(struct rgpu_call *c, const struct hostfunc *f)
{
	struct rgpu_seg seg = {.dir = RGPU_SEG_SEND, .len = f->bytes};
	struct rgpu_lane *l = session_lane(c->session, &c->status);
	struct slot *stage = NULL;
	struct rec_HOST_DONE *b;
	uint64_t off;

	if (!l)
		return NULL;
	if (!pinned_bo(f->src, f->bytes, &seg.bo, &off)) {
		stage = staging_slot(l, &c->status);
		if (!stage)
			return NULL;
		memcpy(stage->mem, f->src, f->bytes);
		seg.bo = stage->bo;
		off = stage->off;
	}
	b = rgpu_begin(c, 0, 1, sizeof(*b));
	if (!b)
		return NULL;
	seg.off = off;
	*rgpu_segs(c) = seg;
	if (stage)
		stage->seq = l->seq + 1;
	return b;
}

static void done(struct rgpu_session *s, uint64_t number, const struct hostfunc *f)
{
	struct rgpu_call c = {.op = OP_HOST_DONE, .session = s, .unordered = true, .mute = true};
	struct rec_HOST_DONE *b = f->bytes ? begin_with_bytes(&c, f) : rgpu_begin(&c, 0, 0, sizeof(*b));

	if (!b)
		return;
	*b = (struct rec_HOST_DONE){.number = number};
	call_part(&c);
}

static void serve(struct rgpu_session *s, uint64_t id, uint64_t number, int status)
{
	struct hostfunc f = {0};

	if (!take(id, &f)) {
		done(s, number, &f);
		return;
	}
	if (f.land)
		f.land(f.data, status != RGPU_HOST_REFUSED);
	else if (status == RGPU_HOST_REFUSED)
		f.bytes = 0;
	else if (!f.bytes)
		call(&f, status);
	done(s, number, &f);
	returned();
}

/* false: there is nobody to run it, or no memory for a note. */
static bool hand_over(uint64_t id, uint64_t number, int status)
{
	struct due *d = malloc(sizeof(*d));
	bool taken;

	pthread_mutex_lock(&lock);
	taken = d && running;
	if (taken) {
		*d = (struct due){.id = id, .number = number, .status = status};
		*due_last = d;
		due_last = &d->next;
		pthread_cond_signal(&more_due);
	}
	pthread_mutex_unlock(&lock);
	if (!taken)
		free(d);
	return taken;
}

/* Until there is no session any more. */
static struct due *take_due(void)
{
	struct due *d;

	pthread_mutex_lock(&lock);
	while (!due_first && listening)
		pthread_cond_wait(&more_due, &lock);
	d = due_first;
	if (d)
		due_first = d->next;
	if (!due_first)
		due_last = &due_first;
	running = d;
	pthread_mutex_unlock(&lock);
	return d;
}

static void *run_main(void *arg)
{
	struct due *d;

	while ((d = take_due())) {
		serve(arg, d->id, d->number, d->status);
		free(d);
	}
	return NULL;
}

static void *listen_main(void *arg)
{
	struct rgpu_session *s = arg;
	uint64_t id, number;
	int status;

	for (;;) {
		pthread_mutex_lock(&lock);
		while (!expected && !listen_on)
			pthread_cond_wait(&more, &lock);
		pthread_mutex_unlock(&lock);
		if (next(s, &id, &number, &status))
			break; /* the session is over */
		if (!is_function(id) || !hand_over(id, number, status))
			serve(s, id, number, status);
	}
	pthread_mutex_lock(&lock);
	listening = false;
	pthread_cond_signal(&more_due);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static bool start_thread(void *(*main)(void *), struct rgpu_session *s)
{
	pthread_t t;

	if (pthread_create(&t, NULL, main, s))
		return false;
	pthread_detach(t);
	return true;
}

/* With the lock. Signals are for the program's own threads. */
static int start(struct rgpu_session *s)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	listening = start_thread(listen_main, s);
	if (listening && !running)
		running = start_thread(run_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return listening ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int hostfunc_expect(struct rgpu_session *s, uint64_t id)
{
	struct entry *e;
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!listening)
		r = start(s);
	if (!r) {
		e = find(id);
		if (e) {
			e->pending++;
			expected++;
		}
		pthread_cond_signal(&more);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

bool hostfunc_outstanding(void)
{
	return atomic_load_explicit(&expected, memory_order_relaxed);
}

void hostfunc_unexpect(uint64_t id)
{
	struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(id);
	if (e && e->pending) {
		e->pending--;
		expected--;
	}
	pthread_mutex_unlock(&lock);
}

int hostfunc_announce(struct rgpu_call *c, const struct hostfunc *f, uint64_t *id)
{
	struct hostfunc mine = *f;
	int r;

	mine.context = c->context;
	mine.stamp = atomic_load(&c->session->counter);
	r = hostfunc_new(&mine, id);
	if (r)
		return r;
	r = hostfunc_expect(c->session, *id);
	if (r)
		hostfunc_free(*id);
	return r;
}

void hostfunc_withdraw(uint64_t id)
{
	hostfunc_unexpect(id);
	hostfunc_free(id);
}

static int ask_for(struct rgpu_call *c, uint64_t dst, const void *src, uint64_t bytes, uint64_t stream)
{
	uint64_t id;
	int r = 0;

	for (uint64_t n; bytes && !r; bytes -= n, dst += n, src = (const uint8_t *)src + n) {
		n = bytes < RGPU_CHUNK_MAX ? bytes : RGPU_CHUNK_MAX;
		c->op = OP_HOST_H2D;
		r = hostfunc_announce(c, &(struct hostfunc){.src = src, .bytes = n, .once = true}, &id);
		if (r)
			break;
		r = rpc_HOST_H2D(c, dst, n, stream, id);
		if (!c->sent)
			hostfunc_withdraw(id);
	}
	return r;
}

/* By way of memory that is the stream's until then. */
static int ask_for_box(struct rgpu_call *c, const struct array_box *b, const void *src, uint64_t bytes, uint64_t stream)
{
	uint64_t order, by;
	int r = ordered_stream(c, stream, &order), e;

	if (!r)
		r = heap_alloc_ordered(ctx_of(c->context)->device, c->context, order, 0, bytes, &by);
	if (r)
		return r;
	r = ask_for(c, by, src, bytes, stream);
	c->op = OP_BOX;
	if (!r)
		r = rpc_BOX(c, b->array, b->x, b->y, b->z, 0, 0, 0, by, 0, 0, 0, b->width, b->height, 0, b->width, b->height,
			    b->depth, true, false, stream);
	e = heap_free_ordered(by, c->context, order);
	return r ? r : e;
}

int hostfunc_copy(struct rgpu_call *c, struct remote dst, const void *src, uint64_t bytes, uint64_t stream)
{
	return dst.box ? ask_for_box(c, dst.box, src, bytes, stream) : ask_for(c, dst.at, src, bytes, stream);
}

static int submit(CUstream hStream, const struct hostfunc *f)
{
	struct rgpu_call c;
	struct rgpu_obj *obj;
	uint64_t wire, id;
	int r = rgpu_enter(&c, OP_HOST_FUNC);

	if (!r)
		r = rgpu_use(&c, KIND_stream, hStream, true, &wire, &obj);
	if (!r && !f->fn && !f->callback)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rgpu_capture(&c, wire);
	if (!r && c.capturing)
		return f->fn ? capture_host(&c, f->fn, f->data) : rgpu_capture_refuse(&c);
	if (!r)
		r = hostfunc_announce(&c, f, &id);
	if (r)
		return r;
	r = rpc_HOST_FUNC(&c, wire, id, !f->fn);
	if (!c.sent)
		hostfunc_withdraw(id);
	return r;
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	return submit(hStream, &(struct hostfunc){.fn = fn, .data = userData, .once = true});
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData)
{
	return cuLaunchHostFunc(hStream ? hStream : CU_STREAM_PER_THREAD, fn, userData);
}

/* It is told the stream's name as the program gave it. */
static CUresult add_callback(CUstream hStream, CUstream named, CUstreamCallback callback, void *userData, unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return submit(hStream, &(struct hostfunc){.callback = callback, .stream = named, .data = userData, .once = true});
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	return add_callback(hStream, hStream, callback, userData, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	return add_callback(hStream ? hStream : CU_STREAM_PER_THREAD, hStream, callback, userData, flags);
}
