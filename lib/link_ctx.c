// SPDX-License-Identifier: MIT
/* The TLS set-up that all links share: one OpenSSL context a side, and the sessions that carry a pre-shared key. */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/crypto.h>
#include "lib/link_ctx.h"

/* One read(2) may bring several records. */
#define READ_AHEAD (128 << 10)

static pthread_once_t ctx_once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *lib;
static SSL_CTX *ctx_client, *ctx_server;

/*
 * Whether OpenSSL will use AES instructions: its own view of the CPU, which OPENSSL_ia32cap can change. Under
 * emulation, AES in software is several times slower than ChaCha20.
 */
static bool have_aes(void)
{
#ifdef __x86_64__
	const char *info = OPENSSL_info(OPENSSL_INFO_CPU_SETTINGS), *eq = info ? strchr(info, '=') : NULL;

	/* "OPENSSL_ia32cap=0x<CPUID.1 ECX:EDX>:…" */
	return !eq || strtoull(eq + 1, NULL, 16) >> (32 + 25) & 1;
#else
	return true;
#endif
}

static SSL_CTX *make_ctx(bool server)
{
	bool aes = have_aes();
	SSL_CTX *ctx = SSL_CTX_new_ex(lib, NULL, server ? TLS_server_method() : TLS_client_method());

	if (!ctx)
		return NULL;
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) || !SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(ctx, aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
					       : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") ||
	    !SSL_CTX_set1_groups_list(ctx, "X25519:P-256") || !SSL_CTX_set_num_tickets(ctx, 0) ||
	    (server && !SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"rgpu", 4))) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	/* Without authorities of its own, which lib/cert.c adds, a context takes no certificate: the pre-shared key proves the
	 * peer. */
	SSL_CTX_set_verify(ctx, server ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ctx, 0);
	/* Where the kernel has TLS it encrypts what we send (lib/ktls.h); what comes is OpenSSL's. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
	/* The end without AES instructions decides; else the client's order is ours anyway. */
	if (server && !aes)
		SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_default_read_buffer_len(ctx, READ_AHEAD);
	return ctx;
}

static void init(void)
{
	/*
	 * We may live in somebody's program: our own library context, so that neither its providers nor its
	 * configuration reach us, and no exit handler that frees OpenSSL under our threads.
	 */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	lib = OSSL_LIB_CTX_new();
	if (!lib)
		return;
	ctx_client = make_ctx(false);
	ctx_server = make_ctx(true);
}

SSL_CTX *rgpu_link_ctx(int server)
{
	pthread_once(&ctx_once, init);
	return server ? ctx_server : ctx_client;
}

SSL_CTX *rgpu_link_ctx_new(int server)
{
	pthread_once(&ctx_once, init);
	return lib ? make_ctx(server) : NULL;
}

OSSL_LIB_CTX *rgpu_link_lib(void)
{
	pthread_once(&ctx_once, init);
	return lib;
}

SSL_SESSION *rgpu_link_psk(SSL *ssl, const uint8_t key[RGPU_KEY_LEN])
{
	static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
	SSL_SESSION *s = SSL_SESSION_new();

	if (!s || !cipher || !SSL_SESSION_set1_master_key(s, key, RGPU_KEY_LEN) || !SSL_SESSION_set_cipher(s, cipher) ||
	    !SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION)) {
		SSL_SESSION_free(s);
		return NULL;
	}
	return s;
}
