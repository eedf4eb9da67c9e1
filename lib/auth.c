// SPDX-License-Identifier: MIT
/* How a client proves who it is: the pairing key, a certificate, or not at all. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "lib/addr.h"
#include "lib/auth.h"
#include "lib/link.h"

static bool given(const char *const text[RGPU_AUTH_SETTINGS], enum rgpu_auth_setting s)
{
	return text[s] && *text[s];
}

static int whole_cert(const char *const text[RGPU_AUTH_SETTINGS], const char *const name[RGPU_AUTH_SETTINGS],
		      char why[RGPU_WHY_MAX])
{
	for (int s = RGPU_AUTH_SET_TLS_CERT; s <= RGPU_AUTH_SET_TLS_CA; s++)
		if (!given(text, s))
			return rgpu_why(
				why, -EINVAL,
				"no %s: a certificate needs all of %s (its file), %s (its key) and %s (whom this end trusts)",
				name[s], name[RGPU_AUTH_SET_TLS_CERT], name[RGPU_AUTH_SET_TLS_KEY], name[RGPU_AUTH_SET_TLS_CA]);
	return RGPU_AUTH_CERT;
}

int rgpu_auth_kind(const char *const text[RGPU_AUTH_SETTINGS], const char *const name[RGPU_AUTH_SETTINGS], char why[RGPU_WHY_MAX])
{
	bool key = given(text, RGPU_AUTH_SET_KEY), cert = false;
	const char *kind = given(text, RGPU_AUTH_SET_KIND) ? text[RGPU_AUTH_SET_KIND] : NULL;

	for (int s = RGPU_AUTH_SET_TLS_CERT; s <= RGPU_AUTH_SET_TLS_CA; s++)
		cert |= given(text, s);
	if (kind && !strcmp(kind, "plaintext"))
		return RGPU_AUTH_PLAIN;
	if (kind && strcmp(kind, "key") && strcmp(kind, "cert"))
		return rgpu_why(why, -EINVAL, "%s: \"%.40s\": expected key, cert or plaintext", name[RGPU_AUTH_SET_KIND], kind);
	if (!kind && key && cert)
		return rgpu_why(why, -EINVAL, "there are a key and a certificate: say which is used, with %s key or %s cert",
				name[RGPU_AUTH_SET_KIND], name[RGPU_AUTH_SET_KIND]);
	if (kind ? !strcmp(kind, "cert") : cert)
		return whole_cert(text, name, why);
	if (key)
		return RGPU_AUTH_KEY;
	return rgpu_why(why, -EINVAL, "no key: %s FILE is what rgpu-server --pair made; or give a certificate, with %s",
			name[RGPU_AUTH_SET_KEY], name[RGPU_AUTH_SET_TLS_CERT]);
}

int rgpu_auth_load(const char *const text[RGPU_AUTH_SETTINGS], const char *const name[RGPU_AUTH_SETTINGS], struct rgpu_auth *out,
		   char why[RGPU_WHY_MAX])
{
	struct rgpu_cert_files files = {
		.cert = text[RGPU_AUTH_SET_TLS_CERT], .key = text[RGPU_AUTH_SET_TLS_KEY], .ca = text[RGPU_AUTH_SET_TLS_CA]};
	int kind = rgpu_auth_kind(text, name, why);

	*out = (struct rgpu_auth){0};
	if (kind < 0)
		return kind;
	out->kind = kind;
	if (kind == RGPU_AUTH_PLAIN)
		return 0;
	if (kind == RGPU_AUTH_CERT)
		return rgpu_cert_load(&files, false, &out->cert, why);
	return rgpu_key_load(text[RGPU_AUTH_SET_KEY], &out->key, why);
}

void rgpu_auth_free(struct rgpu_auth *a)
{
	rgpu_key_wipe(&a->key);
	rgpu_cert_free(a->cert);
	a->cert = NULL;
}

int rgpu_auth_fits(const struct rgpu_auth *a, const struct rgpu_addr *addr, char why[RGPU_WHY_MAX])
{
	if (a->kind != RGPU_AUTH_PLAIN || rgpu_addr_is_loopback(addr))
		return 0;
	return rgpu_why(why, -EPERM,
			"%.100s is not a loopback address, and plaintext goes to no other: use a key or a certificate",
			addr->host);
}

struct rgpu_link *rgpu_auth_link(const struct rgpu_auth *a, const struct rgpu_addr *addr, int fd)
{
	if (a->kind == RGPU_AUTH_CERT)
		return rgpu_link_client_cert(fd, a->cert, addr->host);
	if (a->kind == RGPU_AUTH_PLAIN) {
		struct rgpu_preface pre = {0};

		memcpy(pre.magic, RGPU_PLAIN_MAGIC, sizeof(pre.magic));
		/* A fresh socket's buffer takes so little at once; an error comes back with the first request. */
		send(fd, &pre, sizeof(pre), MSG_NOSIGNAL);
		return rgpu_link_plain(fd);
	}
	return rgpu_link_client(fd, a->key.identity, a->key.secret);
}
