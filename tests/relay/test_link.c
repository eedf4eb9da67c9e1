// SPDX-License-Identifier: MIT
/* Links: the right key, a wrong one, peers that are not TLS, exporters, and much data both ways at once. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/link.h"
#include "tests/tap.h"

static const uint8_t good_key[RGPU_KEY_LEN] = "the right key, of 32 bytes, yes";
static const uint8_t bad_key[RGPU_KEY_LEN] = "another key, of 32 bytes, as wel";

static bool find(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN])
{
	if (strcmp(identity, arg))
		return false;
	memcpy(key, good_key, RGPU_KEY_LEN);
	return true;
}

struct server {
	struct rgpu_link *link;
	int err;
};

static void *handshake(void *arg)
{
	struct server *s = arg;

	s->err = rgpu_link_handshake_wait(s->link, 5000);
	return NULL;
}

/* Both ends over a socket pair, shaken. The results in *c_err and s->err. */
static struct rgpu_link *pair(const char *identity, const uint8_t *key, struct server *s, int *c_err)
{
	struct rgpu_link *c;
	pthread_t t;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	c = rgpu_link_client(fd[0], identity, key);
	s->link = rgpu_link_server(fd[1], find, (void *)"rgpu-pairing/1");
	pthread_create(&t, NULL, handshake, s);
	*c_err = rgpu_link_handshake_wait(c, 5000);
	pthread_join(t, NULL);
	/* In TLS 1.3 a client may be done before the server has judged its key: the judgement comes as an alert. */
	if (!*c_err && s->err) {
		struct rgpu_frame f;

		*c_err = rgpu_link_recv_frame(c, &f, NULL, 0, 5000);
	}
	return c;
}

static void good(void)
{
	uint8_t a[32] = {1}, b[32] = {2}, ctx[20] = {3}, buf[64];
	struct rgpu_frame f;
	struct server s;
	struct rgpu_link *c;
	int err;

	c = pair("rgpu-pairing/1", good_key, &s, &err);
	is_int(err, 0, "good key: client %s", rgpu_link_why(c));
	is_int(s.err, 0, "good key: server %s", rgpu_link_why(s.link));
	is_str(rgpu_link_identity(s.link), "rgpu-pairing/1", "the server knows who it is");
	is_int(rgpu_link_export(c, RGPU_DATA_LABEL, ctx, 20, a, 32), 0, "client exports");
	is_int(rgpu_link_export(s.link, RGPU_DATA_LABEL, ctx, 20, b, 32), 0, "server exports");
	ok(!memcmp(a, b, 32), "the same key at both ends");
	ctx[19] = 1;
	rgpu_link_export(s.link, RGPU_DATA_LABEL, ctx, 20, b, 32);
	ok(memcmp(a, b, 32) != 0, "another lease, another key");

	is_int(rgpu_link_send_frame(c, RGPU_C_HELLO, 7, "hello", 5, 1000), 0, "a frame goes");
	is_int(rgpu_link_recv_frame(s.link, &f, buf, sizeof(buf), 1000), 5, "… and comes");
	ok(f.type == RGPU_C_HELLO && f.channel == 7 && !memcmp(buf, "hello", 5), "… whole");
	is_int(rgpu_link_recv_frame(s.link, &f, buf, sizeof(buf), 10), -ETIMEDOUT, "no frame: a timeout");
	rgpu_link_send_frame(c, RGPU_C_HELLO, 0, buf, 64, 1000);
	is_int(rgpu_link_recv_frame(s.link, &f, buf, 63, 1000), -EMSGSIZE, "a frame larger than the room");
	rgpu_link_free(c);
	is_int(rgpu_link_read(s.link, buf, sizeof(buf)) > 0, 1, "what was sent before the end arrives");
	is_int(rgpu_link_read(s.link, buf, sizeof(buf)), 0, "then a clean end");
	rgpu_link_free(s.link);
}

static void refused(const char *what, const char *identity, const uint8_t *key)
{
	struct server s;
	struct rgpu_link *c;
	int err;

	c = pair(identity, key, &s, &err);
	is_int(err, -EACCES, "%s: client: %s", what, rgpu_link_why(c));
	is_int(s.err, -EACCES, "%s: server: %s", what, rgpu_link_why(s.link));
	is_int(rgpu_link_write(s.link, "x", 1), -EACCES, "%s: the link stays closed", what);
	rgpu_link_free(c);
	rgpu_link_free(s.link);
}

/* The peer sends @text and, when @end, closes. */
static void stranger(const char *what, bool server, const char *text, bool end, int want)
{
	struct rgpu_link *l;
	int fd[2], err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	l = server ? rgpu_link_server(fd[0], find, (void *)"x") : rgpu_link_client(fd[0], "x", good_key);
	if (*text)
		ok(write(fd[1], text, strlen(text)) == (ssize_t)strlen(text), "%s: writes", what);
	if (end)
		shutdown(fd[1], SHUT_WR);
	err = rgpu_link_handshake_wait(l, end || *text ? 5000 : 20);
	is_int(err, want, "%s: %s", what, rgpu_link_why(l));
	ok(rgpu_link_why(l)[0] != 0, "%s: says why", what);
	rgpu_link_free(l);
	close(fd[1]);
}

#define BIG (24u << 20)

static uint8_t pattern(size_t i, int seed)
{
	return (i * 2654435761u >> 13) + seed;
}

/* Writes BIG bytes of one pattern and reads as many of another at the same time, in awkward sizes. */
static bool both_ways(struct rgpu_link *l, int seed)
{
	static const size_t sizes[] = {1, 40, 16384, 16385, 100000, 262144, 7};
	uint8_t *out = malloc(262144), *in = malloc(262144);
	size_t wrote = 0, got = 0, k = 0;
	bool good = true;

	while ((wrote < BIG || got < BIG || rgpu_link_events(l) & POLLOUT) && good) {
		size_t n = sizes[k++ % 7];
		bool blocked = true;
		ssize_t r;

		if (n > BIG - wrote)
			n = BIG - wrote;
		for (size_t i = 0; i < n; i++)
			out[i] = pattern(wrote + i, seed);
		r = n ? rgpu_link_write(l, out, n) : rgpu_link_flush(l);
		if (r > 0)
			wrote += r, blocked = false;
		else if (r && r != -EAGAIN)
			good = false;
		r = got < BIG ? rgpu_link_read(l, in, sizes[(k + 3) % 7]) : -EAGAIN;
		for (ssize_t i = 0; i < r; i++)
			good &= in[i] == pattern(got + i, !seed);
		if (r > 0)
			got += r, blocked = false;
		else if (r != -EAGAIN)
			good = false;
		if (blocked && good) {
			struct pollfd p = {.fd = rgpu_link_fd(l), .events = rgpu_link_events(l)};

			if (wrote < BIG)
				p.events |= POLLOUT;
			poll(&p, 1, 5000);
		}
	}
	free(out);
	free(in);
	return good && wrote == BIG && got == BIG;
}

static void *big_thread(void *arg)
{
	return (void *)(uintptr_t)both_ways(arg, 1);
}

static void big(void)
{
	struct server s;
	struct rgpu_link *c;
	pthread_t t;
	void *res;
	int err;

	c = pair("rgpu-pairing/1", good_key, &s, &err);
	pthread_create(&t, NULL, big_thread, s.link);
	ok(both_ways(c, 0), "24 MiB both ways: the client's end");
	pthread_join(t, &res);
	ok(res != NULL, "24 MiB both ways: the server's end");
	rgpu_link_free(c);
	rgpu_link_free(s.link);
}

int main(void)
{
	good();
	refused("wrong key", "rgpu-pairing/1", bad_key);
	refused("unknown name", "rgpu-pairing/2", good_key);
	stranger("an HTTP client at our server", true, "GET / HTTP/1.1\r\n\r\n", false, -EPROTO);
	stranger("an SSH server before our client", false, "SSH-2.0-OpenSSH_9.2\r\n", false, -EPROTO);
	stranger("a peer that closes at once", false, "", true, -ECONNRESET);
	stranger("a client that closes at once", true, "", true, -ECONNRESET);
	stranger("a peer that says nothing", false, "", false, -ETIMEDOUT);
	big();
	return tap_done();
}
