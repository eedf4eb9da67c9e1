// SPDX-License-Identifier: MIT
/* The scheduler: a FIFO per stream, dependencies between streams, and a pool of threads that grows with the runnable streams. */
#include "softgpu/softgpu.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/*
 * A stream whose head can run is in the ready queue; a thread takes the stream (running), runs its
 * head without the lock, and goes on with the same stream while it can. A stream whose head waits
 * for another stream is in that stream's waiters, one whose head asks its own question (a value in
 * memory) is in the poll list: neither holds a thread, so any number of streams may wait.
 *
 * A kernel or a host function may itself wait for another stream's work, so there are as many threads as
 * runnable streams; idle ones leave after a while.
 */
#define IDLE_SECONDS 5
#define POLL_NS	     30000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* every stream's queue, and all below */
static struct list ready = {&ready, &ready};
static struct list polled = {&polled, &polled};
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, poll_work = PTHREAD_COND_INITIALIZER;
static unsigned int nready;   /* streams in ready */
static unsigned int idle;     /* threads in work */
static unsigned int tokens;   /* of these, the ones that have been called and not come yet */
static unsigned int starting; /* threads that have been made and not come yet */
static unsigned int workers;  /* all threads; once there is one, the last never leaves */
static bool polling;	      /* the poll thread lives */
static atomic_ullong next_stream_id = 1;

_Thread_local bool softgpu_in_host_function;
atomic_uint softgpu_running;

static void *worker(void *arg);
static void *poller(void *arg);
static bool spawn_worker(void);

/* Signals are for the program's own threads. */
static bool spawn(void *(*fn)(void *))
{
	sigset_t all, old;
	pthread_t t;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&t, NULL, fn, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return false;
	pthread_setname_np(t, "softgpu-stream");
	pthread_detach(t);
	return true;
}

/* ---- Streams ---- */

static void stream_release(struct obj *o)
{
	struct stream *s = container_of(o, struct stream, obj);

	pthread_mutex_lock(&lock);
	list_del(&s->of_ctx);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&s->ended);
	obj_put(&s->ctx->obj);
	free(s);
}

CUresult stream_create(struct ctx *c, unsigned int flags, int priority, struct stream **out)
{
	struct stream *s = calloc(1, sizeof(*s));
	bool able;

	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	obj_init(&s->obj, OBJ_STREAM, c, stream_release);
	obj_ref(&c->obj);
	s->ctx = c;
	s->flags = flags;
	s->priority = priority;
	s->id = atomic_fetch_add(&next_stream_id, 1);
	s->attr.sync = CU_SYNC_POLICY_AUTO;
	s->attr.domain_map = (CUlaunchMemSyncDomainMap){.default_ = 0, .remote = 0};
	s->blocking = !(flags & CU_STREAM_NON_BLOCKING);
	list_init(&s->link);
	list_init(&s->waiters);
	pthread_cond_init(&s->ended, NULL);
	pthread_mutex_lock(&lock);
	list_add_tail(&c->streams, &s->of_ctx);
	able = workers || spawn_worker();
	pthread_mutex_unlock(&lock);
	if (!able) {
		log_line("cannot start a thread for streams; raise the limit on processes (ulimit -u)");
		obj_put(&s->obj);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*out = s;
	return CUDA_SUCCESS;
}

void stream_close(struct stream *s)
{
	obj_retire(&s->obj);
}

/* ---- Operations ---- */

void *op_new(size_t bytes, CUresult (*run)(struct op *, struct stream *), void (*drop)(struct op *))
{
	struct op *op = calloc(1, bytes);

	if (op) {
		op->run = run;
		op->drop = drop;
	}
	return op;
}

void op_free(struct op *op)
{
	free(op);
}

static void op_end(struct op *op)
{
	struct stream *s = op->stream;

	while (op->ndeps)
		obj_put(&op->deps[--op->ndeps].stream->obj);
	free(op->deps);
	op->drop(op);
	if (s)
		obj_put(&s->obj);
}

bool op_depends(struct op *op, struct stream *s, uint64_t seq)
{
	if (op->ndeps == op->deps_room) {
		unsigned int room = op->deps_room ? op->deps_room * 2 : 2;
		struct dep *p = realloc(op->deps, room * sizeof(*p));

		if (!p)
			return false;
		op->deps = p;
		op->deps_room = room;
	}
	obj_ref(&s->obj);
	op->deps[op->ndeps++] = (struct dep){s, seq};
	return true;
}

/* With the lock: waits for what the streams of @c have been given, only the blocking ones if so asked. */
static bool depend_on_streams(struct op *op, struct ctx *c, const struct stream *but, bool blocking_only)
{
	for (struct list *l = c->streams.next; l != &c->streams; l = l->next) {
		struct stream *s = container_of(l, struct stream, of_ctx);

		/* One on its way to stream_release() has nothing queued. */
		if (s == but || s->done == s->issued || (blocking_only && !s->blocking))
			continue;
		if (!op_depends(op, s, s->issued))
			return false;
	}
	return true;
}

bool op_depends_on_ctx(struct op *op, struct ctx *c)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = depend_on_streams(op, c, NULL, false);
	pthread_mutex_unlock(&lock);
	return good;
}

/* ---- The machine; all with the lock ---- */

/* Whether the head of @s can run now; when not, @s waits where it will be woken. */
static bool runnable(struct stream *s)
{
	struct op *op = s->head;

	if (atomic_load(&s->ctx->error))
		return true;
	/* Met dependencies keep their reference until the operation ends: dropping it needs the lock released. */
	for (unsigned int i = 0; i < op->ndeps; i++) {
		struct stream *on = op->deps[i].stream;

		if (on->done < op->deps[i].seq) {
			list_add_tail(&on->waiters, &s->link);
			return false;
		}
	}
	if (op->ready && !op->ready(op)) {
		list_add_tail(&polled, &s->link);
		pthread_cond_signal(&poll_work);
		return false;
	}
	return true;
}

static bool spawn_worker(void)
{
	if (!spawn(worker))
		return false;
	starting++;
	workers++;
	return true;
}

/* Makes sure that somebody runs @s if its head can run. @s is in no list. */
static void kick(struct stream *s)
{
	if (!s->head || s->running || s->ready || !list_empty(&s->link) || !runnable(s))
		return;
	s->ready = true;
	list_add_tail(&ready, &s->link);
	nready++;
	/* One thread on its way for each: whoever comes first takes the first. */
	if (tokens + starting >= nready)
		return;
	if (idle > tokens) {
		tokens++;
		pthread_cond_signal(&work);
	} else if (spawn_worker()) {
		return;
	} else {
		/* The threads that there are come to it when they are done; stream_create() saw to it that there is one. */
		log_line("cannot start a thread for a stream; raise the limit on processes (ulimit -u)");
	}
}

static void wake_waiters(struct stream *s)
{
	struct list again;

	list_init(&again);
	while (!list_empty(&s->waiters)) {
		struct list *l = s->waiters.next;

		list_del(l);
		list_add_tail(&again, l);
	}
	while (!list_empty(&again)) {
		struct list *l = again.next;

		list_del(l);
		kick(container_of(l, struct stream, link));
	}
}

/*
 * Runs the head of @s, which is runnable and claimed (running) by the caller, and returns with the
 * lock held again and the operation ended. The stream may be gone afterwards unless the caller has
 * a reference.
 */
static void run_head(struct stream *s)
{
	struct op *op = s->head;
	struct ctx *c = s->ctx;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&softgpu_running, 1);
	if (op->always || !atomic_load(&c->error))
		r = op->run(op, s);
	atomic_fetch_sub(&softgpu_running, 1);
	if (r != CUDA_SUCCESS)
		ctx_fail(c, r);
	pthread_mutex_lock(&lock);
	s->head = op->next;
	if (!s->head)
		s->tail = NULL;
	s->done = op->seq;
	if (s->sleepers)
		pthread_cond_broadcast(&s->ended);
	wake_waiters(s);
	pthread_mutex_unlock(&lock);
	op_end(op);
	pthread_mutex_lock(&lock);
}

static void *worker(void *arg)
{
	(void)arg;
	softgpu_in_host_function = true;
	pthread_mutex_lock(&lock);
	starting--;
	for (;;) {
		struct stream *s;

		if (list_empty(&ready)) {
			struct timespec until;
			int r = 0;

			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec += IDLE_SECONDS;
			idle++;
			while (!tokens && r != ETIMEDOUT)
				r = pthread_cond_timedwait(&work, &lock, &until);
			idle--;
			if (tokens)
				tokens--;
			else if (list_empty(&ready) && workers > 1)
				break;
			if (list_empty(&ready))
				continue;
		}
		s = container_of(ready.next, struct stream, link);
		list_del(&s->link);
		nready--;
		s->ready = false;
		s->running = true;
		obj_ref(&s->obj);
		do
			run_head(s);
		while (s->head && runnable(s));
		s->running = false;
		pthread_mutex_unlock(&lock);
		obj_put(&s->obj);
		pthread_mutex_lock(&lock);
	}
	workers--;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Values in memory are changed by kernels and by the program itself, so they can only be looked at again and again. */
static void *poller(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct timespec nap = {.tv_nsec = POLL_NS};
		struct list again;

		while (list_empty(&polled))
			pthread_cond_wait(&poll_work, &lock);
		pthread_mutex_unlock(&lock);
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&lock);
		list_init(&again);
		while (!list_empty(&polled)) {
			struct list *l = polled.next;

			list_del(l);
			list_add_tail(&again, l);
		}
		while (!list_empty(&again)) {
			struct list *l = again.next;

			list_del(l);
			kick(container_of(l, struct stream, link));
		}
	}
	return NULL;
}

bool sched_can_poll(void)
{
	bool yes;

	pthread_mutex_lock(&lock);
	if (!polling)
		polling = spawn(poller);
	yes = polling;
	pthread_mutex_unlock(&lock);
	return yes;
}

/* ---- The legacy stream ---- */

/* A reference to it, or NULL when @c is gone. */
struct stream *sched_legacy(struct ctx *c)
{
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = c->legacy;
	if (s)
		obj_ref(&s->obj);
	pthread_mutex_unlock(&lock);
	return s;
}

/* Gives @c its legacy stream, or takes it away; the reference goes along. Returns the one before. */
struct stream *sched_set_legacy(struct ctx *c, struct stream *s)
{
	struct stream *old;

	pthread_mutex_lock(&lock);
	old = c->legacy;
	c->legacy = s;
	pthread_mutex_unlock(&lock);
	return old;
}

/* ---- Submission and waiting ---- */

/* Appends @op with the order that the legacy stream imposes. False: out of memory. */
static bool append(struct stream *s, struct op *op)
{
	struct ctx *c = s->ctx;
	struct stream *legacy = c->legacy;

	if (s == legacy) {
		if (!depend_on_streams(op, c, s, true))
			return false;
	} else if (s->blocking && legacy && legacy->done != legacy->issued) {
		if (!op_depends(op, legacy, legacy->issued))
			return false;
	}
	/* Each operation has a reference: a closed stream lives until its work is done. */
	obj_ref(&s->obj);
	op->stream = s;
	op->seq = ++s->issued;
	if (s->tail)
		s->tail->next = op;
	else
		s->head = op;
	s->tail = op;
	return true;
}

static CUresult refuse(struct op *op, CUresult r)
{
	op_end(op);
	return r;
}

/* Whether the calling thread can run @op itself, now. When not, @s is where its time will come. */
static bool claimable(struct stream *s, struct op *op)
{
	return s->head == op && !s->running && !s->ready && list_empty(&s->link) && runnable(s);
}

CUresult stream_submit(struct stream *s, struct op *op, uint64_t *seq)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = append(s, op);
	if (good) {
		if (seq)
			*seq = op->seq;
		/* Not worth a thread's waking. */
		if (op->quick && claimable(s, op)) {
			s->running = true;
			run_head(s);
			s->running = false;
		}
		kick(s);
	}
	pthread_mutex_unlock(&lock);
	return good ? CUDA_SUCCESS : refuse(op, CUDA_ERROR_OUT_OF_MEMORY);
}

static void wait_locked(struct stream *s, uint64_t seq)
{
	s->sleepers++;
	while (s->done < seq)
		pthread_cond_wait(&s->ended, &lock);
	s->sleepers--;
}

CUresult stream_submit_wait(struct stream *s, struct op *op)
{
	uint64_t seq;

	pthread_mutex_lock(&lock);
	if (!append(s, op)) {
		pthread_mutex_unlock(&lock);
		return refuse(op, CUDA_ERROR_OUT_OF_MEMORY);
	}
	seq = op->seq;
	/* Nothing before it: the caller waits anyway, so it may as well do the work. */
	if (claimable(s, op)) {
		s->running = true;
		run_head(s);
		s->running = false;
		kick(s);
	} else {
		kick(s);
		wait_locked(s, seq);
	}
	pthread_mutex_unlock(&lock);
	return atomic_load(&s->ctx->error);
}

void stream_wait_seq(struct stream *s, uint64_t seq)
{
	pthread_mutex_lock(&lock);
	wait_locked(s, seq);
	pthread_mutex_unlock(&lock);
}

bool stream_reached(struct stream *s, uint64_t seq)
{
	bool yes;

	pthread_mutex_lock(&lock);
	yes = s->done >= seq;
	pthread_mutex_unlock(&lock);
	return yes;
}

/* The legacy stream's work includes, as a barrier, that of the blocking streams. */
static bool includes(const struct stream *legacy, const struct stream *s)
{
	return s == legacy || (legacy == s->ctx->legacy && s->blocking);
}

bool sched_idle(struct stream *s)
{
	bool yes = true;

	pthread_mutex_lock(&lock);
	for (struct list *l = s->ctx->streams.next; l != &s->ctx->streams && yes; l = l->next) {
		struct stream *t = container_of(l, struct stream, of_ctx);

		yes = !includes(s, t) || t->done == t->issued;
	}
	pthread_mutex_unlock(&lock);
	return yes;
}

/* Waits for all streams of @c, or for @only and what it includes, as far as they have been given work now. */
static void drain(struct ctx *c, struct stream *only)
{
	struct op snapshot = {0};

	pthread_mutex_lock(&lock);
	for (struct list *l = c->streams.next; l != &c->streams; l = l->next) {
		struct stream *t = container_of(l, struct stream, of_ctx);

		if (t->done == t->issued || (only && !includes(only, t)))
			continue;
		if (!op_depends(&snapshot, t, t->issued)) {
			/* No memory for a list: wait for this one, and look again. */
			obj_ref(&t->obj);
			wait_locked(t, t->issued);
			pthread_mutex_unlock(&lock);
			obj_put(&t->obj);
			pthread_mutex_lock(&lock);
			l = &c->streams;
		}
	}
	for (unsigned int i = 0; i < snapshot.ndeps; i++)
		wait_locked(snapshot.deps[i].stream, snapshot.deps[i].seq);
	pthread_mutex_unlock(&lock);
	while (snapshot.ndeps)
		obj_put(&snapshot.deps[--snapshot.ndeps].stream->obj);
	free(snapshot.deps);
}

CUresult stream_synchronize(struct stream *s)
{
	drain(s->ctx, s);
	return atomic_load(&s->ctx->error);
}

void ctx_drain(struct ctx *c)
{
	drain(c, NULL);
}

void sched_wake_ctx(struct ctx *c)
{
	pthread_mutex_lock(&lock);
	for (struct list *l = c->streams.next; l != &c->streams; l = l->next) {
		struct stream *s = container_of(l, struct stream, of_ctx);

		if (!s->ready && !list_empty(&s->link)) {
			list_del(&s->link);
			kick(s);
		}
	}
	pthread_mutex_unlock(&lock);
}
