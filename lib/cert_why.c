// SPDX-License-Identifier: MIT
/* What was wrong with a certificate, for the people at either end: the cause, and what to do. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include "lib/cert_int.h"

/* A certificate's names as it has them, for a message: what is not printable is not printed. */
static void names_of(X509 *x, char *out, size_t room)
{
	GENERAL_NAMES *all = x ? X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL) : NULL;
	size_t at = 0;

	*out = 0;
	for (int i = 0; i < sk_GENERAL_NAME_num(all) && at < room; i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);
		const uint8_t *ip;

		if (g->type == GEN_DNS) {
			at += snprintf(out + at, room - at, "%s%.*s", at ? ", " : "", ASN1_STRING_length(g->d.dNSName),
				       (const char *)ASN1_STRING_get0_data(g->d.dNSName));
		} else if (g->type == GEN_IPADD && ASN1_STRING_length(g->d.iPAddress) == 4) {
			ip = ASN1_STRING_get0_data(g->d.iPAddress);
			at += snprintf(out + at, room - at, "%s%u.%u.%u.%u", at ? ", " : "", ip[0], ip[1], ip[2], ip[3]);
		}
	}
	GENERAL_NAMES_free(all);
	if (!at && x && X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out, room) <= 0)
		snprintf(out, room, "?");
	for (; *out; out++)
		if (*out < ' ' || *out > '~' || *out == '"')
			*out = '?';
}

static void issuer_of(X509 *x, char *out, size_t room)
{
	if (!x || X509_NAME_get_text_by_NID(X509_get_issuer_name(x), NID_commonName, out, room) <= 0)
		snprintf(out, room, "?");
	for (; *out; out++)
		if (*out < ' ' || *out > '~' || *out == '"')
			*out = '?';
}

static const char *day(const ASN1_TIME *t, char out[16])
{
	struct tm tm;

	return t && ASN1_TIME_to_tm(t, &tm) && strftime(out, 16, "%Y-%m-%d", &tm) ? out : "?";
}

/* The chain ends where nobody is trusted: at which certificate of it is of no interest. */
static bool issuer_missing(long verdict)
{
	switch (verdict) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return true;
	}
	return false;
}

/* We are the client, and the server's certificate is not good. */
static void about_server(long verdict, X509 *leaf, X509 *x, const char *host, char *why, size_t room)
{
	char names[96], issuer[64], at[16];

	names_of(issuer_missing(verdict) ? leaf : x, names, sizeof(names));
	issuer_of(x, issuer, sizeof(issuer));
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		snprintf(why, room, "the server's certificate (%s) expired on %s: it needs a new one there, then a reload", names,
			 day(X509_get0_notAfter(x), at));
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		snprintf(why, room, "the server's certificate (%s) is valid from %s on: is the clock of this machine right?",
			 names, day(X509_get0_notBefore(x), at));
		return;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		snprintf(
			why, room,
			"the server's certificate is for %s, not for %.100s: connect to a name that it has, or have this one put "
			"into it",
			names, host);
		return;
	}
	if (issuer_missing(verdict))
		snprintf(why, room,
			 "the server's certificate (%s) was issued by \"%s\", which is not trusted here: is the file of "
			 "authorities (tls-ca) the right one?",
			 names, issuer);
	else
		snprintf(why, room, "the server's certificate (%s) is not good: %s", names,
			 X509_verify_cert_error_string(verdict));
}

/* We are the server, and the client's is not. */
static void about_client(long verdict, X509 *leaf, X509 *x, char *why, size_t room)
{
	char names[96], issuer[64], at[16];

	names_of(issuer_missing(verdict) ? leaf : x, names, sizeof(names));
	issuer_of(x, issuer, sizeof(issuer));
	switch (verdict) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		snprintf(why, room, "a client's certificate (%s) expired on %s: it needs a new one", names,
			 day(X509_get0_notAfter(x), at));
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		snprintf(why, room, "a client's certificate (%s) is valid from %s on: is the clock of this machine right?", names,
			 day(X509_get0_notBefore(x), at));
		return;
	case X509_V_ERR_CERT_REVOKED:
		snprintf(why, room,
			 x == leaf ? "a client's certificate (%s) is revoked"
				   : "a client's certificate was issued by one that is revoked (%s)",
			 names);
		return;
	case X509_V_ERR_CRL_HAS_EXPIRED:
	case X509_V_ERR_UNABLE_TO_GET_CRL:
		snprintf(why, room,
			 "a client (%s) was refused, for the list of revoked certificates (tls-crl) %s for its issuer, \"%s\": "
			 "have a new list made, then reload",
			 names, verdict == X509_V_ERR_CRL_HAS_EXPIRED ? "has run out" : "has none", issuer);
		return;
	case X509_V_ERR_APPLICATION_VERIFICATION:
		snprintf(why, room,
			 "a client's certificate names it \"%s\", which cannot be a client's name here: it has to be of letters, "
			 "digits and ._-:@+ alone, fewer than %d, and not of the form of a key's id",
			 names, RGPU_CERT_NAME_MAX);
		return;
	}
	if (issuer_missing(verdict))
		snprintf(why, room, "a client's certificate (%s) was issued by \"%s\", which is not trusted here (tls-ca)", names,
			 issuer);
	else
		snprintf(why, room, "a client's certificate (%s) is not good: %s", names, X509_verify_cert_error_string(verdict));
}

/* What a server's alert says of our certificate. */
static const char *told_client(int reason)
{
	switch (reason) {
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return "the server says that this client's certificate has expired, or is not valid yet: renew it, and look at "
		       "the "
		       "clocks";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
		return "the server does not trust who issued this client's certificate: its file of authorities (tls-ca) has to "
		       "name that issuer";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
		return "the server says that this client's certificate is revoked: ask whoever runs it for a new one";
	case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
		return "the server wants a certificate of this client, and none was given";
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
	case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
	case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
		return "the server does not take this client's certificate, or none at all; its log says why";
	}
	return NULL;
}

/* And a client's of ours. */
static const char *told_server(int reason)
{
	switch (reason) {
	case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
		return "a client says that this server's certificate has expired, or is not valid yet: renew it (tls-cert), "
		       "reload, "
		       "and look at the clocks";
	case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
		return "a client does not trust who issued this server's certificate: its file of authorities (tls-ca) has to "
		       "name "
		       "that issuer";
	case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
	case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
		return "a client refused this server's certificate: the client connected to a name that is not in it, or has no "
		       "authorities of its own";
	}
	return NULL;
}

const char *rgpu_cert_told(bool server, int reason)
{
	if (server && reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		return "a client showed neither a key nor a certificate";
	return server ? told_server(reason) : told_client(reason);
}

int rgpu_cert_judge(int good, X509_STORE_CTX *s, bool server, const char *host, char *why, size_t room)
{
	X509 *x = X509_STORE_CTX_get_current_cert(s);
	char name[RGPU_CERT_NAME_MAX];

	/* Only an authority that issues clients' certificates has to have a list of those that it revoked. */
	if (!good && server && X509_STORE_CTX_get_error(s) == X509_V_ERR_UNABLE_TO_GET_CRL && X509_STORE_CTX_get_error_depth(s)) {
		X509_STORE_CTX_set_error(s, X509_V_OK);
		good = 1;
	}
	/* A client whose name cannot be used is refused like one whose certificate is bad: it is told by an alert, too. */
	if (good && server && !X509_STORE_CTX_get_error_depth(s) && !rgpu_cert_owner(x, name)) {
		X509_STORE_CTX_set_error(s, X509_V_ERR_APPLICATION_VERIFICATION);
		good = 0;
	}
	if (!good && server)
		about_client(X509_STORE_CTX_get_error(s), X509_STORE_CTX_get0_cert(s), x, why, room);
	else if (!good)
		about_server(X509_STORE_CTX_get_error(s), X509_STORE_CTX_get0_cert(s), x, host, why, room);
	return good;
}
