// SPDX-License-Identifier: MIT
/* A control connection after its handshake: requests, one after the other, until the client leaves. */
#include <errno.h>
#include <stdarg.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "lib/text.h"
#include "server/control.h"

#define HELLO_MS   10000
#define FRAME_MS   10000 /* for the rest of a frame that has begun, and for an answer to leave */
#define STACK_SIZE (256 << 10)

struct control {
	struct control *next;
	struct control_server *server;
	struct asker asker;
	bool greeted;
	uint8_t buf[sizeof(struct rgpu_start) + RGPU_CONTROL_MAX];
};

static int say(struct control *c, uint16_t type, const void *buf, size_t len)
{
	return rgpu_link_send_frame(c->asker.link, type, 0, buf, len, FRAME_MS);
}

static int refuse(struct control *c, int err, const char *text)
{
	struct rgpu_error_frame e = {.err = err < 0 ? -err : err};

	snprintf(e.text, sizeof(e.text), "%s", text);
	return say(c, RGPU_C_ERROR, &e, sizeof(e));
}

/* The answer to a wrong frame; then the connection ends. */
__attribute__((format(printf, 2, 3))) static int reject(struct control *c, const char *fmt, ...)
{
	char text[252];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rgpu_note("a client with %s %s was refused: %s", registry_proof(c->asker.proof), c->asker.key_id, text);
	refuse(c, EPROTO, text);
	return -EPROTO;
}

static int hello(struct control *c, uint32_t len)
{
	const struct devices *d = c->server->registry->devices;
	struct rgpu_hello h;
	struct rgpu_welcome w = {
		.magic = RGPU_MAGIC,
		.major = RGPU_WIRE_MAJOR,
		.minor = RGPU_WIRE_MINOR,
		.features = RGPU_WIRE_TELEMETRY,
		.agent = "rgpu-server " RGPU_VERSION,
		.driver_version = d->driver_version,
		.ndevices = d->n,
	};

	if (len != sizeof(h))
		return reject(c, "a HELLO of %u bytes; use a client of the server's version, %s", len, w.agent);
	memcpy(&h, c->buf, sizeof(h));
	text_printable(h.agent, sizeof(h.agent));
	if (h.magic != RGPU_MAGIC)
		return reject(c, "this is no rgpu client");
	if (h.major != RGPU_WIRE_MAJOR)
		return reject(c,
			      "versions differ: the client (%s) speaks wire %u.%u, the server (%s) %u.%u; install the same "
			      "release on both sides",
			      h.agent, h.major, h.minor, w.agent, w.major, w.minor);
	memcpy(w.server, c->server->name, sizeof(w.server));
	memcpy(w.driver, d->driver, sizeof(w.driver));
	c->greeted = true;
	rgpu_info("client \"%s\" with %s %s, wire %u.%u", h.agent, registry_proof(c->asker.proof), c->asker.key_id, h.major,
		  h.minor);
	return say(c, RGPU_C_WELCOME, &w, sizeof(w));
}

static int start(struct control *c, uint32_t len, bool resume)
{
	char why[RGPU_WHY_MAX];
	struct rgpu_started out;
	struct rgpu_start st;
	int err;

	if (len < sizeof(st))
		return reject(c, "a START of %u bytes; use a client of the server's version", len);
	memcpy(&st, c->buf, sizeof(st));
	if (st.data_len != len - sizeof(st))
		return reject(c, "a START whose length does not fit; use a client of the server's version");
	if (st.flags & ~RGPU_START_DIRECT)
		return reject(c, "a START with unknown flags %#x; use a client of the server's version", st.flags);
	err = registry_start(c->server->registry, &c->asker, &st, c->buf + sizeof(st), resume, &out, why);
	return err ? refuse(c, err, why) : say(c, RGPU_C_STARTED, &out, sizeof(out));
}

static int join_or_end(struct control *c, uint32_t len, bool end)
{
	char why[RGPU_WHY_MAX];
	struct rgpu_join j;
	int err;

	if (len != sizeof(j))
		return reject(c, "a JOIN or END of %u bytes; use a client of the server's version", len);
	memcpy(&j, c->buf, sizeof(j));
	err = end ? registry_end(c->server->registry, &c->asker, j.sid, why)
		  : registry_join(c->server->registry, &c->asker, &j, why);
	return err ? refuse(c, err, why) : say(c, RGPU_C_OK, NULL, 0);
}

static int stats(struct control *c)
{
	uint8_t *buf = NULL;
	ssize_t n = registry_stats(c->server->registry, &c->asker, &buf);
	int err = n < 0 ? refuse(c, n, "the server is out of memory") : say(c, RGPU_C_STATS_LIST, buf, n);

	free(buf);
	return err;
}

static int telemetry(struct control *c, uint32_t len)
{
	struct rgpu_telemetry_ask ask;
	uint8_t *buf = NULL;
	ssize_t n;
	int err;

	if (len != sizeof(ask))
		return reject(c, "a TELEMETRY of %u bytes; use a client of the server's version", len);
	memcpy(&ask, c->buf, sizeof(ask));
	n = registry_telemetry(c->server->registry, &c->asker, &ask, &buf);
	if (n == -ENODEV)
		err = refuse(c, n, "the server has no such device");
	else if (n == -EINVAL)
		err = refuse(c, n, "this server does not know such a question");
	else
		err = n < 0 ? refuse(c, n, "the server is out of memory") : say(c, RGPU_C_TELEMETRY_LIST, buf, n);
	free(buf);
	return err;
}

/* The devices, of the size that this client may use. */
static int device_list(struct control *c)
{
	const struct devices *d = c->server->registry->devices;
	const struct server_opts *o = c->server->registry->opts;
	struct client_limits limits = client_limits_of(o->client, o->nclients, c->asker.key_id);
	uint8_t *list = malloc(d->len);
	int err;

	if (!list)
		return refuse(c, ENOMEM, "the server is out of memory");
	memcpy(list, d->list, d->len);
	client_limits_devices(list, d->len, &limits);
	err = say(c, RGPU_C_DEVICE_LIST, list, d->len);
	free(list);
	return err;
}

static int request(struct control *c, const struct rgpu_frame *h)
{
	if (!c->greeted && h->type != RGPU_C_HELLO)
		return reject(c, "the first frame was %u, not HELLO", h->type);
	switch (h->type) {
	case RGPU_C_HELLO:
		return hello(c, h->len);
	case RGPU_C_DEVICES:
		return device_list(c);
	case RGPU_C_START:
		return start(c, h->len, false);
	case RGPU_C_RESUME:
		return start(c, h->len, true);
	case RGPU_C_JOIN:
		return join_or_end(c, h->len, false);
	case RGPU_C_END:
		return join_or_end(c, h->len, true);
	case RGPU_C_STATS:
		return stats(c);
	case RGPU_C_TELEMETRY:
		return telemetry(c, h->len);
	}
	return reject(c, "a request of unknown type %u; use a client of the server's version", h->type);
}

/* Blocks without a limit until a frame begins; a dead peer is found by the socket's keep-alive. */
static bool wait_for_frame(struct control *c, int timeout_ms)
{
	struct pollfd p = {.fd = rgpu_link_fd(c->asker.link), .events = POLLIN};

	if (rgpu_link_buffered(c->asker.link))
		return true;
	for (;;) {
		int n = poll(&p, 1, timeout_ms);

		if (n >= 0 || errno != EINTR)
			return n > 0;
	}
}

/* false: its client has enough of them. */
static bool join_list(struct control *c)
{
	struct control_server *server = c->server;
	unsigned same = 0;

	pthread_mutex_lock(&server->lock);
	for (const struct control *o = server->list; o; o = o->next)
		same += !strcmp(o->asker.key_id, c->asker.key_id);
	if (same < CONTROL_CLIENT_MAX) {
		c->next = server->list;
		server->list = c;
	}
	pthread_mutex_unlock(&server->lock);
	return same < CONTROL_CLIENT_MAX;
}

static void leave(struct control *c)
{
	struct control_server *server = c->server;
	struct control **at = &server->list;

	pthread_mutex_lock(&server->lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pthread_mutex_unlock(&server->lock);
	rgpu_link_free(c->asker.link);
	free(c);
	server->threads--;
}

static void *control_main(void *arg)
{
	struct control *c = arg;
	struct rgpu_frame h;

	while (wait_for_frame(c, c->greeted ? -1 : HELLO_MS)) {
		ssize_t n = rgpu_link_recv_frame(c->asker.link, &h, c->buf, sizeof(c->buf), FRAME_MS);

		if (n == -EMSGSIZE)
			reject(c, "a request of %u bytes; at most %zu are taken", h.len, sizeof(c->buf));
		if (n < 0 || request(c, &h))
			break;
	}
	leave(c);
	return NULL;
}

int control_begin(struct control_server *server, struct rgpu_link *link, const char *client, const char *from)
{
	const struct rgpu_cert_id *cert = rgpu_link_cert_id(link);
	struct control *c = calloc(1, sizeof(*c));
	pthread_attr_t attr;
	pthread_t t;
	int err;

	if (!c || server->threads >= CONTROL_THREADS_MAX) {
		free(c);
		rgpu_link_free(link);
		return -EAGAIN;
	}
	c->server = server;
	c->asker.link = link;
	snprintf(c->asker.key_id, sizeof(c->asker.key_id), "%s", client);
	if (cert)
		c->asker.cert = *cert;
	c->asker.proof = cert ? PROOF_CERT : rgpu_link_is_plain(link) ? PROOF_NONE : PROOF_KEY;
	snprintf(c->asker.from, sizeof(c->asker.from), "%s", from);
	if (!join_list(c)) {
		free(c);
		rgpu_link_free(link);
		return -EAGAIN;
	}
	server->threads++;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&t, &attr, control_main, c);
	pthread_attr_destroy(&attr);
	if (!err)
		return 0;
	leave(c);
	return -EAGAIN;
}
