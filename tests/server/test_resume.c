// SPDX-License-Identifier: MIT
/* Resume: the connection is cut at every byte of a script, or before every answer, and each call has run once. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/server/peer.h"
#include "tests/server/stub.h"
#include "tests/tap.h"

#define LANES	3
#define STEPS	30
#define PAYLOAD 700
#define COPY	900

static struct rig r;
static struct rec_args script[STEPS];
static uint8_t payload[PAYLOAD];
static uint32_t fill_seed[2];

/* What a client keeps: how far each lane's fences were answered. */
static struct {
	uint64_t last_rseq[LANES];
	unsigned fences, twice, wrong;
} seen;

/* A program on three threads: counted calls, quiet and not, uploads and downloads, each after the one before. */
static unsigned make_script(void)
{
	uint64_t seq[LANES] = {0};
	unsigned counts = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		static const uint16_t ops[] = {STUB_COUNT, STUB_SUM, STUB_COUNT, STUB_FILL, STUB_COUNT};
		struct rec_args *a = &script[i];

		*a = (struct rec_args){
			.channel = i * 7 % LANES, .op = ops[i % 5], .fence = i % 3 == 0, .after = i, .stamp = i + 1};
		a->seq = ++seq[a->channel];
		if (a->op == STUB_SUM)
			a->send = PAYLOAD;
		if (a->op == STUB_FILL) {
			a->recv = COPY;
			a->recv_off = i * COPY;
			a->body = fill_seed;
			a->body_len = 4;
		}
		counts += a->op == STUB_COUNT;
	}
	return counts;
}

/* The frames of all records that the server does not have yet. Payloads in two frames. */
static uint8_t *frames(struct peer *p, size_t *len)
{
	static uint8_t buf[1 << 20];
	size_t n = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		const struct rec_args *a = &script[i];
		struct rgpu_frame f = {.type = RGPU_D_RECORDS, .channel = a->channel};

		if (a->seq <= p->lane[a->channel].received)
			continue;
		peer_gather(p, *a);
		p->lane[a->channel].seq = a->seq;
		f.len = p->out_len;
		memcpy(buf + n, &f, sizeof(f));
		memcpy(buf + n + sizeof(f), p->out, p->out_len);
		n += sizeof(f) + p->out_len;
		p->out_len = 0;
		for (unsigned half = 0; a->send && half < 2; half++) {
			f = (struct rgpu_frame){.type = RGPU_D_PAYLOAD, .channel = a->channel, .len = PAYLOAD / 2};
			memcpy(buf + n, &f, sizeof(f));
			memcpy(buf + n + sizeof(f), payload + half * PAYLOAD / 2, PAYLOAD / 2);
			n += sizeof(f) + PAYLOAD / 2;
		}
	}
	*len = n;
	return buf;
}

static void write_all(struct peer *p, const uint8_t *buf, size_t len)
{
	while (len) {
		ssize_t n = rgpu_link_write(p->link, buf, len);

		if (n < 0 && n != -EAGAIN)
			return;
		if (n > 0) {
			buf += n;
			len -= n;
		}
	}
	while (rgpu_link_flush(p->link) == -EAGAIN)
		usleep(100);
}

static int hear(struct peer *p)
{
	struct peer_reply rep;
	uint32_t ch;
	bool got;
	int type = peer_step(p, &rep, &got, &ch, PEER_WAIT_MS);

	if (!got)
		return type;
	seen.fences++;
	seen.twice += rep.rep.rseq <= seen.last_rseq[ch];
	seen.wrong += rep.rep.status != 0 || rep.rep.qstatus != 0;
	seen.last_rseq[ch] = rep.rep.rseq;
	return type;
}

static bool copies_right(struct peer *p)
{
	for (unsigned i = 0; i < STEPS; i++) {
		const struct rec_args *a = &script[i];
		const struct peer_lane *l = &p->lane[a->channel];

		for (unsigned k = 0; a->recv && k < COPY; k++)
			if (l->bo_size < a->recv_off + COPY || l->bo[a->recv_off + k] != stub_pattern(fill_seed[0], k))
				return false;
	}
	return true;
}

static void begin(void)
{
	stub_reset();
	memset(&seen, 0, sizeof(seen));
	rig_up(&r, &worker_times_default, false);
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
}

/* The rest of the script, to its end: whether all came out right. */
static bool finish(unsigned counts)
{
	unsigned fences = 0, quiet = 0, done;
	uint64_t want[LANES] = {0};
	uint8_t *buf;
	size_t len;

	for (unsigned i = 0; i < STEPS; i++) {
		fences += script[i].fence;
		quiet += !script[i].fence && script[i].recv;
		want[script[i].channel] += script[i].fence || script[i].recv;
	}
	buf = frames(&r.p, &len);
	write_all(&r.p, buf, len);
	do {
		done = 0;
		for (unsigned i = 0; i < LANES; i++)
			done += r.p.lane[i].published == want[i];
	} while (done < LANES && hear(&r.p) > 0 && !r.p.said_bye);
	while (r.w.records < STEPS && !r.w.broken)
		usleep(100);
	return stub_count == (int)counts && r.w.records == STEPS && seen.fences == fences && !seen.twice && !seen.wrong &&
	       done == LANES && copies_right(&r.p) && !r.p.said_bye;
}

static void cut_sending(unsigned counts)
{
	unsigned cuts = 0, good = 0;
	size_t len;

	for (size_t at = 0;; at += 97) {
		uint8_t *buf;

		begin();
		buf = frames(&r.p, &len);
		if (at > len) {
			rig_down(&r);
			break;
		}
		write_all(&r.p, buf, at);
		rig_resume(&r);
		cuts++;
		good += finish(counts);
		rig_down(&r);
	}
	ok(cuts > 50, "a script of %zu bytes was cut at %u places", len, cuts);
	is_int(good, cuts, "each call has run once, each answer came once, every byte is in place");
}

static void cut_receiving(unsigned counts, bool acks)
{
	unsigned cuts = 0, good = 0;
	bool more = true;

	for (unsigned at = 0; more; at++) {
		uint8_t *buf;
		size_t len;

		begin();
		buf = frames(&r.p, &len);
		write_all(&r.p, buf, len);
		/* Everything has run and waits for us. */
		while (r.w.records < STEPS)
			usleep(100);
		for (unsigned i = 0; i < LANES; i++)
			r.p.lane[i].hold_ack = !acks;
		for (unsigned i = 0; i < at && more; i++) {
			uint64_t published[LANES];

			for (unsigned k = 0; k < LANES; k++)
				published[k] = r.p.lane[k].published;
			more = hear(&r.p) > 0;
			/* Published, though the server was not told. */
			for (unsigned k = 0; k < LANES && !acks; k++) {
				const struct rgpu_rep *rep = (struct rgpu_rep *)r.p.frame;

				if (published[k] < rep->rseq && r.p.last_type == RGPU_D_REPLY && r.p.last_channel == k)
					r.p.lane[k].published = rep->rseq;
			}
			more = more && (r.p.lane[0].published + r.p.lane[1].published + r.p.lane[2].published < 14);
		}
		for (unsigned i = 0; i < LANES; i++)
			r.p.lane[i].hold_ack = false;
		rig_resume(&r);
		cuts++;
		good += finish(counts);
		rig_down(&r);
	}
	ok(cuts > 14, "the answers were cut off at %u places, %s", cuts,
	   acks ? "acknowledged before" : "published, not acknowledged");
	is_int(good, cuts, "none is lost, none comes twice");
}

static void old_lease(void)
{
	struct rgpu_link *old;
	struct peer_reply rep;
	uint32_t ch[1] = {0};

	begin();
	peer_rec(&r.p, 0, .op = STUB_COUNT, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	old = r.p.link;
	r.p.link = NULL;
	worker_retire(&r.w, ++r.lease);
	rig_connect(&r);
	peer_attach(&r.p, ch, 1);
	{
		struct rgpu_link *now = r.p.link;

		r.p.link = old;
		peer_rec(&r.p, 0, .op = STUB_COUNT, .fence = true);
		r.p.link = now;
	}
	r.p.lane[0].seq = 1;
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	is_int(stub_count, 1, "what the old lease sends after the new one began is not run");
	is_int(rep.rep.seq, 2, "and takes no place");
	rgpu_link_free(old);

	/* A socket of an older lease that comes late. */
	{
		struct rgpu_link *now = r.p.link;
		uint32_t lease = r.lease;

		r.p.link = NULL;
		r.lease = lease - 1;
		rig_connect(&r);
		peer_send(&r.p, RGPU_D_ATTACH, 0, NULL, 0);
		ok(!peer_until_end(&r.p), "a connection with an older lease is closed");
		peer_drop(&r.p);
		r.p.link = now;
		r.lease = lease;
	}
	peer_rec(&r.p, 0, .op = STUB_ECHO, .fence = true);
	ok(peer_reply(&r.p, &rep, NULL) && rep.rep.seq == 3, "and does not disturb the living one");
	rig_down(&r);
}

/* The worker's end of a session without a client: grace. */
static void grace(bool direct, bool cut_first, const char *what)
{
	struct worker_times t = worker_times_default;

	t.grace = 300;
	t.direct_grace = 100;
	stub_reset();
	rig_up(&r, &t, direct);
	if (cut_first) {
		rig_connect(&r);
		peer_attach(&r.p, NULL, 0);
		peer_drop(&r.p);
	}
	pthread_join(r.io, NULL);
	ok(r.w.broken && strstr(r.w.end_text, direct ? "0.1 s" : "0.3 s"), "%s: %s", what, r.w.end_text);
	is_int(r.w.end_err, ESTALE, "as ESTALE");
	worker_destroy(&r.w);
	free(r.p.out);
}

/* No FIN, no answer to pings: a stopped program, or a network that is gone. */
static void silence(void)
{
	struct worker_times t = worker_times_default;
	bool got;
	int type;

	t.grace = 300;
	t.direct_grace = 1;
	t.ping = 50;
	t.silence = 250;
	stub_reset();
	rig_up(&r, &t, true);
	rig_connect(&r);
	peer_attach(&r.p, NULL, 0);
	r.p.quiet_pongs = true;
	do
		type = peer_step(&r.p, NULL, &got, NULL, PEER_WAIT_MS);
	while (type > 0);
	ok(r.p.pings > 1 && !r.p.said_bye, "a silent client is cut off after %u pings", r.p.pings);
	pthread_join(r.io, NULL);
	ok(strstr(r.w.end_text, "0.3 s"), "and has the grace period, a direct one too: %s", r.w.end_text);
	worker_destroy(&r.w);
	peer_drop(&r.p);
	free(r.p.out);
}

/* Lanes read for each other between small calls; the connection is retired in the midst of that. */
static void small_calls(void)
{
	unsigned good = 0, n = 3000;
	struct peer_reply rep;
	uint32_t ch;

	begin();
	for (unsigned i = 0; i < n; i++) {
		unsigned lane = i / 7 % 3;

		peer_rec(&r.p, lane, .op = STUB_COUNT, .fence = true);
		/* Every now and then it is not known whether the call arrived. */
		if (i % 250 == 249) {
			rig_resume(&r);
			if (r.p.lane[lane].received < r.p.lane[lane].seq) {
				r.p.lane[lane].seq--;
				peer_rec(&r.p, lane, .op = STUB_COUNT, .fence = true);
			}
		}
		good += peer_reply(&r.p, &rep, &ch) && ch == lane && rep.rep.seq == r.p.lane[lane].seq;
	}
	is_int(good, n, "small calls one after the other on three channels, through twelve connections");
	is_int(stub_count, n, "each has run once");
	rig_down(&r);
}

static void backlog_credit(void)
{
	static uint8_t chunk[RGPU_CHUNK_MAX];
	uint32_t ch[1] = {0};
	struct peer_reply rep;

	begin();
	peer_rec(&r.p, 0, .op = STUB_GATE, .stamp = 1);
	for (int i = 0; i < 4; i++) {
		peer_rec(&r.p, 0, .op = STUB_SUM, .after = 1 + i, .stamp = 2 + i, .send = sizeof(chunk));
		peer_send(&r.p, RGPU_D_PAYLOAD, 0, chunk, sizeof(chunk) / 2);
		peer_send(&r.p, RGPU_D_PAYLOAD, 0, chunk, sizeof(chunk) / 2);
	}
	while (r.p.lane[0].received < 5)
		peer_must(&r.p);
	rig_resume(&r);
	is_int(r.p.lane[0].received, 5, "what waits in a blocked lane is durable");
	is_int(r.p.lane[0].allow, 0, "and leaves no credit to a new connection");
	stub_gate = 1;
	while (r.p.lane[0].allow < RGPU_SQ_CREDIT_INITIAL / 2)
		peer_must(&r.p);
	ok(true, "credit comes as it runs");
	/* A channel that the client does not name is gone. */
	peer_rec(&r.p, 1, .op = STUB_ECHO, .fence = true);
	peer_reply(&r.p, &rep, NULL);
	worker_retire(&r.w, ++r.lease);
	peer_drop(&r.p);
	rig_connect(&r);
	peer_attach(&r.p, ch, 1);
	is_int(r.w.nlanes, 1, "a channel that ATTACH does not name is closed");
	rig_down(&r);
}

/*
 * The old connection is cut off and the new one handed over before the I/O thread looks again. One without TLS has no handshake
 * to wait for: nothing of the old one may be taken for its.
 */
static void unseen_cut(void)
{
	static const uint8_t half[sizeof(struct rgpu_frame) / 2];
	unsigned good = 0, n = 20;
	struct peer_reply rep;

	begin();
	for (unsigned i = 0; i < n; i++) {
		uint32_t ch[] = {0}, got;
		int sv[2];

		peer_rec(&r.p, 0, .op = STUB_COUNT, .fence = true);
		good += peer_reply(&r.p, &rep, NULL) && rep.rep.seq == i + 1;
		if (i % 2) {
			rgpu_link_write(r.p.link, half, sizeof(half));
			do {
				pthread_mutex_lock(&r.w.input_lock);
				got = r.w.input.hdr_got;
				pthread_mutex_unlock(&r.w.input_lock);
			} while (got != sizeof(half) && !usleep(100));
		}
		pthread_mutex_lock(&r.w.input_lock);
		worker_retire(&r.w, ++r.lease);
		peer_drop(&r.p);
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
			abort();
		r.p.link = rgpu_link_plain(sv[0]);
		worker_connect(&r.w, sv[1], r.lease, NULL);
		pthread_mutex_unlock(&r.w.input_lock);
		peer_attach(&r.p, ch, 1);
		if (r.p.said_bye)
			break;
	}
	is_int(good, n, "connections that take the place of one whose end nobody has seen: %s",
	       r.p.said_bye ? r.p.bye.text : "each is the session's");
	is_int(stub_count, n, "each call has run once");
	rig_down(&r);
}

int main(void)
{
	unsigned counts;

	alarm(240);
	fill_seed[0] = 77;
	for (unsigned i = 0; i < PAYLOAD; i++)
		payload[i] = i;
	counts = make_script();
	cut_sending(counts);
	cut_receiving(counts, true);
	cut_receiving(counts, false);
	old_lease();
	backlog_credit();
	small_calls();
	unseen_cut();
	silence();
	grace(false, false, "a client that never came is not waited for forever");
	grace(false, true, "a proxy may come back within the grace period");
	grace(true, true, "a program that has the engine inside does not come back after FIN");
	return tap_done();
}
