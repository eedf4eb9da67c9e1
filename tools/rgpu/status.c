// SPDX-License-Identifier: MIT
/* rgpu status: the proxy, the devices and the programs on them, in the manner of `wg show`. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "shim/transport.h"
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"
#include "usermode-proxy/config.h"
#include "usermode-proxy/kern.h"

static const char help[] =
	"usage: rgpu status\n\n"
	"Shows the proxy with its server, each /dev/rgpuN with its GPU, and the programs that use them: all of them for root,\n"
	"your own otherwise. For memory and use of the GPUs: rgpu-smi.\n";

static bool tty;

static void head(const char *kind, const char *name)
{
	printf(tty ? "\033[1;32m%s\033[0m: \033[32m%s\033[0m\n" : "%s: %s\n", kind, name);
}

__attribute__((format(printf, 2, 3))) static void field(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf(tty ? "  \033[1m%s\033[0m: " : "  %s: ", name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void show_proxy(void)
{
	const char *there = sys_line("/sys/class/rgpu/rgpu-ctl/proxy"), *epoch = sys_line("/sys/class/rgpu/rgpu-ctl/epoch");
	char *argv[] = {"rgpu-proxy", "--config", PROXY_CONF, NULL}, why[RGPU_WHY_MAX], addr[RGPU_ADDR_TEXT_MAX],
	     pid[16] = "running";
	struct proxy_config cfg = {0};
	int n = sys_find_process("rgpu-proxy", NULL), err;

	if (n)
		snprintf(pid, sizeof(pid), "pid %d", n);
	head("proxy", there && *there == '1' ? pid : "not running (next: rgpu doctor)");
	err = access(PROXY_CONF, R_OK) ? -ENOENT : proxy_config(3, argv, &cfg, why);
	if (cfg.server.port) {
		rgpu_addr_text(&cfg.server, addr);
		field("server", "%s", addr);
	}
	if (!err && cfg.auth.kind == RGPU_AUTH_CERT)
		field("certificate", "%s, valid until %s", rgpu_cert_name(cfg.auth.cert), rgpu_cert_until(cfg.auth.cert));
	else if (!err && cfg.auth.kind == RGPU_AUTH_PLAIN)
		field("link", "plaintext");
	else if (!err)
		field("key", "%s", cfg.auth.key.id);
	if (epoch)
		field("epoch", "%s", epoch);
	rgpu_auth_free(&cfg.auth);
}

/* The proxy tells it to whoever may open a device. */
static void show_uploads(void)
{
	_Alignas(8) uint8_t buf[RGPU_CONTROL_MAX];
	struct rgpu_telemetry_ask ask = {.what = RGPU_TELEMETRY_UPLOADS};
	struct rgpu_telemetry_uploads u;
	struct rgpu_transport *t;
	int n;

	unsetenv("RGPU_SERVER");
	if (rgpu_transport_open(&t))
		return;
	memcpy(buf, &ask, sizeof(ask));
	n = rgpu_transport_control(t, RGPU_CONTROL_TELEMETRY, buf, sizeof(ask), sizeof(buf));
	rgpu_transport_close(t);
	/* An older proxy does not know. */
	if (n < (int)sizeof(u))
		return;
	memcpy(&u, buf, sizeof(u));
	field("sent", "%.1f MiB", u.sent_bytes / (double)(1 << 20));
	field("known to the server", "%.1f MiB in %llu blocks, not sent; %llu were gone", u.saved_bytes / (double)(1 << 20),
	      (unsigned long long)u.named, (unsigned long long)u.needed);
	field("compressed", "%.1f MiB to %.1f", u.pack_in / (double)(1 << 20), u.pack_out / (double)(1 << 20));
}

static void show_device(const char *name)
{
	static const char *const files[] = {"name", "uuid", "mem_total", "state", "sessions", "links_down", "policy"};
	char path[320];

	putchar('\n');
	snprintf(path, sizeof(path), "/dev/%s", name);
	head("device", path);
	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++) {
		const char *v;

		snprintf(path, sizeof(path), "/sys/class/rgpu/%s/%s", name, files[i]);
		v = sys_line(path);
		if (!v || !*v || (!strcmp(files[i], "links_down") && !strcmp(v, "0")))
			continue;
		if (!strcmp(files[i], "links_down"))
			field("without a connection", "%s of the sessions", v);
		else if (!strcmp(files[i], "mem_total"))
			field("memory", "%.1f GiB", strtoull(v, NULL, 0) / (double)(1 << 30));
		else
			field(files[i], "%s", v);
	}
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name + 4) - atoi((*b)->d_name + 4);
}

static int is_device(const struct dirent *e)
{
	return !strncmp(e->d_name, "rgpu", 4) && e->d_name[4] >= '0' && e->d_name[4] <= '9';
}

static void show_session(const struct kern_session *s)
{
	static const char *const states[] = {"starting", "live", "waits for the next proxy", "failed"};
	char name[32];

	putchar('\n');
	snprintf(name, sizeof(name), "%llu", (unsigned long long)s->id);
	head("session", name);
	field("program", "%s, pid %u, uid %u", s->comm, s->pid, s->uid);
	printf(tty ? "  \033[1mdevices\033[0m:" : "  devices:");
	for (unsigned i = 0; i < 64; i++)
		if (s->devices >> i & 1)
			printf(" rgpu%u", i);
	putchar('\n');
	if (s->reason)
		field("state", "%s: %s", states[s->state & 3], strerror(-s->reason));
	else if (s->link_down)
		field("state", "live, but without a connection to the server for %llu s", (unsigned long long)s->down_ms / 1000);
	else
		field("state", "%s", states[s->state & 3]);
	field("pinned memory", "%.1f MiB", s->bo_bytes / (double)(1 << 20));
	field("channels", "%u", s->nchannels);
}

int cmd_status(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct kern_session *ses = NULL;
	struct dirent **dev;
	char why[RGPU_WHY_MAX];
	unsigned nses = 0;
	struct kern *nl;
	int c, n, err;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		fputs(help, c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : 2;
	}
	if (optind < argc) {
		fputs(help, stderr);
		return 2;
	}
	tty = isatty(STDOUT_FILENO);
	err = kern_open(&nl, why);
	if (err) {
		fprintf(stderr, "rgpu status: %s\n", why);
		return 1;
	}
	show_proxy();
	show_uploads();
	n = scandir("/sys/class/rgpu", &dev, is_device, by_number);
	for (int i = 0; i < n; i++)
		show_device(dev[i]->d_name);
	err = kern_sessions(nl, &ses, &nses, why);
	if (err)
		fprintf(stderr, "rgpu status: %s\n", why);
	for (unsigned i = 0; i < nses; i++)
		show_session(&ses[i]);
	free(ses);
	kern_close(nl);
	return err ? 1 : 0;
}
