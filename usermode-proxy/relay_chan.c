// SPDX-License-Identifier: MIT
/* The relay's channels and buffer objects: mapped when first heard of, let go when nothing needs them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "usermode-proxy/relay_int.h"

struct chan *relay_chan(struct rgpu_relay *r, uint32_t id)
{
	return id < RGPU_CHANNELS_MAX ? r->chan[id] : NULL;
}

static bool good_size(uint32_t size)
{
	return size >= RGPU_RING_MIN && size <= RGPU_RING_MAX && !(size & (size - 1));
}

/*
 * A predecessor may have died inside a publication. Once delivered is stored, bytes and cq_next are in place, so
 * whatever is missing behind it is done here; before that, the server sends the reply again.
 */
void relay_publish_recover(struct chan *c)
{
	struct rgpu_ppage *p = c->m.p;

	if (p->delivered != p->published) {
		__atomic_store_n(&p->cq_tail, p->cq_next, __ATOMIC_RELEASE);
		__atomic_store_n(&p->published, p->delivered, __ATOMIC_RELEASE);
		c->kick = true;
	}
	c->cq_tail = p->cq_tail;
	c->published = p->published;
}

int relay_chan_open(struct rgpu_relay *r, uint32_t id)
{
	struct chan *c;
	int err;

	if (id >= RGPU_CHANNELS_MAX)
		return relay_fail(r, -EPROTO, "channel %u is beyond the limit of %d", id, RGPU_CHANNELS_MAX);
	if (r->chan[id])
		return r->chan[id]->state == CHAN_OPEN ? 0 : -ENOENT;
	c = calloc(1, sizeof(*c));
	if (!c)
		return relay_fail(r, -ENOMEM, "no memory for a channel");
	c->id = id;
	err = r->ops->channel_map(r->arg, id, &c->m);
	if (err) {
		free(c);
		return err == -ENOENT ? err : relay_fail(r, err, "cannot map channel %u: %s", id, strerror(-err));
	}
	if (good_size(c->m.sq_size) && good_size(c->m.cq_size))
		c->ends = calloc(c->m.sq_size / sizeof(struct rgpu_rec), sizeof(*c->ends));
	if (!c->ends) {
		r->ops->channel_unmap(r->arg, id, &c->m);
		free(c);
		return relay_fail(r, -EINVAL, "channel %u has rings of impossible size, or there is no memory for it", id);
	}
	c->ends_mask = c->m.sq_size / sizeof(struct rgpu_rec) - 1;
	c->head = c->next = c->tail = c->m.p->sq_head;
	c->seq = c->received = c->m.p->acked;
	c->allowed = RGPU_SQ_CREDIT_INITIAL;
	c->reply_allow = c->reply_may = RGPU_CQ_CREDIT_INITIAL;
	relay_publish_recover(c);
	c->acked_to = c->rseq_in = c->published;
	c->state = CHAN_OPEN;
	/* The thread may sleep already, and only now is there an event word to say so. */
	if (__atomic_load_n(&r->sleeping, __ATOMIC_SEQ_CST))
		__atomic_store_n(&c->m.p->sq_event, RGPU_EVENT_ASLEEP, __ATOMIC_SEQ_CST);
	__atomic_store_n(&r->chan[id], c, __ATOMIC_RELEASE);
	if (r->nchan <= id)
		r->nchan = id + 1;
	return 0;
}

static void release(struct rgpu_relay *r, struct chan *c)
{
	for (unsigned i = c->pay.cur; i < c->pay.n; i++)
		relay_bo_put(r, c->pay.seg[i].bo);
	c->pay.n = c->pay.cur = 0;
	if (c->state == CHAN_OPEN)
		r->ops->channel_unmap(r->arg, c->id, &c->m);
	free(c->ends);
	free(c->held);
	c->ends = NULL;
	c->held = NULL;
	c->held_len = c->held_room = 0;
}

/* The slot stays, closed: late frames of the server for it are known as such. */
static void chan_close(struct rgpu_relay *r, struct chan *c)
{
	release(r, c);
	if (r->timed.chan == c)
		r->timed.chan = NULL;
	memset(&c->m, 0, sizeof(c->m));
	c->state = CHAN_CLOSED;
	c->kick = c->ack_now = false;
}

/* All that was published has been handed to the link. */
static bool is_idle(const struct chan *c)
{
	return c->state == CHAN_OPEN && !c->pay.n && !c->rewind && __atomic_load_n(&c->m.a->sq_tail, __ATOMIC_ACQUIRE) == c->next;
}

void relay_chan_end(struct rgpu_relay *r, struct chan *c)
{
	/* What the server does not have yet it may need again, on this connection or on the next. */
	if (c->ending && is_idle(c) && c->received == c->seq && relay_stage(r, RGPU_D_CLOSE_CHANNEL, c->id, NULL, 0))
		chan_close(r, c);
}

void relay_chan_look(struct rgpu_relay *r)
{
	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];

		if (!c || !c->kicked || c->ending || !is_idle(c))
			continue;
		c->kicked = false;
		c->ending = !r->ops->channel_alive(r->arg, i);
	}
}

void relay_chan_free_all(struct rgpu_relay *r)
{
	for (unsigned i = 0; i < r->nchan; i++) {
		if (!r->chan[i])
			continue;
		release(r, r->chan[i]);
		free(r->chan[i]);
		r->chan[i] = NULL;
	}
	r->nchan = 0;
}

int relay_kicks(struct rgpu_relay *r)
{
	uint64_t bits[RGPU_CHANNELS_MAX / 64] = {0};
	int err;

	if (!r->ops->kicked)
		return 0;
	err = r->ops->kicked(r->arg, bits);
	if (err)
		return err;
	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++) {
		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		err = relay_chan_open(r, i);
		if (err && err != -ENOENT)
			return err;
		if (r->chan[i])
			r->chan[i]->kicked = true;
	}
	/* A kick without a record may be the channel's end. */
	relay_chan_look(r);
	return 0;
}

static struct relay_bo **bucket(struct rgpu_relay *r, uint32_t handle)
{
	return &r->bo[handle * 2654435761u >> 22 & (BO_BUCKETS - 1)];
}

static void unmap(struct rgpu_relay *r, struct relay_bo **at)
{
	struct relay_bo *bo = *at;

	*at = bo->next;
	r->nbo--;
	r->ops->bo_unmap(r->arg, bo->handle, bo->base, bo->bytes);
	free(bo);
}

static void unmap_idle(struct rgpu_relay *r)
{
	for (unsigned i = 0; i < BO_BUCKETS; i++)
		for (struct relay_bo **at = &r->bo[i]; *at;)
			if ((*at)->users)
				at = &(*at)->next;
			else
				unmap(r, at);
}

struct relay_bo *relay_bo_get(struct rgpu_relay *r, uint32_t handle)
{
	struct relay_bo **slot = bucket(r, handle), *bo;

	for (bo = *slot; bo; bo = bo->next)
		if (bo->handle == handle && !bo->gone) {
			bo->users++;
			return bo;
		}
	if (!handle)
		return NULL;
	/* A proxy has the maps of all programs, and a process may have some 65,000. */
	if (r->nbo >= RELAY_BO_MAPS)
		unmap_idle(r);
	bo = calloc(1, sizeof(*bo));
	if (!bo)
		return NULL;
	if (r->ops->bo_map(r->arg, handle, &bo->base, &bo->bytes)) {
		free(bo);
		return NULL;
	}
	bo->handle = handle;
	bo->users = 1;
	bo->next = *slot;
	*slot = bo;
	r->nbo++;
	return bo;
}

void relay_bo_put(struct rgpu_relay *r, struct relay_bo *bo)
{
	if (--bo->users || !bo->gone)
		return;
	for (struct relay_bo **at = bucket(r, bo->handle); *at; at = &(*at)->next)
		if (*at == bo) {
			unmap(r, at);
			return;
		}
}

void relay_bo_sweep(struct rgpu_relay *r, bool all)
{
	for (unsigned i = 0; i < BO_BUCKETS && r->nbo; i++)
		for (struct relay_bo **at = &r->bo[i]; *at;) {
			struct relay_bo *bo = *at;

			if (!bo->gone && (all || (r->ops->bo_alive && !r->ops->bo_alive(r->arg, bo->handle))))
				bo->gone = true;
			if (bo->gone && !bo->users)
				unmap(r, at);
			else
				at = &bo->next;
		}
}

void rgpu_relay_bo_gone(struct rgpu_relay *r, uint32_t handle, bool now)
{
	pthread_mutex_lock(&r->lock);
	for (struct relay_bo **at = bucket(r, handle); *at; at = &(*at)->next)
		if ((*at)->handle == handle && !(*at)->gone) {
			if (now)
				relay_rx_drop(r, *at);
			(*at)->gone = true;
			if (!(*at)->users)
				unmap(r, at);
			else if (now)
				relay_fail(r, -EFAULT, "the memory of a copy is gone, and not all of it was sent");
			break;
		}
	while (relay_unlock(r))
		;
}
