// SPDX-License-Identifier: MIT
/* How far ahead of the server the relay wants to be: from what moved while a record was timed, shared by the channels at work. */
#include "lib/clock.h"
#include "tests/tap.h"
#include "usermode-proxy/relay_int.h"

#define MIB (1u << 20)

static struct rgpu_relay r;
static struct chan chan[3];
static struct rgpu_ppage page[3];

static void fresh(void)
{
	memset(&r, 0, sizeof(r));
	memset(chan, 0, sizeof(chan));
	memset(page, 0, sizeof(page));
	for (unsigned i = 0; i < 3; i++) {
		chan[i].id = i;
		chan[i].state = CHAN_OPEN;
		chan[i].m.p = &page[i];
		r.chan[i] = &chan[i];
	}
	r.nchan = 3;
}

static void timed(struct chan *c, uint64_t up, uint64_t down)
{
	c->seq++;
	relay_ahead_sent(&r, c);
	r.count.sent_bytes += up;
	r.count.received_bytes += down;
	relay_ahead_told(&r, c, c->seq);
	c->received = c->seq;
}

int main(void)
{
	fresh();
	timed(&chan[0], 0, 0);
	is_int(page[0].ahead_mib, 0, "nothing moved, nothing to have ahead");

	/* The first round trip is the shortest so far: all that moved in it fits into it. */
	fresh();
	timed(&chan[0], 8 * MIB, 0);
	is_int(page[0].ahead_mib, 16, "twice what moved in a round trip is wanted");
	is_int(chan[0].ahead_mib, 16, "… and asked of the server");
	is_int(page[1].ahead_mib, 0, "… on the channel that was timed");

	fresh();
	timed(&chan[0], 1 * MIB, 12 * MIB);
	is_int(page[0].ahead_mib, 24, "the direction that carries more counts");

	fresh();
	timed(&chan[0], 4096ull * MIB, 0);
	is_int(page[0].ahead_mib, RGPU_SQ_CREDIT_MAX / MIB, "no more than %u MiB", RGPU_SQ_CREDIT_MAX / MIB);

	/* Two more channels wait for answers. */
	fresh();
	chan[1].seq = chan[2].seq = 5;
	timed(&chan[0], 24 * MIB, 0);
	is_int(page[0].ahead_mib, 16, "channels at work share");

	/* A link that carries little in its round trip is short or slow: a second's worth is no reason. */
	fresh();
	timed(&chan[0], 0, 0);
	r.rtt = 100000;
	chan[0].seq++;
	relay_ahead_sent(&r, &chan[0]);
	r.timed.at -= 1000000000;
	r.count.sent_bytes += 64 * MIB;
	relay_ahead_told(&r, &chan[0], chan[0].seq);
	is_int(page[0].ahead_mib, 1, "64 MiB in a second over a link of 100 µs: less than one at once");

	/* One record at a time, and only its own word ends the timing. */
	fresh();
	chan[0].seq = 7;
	relay_ahead_sent(&r, &chan[0]);
	chan[1].seq = 3;
	relay_ahead_sent(&r, &chan[1]);
	ok(r.timed.chan == &chan[0], "the first is timed to its end");
	relay_ahead_told(&r, &chan[1], 3);
	relay_ahead_told(&r, &chan[0], 6);
	ok(r.timed.chan == &chan[0], "another channel's word, or an earlier record's, is not its own");
	relay_ahead_told(&r, &chan[0], 7);
	ok(!r.timed.chan, "its own is");

	fresh();
	timed(&chan[0], 8 * MIB, 0);
	relay_ahead_reset(&r);
	ok(!r.ahead && !r.rtt && !chan[0].ahead_mib, "a new connection is seen with new eyes");
	return tap_done();
}
