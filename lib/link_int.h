/* SPDX-License-Identifier: MIT */
/* What the two halves of a link share: link.c has the handshake and what comes, link_out.c what is sent. */
#ifndef RGPU_LIB_LINK_INT_H
#define RGPU_LIB_LINK_INT_H

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include "lib/cert_int.h"
#include "lib/link.h"
#include "lib/plain.h"

/* Of the out buffer. */
#define OUT_SIZE (256 << 10)

struct rgpu_link {
	int fd;
	char cipher[64];
	bool server, ready, eof;
	bool full;	     /* the last receive took all it had room for: the socket may hold more */
	bool ktls;	     /* the kernel encrypts what is sent: what waits in the out buffer is plain */
	bool stuck;	     /* … and took no more, straight from the caller */
	uint8_t record_type; /* … of what OpenSSL writes next; 0: data */
	int broken;	     /* negative errno once the link cannot go on */
	SSL *ssl;	     /* or … */
	struct rgpu_plain *plain;
	uint8_t key[RGPU_KEY_LEN]; /* client: until the handshake is done */
	char identity[64];
	char *host;		     /* client with a certificate: what the server's is to be for, until the handshake is done */
	bool certs, told, by_cert;   /* may have them; see rgpu_link_told(); the peer had one */
	struct rgpu_cert_id cert_id; /* server: the client's */
	rgpu_psk_find find;
	void *find_arg;
	int sock_err; /* errno of the last recv or send that failed for good */
	uint8_t *out;
	size_t out_head, out_tail;
	char why[256];
};

/* The link cannot go on: @err, a negative errno, from now on, with a line that says why. Returns @err. */
__attribute__((format(printf, 3, 4))) int link_broken(struct rgpu_link *l, int err, const char *fmt, ...);
/* What a failed SSL call means for the link. */
int link_ssl_failed(struct rgpu_link *l, int ret);

int link_bio_write(BIO *b, const char *buf, int len);
long link_bio_ctrl(BIO *b, int cmd, long num, void *ptr);

#endif
