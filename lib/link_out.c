// SPDX-License-Identifier: MIT
/* What a link sends: records gather in its out buffer, encrypted by OpenSSL, or plain where the kernel's TLS takes them. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <openssl/err.h>
#include "lib/ktls.h"
#include "lib/link_ctx.h"
#include "lib/link_int.h"

/*
 * Records are gathered here and leave with one send(2). A write is taken while less than OUT_FULL waits, so
 * there is always room for what one write makes of RGPU_TLS_RECORD bytes, and for handshake messages.
 */
#define OUT_FULL (OUT_SIZE - 2 * RGPU_TLS_RECORD)
#define OUT_SEND (128 << 10) /* so much is worth a send(2) */

/*
 * Some processors copy twenty times slower where the destination lies less than 64 bytes behind the source, counted within pages
 * ("rep movsb" of AMD's Zen 3, which the C library uses). So what is sent begins at a distance from OpenSSL's buffer, which grows
 * by a record's 22 bytes with each one.
 */
#define PAGE  4096
#define APART 256

/* What OpenSSL writes once the kernel has the keys: alerts. */
static int bio_write_record(BIO *b, struct rgpu_link *l, const char *buf, int len)
{
	ssize_t n = rgpu_link_flush(l);

	if (!n) {
		n = rgpu_ktls_send_record(l->fd, l->record_type, buf, len);
		if (n >= 0) {
			l->record_type = 0;
			return n;
		}
		n = -errno;
	}
	if (n == -EAGAIN || n == -EINTR)
		BIO_set_retry_write(b);
	else
		l->sock_err = -n;
	return -1;
}

int link_bio_write(BIO *b, const char *buf, int len)
{
	struct rgpu_link *l = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (l->record_type)
		return bio_write_record(b, l, buf, len);
	if (l->out_head == l->out_tail)
		l->out_head = l->out_tail = ((uintptr_t)buf - (uintptr_t)l->out + APART) % PAGE;
	if (l->out_head && (size_t)len > OUT_SIZE - l->out_tail) {
		memmove(l->out, l->out + l->out_head, l->out_tail - l->out_head);
		l->out_tail -= l->out_head;
		l->out_head = 0;
	}
	if ((size_t)len > OUT_SIZE - l->out_tail) {
		BIO_set_retry_write(b);
		return -1;
	}
	memcpy(l->out + l->out_tail, buf, len);
	l->out_tail += len;
	return len;
}

long link_bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	struct rgpu_link *l = BIO_get_data(b);

	switch (cmd) {
	case BIO_CTRL_EOF:
		return l && l->eof;
	case BIO_CTRL_FLUSH:
		return 1;
	case RGPU_BIO_SET_KTLS:
		/* What OpenSSL has encrypted must not be so twice. */
		l->ktls = num && !rgpu_link_flush(l) && rgpu_ktls_start(l->fd, ptr);
		return l->ktls;
	case BIO_CTRL_GET_KTLS_SEND:
		return l && l->ktls;
	case RGPU_BIO_SET_KTLS_TYPE:
	case RGPU_BIO_CLEAR_KTLS_TYPE:
		l->record_type = cmd == RGPU_BIO_SET_KTLS_TYPE ? num : 0;
		return 0;
	}
	return 0;
}

static int send_out(struct rgpu_link *l, int flags)
{
	while (l->out_head < l->out_tail) {
		ssize_t n = send(l->fd, l->out + l->out_head, l->out_tail - l->out_head, MSG_NOSIGNAL | flags);

		if (n >= 0) {
			l->out_head += n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return -EAGAIN;
		return link_broken(l, -errno, "the connection broke: %s", strerror(errno));
	}
	l->out_head = l->out_tail = 0;
	return 0;
}

int rgpu_link_flush(struct rgpu_link *l)
{
	return send_out(l, 0);
}

/* Where a record of RGPU_PLAIN_MAX bytes fits behind what waits, of which there is less than OUT_FULL. */
static uint8_t *tail_room(struct rgpu_link *l)
{
	if (OUT_SIZE - l->out_tail < RGPU_PLAIN_HEAD + RGPU_PLAIN_MAX) {
		memmove(l->out, l->out + l->out_head, l->out_tail - l->out_head);
		l->out_tail -= l->out_head;
		l->out_head = 0;
	}
	return l->out + l->out_tail;
}

/*
 * Bytes that the kernel encrypts. As much as makes a record goes straight from the caller; less gathers in the out buffer, since
 * each send(2) ends a record.
 */
static ssize_t ktls_put(struct rgpu_link *l, const void *buf, size_t len)
{
	int err = 0;

	l->stuck = false;
	if (len >= RGPU_TLS_RECORD || len > OUT_SIZE - l->out_tail)
		err = rgpu_link_flush(l);
	if (err)
		return err;
	if (len < RGPU_TLS_RECORD) {
		memcpy(l->out + l->out_tail, buf, len);
		l->out_tail += len;
		return len;
	}
	for (;;) {
		ssize_t n = send(l->fd, buf, len, MSG_NOSIGNAL);

		l->stuck = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
		if (n > 0)
			return n;
		if (l->stuck)
			return -EAGAIN;
		if (n < 0 && errno != EINTR)
			return link_broken(l, -errno, "the connection broke: %s", strerror(errno));
	}
}

ssize_t rgpu_link_put(struct rgpu_link *l, const void *buf, size_t len)
{
	size_t done = 0, n;
	int err;

	if (l->broken)
		return l->broken;
	while (done < len) {
		size_t part = len - done < RGPU_TLS_RECORD ? len - done : RGPU_TLS_RECORD;
		int ret;

		if (l->out_tail - l->out_head >= OUT_SEND) {
			/* More follows at once: the end of this need not be a packet of its own. */
			err = send_out(l, l->ktls ? 0 : MSG_MORE);
			if (err && err != -EAGAIN)
				return err;
			if (l->out_tail - l->out_head >= OUT_FULL)
				break;
		}
		if (l->ktls) {
			ssize_t put = ktls_put(l, (const uint8_t *)buf + done, len - done);

			if (put == -EAGAIN)
				break;
			if (put < 0)
				return put;
			done += put;
			continue;
		}
		if (l->plain) {
			uint8_t *at = tail_room(l);

			l->out_tail += rgpu_plain_seal(l->plain, (const uint8_t *)buf + done, part, at);
			done += part;
			continue;
		}
		ERR_clear_error();
		ret = SSL_write_ex(l->ssl, (const uint8_t *)buf + done, part, &n);
		if (ret != 1) {
			err = link_ssl_failed(l, ret);
			if (err == -EAGAIN)
				break;
			return err ? err : link_broken(l, -ECONNRESET, "the other side closed the connection");
		}
		done += n;
	}
	return done || !len ? (ssize_t)done : -EAGAIN;
}

ssize_t rgpu_link_write(struct rgpu_link *l, const void *buf, size_t len)
{
	ssize_t n = rgpu_link_put(l, buf, len);
	int err = n > 0 ? rgpu_link_flush(l) : 0;

	return err && err != -EAGAIN ? err : n;
}
