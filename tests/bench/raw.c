// SPDX-License-Identifier: MIT
/* Raw TLS 1.3 for the benches: full-sized TLS records, as many per system call as pay, no frames, no threads. */
#include "tests/bench/raw.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PING	   64
#define READ_AHEAD (128 << 10)
#define GATHER	   (64 << 10) /* sent at once: measured to be faster than a system call for each TLS record */

enum { OP_PING, OP_UP, OP_DOWN };

/* Every request has the size of a ping. */
struct request {
	uint64_t op, bytes;
	uint8_t pad[PING - 16];
};

struct raw {
	SSL *ssl;
	uint8_t *buf;
	size_t room;
};

static const unsigned char secret[32] = "a key for this benchmark alone";

static void fail(const char *what)
{
	fprintf(stderr, "raw TLS: %s failed\n", what);
	exit(1);
}

static SSL_SESSION *session(SSL *ssl)
{
	static const unsigned char aes128gcm[] = {0x13, 0x01};
	SSL_SESSION *s = SSL_SESSION_new();

	if (!s || !SSL_SESSION_set1_master_key(s, secret, sizeof(secret)) ||
	    !SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, aes128gcm)) || !SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		fail("SSL_SESSION");
	return s;
}

static int find_session(SSL *ssl, const unsigned char *id, size_t len, SSL_SESSION **out)
{
	(void)id, (void)len;
	*out = session(ssl);
	return 1;
}

static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *len, SSL_SESSION **out)
{
	(void)md;
	*id = (const unsigned char *)"bench";
	*len = 5;
	*out = session(ssl);
	return 1;
}

static struct raw *shake(int fd, int server)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	BIO *sock = BIO_new_socket(fd, BIO_CLOSE), *gather = BIO_new(BIO_f_buffer());
	struct raw *r = calloc(1, sizeof(*r));
	int one = 1;

	if (!r || !sock || !gather || !ctx || !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256"))
		fail("SSL_CTX");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, READ_AHEAD);
	if (server)
		SSL_CTX_set_psk_find_session_callback(ctx, find_session);
	else
		SSL_CTX_set_psk_use_session_callback(ctx, use_session);
	r->ssl = SSL_new(ctx);
	SSL_CTX_free(ctx);
	BIO_set_write_buffer_size(gather, GATHER);
	BIO_up_ref(sock);
	SSL_set0_rbio(r->ssl, sock);
	SSL_set0_wbio(r->ssl, BIO_push(gather, sock));
	if ((server ? SSL_accept(r->ssl) : SSL_connect(r->ssl)) != 1)
		fail("the handshake");
	BIO_flush(SSL_get_wbio(r->ssl));
	return r;
}

static void put(struct raw *r, const void *buf, size_t n)
{
	size_t did;

	for (; n; n -= did, buf = (const char *)buf + did)
		if (!SSL_write_ex(r->ssl, buf, n, &did))
			fail("a write");
	if (BIO_flush(SSL_get_wbio(r->ssl)) != 1)
		fail("a write");
}

/* 0: the other side closed. */
static int get(struct raw *r, void *buf, size_t n)
{
	size_t did;

	for (; n; n -= did, buf = (char *)buf + did)
		if (!SSL_read_ex(r->ssl, buf, n, &did))
			return 0;
	return 1;
}

static void room(struct raw *r, size_t bytes)
{
	if (bytes <= r->room)
		return;
	free(r->buf);
	r->buf = malloc(bytes);
	if (!r->buf)
		fail("malloc");
	/* Not zeros: a page that was never written is another machine's measure. */
	for (size_t i = 0; i < bytes / 4; i++)
		((uint32_t *)r->buf)[i] = i * 2654435761u;
	r->room = bytes;
}

void raw_serve(int fd)
{
	struct raw *r = shake(fd, 1);
	struct request q;

	while (get(r, &q, sizeof(q))) {
		room(r, q.bytes);
		if (q.op == OP_UP && !get(r, r->buf, q.bytes))
			fail("a read");
		if (q.op == OP_DOWN)
			put(r, r->buf, q.bytes);
		else
			put(r, &q, PING);
	}
	raw_close(r);
}

struct raw *raw_open(int port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (void *)&at, sizeof(at)))
		fail("connect");
	return shake(fd, 0);
}

void raw_close(struct raw *r)
{
	SSL_free(r->ssl);
	free(r->buf);
	free(r);
}

static void ask(struct raw *r, uint64_t op, size_t bytes)
{
	struct request q = {.op = op, .bytes = bytes};

	room(r, bytes);
	put(r, &q, sizeof(q));
	if (op == OP_UP)
		put(r, r->buf, bytes);
	if (op == OP_DOWN ? !get(r, r->buf, bytes) : !get(r, &q, PING))
		fail("a read");
}

void raw_ping(struct raw *r)
{
	ask(r, OP_PING, 0);
}

void raw_up(struct raw *r, size_t bytes)
{
	ask(r, OP_UP, bytes);
}

void raw_down(struct raw *r, size_t bytes)
{
	ask(r, OP_DOWN, bytes);
}
