// SPDX-License-Identifier: MIT
/* A channel in the worker: its queue of records, its thread, and its share of credit and replies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/clock.h"
#include "server/lane.h"
#include "server/lend.h"

static void *lane_main(void *arg);
static __thread struct srv_lane *mine; /* of this thread */

static struct srv_lane *lane_new(struct worker *w, uint32_t channel)
{
	struct srv_lane *lane = calloc(1, sizeof(*lane));
	pthread_condattr_t attr;

	if (!lane)
		return NULL;
	lane->w = w;
	lane->channel = channel;
	lane->refs = 2;
	lane->tail = &lane->head;
	lane->replies_tail = &lane->replies;
	lane->cq_allow = RGPU_CQ_CREDIT_INITIAL;
	lane->granted_allow = RGPU_SQ_CREDIT_INITIAL;
	lane->window = WORKER_WINDOW;
	lane->spin_ns = LANE_SPIN_NS;
	pthread_mutex_init(&lane->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lane->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_cond_init(&lane->room, NULL);
	stamps_waiter_init(&lane->waiter);
	return lane;
}

void lane_put(struct srv_lane *lane)
{
	if (--lane->refs)
		return;
	stamps_waiter_destroy(&lane->waiter);
	pthread_mutex_destroy(&lane->lock);
	pthread_cond_destroy(&lane->wake);
	pthread_cond_destroy(&lane->room);
	free(lane);
}

static int start(struct srv_lane *lane)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, lane_main, lane);
	pthread_attr_destroy(&attr);
	return err;
}

struct srv_lane *lane_open(struct worker *w, uint32_t channel)
{
	struct srv_lane *lane;

	/* Closed lanes run what they have, and their numbers may be used again: a client must not pile them up. */
	lane = w->threads < LANE_THREADS_MAX ? lane_new(w, channel) : NULL;
	if (!lane)
		return NULL;
	w->threads++;
	if (start(lane)) {
		w->threads--;
		lane->refs = 1;
		lane_put(lane);
		return NULL;
	}
	pthread_mutex_lock(&w->output.lock);
	w->by_channel[channel] = lane;
	w->lanes[w->nlanes++] = lane;
	pthread_mutex_unlock(&w->output.lock);
	return lane;
}

void lane_close(struct srv_lane *lane)
{
	struct worker *w = lane->w;
	unsigned i = 0;

	pthread_mutex_lock(&w->output.lock);
	while (w->lanes[i] != lane)
		i++;
	w->lanes[i] = w->lanes[--w->nlanes];
	w->by_channel[lane->channel] = NULL;
	output_drop_all(lane);
	pthread_mutex_unlock(&w->output.lock);

	w->pool -= lane->window - WORKER_WINDOW;
	if (lane->filling)
		lane_put_filling(lane);
	pthread_mutex_lock(&lane->lock);
	lane->closing = true;
	pthread_cond_signal(&lane->wake);
	pthread_mutex_unlock(&lane->lock);
	lane_put(lane);
}

struct batch *batch_new(struct srv_lane *lane, uint32_t len)
{
	struct batch *b = malloc(sizeof(*b) + len);

	if (!b)
		return NULL;
	*b = (struct batch){.lane = lane, .refs = 1, .len = len};
	return b;
}

uint64_t lane_allow(struct srv_lane *lane)
{
	/* rx first: a byte counted there is in the backlog already, so the sum never promises too much. */
	uint64_t rx = lane->rx, backlog = lane->backlog, allow = lane->granted_allow, window = lane->window;
	uint64_t now = rx + (backlog < window ? window - backlog : 0);

	return now > allow ? now : allow;
}

void lane_widen(struct srv_lane *lane, unsigned mib)
{
	struct worker *w = lane->w;
	uint64_t wish = (uint64_t)mib << 20, more;

	if (wish > RGPU_SQ_CREDIT_MAX)
		wish = RGPU_SQ_CREDIT_MAX;
	if (wish <= lane->window)
		return;
	more = wish - lane->window;
	/* Who comes later finds something, too. */
	if (more > (WORKER_POOL - w->pool) / 2)
		more = (WORKER_POOL - w->pool) / 2;
	w->pool += more;
	lane->window += more;
}

bool lane_full(const struct srv_lane *lane)
{
	return lane->retained > LANE_RETAINED_MAX || (lane->retained > LANE_RETAINED && lane->w->retained > RETAINED_POOL);
}

void batch_put(struct batch *b)
{
	struct srv_lane *lane = b->lane;
	struct worker *w = lane->w;

	if (--b->refs)
		return;
	lane->backlog -= b->charge;
	if (!cache_offer(w, b)) {
		free(b->payload);
		free(b);
	}
	if (lane_allow(lane) - lane->granted_allow < WORKER_WINDOW / 4)
		return;
	pthread_mutex_lock(&w->output.lock);
	output_grant_due(lane);
	if (w->output.link && !w->output.want_out)
		worker_kick(w);
	pthread_mutex_unlock(&w->output.lock);
}

void lane_put_filling(struct srv_lane *lane)
{
	struct batch *b = lane->filling;

	lane->filling = NULL;
	b->payload_len = 0;
	batch_put(b);
}

void lane_queue(struct srv_lane *lane, struct batch *b)
{
	pthread_mutex_lock(&lane->lock);
	b->next = NULL;
	*lane->tail = b;
	lane->tail = &b->next;
	pthread_mutex_unlock(&lane->lock);
	/* Outside, so that the thread does not wake to a lock that we hold. The caller's tables keep the lane. */
	pthread_cond_signal(&lane->wake);
}

bool lane_has_work(struct srv_lane *lane)
{
	bool work;

	pthread_mutex_lock(&lane->lock);
	work = lane->head || lane->closing;
	pthread_mutex_unlock(&lane->lock);
	return work;
}

/* Nothing to do but to ask what nobody else can. With the lock, which is dropped meanwhile. */
static void ask_own(struct srv_lane *lane, int64_t since)
{
	int64_t nap = pending_nap(since), until = rgpu_now_ns() + nap;
	struct timespec t = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};

	pthread_cond_timedwait(&lane->wake, &lane->lock, &t);
	if (lane->head)
		return;
	pthread_mutex_unlock(&lane->lock);
	pending_poll(lane->w);
	pthread_mutex_lock(&lane->lock);
}

/* All that is queued. NULL: the lane is closed and empty. */
static struct batch *take(struct srv_lane *lane)
{
	int64_t since = rgpu_now_ns();
	struct batch *b;

	pthread_mutex_lock(&lane->lock);
	while (!lane->head && (!lane->closing || lane->own)) {
		lane->phase = LANE_IDLE;
		if (lane->own) {
			ask_own(lane, since);
			continue;
		}
		if (lane->reads) {
			pthread_mutex_unlock(&lane->lock);
			lane->reads = lend_reading(lane);
			pthread_mutex_lock(&lane->lock);
			continue;
		}
		pthread_cond_wait(&lane->wake, &lane->lock);
	}
	lane->phase = LANE_RUNNING;
	b = lane->head;
	lane->head = NULL;
	lane->tail = &lane->head;
	pthread_mutex_unlock(&lane->lock);
	lane->at = b ? b->first : 0;
	return b;
}

bool lane_is_mine(const struct srv_lane *lane)
{
	return lane == mine;
}

void srv_blocks(struct srv_call *c, bool begin)
{
	c->lane->phase = begin ? LANE_BLOCKED : LANE_RUNNING;
}

struct srv_lane_state *srv_lane_state(struct srv_lane *lane)
{
	return lane->state;
}

uint8_t *srv_recv_buffer(struct srv_call *c)
{
	/* Whole pages, so that the driver can lock them. */
	if (!c->recv)
		c->recv = aligned_alloc(4096, c->recv_len ? (c->recv_len + 4095) & ~4095ull : 4096);
	return c->recv;
}

static void no_memory(struct worker *w)
{
	worker_break(w, ENOMEM, "the server is out of memory; give it more, or run fewer sessions there");
}

/* The reply of a fence, or of a record with RECV segments. */
static void reply(struct lane_call *call)
{
	struct srv_call *c = &call->c;
	bool fence = c->rec.flags & RGPU_REC_FENCE;
	struct reply *r = reply_new(fence ? c->out_len : 0, c->rec.nseg);

	if (!r) {
		no_memory(call->lane->w);
		return;
	}
	r->rep.op = c->rec.op;
	r->rep.seq = c->rec.seq;
	r->rep.status = c->status;
	r->rep.flags = fence ? 0 : RGPU_REP_QUIET;
	if (fence && c->out_len)
		memcpy(&r->rep + 1, c->out, c->out_len);
	for (unsigned i = 0; i < c->rec.nseg; i++)
		if (c->seg[i].dir == RGPU_SEG_RECV)
			r->seg[r->nseg++] = c->seg[i];
	r->recv = c->recv;
	c->recv = NULL;
	r->rep.bulk = r->recv ? c->recv_used : 0;
	if (r->rep.bulk > c->recv_len)
		r->rep.bulk = c->recv_len;
	output_reply(call->lane, r, c->ready || c->rec.stamp, fence || c->tells);
}

void lane_complete(struct lane_call *call)
{
	struct worker *w = call->lane->w;
	struct srv_call *c = &call->c;

	/* Earlier ones that have finished go first. Not from ready(): there, the caller has just asked the others. */
	if (!c->ready && (c->tells || c->recv_len || c->rec.flags & RGPU_REC_FENCE))
		pending_poll(w);
	if (c->rec.flags & RGPU_REC_FENCE) {
		w->fences++;
		reply(call);
	} else {
		if (c->status)
			output_quiet_error(w, c->status, c->rec.op);
		if (c->recv_len)
			reply(call);
	}
	w->records++;
	free(c->recv);
	c->recv = NULL;
}

void lane_call_free(struct lane_call *call)
{
	batch_put(call->batch);
	free(call->c.out);
	free(call);
}

/* The driver still uses its buffers: the call gets its own answer room, the lane a new call. */
static bool defer(struct srv_lane *lane, struct lane_call **at)
{
	struct lane_call *call = *at, *fresh = calloc(1, sizeof(*fresh));
	uint8_t *out = malloc(call->c.out_len ? call->c.out_len : 1);

	if (!fresh || !out) {
		free(fresh);
		free(out);
		no_memory(lane->w);
		return false;
	}
	fresh->lane = lane;
	fresh->c.out = call->c.out;
	memcpy(out, call->c.out, call->c.out_len);
	call->c.out = out;
	call->batch->refs++;
	pending_add(call);
	*at = fresh;
	return true;
}

/* Fills in the call for the record at @rec, which input.c has checked. */
static void prepare(struct lane_call *call, struct batch *b, const struct rgpu_rec *rec)
{
	struct srv_call *c = &call->c;
	uint8_t *out = c->out;
	uint32_t head = sizeof(*rec) + rec->nseg * sizeof(struct rgpu_seg);

	*c = (struct srv_call){
		.lane = call->lane,
		.session = call->lane->w->session,
		.rec = *rec,
		.seg = (const struct rgpu_seg *)(rec + 1),
		.body = (const uint8_t *)rec + head,
		.body_len = rec->len - head,
		.out = out,
	};
	call->batch = b;
	for (unsigned i = 0; i < rec->nseg; i++) {
		if (c->seg[i].dir == RGPU_SEG_RECV)
			c->recv_len += c->seg[i].len;
		else
			c->payload_len += c->seg[i].len;
	}
	if (c->payload_len)
		c->payload = b->payload;
}

/* Replies that the client does not take stop the lane; only acknowledgements are needed to go on. */
static void wait_for_room(struct srv_lane *lane)
{
	struct output *o = &lane->w->output;

	if (!lane_full(lane))
		return;
	pthread_mutex_lock(&o->lock);
	while (lane_full(lane) && !lane->gone && !lane->w->broken)
		pthread_cond_wait(&lane->room, &o->lock);
	pthread_mutex_unlock(&o->lock);
}

/* One record. false: the session is over. */
static bool run(struct srv_lane *lane, const struct rgpu_rec *rec, bool *renew)
{
	struct worker *w = lane->w;
	struct srv_call *c;
	srv_fn fn;

	if (!stamps_reached(&w->stamps, rec->after)) {
		lane->phase = LANE_HELD;
		if (!stamps_wait(&w->stamps, &lane->waiter, rec->after))
			return false;
		lane->phase = LANE_RUNNING;
	}
	wait_for_room(lane);
	if (w->broken)
		return false;
	prepare(lane->call, lane->batch, rec);
	c = &lane->call->c;
	fn = srv_find(rec->op);
	if (fn)
		fn(c);
	else
		c->status = srv_not_supported(rec->op);
	if (c->out_len > SRV_OUT_MAX)
		c->out_len = SRV_OUT_MAX;
	*renew = c->renew;
	if (!c->ready)
		lane_complete(lane->call);
	else if (!defer(lane, &lane->call))
		return false;
	if (rec->flags & RGPU_REC_FENCE)
		lane->reads = true;
	/* After its reply and its error are on their way: who waits for this stamp may speak of them. */
	if (rec->stamp && !(rec->flags & RGPU_REC_FENCE))
		stamps_done(&w->stamps, rec->stamp);
	return true;
}

/* Runs what the lane took. false: another thread does the rest, or the session is over. */
static bool run_taken(struct srv_lane *lane, bool *handed)
{
	while (lane->batch) {
		struct batch *b = lane->batch;

		while (lane->at < b->len) {
			const struct rgpu_rec *rec = (const struct rgpu_rec *)(b->bytes + lane->at);
			bool renew;

			lane->at += rec->len;
			if (!run(lane, rec, &renew))
				return false;
			*handed = renew && !start(lane);
			if (*handed)
				return false;
		}
		lane->batch = b->next;
		lane->at = b->next ? b->next->first : 0;
		batch_put(b);
	}
	return true;
}

/* The session is over: what still comes is not run. */
static void drop_taken(struct srv_lane *lane)
{
	while (lane->batch) {
		struct batch *b = lane->batch;

		lane->batch = b->next;
		batch_put(b);
	}
}

static bool begin(struct srv_lane *lane)
{
	struct lane_call *call = calloc(1, sizeof(*call));

	lane->state = srv_lane_open(lane->w->session);
	lane->call = call;
	if (call) {
		call->lane = lane;
		call->c.out = malloc(SRV_OUT_MAX);
	}
	if (call && call->c.out && lane->state)
		return true;
	no_memory(lane->w);
	return false;
}

static void *lane_main(void *arg)
{
	struct srv_lane *lane = arg;
	struct worker *w = lane->w;
	bool go = lane->call || begin(lane), handed = false;

	mine = lane;
	while (lane->batch || (lane->batch = take(lane))) {
		if (go)
			go = run_taken(lane, &handed);
		if (handed)
			return NULL;
		if (!go)
			drop_taken(lane);
	}
	pending_drain(lane);
	if (lane->call)
		free(lane->call->c.out);
	free(lane->call);
	if (lane->state)
		srv_lane_close(w->session, lane->state);
	lane_put(lane);
	w->threads--;
	return NULL;
}
