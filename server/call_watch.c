// SPDX-License-Identifier: MIT
/* Watches: a question that the client left here is answered, once, by a word in its memory. They always answer, and never fail.
 */
#include <stdlib.h>
#include <string.h>
#include "api/watch.h"
#include "lib/clock.h"
#include "server/call_wait.h"
#include "server/lane.h"

_Static_assert(sizeof(struct rec_EVENT_WATCH) == sizeof(struct rec_STREAM_WATCH), "one layout for all");
_Static_assert(sizeof(struct rec_EVENT_WATCH) == sizeof(struct rec_MEMORY_WATCH), "one layout for all");

static void say(struct srv_call *c, bool ask)
{
	struct rec_EVENT_WATCH a = {0};
	uint64_t word;

	memcpy(&a, c->body, c->body_len < sizeof(a) ? c->body_len : sizeof(a));
	/* A quiet call that failed is told with the answer to a question, and so is that kernels have printed. */
	if (!ask)
		ask = output_owes_error(srv_worker(c)) || session_has_text(c->session);
	word = a.mark | (ask ? RGPU_WATCH_ASK : 0);
	if (c->recv_len != sizeof(word) || !srv_recv_buffer(c))
		return;
	memcpy(c->recv, &word, sizeof(word));
	c->recv_used = sizeof(word);
}

static int32_t event_ready(struct srv_call *c)
{
	struct rec_EVENT_WATCH a;
	int32_t status;

	memcpy(&a, c->body, sizeof(a));
	status = wait_ask_event(c, a.hEvent);
	if (status == SRV_PENDING)
		return SRV_PENDING;
	say(c, status);
	return 0;
}

void srv_EVENT_WATCH(struct srv_call *c)
{
	struct rec_EVENT_WATCH a;
	void *event;

	c->tells = true;
	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_event, a.hEvent, &event) || !srv_enter(c, a.ctx)) {
		say(c, true);
		c->status = 0;
		return;
	}
	if (event_ready(c) == SRV_PENDING)
		c->ready = event_ready;
}

/* The lane's thread when the question came: its own stream is not that of a later one. */
static uintptr_t me(void)
{
	static _Atomic uintptr_t threads;
	static __thread uintptr_t mine;

	if (!mine)
		mine = ++threads;
	return mine;
}

/* Not a point in the stream but all of it, as a question is: what was given later the client asks about, too. */
static int32_t ask_stream(struct srv_call *c, const struct rec_STREAM_WATCH *a)
{
	bool made = a->hStream >= RGPU_SENTINELS_stream;
	struct srv_slot stream, slot;
	CUresult r = CUDA_ERROR_INVALID_HANDLE;
	struct srv_ctx *x;

	if (!session_find(c->session, KIND_context, a->ctx, &slot))
		return CUDA_ERROR_INVALID_CONTEXT;
	x = slot.real;
	if (pthread_rwlock_tryrdlock(&x->life))
		return SRV_PENDING;
	/* With the lock it is not destroyed. */
	pthread_mutex_lock(&x->streams_lock);
	if (!made)
		stream.real = (void *)a->hStream;
	if (!x->dead && (!made || session_find(c->session, KIND_stream, a->hStream, &stream)))
		r = ctx_enter(x);
	if (!r)
		r = x->capturing ? CUDA_ERROR_NOT_READY : drv_cuda.cuStreamQuery(stream.real);
	pthread_mutex_unlock(&x->streams_lock);
	pthread_rwlock_unlock(&x->life);
	return r == CUDA_ERROR_NOT_READY ? SRV_PENDING : (int32_t)r;
}

static int32_t stream_ready(struct srv_call *c)
{
	struct rec_STREAM_WATCH a;
	int32_t status = CUDA_ERROR_INVALID_HANDLE;

	memcpy(&a, c->body, sizeof(a));
	if (!c->own || (uintptr_t)c->ready_arg == me())
		status = ask_stream(c, &a);
	if (status == SRV_PENDING)
		return SRV_PENDING;
	say(c, status);
	return 0;
}

void srv_STREAM_WATCH(struct srv_call *c)
{
	struct rec_STREAM_WATCH a;
	void *stream;

	c->tells = true;
	if (!srv_body(c, &a, sizeof(a)) || !srv_use(c, KIND_stream, a.hStream, &stream) || !srv_enter(c, a.ctx)) {
		say(c, true);
		c->status = 0;
		return;
	}
	c->own = stream == CU_STREAM_PER_THREAD;
	c->ready_arg = (void *)me();
	if (stream_ready(c) == SRV_PENDING)
		c->ready = stream_ready;
}

#define LOOK_NS 20000000ll   /* others' allocations are seen that late */
#define LAST_NS 5000000000ll /* then nobody has asked for so long that looking ends */

struct memory {
	struct srv_ctx *x;
	struct srv_session *s;
	uint64_t free;
	int64_t next, end;
};

static bool changed(struct memory *m, bool *busy)
{
	uint64_t now, total;
	bool changed = true;

	*busy = pthread_rwlock_tryrdlock(&m->x->life);
	if (*busy)
		return false;
	if (!m->x->dead && !ctx_enter(m->x) && !ctx_memory(m->s, m->x, &now, &total))
		changed = now != m->free;
	pthread_rwlock_unlock(&m->x->life);
	return changed;
}

static int32_t memory_ready(struct srv_call *c)
{
	struct memory *m = c->ready_arg;
	int64_t now = rgpu_now_ns();
	bool busy;

	if (now < m->next)
		return SRV_PENDING;
	m->next = now + LOOK_NS;
	if (!changed(m, &busy) && (busy || now < m->end))
		return SRV_PENDING;
	say(c, true);
	free(m);
	return 0;
}

void srv_MEMORY_WATCH(struct srv_call *c)
{
	struct memory *m = calloc(1, sizeof(*m));
	struct rec_MEMORY_WATCH a;
	struct srv_ctx *x;

	if (!m || !srv_body(c, &a, sizeof(a)) || !(x = srv_context(c, a.ctx))) {
		free(m);
		say(c, true);
		c->status = 0;
		return;
	}
	*m = (struct memory){.s = c->session, .x = x, .free = a.free, .end = rgpu_now_ns() + LAST_NS};
	c->ready_arg = m;
	c->ready = memory_ready;
}
