/* SPDX-License-Identifier: MIT */
/* Certificates as lib/link.c needs them: the OpenSSL context that has one, and what a handshake with it comes to. */
#ifndef RGPU_LIB_CERT_INT_H
#define RGPU_LIB_CERT_INT_H

#include <openssl/ssl.h>
#include "lib/cert.h"

SSL_CTX *rgpu_cert_ctx(const struct rgpu_cert *c);

/* Before a client's handshake: the server's certificate has to be for @host. */
bool rgpu_cert_expect(SSL *ssl, const char *host);

/*
 * The name that a certificate gives its owner: its first DNS name, else its common name. false: it has none that can stand in a
 * configuration, or one that a key's id could be.
 */
bool rgpu_cert_owner(X509 *x, char name[RGPU_CERT_NAME_MAX]);

/* After a server's handshake: who came. */
bool rgpu_cert_peer(SSL *ssl, char name[RGPU_CERT_NAME_MAX], struct rgpu_cert_id *id);

/* For a verify callback: the verdict on the peer's certificate, and a line for people when it is no. @host: what a client
 * connected to. */
int rgpu_cert_judge(int good, X509_STORE_CTX *s, bool server, const char *host, char *why, size_t room);

/* What an alert says of our certificate (@reason is OpenSSL's). NULL: it says nothing of it. */
const char *rgpu_cert_told(bool server, int reason);

#endif
