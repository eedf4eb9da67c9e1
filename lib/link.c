// SPDX-License-Identifier: MIT
/* A TLS 1.3 connection, proven by a pre-shared key or by certificates, or a plain one: handshake, and what comes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include "lib/clock.h"
#include "lib/link_ctx.h"
#include "lib/link_int.h"

int link_broken(struct rgpu_link *l, int err, const char *fmt, ...)
{
	va_list ap;

	l->broken = err;
	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	return err;
}

/* The socket as OpenSSL sees it: reads come from it, writes go into the out buffer. */
static int bio_read(BIO *b, char *buf, int len)
{
	struct rgpu_link *l = BIO_get_data(b);
	ssize_t n;

	BIO_clear_retry_flags(b);
	do
		n = recv(l->fd, buf, len, 0);
	while (n < 0 && errno == EINTR);
	l->full = n == len;
	if (n >= 0) {
		l->eof |= n == 0 && len;
		return n;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		BIO_set_retry_read(b);
	else
		l->sock_err = errno;
	return -1;
}

static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *method;
	BIO_METHOD *m = __atomic_load_n(&method, __ATOMIC_ACQUIRE), *none = NULL;

	if (m)
		return m;
	m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rgpu link");
	if (!m)
		return NULL;
	BIO_meth_set_read(m, bio_read);
	BIO_meth_set_write(m, link_bio_write);
	BIO_meth_set_ctrl(m, link_bio_ctrl);
	if (!__atomic_compare_exchange_n(&method, &none, m, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		BIO_meth_free(m);
		m = none;
	}
	return m;
}

static int client_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
	struct rgpu_link *l = SSL_get_app_data(ssl);

	*out = NULL;
	if (md && !EVP_MD_is_a(md, "SHA256"))
		return 1; /* the server asked for a hash we never offer: go on without a key, which fails */
	*out = rgpu_link_psk(ssl, l->key);
	if (!*out)
		return 0;
	*id = (const unsigned char *)l->identity;
	*id_len = strlen(l->identity);
	return 1;
}

static int server_psk(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
	struct rgpu_link *l = SSL_get_app_data(ssl);
	uint8_t key[RGPU_KEY_LEN];

	*out = NULL;
	/* An unknown name gets a random key: a stranger cannot tell a wrong name from a wrong key. */
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return 0;
	if (id_len && id_len < sizeof(l->identity) && !memchr(id, 0, id_len)) {
		memcpy(l->identity, id, id_len);
		l->identity[id_len] = 0;
		if (!l->find(l->find_arg, l->identity, key) && getrandom(key, sizeof(key), 0) != sizeof(key))
			return 0;
	}
	*out = rgpu_link_psk(ssl, key);
	OPENSSL_cleanse(key, sizeof(key));
	return *out != NULL;
}

static int verify(int good, X509_STORE_CTX *s)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(s, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct rgpu_link *l = SSL_get_app_data(ssl);

	return rgpu_cert_judge(good, s, l->server, l->host ? l->host : "", l->why, sizeof(l->why));
}

static struct rgpu_link *bare_new(int fd, bool server)
{
	int flags = fcntl(fd, F_GETFL);
	struct rgpu_link *l;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->fd = -1; /* the caller's until we cannot fail any more */
	l->server = server;
	l->out = malloc(OUT_SIZE);
	if (l->out)
		return l;
	free(l);
	return NULL;
}

struct rgpu_link *rgpu_link_plain(int fd)
{
	struct rgpu_link *l = bare_new(fd, false);

	if (!l)
		return NULL;
	l->plain = rgpu_plain_new();
	if (!l->plain) {
		rgpu_link_free(l);
		return NULL;
	}
	l->fd = fd;
	l->ready = true;
	return l;
}

static struct rgpu_link *link_new(int fd, bool server, const struct rgpu_cert *cert)
{
	SSL_CTX *ctx = cert ? rgpu_cert_ctx(cert) : rgpu_link_ctx(server);
	BIO_METHOD *method = bio_method();
	struct rgpu_link *l = ctx && method ? bare_new(fd, server) : NULL;
	BIO *bio;

	if (!l)
		return NULL;
	l->ssl = SSL_new(ctx);
	bio = BIO_new(method);
	if (!l->ssl || !bio) {
		BIO_free(bio);
		rgpu_link_free(l);
		return NULL;
	}
	l->fd = fd;
	BIO_set_data(bio, l);
	BIO_set_init(bio, 1);
	SSL_set_bio(l->ssl, bio, bio);
	SSL_set_app_data(l->ssl, l);
	l->certs = cert;
	if (cert)
		SSL_set_verify(l->ssl, SSL_get_verify_mode(l->ssl), verify);
	return l;
}

struct rgpu_link *rgpu_link_client(int fd, const char *identity, const uint8_t key[RGPU_KEY_LEN])
{
	struct rgpu_link *l = link_new(fd, false, NULL);

	if (!l)
		return NULL;
	memcpy(l->key, key, RGPU_KEY_LEN);
	snprintf(l->identity, sizeof(l->identity), "%s", identity);
	SSL_set_psk_use_session_callback(l->ssl, client_psk);
	SSL_set_connect_state(l->ssl);
	return l;
}

struct rgpu_link *rgpu_link_client_cert(int fd, const struct rgpu_cert *cert, const char *host)
{
	struct rgpu_link *l = link_new(fd, false, cert);

	if (!l)
		return NULL;
	snprintf(l->identity, sizeof(l->identity), "%s", rgpu_cert_name(cert));
	l->host = strdup(host);
	if (!l->host || !rgpu_cert_expect(l->ssl, host)) {
		l->fd = -1; /* the caller's still */
		rgpu_link_free(l);
		return NULL;
	}
	SSL_set_connect_state(l->ssl);
	return l;
}

struct rgpu_link *rgpu_link_server(int fd, rgpu_psk_find find, void *arg)
{
	return rgpu_link_server_cert(fd, NULL, find, arg);
}

struct rgpu_link *rgpu_link_server_cert(int fd, const struct rgpu_cert *cert, rgpu_psk_find find, void *arg)
{
	struct rgpu_link *l = link_new(fd, true, cert);

	if (!l)
		return NULL;
	l->find = find;
	l->find_arg = arg;
	SSL_set_psk_find_session_callback(l->ssl, server_psk);
	SSL_set_accept_state(l->ssl);
	return l;
}

void rgpu_link_free(struct rgpu_link *l)
{
	if (!l)
		return;
	if (l->ready && !l->broken) {
		ERR_clear_error();
		if (l->plain && l->out_tail + RGPU_PLAIN_HEAD <= OUT_SIZE)
			l->out_tail += rgpu_plain_seal(l->plain, NULL, 0, l->out + l->out_tail);
		else if (l->ssl)
			SSL_shutdown(l->ssl);
		rgpu_link_flush(l);
	}
	SSL_free(l->ssl);
	rgpu_plain_free(l->plain);
	if (l->fd >= 0)
		close(l->fd);
	OPENSSL_cleanse(l->key, sizeof(l->key));
	free(l->host);
	free(l->out);
	free(l);
}

int link_ssl_failed(struct rgpu_link *l, int ret)
{
	int how = SSL_get_error(l->ssl, ret), reason;
	unsigned long e;

	if (how == SSL_ERROR_WANT_READ || how == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (how == SSL_ERROR_ZERO_RETURN)
		return 0;
	if (l->sock_err)
		return link_broken(l, -l->sock_err, "the connection broke: %s", strerror(l->sock_err));
	e = ERR_peek_last_error();
	reason = ERR_GET_REASON(e);
	/* A client's handshake is over before the server has looked at its certificate: the verdict is the first thing that it
	 * reads. */
	if (l->certs && (!l->ready || !l->server)) {
		const char *told = rgpu_cert_told(l->server, reason);

		l->told = l->server &&
			  (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE || reason == SSL_R_CERTIFICATE_VERIFY_FAILED);
		if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && *l->why)
			return l->broken = -EACCES;
		if (told)
			return link_broken(l, -EACCES, "%s", told);
	}
	if (l->eof)
		return link_broken(
			l, -ECONNRESET,
			l->ready ? "the other side closed the connection without a word"
				 : "the other side closed the connection during the TLS handshake; is it an rgpu-server?");
	if (!l->ready) {
		switch (reason) {
		case SSL_R_BINDER_DOES_NOT_VERIFY:
			return link_broken(l, -EACCES, "a client has a wrong or unknown key (it named \"%s\")", l->identity);
		case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
		case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
		case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
		case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		case SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY:
		case SSL_R_CERTIFICATE_VERIFY_FAILED:
			return link_broken(
				l, -EACCES,
				"the server refused the key (\"%s\"): use the key file that rgpu-server --pair made on "
				"that server",
				l->identity);
		case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
		case SSL_R_NO_SHARED_CIPHER:
			return link_broken(l, -EACCES,
					   "a client offered no key, and this server has no certificate (tls-cert) to speak to "
					   "clients with certificates");
		}
		return link_broken(l, -EPROTO, "the other side does not speak TLS 1.3 with a pre-shared key (%s)",
				   reason ? ERR_reason_error_string(e) : "unexpected bytes");
	}
	return link_broken(l, -EPROTO, "the TLS connection broke: %s", reason ? ERR_reason_error_string(e) : "unexpected bytes");
}

int rgpu_link_handshake(struct rgpu_link *l)
{
	int ret, err;

	if (l->ready || l->broken)
		return l->broken;
	ERR_clear_error();
	ret = SSL_do_handshake(l->ssl);
	if (ret != 1) {
		err = link_ssl_failed(l, ret);
		if (!err)
			err = link_broken(l, -ECONNRESET, "the other side closed the connection during the TLS handshake");
		/* An alert for the peer may wait. */
		if (err == -EAGAIN) {
			ret = rgpu_link_flush(l);
			return ret && ret != -EAGAIN ? ret : -EAGAIN;
		}
		if (l->out_head < l->out_tail)
			(void)!send(l->fd, l->out + l->out_head, l->out_tail - l->out_head, MSG_NOSIGNAL);
		return err;
	}
	if (!SSL_session_reused(l->ssl)) {
		if (!l->certs)
			return link_broken(l, -EACCES, "the other side did not use the pre-shared key");
		if (l->server ? !rgpu_cert_peer(l->ssl, l->identity, &l->cert_id) : SSL_get_verify_result(l->ssl) != X509_V_OK)
			return link_broken(l, -EACCES, "the other side's certificate was not verified");
		l->by_cert = l->server;
	}
	l->ready = true;
	OPENSSL_cleanse(l->key, sizeof(l->key));
	err = rgpu_link_flush(l);
	return err == -EAGAIN ? 0 : err;
}

int rgpu_link_handshake_wait(struct rgpu_link *l, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);

	for (;;) {
		struct pollfd p = {.fd = l->fd};
		int err = rgpu_link_handshake(l);

		if (err != -EAGAIN)
			return err;
		p.events = rgpu_link_events(l);
		err = poll(&p, 1, rgpu_ms_left(deadline));
		if (!err)
			return link_broken(l, -ETIMEDOUT, "no answer to the TLS handshake; is it an rgpu-server?");
		if (err < 0 && errno != EINTR)
			return link_broken(l, -errno, "poll: %s", strerror(errno));
	}
}

int rgpu_link_fd(const struct rgpu_link *l)
{
	return l->fd;
}

short rgpu_link_events(const struct rgpu_link *l)
{
	return POLLIN | (l->out_head < l->out_tail || l->stuck ? POLLOUT : 0);
}

bool rgpu_link_buffered(const struct rgpu_link *l)
{
	return l->full || (l->plain ? rgpu_plain_ready(l->plain) : SSL_pending(l->ssl) > 0 || SSL_has_pending(l->ssl));
}

const char *rgpu_link_identity(const struct rgpu_link *l)
{
	return l->identity;
}

const struct rgpu_cert_id *rgpu_link_cert_id(const struct rgpu_link *l)
{
	return l->by_cert ? &l->cert_id : NULL;
}

bool rgpu_link_is_plain(const struct rgpu_link *l)
{
	return l->plain;
}

bool rgpu_link_told(const struct rgpu_link *l)
{
	return l->told;
}

const char *rgpu_link_why(const struct rgpu_link *l)
{
	return l->why;
}

static ssize_t plain_read(struct rgpu_link *l, uint8_t *buf, size_t len)
{
	size_t got = 0, room;

	while (got < len) {
		ssize_t n = rgpu_plain_take(l->plain, buf + got, len - got);
		uint8_t *at;

		if (n > 0) {
			got += n;
			continue;
		}
		/* What is wrong behind good bytes says so at the next call. */
		if (got || n == -ENODATA)
			break;
		if (n)
			return link_broken(l, n, "the connection brought damaged bytes");
		at = rgpu_plain_room(l->plain, &room);
		n = recv(l->fd, at, room, 0);
		l->full = n > 0 && (size_t)n == room;
		if (n > 0) {
			rgpu_plain_came(l->plain, n);
			continue;
		}
		if (!n)
			return link_broken(l, -ECONNRESET, "the other side closed the connection without a word");
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return -EAGAIN;
		if (errno != EINTR)
			return link_broken(l, -errno, "the connection broke: %s", strerror(errno));
	}
	return got;
}

ssize_t rgpu_link_read(struct rgpu_link *l, void *buf, size_t len)
{
	size_t got = 0, n;
	int err;

	if (l->broken)
		return l->broken;
	if (l->out_head < l->out_tail) {
		err = rgpu_link_flush(l);
		if (err && err != -EAGAIN)
			return err;
	}
	if (l->plain)
		return plain_read(l, buf, len);
	while (got < len) {
		int ret;

		ERR_clear_error();
		ret = SSL_read_ex(l->ssl, (uint8_t *)buf + got, len - got, &n);
		if (ret == 1) {
			got += n;
			/* Without something inside, another read would only be a system call that says EAGAIN. */
			if (!SSL_has_pending(l->ssl))
				break;
			continue;
		}
		err = link_ssl_failed(l, ret);
		if (got)
			break; /* a broken link says so at the next call */
		return err;
	}
	return got;
}

int rgpu_link_export(struct rgpu_link *l, const char *label, const void *ctx, size_t ctx_len, void *out, size_t out_len)
{
	if (!l->ready || l->plain || SSL_export_keying_material(l->ssl, out, out_len, label, strlen(label), ctx, ctx_len, 1) != 1)
		return -EPROTO;
	return 0;
}

const char *rgpu_link_cipher(const struct rgpu_link *l)
{
	struct rgpu_link *w = (struct rgpu_link *)l;

	if (l->plain)
		return "none, CRC-32C";
	snprintf(w->cipher, sizeof(w->cipher), "%s %s%s", SSL_get_version(l->ssl), SSL_get_cipher_name(l->ssl),
		 l->ktls ? ", sent by the kernel" : "");
	return l->cipher;
}
