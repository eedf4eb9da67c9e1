// SPDX-License-Identifier: MIT
/* The relay's way out: records from the rings, their payload from buffer objects, acknowledgements. */
#include <errno.h>
#include <string.h>
#include "usermode-proxy/relay_int.h"

/* A round of the pump sends at most about this much before it looks at what comes in. */
#define ROUND_BYTES (1u << 20)
#define ROUND_NAMED (2u << 20)	/* of bytes that are only named */
#define BULK_MIN    (16u << 10) /* shorter payload is copied beside its record: a TLS record and a send less */

bool relay_stage(struct rgpu_relay *r, uint16_t type, uint32_t channel, const void *payload, uint32_t len)
{
	struct rgpu_frame hdr = {.len = len, .type = type, .channel = channel};

	if (STAGE_SIZE - r->stage_len < sizeof(hdr) + len)
		return false;
	memcpy(r->stage + r->stage_len, &hdr, sizeof(hdr));
	if (len)
		memcpy(r->stage + r->stage_len + sizeof(hdr), payload, len);
	r->stage_len += sizeof(hdr) + len;
	return true;
}

static void stage_ack(struct rgpu_relay *r, struct chan *c)
{
	struct rgpu_ack ack = {.published = c->published, .allow = c->reply_may};

	if (!relay_stage(r, RGPU_D_ACK, c->id, &ack, sizeof(ack)))
		return; /* stays due */
	KILL_POINT("ack");
	c->acked_to = c->published;
	c->reply_allow = c->reply_may;
	c->ack_bytes = 0;
	c->ack_now = false;
}

/*
 * Bytes that the program has published beyond c->next. Its tail is looked at when all before the last look is taken: the program
 * writes there with each record, and each look takes that line away from it.
 */
static int ring_avail(struct rgpu_relay *r, struct chan *c, uint32_t *avail)
{
	uint32_t tail, n;

	*avail = c->tail - c->next;
	if (*avail)
		return 0;
	tail = __atomic_load_n(&c->m.a->sq_tail, __ATOMIC_ACQUIRE);
	n = tail - c->next;
	if (n > c->m.sq_size - (c->next - c->head) || n % RGPU_REC_ALIGN)
		return relay_fail(r, -EBADMSG, "the program broke the ring of channel %u: its tail %u does not follow %u", c->id,
				  tail, c->next);
	c->tail = tail;
	*avail = n;
	return 0;
}

static void set_head(struct chan *c, uint32_t head, uint64_t acked)
{
	c->head = head;
	__atomic_store_n(&c->m.p->acked, acked, __ATOMIC_RELEASE);
	KILL_POINT("acked");
	__atomic_store_n(&c->m.p->sq_head, head, __ATOMIC_RELEASE);
	KILL_POINT("sq_head");
	c->kick = true;
}

/*
 * The header of the record at c->next, in private memory, after the PADs before it. 0 none, 1 a record, else the
 * session failed.
 */
static int peek(struct rgpu_relay *r, struct chan *c, struct rgpu_rec *rec)
{
	uint32_t avail, at, to_end;
	int err;

	for (;;) {
		err = ring_avail(r, c, &avail);
		if (err)
			return err;
		if (!avail)
			return 0;
		at = c->next & (c->m.sq_size - 1);
		to_end = c->m.sq_size - at;
		memset(rec, 0, sizeof(*rec));
		memcpy(rec, c->m.sq + at, to_end < sizeof(*rec) ? to_end : sizeof(*rec));
		if (!(rec->flags & RGPU_REC_PAD))
			break;
		if (rec->len != to_end || rec->len > avail)
			return relay_fail(r, -EBADMSG,
					  "the program broke the ring of channel %u: a PAD of %u bytes, %u to the ring's end",
					  c->id, rec->len, to_end);
		c->next += rec->len;
		if (c->received == c->seq)
			set_head(c, c->next, c->received);
		else
			c->ends[c->seq & c->ends_mask] = c->next;
	}
	if (rec->len < sizeof(*rec) || rec->len % RGPU_REC_ALIGN || rec->len > RGPU_REC_MAX || rec->len > avail ||
	    rec->len > to_end)
		return relay_fail(r, -EBADMSG, "the program broke the ring of channel %u: a record of %u bytes, %u published",
				  c->id, rec->len, avail);
	if (rec->nseg > RGPU_SEG_MAX || rec->len < sizeof(*rec) + rec->nseg * sizeof(struct rgpu_seg) ||
	    rec->flags & ~RGPU_REC_FENCE)
		return relay_fail(r, -EBADMSG,
				  "the program broke the ring of channel %u: a record with %u segments in %u bytes, flags %#x",
				  c->id, rec->nseg, rec->len, rec->flags);
	return 1;
}

/* Checks the segments against the buffer objects, and notes those to send. */
static int take_segments(struct rgpu_relay *r, struct chan *c, const struct rgpu_rec *rec, const uint8_t *bytes)
{
	uint64_t sum[2] = {0, 0};

	for (unsigned i = 0; i < rec->nseg; i++) {
		struct relay_bo *bo;
		struct rgpu_seg s;
		bool send;

		memcpy(&s, bytes + sizeof(*rec) + i * sizeof(s), sizeof(s));
		send = s.dir == RGPU_SEG_SEND;
		if (!send && s.dir != RGPU_SEG_RECV)
			return relay_fail(r, -EBADMSG, "channel %u, record %llu: segment %u has direction %u", c->id,
					  (unsigned long long)rec->seq, i, s.dir);
		bo = relay_bo_get(r, s.bo);
		if (!bo)
			return relay_fail(r, -EBADMSG, "channel %u, record %llu: there is no buffer object %u", c->id,
					  (unsigned long long)rec->seq, s.bo);
		if (s.off > bo->bytes || s.len > bo->bytes - s.off || s.len > RGPU_CHUNK_MAX ||
		    (sum[send] += s.len) > RGPU_CHUNK_MAX) {
			relay_fail(
				r, -EBADMSG,
				"channel %u, record %llu: segment %u (%llu bytes at %llu of buffer object %u) is out of bounds",
				c->id, (unsigned long long)rec->seq, i, (unsigned long long)s.len, (unsigned long long)s.off,
				s.bo);
			relay_bo_put(r, bo);
			return r->failed;
		}
		if (!send || !s.len) {
			relay_bo_put(r, bo);
			continue;
		}
		c->pay.seg[c->pay.n].bo = bo;
		c->pay.seg[c->pay.n].off = s.off;
		c->pay.seg[c->pay.n++].len = s.len;
	}
	c->pay.cur = 0;
	c->pay.done = 0;
	c->sent += sum[1];
	return 0;
}

static bool has_send(const struct rgpu_rec *rec, const uint8_t *bytes)
{
	struct rgpu_seg s;

	for (unsigned i = 0; i < rec->nseg; i++) {
		memcpy(&s, bytes + sizeof(*rec) + i * sizeof(s), sizeof(s));
		if (s.dir == RGPU_SEG_SEND)
			return true;
	}
	return false;
}

/* One record into the stage at @dst. Its length, 0 none, or the session failed. *last: it ends its frame. */
static int take_record(struct rgpu_relay *r, struct chan *c, uint8_t *dst, bool *last)
{
	struct rgpu_rec rec, now;
	int err;

	err = peek(r, c, &rec);
	if (err <= 0)
		return err;
	if (rec.seq != c->seq + 1)
		return relay_fail(r, -EBADMSG, "the program broke the ring of channel %u: record %llu follows %llu", c->id,
				  (unsigned long long)rec.seq, (unsigned long long)c->seq);
	memcpy(dst, c->m.sq + (c->next & (c->m.sq_size - 1)), rec.len);
	/* The program may have written meanwhile: what was checked is what must go. */
	memcpy(&now, dst, sizeof(now));
	if (memcmp(&now, &rec, sizeof(rec)))
		return relay_fail(r, -EBADMSG, "the program changed record %llu of channel %u after it was published",
				  (unsigned long long)rec.seq, c->id);
	c->sent += rec.len;
	err = take_segments(r, c, &rec, dst);
	if (err)
		return err;
	*last = has_send(&rec, dst);
	c->next += rec.len;
	c->seq = rec.seq;
	c->ends[c->seq & c->ends_mask] = c->next;
	r->count.records++;
	if (*last || rec.flags & RGPU_REC_FENCE)
		relay_ahead_sent(r, c);
	return rec.len;
}

/* A frame of records of one channel. Whether there was one. */
static bool stage_records(struct rgpu_relay *r, struct chan *c)
{
	struct rgpu_frame hdr = {.type = RGPU_D_RECORDS, .channel = c->id, .flags = c->ahead_mib};
	struct rgpu_packed packed = {.type = RGPU_D_RECORDS};
	bool last = false;
	unsigned records = 0;
	uint32_t n;

	for (; !last && c->sent < c->allowed && hdr.len < RECORDS_MAX; records++) {
		int n = take_record(r, c, r->stage + r->stage_len + sizeof(hdr) + hdr.len, &last);

		if (n < 0)
			return false;
		if (!n)
			break;
		hdr.len += n;
	}
	if (!hdr.len)
		return false;
	if (records >= THICK)
		__atomic_store_n(&c->thick, 1, __ATOMIC_RELAXED);
	packed.len = hdr.len;
	n = rgpu_pack(&r->pack, r->count.sent_bytes, r->stage + r->stage_len + sizeof(hdr), hdr.len, r->pack.scratch,
		      RGPU_PACK_ROOM, &packed.how);
	if (n) {
		hdr.type = RGPU_D_PACKED;
		hdr.len = sizeof(packed) + n;
		memcpy(r->stage + r->stage_len + sizeof(hdr), &packed, sizeof(packed));
		memcpy(r->stage + r->stage_len + sizeof(hdr) + sizeof(packed), r->pack.scratch, n);
	}
	memcpy(r->stage + r->stage_len, &hdr, sizeof(hdr));
	r->stage_len += sizeof(hdr) + hdr.len;
	return true;
}

/* The frame, compressed, if that makes it smaller and pays. */
static bool stage_packed(struct rgpu_relay *r, const struct rgpu_frame *f, const void *body)
{
	struct rgpu_packed p = {.len = f->len, .type = f->type};
	struct rgpu_frame hdr = *f;
	uint8_t *to = r->stage + r->stage_len + sizeof(hdr) + sizeof(p);
	uint32_t n = rgpu_pack(&r->pack, r->count.sent_bytes, body, f->len, to,
			       STAGE_SIZE - r->stage_len - sizeof(hdr) - sizeof(p), &p.how);

	if (!n)
		return false;
	hdr.type = RGPU_D_PACKED;
	hdr.len = sizeof(p) + n;
	memcpy(r->stage + r->stage_len, &hdr, sizeof(hdr));
	memcpy(r->stage + r->stage_len + sizeof(hdr), &p, sizeof(p));
	r->stage_len += sizeof(hdr) + hdr.len;
	return true;
}

/* As it lies, if it is long. */
static void stage_plain(struct rgpu_relay *r, const struct rgpu_frame *hdr, const uint8_t *from, struct relay_bo *bo)
{
	memcpy(r->stage + r->stage_len, hdr, sizeof(*hdr));
	r->stage_len += sizeof(*hdr);
	if (hdr->len <= BULK_MIN) {
		memcpy(r->stage + r->stage_len, from, hdr->len);
		r->stage_len += hdr->len;
	} else {
		r->bulk_at = r->stage_len;
		r->bulk = from;
		r->bulk_len = hdr->len;
		r->bulk_bo = bo;
		bo->users++;
	}
}

/* The next piece of the payload of one channel, behind what is staged. */
static bool stage_payload(struct rgpu_relay *r, struct chan *c)
{
	struct rgpu_frame hdr = {.type = RGPU_D_PAYLOAD, .channel = c->id};
	struct relay_bo *bo = c->pay.seg[c->pay.cur].bo;
	uint64_t left = c->pay.seg[c->pay.cur].len - c->pay.done;
	const uint8_t *from;
	struct rgpu_ref ref;
	uint32_t len;

	len = hdr.len = left < RGPU_FRAME_BULK ? left : RGPU_FRAME_BULK;
	from = bo->base + c->pay.seg[c->pay.cur].off + c->pay.done;
	if (relay_known_ref(r, from, len, &ref)) {
		hdr.type = RGPU_D_REF;
		hdr.len = sizeof(ref);
		from = (const uint8_t *)&ref;
		r->hashed += len;
	}
	if (hdr.type == RGPU_D_PAYLOAD && stage_packed(r, &hdr, from))
		r->hashed += len;
	else
		stage_plain(r, &hdr, from, bo);
	c->pay.done += len;
	if (c->pay.done == c->pay.seg[c->pay.cur].len) {
		relay_bo_put(r, bo);
		c->pay.done = 0;
		if (++c->pay.cur == c->pay.n)
			c->pay.n = c->pay.cur = 0;
	}
	return true;
}

/* Small things of all channels first, then one piece of bulk of the channel whose turn it is. */
static bool fill(struct rgpu_relay *r)
{
	bool any = false;

	for (unsigned i = 0; i < r->nchan && r->stage_len < STAGE_FULL; i++) {
		struct chan *c = r->chan[(r->turn + i) % r->nchan];
		uint32_t avail;

		if (!c || c->state != CHAN_OPEN || (c->rewind && !relay_rewind(r, c)))
			continue;
		if (c->ending) {
			relay_chan_end(r, c);
			if (c->state != CHAN_OPEN) {
				any = true;
				continue;
			}
		}
		if (ring_avail(r, c, &avail))
			return false;
		/* An acknowledgement that is not urgent rides before records. */
		if (c->ack_now || (avail && c->acked_to != c->published)) {
			stage_ack(r, c);
			any = true;
		}
		if (avail && !c->pay.n)
			any |= stage_records(r, c);
		if (r->failed)
			return false;
	}
	for (unsigned i = 1; i <= r->nchan; i++) {
		unsigned at = (r->turn + i) % r->nchan;

		if (r->inline_only || !r->chan[at] || !r->chan[at]->pay.n || r->chan[at]->rewind)
			continue;
		r->turn = at;
		return stage_payload(r, r->chan[at]);
	}
	return any;
}

static bool push(struct rgpu_relay *r, const uint8_t *buf, uint32_t len, uint32_t *done)
{
	ssize_t n = rgpu_link_put(r->link, buf, len);

	if (n == -EAGAIN) {
		r->blocked = true;
		return false;
	}
	if (n < 0) {
		relay_lost(r, rgpu_link_why(r->link));
		return false;
	}
	*done = n;
	r->count.sent_bytes += n;
	return true;
}

static bool flush_stage(struct rgpu_relay *r, uint32_t to, uint32_t *moved)
{
	uint32_t n;

	while (r->stage_at < to) {
		if (!push(r, r->stage + r->stage_at, to - r->stage_at, &n))
			return false;
		r->stage_at += n;
		*moved += n;
	}
	return true;
}

/* What is staged before the bulk, the bulk, what was staged since. */
static bool flush(struct rgpu_relay *r, uint32_t *moved)
{
	if (!flush_stage(r, r->bulk_bo ? r->bulk_at : r->stage_len, moved))
		return false;
	if (r->bulk_bo) {
		uint32_t n;

		while (r->bulk_len) {
			if (!push(r, r->bulk, r->bulk_len, &n))
				return false;
			r->bulk += n;
			r->bulk_len -= n;
			*moved += n;
		}
		relay_bo_put(r, r->bulk_bo);
		r->bulk_bo = NULL;
		if (!flush_stage(r, r->stage_len, moved))
			return false;
	}
	r->stage_at = r->stage_len = 0;
	return true;
}

bool relay_tx(struct rgpu_relay *r)
{
	uint32_t moved = 0;
	bool more, clear;
	int err;

	r->blocked = false;
	r->hashed = 0;
	do {
		clear = flush(r, &moved);
		more = false;
		/* Much small goes in one TLS record. */
		while (clear && r->stage_len < STAGE_FULL && !r->bulk_bo && r->hashed < ROUND_NAMED && fill(r))
			more = true;
	} while (more && moved < ROUND_BYTES && r->hashed < ROUND_NAMED);
	if (more && clear)
		flush(r, &moved);
	if (r->failed || r->lost_at)
		return false;
	err = rgpu_link_flush(r->link);
	if (err == -EAGAIN)
		r->blocked = true;
	else if (err)
		relay_lost(r, rgpu_link_why(r->link));
	if (moved)
		KILL_POINT("sent");
	return moved > 0;
}

bool relay_tx_work(const struct rgpu_relay *r)
{
	if (r->stage_at < r->stage_len || r->bulk_bo)
		return true;
	for (unsigned i = 0; i < r->nchan; i++) {
		const struct chan *c = r->chan[i];

		if (!c || c->state != CHAN_OPEN)
			continue;
		if (c->pay.n || c->ack_now || c->rewind)
			return true;
		if (c->sent < c->allowed && __atomic_load_n(&c->m.a->sq_tail, __ATOMIC_ACQUIRE) != c->next)
			return true;
	}
	return false;
}

void relay_tx_reset(struct rgpu_relay *r)
{
	r->stage_at = r->stage_len = r->bulk_len = 0;
	if (r->bulk_bo)
		relay_bo_put(r, r->bulk_bo);
	r->bulk_bo = NULL;
	r->blocked = false;
	r->cached = false;
	r->name_after = r->in_vain = 0;
	relay_known_clear(r);
	relay_ahead_reset(r);
	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];

		if (!c)
			continue;
		for (unsigned k = c->pay.cur; k < c->pay.n; k++)
			relay_bo_put(r, c->pay.seg[k].bo);
		c->pay.n = c->pay.cur = 0;
		c->rewind = 0;
		c->sent = 0;
		c->allowed = RGPU_SQ_CREDIT_INITIAL;
	}
}

/*
 * The server has everything up to @received. Starts again at the ring's head, which may be behind that, steps over what is not
 * to be sent again and frees it.
 */
int relay_tx_skip(struct rgpu_relay *r, struct chan *c, uint64_t received)
{
	uint64_t acked = c->received, last = 0;
	struct rgpu_rec rec;
	int err;

	if (received < acked)
		return relay_fail(r, -EPROTO, "the server lost records %llu to %llu of channel %u",
				  (unsigned long long)received + 1, (unsigned long long)acked, c->id);
	c->next = c->head;
	c->seq = c->received = received;
	while ((err = peek(r, c, &rec)) > 0) {
		if (!last && (!rec.seq || rec.seq > acked + 1))
			return relay_fail(r, -EBADMSG, "the program broke the ring of channel %u: record %llu follows %llu",
					  c->id, (unsigned long long)rec.seq, (unsigned long long)acked);
		if (last && rec.seq != last + 1)
			return relay_fail(r, -EBADMSG, "the program broke the ring of channel %u: record %llu follows %llu",
					  c->id, (unsigned long long)rec.seq, (unsigned long long)last);
		if (rec.seq > received)
			break;
		last = rec.seq;
		c->next += rec.len;
	}
	if (err < 0)
		return err;
	if (err ? rec.seq != received + 1 : (last ? last : acked) != received)
		return relay_fail(r, -EPROTO, "the server claims to have record %llu of channel %u, which was never sent",
				  (unsigned long long)received, c->id);
	set_head(c, c->next, received);
	return 0;
}

int relay_tx_granted(struct rgpu_relay *r, struct chan *c, uint64_t received, uint64_t allow)
{
	/* The last record is whole only when its payload is out. */
	uint64_t whole = c->pay.n ? c->seq - 1 : c->seq;

	if (received < c->received || received > whole || allow < c->allowed)
		return relay_fail(
			r, -EPROTO,
			"the server granted nonsense on channel %u: received %llu (of %llu to %llu), allowed %llu after %llu",
			c->id, (unsigned long long)received, (unsigned long long)c->received, (unsigned long long)whole,
			(unsigned long long)allow, (unsigned long long)c->allowed);
	c->allowed = allow;
	if (received == c->received)
		return 0;
	c->received = received;
	relay_ahead_told(r, c, received);
	set_head(c, c->ends[received & c->ends_mask], received);
	return 0;
}
