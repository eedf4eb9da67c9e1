// SPDX-License-Identifier: MIT
/* rgpu-server --pair: makes the key file if there is none, and says what to set up at the client. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "server/pair.h"

int pair_run(const struct server_opts *o)
{
	const char *file = o->key_file[0];
	char why[RGPU_WHY_MAX], host[128] = "", addr[RGPU_ADDR_TEXT_MAX];
	struct rgpu_addr at = o->listen;
	struct rgpu_key key;
	int err = rgpu_key_create(file, &key, why);
	bool made = !err;

	if (err == -EEXIST)
		err = rgpu_key_load(file, &key, why);
	if (err) {
		fprintf(stderr, "rgpu-server: %s\n", why);
		return 1;
	}
	/* Clients elsewhere need this machine's name, not the address that it listens on. */
	if (!rgpu_addr_is_loopback(&at) && !gethostname(host, sizeof(host) - 1))
		snprintf(at.host, sizeof(at.host), "%s", host);
	rgpu_addr_text(&at, addr);
	printf("# %s key %s (id %s). It is the right to use this machine's GPUs: copy it to the client over a safe way\n"
	       "# (scp), for its owner alone (mode 0600). At the client, either through /dev/rgpu0:\n"
	       "rgpu-proxy --server %s --key %s\n"
	       "# or, where no kernel module can be loaded, directly from the program:\n"
	       "export RGPU_SERVER=%s RGPU_KEY=%s\n",
	       made ? "Made the" : "There is the", file, key.id, addr, file, addr, file);
	if (rgpu_addr_is_loopback(&o->listen))
		printf("# Clients on other machines reach the server only when it listens for them: --listen 0.0.0.0:%u (and "
		       "here: --pair\n"
		       "# with the same --listen).\n",
		       o->listen.port);
	rgpu_key_wipe(&key);
	return 0;
}
