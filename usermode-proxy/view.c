// SPDX-License-Identifier: MIT
/* What the proxy's page shows: the module's devices, the programs that use them, and the link to the server. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/clock.h"
#include "usermode-proxy/devices.h"
#include "usermode-proxy/session.h"
#include "usermode-proxy/view.h"
#include "web/view.h"

static struct {
	struct kern *kern;
	struct rgpu_ctl *ctl;
	char server[RGPU_ADDR_TEXT_MAX];
	int64_t began;
	uint8_t stats[RGPU_FRAME_MAX]; /* the page has one thread */
} page;

/* Every /dev/rgpuN there is, and what stands behind it. */
static int devices(struct web_view *v)
{
	struct kern_device *have = NULL;
	char why[RGPU_WHY_MAX];
	unsigned n = 0;
	int err = kern_devices(page.kern, &have, &n, why);

	for (unsigned i = 0; i < n && !err; i++) {
		struct web_device *d = web_view_device(v);
		char name[RGPU_NAME_LEN];
		int index = devices_named(have[i].minor, name);

		if (!d) {
			err = -ENOMEM;
			break;
		}
		d->minor = have[i].minor;
		d->sessions = have[i].sessions;
		if (have[i].has_uuid)
			memcpy(d->uuid, have[i].uuid, sizeof(d->uuid));
		if (index < 0 || !v->up)
			continue;
		d->index = index;
		d->online = true;
		memcpy(d->name, name, sizeof(d->name));
	}
	free(have);
	return err;
}

/* TCP measures it all the time; asking costs no packet. */
static int rtt_us(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? WEB_UNKNOWN : (int)info.tcpi_rtt;
}

/* The relay's counts of one session, into its entries. */
static void carried(const struct session *s, void *arg)
{
	struct rgpu_relay_counters c;
	struct web_view *v = arg;
	int64_t down = __atomic_load_n(&s->down_at, __ATOMIC_RELAXED);

	if (!s->relay)
		return;
	/* A server that is away tells of none: what is known here is who they are. */
	if (!v->up) {
		struct web_session *w = web_view_session(v);

		if (!w)
			return;
		memcpy(w->sid, s->start.sid, sizeof(w->sid));
		memcpy(w->comm, s->start.comm, sizeof(s->start.comm));
		w->uid = s->start.uid;
		w->pid = s->start.pid;
	}
	rgpu_relay_counters(s->relay, &c);
	for (unsigned i = 0; i < v->nsessions; i++) {
		struct web_session *w = &v->session[i];

		if (memcmp(w->sid, s->start.sid, sizeof(w->sid)))
			continue;
		w->carried = true;
		w->linked = !down;
		w->down_s = down ? (rgpu_now_ns() - down) / 1000000000 : 0;
		w->sent_bytes = c.sent_bytes;
		w->received_bytes = c.received_bytes;
		w->connections = c.connections;
		w->named = c.named;
		w->saved_bytes = c.saved_bytes;
		w->needed = c.needed;
		w->known = c.known;
		w->pack_in = c.pack_in;
		w->pack_out = c.pack_out;
	}
}

static int fill(struct web_view *v, void *arg)
{
	struct rgpu_welcome w;
	ssize_t n;
	int err;

	(void)arg;
	v->role = "rgpu-proxy";
	v->uptime_s = (rgpu_now_ns() - page.began) / 1000000000;
	strcpy(v->version, RGPU_VERSION);
	strcpy(v->peer, page.server);
	n = rgpu_ctl_stats(page.ctl, page.stats, sizeof(page.stats), v->why);
	err = n < 0 ? n : rgpu_ctl_hello(page.ctl, &w, v->why);
	v->up = !err;
	if (v->up) {
		memcpy(v->driver, w.driver, sizeof(v->driver));
		v->rtt_us = rtt_us(rgpu_ctl_fd(page.ctl));
	}
	err = devices(v);
	if (!err && v->up)
		err = web_view_stats(v, page.stats, n);
	if (!err)
		session_each(carried, v);
	return err;
}

int view_serve(struct kern *kern, struct rgpu_ctl *ctl, const struct rgpu_addr *server, uint16_t port, char why[RGPU_WHY_MAX])
{
	page.kern = kern;
	page.ctl = ctl;
	page.began = rgpu_now_ns();
	rgpu_addr_text(server, page.server);
	return web_serve(port, fill, NULL, why);
}
