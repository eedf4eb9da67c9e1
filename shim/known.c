// SPDX-License-Identifier: MIT
/* Stamps of what streams were given and of what waits saw done; what may be answered from them. */
#include "shim/known.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "shim/ctx.h"
#include "shim/handles.h"
#include "shim/session.h"
#include "shim/thread.h"
#include "shim/watch.h"

/*
 * Who asks within some 10 ms after the work was given polls: "not ready" is as true as any answer. Who asks later may well ask
 * once only, and is not told what was so long ago; so may one that gives other work before it has asked again. Counted in ticks
 * of the processor's clock. Even that is looked at with every launch only while they are rare, and else with one in so many: it
 * costs as much as a quarter of one.
 */
#define FRESH_TICKS 30000000ll
#define TIMED_EVERY 16

#define NO_STREAM UINT64_MAX

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what struct known says, and: */
static struct known *unused;

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static void raise_to(_Atomic uint64_t *at, uint64_t to)
{
	uint64_t seen = atomic_load_explicit(at, memory_order_relaxed);

	while (seen < to && !atomic_compare_exchange_weak(at, &seen, to))
		;
}

struct known *known_new(void)
{
	struct known *k;

	pthread_mutex_lock(&lock);
	k = unused;
	if (k)
		unused = k->next;
	pthread_mutex_unlock(&lock);
	return k ? k : calloc(1, sizeof(*k));
}

static void forget(struct known *k)
{
	watch_end(&k->watch);
	k->idle = 0;
	/* Work that nobody has counted: only an answer ends the doubt. */
	k->settled = atomic_fetch_add(&k->fences, 1);
}

void known_forget(struct known *k)
{
	pthread_mutex_lock(&lock);
	forget(k);
	pthread_mutex_unlock(&lock);
}

void known_free(struct known *k, struct rgpu_obj *context)
{
	if (!k)
		return;
	raise_to(&ctx_of(context)->blocking, tally_most(&k->last));
	pthread_mutex_lock(&lock);
	watch_end(&k->watch);
	k->idle = k->settled = k->asked = 0;
	k->once = false;
	tally_clear(&k->last);
	atomic_store(&k->fences, 0);
	atomic_store(&k->timed, 0);
	k->next = unused;
	unused = k;
	pthread_mutex_unlock(&lock);
}

/* The legacy stream's is its context's, and a thread's own stream's the thread's. */
static struct known *of_unmade(const struct rgpu_call *c, uint64_t stream)
{
	struct thread *t;

	if ((CUstream)stream != CU_STREAM_PER_THREAD)
		return &ctx_of(c->context)->legacy;
	t = thread_get();
	if (t->own_context != c->ctx) {
		known_forget(&t->own);
		t->own_context = c->ctx;
	}
	return &t->own;
}

static struct known *of(const struct rgpu_call *c, uint64_t stream)
{
	struct rgpu_obj *obj;

	if (stream < RGPU_SENTINELS_stream)
		return of_unmade(c, stream);
	obj = handle_find(KIND_stream, stream);
	return obj ? obj->data : NULL;
}

void known_given(struct rgpu_call *c)
{
	uint64_t stream = c->gives - 1, stamp = c->rec->stamp;
	struct rgpu_obj *obj = NULL;
	struct known *k;

	if (!c->gives || c->settles || !c->context)
		return;
	if (stream >= RGPU_SENTINELS_stream)
		obj = handle_find(KIND_stream, stream);
	k = obj ? obj->data : stream < RGPU_SENTINELS_stream ? of_unmade(c, stream) : NULL;
	if (!k)
		return;
	if (!obj) /* a thread's: nobody else finds it */
		raise_to(&ctx_of(c->context)->blocking, stamp);
	if (stamp)
		tally_raise(&k->last, c->lane, stamp);
	else if (c->rec->flags & RGPU_REC_FENCE)
		atomic_fetch_add(&k->fences, 1);
	else
		return; /* a part of a copy, whose last record has a stamp */
	if (!lane_rests(c->lane) && stamp && stamp - atomic_load_explicit(&k->timed, memory_order_relaxed) < TIMED_EVERY)
		return;
	atomic_store_explicit(&k->when, ticks(), memory_order_relaxed);
	atomic_store_explicit(&k->timed, stamp, memory_order_relaxed);
}

/* The stream first: what is counted after that, this end takes for not done. */
struct known_point known_point(const struct rgpu_call *c, uint64_t stream)
{
	struct known *k = of(c, stream);

	return (struct known_point){
		.k = k,
		.fences = k ? atomic_load(&k->fences) : 0,
		.stamp = atomic_load(&c->session->counter),
	};
}

/* With the lock. */
static void reached(const struct known_point *p)
{
	if (p->k->idle < p->stamp)
		p->k->idle = p->stamp;
	if (p->k->settled < p->fences)
		p->k->settled = p->fences;
}

void known_reached(const struct known_point *p)
{
	if (!p->k)
		return;
	pthread_mutex_lock(&lock);
	reached(p);
	p->k->asked = 0;
	pthread_mutex_unlock(&lock);
}

void known_context(struct rgpu_obj *context, uint64_t stamp)
{
	raise_to(&ctx_of(context)->idle, stamp);
}

void known_waited(struct rgpu_session *s, uint64_t stamp)
{
	raise_to(&s->waited, stamp);
}

static bool fresh(uint64_t when)
{
	return (int64_t)(ticks() - when) < FRESH_TICKS;
}

struct latest {
	struct rgpu_obj *context;
	uint64_t stamp;
};

static void look_at(struct rgpu_obj *stream, void *arg)
{
	struct known *k = stream->data;
	struct latest *l = arg;

	if (k && stream->context == l->context && !(stream->field[0] & CU_STREAM_NON_BLOCKING) && tally_most(&k->last) > l->stamp)
		l->stamp = tally_most(&k->last);
}

/* The last work of any stream that takes part in the legacy stream's order. */
static uint64_t blocking(const struct ctx *x)
{
	struct latest l = {x->obj, atomic_load(&x->blocking)};

	handle_each(KIND_stream, look_at, &l);
	return l.stamp;
}

/* With the lock. */
static bool is_done(const struct ctx *x, const struct known *k, const struct known_point *now, uint64_t last)
{
	uint64_t all = atomic_load(&x->idle);

	if (all < k->idle)
		all = k->idle;
	return k->settled == now->fences && last <= all && (k != &x->legacy || blocking(x) <= all);
}

enum known_state known_look(const struct rgpu_call *c, const struct known_point *now)
{
	const struct ctx *x = ctx_of(c->context);
	enum known_state s = KNOWN_ASK;
	struct known *k = now->k;
	enum watch_state w;
	uint64_t last;

	if (!k)
		return KNOWN_ASK;
	pthread_mutex_lock(&lock);
	last = tally_most(&k->last);
	if (is_done(x, k, now, last)) {
		watch_end(&k->watch);
		s = KNOWN_DONE;
		goto out;
	}
	if (k->asked)
		k->once = k->asked != last;
	w = watch_look(&k->watch);
	if (w == WATCH_QUIET) {
		s = KNOWN_BUSY;
		goto out;
	}
	if (w == WATCH_DONE) {
		reached(&k->watched);
		known_waited(c->session, k->watched.stamp);
		if (is_done(x, k, now, last)) {
			s = KNOWN_DONE;
			goto out;
		}
	}
	if (w != WATCH_ASK && !k->once && k->settled == now->fences && last > k->idle && last > atomic_load(&x->idle) &&
	    last > atomic_load(&c->session->waited) && fresh(atomic_load(&k->when)))
		s = KNOWN_WATCH;
out:
	k->asked = s == KNOWN_DONE ? 0 : last;
	pthread_mutex_unlock(&lock);
	return s;
}

void known_watch(const struct known_point *p, uint64_t watch)
{
	if (!p->k)
		return;
	pthread_mutex_lock(&lock);
	watch_end(&p->k->watch);
	p->k->watch = watch;
	p->k->watched = *p;
	pthread_mutex_unlock(&lock);
}

struct known_mark known_mark(const struct rgpu_call *c, uint64_t stream)
{
	const struct rgpu_rec *rec = c->rec;
	bool alone = rec->stamp == rec->after + 1 && (CUstream)stream != CU_STREAM_PER_THREAD;

	return (struct known_mark){.stream = alone ? stream : NO_STREAM, .stamp = rec->stamp, .when = ticks()};
}

static struct known *marked(const struct rgpu_call *c, const struct known_mark *m)
{
	return m->stream == NO_STREAM || !m->stamp ? NULL : of(c, m->stream);
}

enum known_state known_mark_look(const struct rgpu_call *c, const struct known_mark *m)
{
	struct known *k = marked(c, m);
	bool done = m->stamp && m->stamp <= atomic_load(&ctx_of(c->context)->idle);

	if (k && !done) {
		pthread_mutex_lock(&lock);
		done = m->stamp <= k->idle;
		pthread_mutex_unlock(&lock);
	}
	if (done)
		return KNOWN_DONE;
	return m->stamp > atomic_load(&c->session->waited) && fresh(m->when) ? KNOWN_WATCH : KNOWN_ASK;
}

void known_mark_done(const struct rgpu_call *c, const struct known_mark *m)
{
	struct known *k = marked(c, m);

	known_waited(c->session, m->stamp);
	if (!k)
		return;
	pthread_mutex_lock(&lock);
	if (k->idle < m->stamp)
		k->idle = m->stamp;
	pthread_mutex_unlock(&lock);
}
