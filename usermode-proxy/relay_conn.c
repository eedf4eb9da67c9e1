// SPDX-License-Identifier: MIT
/* The relay's connections: preface and handshake with a lease, and the exchange of numbers that makes it the session's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/clock.h"
#include "usermode-proxy/relay_int.h"

#define STEP_MS 10000

/* Blocks. The lock is not held: nothing of the relay but its server's address is used. */
int relay_connect(struct rgpu_relay *r, const struct rgpu_lease *lease, struct rgpu_link **out, char why[RGPU_WHY_MAX])
{
	struct rgpu_preface pre = {.lease = lease->lease};
	char inner[RGPU_WHY_MAX];
	struct rgpu_link *l;
	int fd, err;

	memcpy(pre.magic, RGPU_PREFACE_MAGIC, sizeof(pre.magic));
	memcpy(pre.token, lease->token, sizeof(pre.token));
	fd = rgpu_addr_connect(&r->server, STEP_MS, why);
	if (fd < 0)
		return fd;
	/* A name may have another address by now. */
	if (lease->plain && !rgpu_sock_is_loopback(fd)) {
		close(fd);
		return rgpu_why(
			why, -EPERM,
			"%.100s is not on this machine any more, and plaintext goes to no other: use a key or a certificate",
			r->server.host);
	}
	/* A fresh socket's buffer takes so little at once. */
	if (send(fd, &pre, sizeof(pre), MSG_NOSIGNAL) != sizeof(pre)) {
		close(fd);
		return rgpu_why(why, -ECONNRESET, "the server closed the data connection at once");
	}
	l = lease->plain ? rgpu_link_plain(fd) : rgpu_link_client(fd, RGPU_DATA_IDENTITY, lease->key);
	if (!l) {
		close(fd);
		return rgpu_why(why, -ENOMEM, "no memory for a connection");
	}
	err = rgpu_link_handshake_wait(l, STEP_MS);
	if (err) {
		snprintf(inner, sizeof(inner), "%s", rgpu_link_why(l));
		rgpu_link_free(l);
		return rgpu_why(why, err, "the data connection was not accepted: %.180s", inner);
	}
	*out = l;
	return 0;
}

/* Channels that the server may know: all that the program ever used. */
static unsigned named(struct rgpu_relay *r, struct rgpu_attach_channel *list)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];

		if (!c || c->state != CHAN_OPEN)
			continue;
		if (!c->seq && !c->published && !__atomic_load_n(&c->m.a->sq_tail, __ATOMIC_ACQUIRE))
			continue;
		list[n].channel = i;
		list[n].reserved = 0;
		list[n++].published = c->published;
	}
	return n;
}

static int take_attached(struct rgpu_relay *r, const struct rgpu_attach_channel *asked, const struct rgpu_attached_channel *got,
			 unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct chan *c = r->chan[got[i].channel < RGPU_CHANNELS_MAX ? got[i].channel : 0];
		int err;

		if (got[i].channel != asked[i].channel)
			return relay_fail(r, -EPROTO, "the server attached channel %u where %u was asked for", got[i].channel,
					  asked[i].channel);
		if (c->state != CHAN_OPEN)
			continue; /* destroyed meanwhile */
		err = relay_tx_skip(r, c, got[i].received);
		if (err)
			return err;
		c->allowed = got[i].credit;
	}
	return 0;
}

/*
 * Called with the lock held, which is dropped during the exchange. Afterwards @link is the relay's, or the error says that
 * another may be tried (the link is freed), unless r->failed.
 */
int relay_attach(struct rgpu_relay *r, struct rgpu_link *link, char why[RGPU_WHY_MAX])
{
	struct {
		struct rgpu_attach_channel asked[RGPU_CHANNELS_MAX];
		struct rgpu_attached_channel got[RGPU_CHANNELS_MAX];
		struct rgpu_error_frame bye;
	} *x = calloc(1, sizeof(*x));
	struct rgpu_frame f;
	unsigned n;
	ssize_t len;
	int err;

	if (!x) {
		rgpu_link_free(link);
		return relay_fail(r, -ENOMEM, "no memory to attach");
	}
	relay_tx_reset(r);
	relay_rx_reset(r);
	n = named(r, x->asked);
	pthread_mutex_unlock(&r->lock);

	len = rgpu_link_send_flagged(link, RGPU_D_ATTACH, RGPU_ATTACH_CACHE | rgpu_pack_flags(r->pack.mode), x->asked,
				     n * sizeof(x->asked[0]), STEP_MS);
	if (!len)
		len = rgpu_link_recv_frame(link, &f, x->got, sizeof(x->got) + sizeof(x->bye), STEP_MS);
	if (len < 0)
		rgpu_why(why, len, "attaching to the session: %.200s",
			 rgpu_link_why(link)[0] ? rgpu_link_why(link) : strerror(-len));

	pthread_mutex_lock(&r->lock);
	if (len < 0) {
		err = len;
	} else if (f.type == RGPU_D_BYE && len == sizeof(x->bye)) {
		memcpy(&x->bye, x->got, sizeof(x->bye));
		err = relay_fail(r, x->bye.err > 0 && x->bye.err < 512 ? -x->bye.err : -ECONNABORTED, "%.*s",
				 (int)sizeof(x->bye.text), x->bye.text);
	} else if (f.type != RGPU_D_ATTACHED || len != (ssize_t)(n * sizeof(x->got[0]))) {
		err = relay_fail(r, -EPROTO, "the server answered ATTACH of %u channels with frame type %u of %zd bytes", n,
				 f.type, len);
	} else {
		err = take_attached(r, x->asked, x->got, n);
	}
	if (err) {
		rgpu_link_free(link);
	} else {
		r->link = link;
		r->cached = f.flags & RGPU_ATTACH_CACHE;
		rgpu_packer_begin(&r->pack, rgpu_link_fd(link), f.flags);
		__atomic_store_n(&r->fd, rgpu_link_fd(link), __ATOMIC_RELAXED);
		r->lost_at = r->pinged_at = 0;
		r->heard_at = rgpu_now_ns();
		/* A server on this machine wants the processor that we would spin on: measured to answer sooner without. */
		__atomic_store_n(&r->spin_ns,
				 sysconf(_SC_NPROCESSORS_ONLN) > 1 && !rgpu_sock_same_host(rgpu_link_fd(link)) ? RGPU_SPIN_MAX
													       : 0,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&r->near.may, sysconf(_SC_NPROCESSORS_ONLN) > 1 && rgpu_sock_same_host(rgpu_link_fd(link)),
				 __ATOMIC_RELAXED);
		r->count.connections++;
	}
	if (r->failed)
		memcpy(why, r->why, RGPU_WHY_MAX);
	free(x);
	return err;
}
