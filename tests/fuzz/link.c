// SPDX-License-Identifier: MIT
/* A link for fuzz targets, in place of lib/link.c: what comes in is the input, what goes out is dropped. No TLS, no socket. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "tests/fuzz/link.h"

struct rgpu_link {
	const uint8_t *data;
	size_t left, step;
	unsigned pause, pieces; /* 0: none; since the last */
	bool open;
	int fd; /* always readable */
};

struct rgpu_link *fuzz_link(const uint8_t *data, size_t size, size_t step, bool open)
{
	struct rgpu_link *l = malloc(sizeof(*l));

	*l = (struct rgpu_link){
		.data = data, .left = size, .step = step ? step : 1, .open = open, .fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
	return l;
}

void fuzz_link_pause(struct rgpu_link *l, unsigned pieces)
{
	l->pause = pieces;
	l->pieces = 0;
}

bool fuzz_link_left(const struct rgpu_link *l)
{
	return l->left;
}

void rgpu_link_free(struct rgpu_link *l)
{
	if (l)
		close(l->fd);
	free(l);
}

ssize_t rgpu_link_read(struct rgpu_link *l, void *buf, size_t len)
{
	size_t n = len < l->left ? len : l->left;

	if (!l->left)
		return l->open ? -EAGAIN : 0;
	if (l->pause && l->pieces == l->pause) {
		l->pieces = 0;
		return -EAGAIN;
	}
	l->pieces++;
	n = n < l->step ? n : l->step;
	memcpy(buf, l->data, n);
	l->data += n;
	l->left -= n;
	return n;
}

ssize_t rgpu_link_put(struct rgpu_link *l, const void *buf, size_t len)
{
	(void)l;
	/* Every byte that leaves is looked at, as TLS would. */
	for (size_t i = 0; i < len; i++)
		(void)((const volatile uint8_t *)buf)[i];
	return len;
}

ssize_t rgpu_link_write(struct rgpu_link *l, const void *buf, size_t len)
{
	return rgpu_link_put(l, buf, len);
}

int rgpu_link_flush(struct rgpu_link *l)
{
	(void)l;
	return 0;
}

int rgpu_link_fd(const struct rgpu_link *l)
{
	return l->fd;
}

short rgpu_link_events(const struct rgpu_link *l)
{
	(void)l;
	return POLLIN;
}

bool rgpu_link_buffered(const struct rgpu_link *l)
{
	return l->left > 0 && !(l->pause && l->pieces == l->pause);
}

const char *rgpu_link_identity(const struct rgpu_link *l)
{
	(void)l;
	return RGPU_PSK_IDENTITY "/0123abcd";
}

const char *rgpu_link_cipher(const struct rgpu_link *l)
{
	(void)l;
	return "none";
}

const char *rgpu_link_why(const struct rgpu_link *l)
{
	(void)l;
	return "the input has ended";
}

int rgpu_link_export(struct rgpu_link *l, const char *label, const void *ctx, size_t ctx_len, void *out, size_t out_len)
{
	(void)l;
	(void)label;
	(void)ctx;
	memset(out, (int)ctx_len, out_len);
	return 0;
}

/* No target connects or listens. */
struct rgpu_link *rgpu_link_client(int fd, const char *identity, const uint8_t key[RGPU_KEY_LEN])
{
	(void)fd;
	(void)identity;
	(void)key;
	abort();
}

struct rgpu_link *rgpu_link_server(int fd, rgpu_psk_find find, void *arg)
{
	(void)fd;
	(void)find;
	(void)arg;
	abort();
}

struct rgpu_link *rgpu_link_client_cert(int fd, const struct rgpu_cert *cert, const char *host)
{
	(void)fd;
	(void)cert;
	(void)host;
	abort();
}

struct rgpu_link *rgpu_link_plain(int fd)
{
	(void)fd;
	abort();
}

bool rgpu_link_is_plain(const struct rgpu_link *l)
{
	(void)l;
	return false;
}

const struct rgpu_cert_id *rgpu_link_cert_id(const struct rgpu_link *l)
{
	(void)l;
	return NULL;
}

int rgpu_link_handshake(struct rgpu_link *l)
{
	(void)l;
	abort();
}

int rgpu_link_handshake_wait(struct rgpu_link *l, int timeout_ms)
{
	(void)l;
	(void)timeout_ms;
	abort();
}
