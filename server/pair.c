// SPDX-License-Identifier: MIT
/* rgpu-server --pair: makes the key file if there is none, and prints the line that sets a client up. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "server/pair.h"

/* The daemon's own key is for the user that it runs as, and root has just made it. */
static int give_away(const char *file, char why[RGPU_WHY_MAX])
{
	const struct passwd *user = geteuid() ? NULL : getpwnam(SERVER_USER);

	if (user && chown(file, user->pw_uid, user->pw_gid))
		return rgpu_why(why, -errno, "cannot give %s to the user %s: %s", file, SERVER_USER, strerror(errno));
	return 0;
}

static void hex(const struct rgpu_key *key, char out[2 * RGPU_KEY_LEN + 1])
{
	for (unsigned i = 0; i < RGPU_KEY_LEN; i++)
		snprintf(out + 2 * i, 3, "%02x", key->secret[i]);
}

/* It listens on every address, so that none of them is in the configuration. */
static bool is_wildcard(const char *host)
{
	return !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

int pair_run(const struct server_opts *o)
{
	const char *file = o->key_file[0];
	char why[RGPU_WHY_MAX], host[128] = "", addr[RGPU_ADDR_TEXT_MAX], token[2 * RGPU_KEY_LEN + 1];
	struct rgpu_addr at = o->listen;
	struct rgpu_key key;
	int err = rgpu_key_create(file, &key, why);
	bool made = !err;

	if (made && o->conf)
		err = give_away(file, why);
	if (err == -EEXIST)
		err = rgpu_key_load(file, &key, why);
	if (err) {
		fprintf(stderr, "rgpu-server: %s\n", why);
		return 1;
	}
	if (is_wildcard(at.host) && !gethostname(host, sizeof(host) - 1))
		snprintf(at.host, sizeof(at.host), "%s", host);
	rgpu_addr_text(&at, addr);
	hex(&key, token);
	fprintf(stderr,
		"# %s key %s (id %s). It is the right to use this machine's GPUs, and so is the part behind the # of this line,\n"
		"# which sets a client up; run it there as root:\n",
		made ? "Made the" : "There is the", file, key.id);
	printf("rgpu join %s#%s\n", addr, token);
	fflush(stdout);
	fprintf(stderr,
		"# Where no kernel module can be loaded, a program reaches the server directly, with a copy of the key (mode "
		"0600):\n"
		"# rgpu run --server %s --key %s -- PROGRAM\n",
		addr, file);
	if (*host)
		fprintf(stderr,
			"# Where clients do not find the name %s, put an address of this machine in its place: hostname -I.\n",
			host);
	if (rgpu_addr_is_loopback(&o->listen))
		fprintf(stderr,
			"# Clients on other machines reach the server only when it listens for them: listen = 0.0.0.0:%u in\n"
			"# %s, or --listen on the command line (and here, too).\n",
			o->listen.port, SERVER_CONF);
	OPENSSL_cleanse(token, sizeof(token));
	rgpu_key_wipe(&key);
	return 0;
}
