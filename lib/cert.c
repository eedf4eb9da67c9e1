// SPDX-License-Identifier: MIT
/* X.509 certificates of links: loading them, and the names that they give clients. */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include "lib/cert_int.h"
#include "lib/key.h"
#include "lib/link_ctx.h"

struct rgpu_cert {
	SSL_CTX *ctx;
	X509 *own; /* the context's */
	STACK_OF(X509_INFO) * trusted, *revoked;
	char name[RGPU_CERT_NAME_MAX], until[16];
};

static bool digest(const void *buf, size_t len, uint8_t out[32])
{
	return EVP_Digest(buf, len, out, NULL, EVP_sha256(), NULL);
}

static bool name_digest(const X509_NAME *n, uint8_t out[32])
{
	const unsigned char *der;
	size_t len;

	return X509_NAME_get0_der(n, &der, &len) && digest(der, len, out);
}

static bool key_digest(X509 *x, uint8_t out[32])
{
	const ASN1_BIT_STRING *k = X509_get0_pubkey_bitstr(x);

	return k && digest(ASN1_STRING_get0_data(k), ASN1_STRING_length(k), out);
}

/* Its last bytes; their number. */
static uint32_t serial_of(const ASN1_INTEGER *n, uint8_t out[32])
{
	int len = ASN1_STRING_length(n), skip = len > 32 ? len - 32 : 0;

	memcpy(out, ASN1_STRING_get0_data(n) + skip, len - skip);
	return len - skip;
}

/* As a word of a configuration's line and of the log; and never what a client of another kind is called. */
static bool usable(const char *name, size_t len)
{
	bool hex = len == RGPU_KEY_ID_LEN;

	if (!len || len >= RGPU_CERT_NAME_MAX || memchr(name, 0, len))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("._-@+:", name[i]))
			return false;
		hex &= isxdigit((unsigned char)name[i]) != 0;
	}
	return !hex && (len != strlen(RGPU_PLAIN_NAME) || memcmp(name, RGPU_PLAIN_NAME, len));
}

static bool take_name(const ASN1_STRING *s, char name[RGPU_CERT_NAME_MAX])
{
	const char *text = s ? (const char *)ASN1_STRING_get0_data(s) : "";
	size_t len = s ? (size_t)ASN1_STRING_length(s) : 0;

	if (!usable(text, len))
		return false;
	memcpy(name, text, len);
	name[len] = 0;
	return true;
}

bool rgpu_cert_owner(X509 *x, char name[RGPU_CERT_NAME_MAX])
{
	GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	const X509_NAME *subject = X509_get_subject_name(x);
	const ASN1_STRING *s = NULL;
	bool good;
	int at;

	for (int i = 0; !s && i < sk_GENERAL_NAME_num(all); i++)
		if (sk_GENERAL_NAME_value(all, i)->type == GEN_DNS)
			s = sk_GENERAL_NAME_value(all, i)->d.dNSName;
	at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	if (!s && at >= 0)
		s = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
	good = take_name(s, name);
	GENERAL_NAMES_free(all);
	return good;
}

bool rgpu_cert_peer(SSL *ssl, char name[RGPU_CERT_NAME_MAX], struct rgpu_cert_id *id)
{
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	X509 *x = SSL_get0_peer_certificate(ssl);

	int n = sk_X509_num(chain);

	memset(id, 0, sizeof(*id));
	if (!x || SSL_get_verify_result(ssl) != X509_V_OK || n < 1 || !rgpu_cert_owner(x, name) ||
	    !key_digest(sk_X509_value(chain, n - 1), id->authority))
		return false;
	/* The last one is the authority, unless the client's is trusted itself. */
	for (int i = 0; i < n && (!i || i < n - 1); i++) {
		x = sk_X509_value(chain, i);
		if (i == RGPU_CERT_CHAIN || !name_digest(X509_get_issuer_name(x), id->chain[i].issuer))
			return false;
		id->chain[i].serial_len = serial_of(X509_get0_serialNumber(x), id->chain[i].serial);
		id->n++;
	}
	return true;
}

/* Whether the list has one of the chain: its place there, or −1. */
static int finds(X509_CRL *crl, const struct rgpu_cert_id *id)
{
	STACK_OF(X509_REVOKED) *list = X509_CRL_get_REVOKED(crl);
	uint8_t issuer[32], serial[32];

	if (!name_digest(X509_CRL_get_issuer(crl), issuer))
		return -1;
	for (uint32_t i = 0; i < id->n && i < RGPU_CERT_CHAIN; i++) {
		if (memcmp(issuer, id->chain[i].issuer, sizeof(issuer)))
			continue;
		for (int k = 0; k < sk_X509_REVOKED_num(list); k++) {
			uint32_t len = serial_of(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(list, k)), serial);

			if (len == id->chain[i].serial_len && !memcmp(serial, id->chain[i].serial, len))
				return i;
		}
	}
	return -1;
}

const char *rgpu_cert_refuses(const struct rgpu_cert *c, const struct rgpu_cert_id *id)
{
	uint8_t got[32];
	bool trusted = false;

	for (int i = 0; i < sk_X509_INFO_num(c->trusted); i++) {
		X509 *x = sk_X509_INFO_value(c->trusted, i)->x509;

		trusted |= x && key_digest(x, got) && !memcmp(got, id->authority, sizeof(got));
	}
	if (!trusted)
		return "the server does not trust the authority of this client's certificate any more; ask whoever runs it";
	for (int i = 0; i < sk_X509_INFO_num(c->revoked); i++) {
		X509_CRL *crl = sk_X509_INFO_value(c->revoked, i)->crl;
		int at = crl ? finds(crl, id) : -1;

		if (!at)
			return "this client's certificate was revoked; ask whoever runs the server";
		if (at > 0)
			return "an authority that this client's certificate hangs on was revoked; ask whoever runs the server";
	}
	return NULL;
}

bool rgpu_cert_expect(SSL *ssl, const char *host)
{
	X509_VERIFY_PARAM *p = SSL_get0_param(ssl);
	uint8_t ip[16];

	if (inet_pton(AF_INET, host, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip(p, ip, 4);
	if (inet_pton(AF_INET6, host, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip(p, ip, 16);
	X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(p, host, 0) && SSL_set_tlsext_host_name(ssl, host);
}

/* Nobody is asked for a password: who would answer? */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static int unreadable(const char *what, const char *path, char why[RGPU_WHY_MAX])
{
	unsigned long e = ERR_peek_last_error();
	int err = ERR_GET_LIB(e) == ERR_LIB_SYS ? ERR_GET_REASON(e) : 0;

	if (access(path, R_OK))
		err = errno;
	ERR_clear_error();
	if (err)
		return rgpu_why(why, -err, "cannot read the %s %.120s: %s", what, path, strerror(err));
	return rgpu_why(why, -EINVAL, "%.120s is no %s in PEM form (%.80s)", path, what,
			e && ERR_reason_error_string(e) ? ERR_reason_error_string(e) : "nothing of that kind is in it");
}

static int guarded(const char *path, char why[RGPU_WHY_MAX])
{
	struct stat st;

	if (stat(path, &st))
		return rgpu_why(why, -errno, "cannot read the certificate's key %.120s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return rgpu_why(why, -EINVAL, "the certificate's key %.120s is not a regular file", path);
	if (st.st_mode & 077)
		return rgpu_why(why, -EACCES, "the certificate's key %.120s may be used by others (mode %04o): chmod 600 it",
				path, st.st_mode & 07777);
	return 0;
}

static STACK_OF(X509_INFO) * read_pem(const char *path)
{
	BIO *b = BIO_new_file(path, "r");
	STACK_OF(X509_INFO) *all = b ? PEM_X509_INFO_read_bio_ex(b, NULL, no_password, NULL, rgpu_link_lib(), NULL) : NULL;

	BIO_free(b);
	return all;
}

/* The authorities: any certificate in the file is one. */
static int load_trusted(struct rgpu_cert *c, const char *path, char why[RGPU_WHY_MAX])
{
	X509_STORE *store = SSL_CTX_get_cert_store(c->ctx);
	int n = 0;

	c->trusted = read_pem(path);
	for (int i = 0; i < sk_X509_INFO_num(c->trusted); i++) {
		X509 *x = sk_X509_INFO_value(c->trusted, i)->x509;

		if (!x)
			continue;
		n++;
		/* What a server says it trusts, so that a client with several certificates could choose. */
		if (!X509_STORE_add_cert(store, x) || !SSL_CTX_add_client_CA(c->ctx, x))
			return rgpu_why(why, -ENOMEM, "no memory for the authorities of %.120s", path);
	}
	return n ? 0 : unreadable("certificate of an authority", path, why);
}

static int load_revoked(struct rgpu_cert *c, const char *path, char why[RGPU_WHY_MAX])
{
	X509_STORE *store = SSL_CTX_get_cert_store(c->ctx);
	int n = 0;

	c->revoked = read_pem(path);
	for (int i = 0; i < sk_X509_INFO_num(c->revoked); i++) {
		X509_CRL *crl = sk_X509_INFO_value(c->revoked, i)->crl;

		if (!crl)
			continue;
		n++;
		if (!X509_STORE_add_crl(store, crl))
			return rgpu_why(why, -ENOMEM, "no memory for the revocations of %.120s", path);
	}
	if (!n)
		return unreadable("list of revoked certificates", path, why);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

static int load(struct rgpu_cert *c, const struct rgpu_cert_files *f, char why[RGPU_WHY_MAX])
{
	struct tm tm;
	int err;

	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(c->ctx, no_password);
	if (SSL_CTX_use_certificate_chain_file(c->ctx, f->cert) != 1)
		return unreadable("certificate", f->cert, why);
	err = guarded(f->key, why);
	if (err)
		return err;
	if (SSL_CTX_use_PrivateKey_file(c->ctx, f->key, SSL_FILETYPE_PEM) != 1) {
		if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
			ERR_clear_error();
			return rgpu_why(why, -EINVAL, "%.100s is not the key of the certificate %.100s", f->key, f->cert);
		}
		return unreadable("key without a password", f->key, why);
	}
	if (SSL_CTX_check_private_key(c->ctx) != 1) {
		ERR_clear_error();
		return rgpu_why(why, -EINVAL, "%.100s is not the key of the certificate %.100s", f->key, f->cert);
	}
	c->own = SSL_CTX_get0_certificate(c->ctx);
	rgpu_cert_owner(c->own, c->name);
	if (!ASN1_TIME_to_tm(X509_get0_notAfter(c->own), &tm) || !strftime(c->until, sizeof(c->until), "%Y-%m-%d", &tm))
		return rgpu_why(why, -EINVAL, "%.120s: it cannot be read until when it is valid", f->cert);
	err = load_trusted(c, f->ca, why);
	return err || !f->crl ? err : load_revoked(c, f->crl, why);
}

int rgpu_cert_load(const struct rgpu_cert_files *f, bool server, struct rgpu_cert **out, char why[RGPU_WHY_MAX])
{
	struct rgpu_cert *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (c)
		c->ctx = rgpu_link_ctx_new(server);
	if (!c || !c->ctx) {
		rgpu_cert_free(c);
		return rgpu_why(why, -ENOMEM, "no memory for a certificate");
	}
	/* At least 112 bits: no RSA below 2048, no SHA-1. */
	SSL_CTX_set_security_level(c->ctx, 2);
	if (server)
		SSL_CTX_set_verify(c->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	/* No more than a session remembers. */
	if (server)
		SSL_CTX_set_verify_depth(c->ctx, RGPU_CERT_CHAIN - 1);
	err = load(c, f, why);
	if (err) {
		rgpu_cert_free(c);
		return err;
	}
	*out = c;
	return 0;
}

void rgpu_cert_free(struct rgpu_cert *c)
{
	if (!c)
		return;
	sk_X509_INFO_pop_free(c->trusted, X509_INFO_free);
	sk_X509_INFO_pop_free(c->revoked, X509_INFO_free);
	SSL_CTX_free(c->ctx);
	free(c);
}

SSL_CTX *rgpu_cert_ctx(const struct rgpu_cert *c)
{
	return c->ctx;
}

const char *rgpu_cert_name(const struct rgpu_cert *c)
{
	return c->name;
}

const char *rgpu_cert_until(const struct rgpu_cert *c)
{
	return c->until;
}

int64_t rgpu_cert_days_left(const struct rgpu_cert *c)
{
	int days = 0, secs = 0;

	ASN1_TIME_diff(&days, &secs, NULL, X509_get0_notAfter(c->own));
	return secs < 0 && !days ? -1 : days;
}
