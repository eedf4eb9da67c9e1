/* SPDX-License-Identifier: MIT */
/* A TLS 1.3 connection, proven by a pre-shared key or by certificates (or, on one machine, none of it): handshake, non-blocking
 * bytes, and blocking frames for control links. */
#ifndef RGPU_LIB_LINK_H
#define RGPU_LIB_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <rgpu_wire.h>
#include "lib/cert.h"

/*
 * A link owns its socket. It is not thread-safe: one lock of the caller's around all calls, poll()
 * outside it. Errors are negative errnos; rgpu_link_why() has a line for people.
 */
struct rgpu_link;

/* What the server needs to find the key that a client names. Returns false to refuse. */
typedef bool (*rgpu_psk_find)(void *arg, const char *identity, uint8_t key[RGPU_KEY_LEN]);

/* Take over a connected, non-blocking or blocking socket (made non-blocking). NULL: no memory. The socket is closed with the
 * link. */
struct rgpu_link *rgpu_link_client(int fd, const char *identity, const uint8_t key[RGPU_KEY_LEN]);
struct rgpu_link *rgpu_link_server(int fd, rgpu_psk_find find, void *arg);
/* The same with certificates, which outlive the link: a server takes either; @host is what the client connected to. */
struct rgpu_link *rgpu_link_client_cert(int fd, const struct rgpu_cert *cert, const char *host);
struct rgpu_link *rgpu_link_server_cert(int fd, const struct rgpu_cert *cert, rgpu_psk_find find, void *arg);
/*
 * Without TLS and without a proof: bytes in the clear, each checked (lib/plain.h), for two ends on one machine. The same for
 * client and server; its handshake is done, and rgpu_link_export() has nothing.
 */
struct rgpu_link *rgpu_link_plain(int fd);
bool rgpu_link_is_plain(const struct rgpu_link *l);
void rgpu_link_free(struct rgpu_link *l); /* sends close_notify when it can without blocking */

/* Drives the handshake: 0 done, -EAGAIN poll for rgpu_link_events(), -EACCES the key or a certificate is wrong, other -errno. */
int rgpu_link_handshake(struct rgpu_link *l);
/* The same, blocking at most @timeout_ms: -ETIMEDOUT. */
int rgpu_link_handshake_wait(struct rgpu_link *l, int timeout_ms);

int rgpu_link_fd(const struct rgpu_link *l);
short rgpu_link_events(const struct rgpu_link *l); /* POLLIN, and POLLOUT while output waits */
bool rgpu_link_buffered(
	const struct rgpu_link *l); /* bytes lie inside, or the last read did not empty the socket: do not poll before reading */
const char *
rgpu_link_identity(const struct rgpu_link *l); /* server: the client's key or its certificate's name, after the handshake */
const struct rgpu_cert_id *rgpu_link_cert_id(const struct rgpu_link *l); /* server: NULL: it has a key */
/* The peer believes to be connected, and must read our alert: its bytes are to be read before this socket is closed. */
bool rgpu_link_told(const struct rgpu_link *l);
const char *rgpu_link_cipher(const struct rgpu_link *l); /* protocol and cipher, after the handshake */
const char *rgpu_link_why(const struct rgpu_link *l);

/*
 * Bytes moved (≥ 1), 0 at a clean end (read only), -EAGAIN, -ECONNRESET, -EBADMSG they changed on their way (plain) … A write
 * takes bytes into a buffer of the link and sends what the socket accepts at once; what is left goes out with the next write,
 * read or flush, and until then rgpu_link_events() has POLLOUT. flush: 0 nothing is left, -EAGAIN, other -errno.
 */
ssize_t rgpu_link_read(struct rgpu_link *l, void *buf, size_t len);
ssize_t rgpu_link_write(struct rgpu_link *l, const void *buf, size_t len);
/* As write, but sends only when much has gathered: a flush must follow. */
ssize_t rgpu_link_put(struct rgpu_link *l, const void *buf, size_t len);
int rgpu_link_flush(struct rgpu_link *l);

/* RFC 5705/8446 exporter: @out_len bytes for label and context; both ends get the same. 0 or -EPROTO. */
int rgpu_link_export(struct rgpu_link *l, const char *label, const void *ctx, size_t ctx_len, void *out, size_t out_len);

/* Blocking frames, for control connections. recv: payload into @buf, its length returned; -EMSGSIZE when it has no room. */
int rgpu_link_send_frame(struct rgpu_link *l, uint16_t type, uint32_t channel, const void *buf, size_t len, int timeout_ms);
/* The same with flags in its header. */
int rgpu_link_send_flagged(struct rgpu_link *l, uint16_t type, uint16_t flags, const void *buf, size_t len, int timeout_ms);
ssize_t rgpu_link_recv_frame(struct rgpu_link *l, struct rgpu_frame *hdr, void *buf, size_t room, int timeout_ms);

#endif
