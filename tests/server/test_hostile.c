// SPDX-License-Identifier: MIT
/* What a client must not send on a data connection: each kind ends its session with a reason that names it. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/clock.h"
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

static struct rig r;

static void up(void)
{
	stub_reset();
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
}

static void down(const char *want, const char *what)
{
	ok(peer_until_end(&r.p) && r.p.bye.err == EPROTO && strstr(r.p.bye.text, want), "%s: %s", what, r.p.bye.text);
	rig_down(&r);
}

/* One record, as it should be, for the tests to bend. */
struct bent {
	struct rgpu_rec rec;
	struct rgpu_seg seg[2];
	uint8_t body[64];
};

static struct bent straight(void)
{
	return (struct bent){
		.rec = {.len = sizeof(struct bent), .op = STUB_ECHO, .flags = RGPU_REC_FENCE, .seq = 1, .nseg = 2},
		.seg = {{.bo = 1, .dir = RGPU_SEG_RECV, .len = 8}, {.bo = 1, .dir = RGPU_SEG_RECV, .len = 8}},
	};
}

static void bent(const char *want, const char *what, struct bent b)
{
	up();
	peer_send(&r.p, RGPU_D_RECORDS, 0, &b, sizeof(b));
	down(want, what);
}

#define BENT(want, what, ...)                                                                                                    \
	do {                                                                                                                     \
		struct bent b = straight();                                                                                      \
		__VA_ARGS__;                                                                                                     \
		bent(want, what, b);                                                                                             \
	} while (0)

static void records(void)
{
	struct bent good = straight();
	struct peer_reply rep;

	_Static_assert(sizeof(struct bent) % RGPU_REC_ALIGN == 0, "as a record must be");
	up();
	peer_send(&r.p, RGPU_D_RECORDS, 0, &good, sizeof(good));
	ok(peer_reply(&r.p, &rep, NULL) && rep.rep.status == 0, "the record that the others are bent from is fine");
	rig_down(&r);
	BENT("length of a record", "no length", b.rec.len = 0);
	BENT("length of a record", "less than a header", b.rec.len = 16);
	BENT("length of a record", "longer than its frame", b.rec.len += 16);
	BENT("length of a record", "4 GiB", b.rec.len = 0xfffffff0);
	BENT("alignment", "a crooked length", b.rec.len -= 8);
	BENT("flags", "a PAD", b.rec.flags = RGPU_REC_PAD);
	BENT("flags", "flags of tomorrow", b.rec.flags |= 2);
	BENT("segments of a record", "17 segments", b.rec.nseg = 17);
	BENT("segments of a record", "segments beyond the record", b.rec.nseg = 6);
	BENT("direction", "a segment both ways", b.seg[0].dir = 3);
	BENT("direction", "a segment no way", b.seg[1].dir = 0);
	BENT("length of a segment", "a huge segment", b.seg[0].len = 1ull << 63);
	BENT("length of a segment", "one that wraps around", b.seg[0].off = ~0ull);
	BENT("length of all segments", "two that are too much together", b.seg[0].len = RGPU_CHUNK_MAX; b.seg[1].len = 1);
	BENT("came after 0", "a gap before the first", b.rec.seq = 2);
	BENT("came after", "a stamp not after its after", b.rec.stamp = 3; b.rec.after = 3);
}

static void sequences(void)
{
	struct rgpu_frame huge = {.len = RGPU_FRAME_MAX + 1, .type = RGPU_D_RECORDS};
	struct rgpu_attach_channel at = {.channel = 0, .published = 9};
	static uint8_t zero[RGPU_FRAME_MAX];
	struct peer_reply rep;

	up();
	rgpu_link_write(r.p.link, &huge, sizeof(huge));
	down("length", "a frame over the maximum");
	up();
	peer_send(&r.p, RGPU_D_RECORDS, RGPU_CHANNELS_MAX, zero, 32);
	down("channel", "a channel that cannot be");
	up();
	peer_send(&r.p, 999, 0, NULL, 0);
	down("unknown type 999", "an unknown frame");
	up();
	peer_send(&r.p, RGPU_D_RECORDS, 0, NULL, 0);
	down("length of RECORDS", "no records at all");
	up();
	peer_send(&r.p, RGPU_D_PAYLOAD, 0, zero, 8);
	down("without a record", "a payload from nowhere");
	up();
	peer_rec(&r.p, 0, .op = STUB_SUM, .send = 100, .stamp = 1);
	peer_send(&r.p, RGPU_D_PAYLOAD, 0, zero, 101);
	down("longer than its segments", "a payload that is too long");
	up();
	peer_rec(&r.p, 0, .op = STUB_SUM, .send = 100, .stamp = 1);
	peer_rec(&r.p, 0, .op = STUB_ECHO);
	down("inside a payload", "records in the midst of a payload");
	up();
	peer_rec(&r.p, 0, .op = STUB_SUM, .send = 100, .stamp = 1);
	peer_send(&r.p, RGPU_D_CLOSE_CHANNEL, 0, NULL, 0);
	down("inside a payload", "a close in the midst of a payload");
	up();
	peer_gather(&r.p, (struct rec_args){.op = STUB_SUM, .send = 100, .stamp = 1});
	peer_gather(&r.p, (struct rec_args){.op = STUB_ECHO});
	peer_flush(&r.p, 0);
	down("behind one with a payload", "a record behind one with a payload");
	up();
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	peer_send(&r.p, RGPU_D_ACK, 0, &(struct rgpu_ack){.published = 2}, sizeof(struct rgpu_ack));
	down("never got", "an acknowledgement ahead of the reply");
	up();
	peer_send(&r.p, RGPU_D_ATTACH, 0, NULL, 0);
	down("second ATTACH", "a second ATTACH");
	up();
	peer_rec(&r.p, 0, .op = STUB_ECHO, .seq = 1);
	peer_rec(&r.p, 0, .op = STUB_ECHO, .seq = 3);
	down("records in between are lost", "a gap");
	up();
	peer_send(&r.p, RGPU_D_ACK, 0, zero, 8);
	down("length of ACK", "a short ACK");

	stub_reset();
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_rec(&r.p, 0, .op = STUB_ECHO);
	down("not ATTACH", "records before ATTACH");
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_send(&r.p, RGPU_D_ATTACH, 0, &at, sizeof(at));
	down("never got", "an ATTACH that published what never was");
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_send(&r.p, RGPU_D_ATTACH, 0, zero, 2 * sizeof(at));
	down("cannot be", "an ATTACH with a channel twice");
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_send(&r.p, RGPU_D_ATTACH, 0, zero, sizeof(at) + 1);
	down("ATTACH of", "a crooked ATTACH");
}

/* Without credit: the server keeps a bounded amount, then it has enough. */
static void floods(void)
{
	static uint8_t chunk[RGPU_FRAME_MAX];
	uint64_t sent = 0;

	up();
	peer_rec(&r.p, 0, .op = STUB_GATE, .stamp = 1);
	for (int i = 0; i < 40 && !r.w.broken; i++) {
		peer_rec(&r.p, 0, .op = STUB_SUM, .after = 1 + i, .stamp = 2 + i, .send = sizeof(chunk));
		/* Once it has had enough, the server reads no more. */
		if (rgpu_link_send_frame(r.p.link, RGPU_D_PAYLOAD, 0, chunk, sizeof(chunk), 1000))
			break;
		sent += sizeof(chunk);
	}
	stub_gate = 1;
	down("without credit", "a client that ignores its credit");
	ok(sent >= RGPU_SQ_CREDIT_INITIAL, "after more than it may: %llu bytes", (unsigned long long)sent);

	up();
	for (int i = 0; i < 20000; i++) {
		struct rgpu_frame f = {.len = 8, .type = RGPU_D_PING};
		uint8_t buf[sizeof(f) + 8] = {0};

		memcpy(buf, &f, sizeof(f));
		if (r.w.broken || (rgpu_link_write(r.p.link, buf, sizeof(buf)) < 0))
			break;
	}
	/* Either it was answered as fast as it came, or it was too much: nothing else. */
	ok(!r.w.broken || strstr(r.w.end_text, "pings"), "a flood of pings: %s", r.w.broken ? r.w.end_text : "all answered");
	rig_down(&r);
}

/* Channels that are closed while a call hangs in each: their threads go on, and there is an end to it. */
static void closes(void)
{
	unsigned most;

	up();
	for (int i = 0; i < 3 * RGPU_CHANNELS_MAX && !r.w.broken; i++) {
		if (peer_rec(&r.p, 0, .op = STUB_GATE, .fence = true, .seq = 1) ||
		    peer_send(&r.p, RGPU_D_CLOSE_CHANNEL, 0, NULL, 0))
			break;
	}
	peer_until_end(&r.p); /* BYE, or the end alone for one who goes on sending */
	ok(r.w.broken && r.w.end_err == ENOMEM, "closed channels that pile up: %s", r.w.end_text);
	most = r.w.threads;
	ok(most >= RGPU_CHANNELS_MAX && most <= 2 * RGPU_CHANNELS_MAX, "there were %u threads", most);
	stub_gate = 1;
	rig_down(&r);
}

static void wrong_psk(void)
{
	static const uint8_t other[RGPU_KEY_LEN] = "another key of 32 bytes, wrong.";
	struct rgpu_link *good, *bad;
	struct peer_reply rep;
	int sv[2];

	up();
	good = r.p.link;
	socketpair(AF_UNIX, SOCK_STREAM, 0, sv);
	bad = rgpu_link_client(sv[0], RGPU_DATA_IDENTITY, other);
	worker_connect(&r.w, sv[1], r.lease, (const uint8_t *)"a key of the tests, 32 bytes...");
	ok(rgpu_link_handshake_wait(bad, PEER_WAIT_MS) == -EACCES, "a data connection with another key is refused");
	rgpu_link_free(bad);
	r.p.link = good;
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true);
	ok(peer_reply(&r.p, &rep, NULL), "and leaves the session as it was");
	rig_down(&r);
}

/* Good frames with a few bits turned over: the session goes on or ends with a reason, and the worker never breaks. */
static void bits(unsigned rounds, unsigned seed)
{
	unsigned ended = 0, silent = 0;

	for (unsigned round = 0; round < rounds; round++) {
		static uint8_t buf[1 << 16];
		size_t len = 0;
		int64_t until;

		up();
		stub_no_crash = true;
		stub_gate = 1;
		for (unsigned i = 0; i < 24; i++) {
			static const uint16_t ops[] = {STUB_ECHO, STUB_SUM, STUB_FILL, STUB_LATER, STUB_LOG, STUB_COUNT};
			struct rec_args a = {.channel = i % 5, .op = ops[i % 6], .fence = i % 3 == 0, .after = i, .stamp = i + 1};
			struct rgpu_frame f = {.type = RGPU_D_RECORDS, .channel = a.channel};

			a.send = a.op == STUB_SUM ? 48 : 0;
			a.recv = a.op == STUB_FILL || a.op == STUB_LATER ? 4096 : 0;
			peer_gather(&r.p, a);
			f.len = r.p.out_len;
			memcpy(buf + len, &f, sizeof(f));
			memcpy(buf + len + sizeof(f), r.p.out, r.p.out_len);
			len += sizeof(f) + r.p.out_len;
			r.p.out_len = 0;
			if (!a.send)
				continue;
			f = (struct rgpu_frame){.type = RGPU_D_PAYLOAD, .channel = a.channel, .len = 48};
			memcpy(buf + len, &f, sizeof(f));
			len += sizeof(f) + 48;
		}
		for (unsigned k = 1 + rand_r(&seed) % 4; k; k--)
			buf[rand_r(&seed) % len] ^= 1 << rand_r(&seed) % 8;
		for (size_t at = 0; at < len;) {
			ssize_t n = rgpu_link_write(r.p.link, buf + at, len - at);

			if (n < 0 && n != -EAGAIN)
				break;
			at += n > 0 ? n : 0;
		}
		until = rgpu_deadline(3);
		while (!r.w.broken && r.w.records < 24 && rgpu_ms_left(until))
			usleep(100);
		ended += r.w.broken;
		silent += r.w.broken && !*r.w.end_text;
		rig_down(&r);
	}
	is_int(silent, 0, "%u scripts with turned bits: %u ended, all with a reason", rounds, ended);
	ok(ended > rounds / 10, "and the checks had work to do");
	is_int(stub_lanes, 0, "nothing is left of them");
}

int main(void)
{
	alarm(120);
	records();
	sequences();
	floods();
	closes();
	wrong_psk();
	bits(300, 7);
	return tap_done();
}
