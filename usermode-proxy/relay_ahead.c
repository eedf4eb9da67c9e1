// SPDX-License-Identifier: MIT
/* How far ahead of the server it pays to send: what a link carries in a round trip, as seen on the records that go over it. */
#include "lib/clock.h"
#include "usermode-proxy/relay_int.h"

#define MIB (1u << 20)

/*
 * One record at a time is timed. While it is under way, some bytes move; in the shortest round trip that was ever seen, the same
 * link would move its share of them. Twice that on its way keeps the link busy; where more could go, the next record shows it. A
 * link that is slow because an end of it has no time left is not taken for a long one: what it moves in a round trip is little.
 */
void relay_ahead_sent(struct rgpu_relay *r, struct chan *c)
{
	if (r->timed.chan)
		return;
	r->timed.chan = c;
	r->timed.seq = c->seq;
	r->timed.sent = r->count.sent_bytes;
	r->timed.received = r->count.received_bytes;
	r->timed.at = rgpu_now_ns();
}

/* The channels that wait for something share the link. */
static unsigned active(const struct rgpu_relay *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->nchan; i++)
		n += r->chan[i] && r->chan[i]->state == CHAN_OPEN && r->chan[i]->received != r->chan[i]->seq;
	return n ? n : 1;
}

void relay_ahead_told(struct rgpu_relay *r, struct chan *c, uint64_t seq)
{
	uint64_t up = r->count.sent_bytes - r->timed.sent, down = r->count.received_bytes - r->timed.received;
	uint64_t moved = up > down ? up : down, ahead;
	int64_t took;

	if (r->timed.chan != c || seq < r->timed.seq)
		return;
	r->timed.chan = NULL;
	took = rgpu_now_ns() - r->timed.at;
	if (took < 1)
		took = 1;
	if (!r->rtt || took < r->rtt)
		r->rtt = took;
	ahead = 2.0 * moved * r->rtt / took;
	if (ahead > RGPU_SQ_CREDIT_MAX)
		ahead = RGPU_SQ_CREDIT_MAX;
	if (ahead > r->ahead)
		r->ahead = ahead;
	c->ahead_mib = (r->ahead / active(r) + MIB - 1) / MIB;
	if (c->state == CHAN_OPEN)
		__atomic_store_n(&c->m.p->ahead_mib, c->ahead_mib, __ATOMIC_RELAXED);
}

/* The next connection may take another way. */
void relay_ahead_reset(struct rgpu_relay *r)
{
	r->timed.chan = NULL;
	r->rtt = 0;
	r->ahead = 0;
	for (unsigned i = 0; i < r->nchan; i++)
		if (r->chan[i])
			r->chan[i]->ahead_mib = 0;
}
