// SPDX-License-Identifier: MIT
/* Fuzz target: TLS handshakes (and links without TLS) that a stranger between the two ends changes: each end comes through
 * untouched, or says why not. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/key.h"
#include "lib/link.h"
#include "lib/plain.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/pki.h"

static const char identity[] = RGPU_PSK_IDENTITY "/0123abcd";
static const uint8_t secret[RGPU_KEY_LEN] = "thirty-two bytes of a secret key";

static bool find(void *arg, const char *name, uint8_t key[RGPU_KEY_LEN])
{
	(void)arg;
	memcpy(key, secret, RGPU_KEY_LEN);
	return !strcmp(name, identity);
}

/* The stranger: passes bytes on, and changes those that the input names: (way, offset, xor) by four bytes. */
struct stranger {
	const uint8_t *data;
	size_t size;
	size_t passed[2];
	bool changed;
	int fd[2];
};

static bool pass(struct stranger *s, int way)
{
	uint8_t buf[4096];
	ssize_t n = recv(s->fd[way], buf, sizeof(buf), MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	for (size_t i = 0; i + 4 <= s->size; i += 4) {
		size_t at = s->data[i + 1] | (s->data[i] >> 1) << 8;

		if ((s->data[i] & 1) != way || at < s->passed[way] || at >= s->passed[way] + n || !s->data[i + 2])
			continue;
		buf[at - s->passed[way]] ^= s->data[i + 2];
		s->changed = true;
	}
	s->passed[way] += n;
	return send(s->fd[!way], buf, n, MSG_DONTWAIT | MSG_NOSIGNAL) == n;
}

static void pair(int sv[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv))
		abort();
}

/* Bytes alone, as from somebody who never heard of TLS. */
static void raw(const uint8_t *data, size_t size, bool server, bool stays)
{
	struct rgpu_link *l;
	int sv[2];

	pair(sv);
	l = server ? rgpu_link_server(sv[0], find, NULL) : rgpu_link_client(sv[0], identity, secret);
	if (!l || send(sv[1], data, size < 60000 ? size : 60000, MSG_NOSIGNAL) < 0)
		abort();
	if (!stays)
		shutdown(sv[1], SHUT_WR);
	if (!rgpu_link_handshake_wait(l, stays ? 1 : 1000) || !*rgpu_link_why(l))
		abort(); /* nobody has the key */
	/* Broken is broken. */
	if (!rgpu_link_handshake(l) || rgpu_link_read(l, sv, sizeof(sv)) >= 0 || rgpu_link_write(l, sv, sizeof(sv)) >= 0 ||
	    !rgpu_link_export(l, "x", "y", 1, sv, sizeof(sv)))
		abort();
	rgpu_link_free(l);
	rgpu_link_free(NULL);
	close(sv[1]);
}

/* What comes through is what was sent, or the link breaks. */
static void talk(struct rgpu_link *from, struct rgpu_link *to, struct stranger *s, int way, uint8_t kind)
{
	static uint8_t sent[40000], got[40000];
	struct rgpu_frame h;
	size_t n = 0;
	ssize_t k;

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = i * 7 + kind;
	if (kind & 1)
		k = rgpu_link_send_frame(from, RGPU_C_STATS, 3, sent, 1000, 100);
	else
		k = kind & 2 ? rgpu_link_put(from, sent, sizeof(sent)) : rgpu_link_write(from, sent, 20000);
	if (k < 0)
		return;
	rgpu_link_flush(from);
	for (int i = 0; i < 40; i++) {
		if (!pass(s, way))
			break;
		rgpu_link_flush(from);
		if (kind & 1)
			continue;
		k = rgpu_link_read(to, got + n, sizeof(got) - n);
		if (k > 0)
			n += k;
	}
	if (kind & 1) {
		shutdown(s->fd[!way], SHUT_WR);
		k = rgpu_link_recv_frame(to, &h, got, kind & 4 ? 500 : sizeof(got), 100);
		n = k > 0 ? k : 0;
		if (k >= 0 && (h.type != RGPU_C_STATS || h.channel != 3 || h.len != n))
			abort();
	}
	if (memcmp(got, sent, n))
		abort();
}

/* Without TLS: bytes alone; or what was sealed, with those of its bytes changed that the input names: (offset, offset, xor). */
static void plain(const uint8_t *data, size_t size, bool sealed)
{
	static uint8_t sent[3000], wire[4000], got[70000];
	struct rgpu_plain *p = rgpu_plain_new();
	size_t n = 0, have = 0, part;
	struct rgpu_link *l;
	bool changed = false;
	ssize_t k;
	int sv[2];

	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = i * 11 >> 2;
	for (size_t i = 0; i < sizeof(sent) && sealed; i += part) {
		part = 1 + i % 700 < sizeof(sent) - i ? 1 + i % 700 : sizeof(sent) - i;
		n += rgpu_plain_seal(p, sent + i, part, wire + n);
	}
	n += sealed ? rgpu_plain_seal(p, NULL, 0, wire + n) : 0;
	rgpu_plain_free(p);
	for (size_t i = 0; i + 3 <= size && sealed; i += 3) {
		wire[(data[i] << 8 | data[i + 1]) % n] ^= data[i + 2];
		changed |= data[i + 2];
	}
	pair(sv);
	if (send(sv[1], sealed ? wire : data, sealed ? n : size < 60000 ? size : 60000, MSG_NOSIGNAL) < 0)
		abort();
	close(sv[1]);
	l = rgpu_link_plain(sv[0]);
	while ((k = rgpu_link_read(l, got + have, sizeof(got) - have < 500 ? sizeof(got) - have : 500)) > 0)
		have += k;
	/* A change that another undid is none. */
	if (sealed && (memcmp(got, sent, have) || (!changed && (k || have != sizeof(sent)))))
		abort();
	if (k < 0 && (!*rgpu_link_why(l) || rgpu_link_write(l, sv, sizeof(sv)) >= 0))
		abort();
	rgpu_link_free(l);
}

static void between(const uint8_t *data, size_t size, uint8_t kind)
{
	uint8_t key[RGPU_KEY_LEN], out[2][32];
	static struct rgpu_cert *server_cert, *client_cert;
	bool certs = kind & 0x10, good = certs || !(kind & 0xc0);
	struct stranger s = {.data = data, .size = size};
	struct rgpu_link *c, *v;
	int a[2], b[2], done_c = -EAGAIN, done_v = -EAGAIN;

	pair(a);
	pair(b);
	s.fd[0] = a[1];
	s.fd[1] = b[1];
	memcpy(key, secret, sizeof(key));
	key[0] ^= kind >> 7; /* the wrong one */
	if (!server_cert)
		pki_make(&server_cert, &client_cert);
	if (certs)
		c = rgpu_link_client_cert(a[0], client_cert, "127.0.0.1");
	else
		c = rgpu_link_client(a[0], kind & 0x40 ? "somebody" : identity, key);
	v = rgpu_link_server_cert(b[0], kind & 0x30 ? server_cert : NULL, find, NULL);
	if (!c || !v)
		abort();
	for (int i = 0; i < 12 && (done_c == -EAGAIN || done_v == -EAGAIN); i++) {
		if (done_c == -EAGAIN)
			done_c = rgpu_link_handshake(c);
		if (!pass(&s, 0))
			shutdown(s.fd[1], SHUT_WR);
		if (done_v == -EAGAIN)
			done_v = rgpu_link_handshake(v);
		if (!pass(&s, 1))
			shutdown(s.fd[0], SHUT_WR);
	}
	if (!done_v && (!good || strcmp(rgpu_link_identity(v), certs ? "fuzz" : identity) || !rgpu_link_cert_id(v) == certs))
		abort(); /* let in without the key */
	if ((!s.changed && good && (done_c || done_v)) || (done_c && done_c != -EAGAIN && !*rgpu_link_why(c)) ||
	    (done_v && done_v != -EAGAIN && !*rgpu_link_why(v)))
		abort();
	if (!done_c && !done_v) {
		if (rgpu_link_export(c, "x", "y", 1, out[0], 32) || rgpu_link_export(v, "x", "y", 1, out[1], 32) ||
		    memcmp(out[0], out[1], 32))
			abort();
		if (!*rgpu_link_cipher(c) || strcmp(rgpu_link_cipher(c), rgpu_link_cipher(v)) ||
		    rgpu_link_events(c) & ~(POLLIN | POLLOUT) || rgpu_link_buffered(v) || rgpu_link_fd(c) != a[0])
			abort();
		talk(kind & 8 ? v : c, kind & 8 ? c : v, &s, kind & 8 ? 1 : 0, kind);
	}
	rgpu_link_free(c);
	rgpu_link_free(v);
	close(a[1]);
	close(b[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (data[0] >= 56 && data[0] < 64)
		plain(data + 1, size - 1, data[0] & 1);
	else if (data[0] < 64)
		raw(data + 1, size - 1, data[0] & 1, data[0] & 2);
	else
		between(data + 2, size - 2, data[1]);
	return 0;
}
