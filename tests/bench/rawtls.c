/* SPDX-License-Identifier: MIT */
/*
 * The yardstick: what TLS 1.3 itself gives over loopback between two processes, with the cipher that rgpu uses on this
 * machine and nothing of rgpu's in it. Usage: rawtls [MIB [ROUNDS]]; prints "name value" lines: µs and GB/s.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SMALL 64 /* bytes of a ping: about what a small call is */
#define PINGS 2000
#define TRIES 5

static const unsigned char secret[32] = "a key for this benchmark alone";

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
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

static SSL *shake(int fd, int server)
{
	SSL_CTX *ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	int one = 1;
	SSL *ssl;

	if (!ctx || !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256"))
		fail("SSL_CTX");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, 128 << 10);
	if (server)
		SSL_CTX_set_psk_find_session_callback(ctx, find_session);
	else
		SSL_CTX_set_psk_use_session_callback(ctx, use_session);
	ssl = SSL_new(ctx);
	SSL_set_fd(ssl, fd);
	if ((server ? SSL_accept(ssl) : SSL_connect(ssl)) != 1)
		fail("TLS handshake");
	return ssl;
}

static void put(SSL *ssl, const void *buf, size_t n)
{
	size_t did;

	for (; n; n -= did, buf = (const char *)buf + did)
		if (!SSL_write_ex(ssl, buf, n, &did))
			fail("SSL_write");
}

static void get(SSL *ssl, void *buf, size_t n)
{
	size_t did;

	for (; n; n -= did, buf = (char *)buf + did)
		if (!SSL_read_ex(ssl, buf, n, &did))
			fail("SSL_read");
}

static void serve(int fd, char *buf, size_t bytes, int rounds)
{
	SSL *ssl = shake(fd, 1);

	for (int i = 0; i < PINGS * TRIES; i++) {
		get(ssl, buf, SMALL);
		put(ssl, buf, SMALL);
	}
	for (int r = 0; r < rounds; r++) {
		get(ssl, buf, bytes);
		put(ssl, buf, 1);
	}
	for (int r = 0; r < rounds; r++) {
		get(ssl, buf, 1);
		put(ssl, buf, bytes);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 256) << 20;
	int rounds = argc > 2 ? atoi(argv[2]) : 3, fd, status = 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	char *buf = malloc(bytes + SMALL);
	double best, t;
	SSL *ssl;

	if (!buf || bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len))
		fail("listen");
	memset(buf, 1, bytes + SMALL);
	if (!fork())
		serve(accept(listener, NULL, NULL), buf, bytes, rounds);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&at, len))
		fail("connect");
	ssl = shake(fd, 0);
	best = 1e9;
	for (int i = 0; i < TRIES; i++) {
		t = now();
		for (int p = 0; p < PINGS; p++) {
			put(ssl, buf, SMALL);
			get(ssl, buf, SMALL);
		}
		t = (now() - t) / PINGS;
		best = t < best ? t : best;
	}
	printf("tls_pingpong %.2f\n", best * 1e6);
	best = 1e9;
	for (int r = 0; r < rounds; r++) {
		t = now();
		put(ssl, buf, bytes);
		get(ssl, buf, 1);
		t = now() - t;
		best = t < best ? t : best;
	}
	printf("tls_up %.3f\n", bytes / best / 1e9);
	best = 1e9;
	for (int r = 0; r < rounds; r++) {
		t = now();
		put(ssl, buf, 1);
		get(ssl, buf, bytes);
		t = now() - t;
		best = t < best ? t : best;
	}
	printf("tls_down %.3f\n", bytes / best / 1e9);
	wait(&status);
	return !!status;
}
