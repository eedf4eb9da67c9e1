// SPDX-License-Identifier: MIT
/* The options by which run and bench reach a server without the module, as the client libraries take them from the environment.
 */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "lib/addr.h"
#include "tools/rgpu/direct.h"

bool direct_option(struct direct *d, int c, const char *arg)
{
	if (c == DIRECT_FIRST)
		d->server = arg;
	else if (c > DIRECT_FIRST && c <= DIRECT_FIRST + RGPU_AUTH_SETTINGS)
		d->text[c - DIRECT_FIRST - 1] = arg;
	else
		return false;
	return true;
}

static bool any_device(void)
{
	glob_t g;
	bool found = !glob("/dev/rgpu[0-9]*", GLOB_NOSORT, NULL, &g);

	globfree(&g);
	return found;
}

int direct_set(const struct direct *d, char why[RGPU_WHY_MAX])
{
	static const char *const names[RGPU_AUTH_SETTINGS] = {"--key", "--tls-cert", "--tls-key", "--tls-ca", "--auth"};
	static const char *const env[RGPU_AUTH_SETTINGS] = {"RGPU_KEY", "RGPU_TLS_CERT", "RGPU_TLS_KEY", "RGPU_TLS_CA",
							    "RGPU_AUTH"};
	char full[PATH_MAX];
	struct rgpu_addr addr;
	struct rgpu_auth auth;
	bool any = false;

	for (int i = 0; i < RGPU_AUTH_SETTINGS; i++)
		any |= d->text[i] != NULL;
	if (!d->server && !any) {
		if (getenv("RGPU_SERVER") || any_device())
			return 0;
		return rgpu_why(why, -1,
				"there is no /dev/rgpu0: modprobe rgpu, or name a server with --server HOST:PORT --key FILE");
	}
	if (!d->server)
		return rgpu_why(why, -1,
				"a key or certificate is for --server HOST:PORT; without one the program goes through "
				"/dev/rgpu0 and needs none");
	if (rgpu_addr_parse(d->server, false, &addr, why) || rgpu_auth_load(d->text, names, &auth, why) ||
	    rgpu_auth_fits(&auth, &addr, why))
		return -1;
	rgpu_auth_free(&auth);
	if (setenv("RGPU_SERVER", d->server, 1))
		return rgpu_why(why, -1, "%s", strerror(errno));
	for (int i = 0; i < RGPU_AUTH_SETTINGS; i++) {
		bool file = i != RGPU_AUTH_SET_KIND;

		if (!d->text[i]) {
			unsetenv(env[i]); /* nor does another's come between */
			continue;
		}
		if (file && !realpath(d->text[i], full)) /* the program may change its directory first */
			return rgpu_why(why, -1, "%.150s: %s", d->text[i], strerror(errno));
		if (setenv(env[i], file ? full : d->text[i], 1))
			return rgpu_why(why, -1, "%s", strerror(errno));
	}
	return 0;
}
