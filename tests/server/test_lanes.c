// SPDX-License-Identifier: MIT
/* Lanes over a real link: replies, order between channels, payloads, deferred calls, quiet errors. */
#include <errno.h>
#include <unistd.h>
#include "server/lane.h"
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

static struct rig r;

static void up_with(const struct worker_times *t)
{
	stub_reset();
	rig_up(&r, t, false);
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
}

static void up(void)
{
	up_with(&worker_times_default);
}

static void wait_records(uint64_t n)
{
	while (r.w.records < n)
		usleep(200);
}

static void echo(void)
{
	struct peer_reply rep;
	uint32_t ch;

	up();
	peer_rec(&r.p, 3, .op = STUB_ECHO, .fence = true, .body = "sixteen bytes ok", .body_len = 16);
	ok(peer_reply(&r.p, &rep, &ch), "a fence is answered");
	is_int(ch, 3, "on its channel");
	is_int(rep.rep.seq, 1, "seq is the record's");
	is_int(rep.rep.rseq, 1, "rseq begins at 1");
	ok(rep.rep.body_len == 16 && !memcmp(rep.body, "sixteen bytes ok", 16), "the body comes back");
	peer_rec(&r.p, 3, .op = 4000, .fence = true);
	peer_reply(&r.p, &rep, &ch);
	is_int(rep.rep.status, STUB_NOT_SUPPORTED, "an op that no table has is NOT_SUPPORTED");
	is_int(rep.rep.rseq, 2, "and the next reply");
	peer_send(&r.p, RGPU_D_CLOSE_CHANNEL, 3, NULL, 0);
	r.p.lane[3] = (struct peer_lane){0};
	peer_rec(&r.p, 3, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, &ch);
	is_int(rep.rep.rseq, 1, "a closed channel's number begins anew");
	rig_down(&r);
	is_int(stub_lanes, 0, "no lane is left");
}

/* @n calls over @lanes channels, stamped in a random order of channels; `after` reaches back by up to @loose. */
static void order(unsigned n, unsigned lanes, unsigned loose, unsigned seed)
{
	static uint64_t after[100001];
	static uint32_t lane_of[100001];
	static uint64_t at[100001];
	unsigned next[16] = {0}, sent = 0, bad = 0;
	struct peer_reply rep;

	up();
	for (unsigned i = 1; i <= n; i++) {
		uint64_t back = loose ? rand_r(&seed) % loose : 0;

		lane_of[i] = rand_r(&seed) % lanes;
		after[i] = i - 1 > back ? i - 1 - back : 0;
		/* A channel's own calls come one after the other. */
		for (unsigned k = i - 1; k > after[i] && k; k--)
			if (lane_of[k] == lane_of[i])
				after[i] = k;
	}
	while (sent < n) {
		unsigned ch = rand_r(&seed) % lanes, burst = 1 + rand_r(&seed) % 40, i;

		for (i = next[ch] + 1; i <= n && burst; i++) {
			next[ch] = i;
			if (lane_of[i] != ch)
				continue;
			peer_gather(&r.p, (struct rec_args){.channel = ch, .op = STUB_LOG, .after = after[i], .stamp = i});
			burst--;
			sent++;
		}
		if (r.p.out_len)
			peer_flush(&r.p, ch);
	}
	peer_rec(&r.p, 15, .op = STUB_ECHO, .fence = true, .after = n);
	ok(peer_reply(&r.p, &rep, NULL), "%u calls on %u channels have run (loose %u)", n, lanes, loose);
	is_int(stub_log_len, n, "each once");
	for (uint64_t i = 0; i < stub_log_len; i++)
		at[stub_log[i]] = i;
	/* All of 1 … after[i] before i: the latest of them is enough, kept as a running maximum. */
	for (unsigned i = 1; i <= n; i++) {
		static uint64_t latest[100001];

		latest[i] = i > 1 && latest[i - 1] > at[i] ? latest[i - 1] : at[i];
		bad += after[i] && latest[after[i]] >= at[i];
	}
	is_int(bad, 0, "none before one that its `after` covers");
	rig_down(&r);
}

static void held(void)
{
	struct peer_reply rep;
	uint32_t ch;

	up();
	peer_rec(&r.p, 0, .op = STUB_GATE, .stamp = 1);
	peer_rec(&r.p, 2, .op = STUB_LOG, .after = 1, .stamp = 2);
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, &ch);
	is_int(ch, 1, "a call that blocks does not hold one that began before it");
	is_int(stub_log_len, 0, "and holds the one that began after it");
	stub_gate = 1;
	peer_rec(&r.p, 2, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, &ch);
	ok(stub_log_len == 2 && stub_log[0] == 1 && stub_log[1] == 2, "then they run in order");

	stub_gate = 0;
	peer_rec(&r.p, 0, .op = STUB_GATE, .fence = true, .after = 2, .stamp = 3);
	peer_rec(&r.p, 1, .op = STUB_LOG, .after = 3, .stamp = 4);
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true, .after = 4);
	peer_reply(&r.p, &rep, &ch);
	is_int(ch, 1, "a fence that blocks holds nobody: its caller has not returned");
	stub_gate = 1;
	peer_reply(&r.p, &rep, &ch);
	is_int(ch, 0, "until it is answered itself");
	rig_down(&r);
}

static void broken_stamps(void)
{
	struct worker_times quick = worker_times_default;

	up();
	peer_rec(&r.p, 0, .op = STUB_LOG, .stamp = 1);
	peer_rec(&r.p, 1, .op = STUB_LOG, .stamp = 1);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "stamp 1 came twice"), "a repeated stamp ends the session: %s",
	   r.p.bye.text);
	is_int(r.p.bye.err, EPROTO, "with EPROTO");
	rig_down(&r);

	up();
	peer_rec(&r.p, 0, .op = STUB_LOG, .stamp = 5);
	peer_rec(&r.p, 0, .op = STUB_LOG, .stamp = 4);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "must grow"), "so does one that goes back: %s", r.p.bye.text);
	rig_down(&r);

	up();
	peer_rec(&r.p, 0, .op = STUB_LOG, .after = 7, .stamp = 7);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "must grow"), "and one that waits for itself: %s", r.p.bye.text);
	rig_down(&r);

	up();
	peer_rec(&r.p, 0, .op = STUB_LOG, .stamp = 1ull << 40);
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "too far"), "and one from nowhere: %s", r.p.bye.text);
	rig_down(&r);

	quick.hang = 100;
	quick.ping = 50;
	up_with(&quick);
	r.p.quiet_pongs = true;
	peer_rec(&r.p, 0, .op = STUB_LOG, .after = 2, .stamp = 3);
	peer_rec(&r.p, 1, .op = STUB_LOG, .stamp = 1);
	while (r.p.pings < 8)
		peer_must(&r.p);
	ok(!r.w.broken, "a client that is stopped as a whole may leave a stamp out for long");
	r.p.quiet_pongs = false;
	ok(peer_until_end(&r.p) && strstr(r.p.bye.text, "stamp 2 never came"), "one that is alive may not: %s", r.p.bye.text);
	is_int(stub_log_len, 1, "and what waited for it has not run");
	rig_down(&r);
}

static void quiet_errors(void)
{
	uint32_t seven = 7, nine = 9;
	struct peer_reply rep;

	up();
	peer_rec(&r.p, 0, .op = STUB_FAIL, .stamp = 1, .body = &seven, .body_len = 4);
	peer_rec(&r.p, 0, .op = STUB_FAIL, .after = 1, .stamp = 2, .body = &nine, .body_len = 4);
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, NULL);
	is_int(rep.rep.qstatus, 7, "the first failing quiet call is told with the next reply");
	is_int(rep.rep.qop, STUB_FAIL, "and which it was");
	is_int(rep.rep.status, 0, "the reply's own status is its own");
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, NULL);
	is_int(rep.rep.qstatus, 0, "once");
	peer_rec(&r.p, 0, .op = STUB_FAIL, .after = 2, .stamp = 3, .body = &nine, .body_len = 4);
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true, .after = 3);
	peer_reply(&r.p, &rep, NULL);
	is_int(rep.rep.qstatus, 9, "on whatever channel it is waited for");
	peer_rec(&r.p, 0, .op = 4000, .after = 3, .stamp = 4);
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true, .after = 4);
	peer_reply(&r.p, &rep, NULL);
	is_int(rep.rep.qstatus, STUB_NOT_SUPPORTED, "an unknown quiet op is no silence");

	/* The reply that carries it is cut off; it is still told. */
	peer_rec(&r.p, 0, .op = STUB_FAIL, .after = 4, .stamp = 5, .body = &seven, .body_len = 4);
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true, .after = 5);
	wait_records(10);
	rig_resume(&r);
	peer_reply(&r.p, &rep, NULL);
	is_int(rep.rep.qstatus, 7, "a cut connection does not lose it");
	rig_down(&r);
}

static void send_payload(uint32_t ch, const uint8_t *p, uint64_t from, uint64_t to)
{
	peer_send(&r.p, RGPU_D_PAYLOAD, ch, p + from, to - from);
}

static void payloads(void)
{
	static uint8_t a[RGPU_CHUNK_MAX], b[100001];
	struct peer_reply rep;
	uint64_t got;
	uint32_t ch;

	for (unsigned i = 0; i < sizeof(a); i++)
		a[i] = stub_pattern(1, i);
	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = stub_pattern(2, i);
	up();
	peer_rec(&r.p, 0, .op = STUB_SUM, .fence = true, .send = sizeof(a));
	peer_rec(&r.p, 1, .op = STUB_SUM, .fence = true, .send = sizeof(b));
	send_payload(0, a, 0, 1);
	send_payload(1, b, 0, 50000);
	send_payload(0, a, 1, 900000);
	send_payload(1, b, 50000, sizeof(b));
	peer_reply(&r.p, &rep, &ch);
	memcpy(&got, rep.body, 8);
	ok(ch == 1 && got == stub_sum(b, sizeof(b)), "a payload arrives whole between the frames of another");
	send_payload(0, a, 900000, 1900000);
	send_payload(0, a, 1900000, sizeof(a));
	peer_reply(&r.p, &rep, &ch);
	memcpy(&got, rep.body, 8);
	ok(ch == 0 && got == stub_sum(a, sizeof(a)), "and so does the other, 2 MiB");
	while (r.p.lane[0].received < 1)
		peer_must(&r.p);
	is_int(r.p.lane[0].received, 1, "it is told to be durable");

	/* A record before the one with the payload does not wait for it. */
	peer_gather(&r.p, (struct rec_args){.channel = 0, .op = STUB_ECHO, .fence = true});
	peer_gather(&r.p, (struct rec_args){.channel = 0, .op = STUB_SUM, .send = 10, .stamp = 1});
	peer_flush(&r.p, 0);
	ok(peer_reply(&r.p, &rep, &ch), "a record in the same frame, before a payload, is answered");
	/* More than the window: credit comes back as it is used. */
	send_payload(0, a, 0, 10);
	for (int i = 0; i < 20; i++) {
		peer_credit(&r.p, 0);
		peer_rec(&r.p, 0, .op = STUB_SUM, .after = 1 + i, .stamp = 2 + i, .send = sizeof(a));
		send_payload(0, a, 0, sizeof(a) / 2);
		send_payload(0, a, sizeof(a) / 2, sizeof(a));
		while (r.p.lane[0].received < 4ull + i)
			peer_must(&r.p);
	}
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, &ch);
	ok(r.p.lane[0].allow > 40u << 20, "40 MiB later the client may send more: %llu", (unsigned long long)r.p.lane[0].allow);
	rig_down(&r);
}

static bool filled(uint32_t ch, uint64_t off, uint64_t len, uint32_t seed)
{
	const struct peer_lane *l = &r.p.lane[ch];

	if (l->bo_size < off + len)
		return false;
	for (uint64_t i = 0; i < len; i++)
		if (l->bo[off + i] != stub_pattern(seed, i))
			return false;
	return true;
}

static void data(void)
{
	uint32_t body[2] = {5, 0};
	struct peer_reply rep;
	uint64_t before;
	uint32_t ch;

	up();
	peer_rec(&r.p, 0, .op = STUB_FILL, .fence = true, .recv = RGPU_CHUNK_MAX, .recv_off = 4096, .body = body, .body_len = 4);
	peer_reply(&r.p, &rep, NULL);
	ok(filled(0, 4096, RGPU_CHUNK_MAX, 5), "2 MiB lie in their place before the reply");
	is_int(rep.rep.bulk, RGPU_CHUNK_MAX, "which counts them");
	peer_rec(&r.p, 0, .op = STUB_FILL, .stamp = 1, .recv = 10, .body = body, .body_len = 4);
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true, .after = 1);
	peer_reply(&r.p, &rep, &ch);
	ok(ch == 1 && filled(0, 0, 10, 5), "an asynchronous copy's bytes are in place when another channel's fence is answered");
	is_int(r.p.lane[0].published, 2, "and its quiet reply counts");

	/* Small replies slip between the frames of long copies. */
	before = r.w.records;
	for (int i = 0; i < 8; i++)
		peer_rec(&r.p, 0, .op = STUB_FILL, .fence = true, .recv = RGPU_CHUNK_MAX, .body = body, .body_len = 4);
	wait_records(before + 8);
	r.p.lane[0].data_bytes = 0;
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true, .after = 1);
	do
		peer_reply(&r.p, &rep, &ch);
	while (ch != 1);
	ok(r.p.lane[0].data_bytes < 8ull * RGPU_CHUNK_MAX / 2, "a small reply waits for %llu bytes of 16 MiB of another channel",
	   (unsigned long long)r.p.lane[0].data_bytes);
	rig_down(&r);
}

static void deferred(void)
{
	uint32_t fine[2] = {3, 0}, bad[2] = {4, 42};
	struct peer_reply rep;
	uint32_t ch;

	up();
	peer_rec(&r.p, 0, .op = STUB_LATER, .stamp = 1, .recv = 300000, .body = fine, .body_len = 8);
	peer_rec(&r.p, 0, .op = STUB_LATER, .after = 1, .stamp = 2, .body = bad, .body_len = 8);
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, &ch);
	is_int(rep.rep.seq, 3, "a deferred call does not stop its channel");
	is_int(rep.rep.qstatus, 0, "nor is it told before it is there");
	ok(r.p.lane[0].bo_size == 0, "nor its bytes");
	stub_gate = 1;
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, &ch);
	ok(filled(0, 0, 300000, 3), "ready before a fence of any channel: its bytes are there with the answer");
	is_int(rep.rep.qstatus, 42, "and its late error");
	stub_gate = 0;
	peer_rec(&r.p, 2, .op = STUB_LATER, .fence = true, .after = 2, .recv = 1000, .body = bad, .body_len = 8);
	peer_rec(&r.p, 3, .op = STUB_ECHO, .fence = true, .after = 2);
	peer_reply(&r.p, &rep, &ch);
	is_int(ch, 3, "a deferred fence holds no other channel");
	stub_gate = 1;
	peer_reply(&r.p, &rep, &ch);
	ok(ch == 2 && rep.rep.status == 42 && filled(2, 0, 1000, 4), "and is answered by itself when it is ready");
	stub_gate = 0;
	peer_rec(&r.p, 2, .op = STUB_LATER, .after = 2, .stamp = 3, .recv = 1000, .body = fine, .body_len = 8);
	wait_records(6);
	stub_gate = 1;
	rig_down(&r);
	is_int(stub_lanes, 0, "a deferred call at the end leaves nothing behind");
}

/* 40 chunks of 2 MiB that the client does not acknowledge: the lane stops, and goes on when it does. */
static void retained(void)
{
	uint32_t body = 1;
	struct peer_reply rep;

	up();
	r.p.lane[0].hold_ack = true;
	for (int i = 0; i < 80; i++)
		peer_rec(&r.p, 0, .op = STUB_FILL, .stamp = 1 + i, .recv = RGPU_CHUNK_MAX, .body = &body, .body_len = 4);
	while (r.p.lane[0].data_bytes < 64ull * RGPU_CHUNK_MAX)
		peer_must(&r.p);
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	wait_records(65);
	is_int(r.w.records, 65, "the lane stops at %llu bytes of replies that nobody took, and only that one",
	       (unsigned long long)r.w.by_channel[0]->retained);
	r.p.lane[0].hold_ack = false;
	peer_send(&r.p, RGPU_D_ACK, 0, &(struct rgpu_ack){64, 0}, sizeof(struct rgpu_ack));
	while (r.p.lane[0].published < 80)
		peer_must(&r.p);
	is_int(r.p.lane[0].data_bytes, 80ull * RGPU_CHUNK_MAX, "after acknowledgements the rest comes");
	rig_down(&r);
}

/* Asks for a window on a channel; what it may have under way there once that was heard. */
static uint64_t widened(uint32_t channel, unsigned mib)
{
	struct peer_lane *l = &r.p.lane[channel];
	struct peer_reply rep;

	r.p.wish_mib = mib;
	peer_rec(&r.p, channel, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	peer_rec(&r.p, channel, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	return l->allow - l->tx;
}

static void wide_windows(void)
{
	const uint64_t mib = 1 << 20;
	uint64_t sum = 0;

	up();
	ok(widened(0, 0) <= WORKER_WINDOW, "nothing asked, nothing more than the first %llu MiB",
	   (unsigned long long)(WORKER_WINDOW / mib));
	ok(widened(1, 64) > 63 * mib, "a channel that asks for 64 MiB may have them under way");
	is_int(r.w.pool, 56 * mib, "… 56 of them are the session's pool's");
	ok(widened(1, 16) > 63 * mib, "what was given is not taken back");
	ok(widened(2, 0xffff) < RGPU_SQ_CREDIT_MAX + mib, "nobody gets more than %llu MiB",
	   (unsigned long long)(RGPU_SQ_CREDIT_MAX / mib));
	for (unsigned i = 3; i < 30; i++)
		widened(i, 128);
	for (unsigned i = 0; i < r.w.nlanes; i++)
		sum += r.w.lanes[i]->window - WORKER_WINDOW;
	ok(sum <= WORKER_POOL, "all channels together have %llu MiB of the pool's %llu", (unsigned long long)(sum / mib),
	   (unsigned long long)(WORKER_POOL / mib));
	is_int(r.w.pool, sum, "… as it counts them");
	for (unsigned i = 0; i < 30; i++)
		peer_send(&r.p, RGPU_D_CLOSE_CHANNEL, i, NULL, 0);
	memset(r.p.lane, 0, sizeof(r.p.lane));
	ok(widened(40, 128) > 100 * mib, "closed channels give theirs back");
	rig_down(&r);
}

/* Channels that are not acknowledged together: none holds more than its share when the session has much. */
static void retained_by_all(void)
{
	struct peer_reply rep;
	uint32_t body = 1;

	up();
	for (unsigned ch = 0; ch < 5; ch++) {
		r.p.lane[ch].hold_ack = true;
		for (int i = 0; i < 80; i++)
			peer_rec(&r.p, ch, .op = STUB_FILL, .recv = RGPU_CHUNK_MAX, .body = &body, .body_len = 4);
	}
	while (r.w.retained <= RETAINED_POOL)
		peer_must(&r.p);
	peer_rec(&r.p, 9, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	ok(r.w.retained <= RETAINED_POOL + 5 * (LANE_RETAINED + RGPU_CHUNK_MAX + 4096), "replies that nobody took: %llu MiB",
	   (unsigned long long)r.w.retained >> 20);
	for (unsigned ch = 0; ch < 5; ch++) {
		r.p.lane[ch].hold_ack = false;
		peer_send(&r.p, RGPU_D_ACK, ch, &(struct rgpu_ack){r.p.lane[ch].published, 0}, sizeof(struct rgpu_ack));
	}
	for (unsigned ch = 0; ch < 5; ch++)
		while (r.p.lane[ch].published < 80)
			peer_must(&r.p);
	/* The last acknowledgements are on their way. */
	for (int i = 0; r.w.retained && i < PEER_WAIT_MS; i++)
		usleep(1000);
	is_int(r.w.retained, 0, "all are taken after acknowledgements, and nothing is counted any more");
	rig_down(&r);
}

int main(void)
{
	alarm(900); /* under ThreadSanitizer, on a busy machine */
	echo();
	order(20000, 1, 0, 1);
	order(20000, 8, 0, 2);
	order(20000, 13, 50, 3);
	order(5000, 3, 4000, 4);
	held();
	broken_stamps();
	quiet_errors();
	payloads();
	data();
	deferred();
	retained();
	retained_by_all();
	wide_windows();
	return tap_done();
}
