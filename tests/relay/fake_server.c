// SPDX-License-Identifier: MIT
/* A scripted server for the relay's tests: executes records once, keeps replies until acknowledged, and cuts connections on
 * demand. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/addr.h"
#include "tests/relay/fake_server.h"

#define DATA_FRAME 50000

uint8_t fake_byte(uint64_t seq, uint64_t i)
{
	return (seq * 31 + i) * 2654435761u >> 11;
}

uint64_t fake_hash(const uint8_t *p, uint64_t n)
{
	uint64_t h = 1469598103934665603u;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static void trouble(struct fake *f, const char *what)
{
	if (!f->trouble[0])
		snprintf(f->trouble, sizeof(f->trouble), "%s", what);
}

/* Counts an event; true when the connection is to be cut here. */
static bool event(struct fake *f)
{
	if (++f->events != f->cut_at)
		return false;
	f->cut_at = f->cut_every ? f->events + f->cut_every : 0;
	f->cuts++;
	return true;
}

/* The lock is dropped while sending, so that the test can look. */
static bool send_frame(struct fake *f, struct rgpu_link *l, uint16_t type, uint32_t ch, const void *buf, size_t len)
{
	if (event(f))
		return false;
	if (rgpu_link_send_frame(l, type, ch, buf, len, 5000))
		return false;
	return !event(f);
}

static bool send_reply(struct fake *f, struct rgpu_link *l, uint32_t id, struct fake_reply *r)
{
	uint8_t buf[sizeof(struct rgpu_data) + DATA_FRAME], rep[RGPU_REP_MAX] = {0};
	uint64_t at = 0;

	for (unsigned i = 0; i < r->nseg; i++)
		for (uint64_t off = 0; off < r->seg[i].len;) {
			struct rgpu_data d = {.seq = r->rep.seq, .bo = r->seg[i].bo, .off = r->seg[i].off + off};
			uint64_t n = r->seg[i].len - off < DATA_FRAME ? r->seg[i].len - off : DATA_FRAME;

			memcpy(buf, &d, sizeof(d));
			for (uint64_t k = 0; k < n; k++)
				buf[sizeof(d) + k] = fake_byte(r->rep.seq, at + k);
			if (!send_frame(f, l, RGPU_D_DATA, id, buf, sizeof(d) + n))
				return false;
			off += n;
			at += n;
		}
	memcpy(rep, &r->rep, sizeof(r->rep));
	if (r->rep.body_len)
		memcpy(rep + sizeof(r->rep), r->body, r->rep.body_len);
	if (!(r->rep.flags & RGPU_REP_QUIET))
		f->ch[id].sent += r->rep.len;
	r->sent = true;
	return send_frame(f, l, RGPU_D_REPLY, id, rep, r->rep.len);
}

static bool send_replies(struct fake *f, struct rgpu_link *l, uint32_t id)
{
	struct fake_chan *c = &f->ch[id];

	for (struct fake_reply *r = c->replies; r; r = r->next) {
		if (r->sent)
			continue;
		if (!(r->rep.flags & RGPU_REP_QUIET) && c->sent >= c->may_send)
			break;
		if (!send_reply(f, l, id, r))
			return false;
	}
	return true;
}

static void drop_replies(struct fake_chan *c, uint64_t published)
{
	while (c->replies && c->replies->rep.rseq <= published) {
		struct fake_reply *r = c->replies;

		c->replies = r->next;
		free(r->body);
		free(r);
	}
	if (published > c->acked)
		c->acked = published;
}

static void execute(struct fake *f, uint32_t id)
{
	struct fake_chan *c = &f->ch[id];
	struct fake_reply *r, **at;
	struct rgpu_rec rec;
	uint32_t arg = 0;
	uint64_t hash;

	memcpy(&rec, c->rec, sizeof(rec));
	if (rec.len >= sizeof(rec) + rec.nseg * sizeof(struct rgpu_seg) + 4)
		memcpy(&arg, c->rec + sizeof(rec) + rec.nseg * sizeof(struct rgpu_seg), 4);
	hash = fake_hash(c->payload, c->have);
	if (f->nlog < FAKE_LOG)
		f->log[f->nlog++] = (struct fake_exec){id, rec.seq, hash};
	if (!(rec.flags & RGPU_REC_FENCE) && rec.op != FAKE_D2H)
		return;
	r = calloc(1, sizeof(*r));
	r->rep.op = rec.op;
	r->rep.seq = rec.seq;
	r->rep.rseq = ++c->rseq;
	r->rep.flags = rec.flags & RGPU_REC_FENCE ? 0 : RGPU_REP_QUIET;
	if (rec.op == FAKE_NOP)
		r->rep.status = arg;
	if (rec.op == FAKE_H2D) {
		r->rep.body_len = 8;
		r->body = malloc(8);
		memcpy(r->body, &hash, 8);
	} else if (rec.op == FAKE_BODY) {
		r->rep.body_len = arg;
		r->body = malloc(arg + 1);
		for (uint32_t i = 0; i < arg; i++)
			r->body[i] = fake_byte(rec.seq, i);
	} else if (rec.op == FAKE_D2H) {
		for (unsigned i = 0; i < rec.nseg; i++) {
			memcpy(&r->seg[r->nseg], c->rec + sizeof(rec) + i * sizeof(struct rgpu_seg), sizeof(struct rgpu_seg));
			if (r->seg[r->nseg].dir == RGPU_SEG_RECV)
				r->rep.bulk += r->seg[r->nseg++].len;
		}
	}
	r->rep.len = (sizeof(r->rep) + r->rep.body_len + 15) & ~15u;
	for (at = &c->replies; *at; at = &(*at)->next)
		;
	*at = r;
}

static bool grant(struct fake *f, struct rgpu_link *l, uint32_t id)
{
	struct fake_chan *c = &f->ch[id];
	struct rgpu_grant g = {.received = c->received, .allow = c->got + RGPU_SQ_CREDIT_INITIAL};

	if (f->no_grants)
		return true;
	c->granted = g.allow;
	return send_frame(f, l, RGPU_D_GRANT, id, &g, sizeof(g));
}

/* The record in c->rec is whole. */
static bool complete(struct fake *f, struct rgpu_link *l, uint32_t id)
{
	struct fake_chan *c = &f->ch[id];
	struct rgpu_rec rec;

	memcpy(&rec, c->rec, sizeof(rec));
	if (rec.seq <= c->received)
		f->again++;
	else if (rec.seq != c->received + 1)
		trouble(f, "a record is missing");
	else {
		c->received = rec.seq;
		execute(f, id);
	}
	free(c->payload);
	c->payload = NULL;
	c->have = c->want = 0;
	return grant(f, l, id) && send_replies(f, l, id);
}

static bool on_records(struct fake *f, struct rgpu_link *l, uint32_t id, const uint8_t *buf, uint32_t len)
{
	struct fake_chan *c = &f->ch[id];

	if (c->want)
		trouble(f, "records before the payload was whole");
	while (len) {
		struct rgpu_rec rec;
		bool send = false;

		memcpy(&rec, buf, sizeof(rec));
		if (c->got >= c->granted)
			trouble(f, "a record without credit");
		if (len < sizeof(rec) || rec.len > len || rec.len < sizeof(rec) || rec.flags & RGPU_REC_PAD) {
			trouble(f, "a damaged record");
			return false;
		}
		memcpy(c->rec, buf, rec.len);
		c->got += rec.len;
		for (unsigned i = 0; i < rec.nseg; i++) {
			struct rgpu_seg s;

			memcpy(&s, buf + sizeof(rec) + i * sizeof(s), sizeof(s));
			if (s.dir != RGPU_SEG_SEND)
				continue;
			send = true;
			c->want += s.len;
		}
		buf += rec.len;
		len -= rec.len;
		if (send && len)
			trouble(f, "a record with payload is not the last of its frame");
		if (c->want) {
			c->payload = malloc(c->want);
			return true;
		}
		if (!complete(f, l, id))
			return false;
	}
	return true;
}

static bool on_payload(struct fake *f, struct rgpu_link *l, uint32_t id, const uint8_t *buf, uint32_t len)
{
	struct fake_chan *c = &f->ch[id];

	if (len > c->want - c->have || len > RGPU_FRAME_BULK) {
		trouble(f, "too much payload");
		return false;
	}
	memcpy(c->payload + c->have, buf, len);
	c->have += len;
	c->got += len;
	return c->have < c->want || complete(f, l, id);
}

static bool on_frame(struct fake *f, struct rgpu_link *l, const struct rgpu_frame *h, const uint8_t *buf)
{
	struct fake_chan *c = &f->ch[h->channel < FAKE_CHANNELS ? h->channel : 0];
	struct rgpu_ack a;

	switch (h->type) {
	case RGPU_D_RECORDS:
	case RGPU_D_PAYLOAD:
		if (f->nframes < FAKE_LOG)
			f->frame_order[f->nframes++] = h->channel | (h->type == RGPU_D_RECORDS ? 1u << 31 : 0);
		return (h->type == RGPU_D_RECORDS ? on_records : on_payload)(f, l, h->channel, buf, h->len);
	case RGPU_D_ACK:
		memcpy(&a, buf, sizeof(a));
		if (a.published > c->rseq || a.allow < c->may_send)
			trouble(f, "an impossible ACK");
		drop_replies(c, a.published);
		c->may_send = a.allow;
		return send_replies(f, l, h->channel);
	case RGPU_D_BYE:
		f->bye++;
		return true;
	case RGPU_D_CLOSE_CHANNEL:
		c->closed = true;
		return true;
	case RGPU_D_PING:
		return send_frame(f, l, RGPU_D_PONG, 0, buf, h->len);
	case RGPU_D_PONG:
		return true;
	}
	trouble(f, "a frame of unknown type");
	return false;
}

static bool attach(struct fake *f, struct rgpu_link *l)
{
	struct rgpu_attach_channel in[FAKE_CHANNELS];
	struct rgpu_attached_channel out[FAKE_CHANNELS] = {0};
	struct rgpu_frame h;
	ssize_t n;

	pthread_mutex_unlock(&f->lock);
	n = rgpu_link_recv_frame(l, &h, in, sizeof(in), 5000);
	pthread_mutex_lock(&f->lock);
	if (n < 0 || h.type != RGPU_D_ATTACH || event(f))
		return false;
	for (unsigned i = 0; i < FAKE_CHANNELS; i++) {
		struct fake_chan *c = &f->ch[i];

		c->got = c->sent = c->have = c->want = 0;
		free(c->payload);
		c->payload = NULL;
		c->granted = RGPU_SQ_CREDIT_INITIAL;
		c->may_send = RGPU_CQ_CREDIT_INITIAL;
		for (struct fake_reply *r = c->replies; r; r = r->next)
			r->sent = false;
	}
	n /= sizeof(in[0]);
	for (ssize_t i = 0; i < n; i++) {
		struct fake_chan *c = &f->ch[in[i].channel];

		if (in[i].published > c->rseq)
			trouble(f, "published what never was");
		drop_replies(c, in[i].published);
		out[i].channel = in[i].channel;
		out[i].credit = RGPU_SQ_CREDIT_INITIAL;
		out[i].received = c->received + f->lie_received;
	}
	if (!send_frame(f, l, RGPU_D_ATTACHED, 0, out, n * sizeof(out[0])))
		return false;
	if (f->on_attach)
		f->on_attach(f, l);
	for (unsigned i = 0; i < FAKE_CHANNELS; i++)
		if (!send_replies(f, l, i))
			return false;
	return true;
}

static bool find_key(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN])
{
	struct fake *f = arg;

	pthread_mutex_lock(&f->lock);
	memcpy(key, f->lease.key, RGPU_KEY_LEN);
	pthread_mutex_unlock(&f->lock);
	return !strcmp(identity, RGPU_DATA_IDENTITY);
}

static bool preface(struct fake *f, int fd)
{
	struct timeval t = {.tv_sec = 5};
	struct rgpu_preface p;
	bool good;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	if (recv(fd, &p, sizeof(p), MSG_WAITALL) != sizeof(p))
		return false;
	pthread_mutex_lock(&f->lock);
	good = !memcmp(p.magic, RGPU_PREFACE_MAGIC, 8) && p.lease == f->lease.lease && !memcmp(p.token, f->lease.token, 16);
	pthread_mutex_unlock(&f->lock);
	return good;
}

/* Waits for a frame, a new connection or the end. */
static bool readable(struct fake *f, struct rgpu_link *l)
{
	struct pollfd p[2] = {{.fd = rgpu_link_fd(l), .events = POLLIN}, {.fd = f->listen_fd, .events = POLLIN}};

	if (rgpu_link_buffered(l))
		return true;
	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		if (poll(p, 2, 10) <= 0)
			continue;
		return !p[1].revents;
	}
	return false;
}

static void connection(struct fake *f, int fd)
{
	static uint8_t buf[RGPU_FRAME_MAX];
	struct linger hard = {.l_onoff = 1};
	struct rgpu_link *l;
	struct rgpu_frame h;
	ssize_t n;

	if (!preface(f, fd)) {
		close(fd);
		return;
	}
	l = rgpu_link_server(fd, find_key, f);
	if (rgpu_link_handshake_wait(l, 5000)) {
		rgpu_link_free(l);
		return;
	}
	pthread_mutex_lock(&f->lock);
	f->connections++;
	if (attach(f, l)) {
		for (;;) {
			pthread_mutex_unlock(&f->lock);
			n = readable(f, l) ? rgpu_link_recv_frame(l, &h, buf, sizeof(buf), 5000) : -1;
			pthread_mutex_lock(&f->lock);
			if (n < 0 || event(f) || !on_frame(f, l, &h, buf) || event(f))
				break;
		}
	}
	pthread_mutex_unlock(&f->lock);
	/* Every other cut is a reset. */
	if (f->cuts % 2)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	shutdown(fd, f->cuts % 2 ? SHUT_RD : SHUT_RDWR);
	rgpu_link_free(l);
}

static void *serve(void *arg)
{
	struct fake *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		struct pollfd p = {.fd = f->listen_fd, .events = POLLIN};
		int fd;

		if (poll(&p, 1, 10) <= 0)
			continue;
		fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		rgpu_sock_tune(fd);
		connection(f, fd);
	}
	return NULL;
}

void fake_start(struct fake *f)
{
	struct rgpu_addr a = {.host = "127.0.0.1"};
	char why[RGPU_WHY_MAX];

	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
	f->listen_fd = rgpu_addr_listen(&a, &f->port, why);
	if (f->listen_fd < 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	pthread_create(&f->thread, NULL, serve, f);
}

void fake_stop(struct fake *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	pthread_join(f->thread, NULL);
	close(f->listen_fd);
	for (unsigned i = 0; i < FAKE_CHANNELS; i++) {
		drop_replies(&f->ch[i], UINT64_MAX);
		free(f->ch[i].payload);
	}
	/* The lock stays: a relay whose server is away goes on asking for leases. */
}

int fake_lease(struct fake *f, struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	pthread_mutex_lock(&f->lock);
	if (f->refuse_resume && f->leases) {
		pthread_mutex_unlock(&f->lock);
		return rgpu_why(why, -ENOENT, "the server gave the session up");
	}
	f->lease.lease = ++f->leases;
	f->lease.grace_ms = 5000;
	memset(f->lease.token, f->leases, sizeof(f->lease.token));
	memset(f->lease.key, ~f->leases, sizeof(f->lease.key));
	*out = f->lease;
	pthread_mutex_unlock(&f->lock);
	return 0;
}
