// SPDX-License-Identifier: MIT
/* The relay's way in: frames of the server, bytes into buffer objects, replies into completion rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/clock.h"
#include "usermode-proxy/relay_int.h"

#define ROUND_BYTES (2u << 20)
#define ACK_BYTES   4096u /* replies of so much are acknowledged without waiting for a record to ride with */

/* Where one more reply goes in the ring: bytes of PAD before it, or -ENOSPC now, -EMSGSIZE ever. */
static int ring_room(struct rgpu_relay *r, struct chan *c, uint32_t len, uint32_t *pad)
{
	uint32_t used = c->cq_tail - __atomic_load_n(&c->m.a->cq_head, __ATOMIC_ACQUIRE);
	uint32_t to_end = c->m.cq_size - (c->cq_tail & (c->m.cq_size - 1));

	if (used > c->m.cq_size || used % RGPU_REC_ALIGN)
		return relay_fail(r, -EBADMSG, "the program broke the completion ring of channel %u: %u bytes used of %u", c->id,
				  used, c->m.cq_size);
	*pad = len > to_end ? to_end : 0;
	if (len + *pad <= c->m.cq_size - used)
		return 0;
	if (!used && len > c->m.cq_size / 2)
		return relay_fail(r, -EMSGSIZE, "a reply of %u bytes does not fit in channel %u's completion ring of %u", len,
				  c->id, c->m.cq_size);
	return -ENOSPC;
}

/*
 * Publishes one reply. The order of the stores is the promise of struct rgpu_ppage: a successor finds from them what was done.
 * -ENOSPC: no room, nothing was stored.
 */
static int publish(struct rgpu_relay *r, struct chan *c, const struct rgpu_rep *rep, const uint8_t *bytes)
{
	struct rgpu_ppage *p = c->m.p;
	uint32_t next = c->cq_tail, pad = 0;
	int err;

	if (!(rep->flags & RGPU_REP_QUIET)) {
		err = ring_room(r, c, rep->len, &pad);
		if (err)
			return err;
		if (pad) {
			struct rgpu_rep end = {.len = pad, .flags = RGPU_REP_PAD};

			memcpy(c->m.cq + (next & (c->m.cq_size - 1)), &end, pad < sizeof(end) ? pad : sizeof(end));
			next += pad;
		}
		memcpy(c->m.cq + (next & (c->m.cq_size - 1)), bytes, rep->len);
		next += rep->len;
		c->reply_out += rep->len;
	}
	KILL_POINT("bytes in place");
	__atomic_store_n(&p->cq_next, next, __ATOMIC_RELEASE);
	KILL_POINT("cq_next");
	__atomic_store_n(&p->delivered, rep->rseq, __ATOMIC_RELEASE);
	KILL_POINT("delivered");
	__atomic_store_n(&p->cq_tail, next, __ATOMIC_RELEASE);
	KILL_POINT("cq_tail");
	__atomic_store_n(&p->published, rep->rseq, __ATOMIC_RELEASE);
	KILL_POINT("published");
	c->cq_tail = next;
	c->published = rep->rseq;
	c->kick = true;
	c->ack_bytes += rep->len;
	/* Bulk is memory that the server keeps for us. */
	if (rep->bulk || c->ack_bytes >= ACK_BYTES)
		c->ack_now = true;
	r->ack_lazy = true;
	r->count.replies++;
	return 0;
}

static uint32_t window(const struct chan *c)
{
	uint32_t w = c->m.cq_size / 4;

	return w < RGPU_CQ_CREDIT_INITIAL ? RGPU_CQ_CREDIT_INITIAL : w > (64u << 10) ? 64u << 10 : w;
}

/* Tells the server when the program has read enough. Also finds out whether that must be looked at again soon. */
static void update_credit(struct rgpu_relay *r, struct chan *c)
{
	uint32_t used = c->cq_tail - __atomic_load_n(&c->m.a->cq_head, __ATOMIC_ACQUIRE);
	uint64_t read, allow;

	if (used > c->m.cq_size)
		return; /* the next reply says it */
	read = c->reply_out > used ? c->reply_out - used : 0;
	allow = read + window(c);
	if (allow > c->reply_may)
		c->reply_may = allow;
	if (c->reply_may > c->reply_allow && (c->reply_in >= c->reply_allow || c->reply_may - c->reply_allow >= window(c) / 2))
		c->ack_now = true;
	if (c->held_len || c->reply_in >= c->reply_allow)
		r->poll_credit = true;
}

static int hold(struct rgpu_relay *r, struct chan *c, const uint8_t *bytes, uint32_t len)
{
	if (len > HELD_MAX - c->held_len)
		return relay_fail(r, -ENOBUFS, "channel %u has %u bytes of replies that the program does not read", c->id,
				  c->held_len);
	if (len > c->held_room - c->held_len) {
		uint32_t room = c->held_room ? 2 * c->held_room : 2 * RGPU_REP_MAX;
		uint8_t *held = realloc(c->held, room);

		if (!held)
			return relay_fail(r, -ENOMEM, "no memory for replies");
		c->held = held;
		c->held_room = room;
	}
	memcpy(c->held + c->held_len, bytes, len);
	c->held_len += len;
	return 0;
}

void relay_rx_drain(struct rgpu_relay *r)
{
	r->poll_credit = false;
	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];
		uint32_t done = 0;

		if (!c || c->state != CHAN_OPEN)
			continue;
		while (done < c->held_len) {
			struct rgpu_rep rep;
			int err;

			memcpy(&rep, c->held + done, sizeof(rep));
			err = publish(r, c, &rep, c->held + done);
			if (err == -ENOSPC)
				break;
			if (err)
				return;
			done += rep.len;
		}
		if (done) {
			memmove(c->held, c->held + done, c->held_len - done);
			c->held_len -= done;
		}
		if (c->reply_in)
			update_credit(r, c);
	}
}

static int on_replies(struct rgpu_relay *r, struct chan *c, const uint8_t *buf, uint32_t len)
{
	while (len) {
		uint64_t last = c->rseq_in;
		struct rgpu_rep rep;
		int err;

		if (len < sizeof(rep))
			return relay_fail(r, -EPROTO, "the server sent a part of a reply");
		memcpy(&rep, buf, sizeof(rep));
		if (rep.len < sizeof(rep) || rep.len > RGPU_REP_MAX || rep.len % RGPU_REC_ALIGN || rep.len > len ||
		    rep.body_len > rep.len - sizeof(rep) || rep.flags & ~RGPU_REP_QUIET)
			return relay_fail(r, -EPROTO, "the server sent a damaged reply: %u bytes, body %u, flags %#x", rep.len,
					  rep.body_len, rep.flags);
		if (rep.rseq != last + 1 || !rep.seq || rep.seq > c->seq)
			return relay_fail(r, -EPROTO,
					  "the server sent reply %llu to record %llu on channel %u after reply %llu, record %llu",
					  (unsigned long long)rep.rseq, (unsigned long long)rep.seq, c->id,
					  (unsigned long long)last, (unsigned long long)c->seq);
		if (!(rep.flags & RGPU_REP_QUIET)) {
			if (c->reply_in >= c->reply_allow)
				return relay_fail(r, -EPROTO, "the server sent more replies on channel %u than it was allowed to",
						  c->id);
			c->reply_in += rep.len;
		}
		err = c->held_len ? -ENOSPC : publish(r, c, &rep, buf);
		if (err == -ENOSPC)
			err = hold(r, c, buf, rep.len);
		if (err)
			return err;
		c->rseq_in = rep.rseq;
		buf += rep.len;
		len -= rep.len;
	}
	return 0;
}

static int on_grant(struct rgpu_relay *r, struct chan *c, const uint8_t *buf, uint32_t len)
{
	struct rgpu_grant g;

	if (len != sizeof(g))
		return relay_fail(r, -EPROTO, "the server sent a GRANT of %u bytes", len);
	memcpy(&g, buf, sizeof(g));
	rgpu_packer_look(&r->pack, r->count.sent_bytes);
	return relay_tx_granted(r, c, g.received, g.allow);
}

static int on_bye(struct rgpu_relay *r, const uint8_t *buf, uint32_t len)
{
	struct rgpu_error_frame e;

	if (len != sizeof(e))
		return relay_fail(r, -EPROTO, "the server sent a BYE of %u bytes", len);
	memcpy(&e, buf, sizeof(e));
	if (e.err <= 0 || e.err > 511)
		return relay_fail(r, -ECONNABORTED, "the server ended the session: %.*s", (int)sizeof(e.text), e.text);
	return relay_fail(r, -e.err, "%.*s", (int)sizeof(e.text), e.text);
}

/* Finds the place of a DATA frame's bytes; the bytes themselves come after the struct. */
static int begin_data(struct rgpu_relay *r, struct chan *c, const struct rgpu_data *d, uint32_t len)
{
	struct relay_bo *bo;

	if (c->state == CHAN_OPEN && (!d->seq || d->seq > c->seq))
		return relay_fail(r, -EPROTO, "the server sent data for record %llu of channel %u, which it does not have",
				  (unsigned long long)d->seq, c->id);
	r->data = NULL;
	r->data_left = len;
	if (c->state != CHAN_OPEN)
		return 0;
	bo = relay_bo_get(r, d->bo);
	if (!bo)
		return relay_fail(r, -EPROTO, "the server sent data for buffer object %u, which is not there", d->bo);
	if (d->off > bo->bytes || len > bo->bytes - d->off) {
		relay_fail(r, -EPROTO, "the server sent %u bytes for offset %llu of buffer object %u, which has %llu", len,
			   (unsigned long long)d->off, d->bo, (unsigned long long)bo->bytes);
		relay_bo_put(r, bo);
		return r->failed;
	}
	r->data = bo->base + d->off;
	r->data_bo = bo;
	return 0;
}

static void end_data(struct rgpu_relay *r)
{
	if (r->data_bo)
		relay_bo_put(r, r->data_bo);
	r->data_bo = NULL;
	r->data = NULL;
}

void relay_rx_drop(struct rgpu_relay *r, const struct relay_bo *bo)
{
	if (r->data_bo == bo)
		end_data(r);
}

static void moved_data(struct rgpu_relay *r, uint32_t n)
{
	if (r->data) {
		r->data += n;
		KILL_POINT("data");
	}
	r->data_left -= n;
	if (!r->data_left)
		end_data(r);
}

static int on_channel_frame(struct rgpu_relay *r, const struct rgpu_frame *f, const uint8_t *buf)
{
	struct chan *c = relay_chan(r, f->channel);

	if (!c)
		return relay_fail(r, -EPROTO, "the server sent frame type %u for channel %u, which it cannot know", f->type,
				  f->channel);
	if (c->state != CHAN_OPEN)
		return 0;
	switch (f->type) {
	case RGPU_D_GRANT:
		return on_grant(r, c, buf, f->len);
	case RGPU_D_NEED:
		return relay_needed(r, c, buf, f->len);
	}
	return on_replies(r, c, buf, f->len);
}

/* A word that the program may be polling is there at once, or not yet. */
static void put(void *to, const void *from, uint32_t n)
{
	uint64_t word;

	if (n == sizeof(word) && !((uintptr_t)to % sizeof(word))) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
	} else {
		memcpy(to, from, n);
	}
}

/* Compressed DATA: its bytes by way of memory of our own, as the program could change what lies in its. */
static int on_packed(struct rgpu_relay *r, const struct rgpu_frame *f, const uint8_t *buf)
{
	struct chan *c = relay_chan(r, f->channel);
	struct rgpu_packed p;
	struct rgpu_data d;
	uint32_t head = sizeof(p) + sizeof(d);
	int err;

	if (f->len <= head || !c)
		return relay_fail(r, -EPROTO, "the server sent a PACKED frame of %u bytes for channel %u", f->len, f->channel);
	memcpy(&p, buf, sizeof(p));
	memcpy(&d, buf + sizeof(p), sizeof(d));
	if (p.type != RGPU_D_DATA || !p.len || p.len > RGPU_PACKED_MAX)
		return relay_fail(r, -EPROTO, "the server sent a PACKED frame of type %u and %u bytes", p.type, p.len);
	if (!rgpu_unpack(&r->pack, p.how, buf + head, f->len - head, r->pack.scratch, p.len))
		return relay_fail(r, -EPROTO, "the server sent a PACKED frame that is damaged");
	err = begin_data(r, c, &d, p.len);
	if (err)
		return err;
	if (r->data)
		put(r->data, r->pack.scratch, p.len);
	moved_data(r, p.len);
	return 0;
}

static int on_frame(struct rgpu_relay *r, const struct rgpu_frame *f, const uint8_t *buf)
{
	switch (f->type) {
	case RGPU_D_GRANT:
	case RGPU_D_REPLY:
	case RGPU_D_NEED:
		return on_channel_frame(r, f, buf);
	case RGPU_D_KNOWN:
		return relay_known_told(r, f->flags, buf, f->len);
	case RGPU_D_PING:
		if (f->len != 8)
			return relay_fail(r, -EPROTO, "the server sent a PING of %u bytes", f->len);
		/* Without room for it, megabytes are on their way out: the server hears from us anyway. */
		relay_stage(r, RGPU_D_PONG, 0, buf, f->len);
		return 0;
	case RGPU_D_PONG:
		return 0; /* any bytes are a sign of life */
	case RGPU_D_BYE:
		return on_bye(r, buf, f->len);
	case RGPU_D_PACKED:
		return on_packed(r, f, buf);
	}
	return relay_fail(r, -EPROTO, "the server sent frame type %u, which this version (protocol %d.%d) does not know", f->type,
			  RGPU_WIRE_MAJOR, RGPU_WIRE_MINOR);
}

/* The frames that lie whole in the buffer, and the beginning of a DATA frame. */
static int parse(struct rgpu_relay *r)
{
	while (!r->data_left && r->rx_len - r->rx_at >= sizeof(struct rgpu_frame)) {
		uint32_t have = r->rx_len - r->rx_at - sizeof(struct rgpu_frame);
		const uint8_t *buf = r->rx + r->rx_at + sizeof(struct rgpu_frame);
		struct rgpu_frame f;
		int err;

		memcpy(&f, r->rx + r->rx_at, sizeof(f));
		if (f.len > RGPU_FRAME_MAX)
			return relay_fail(r, -EPROTO, "the server sent a frame of %u bytes", f.len);
		if (f.type == RGPU_D_DATA) {
			struct chan *c = relay_chan(r, f.channel);
			struct rgpu_data d;
			uint32_t n;

			if (f.len <= sizeof(d) || !c)
				return relay_fail(r, -EPROTO, "the server sent a DATA frame of %u bytes for channel %u", f.len,
						  f.channel);
			if (have < (f.len == sizeof(d) + sizeof(uint64_t) ? f.len : sizeof(d)))
				return 0;
			memcpy(&d, buf, sizeof(d));
			err = begin_data(r, c, &d, f.len - sizeof(d));
			if (err)
				return err;
			have -= sizeof(d);
			n = have < r->data_left ? have : r->data_left;
			if (r->data)
				put(r->data, buf + sizeof(d), n);
			r->rx_at += sizeof(f) + sizeof(d) + n;
			moved_data(r, n);
			continue;
		}
		if (have < f.len)
			return 0;
		err = on_frame(r, &f, buf);
		if (err)
			return err;
		r->rx_at += sizeof(f) + f.len;
	}
	return 0;
}

static ssize_t receive(struct rgpu_relay *r)
{
	ssize_t n;

	if (r->data_left) {
		uint8_t waste[4096];

		n = rgpu_link_read(r->link, r->data ? r->data : waste,
				   r->data || r->data_left < sizeof(waste) ? r->data_left : sizeof(waste));
		if (n > 0)
			moved_data(r, n);
		return n;
	}
	if (r->rx_at == r->rx_len) {
		r->rx_at = r->rx_len = 0;
	} else if (r->rx_len > RX_SIZE - RX_READ) {
		memmove(r->rx, r->rx + r->rx_at, r->rx_len - r->rx_at);
		r->rx_len -= r->rx_at;
		r->rx_at = 0;
	}
	n = rgpu_link_read(r->link, r->rx + r->rx_len, RX_SIZE - r->rx_len < RX_READ ? RX_SIZE - r->rx_len : RX_READ);
	if (n > 0)
		r->rx_len += n;
	return n;
}

bool relay_rx(struct rgpu_relay *r)
{
	uint32_t moved = 0;

	do {
		ssize_t n = receive(r);

		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			relay_lost(r, n ? rgpu_link_why(r->link) : "the server closed the connection");
			break;
		}
		moved += n;
		r->count.received_bytes += n;
		if (parse(r))
			break;
	} while (moved < ROUND_BYTES && rgpu_link_buffered(r->link));
	if (moved) {
		r->heard_at = rgpu_now_ns();
		r->pinged_at = 0;
	}
	return moved > 0;
}

void relay_rx_reset(struct rgpu_relay *r)
{
	r->rx_at = r->rx_len = 0;
	r->data_left = 0;
	end_data(r);
	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];

		if (!c)
			continue;
		/* Held replies were not published: the server sends them again. */
		c->held_len = 0;
		c->rseq_in = c->published;
		c->reply_in = c->reply_out = 0;
		c->reply_allow = c->reply_may = RGPU_CQ_CREDIT_INITIAL;
		c->acked_to = c->published;
		c->ack_now = false;
		c->ack_bytes = 0;
	}
}
