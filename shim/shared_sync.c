// SPDX-License-Identifier: MIT
/* Keeps shared memory the same at both ends: what goes up before work, what comes down after a wait, and the thread in between.
 */
#include <signal.h>
#include <string.h>
#include <time.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "rgpu_rpc.h"
#include "shim/call_int.h"
#include "shim/ctx.h"
#include "shim/cuda_api.h"
#include "shim/handles.h"
#include "shim/session.h"
#include "shim/shared_int.h"
#include "shim/staging.h"

#define INLINE_LINES ((32u << 10) / sizeof(struct twin_line))
#define SLOT_LINES   (STAGING_SLOT / sizeof(struct twin_line))
#define NAP_NS	     100000
#define WATCHED	     64 /* contexts */

/*
 * Work may read or write memory of the device unless it is one of these. Copies from and to the host look themselves, by their
 * addresses.
 */
bool shared_before(uint16_t op)
{
	switch (op) {
	case OP_H2D:
	case OP_D2H:
	case OP_H2A:
	case OP_A2H:
	case OP_CTX_SYNC:
	case OP_CTX_WAIT:
	case OP_STREAM_SYNC:
	case OP_EVENT_SYNC:
	case OP_EVENT_WATCH:
	case OP_STREAM_WATCH:
	case OP_MEMORY_WATCH:
	case OP_cuMemGetInfo_v2:
	case OP_cuStreamCreateWithPriority:
	case OP_cuStreamDestroy_v2:
	case OP_cuStreamQuery:
	case OP_cuStreamWaitEvent:
	case OP_cuEventCreate:
	case OP_cuEventDestroy_v2:
	case OP_cuEventRecord:
	case OP_cuEventRecordWithFlags:
	case OP_cuEventQuery:
	/* Of graphs only launches are work, and those have seen to it before they gather what they send. */
	case OP_GRAPH_BEGIN:
	case OP_GRAPH_NODE:
	case OP_GRAPH_COND:
	case OP_GRAPH_ADOPT:
	case OP_GRAPH_MAKE:
	case OP_GRAPH_LAUNCH:
	case OP_GRAPH_HOST:
	case OP_GRAPH_PUT:
	case OP_GRAPH_GET:
	case OP_GRAPH_PULL:
	case OP_GRAPH_ENABLE:
	case OP_GRAPH_UPLOAD:
	case OP_CAPTURE_BEGIN:
	case OP_CAPTURE_END:
	case OP_cuEventElapsedTime:
	case OP_cuEventElapsedTime_v2:
	case OP_LOAD_BEGIN:
	case OP_LOAD_END:
	case OP_UNLOAD:
	case OP_GLOBAL:
	case OP_OCCUPANCY:
	case OP_CLUSTERS:
		return false;
	default:
		return true;
	}
}

bool shared_after(uint16_t op)
{
	switch (op) {
	case OP_CTX_SYNC:
	case OP_CTX_WAIT:
	case OP_STREAM_SYNC:
	case OP_EVENT_SYNC:
	case OP_cuStreamQuery:
	case OP_cuEventQuery:
		return true;
	default:
		return false;
	}
}

static struct rec_SHARE_UP *begin_up(struct rgpu_session *s, struct rgpu_call *c, unsigned nseg, uint32_t lines, bool unordered)
{
	struct rec_SHARE_UP *b;

	*c = (struct rgpu_call){.op = OP_SHARE_UP, .session = s, .mute = true, .unordered = unordered};
	b = rgpu_begin(c, 0, nseg, sizeof(*b) + (nseg ? 0 : lines * sizeof(struct twin_line)));
	if (b)
		*b = (struct rec_SHARE_UP){.lines = lines};
	return b;
}

static int send_inline(struct rgpu_session *s, const struct twin_line *line, size_t n, bool unordered)
{
	struct rec_SHARE_UP *b;
	struct rgpu_call c;

	b = begin_up(s, &c, 0, n, unordered);
	if (!b)
		return c.status;
	memcpy(b + 1, line, n * sizeof(*line));
	return rgpu_send(&c);
}

static int send_slot(struct rgpu_session *s, struct rgpu_lane *l, struct slot *slot, size_t n, bool unordered)
{
	struct rgpu_call c;

	if (!begin_up(s, &c, 1, n, unordered))
		return c.status;
	*rgpu_segs(&c) =
		(struct rgpu_seg){.bo = slot->bo, .dir = RGPU_SEG_SEND, .off = slot->off, .len = n * sizeof(struct twin_line)};
	slot->seq = l->seq + 1;
	return rgpu_send(&c);
}

/* Of tracked memory whole pages: the program wrote them while no device could. */
static size_t changes(struct region *g, uint64_t *at, struct twin_line *out, size_t room)
{
	return g->dirty ? twin_pages(&g->twin, g->dirty, at, out, room) : twin_changes(&g->twin, at, out, room);
}

/* Bits of what was written are added to those that a call before did not get to send. */
static int ask_dirty(struct rgpu_session *s, struct region *g)
{
	size_t words = (g->twin.bytes / TWIN_PAGE + 63) / 64;

	if (!g->dirty)
		return 0;
	if (rgpu_transport_bo_dirty(s->transport, &g->bo, g->dirty + words))
		return session_fail(s, rgpu_transport_why(s->transport));
	for (size_t i = 0; i < words; i++)
		g->dirty[i] |= g->dirty[words + i];
	return 0;
}

/* A few changes travel in the record, more of them through staging slots. */
static int push_region(struct rgpu_session *s, struct region *g, bool unordered)
{
	struct twin_line few[INLINE_LINES];
	uint64_t at = 0;
	int r = ask_dirty(s, g);
	size_t n = r ? 0 : changes(g, &at, few, INLINE_LINES);

	if (n)
		r = send_inline(s, few, n, unordered);

	while (!r && at < g->twin.bytes) {
		struct rgpu_lane *l = session_lane(s, &r);
		struct slot *slot = l ? staging_slot(l, &r) : NULL;

		if (!slot)
			return r;
		n = changes(g, &at, (struct twin_line *)slot->mem, SLOT_LINES);
		if (n)
			r = send_slot(s, l, slot, n, unordered);
	}
	return r;
}

/*
 * @unordered: the records wait for none of other threads, of which one may be a call that blocks in the driver until just this
 * change is there. @mapped: of mapped memory only.
 */
static int push(struct rgpu_session *s, bool unordered, bool mapped, bool work)
{
	int r = 0;

	pthread_mutex_lock(&shared_lock);
	for (struct range *n = ranges_next(shared_map, 0); n && !r; n = ranges_next(shared_map, n->start + 1)) {
		struct region *g = (struct region *)n;

		if (g->managed && (mapped || (g->device_has && !g->always)))
			continue;
		r = push_region(s, g, unordered);
		g->device_has |= work;
	}
	pthread_mutex_unlock(&shared_lock);
	return r;
}

int shared_push(struct rgpu_session *s, bool unordered)
{
	return push(s, unordered, false, false);
}

/* From here on the program keeps its hands off managed memory, until a wait: what it would change need not be looked for. */
static bool is_work(uint16_t op)
{
	switch (op) {
	case OP_LAUNCH:
	case OP_GRAPH_LAUNCH:
	case OP_D2D:
	case OP_D2D_PEER:
		return true;
	default:
		return false;
	}
}

int shared_push_for(struct rgpu_session *s, uint16_t op)
{
	return push(s, false, false, is_work(op));
}

void shared_doubt(void)
{
	pthread_mutex_lock(&shared_lock);
	for (struct range *n = ranges_next(shared_map, 0); n; n = ranges_next(shared_map, n->start + 1))
		((struct region *)n)->device_has = false;
	pthread_mutex_unlock(&shared_lock);
}

/* An answer of SHARE_DOWN: the first has lines with it, those that follow have them in a slot. */
struct down {
	struct rep_SHARE_DOWN head;
	struct twin_line
		line[(RGPU_REP_MAX - sizeof(struct rgpu_rep) - sizeof(struct rep_SHARE_DOWN)) / sizeof(struct twin_line)];
};

static int ask_down(struct rgpu_session *s, uint64_t from, bool unordered, bool mapped, struct slot *slot, struct down *d,
		    size_t *bytes)
{
	struct rgpu_call c = {.op = OP_SHARE_DOWN, .session = s, .mute = true, .unordered = unordered};
	struct rec_SHARE_DOWN *b = rgpu_begin(&c, RGPU_REC_FENCE, slot ? 1 : 0, sizeof(*b));
	struct fence f = {.out = d, .room = sizeof(*d)};
	int r;

	if (!b)
		return c.status;
	*b = (struct rec_SHARE_DOWN){.from = from, .managed = !mapped};
	if (slot)
		*rgpu_segs(&c) = (struct rgpu_seg){
			.bo = slot->bo, .dir = RGPU_SEG_RECV, .off = slot->off, .len = SLOT_LINES * sizeof(struct twin_line)};
	memset(&d->head, 0, sizeof(d->head));
	call_expect(&c, &f);
	r = call_wait(&c, &f);
	*bytes = slot ? f.bulk : f.got > sizeof(d->head) ? f.got - sizeof(d->head) : 0;
	return r;
}

static int pull(struct rgpu_session *s, bool unordered, bool mapped)
{
	struct slot *slot = NULL;
	uint64_t from = 0;
	size_t bytes = 0;
	struct down d;
	int r;

	pthread_mutex_lock(&shared_down);
	do {
		const struct twin_line *line = slot ? (struct twin_line *)slot->mem : d.line;

		r = ask_down(s, from, unordered, mapped, slot, &d, &bytes);
		if (!r && (bytes < d.head.lines * sizeof(*line) || (d.head.next && d.head.next <= from)))
			r = session_fail(s, "the server's answer about shared memory makes no sense");
		pthread_mutex_lock(&shared_lock);
		for (uint32_t i = 0; i < d.head.lines && !r; i++) {
			struct region *g = (struct region *)ranges_find(shared_map, twin_address(&line[i]));

			if (g && twin_address(&line[i]) - g->twin.addr < g->twin.bytes)
				twin_put(&g->twin, &line[i]);
		}
		pthread_mutex_unlock(&shared_lock);
		from = d.head.next;
		if (!r && from && !slot) {
			struct rgpu_lane *l = session_lane(s, &r);

			slot = l ? staging_slot(l, &r) : NULL;
		}
	} while (!r && from);
	if (!mapped)
		shared_doubt();
	pthread_mutex_unlock(&shared_down);
	return r;
}

int shared_pull(struct rgpu_session *s, bool unordered)
{
	return pull(s, unordered, false);
}

/* The watcher: while devices work it carries changes of mapped memory both ways. */

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* the condition, starting */
static pthread_cond_t watch_work = PTHREAD_COND_INITIALIZER;
static bool watch_started;
static atomic_bool work_given;

/* The contexts that had work when the watcher looked. */
struct watched {
	struct fence fence[WATCHED];
	struct rep_CTX_SYNC reply[WATCHED];
	unsigned n;
	struct rgpu_session *session;
};

/* Asks, without waiting, to be told when the context has done what it was given. It is no work, so nothing is marked busy. */
static void watch_context(struct rgpu_obj *obj, void *arg)
{
	struct watched *w = arg;
	struct fence *f = &w->fence[w->n];
	struct rgpu_call c = {.op = OP_CTX_SYNC, .session = w->session, .mute = true};
	struct rec_CTX_SYNC *b;

	if (!ctx_of(obj) || !ctx_of(obj)->alive || w->n == WATCHED)
		return;
	b = rgpu_begin(&c, RGPU_REC_FENCE, 0, sizeof(*b));
	if (!b)
		return;
	*b = (struct rec_CTX_SYNC){.ctx = obj->handle};
	f->out = &w->reply[w->n];
	f->room = sizeof(w->reply[w->n]);
	call_expect(&c, f);
	w->n++;
}

static bool all_done(const struct watched *w)
{
	for (unsigned i = 0; i < w->n; i++)
		if (!w->fence[i].done)
			return false;
	return true;
}

static void *watch(void *arg)
{
	struct rgpu_session *s = arg;
	int64_t begin, took;
	bool done;

	for (;;) {
		struct watched w = {.session = s};

		pthread_mutex_lock(&watch_lock);
		while (!atomic_load(&work_given))
			pthread_cond_wait(&watch_work, &watch_lock);
		atomic_store(&work_given, false);
		pthread_mutex_unlock(&watch_lock);
		/* Not a reason to wait with the word set: who sets it again would not wake us. */
		if (!atomic_load(&shared_mapped))
			continue;
		handle_each(KIND_context, watch_context, &w);
		do {
			done = all_done(&w);
			begin = rgpu_now_ns();
			/* Only a lost session ends it; the program's own calls say so. */
			if ((push(s, true, true, false) || pull(s, true, true)) && session_dead(s))
				return NULL;
			/* At most half of the time, however much memory there is. */
			took = rgpu_now_ns() - begin;
			if (took < NAP_NS)
				took = NAP_NS;
			if (!done)
				nanosleep(&(struct timespec){.tv_sec = took / 1000000000, .tv_nsec = took % 1000000000}, NULL);
		} while (!done);
	}
}

/* It takes none of the program's signals. */
static void start(struct rgpu_session *s)
{
	sigset_t all, old;
	pthread_t t;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&t, NULL, watch, s))
		rgpu_err("no thread that watches mapped memory: changes cross before work and after waits only");
	else
		pthread_detach(t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void shared_watch(struct rgpu_session *s)
{
	if (!atomic_load(&shared_mapped) || atomic_exchange(&work_given, true))
		return;
	pthread_mutex_lock(&watch_lock);
	if (!watch_started) {
		watch_started = true;
		start(s);
	}
	pthread_cond_signal(&watch_work);
	pthread_mutex_unlock(&watch_lock);
}
