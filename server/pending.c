// SPDX-License-Identifier: MIT
/* Deferred calls: submitted to the driver, which still uses their buffers. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "lib/clock.h"
#include "server/lane.h"

#define NAP_MIN_NS 50000
#define NAP_MAX_NS 1000000
#define NAP_SHARE  100 /* a nap is so small a part of the idle time: nobody waits much longer than he must */

int64_t pending_nap(int64_t since)
{
	int64_t ns = (rgpu_now_ns() - since) / NAP_SHARE;

	return ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
}

/* Nobody else speaks up for it, or asks it. */
static bool is_polled(const struct lane_call *call)
{
	return !call->c.told && !call->c.own;
}

static uint64_t held_bytes(const struct lane_call *call)
{
	return call->c.recv_len + call->c.payload_len;
}

/* Takes the call at @at off the list and completes it. pending.lock is held. */
static void finish(struct worker *w, struct lane_call **at, int32_t status)
{
	struct pending *p = &w->pending;
	struct lane_call *call = *at;

	*at = call->next;
	if (!*at)
		p->tail = at;
	p->bytes -= held_bytes(call);
	p->polled -= is_polled(call);
	call->lane->own -= call->c.own;
	call->lane->npending--;
	call->c.status = status;
	lane_complete(call);
	lane_call_free(call);
	/* Last: a lane that reads 0 answers its fence without the lock, so the answers before it must be on their way. */
	p->count--;
	pthread_cond_broadcast(&p->fewer);
}

/*
 * Bytes, then the watches' words, then fences: who gets one may take it that all of the earlier kinds have come which were ready
 * before it. So they are asked in the opposite order.
 */
enum rank { BYTES, TELLS, FENCE };

static enum rank rank_of(const struct lane_call *call)
{
	return call->c.rec.flags & RGPU_REC_FENCE ? FENCE : call->c.tells ? TELLS : BYTES;
}

static bool is_asked(const struct lane_call *call, enum rank rank)
{
	return rank_of(call) == rank && (!call->c.own || lane_is_mine(call->lane));
}

/*
 * Those that may bring bytes are answered in the order in which they were given to the driver, for a later one may bring them to
 * where an earlier one does. So they are asked from the last to the first: whatever a stream runs before one that is seen
 * finished has finished, too, when it is asked. Returns how many have.
 */
static unsigned ask_bytes(struct worker *w)
{
	struct lane_call *last = NULL, **at = &w->pending.head;
	unsigned n = 0;

	for (struct lane_call *call = *at; call; call = call->next)
		if (is_asked(call, BYTES)) {
			call->before = last;
			last = call;
		}
	for (; last; last = last->before) {
		int32_t status = last->c.ready(&last->c);

		last->finished = status != SRV_PENDING;
		if (!last->finished)
			continue;
		last->c.status = status;
		n++;
	}
	while (*at)
		if ((*at)->finished)
			finish(w, at, (*at)->c.status);
		else
			at = &(*at)->next;
	return n;
}

/* One round over those of a higher rank, which are for the caller to finish. Returns how many. */
static unsigned ask(struct worker *w, enum rank rank, struct lane_call **ready)
{
	struct lane_call **at = &w->pending.head;
	unsigned n = 0;

	while (*at) {
		struct lane_call *call = *at;
		int32_t status;

		status = is_asked(call, rank) ? call->c.ready(&call->c) : SRV_PENDING;
		if (status == SRV_PENDING) {
			at = &call->next;
			continue;
		}
		n++;
		/* Out of the list, its answer waits for those of the copies that it saw finished. */
		*at = call->next;
		if (!*at)
			w->pending.tail = at;
		call->c.status = status;
		call->next = *ready;
		*ready = call;
	}
	return n;
}

static unsigned round_of_questions(struct worker *w)
{
	struct lane_call *ready = NULL;
	unsigned n;

	n = ask(w, FENCE, &ready);
	n += ask(w, TELLS, &ready);
	n += ask_bytes(w);
	/* The last is in front: watches before fences. */
	while (ready) {
		struct lane_call *call = ready;

		ready = call->next;
		call->next = NULL;
		/* finish() wants it in a list. */
		*w->pending.tail = call;
		finish(w, w->pending.tail, call->c.status);
	}
	return n;
}

void pending_poll(struct worker *w)
{
	if (!w->pending.count)
		return;
	pthread_mutex_lock(&w->pending.lock);
	round_of_questions(w);
	pthread_mutex_unlock(&w->pending.lock);
}

static void wake(struct pending *p)
{
	pthread_mutex_lock(&p->nap_lock);
	p->look = true;
	pthread_cond_signal(&p->nap_end);
	pthread_mutex_unlock(&p->nap_lock);
}

struct worker *srv_worker(const struct srv_call *c)
{
	return c->lane->w;
}

void srv_look_again(struct worker *w)
{
	wake(&w->pending);
}

/* Until somebody wakes us, or @ns passed unless it is 0. Gives whether somebody did; *stop: it is over. */
static bool nap(struct pending *p, long ns, bool *stop)
{
	struct timespec until;
	bool woken;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&p->nap_lock);
	while (!p->look && !p->stop && !err)
		err = ns ? pthread_cond_timedwait(&p->nap_end, &p->nap_lock, &until)
			 : pthread_cond_wait(&p->nap_end, &p->nap_lock);
	woken = p->look;
	p->look = false;
	*stop = p->stop;
	pthread_mutex_unlock(&p->nap_lock);
	return woken;
}

static void *pending_main(void *arg)
{
	struct worker *w = arg;
	struct pending *p = &w->pending;
	int64_t last = rgpu_now_ns();
	bool polls = false, stop;
	long ns = NAP_MIN_NS;

	for (;;) {
		bool woken = nap(p, polls ? ns : 0, &stop);

		if (stop)
			return NULL;
		pthread_mutex_lock(&p->lock);
		if (round_of_questions(w) || woken)
			last = rgpu_now_ns();
		ns = pending_nap(last);
		polls = p->polled;
		pthread_mutex_unlock(&p->lock);
	}
}

int pending_init(struct worker *w)
{
	struct pending *p = &w->pending;
	pthread_condattr_t attr;

	p->tail = &p->head;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->fewer, NULL);
	pthread_mutex_init(&p->nap_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->nap_end, &attr);
	pthread_condattr_destroy(&attr);
	return -pthread_create(&p->thread, NULL, pending_main, w);
}

void pending_destroy(struct worker *w)
{
	struct pending *p = &w->pending;

	pthread_mutex_lock(&p->nap_lock);
	p->stop = true;
	pthread_cond_signal(&p->nap_end);
	pthread_mutex_unlock(&p->nap_lock);
	pthread_join(p->thread, NULL);
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->nap_lock);
	pthread_cond_destroy(&p->nap_end);
	pthread_cond_destroy(&p->fewer);
}

void pending_add(struct lane_call *call)
{
	struct worker *w = call->lane->w;
	struct pending *p = &w->pending;
	bool first;

	pthread_mutex_lock(&p->lock);
	while (p->bytes + held_bytes(call) > PENDING_BYTES_MAX && p->head)
		pthread_cond_wait(&p->fewer, &p->lock);
	call->next = NULL;
	*p->tail = call;
	p->tail = &call->next;
	p->bytes += held_bytes(call);
	p->count++;
	first = is_polled(call) && !p->polled++;
	call->lane->own += call->c.own;
	call->lane->npending++;
	/* What was said of a told one before it was in the list, nobody heard. */
	if (first || call->c.told)
		wake(p);
	pthread_mutex_unlock(&p->lock);
}

void pending_drain(struct srv_lane *lane)
{
	struct pending *p = &lane->w->pending;

	pthread_mutex_lock(&p->lock);
	while (lane->npending)
		pthread_cond_wait(&p->fewer, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
