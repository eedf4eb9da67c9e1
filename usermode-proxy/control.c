// SPDX-License-Identifier: MIT
/* The control connection to a server: who we are, what devices it has, starting, resuming and ending sessions. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include "lib/clock.h"
#include "lib/devlist.h"
#include "lib/link.h"
#include "lib/text.h"
#include "usermode-proxy/control.h"
#include "usermode-proxy/rtt.h"

#define CONNECT_MS 5000
#define REPLY_MS   30000
#define START_MS   90000 /* a driver's initialisation is in it */
#define SULK_NS	   500000000LL
#define PINGS	   8
#define PING_NS	   200000000LL /* no more once they took this long */
#define TRIES	   4	       /* of a request whose connection broke under it */

struct rgpu_ctl {
	pthread_mutex_t lock; /* all below but fd, which is also read without it */
	struct rgpu_addr server;
	struct rgpu_auth auth;
	char agent[64];
	struct rgpu_link *link;
	int fd;
	struct rgpu_welcome welcome;
	/* After a failed connect, who asks next gets the same answer for a moment: many sessions must not queue for timeouts. */
	int64_t failed_at;
	int failed;
	char failed_why[RGPU_WHY_MAX];
	uint8_t *buf; /* RGPU_FRAME_MAX bytes: the answer's payload */
};

struct rgpu_ctl *rgpu_ctl_new(const struct rgpu_addr *server, const struct rgpu_auth *auth, const char *agent)
{
	struct rgpu_ctl *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->buf = malloc(RGPU_FRAME_MAX);
	if (!c->buf) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->server = *server;
	c->auth = *auth;
	snprintf(c->agent, sizeof(c->agent), "%s", agent);
	c->fd = -1;
	return c;
}

static void drop(struct rgpu_ctl *c)
{
	__atomic_store_n(&c->fd, -1, __ATOMIC_RELAXED);
	rgpu_link_free(c->link);
	c->link = NULL;
}

void rgpu_ctl_free(struct rgpu_ctl *c)
{
	if (!c)
		return;
	drop(c);
	pthread_mutex_destroy(&c->lock);
	rgpu_key_wipe(&c->auth.key);
	free(c->buf);
	free(c);
}

bool rgpu_ctl_retryable(int err)
{
	switch (err) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ENETDOWN:
	case -EHOSTDOWN:
	case -EPIPE:
	case -EAGAIN:
	case -EADDRNOTAVAIL:
	case -EBADMSG:
		return true;
	}
	return false;
}

/* A broken exchange: the connection goes, the reason gets the address. */
static int lost(struct rgpu_ctl *c, int err, const char *what, char why[RGPU_WHY_MAX])
{
	char text[RGPU_ADDR_TEXT_MAX], cause[RGPU_WHY_MAX];

	rgpu_addr_text(&c->server, text);
	snprintf(cause, sizeof(cause), "%s", c->link && rgpu_link_why(c->link)[0] ? rgpu_link_why(c->link) : strerror(-err));
	drop(c);
	return rgpu_why(why, err, "server %.80s: %s: %s", text, what, cause);
}

static int nonsense(struct rgpu_ctl *c, const char *what, char why[RGPU_WHY_MAX])
{
	char text[RGPU_ADDR_TEXT_MAX];

	rgpu_addr_text(&c->server, text);
	drop(c);
	return rgpu_why(why, -EPROTO, "server %.80s: %s; are client and server of the same version?", text, what);
}

/* One request on the connection that there is. Returns the payload's length, in c->buf. */
static ssize_t exchange(struct rgpu_ctl *c, uint16_t type, const void *req, size_t len, uint16_t want, int timeout_ms,
			char why[RGPU_WHY_MAX])
{
	struct rgpu_frame hdr;
	ssize_t n;

	n = rgpu_link_send_frame(c->link, type, 0, req, len, timeout_ms);
	if (n < 0)
		return lost(c, n, "sending a request", why);
	n = rgpu_link_recv_frame(c->link, &hdr, c->buf, RGPU_FRAME_MAX, timeout_ms);
	if (n == -EMSGSIZE)
		return nonsense(c, "an answer of impossible size came", why);
	if (n < 0)
		return lost(c, n, "waiting for an answer", why);
	if (hdr.type == RGPU_C_ERROR && n == sizeof(struct rgpu_error_frame)) {
		struct rgpu_error_frame e;

		memcpy(&e, c->buf, sizeof(e));
		text_printable(e.text, sizeof(e.text));
		return rgpu_why(why, e.err > 0 && e.err < 512 ? -e.err : -EPROTO, "%s", e.text);
	}
	if (hdr.type != want)
		return nonsense(c, "the answer does not belong to the request", why);
	return n;
}

static int greet(struct rgpu_ctl *c, char why[RGPU_WHY_MAX])
{
	struct rgpu_hello hello = {
		.magic = RGPU_MAGIC, .major = RGPU_WIRE_MAJOR, .minor = RGPU_WIRE_MINOR, .features = RGPU_FEATURES};
	char text[RGPU_ADDR_TEXT_MAX];
	struct rgpu_welcome w;
	ssize_t n;

	memcpy(hello.agent, c->agent, sizeof(hello.agent));
	n = exchange(c, RGPU_C_HELLO, &hello, sizeof(hello), RGPU_C_WELCOME, REPLY_MS, why);
	if ((n == -ECONNRESET || n == -EPIPE) && c->auth.kind == RGPU_AUTH_PLAIN) {
		rgpu_addr_text(&c->server, text);
		return rgpu_why(why, n,
				"server %.80s closed the connection: it is of a release without plaintext, or no rgpu-server",
				text);
	}
	if (n < 0) {
		drop(c);
		return n;
	}
	/* Later minor versions may append. */
	if (n < (ssize_t)sizeof(w))
		return nonsense(c, "its greeting is too short", why);
	memcpy(&w, c->buf, sizeof(w));
	if (w.magic != RGPU_MAGIC)
		return nonsense(c, "its greeting is not an rgpu-server's", why);
	text_printable(w.agent, sizeof(w.agent));
	text_printable(w.driver, sizeof(w.driver));
	if (w.major != RGPU_WIRE_MAJOR) {
		drop(c);
		rgpu_addr_text(&c->server, text);
		return rgpu_why(why, -EPROTO,
				"versions differ: this is %.60s (protocol %d.%d), the server at %.60s is %.60s (protocol %u.%u); "
				"install the same release on both",
				c->agent, RGPU_WIRE_MAJOR, RGPU_WIRE_MINOR, text, w.agent, w.major, w.minor);
	}
	c->welcome = w;
	return 0;
}

static int connect_now(struct rgpu_ctl *c, char why[RGPU_WHY_MAX])
{
	int fd, err;

	err = rgpu_auth_fits(&c->auth, &c->server, why);
	if (err)
		return err;
	fd = rgpu_addr_connect(&c->server, CONNECT_MS, why);
	if (fd < 0)
		return fd;
	/* A name may have another address by now. */
	if (c->auth.kind == RGPU_AUTH_PLAIN && !rgpu_sock_is_loopback(fd)) {
		close(fd);
		return rgpu_why(why, -EPERM, "%.100s is not on this machine, and plaintext goes to no other", c->server.host);
	}
	c->link = rgpu_auth_link(&c->auth, &c->server, fd);
	if (!c->link) {
		close(fd);
		return rgpu_why(why, -ENOMEM, "no memory for a TLS connection");
	}
	__atomic_store_n(&c->fd, fd, __ATOMIC_RELAXED);
	err = rgpu_link_handshake_wait(c->link, CONNECT_MS);
	if (err)
		return lost(c, err, "cannot connect", why);
	return greet(c, why);
}

/* The connection was there and broke: a network that cuts, a listener that restarts. */
static bool broke(ssize_t err)
{
	return err == -ECONNRESET || err == -EPIPE || err == -ECONNABORTED || err == -EBADMSG;
}

static int connected(struct rgpu_ctl *c, char why[RGPU_WHY_MAX])
{
	if (c->link)
		return 0;
	if (c->failed && rgpu_now_ns() - c->failed_at < SULK_NS)
		return rgpu_why(why, c->failed, "%s", c->failed_why);
	for (int i = 0; i < TRIES; i++) {
		c->failed = connect_now(c, why);
		if (!broke(c->failed))
			break;
	}
	if (c->failed) {
		c->failed_at = rgpu_now_ns();
		memcpy(c->failed_why, why, RGPU_WHY_MAX);
	}
	return c->failed;
}

/* Takes the lock, which the caller drops when it has read c->buf. */
static ssize_t request(struct rgpu_ctl *c, uint16_t type, const void *req, size_t len, uint16_t want, int timeout_ms,
		       char why[RGPU_WHY_MAX])
{
	ssize_t n = 0;

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < TRIES; i++) {
		n = connected(c, why);
		if (!n)
			n = exchange(c, type, req, len, want, timeout_ms, why);
		if (n >= 0 || c->link || c->failed || !broke(n))
			break;
	}
	return n;
}

int rgpu_ctl_hello(struct rgpu_ctl *c, struct rgpu_welcome *out, char why[RGPU_WHY_MAX])
{
	int err;

	pthread_mutex_lock(&c->lock);
	err = connected(c, why);
	if (!err && out)
		*out = c->welcome;
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int parse_devices(const uint8_t *buf, size_t len, struct rgpu_devices *out)
{
	size_t max = len / sizeof(struct rgpu_device_entry) + 1;
	uint8_t *copy = malloc(len ? len : 1);
	const struct rgpu_device_entry *e;
	size_t at = 0;

	out->n = 0;
	out->entry = calloc(max, sizeof(*out->entry));
	out->memory = copy;
	if (!out->entry || !copy)
		return -ENOMEM;
	memcpy(copy, buf, len);
	while ((e = rgpu_devlist_next(copy, len, &at))) {
		text_printable(((struct rgpu_device_entry *)e)->name, sizeof(e->name));
		out->entry[out->n++] = e;
	}
	if (at != len)
		return -EPROTO;
	return 0;
}

int rgpu_ctl_devices(struct rgpu_ctl *c, struct rgpu_devices *out, char why[RGPU_WHY_MAX])
{
	ssize_t n = request(c, RGPU_C_DEVICES, NULL, 0, RGPU_C_DEVICE_LIST, START_MS, why);
	int err = n < 0 ? n : 0;

	if (!err) {
		err = parse_devices(c->buf, n, out);
		if (err) {
			rgpu_devices_free(out);
			err = err == -EPROTO ? nonsense(c, "its list of devices is damaged", why)
					     : rgpu_why(why, err, "no memory");
		}
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

void rgpu_devices_free(struct rgpu_devices *d)
{
	free(d->entry);
	free(d->memory);
	memset(d, 0, sizeof(*d));
}

/* The lease with the key that both ends derive from this very connection. */
static int take_lease(struct rgpu_ctl *c, size_t len, const uint8_t sid[16], struct rgpu_lease *out, char why[RGPU_WHY_MAX])
{
	struct rgpu_started s;
	uint8_t ctx[20];

	if (len < sizeof(s))
		return nonsense(c, "its answer to START is too short", why);
	memcpy(&s, c->buf, sizeof(s));
	if (memcmp(s.sid, sid, 16))
		return nonsense(c, "it answered for another session", why);
	memcpy(ctx, sid, 16);
	memcpy(ctx + 16, &s.lease, 4);
	memcpy(out->sid, sid, 16);
	memcpy(out->token, s.token, 16);
	out->lease = s.lease;
	out->grace_ms = s.grace_ms;
	out->plain = rgpu_link_is_plain(c->link);
	if (!out->plain && rgpu_link_export(c->link, RGPU_DATA_LABEL, ctx, sizeof(ctx), out->key, sizeof(out->key)))
		return nonsense(c, "no key could be derived from the connection", why);
	return 0;
}

int rgpu_ctl_start(struct rgpu_ctl *c, bool resume, const struct rgpu_start *start, const void *data, struct rgpu_lease *out,
		   char why[RGPU_WHY_MAX])
{
	uint8_t req[sizeof(*start) + RGPU_CONTROL_MAX];
	ssize_t n;
	int err;

	if (start->data_len > RGPU_CONTROL_MAX)
		return rgpu_why(why, -EMSGSIZE, "the program's greeting is larger than %d bytes", RGPU_CONTROL_MAX);
	memcpy(req, start, sizeof(*start));
	if (start->data_len)
		memcpy(req + sizeof(*start), data, start->data_len);
	n = request(c, resume ? RGPU_C_RESUME : RGPU_C_START, req, sizeof(*start) + start->data_len, RGPU_C_STARTED, START_MS,
		    why);
	err = n < 0 ? n : take_lease(c, n, start->sid, out, why);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int simple(struct rgpu_ctl *c, uint16_t type, const uint8_t sid[16], uint32_t device, uint32_t index,
		  char why[RGPU_WHY_MAX])
{
	struct rgpu_join req = {.device = device, .index = index};
	ssize_t n;

	memcpy(req.sid, sid, 16);
	n = request(c, type, &req, sizeof(req), RGPU_C_OK, REPLY_MS, why);
	pthread_mutex_unlock(&c->lock);
	return n < 0 ? n : 0;
}

int rgpu_ctl_join(struct rgpu_ctl *c, const uint8_t sid[16], uint32_t device, uint32_t index, char why[RGPU_WHY_MAX])
{
	return simple(c, RGPU_C_JOIN, sid, device, index, why);
}

int rgpu_ctl_end(struct rgpu_ctl *c, const uint8_t sid[16], char why[RGPU_WHY_MAX])
{
	return simple(c, RGPU_C_END, sid, 0, 0, why);
}

ssize_t rgpu_ctl_stats(struct rgpu_ctl *c, void *buf, size_t room, char why[RGPU_WHY_MAX])
{
	ssize_t n = request(c, RGPU_C_STATS, NULL, 0, RGPU_C_STATS_LIST, REPLY_MS, why);

	if (n >= 0 && (size_t)n > room)
		n = rgpu_why(why, -EMSGSIZE, "the statistics have %zd bytes, there is room for %zu", n, room);
	if (n > 0)
		memcpy(buf, c->buf, n);
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* The lock is held, and a connection there. */
static ssize_t ask_server(struct rgpu_ctl *c, const struct rgpu_telemetry_ask *ask, void *buf, size_t room,
			  char why[RGPU_WHY_MAX])
{
	ssize_t n = exchange(c, RGPU_C_TELEMETRY, ask, sizeof(*ask), RGPU_C_TELEMETRY_LIST, REPLY_MS, why);

	if (n >= 0 && (size_t)n > room)
		return rgpu_why(why, -EMSGSIZE, "an answer of %zd bytes came, there is room for %zu", n, room);
	if (n > 0)
		memcpy(buf, c->buf, n);
	return n;
}

static ssize_t describe_link(struct rgpu_ctl *c, void *buf, size_t room, char why[RGPU_WHY_MAX])
{
	struct rgpu_telemetry_ask ping = {.what = RGPU_TELEMETRY_PING};
	struct rgpu_telemetry_link l = {0};
	char text[RGPU_ADDR_TEXT_MAX];
	int64_t began = rgpu_now_ns();

	if (room < sizeof(l))
		return rgpu_why(why, -EMSGSIZE, "there is no room for an answer");
	for (unsigned i = 0; i < PINGS && rgpu_now_ns() - began < PING_NS; i++) {
		int64_t sent = rgpu_now_ns();
		ssize_t n = ask_server(c, &ping, NULL, 0, why);

		if (n < 0)
			return n;
		rtt_add(rgpu_now_ns() - sent);
	}
	rgpu_addr_text(&c->server, text);
	snprintf(l.server, sizeof(l.server), "%.79s", text);
	memcpy(l.agent, c->welcome.agent, sizeof(l.agent));
	memcpy(l.driver, c->welcome.driver, sizeof(l.driver));
	snprintf(l.tls, sizeof(l.tls), "%s", rgpu_link_cipher(c->link));
	l.samples = rtt_percentiles(&l.rtt_p50, &l.rtt_p99);
	memcpy(buf, &l, sizeof(l));
	return sizeof(l);
}

ssize_t rgpu_ctl_telemetry(struct rgpu_ctl *c, const struct rgpu_telemetry_ask *ask, void *buf, size_t room,
			   char why[RGPU_WHY_MAX])
{
	ssize_t n = 0;

	pthread_mutex_lock(&c->lock);
	/* A connection from before may have died unnoticed: once more. */
	for (int tries = 0; tries < 2; tries++) {
		bool old = c->link != NULL;

		n = connected(c, why);
		if (n)
			break;
		if (!(c->welcome.features & RGPU_WIRE_TELEMETRY))
			n = rgpu_why(why, -EOPNOTSUPP, "the server (%.60s) is of a release without telemetry", c->welcome.agent);
		else if (ask->what == RGPU_TELEMETRY_LINK)
			n = describe_link(c, buf, room, why);
		else
			n = ask_server(c, ask, buf, room, why);
		if (n >= 0 || c->link || !old || !rgpu_ctl_retryable(n) || n == -ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&c->lock);
	return n;
}

int rgpu_ctl_fd(struct rgpu_ctl *c)
{
	return __atomic_load_n(&c->fd, __ATOMIC_RELAXED);
}

void rgpu_ctl_drop(struct rgpu_ctl *c)
{
	pthread_mutex_lock(&c->lock);
	drop(c);
	pthread_mutex_unlock(&c->lock);
}

void rgpu_ctl_forked(struct rgpu_ctl *c)
{
	int fd = rgpu_ctl_fd(c);

	if (fd >= 0)
		close(fd);
}
