/* SPDX-License-Identifier: MIT */
/* The TLS set-up that all links share: one OpenSSL context a side, and the sessions that carry a pre-shared key. */
#ifndef RGPU_LIB_LINK_CTX_H
#define RGPU_LIB_LINK_CTX_H

#include <stdint.h>
#include <openssl/ssl.h>
#include <rgpu_wire.h>

/* NULL when OpenSSL cannot be used. Never freed: engine threads may still be running at exit. */
SSL_CTX *rgpu_link_ctx(int server);
/* One more, for its caller to put a certificate into and to free. */
SSL_CTX *rgpu_link_ctx_new(int server);
OSSL_LIB_CTX *rgpu_link_lib(void);

/* Plaintext bytes of one TLS record. */
#define RGPU_TLS_RECORD 16384

/* A TLS 1.3 session for an external key, of the hash SHA-256. NULL: no memory. */
SSL_SESSION *rgpu_link_psk(SSL *ssl, const uint8_t key[RGPU_KEY_LEN]);

#endif
