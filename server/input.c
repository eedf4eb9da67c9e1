// SPDX-License-Identifier: MIT
/* The receiving side: frames off the link become batches in lanes, once everything about them is checked. */
#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include "lib/clock.h"
#include "lib/link.h"
#include "lib/text.h"
#include "server/attach.h"
#include "server/lane.h"

#define GRANT_EVERY (64u << 10) /* record bytes received after which the client is told, without a payload or a reply */

void input_reset(struct worker *w)
{
	struct input *in = &w->input;

	if (in->batch)
		batch_put(in->batch);
	for (unsigned i = 0; i < w->nlanes; i++) {
		struct srv_lane *lane = w->lanes[i];

		if (lane->filling)
			lane_put_filling(lane);
		lane->rewinding = false;
	}
	*in = (struct input){.last_records = in->last_records, .packed = in->packed};
}

static ssize_t link_read(struct worker *w, void *buf, size_t len)
{
	struct output *o = &w->output;
	ssize_t n = -ENOTCONN;

	pthread_mutex_lock(&o->lock);
	if (o->link) {
		n = rgpu_link_read(o->link, buf, len);
		if (!n)
			n = -ENOTCONN;
		if (n > 0)
			o->received += n;
	}
	pthread_mutex_unlock(&o->lock);
	return n;
}

static bool link_buffered(struct worker *w)
{
	struct output *o = &w->output;
	bool inside;

	pthread_mutex_lock(&o->lock);
	inside = o->link && rgpu_link_buffered(o->link);
	pthread_mutex_unlock(&o->lock);
	return inside;
}

static bool broken_frame(struct worker *w, const char *what)
{
	worker_break(w, EPROTO, "the client sent a broken frame (%s); use a client of the server's version", what);
	return false;
}

/* A record's place in the order, once all of it is there. */
static bool accept_record(struct srv_lane *lane, const struct rgpu_rec *rec)
{
	struct worker *w = lane->w;
	int err = 0;

	if (rec->stamp) {
		if (rec->stamp <= rec->after || rec->stamp <= lane->floor) {
			worker_break(w, EPROTO, "channel %u: stamp %llu came after %llu; stamps of a channel must grow",
				     lane->channel, (unsigned long long)rec->stamp,
				     (unsigned long long)(rec->after > lane->floor ? rec->after : lane->floor));
			return false;
		}
		err = stamps_receive(&w->stamps, rec->stamp);
	}
	if (err == -EEXIST)
		worker_break(w, EPROTO, "channel %u: stamp %llu came twice", lane->channel, (unsigned long long)rec->stamp);
	else if (err == -ERANGE)
		worker_break(w, EPROTO, "channel %u: stamp %llu is too far ahead", lane->channel, (unsigned long long)rec->stamp);
	else if (err)
		worker_break(w, -err, "the server is out of memory");
	if (err)
		return false;
	/* Its caller waits, so nobody can have come after it: it holds no one. */
	if (rec->stamp && rec->flags & RGPU_REC_FENCE)
		stamps_done(&w->stamps, rec->stamp);
	if (rec->after > lane->floor)
		lane->floor = rec->after;
	if (rec->stamp > lane->floor)
		lane->floor = rec->stamp;
	lane->received = rec->seq;
	return true;
}

/* Checks lengths of the record at @rec, of which @room bytes are there. SEND bytes into @send. */
static const char *check_record(const struct rgpu_rec *rec, uint32_t room, uint64_t *send)
{
	const struct rgpu_seg *seg = (const struct rgpu_seg *)(rec + 1);
	uint64_t recv = 0;

	*send = 0;
	if (room < sizeof(*rec) || rec->len < sizeof(*rec) || rec->len > room || rec->len > RGPU_REC_MAX)
		return "length of a record";
	if (rec->len % RGPU_REC_ALIGN)
		return "alignment of a record";
	if (rec->flags & ~RGPU_REC_FENCE)
		return "flags of a record";
	if (rec->nseg > RGPU_SEG_MAX || sizeof(*rec) + rec->nseg * sizeof(*seg) > rec->len)
		return "segments of a record";
	for (unsigned i = 0; i < rec->nseg; i++) {
		uint64_t *sum = seg[i].dir == RGPU_SEG_SEND ? send : &recv;

		if (seg[i].dir != RGPU_SEG_SEND && seg[i].dir != RGPU_SEG_RECV)
			return "direction of a segment";
		if (seg[i].len > RGPU_CHUNK_MAX || seg[i].off + seg[i].len < seg[i].off)
			return "length of a segment";
		*sum += seg[i].len;
		if (*sum > RGPU_CHUNK_MAX)
			return "length of all segments";
	}
	return NULL;
}

static bool out_of_memory(struct worker *w)
{
	worker_break(w, ENOMEM, "the server is out of memory; give it more, or run fewer sessions there");
	return false;
}

/* The lane takes a batch in; what it holds counts until it has run. */
static bool charge(struct srv_lane *lane, struct batch *b, uint64_t bytes)
{
	struct worker *w = lane->w;

	b->charge = bytes;
	lane->backlog += bytes;
	lane->rx += bytes;
	if (lane->backlog > 2 * lane->window + RGPU_FRAME_MAX + RGPU_CHUNK_MAX) {
		worker_break(w, EPROTO, "channel %u: the client sends without credit", lane->channel);
		return false;
	}
	return true;
}

static void tell_received(struct srv_lane *lane)
{
	pthread_mutex_lock(&lane->w->output.lock);
	output_grant_due(lane);
	pthread_mutex_unlock(&lane->w->output.lock);
}

/* The frame's last record has SEND bytes: they come in PAYLOAD frames. */
static bool begin_payload(struct srv_lane *lane, const struct rgpu_rec *rec, uint64_t send)
{
	struct batch *b = batch_new(lane, rec->len);

	if (b)
		b->payload = malloc(send);
	if (!b || !b->payload) {
		if (b)
			batch_put(b);
		return out_of_memory(lane->w);
	}
	memcpy(b->bytes, rec, rec->len);
	b->payload_len = send;
	lane->filling = b;
	lane->filled = 0;
	return true;
}

/* What the client named is gone: it sends from this record on again, and what is on its way until then is not taken. */
static void rewind_lane(struct srv_lane *lane)
{
	struct worker *w = lane->w;
	struct batch *b = lane->filling;
	unsigned n = 0;
	uint64_t *list;

	w->input.skip[lane->channel] = b->payload_len - lane->filled;
	lane->rx += b->len + b->payload_len;
	lane->rewinding = true;
	lane_put_filling(lane);
	pthread_mutex_lock(&w->output.lock);
	lane->need = lane->received + 1;
	output_grant_due(lane);
	pthread_mutex_unlock(&w->output.lock);
	list = w->cache.on ? cache_list(&w->cache, &n) : NULL;
	output_known(w, list, n, true);
	free(list);
}

static bool end_payload(struct srv_lane *lane)
{
	struct batch *b = lane->filling;

	lane->filling = NULL;
	if (!charge(lane, b, b->len + b->payload_len) || !accept_record(lane, (struct rgpu_rec *)b->bytes)) {
		batch_put(b);
		return false;
	}
	lane_queue(lane, b);
	tell_received(lane);
	return true;
}

/* Splits a whole RECORDS frame. Takes the batch over. */
static bool records(struct srv_lane *lane, struct batch *b)
{
	struct worker *w = lane->w;
	uint32_t frame_len = b->len, at = 0;
	uint64_t send = 0;
	bool good = true, fresh = false;

	for (; good && at < frame_len; at += ((struct rgpu_rec *)(b->bytes + at))->len) {
		const struct rgpu_rec *rec = (const struct rgpu_rec *)(b->bytes + at);
		const char *what = check_record(rec, frame_len - at, &send);

		if (what)
			good = broken_frame(w, what);
		else if (send && at + rec->len != frame_len)
			good = broken_frame(w, "records behind one with a payload");
		if (!good)
			break;
		if (rec->seq <= lane->received || lane->rewinding) {
			/* Sent again after a reconnection, and here already; or to be sent again. */
			b->first = at + rec->len;
			w->input.skip[lane->channel] = send;
			lane->rx += rec->len + send;
			continue;
		}
		if (rec->seq != lane->received + 1) {
			worker_break(w, EPROTO, "channel %u: record %llu came after %llu; records in between are lost",
				     lane->channel, (unsigned long long)rec->seq, (unsigned long long)lane->received);
			good = false;
			break;
		}
		if (send) {
			b->len = at; /* those before need not wait for the payload */
			good = begin_payload(lane, rec, send);
			break;
		}
		fresh = true;
		good = accept_record(lane, rec);
	}
	if (!good || !fresh || !charge(lane, b, b->len - b->first)) {
		batch_put(b);
		return good;
	}
	lane_queue(lane, b);
	w->input.lazy_grant = true;
	if (lane->rx - lane->rx_told >= GRANT_EVERY) {
		lane->rx_told = lane->rx;
		tell_received(lane);
	}
	return true;
}

/* A header is there: what follows, and where to. false: the session is broken. */
static bool begin_body(struct worker *w)
{
	struct input *in = &w->input;
	const struct rgpu_frame *h = &in->hdr;
	struct srv_lane *lane = NULL;

	if (h->len > RGPU_FRAME_MAX)
		return broken_frame(w, "length");
	if (h->channel >= RGPU_CHANNELS_MAX)
		return broken_frame(w, "channel");
	if (!in->attached && h->type != RGPU_D_ATTACH)
		return broken_frame(w, "first frame is not ATTACH");
	lane = w->by_channel[h->channel];
	switch (h->type) {
	case RGPU_D_RECORDS:
		if (!h->len || h->len % RGPU_REC_ALIGN)
			return broken_frame(w, "length of RECORDS");
		if (in->skip[h->channel] || (lane && lane->filling))
			return broken_frame(w, "RECORDS inside a payload");
		if (!lane)
			lane = lane_open(w, h->channel);
		in->batch = lane ? batch_new(lane, h->len) : NULL;
		return in->batch || out_of_memory(w);
	case RGPU_D_PAYLOAD:
		in->lane = lane;
		if (!lane || !h->len)
			return broken_frame(w, "PAYLOAD without a record");
		if (h->len > (lane->filling ? lane->filling->payload_len - lane->filled : in->skip[h->channel]))
			return broken_frame(w, "PAYLOAD longer than its segments");
		return true;
	case RGPU_D_PACKED:
		if (!w->unpack.flags || h->len <= sizeof(struct rgpu_packed) || h->len > RGPU_PACKED_MAX)
			return broken_frame(w, "PACKED that was not agreed on, or its length");
		if (!in->packed)
			in->packed = malloc(RGPU_PACKED_MAX);
		return in->packed || out_of_memory(w);
	case RGPU_D_REF:
		in->lane = lane;
		if (!in->cached || !lane || h->len != sizeof(struct rgpu_ref))
			return broken_frame(w, "REF without a record, or of another length");
		return true;
	case RGPU_D_REWIND:
		return h->len == sizeof(struct rgpu_need) || broken_frame(w, "length of REWIND");
	case RGPU_D_ATTACH:
		if (in->attached)
			return broken_frame(w, "second ATTACH");
		return h->len <= sizeof(in->small) || broken_frame(w, "length of ATTACH");
	case RGPU_D_ACK:
		return h->len == sizeof(struct rgpu_ack) || broken_frame(w, "length of ACK");
	case RGPU_D_PING:
	case RGPU_D_PONG:
		return h->len == 8 || broken_frame(w, "length of PING");
	case RGPU_D_BYE:
		return h->len == sizeof(struct rgpu_error_frame) || broken_frame(w, "length of BYE");
	case RGPU_D_CLOSE_CHANNEL:
		if (in->skip[h->channel] || (lane && lane->filling))
			return broken_frame(w, "CLOSE_CHANNEL inside a payload");
		return !h->len || broken_frame(w, "length of CLOSE_CHANNEL");
	}
	worker_break(w, EPROTO, "the client sent a frame of unknown type %u; use a client of the server's version", h->type);
	return false;
}

/* A block that the client does not send, because we have it. */
static bool refer(struct srv_lane *lane, const struct rgpu_ref *ref)
{
	struct worker *w = lane->w;
	struct batch *b = lane->filling;
	uint64_t room = b ? b->payload_len - lane->filled : w->input.skip[lane->channel];

	if (ref->len < RGPU_BLOCK_MIN || ref->len > RGPU_FRAME_BULK || ref->len > room)
		return broken_frame(w, "length of a REF's block");
	if (!b) {
		w->input.skip[lane->channel] -= ref->len;
		return true;
	}
	if (!cache_get(&w->cache, ref, b->payload + lane->filled)) {
		rewind_lane(lane);
		w->input.skip[lane->channel] -= ref->len;
		return true;
	}
	for (uint64_t at = lane->filled / CACHE_GRAIN; at <= (lane->filled + ref->len - 1) / CACHE_GRAIN; at++)
		b->named |= 1u << at;
	lane->filled += ref->len;
	return lane->filled < b->payload_len || end_payload(lane);
}

static bool end_rewind(struct worker *w, struct srv_lane *lane, const struct rgpu_need *need)
{
	if (!lane || !lane->rewinding || need->seq != lane->received + 1)
		return broken_frame(w, "REWIND that was not asked for");
	lane->rewinding = false;
	w->input.skip[lane->channel] = 0;
	tell_received(lane); /* and how much it may send */
	return true;
}

static bool ack(struct worker *w, struct srv_lane *lane, const struct rgpu_ack *a)
{
	int err;

	if (!lane)
		return true; /* closed meanwhile */
	pthread_mutex_lock(&w->output.lock);
	err = output_ack(lane, a->published);
	rgpu_packer_look(&w->output.pack, w->output.sent);
	if (a->allow > lane->cq_allow)
		lane->cq_allow = a->allow;
	pthread_mutex_unlock(&w->output.lock);
	if (err)
		worker_break(w, EPROTO, "channel %u: the client acknowledged reply %llu, which it never got", lane->channel,
			     (unsigned long long)a->published);
	return !err;
}

static bool ping(struct worker *w)
{
	bool room;

	pthread_mutex_lock(&w->output.lock);
	room = output_ctl(&w->output, RGPU_D_PONG, 0, w->input.small, 8);
	pthread_mutex_unlock(&w->output.lock);
	return room || broken_frame(w, "pings without reading the answers");
}

static void body_came(struct worker *w, uint32_t n)
{
	struct input *in = &w->input;

	in->body_got += n;
	if (in->hdr.type != RGPU_D_PAYLOAD)
		return;
	if (in->lane->filling)
		in->lane->filled += n;
	else
		in->skip[in->hdr.channel] -= n;
}

static bool end_frame(struct worker *w);

/* The client ends the channel, and will not send again what it named in vain. */
static bool lost_record(struct worker *w, const struct srv_lane *lane)
{
	worker_break(w, EPROTO, "channel %u was ended before record %llu was there; use a client of the server's version",
		     lane->channel, (unsigned long long)lane->received + 1);
	return false;
}

/* What a PACKED frame stands for goes the way of any such frame. */
static bool end_packed(struct worker *w)
{
	struct input *in = &w->input;
	struct rgpu_packed p;
	void *to = NULL;
	bool done;

	memcpy(&p, in->packed, sizeof(p));
	if ((p.type != RGPU_D_RECORDS && p.type != RGPU_D_PAYLOAD) || !p.len || p.len > RGPU_PACKED_MAX)
		return broken_frame(w, "type or length of a PACKED frame");
	in->hdr.type = p.type;
	in->body_got = in->hdr.len - sizeof(p); /* compressed bytes */
	in->hdr.len = p.len;
	if (!begin_body(w))
		return false;
	if (p.type == RGPU_D_RECORDS)
		to = in->batch->bytes;
	else if (in->lane->filling)
		to = in->lane->filling->payload + in->lane->filled;
	done = !to || rgpu_unpack(&w->unpack, p.how, in->packed + sizeof(p), in->body_got, to, p.len);
	if (!done)
		return broken_frame(w, "bytes of a PACKED frame");
	in->body_got = 0;
	body_came(w, p.len);
	return end_frame(w);
}

static bool end_frame(struct worker *w)
{
	struct input *in = &w->input;
	struct srv_lane *lane = w->by_channel[in->hdr.channel];
	struct batch *b = in->batch;
	struct rgpu_error_frame *bye;

	switch (in->hdr.type) {
	case RGPU_D_RECORDS:
		in->batch = NULL;
		in->last_records = rgpu_now_ns();
		in->pongs = 0;
		lane_widen(b->lane, in->hdr.flags);
		return records(b->lane, b);
	case RGPU_D_PAYLOAD:
		in->last_records = rgpu_now_ns();
		in->pongs = 0;
		if (lane->filling && lane->filled == lane->filling->payload_len)
			return end_payload(lane);
		return true;
	case RGPU_D_PACKED:
		return end_packed(w);
	case RGPU_D_REF:
		in->last_records = rgpu_now_ns();
		in->pongs = 0;
		return refer(in->lane, (struct rgpu_ref *)in->small);
	case RGPU_D_REWIND:
		return end_rewind(w, lane, (struct rgpu_need *)in->small);
	case RGPU_D_ATTACH:
		in->attached = true;
		return worker_attach(w, (struct rgpu_attach_channel *)in->small, in->hdr.len);
	case RGPU_D_ACK:
		return ack(w, lane, (struct rgpu_ack *)in->small);
	case RGPU_D_PING:
		return ping(w);
	case RGPU_D_PONG:
		in->pongs++;
		return true;
	case RGPU_D_BYE:
		bye = (struct rgpu_error_frame *)in->small;
		text_printable(bye->text, sizeof(bye->text));
		worker_break(w, 0, "the client ended the session: %.200s", bye->text);
		return false;
	case RGPU_D_CLOSE_CHANNEL:
		if (lane && lane->rewinding)
			return lost_record(w, lane);
		if (lane)
			lane_close(lane);
		return true;
	}
	return true;
}

/* Where the next bytes of the frame's body go. */
static void *body_place(struct worker *w, uint32_t *room)
{
	struct input *in = &w->input;
	struct srv_lane *lane = in->lane;

	*room = in->hdr.len - in->body_got;
	switch (in->hdr.type) {
	case RGPU_D_RECORDS:
		return in->batch->bytes + in->body_got;
	case RGPU_D_PAYLOAD:
		if (lane->filling)
			return lane->filling->payload + lane->filled;
		if (*room > sizeof(in->small))
			*room = sizeof(in->small);
		return in->small;
	case RGPU_D_PACKED:
		return in->packed + in->body_got;
	}
	return in->small + in->body_got;
}

int input_read(struct worker *w, uint64_t budget)
{
	struct input *in = &w->input;
	int64_t now = rgpu_now_ns();

	for (uint64_t done = 0; done < budget && !w->broken;) {
		bool header = in->hdr_got < sizeof(in->hdr);
		uint32_t room = sizeof(in->hdr) - in->hdr_got;
		void *place = header ? (uint8_t *)&in->hdr + in->hdr_got : body_place(w, &room);
		ssize_t n = room ? link_read(w, place, room) : 0;

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return n;
		done += n;
		in->last_bytes = now;
		if (header) {
			in->hdr_got += n;
			in->body_got = 0;
			if (in->hdr_got == sizeof(in->hdr) && !begin_body(w))
				return 0;
			continue;
		}
		body_came(w, n);
		if (in->body_got < in->hdr.len)
			continue;
		in->hdr_got = 0;
		if (!end_frame(w))
			return 0;
		/* Without something inside, another read would mostly be a system call that says so. */
		if (in->hdr.len <= sizeof(in->small) && !in->hung_up && !link_buffered(w))
			return 0;
	}
	return 1;
}
