// SPDX-License-Identifier: MIT
/*
 * Links: the right key, a wrong one, peers that are not TLS, exporters, and much data both ways at once. Run on the host, and in
 * guests, whose kernel has TLS: there it encrypts what is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/crc32c.h"
#include "lib/link_ctx.h"
#include "lib/plain.h"
#include "lib/link.h"
#include "tests/relay/tcp.h"
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

/* Both ends of a connection, which holds @room bytes on their way or what the kernel finds right, shaken. The results in *c_err
 * and s->err. */
static struct rgpu_link *pair_in(int room, const char *identity, const uint8_t *key, struct server *s, int *c_err)
{
	struct rgpu_link *c;
	pthread_t t;
	int fd[2];

	tcp_pair(fd);
	for (int i = 0; room && i < 2; i++)
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
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

static struct rgpu_link *pair(const char *identity, const uint8_t *key, struct server *s, int *c_err)
{
	return pair_in(0, identity, key, s, c_err);
}

static void good(void)
{
	bool kernel = !access("/sys/module/tls", F_OK);
	uint8_t a[32] = {1}, b[32] = {2}, ctx[20] = {3}, buf[64];
	struct rgpu_frame f;
	struct server s;
	struct rgpu_link *c;
	int err;

	c = pair("rgpu-pairing/1", good_key, &s, &err);
	is_int(err, 0, "good key: client %s", rgpu_link_why(c));
	is_int(s.err, 0, "good key: server %s", rgpu_link_why(s.link));
	is_str(rgpu_link_identity(s.link), "rgpu-pairing/1", "the server knows who it is");
	ok(kernel || !getenv("RGPU_VM"), "a guest's kernel has TLS");
	is_int(!!strstr(rgpu_link_cipher(c), "sent by the kernel"), kernel, "the kernel encrypts for the client if it can (%s)",
	       rgpu_link_cipher(c));
	is_str(rgpu_link_cipher(s.link), rgpu_link_cipher(c), "and for the server");
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

/* A client that is not ours: it has the right key, and would like to speak before the handshake, or to come back without it. */
static unsigned tickets;

static int new_ticket(SSL *ssl, SSL_SESSION *s)
{
	(void)ssl;
	(void)s;
	tickets++;
	return 0;
}

static int early_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	(void)md;
	*out = rgpu_link_psk(ssl, good_key);
	SSL_SESSION_set_max_early_data(*out, 1000);
	*id = (const unsigned char *)"rgpu-pairing/1";
	*id_len = strlen("rgpu-pairing/1");
	return 1;
}

static void early(void)
{
	static const char secret[] = "said too early";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	char buf[64];
	struct server s;
	SSL_SESSION *again;
	size_t n;
	SSL *ssl;
	pthread_t t;
	int fd[2];

	SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256");
	SSL_CTX_set_psk_use_session_callback(ctx, early_psk);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT);
	SSL_CTX_sess_set_new_cb(ctx, new_ticket);
	ssl = SSL_new(ctx);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	SSL_set_fd(ssl, fd[0]);
	is_int(SSL_write_early_data(ssl, secret, sizeof(secret), &n), 1, "a client speaks before the handshake");
	s.link = rgpu_link_server(fd[1], find, (void *)"rgpu-pairing/1");
	pthread_create(&t, NULL, handshake, &s);
	is_int(SSL_connect(ssl), 1, "… which it then makes");
	pthread_join(t, NULL);
	is_int(s.err, 0, "… with the right key");
	is_int(SSL_get_early_data_status(ssl), SSL_EARLY_DATA_REJECTED, "what it said early is refused");
	is_int(rgpu_link_read(s.link, buf, sizeof(buf)), -EAGAIN, "and nobody has read it");
	rgpu_link_write(s.link, "hello", 5);
	is_int(SSL_read(ssl, buf, sizeof(buf)), 5, "what is said now comes");
	is_int(SSL_write(ssl, "x", 1), 1, "both ways");
	is_int(rgpu_link_read(s.link, buf, sizeof(buf)), 1, "…");
	is_int(tickets, 0, "it got no ticket to come back with");
	again = SSL_get1_session(ssl);
	ok(!SSL_SESSION_has_ticket(again), "nor has its session one");
	SSL_SESSION_free(again);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd[0]);
	rgpu_link_free(s.link);
}

/* Passes on what there is from @from to @to, and keeps a copy. */
static size_t carry(int from, int to, uint8_t *copy, size_t room)
{
	ssize_t n = recv(from, copy, room, MSG_DONTWAIT);

	return n > 0 && send(to, copy, n, MSG_NOSIGNAL) == n ? n : 0;
}

/* All that a client said in a session is said again to the same server, in pieces of @piece: it gets nowhere. */
static void replayed(size_t piece)
{
	static uint8_t said[65536], other[65536];
	int a[2], b[2], c_err = -EAGAIN, s_err = -EAGAIN;
	struct rgpu_link *c, *s;
	struct rgpu_frame f;
	size_t n = 0;
	char buf[64];
	int err = -EAGAIN;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b))
		abort();
	c = rgpu_link_client(a[0], "rgpu-pairing/1", good_key);
	s = rgpu_link_server(b[0], find, (void *)"rgpu-pairing/1");
	for (int i = 0; i < 10 && (c_err || s_err); i++) {
		c_err = c_err ? rgpu_link_handshake(c) : 0;
		n += carry(a[1], b[1], said + n, sizeof(said) - n);
		s_err = s_err ? rgpu_link_handshake(s) : 0;
		carry(b[1], a[1], other, sizeof(other));
	}
	rgpu_link_send_frame(c, RGPU_C_HELLO, 7, "hello", 5, 1000);
	n += carry(a[1], b[1], said + n, sizeof(said) - n);
	is_int(rgpu_link_recv_frame(s, &f, buf, sizeof(buf), 1000), 5, "a session of %zu bytes is recorded", n);
	rgpu_link_free(c);
	rgpu_link_free(s);
	close(a[1]);
	close(b[1]);

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b))
		abort();
	s = rgpu_link_server(b[0], find, (void *)"rgpu-pairing/1");
	for (size_t at = 0; at < n && err == -EAGAIN; at += piece) {
		size_t len = n - at < piece ? n - at : piece;

		if (send(b[1], said + at, len, MSG_NOSIGNAL) != (ssize_t)len)
			break;
		err = rgpu_link_handshake(s);
		ok(rgpu_link_read(s, buf, sizeof(buf)) < 0, "nothing can be read of it") || (err = 1);
	}
	ok(err < 0 && err != -EAGAIN, "played again in pieces of %zu it is refused: %s", piece, rgpu_link_why(s));
	ok(rgpu_link_export(s, RGPU_DATA_LABEL, "", 0, buf, 32) < 0, "and nothing can be derived from it");
	rgpu_link_free(s);
	close(b[1]);
}

#define BIG (8u << 20)

static uint8_t pattern(size_t i, int seed)
{
	return (i * 2654435761u >> 13) + seed;
}

/* What is known of CRC-32C, and both ways to it. */
static void checksums(void)
{
	static uint8_t buf[300];
	bool same = true;

	is_int(rgpu_crc32c(0, "123456789", 9), 0xe3069283, "the check value of CRC-32C");
	is_int(rgpu_crc32c_table(0, "123456789", 9), 0xe3069283, "by the table, too");
	is_int(rgpu_crc32c(rgpu_crc32c(0, "1234", 4), "56789", 5), 0xe3069283, "and in parts");
	memset(buf, 0xff, 32);
	is_int(rgpu_crc32c(0, buf, 32), 0x62a8ab43, "of 32 bytes of ones (RFC 3720)");
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = i * 131 >> 3;
	for (size_t n = 0; n < 280; n++)
		same &= rgpu_crc32c(n, buf + n % 17, n) == rgpu_crc32c_table(n, buf + n % 17, n);
	ok(same, "both give the same for 280 lengths");
}

/* Every bit of a conversation, changed alone: nothing comes through but what was sent. */
static void flipped(void)
{
	uint8_t wire[600], buf[600], sent[400];
	unsigned bits = 0, taken = 0, wrong = 0;
	struct rgpu_plain *p = rgpu_plain_new();
	size_t n;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = pattern(i, 3);
	n = rgpu_plain_seal(p, sent, 150, wire);
	n += rgpu_plain_seal(p, sent + 150, 1, wire + n);
	n += rgpu_plain_seal(p, sent + 151, 249, wire + n);
	n += rgpu_plain_seal(p, NULL, 0, wire + n);
	rgpu_plain_free(p);
	for (size_t bit = 0; bit <= 8 * n; bit++) {
		struct rgpu_link *l;
		size_t got = 0;
		ssize_t r;
		int fd[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
			abort();
		memcpy(buf, wire, n);
		if (bit < 8 * n)
			buf[bit / 8] ^= 1 << bit % 8;
		if (write(fd[1], buf, n) != (ssize_t)n)
			abort();
		close(fd[1]);
		l = rgpu_link_plain(fd[0]);
		while ((r = rgpu_link_read(l, buf + got, 100)) > 0)
			got += r;
		wrong += memcmp(buf, sent, got) != 0;
		bits += r == -EBADMSG || r == -ECONNRESET;
		taken += !r && got == 400;
		rgpu_link_free(l);
	}
	is_int(wrong, 0, "no changed byte is ever given out");
	is_int(bits, 8 * n, "each of %zu bits, changed alone, breaks the link", 8 * n);
	is_int(taken, 1, "and unchanged all comes, to its clean end");
}

/* Records in another order, or twice: a stream has its numbers in the sums. */
static void reordered(void)
{
	struct rgpu_plain *p = rgpu_plain_new(), *q = rgpu_plain_new();
	uint8_t a[64], b[64], buf[64], *at;
	size_t room, n = rgpu_plain_seal(p, "first", 5, a), m = rgpu_plain_seal(p, "other", 5, b);

	at = rgpu_plain_room(q, &room);
	memcpy(at, b, m);
	rgpu_plain_came(q, m);
	is_int(rgpu_plain_take(q, buf, 64), -EBADMSG, "the second record first");
	rgpu_plain_free(q);
	q = rgpu_plain_new();
	at = rgpu_plain_room(q, &room);
	memcpy(at, a, n);
	memcpy(at + n, a, n);
	rgpu_plain_came(q, 2 * n);
	is_int(rgpu_plain_take(q, buf, 64), 5, "the first record");
	is_int(rgpu_plain_take(q, buf, 64), -EBADMSG, "twice");
	rgpu_plain_free(p);
	rgpu_plain_free(q);
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

static void big(int room)
{
	struct server s;
	struct rgpu_link *c;
	uint8_t buf[8];
	pthread_t t;
	void *res;
	int err;

	c = pair_in(room, "rgpu-pairing/1", good_key, &s, &err);
	pthread_create(&t, NULL, big_thread, s.link);
	ok(both_ways(c, 0), "8 MiB both ways, room for %d: the client's end", room);
	pthread_join(t, &res);
	ok(res != NULL, "8 MiB both ways: the server's end");
	rgpu_link_free(c);
	is_int(rgpu_link_read(s.link, buf, sizeof(buf)), 0, "a clean end");
	rgpu_link_free(s.link);
}

static void plain(void)
{
	struct rgpu_link *c, *s;
	struct rgpu_frame f;
	uint8_t buf[64];
	pthread_t t;
	void *res;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		abort();
	c = rgpu_link_plain(fd[0]);
	s = rgpu_link_plain(fd[1]);
	is_int(rgpu_link_handshake_wait(c, 1000), 0, "a plain link needs no handshake");
	ok(rgpu_link_is_plain(c) && !strcmp(rgpu_link_cipher(c), "none, CRC-32C"), "and says what it is");
	ok(rgpu_link_export(c, RGPU_DATA_LABEL, "", 0, buf, 32) < 0, "no key comes of it");
	is_int(rgpu_link_send_frame(c, RGPU_C_HELLO, 7, "hello", 5, 1000), 0, "a frame goes");
	is_int(rgpu_link_recv_frame(s, &f, buf, sizeof(buf), 1000), 5, "… and comes");
	is_int(rgpu_link_recv_frame(s, &f, buf, sizeof(buf), 10), -ETIMEDOUT, "no frame: a timeout");
	pthread_create(&t, NULL, big_thread, s);
	ok(both_ways(c, 0), "8 MiB both ways in the clear: the client's end");
	pthread_join(t, &res);
	ok(res != NULL, "8 MiB both ways in the clear: the server's end");
	rgpu_link_free(c);
	is_int(rgpu_link_read(s, buf, sizeof(buf)), 0, "a clean end");
	rgpu_link_free(s);
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
	early();
	replayed(65536);
	replayed(100);
	checksums();
	flipped();
	reordered();
	plain();
	big(0);
	/* Less than a record: most sends take a part. */
	big(8 << 10);
	return tap_done();
}
