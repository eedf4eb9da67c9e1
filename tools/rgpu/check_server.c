// SPDX-License-Identifier: MIT
/* rgpu doctor on the server, from here: its name, its port, its key, its version, its GPUs; and whether they are online here. */
#include <errno.h>
#include <glob.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tools/rgpu/doctor.h"
#include "tools/rgpu/sys.h"
#include "usermode-proxy/control.h"

#define CONNECT_MS 5000

/* A command there, or here when the server is this machine. */
static void fix_there(const struct doctor *d, struct finding *f, const char *command)
{
	if (*d->host)
		fix(f, "ssh %s %s", d->host, command);
	else
		fix(f, "%s", command);
}

static void look_name(struct doctor *d, struct finding *f)
{
	struct addrinfo *list;
	int err;

	if (!d->conf_good) {
		skip(f, "no server is configured");
		return;
	}
	err = getaddrinfo(d->cfg.server.host, NULL, NULL, &list);
	if (!err) {
		freeaddrinfo(list);
		good(f, "%s", d->cfg.server.host);
		return;
	}
	d->conf_good = false;
	bad(f, "there is no host %s: %s", d->cfg.server.host, gai_strerror(err));
	fix(f, "ssh GPUHOST rgpu-server --pair | rgpu join -   # GPUHOST: a name that this machine finds");
}

static void look_reached(struct doctor *d, struct finding *f)
{
	char why[RGPU_WHY_MAX], addr[RGPU_ADDR_TEXT_MAX];
	int fd;

	if (!d->conf_good) {
		skip(f, "no server is configured");
		return;
	}
	rgpu_addr_text(&d->cfg.server, addr);
	fd = rgpu_addr_connect(&d->cfg.server, CONNECT_MS, why);
	if (fd >= 0) {
		close(fd);
		d->reached = true;
		good(f, "%s", addr);
		return;
	}
	bad(f, "%s", why);
	fix_there(d, f, "systemctl restart rgpu-server");
}

static void look_known(struct doctor *d, struct finding *f)
{
	struct rgpu_devices list;
	struct rgpu_welcome w;
	struct rgpu_ctl *c;
	char why[RGPU_WHY_MAX];
	int err;

	if (!d->reached || !d->key_good) {
		skip(f, d->reached ? "the key or certificate cannot be read" : "the server is not reached");
		return;
	}
	c = rgpu_ctl_new(&d->cfg.server, &d->cfg.auth, "rgpu doctor " RGPU_VERSION);
	err = c ? rgpu_ctl_hello(c, &w, why) : rgpu_why(why, -ENOMEM, "no memory");
	if (!err)
		err = rgpu_ctl_devices(c, &list, why);
	if (!err) {
		d->known = true;
		d->gpus = list.n;
		good(f, "%s, %s, %u GPU%s", w.agent, w.driver, list.n, list.n == 1 ? "" : "s");
		rgpu_devices_free(&list);
	} else {
		bad(f, "%s", why);
		if (err == -EACCES && d->cfg.auth.kind == RGPU_AUTH_CERT)
			fix_there(d, f, "journalctl -u rgpu-server -n 20   # it says which certificate is wrong, and why");
		else if (err == -EACCES)
			fix_there(d, f, "rgpu-server --pair | rgpu join -");
		else if (err == -EPROTO)
			fix_there(
				d, f,
				"apt-get install --only-upgrade rgpu-server   # and rgpu-proxy, librgpu-cuda1, rgpu-utils here");
		else
			fix_there(d, f, "systemctl restart rgpu-server");
	}
	if (c)
		rgpu_ctl_free(c);
}

static void look_online(struct doctor *d, struct finding *f)
{
	unsigned n = 0;
	glob_t g;

	if (!d->loaded || (!d->known && !sys_in_container() && d->key_good)) {
		skip(f, "the module is not loaded, or the server does not answer");
		return;
	}
	if (!glob(sys_path("/sys/class/rgpu/rgpu[0-9]*/state"), 0, NULL, &g)) {
		for (size_t i = 0; i < g.gl_pathc; i++) {
			const char *state = sys_line(g.gl_pathv[i] + strlen(sys_root));

			n += state && !strcmp(state, "online");
		}
		globfree(&g);
	}
	if (n && (!d->known || n >= d->gpus)) {
		good(f, "%u", n);
		return;
	}
	if (!d->known) {
		bad(f, "no GPU stands behind any /dev/rgpuN");
		fix(f, "sudo rgpu doctor   # on the host: it sees the proxy and the server");
		return;
	}
	bad(f, "the server has %u GPU%s and takes us, but %u %s here: the proxy uses another configuration", d->gpus,
	    d->gpus == 1 ? "" : "s", n, n == 1 ? "is" : "are");
	fix(f, "systemctl restart rgpu-proxy   # running programs go on");
}

const struct check checks_server[] = {
	{"server-name", "the server's name is found", look_name},
	{"server-reached", "the server takes connections", look_reached},
	{"server-key", "it takes our key or certificate, speaks our version and has GPUs", look_known},
	{"devices-online", "its GPUs stand behind /dev/rgpuN", look_online},
	{0},
};
