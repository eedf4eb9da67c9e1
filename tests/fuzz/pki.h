/* SPDX-License-Identifier: MIT */
/* Certificates for fuzz targets, made in memory: an authority and what it issued, for either end. */
#ifndef RGPU_TESTS_FUZZ_PKI_H
#define RGPU_TESTS_FUZZ_PKI_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "lib/cert.h"

/* A file in memory that @write fills, by its name. Never closed. */
static char *pki_file(int (*write)(BIO *b, void *thing), void *thing)
{
	int fd = memfd_create("pki", MFD_CLOEXEC);
	BIO *b = BIO_new_fd(fd, BIO_NOCLOSE);
	char *name;

	if (fd < 0 || fchmod(fd, 0600) || !b || !write(b, thing) || asprintf(&name, "/proc/self/fd/%d", fd) < 0)
		abort();
	BIO_free(b);
	return name;
}

static int pki_put_cert(BIO *b, void *x)
{
	return PEM_write_bio_X509(b, x);
}

static int pki_put_key(BIO *b, void *k)
{
	return PEM_write_bio_PrivateKey(b, k, NULL, NULL, 0, NULL, NULL);
}

/* @ca NULL: its own authority. @san NULL: none. */
static X509 *pki_issue(const char *cn, const char *san, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
	X509 *x = X509_new();
	X509_NAME *name = X509_get_subject_name(x);
	X509_EXTENSION *e;

	X509_set_version(x, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 360000000);
	X509_set_pubkey(x, key);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(x, ca ? X509_get_subject_name(ca) : name);
	e = X509V3_EXT_conf_nid(NULL, NULL, ca ? NID_subject_alt_name : NID_basic_constraints, ca ? san : "critical,CA:TRUE");
	if (!e || !X509_add_ext(x, e, -1) || !X509_sign(x, ca ? ca_key : key, EVP_sha256()))
		abort();
	X509_EXTENSION_free(e);
	return x;
}

/* Both ends' certificates, of one authority; the server's is for 127.0.0.1, the client's name is "fuzz". */
static void pki_make(struct rgpu_cert **server, struct rgpu_cert **client)
{
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
	X509 *ca = pki_issue("authority", NULL, ca_key, NULL, NULL), *of_server, *of_client;
	struct rgpu_cert_files f = {.key = pki_file(pki_put_key, key), .ca = pki_file(pki_put_cert, ca)};
	char why[RGPU_WHY_MAX];

	of_server = pki_issue("server", "IP:127.0.0.1", key, ca, ca_key);
	of_client = pki_issue("nobody", "DNS:fuzz", key, ca, ca_key);
	f.cert = pki_file(pki_put_cert, of_server);
	if (rgpu_cert_load(&f, true, server, why))
		abort();
	free((char *)f.cert);
	f.cert = pki_file(pki_put_cert, of_client);
	if (rgpu_cert_load(&f, false, client, why))
		abort();
	free((char *)f.cert);
	free((char *)f.key);
	free((char *)f.ca);
	X509_free(of_client);
	X509_free(of_server);
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
}

#endif
