// SPDX-License-Identifier: MIT
/* The places: words of one buffer object, each lent to one watch until the server has written there. */
#include "shim/graph.h"
#include "shim/watch.h"

#include <pthread.h>
#include <string.h>
#include "api/watch.h"
#include "rgpu_rpc.h"
#include "shim/cuda_api.h"

#define PLACES 8192u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rgpu_bo bo;
static bool failed;		       /* no buffer object: every question is a round trip */
static uint64_t owed[PLACES];	       /* the mark that will be written there; 0: the place is free */
static bool given_up[PLACES];	       /* nobody looks, but it is not written yet */
static struct rgpu_lane *lane[PLACES]; /* whose reply brings it */
static uint32_t next;
static uint64_t last_mark;

#define TURN_SHIFT 56 /* seven bits below RGPU_WATCH_ASK: others than those of the mark that the place had before */

static uint64_t word(uint32_t place)
{
	return __atomic_load_n((const uint64_t *)bo.base + place, __ATOMIC_ACQUIRE);
}

/* The link may bring a word in two parts: all of it is there when its last byte is, which differs and says whether to ask. */
static bool written(uint32_t place)
{
	return (word(place) & ~RGPU_WATCH_ASK) == owed[place];
}

/* With the lock. PLACES: there is none. */
static uint32_t take(struct rgpu_session *s)
{
	if (!bo.base && !failed)
		failed = rgpu_transport_bo_create(s->transport, PLACES * sizeof(uint64_t), &bo);
	if (failed)
		return PLACES;
	for (uint32_t i = 0; i < PLACES; i++) {
		uint32_t at = next++ % PLACES;

		if (owed[at] && !(given_up[at] && written(at)))
			continue;
		owed[at] = ((word(at) >> TURN_SHIFT) + 1) % 128 << TURN_SHIFT | ++last_mark;
		given_up[at] = false;
		return at;
	}
	return PLACES;
}

uint64_t watch_begin(const struct rgpu_call *from, uint16_t op, uint64_t handle)
{
	struct rgpu_call c = {.op = op, .session = from->session, .context = from->context, .ctx = from->ctx, .settles = true};
	struct rec_EVENT_WATCH *b;
	uint32_t at;

	_Static_assert(sizeof(struct rec_EVENT_WATCH) == sizeof(struct rec_STREAM_WATCH), "one layout for all");
	_Static_assert(sizeof(struct rec_EVENT_WATCH) == sizeof(struct rec_MEMORY_WATCH), "one layout for all");
	pthread_mutex_lock(&lock);
	at = take(c.session);
	pthread_mutex_unlock(&lock);
	if (at == PLACES)
		return 0;
	c.mute = true;
	b = rgpu_begin(&c, 0, 1, sizeof(*b));
	if (!b) {
		pthread_mutex_lock(&lock);
		owed[at] = 0;
		pthread_mutex_unlock(&lock);
		return 0;
	}
	*rgpu_segs(&c) =
		(struct rgpu_seg){.bo = bo.handle, .dir = RGPU_SEG_RECV, .off = at * sizeof(uint64_t), .len = sizeof(uint64_t)};
	lane[at] = c.lane;
	*b = (struct rec_EVENT_WATCH){.ctx = c.ctx, .hEvent = handle, .mark = owed[at]};
	rgpu_send(&c);
	return at + 1;
}

enum watch_state watch_look(uint64_t *watch)
{
	bool ask;

	if (!*watch)
		return WATCH_NONE;
	if (!written(*watch - 1))
		return WATCH_QUIET;
	/* Who learns from here that work is done finds what that brought. */
	landing_poll();
	ask = word(*watch - 1) & RGPU_WATCH_ASK;
	watch_end(watch);
	return ask ? WATCH_ASK : WATCH_DONE;
}

void watch_end(uint64_t *watch)
{
	uint32_t at = *watch - 1;

	if (!*watch)
		return;
	pthread_mutex_lock(&lock);
	if (written(at))
		owed[at] = 0;
	else
		given_up[at] = true;
	pthread_mutex_unlock(&lock);
	*watch = 0;
}

/* A watch that somebody waits for. */
struct wait {
	const uint64_t *place; /* its owner's: another number there ends the wait */
	uint64_t watch;
};

static bool over(struct rgpu_lane *l, const void *arg)
{
	const struct wait *w = arg;

	(void)l;
	return __atomic_load_n(w->place, __ATOMIC_ACQUIRE) != w->watch || written(w->watch - 1);
}

bool watch_wait(const uint64_t *place, uint64_t watch, struct rgpu_lane *l, int *r)
{
	struct wait w = {place, watch};

	if (!watch || lane[watch - 1] != l)
		return false;
	*r = lane_wait_until(l, over, &w);
	return true;
}
