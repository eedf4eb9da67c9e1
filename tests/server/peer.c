// SPDX-License-Identifier: MIT
/* A client of the tests' own for data connections: it builds frames, valid or not, and collects what comes back. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/server/peer.h"

static const uint8_t test_psk[RGPU_KEY_LEN] = "a key of the tests, 32 bytes...";

static void die(const char *what, int err)
{
	printf("Bail out! %s: %s\n", what, strerror(-err));
	exit(1);
}

static void *io_main(void *arg)
{
	worker_io(arg);
	return NULL;
}

void rig_up(struct rig *r, const struct worker_times *t, bool direct)
{
	int err;

	memset(r, 0, sizeof(*r));
	err = worker_init(&r->w, NULL, direct, t);
	if (err || pthread_create(&r->io, NULL, io_main, &r->w))
		die("worker_init", err);
	r->lease = 1;
	worker_retire(&r->w, r->lease);
}

void rig_connect(struct rig *r)
{
	int sv[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		die("socketpair", -errno);
	r->p.link = rgpu_link_client(sv[0], RGPU_DATA_IDENTITY, test_psk);
	worker_connect(&r->w, sv[1], r->lease, test_psk);
	err = rgpu_link_handshake_wait(r->p.link, PEER_WAIT_MS);
	if (err)
		die(rgpu_link_why(r->p.link), err);
}

void rig_resume(struct rig *r)
{
	uint32_t ch[RGPU_CHANNELS_MAX], n = 0;

	worker_retire(&r->w, ++r->lease);
	peer_drop(&r->p);
	rig_connect(r);
	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++)
		if (r->p.lane[i].seq)
			ch[n++] = i;
	peer_attach(&r->p, ch, n);
}

void rig_down(struct rig *r)
{
	peer_drop(&r->p);
	worker_break(&r->w, 0, "the test is over");
	pthread_join(r->io, NULL);
	worker_destroy(&r->w);
	free(r->p.out);
	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++)
		free(r->p.lane[i].bo);
}

void peer_drop(struct peer *p)
{
	rgpu_link_free(p->link);
	p->link = NULL;
}

int peer_send(struct peer *p, uint16_t type, uint32_t channel, const void *buf, size_t len)
{
	return rgpu_link_send_frame(p->link, type, channel, buf, len, PEER_WAIT_MS);
}

void peer_attach(struct peer *p, const uint32_t *ch, unsigned n)
{
	struct rgpu_attach_channel a[RGPU_CHANNELS_MAX] = {0};
	int type;

	for (unsigned i = 0; i < n; i++) {
		a[i].channel = ch[i];
		a[i].published = p->lane[ch[i]].published;
		p->lane[ch[i]].cq = 0;
		p->lane[ch[i]].tx = 0;
	}
	rgpu_link_send_flagged(p->link, RGPU_D_ATTACH, p->attach_flags, a, n * sizeof(*a), PEER_WAIT_MS);
	do {
		bool got;

		type = peer_step(p, NULL, &got, NULL, PEER_WAIT_MS);
	} while (type > 0 && type != RGPU_D_ATTACHED);
	if (type < 0 && !p->said_bye)
		die("ATTACH", type);
}

void peer_gather(struct peer *p, struct rec_args a)
{
	unsigned nseg = (a.send > 0) + (a.recv > 0), i = 0;
	uint32_t len = sizeof(struct rgpu_rec) + nseg * sizeof(struct rgpu_seg) + a.body_len;
	uint32_t padded = (len + RGPU_REC_ALIGN - 1) / RGPU_REC_ALIGN * RGPU_REC_ALIGN;
	struct rgpu_seg seg[2] = {0};
	struct rgpu_rec rec = {
		.len = padded,
		.op = a.op,
		.flags = a.fence ? RGPU_REC_FENCE : 0,
		.nseg = nseg,
		.seq = a.seq ? a.seq : ++p->lane[a.channel].seq,
		.after = a.after,
		.stamp = a.stamp,
	};

	p->lane[a.channel].tx += padded + a.send;
	if (a.send)
		seg[i++] = (struct rgpu_seg){.bo = 1, .dir = RGPU_SEG_SEND, .len = a.send};
	if (a.recv)
		seg[i++] = (struct rgpu_seg){.bo = 1, .dir = RGPU_SEG_RECV, .off = a.recv_off, .len = a.recv};
	while (p->out_len + padded > p->out_room) {
		p->out_room = p->out_room ? p->out_room * 2 : 1 << 16;
		p->out = realloc(p->out, p->out_room);
		if (!p->out)
			die("realloc", -ENOMEM);
	}
	memset(p->out + p->out_len, 0, padded);
	memcpy(p->out + p->out_len, &rec, sizeof(rec));
	memcpy(p->out + p->out_len + sizeof(rec), seg, nseg * sizeof(*seg));
	if (a.body_len)
		memcpy(p->out + p->out_len + sizeof(rec) + nseg * sizeof(*seg), a.body, a.body_len);
	p->out_len += padded;
}

static int peer_bytes(struct peer *p, const uint8_t *at, size_t len)
{
	while (len || rgpu_link_events(p->link) & POLLOUT) {
		struct pollfd fd = {.fd = rgpu_link_fd(p->link), .events = POLLOUT};
		ssize_t n = len ? rgpu_link_write(p->link, at, len) : rgpu_link_flush(p->link);

		if (n < 0 && n != -EAGAIN)
			return n;
		if (n > 0) {
			at += n;
			len -= n;
		} else if (n == -EAGAIN && poll(&fd, 1, PEER_WAIT_MS) <= 0) {
			return -ETIMEDOUT;
		}
	}
	return 0;
}

int peer_flush(struct peer *p, uint32_t channel)
{
	struct rgpu_frame f = {.len = p->out_len, .type = RGPU_D_RECORDS, .flags = p->wish_mib, .channel = channel};
	uint8_t *whole = malloc(sizeof(f) + p->out_len);
	int err;

	if (!whole)
		die("malloc", -ENOMEM);
	memcpy(whole, &f, sizeof(f));
	memcpy(whole + sizeof(f), p->out, p->out_len);
	err = peer_bytes(p, whole, sizeof(f) + p->out_len);
	free(whole);

	p->out_len = 0;
	return err;
}

static void data(struct peer *p, uint32_t channel, uint32_t len)
{
	const struct rgpu_data *d = (struct rgpu_data *)p->frame;
	struct peer_lane *l = &p->lane[channel];
	uint64_t n = len - sizeof(*d);

	if (d->off + n > l->bo_size) {
		l->bo = realloc(l->bo, d->off + n);
		if (!l->bo)
			die("realloc", -ENOMEM);
		memset(l->bo + l->bo_size, 0xee, d->off + n - l->bo_size);
		l->bo_size = d->off + n;
	}
	memcpy(l->bo + d->off, d + 1, n);
	l->data_bytes += n;
}

/* One REPLY frame: the server sends one reply in each. */
static void reply(struct peer *p, uint32_t channel, struct peer_reply *rep, bool *got)
{
	const struct rgpu_rep *r = (struct rgpu_rep *)p->frame;
	struct peer_lane *l = &p->lane[channel];

	if (!(r->flags & RGPU_REP_QUIET)) {
		l->cq += r->len;
		*got = true;
		if (rep) {
			rep->rep = *r;
			memcpy(rep->body, r + 1, r->body_len < sizeof(rep->body) ? r->body_len : sizeof(rep->body));
		}
	}
	if (l->hold_ack)
		return;
	l->published = r->rseq;
	peer_send(p, RGPU_D_ACK, channel, &(struct rgpu_ack){l->published, l->cq + (64 << 10)}, sizeof(struct rgpu_ack));
}

int peer_step(struct peer *p, struct peer_reply *rep, bool *got, uint32_t *channel, int timeout_ms)
{
	const struct rgpu_attached_channel *at = (struct rgpu_attached_channel *)p->frame;
	const struct rgpu_grant *g = (struct rgpu_grant *)p->frame;
	struct rgpu_frame h;
	ssize_t n = rgpu_link_recv_frame(p->link, &h, p->frame, sizeof(p->frame), timeout_ms);

	*got = false;
	if (n < 0)
		return n;
	p->last_type = h.type;
	p->last_channel = h.channel;
	p->last_len = n;
	if (channel)
		*channel = h.channel;
	switch (h.type) {
	case RGPU_D_ATTACHED:
		for (unsigned i = 0; i < n / sizeof(*at); i++) {
			p->lane[at[i].channel].received = at[i].received;
			p->lane[at[i].channel].allow = at[i].credit;
		}
		break;
	case RGPU_D_GRANT:
		p->lane[h.channel].received = g->received;
		p->lane[h.channel].allow = g->allow;
		break;
	case RGPU_D_DATA:
		data(p, h.channel, h.len);
		break;
	case RGPU_D_REPLY:
		reply(p, h.channel, rep, got);
		break;
	case RGPU_D_PING:
		p->pings++;
		if (!p->quiet_pongs)
			peer_send(p, RGPU_D_PONG, 0, p->frame, 8);
		break;
	case RGPU_D_BYE:
		memcpy(&p->bye, p->frame, sizeof(p->bye));
		p->said_bye = true;
		break;
	}
	return h.type;
}

void peer_must(struct peer *p)
{
	bool got;
	int type = peer_step(p, NULL, &got, NULL, PEER_WAIT_MS);

	if (type < 0 || type == RGPU_D_BYE)
		die(type < 0 ? rgpu_link_why(p->link) : p->bye.text, type < 0 ? type : -p->bye.err);
}

void peer_credit(struct peer *p, uint32_t channel)
{
	const struct peer_lane *l = &p->lane[channel];

	while (l->tx >= (l->allow > RGPU_SQ_CREDIT_INITIAL ? l->allow : RGPU_SQ_CREDIT_INITIAL))
		peer_must(p);
}

bool peer_reply(struct peer *p, struct peer_reply *rep, uint32_t *channel)
{
	bool got;
	int type;

	do
		type = peer_step(p, rep, &got, channel, PEER_WAIT_MS);
	while (type > 0 && type != RGPU_D_BYE && !got);
	return type > 0 && got;
}

bool peer_until_end(struct peer *p)
{
	bool got;

	while (!p->said_bye && peer_step(p, NULL, &got, NULL, PEER_WAIT_MS) > 0)
		;
	return p->said_bye;
}
