/* SPDX-License-Identifier: MIT */
/* How a client proves who it is: the pairing key, a certificate, or not at all. What is written in its settings, and what comes
 * of it. */
#ifndef RGPU_LIB_AUTH_H
#define RGPU_LIB_AUTH_H

#include "lib/cert.h"
#include "lib/key.h"

struct rgpu_addr;
struct rgpu_link;

enum rgpu_auth_kind {
	RGPU_AUTH_KEY,
	RGPU_AUTH_CERT,
	RGPU_AUTH_PLAIN, /* no TLS: to a server on this machine */
};

struct rgpu_auth {
	enum rgpu_auth_kind kind;
	struct rgpu_key key;
	struct rgpu_cert *cert;
};

enum rgpu_auth_setting {
	RGPU_AUTH_SET_KEY,
	RGPU_AUTH_SET_TLS_CERT,
	RGPU_AUTH_SET_TLS_KEY,
	RGPU_AUTH_SET_TLS_CA,
	RGPU_AUTH_SET_KIND, /* "key" or "cert": needed when both are there; or "plaintext" */
	RGPU_AUTH_SETTINGS
};

/*
 * @text: the settings as they are written, NULL or empty where there is none. @name: what they are called where the user wrote
 * them, for messages. -EINVAL and others, with @why.
 */
int rgpu_auth_load(const char *const text[RGPU_AUTH_SETTINGS], const char *const name[RGPU_AUTH_SETTINGS], struct rgpu_auth *out,
		   char why[RGPU_WHY_MAX]);
/* Which kind the settings ask for, without reading a file; -EINVAL. */
int rgpu_auth_kind(const char *const text[RGPU_AUTH_SETTINGS], const char *const name[RGPU_AUTH_SETTINGS],
		   char why[RGPU_WHY_MAX]);
void rgpu_auth_free(struct rgpu_auth *a); /* what it holds */

/* Whether such a client may go to @addr: -EPERM in plaintext to another machine. */
int rgpu_auth_fits(const struct rgpu_auth *a, const struct rgpu_addr *addr, char why[RGPU_WHY_MAX]);

/* A link to the server at @addr with a connected socket, which it takes over. NULL: no memory; the socket is the caller's. */
struct rgpu_link *rgpu_auth_link(const struct rgpu_auth *a, const struct rgpu_addr *addr, int fd);

#endif
