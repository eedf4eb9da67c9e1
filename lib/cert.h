/* SPDX-License-Identifier: MIT */
/* X.509 certificates of links: what this end shows, whom it trusts, the name that a client's gives it, and what is wrong with
 * one. */
#ifndef RGPU_LIB_CERT_H
#define RGPU_LIB_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/why.h"

#define RGPU_CERT_NAME_MAX 64 /* with its NUL */

/*
 * PEM files. @crl may be NULL: nothing is revoked; else every authority that issued a client's own certificate needs a list in it
 * that has not run out. Of the certificates above that those are looked for that have one.
 */
struct rgpu_cert_files {
	const char *cert, *key, *ca, *crl;
};

/* Immutable once it is loaded: any threads may use it. */
struct rgpu_cert;

/* -ENOENT and other open errors, -EACCES the key may be read by others, -EINVAL not usable. */
int rgpu_cert_load(const struct rgpu_cert_files *f, bool server, struct rgpu_cert **out, char why[RGPU_WHY_MAX]);
void rgpu_cert_free(struct rgpu_cert *c);

const char *rgpu_cert_name(const struct rgpu_cert *c);	/* of the own one, as a server calls its client; empty: it has none */
int64_t rgpu_cert_days_left(const struct rgpu_cert *c); /* until the own one runs out; negative: since */
const char *rgpu_cert_until(const struct rgpu_cert *c); /* that day, 2027-01-31 */

/* A client's certificate, and at most so many less one between it and the authority that is trusted. */
#define RGPU_CERT_CHAIN 4

/* What outlives a connection of a client's certificate: enough to see whether it is revoked, or one that it hangs on, or its
 * authority not trusted any more. */
struct rgpu_cert_id {
	uint8_t authority[32]; /* SHA-256 of the public key of the authority that it goes back to */
	struct {
		uint8_t issuer[32]; /* SHA-256 of its issuer's name */
		uint8_t serial[32]; /* its number's last bytes */
		uint32_t serial_len;
		uint32_t reserved;
	} chain[RGPU_CERT_CHAIN]; /* its own, then its issuer's, and so on */
	uint32_t n, reserved;
};

/* Whether a server with these settings would take that certificate: NULL, or why not. */
const char *rgpu_cert_refuses(const struct rgpu_cert *c, const struct rgpu_cert_id *id);

#endif
