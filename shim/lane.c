// SPDX-License-Identifier: MIT
/* Writes records into a channel's ring and takes replies out of it; the only place that knows of rings. */
#include "shim/lane.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "shim/cuda_api.h"
#include "shim/progress.h"
#include "shim/count.h"
#include "shim/session.h"

#define SPIN_MAX 4000u
#define SPIN_MIN 60u
#define LOOK_MS	 1000 /* a wait ends by a kick; that it also looks around once a second costs nothing */

/* Pages are shared with another process: each word is read once, with the order that the protocol asks for. */
#define load_acquire(p)	    __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

int lane_open(struct rgpu_lane *l)
{
	int r = rgpu_transport_channel(l->session->transport, &l->ch);

	if (r == -ENOSPC || r == -EMFILE || r == -ENOMEM)
		return session_error(l->session, CUDA_ERROR_OUT_OF_MEMORY, "no channel for one more thread");
	if (r)
		return session_error(l->session, CUDA_ERROR_DEVICE_UNAVAILABLE, "no channel for this thread");
	l->sq_tail = l->ch.a->sq_tail;
	l->sq_head = load_acquire(&l->ch.p->sq_head);
	l->cq_head = l->cq_kicked = l->ch.a->cq_head;
	/* Directly, this thread itself is who receives: there is nothing to look at before. */
	l->spin_max =
		sysconf(_SC_NPROCESSORS_ONLN) > 1 && strcmp(rgpu_transport_name(l->session->transport), "direct") ? SPIN_MAX : 0;
	l->spin = l->spin_max / 4;
	return 0;
}

static void kick(struct rgpu_lane *l)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (load_acquire(&l->ch.p->sq_event) == RGPU_EVENT_ASLEEP)
		rgpu_transport_kick(l->session->transport, l->ch.id);
}

static void take_reply(struct rgpu_lane *l, const struct rgpu_rep *rep, const uint8_t *body)
{
	if (rep->qstatus)
		session_pending(l->session, rep->qop, rep->qstatus);
	for (struct fence **at = &l->fences; *at; at = &(*at)->next) {
		struct fence *f = *at;

		if (f->seq != rep->seq)
			continue;
		f->got = rep->body_len < f->room ? rep->body_len : f->room;
		if (f->got)
			memcpy(f->out, body, f->got);
		f->status = rep->status;
		f->bulk = rep->bulk;
		f->done = true;
		*at = f->next;
		return;
	}
}

/* Takes all that lies in the CQ. A ring that breaks its own rules ends the session. */
static int drain(struct rgpu_lane *l)
{
	uint32_t mask = l->ch.cq_size - 1, tail = load_acquire(&l->ch.p->cq_tail);

	while (l->cq_head != tail) {
		uint32_t off = l->cq_head & mask, left = tail - l->cq_head, len;
		struct rgpu_rep rep;

		if (left > l->ch.cq_size || left < RGPU_REC_ALIGN)
			return session_fail(l->session, "the completion ring is broken");
		memcpy(&rep, l->ch.cq + off, RGPU_REC_ALIGN);
		len = rep.len;
		if (len < RGPU_REC_ALIGN || len % RGPU_REC_ALIGN || len > left || len > l->ch.cq_size - off)
			return session_fail(l->session, "the completion ring is broken");
		if (!(rep.flags & RGPU_REP_PAD)) {
			if (len < sizeof(rep))
				return session_fail(l->session, "the completion ring is broken");
			memcpy(&rep, l->ch.cq + off, sizeof(rep));
			if (rep.body_len > len - sizeof(rep))
				return session_fail(l->session, "the completion ring is broken");
			take_reply(l, &rep, l->ch.cq + off + sizeof(rep));
		}
		l->cq_head += len;
		store_release(&l->ch.a->cq_head, l->cq_head);
	}
	if (l->cq_head - l->cq_kicked >= l->ch.cq_size / 4) {
		l->cq_kicked = l->cq_head;
		kick(l);
	}
	return 0;
}

static bool have_reply(struct rgpu_lane *l, const void *arg)
{
	const struct fence *f = arg;

	return f->done || load_acquire(&l->ch.p->cq_tail) != l->cq_head;
}

static bool have_acked(struct rgpu_lane *l, const void *arg)
{
	return load_acquire(&l->ch.p->acked) >= *(const uint64_t *)arg;
}

static bool have_room(struct rgpu_lane *l, const void *arg)
{
	l->sq_head = load_acquire(&l->ch.p->sq_head);
	return l->ch.sq_size - (l->sq_tail - l->sq_head) >= *(const uint32_t *)arg;
}

/* Returns when @cond may hold. Replies are taken meanwhile, so that neither side waits for the other's ring. */
static int wait_for(struct rgpu_lane *l, bool (*cond)(struct rgpu_lane *, const void *), const void *arg)
{
	uint32_t spun;
	int r;

	for (spun = 0; spun < l->spin; spun++) {
		if (cond(l, arg)) {
			if (l->spin < l->spin_max)
				l->spin += SPIN_MIN;
			return 0;
		}
		__builtin_ia32_pause();
	}
	if (l->spin > SPIN_MIN)
		l->spin -= l->spin / 8;
	for (;;) {
		store_release(&l->ch.a->cq_event, RGPU_EVENT_ASLEEP);
		atomic_thread_fence(memory_order_seq_cst);
		if (cond(l, arg))
			r = 0;
		else if (session_dead(l->session))
			r = session_fail(l->session, NULL);
		else
			r = rgpu_transport_wait(l->session->transport, l->ch.id, l->progress ? PROGRESS_LOOK_MS : LOOK_MS);
		if (r == -EINTR || r == -ETIMEDOUT)
			r = 0;
		store_release(&l->ch.a->cq_event, RGPU_EVENT_AWAKE);
		if (l->progress)
			progress_look(l);
		if (r < 0)
			r = session_fail(l->session, NULL);
		if (!r)
			r = drain(l);
		if (r || cond(l, arg))
			return r;
	}
}

struct rgpu_rec *lane_begin(struct rgpu_lane *l, uint16_t op, uint8_t flags, unsigned nseg, uint32_t len, int *err)
{
	uint32_t off = l->sq_tail & (l->ch.sq_size - 1), pad = 0, need;
	struct rgpu_rec *rec;

	if (l->busy) {
		*err = session_error(l->session, CUDA_ERROR_NOT_PERMITTED,
				     "a CUDA call from a signal handler inside a CUDA call");
		return NULL;
	}
	/* From here on: what a handler sent while this waits for room would lie where this record is to be. */
	l->busy = true;
	if (len > l->ch.sq_size - off)
		pad = l->ch.sq_size - off;
	need = pad + len;
	while (l->ch.sq_size - (l->sq_tail - l->sq_head) < need && !have_room(l, &need)) {
		*err = drain(l);
		if (!*err)
			*err = wait_for(l, have_room, &need);
		if (*err) {
			l->busy = false;
			return NULL;
		}
	}
	if (session_dead(l->session)) {
		*err = session_fail(l->session, NULL);
		l->busy = false;
		return NULL;
	}
	if (pad) {
		rec = (struct rgpu_rec *)(l->ch.sq + off);
		rec->len = pad;
		rec->op = 0;
		rec->flags = RGPU_REC_PAD;
		rec->nseg = 0;
		l->sq_tail += pad;
		off = 0;
	}
	rec = (struct rgpu_rec *)(l->ch.sq + off);
	rec->len = len;
	rec->op = op;
	rec->flags = flags;
	rec->nseg = nseg;
	rec->after = atomic_load_explicit(&l->session->counter, memory_order_acquire);
	return rec;
}

static bool sends(const struct rgpu_rec *rec)
{
	const struct rgpu_seg *seg = (const struct rgpu_seg *)(rec + 1);

	for (unsigned i = 0; i < rec->nseg; i++)
		if (seg[i].dir == RGPU_SEG_SEND)
			return true;
	return false;
}

uint64_t lane_publish(struct rgpu_lane *l, struct rgpu_rec *rec, bool place)
{
	rec->seq = ++l->seq;
	rec->stamp = place ? atomic_fetch_add_explicit(&l->session->counter, 1, memory_order_acq_rel) + 1 : 0;
	if (rec->nseg && sends(rec))
		l->bulk = l->seq;
	l->sq_tail += rec->len;
	store_release(&l->ch.a->sq_tail, l->sq_tail);
	return l->seq;
}

void lane_kick(struct rgpu_lane *l)
{
	atomic_signal_fence(memory_order_seq_cst);
	l->busy = false;
	kick(l);
}

void lane_expect(struct rgpu_lane *l, struct fence *f)
{
	f->done = false;
	f->got = 0;
	f->next = l->fences;
	l->fences = f;
}

static void forget(struct rgpu_lane *l, struct fence *f)
{
	for (struct fence **at = &l->fences; *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			return;
		}
}

/* Round trips that the link made for us, as bytes that the relay only named were gone at the server. */
static void count_needed(struct rgpu_lane *l)
{
	uint32_t now = __atomic_load_n(&l->ch.p->needed, __ATOMIC_RELAXED);

	if (now != l->needed)
		count_hidden(now - l->needed);
	l->needed = now;
}

int lane_wait(struct rgpu_lane *l, struct fence *f)
{
	int r = 0;

	while (!f->done && !r) {
		r = wait_for(l, have_reply, f);
		if (!r)
			r = drain(l);
	}
	count_needed(l);
	if (r)
		forget(l, f);
	return r;
}

int lane_wait_until(struct rgpu_lane *l, bool (*cond)(struct rgpu_lane *, const void *), const void *arg)
{
	int r = drain(l);

	while (!r && !cond(l, arg))
		r = wait_for(l, cond, arg);
	return r;
}

int lane_wait_acked(struct rgpu_lane *l, uint64_t seq)
{
	int r = drain(l);

	while (!r && !have_acked(l, &seq))
		r = wait_for(l, have_acked, &seq);
	count_needed(l);
	return r;
}
