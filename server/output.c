// SPDX-License-Identifier: MIT
/* The sending side: replies kept until the client acknowledged them, and what goes onto the link next. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include "lib/link.h"
#include "server/lane.h"

#define RECORD_BYTES 16384u	  /* plaintext of one TLS record: small frames are gathered up to it */
#define LANE_BUDGET  (512u << 10) /* a lane's thread sends this much at most, the I/O thread goes on */
#define KNOWN_MAX    (1u << 16)	  /* hints that wait: a client remembers no more */

void output_init(struct output *o)
{
	pthread_mutex_init(&o->lock, NULL);
	o->next_fd = -1;
	o->order_tail = &o->order_head;
}

static void reply_put(struct reply *r)
{
	if (--r->refs)
		return;
	free(r->recv);
	free(r);
}

static void forget_stage(struct output *o)
{
	o->len = o->pos = 0;
	o->bulk_left = 0;
	o->ctl_len = 0;
	o->want_out = false;
	o->tell_known = o->known_all = false;
	o->nknown = o->known_at = 0;
	if (o->bulk_reply)
		reply_put(o->bulk_reply);
	o->bulk_reply = NULL;
}

void output_destroy(struct output *o)
{
	forget_stage(o);
	free(o->known);
	rgpu_packer_free(&o->pack);
	pthread_mutex_destroy(&o->lock);
}

struct reply *reply_new(uint32_t body_len, unsigned nrecv_segs)
{
	uint32_t padded = (body_len + RGPU_REC_ALIGN - 1) / RGPU_REC_ALIGN * RGPU_REC_ALIGN;
	struct reply *r = calloc(1, sizeof(*r) + padded + nrecv_segs * sizeof(*r->seg));

	if (!r)
		return NULL;
	r->refs = 1;
	r->rep.len = sizeof(r->rep) + padded;
	r->rep.body_len = body_len;
	r->seg = (struct rgpu_seg *)((uint8_t *)(r + 1) + padded);
	return r;
}

static void order_add(struct output *o, struct reply *r)
{
	r->order_next = NULL;
	*o->order_tail = r;
	o->order_tail = &r->order_next;
}

/* Sent, or not needed any more. */
static void order_remove(struct output *o, struct reply *r)
{
	for (struct reply **at = &o->order_head; *at; at = &(*at)->order_next) {
		if (*at != r)
			continue;
		*at = r->order_next;
		if (!*at)
			o->order_tail = at;
		return;
	}
}

void output_grant_due(struct srv_lane *lane)
{
	if (!lane->grant_due && !lane->gone) {
		lane->grant_due = true;
		lane->w->output.grants++;
	}
}

static bool ctl(struct output *o, struct rgpu_frame f, const void *buf)
{
	uint32_t len = f.len;

	if (o->ctl_len + sizeof(f) + len > sizeof(o->ctl))
		return false;
	memcpy(o->ctl + o->ctl_len, &f, sizeof(f));
	if (len)
		memcpy(o->ctl + o->ctl_len + sizeof(f), buf, len);
	o->ctl_len += sizeof(f) + len;
	return true;
}

bool output_ctl(struct output *o, uint16_t type, uint32_t channel, const void *buf, uint32_t len)
{
	return ctl(o, (struct rgpu_frame){.len = len, .type = type, .channel = channel}, buf);
}

bool output_ctl_flags(struct output *o, uint16_t type, uint16_t flags, const void *buf, uint32_t len)
{
	return ctl(o, (struct rgpu_frame){.len = len, .type = type, .flags = flags}, buf);
}

static void stage(struct output *o, const void *buf, uint32_t len)
{
	memcpy(o->stage + o->len, buf, len);
	o->len += len;
}

static void stage_frame(struct output *o, uint16_t type, uint32_t channel, uint32_t len)
{
	struct rgpu_frame f = {.len = len, .type = type, .channel = channel};

	stage(o, &f, sizeof(f));
}

static void stage_grant(struct srv_lane *lane)
{
	struct output *o = &lane->w->output;
	struct rgpu_grant g = {.received = lane->received, .allow = lane_allow(lane)};

	if (lane->grant_due) {
		lane->grant_due = false;
		o->grants--;
	}
	lane->granted_received = g.received;
	lane->granted_allow = g.allow;
	stage_frame(o, RGPU_D_GRANT, lane->channel, sizeof(g));
	stage(o, &g, sizeof(g));
	if (lane->need) {
		struct rgpu_need need = {.seq = lane->need};

		lane->need = 0;
		stage_frame(o, RGPU_D_NEED, lane->channel, sizeof(need));
		stage(o, &need, sizeof(need));
	}
}

static bool known_due(const struct output *o)
{
	return o->attached && o->tell_known && (o->known_at < o->nknown || o->known_all);
}

static void stage_known(struct output *o)
{
	uint32_t n = o->nknown - o->known_at;
	struct rgpu_frame f = {.type = RGPU_D_KNOWN, .flags = o->known_all ? RGPU_KNOWN_ALL : 0};

	if (n > RECORD_BYTES / sizeof(*o->known))
		n = RECORD_BYTES / sizeof(*o->known);
	f.len = n * sizeof(*o->known);
	stage(o, &f, sizeof(f));
	if (n)
		stage(o, o->known + o->known_at, f.len);
	o->known_at += n;
	o->known_all = false;
	if (o->known_at == o->nknown)
		o->known_at = o->nknown = 0;
}

void output_known(struct worker *w, const uint64_t *hints, uint32_t n, bool all)
{
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	if (o->tell_known && (n || all)) {
		if (all)
			o->nknown = o->known_at = 0;
		o->known_all |= all;
		if (o->known_at && (o->nknown + n > o->known_room || o->nknown + n > KNOWN_MAX)) {
			o->nknown -= o->known_at;
			memmove(o->known, o->known + o->known_at, o->nknown * sizeof(*o->known));
			o->known_at = 0;
		}
		/* One that it does not hear of, it sends. */
		if (n > KNOWN_MAX - o->nknown)
			n = KNOWN_MAX - o->nknown;
		if (o->nknown + n > o->known_room) {
			uint64_t *more = reallocarray(o->known, o->nknown + n + 1024, sizeof(*more));

			o->known = more ? more : o->known;
			o->known_room = more ? o->nknown + n + 1024 : o->known_room;
		}
		if (o->nknown + n <= o->known_room) {
			if (n)
				memcpy(o->known + o->nknown, hints, n * sizeof(*hints));
			o->nknown += n;
		}
		if (o->link && !o->want_out)
			worker_kick(w);
	}
	pthread_mutex_unlock(&o->lock);
}

/* Compressed, if that pays. */
static bool stage_packed(struct srv_lane *lane, const struct rgpu_data *d, const void *bytes, uint32_t len)
{
	struct output *o = &lane->w->output;
	struct rgpu_packed p = {.len = len, .type = RGPU_D_DATA};
	uint32_t n = rgpu_pack(&o->pack, o->sent, bytes, len, o->pack.scratch, RGPU_PACK_ROOM, &p.how);

	if (!n)
		return false;
	stage_frame(o, RGPU_D_PACKED, lane->channel, sizeof(p) + sizeof(*d) + n);
	stage(o, &p, sizeof(p));
	stage(o, d, sizeof(*d));
	/* The scratch is its until all has gone: nothing is staged before. */
	o->bulk = o->pack.scratch;
	o->bulk_left = n;
	return true;
}

/* The next bytes for the segments: at most one frame's worth, of one segment. */
static void stage_data(struct srv_lane *lane, struct reply *r)
{
	struct output *o = &lane->w->output;
	struct rgpu_data d = {.seq = r->rep.seq};
	uint64_t skip = r->sent, n;
	unsigned i;

	for (i = 0; skip >= r->seg[i].len; i++)
		skip -= r->seg[i].len;
	n = r->seg[i].len - skip;
	if (n > r->rep.bulk - r->sent)
		n = r->rep.bulk - r->sent;
	if (n > RGPU_FRAME_BULK)
		n = RGPU_FRAME_BULK;
	d.bo = r->seg[i].bo;
	d.off = r->seg[i].off + skip;
	if (stage_packed(lane, &d, r->recv + r->sent, n)) {
		r->sent += n;
		return;
	}
	stage_frame(o, RGPU_D_DATA, lane->channel, sizeof(d) + n);
	stage(o, &d, sizeof(d));
	o->bulk = r->recv + r->sent;
	o->bulk_left = n;
	r->sent += n;
	/* Fill the TLS record; the rest goes from where it lies. */
	n = o->len < RECORD_BYTES ? RECORD_BYTES - o->len : 0;
	if (n > o->bulk_left)
		n = o->bulk_left;
	stage(o, o->bulk, n);
	o->bulk += n;
	o->bulk_left -= n;
	if (o->bulk_left) {
		r->refs++;
		o->bulk_reply = r;
	}
}

static bool sendable(struct srv_lane *lane)
{
	const struct output *o = &lane->w->output;
	const struct reply *r = lane->unsent;

	if (!r)
		return false;
	if (o->order_head && o->order_head->order <= r->barrier)
		return false;
	return r->rep.flags & RGPU_REP_QUIET || lane->cq_sent < lane->cq_allow;
}

static void stage_reply(struct srv_lane *lane)
{
	struct output *o = &lane->w->output;
	struct reply *r = lane->unsent;

	if (r->sent < r->rep.bulk) {
		stage_data(lane, r);
		return;
	}
	if (lane->received > lane->granted_received)
		stage_grant(lane);
	stage_frame(o, RGPU_D_REPLY, lane->channel, r->rep.len);
	stage(o, &r->rep, r->rep.len);
	if (!(r->rep.flags & RGPU_REP_QUIET))
		lane->cq_sent += r->rep.len;
	lane->sent_rseq = r->rep.rseq;
	lane->unsent = r->next;
	if (r->order)
		order_remove(o, r);
}

/* Puts the next frames into the stage: our own, then credit, then the lanes' replies in turn. false: there is nothing. */
static bool stage_more(struct worker *w)
{
	struct output *o = &w->output;
	unsigned idle = 0;

	o->len = o->pos = 0;
	if (o->ctl_len) {
		stage(o, o->ctl, o->ctl_len);
		o->ctl_len = 0;
	}
	for (unsigned i = 0; o->attached && o->grants && i < w->nlanes && o->len < RECORD_BYTES; i++)
		if (w->lanes[i]->grant_due)
			stage_grant(w->lanes[i]);
	if (known_due(o) && o->len < RECORD_BYTES)
		stage_known(o);
	while (o->attached && !o->bulk_left && o->len < RECORD_BYTES && idle < w->nlanes) {
		struct srv_lane *lane = w->lanes[o->turn++ % w->nlanes];

		if (sendable(lane)) {
			stage_reply(lane);
			idle = 0;
		} else {
			idle++;
		}
	}
	return o->len > 0;
}

bool output_more(struct worker *w)
{
	struct output *o = &w->output;

	if (!output_idle(o) || o->ctl_len || (o->attached && o->grants) || known_due(o))
		return true;
	for (unsigned i = 0; o->attached && i < w->nlanes; i++)
		if (sendable(w->lanes[i]))
			return true;
	return false;
}

bool output_idle(const struct output *o)
{
	return o->pos == o->len && !o->bulk_left;
}

void output_cut(struct output *o)
{
	rgpu_link_free(o->link);
	o->link = NULL;
	o->attached = false;
	o->failed = 0;
	forget_stage(o);
}

static ssize_t push(struct output *o, uint64_t *budget)
{
	while (o->pos < o->len) {
		ssize_t n = rgpu_link_write(o->link, o->stage + o->pos, o->len - o->pos);

		if (n < 0)
			return n;
		o->sent += n;
		o->pos += n;
		*budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
	}
	while (o->bulk_left) {
		ssize_t n = rgpu_link_write(o->link, o->bulk, o->bulk_left);

		if (n < 0)
			return n;
		o->sent += n;
		o->bulk += n;
		o->bulk_left -= n;
		*budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
	}
	if (o->bulk_reply)
		reply_put(o->bulk_reply);
	o->bulk_reply = NULL;
	return 0;
}

int output_pump(struct worker *w, uint64_t budget)
{
	struct output *o = &w->output;
	ssize_t err = 0;

	if (!o->link || o->failed)
		return o->failed;
	while (!err && budget) {
		err = push(o, &budget);
		if (!err && !stage_more(w))
			break;
	}
	if (err && err != -EAGAIN) {
		o->failed = err;
		return err;
	}
	o->want_out = err == -EAGAIN || rgpu_link_events(o->link) & POLLOUT;
	return 0;
}

/* From a lane's thread: what it leaves undone, the I/O thread does. */
static void pump_from_lane(struct worker *w)
{
	struct output *o = &w->output;

	if (!o->link || o->failed || o->want_out)
		return;
	output_pump(w, LANE_BUDGET);
	if (o->failed || o->want_out || output_more(w))
		worker_kick(w);
}

static bool overlap(const struct reply *a, const struct reply *b)
{
	for (unsigned i = 0; i < a->nseg; i++)
		for (unsigned k = 0; k < b->nseg; k++)
			if (a->seg[i].bo == b->seg[k].bo && a->seg[i].off < b->seg[k].off + b->seg[k].len &&
			    b->seg[k].off < a->seg[i].off + a->seg[i].len)
				return true;
	return false;
}

/* The last of the other lanes' unsent replies that brings bytes to where this one does: 0 there is none. */
static uint64_t overtaken(const struct srv_lane *lane, const struct reply *r)
{
	const struct worker *w = lane->w;
	uint64_t last = 0;

	for (unsigned i = 0; i < w->nlanes; i++)
		for (const struct reply *q = w->lanes[i] == lane ? NULL : w->lanes[i]->unsent; q; q = q->next)
			if (q->order > last && overlap(q, r))
				last = q->order;
	return last;
}

void output_reply(struct srv_lane *lane, struct reply *r, bool ordered, bool tells)
{
	struct worker *w = lane->w;
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	if (lane->gone) {
		reply_put(r);
		pthread_mutex_unlock(&o->lock);
		return;
	}
	r->rep.rseq = ++lane->rseq;
	r->barrier = tells ? o->order : overtaken(lane, r);
	if (r->rep.flags & RGPU_REP_QUIET) {
		if (ordered) {
			r->order = ++o->order;
			order_add(o, r);
		}
	} else {
		r->rep.qstatus = o->qstatus;
		r->rep.qop = o->qop;
		o->qstatus = 0;
		o->qop = 0;
	}
	*lane->replies_tail = r;
	lane->replies_tail = &r->next;
	if (!lane->unsent)
		lane->unsent = r;
	lane->retained += r->rep.len + r->rep.bulk;
	w->retained += r->rep.len + r->rep.bulk;
	pump_from_lane(w);
	pthread_mutex_unlock(&o->lock);
}

void output_quiet_error(struct worker *w, int32_t status, uint32_t op)
{
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	if (!o->qstatus) {
		o->qstatus = status;
		o->qop = op;
	}
	pthread_mutex_unlock(&o->lock);
}

bool output_owes_error(struct worker *w)
{
	struct output *o = &w->output;
	bool owes;

	pthread_mutex_lock(&o->lock);
	owes = o->qstatus;
	pthread_mutex_unlock(&o->lock);
	return owes;
}

static void drop_first(struct srv_lane *lane)
{
	struct output *o = &lane->w->output;
	struct reply *r = lane->replies;

	if (lane->unsent == r)
		lane->unsent = r->next;
	if (r->order)
		order_remove(o, r);
	lane->replies = r->next;
	if (!lane->replies)
		lane->replies_tail = &lane->replies;
	lane->retained -= r->rep.len + r->rep.bulk;
	lane->w->retained -= r->rep.len + r->rep.bulk;
	reply_put(r);
}

/* Lanes wait for their own replies to be acknowledged, or for anybody's. */
static void room_for_more(struct worker *w, struct srv_lane *lane, bool was_full)
{
	if (!lane_full(lane))
		pthread_cond_broadcast(&lane->room);
	for (unsigned i = 0; was_full && i < w->nlanes; i++)
		if (!lane_full(w->lanes[i]))
			pthread_cond_broadcast(&w->lanes[i]->room);
}

int output_ack(struct srv_lane *lane, uint64_t published)
{
	bool was_full = lane->w->retained > RETAINED_POOL;

	if (published > lane->sent_rseq)
		return -EPROTO;
	while (lane->replies && lane->replies->rep.rseq <= published)
		drop_first(lane);
	room_for_more(lane->w, lane, was_full && lane->w->retained <= RETAINED_POOL);
	return 0;
}

void output_drop_all(struct srv_lane *lane)
{
	bool was_full = lane->w->retained > RETAINED_POOL;

	while (lane->replies)
		drop_first(lane);
	lane->gone = true;
	if (lane->grant_due)
		lane->w->output.grants--;
	lane->grant_due = false;
	pthread_cond_broadcast(&lane->room);
	room_for_more(lane->w, lane, was_full);
}

static int by_order(const void *a, const void *b)
{
	const struct reply *x = *(struct reply *const *)a, *y = *(struct reply *const *)b;

	return x->order < y->order ? -1 : x->order > y->order;
}

/* The numbered replies of all lanes are unsent again: line them up anew. */
static int order_rebuild(struct worker *w)
{
	struct output *o = &w->output;
	struct reply **all;
	size_t n = 0;

	for (unsigned i = 0; i < w->nlanes; i++)
		for (struct reply *r = w->lanes[i]->replies; r; r = r->next)
			n += r->order != 0;
	o->order_head = NULL;
	o->order_tail = &o->order_head;
	if (!n)
		return 0;
	all = malloc(n * sizeof(*all));
	if (!all)
		return -ENOMEM;
	n = 0;
	for (unsigned i = 0; i < w->nlanes; i++)
		for (struct reply *r = w->lanes[i]->replies; r; r = r->next)
			if (r->order)
				all[n++] = r;
	qsort(all, n, sizeof(*all), by_order);
	for (size_t i = 0; i < n; i++)
		order_add(o, all[i]);
	free(all);
	return 0;
}

int output_reset(struct worker *w)
{
	for (unsigned i = 0; i < w->nlanes; i++) {
		struct srv_lane *lane = w->lanes[i];

		lane->unsent = lane->replies;
		for (struct reply *r = lane->replies; r; r = r->next)
			r->sent = 0;
		lane->cq_sent = 0;
		lane->cq_allow = RGPU_CQ_CREDIT_INITIAL;
		lane->grant_due = false;
		lane->need = 0;
	}
	w->output.grants = 0;
	return order_rebuild(w);
}
