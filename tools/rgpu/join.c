// SPDX-License-Identifier: MIT
/* rgpu join: makes this machine a client of a server, from the one line that rgpu-server --pair printed there. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <openssl/crypto.h>
#include "lib/clock.h"
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"
#include "usermode-proxy/config.h"
#include "usermode-proxy/control.h"

#define KEY_FILE  "/etc/rgpu/proxy.key"
#define ONLINE_MS 30000

static const char help[] =
	"usage: rgpu join [--no-check] [--root DIR] {HOST:PORT#TOKEN | -}\n\n"
	"Makes this machine a client of the GPUs at HOST: asks the server whether the token is right, writes " PROXY_CONF "\n"
	"and " KEY_FILE ", loads the module, starts rgpu-proxy and waits until the devices are there. HOST:PORT#TOKEN is what\n"
	"rgpu-server --pair printed there; - reads it from stdin, so that it stands in no process list.\n\n"
	"  --no-check   write without asking the server, which may be down\n"
	"  --root DIR   write below DIR, for an image that is not running; start nothing\n\n"
	"Exit status: 0; 1 something failed; 2 wrong usage.\n";

struct join {
	bool check;
	struct rgpu_addr server;
	struct rgpu_key key;
};

__attribute__((format(printf, 2, 3))) static int fail(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("rgpu join: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return status;
}

/* HOST:PORT#TOKEN, or the whole line "rgpu join HOST:PORT#TOKEN". */
static int parse(const char *text, struct join *j, char why[RGPU_WHY_MAX])
{
	char addr[RGPU_ADDR_TEXT_MAX], file[RGPU_KEY_TEXT_MAX];
	const char *token, *last;
	size_t len;
	int err;

	/* What is not understood may be the token: it is not repeated, for terminals and logs keep what they show. */
	last = strrchr(text, ' ');
	text = last ? last + 1 : text;
	token = strchr(text, '#');
	if (!token)
		return rgpu_why(why, -EINVAL,
				"there is no # in it: it has to be HOST:PORT#TOKEN, as rgpu-server --pair prints it");
	len = token - text;
	if (len >= sizeof(addr))
		return rgpu_why(why, -EINVAL, "the host's name is too long");
	memcpy(addr, text, len);
	addr[len] = 0;
	err = rgpu_addr_parse(addr, false, &j->server, why);
	if (err)
		return err;
	if (strlen(token + 1) != 2 * RGPU_KEY_LEN)
		return rgpu_why(why, -EINVAL, "the token behind # has %zu characters instead of %d: copy the whole line again",
				strlen(token + 1), 2 * RGPU_KEY_LEN);
	snprintf(file, sizeof(file), "%s\n%s\n", RGPU_KEY_FILE_MAGIC, token + 1);
	err = rgpu_key_parse(file, &j->key, why);
	OPENSSL_cleanse(file, sizeof(file));
	return err ? rgpu_why(why, err, "the token behind # is not one: %d hex digits; copy the line again", 2 * RGPU_KEY_LEN)
		   : 0;
}

/* What to do when the server did not take us. */
static const char *next_step(const struct join *j, int err)
{
	struct addrinfo *list;

	if (getaddrinfo(j->server.host, NULL, NULL, &list))
		return "put an address of that machine, or a name that this machine finds, in the place of the name";
	freeaddrinfo(list);
	return rgpu_ctl_retryable(err)
		       ? "start the server and let it listen for this machine (listen = 0.0.0.0:7478 in its server.conf), or "
			 "--no-check"
		       : "print the line again there with rgpu-server --pair, and copy all of it";
}

/* Asks the server, before anything is changed here. */
static int ask(const struct join *j)
{
	struct rgpu_auth auth = {.kind = RGPU_AUTH_KEY, .key = j->key};
	struct rgpu_ctl *c = rgpu_ctl_new(&j->server, &auth, "rgpu join " RGPU_VERSION);
	struct rgpu_devices list = {0};
	struct rgpu_welcome w;
	char why[RGPU_WHY_MAX];
	int err = c ? rgpu_ctl_hello(c, &w, why) : rgpu_why(why, -ENOMEM, "no memory");

	if (!err)
		err = rgpu_ctl_devices(c, &list, why);
	if (err) {
		fail(1, "%s", why);
		fail(1, "nothing was changed; next: %s", next_step(j, err));
	}
	for (unsigned i = 0; i < list.n; i++)
		printf("%s: GPU %u, %s, %.1f GiB\n", j->server.host, i, list.entry[i]->name,
		       list.entry[i]->mem_total / (double)(1 << 30));
	if (!err)
		rgpu_devices_free(&list);
	if (c)
		rgpu_ctl_free(c);
	rgpu_auth_free(&auth);
	return err ? 1 : 0;
}

/* What an earlier join wrote stays beside, as .old. */
static int put(const char *path, const char *text, unsigned mode, const char *user)
{
	char old[64];
	int err;

	snprintf(old, sizeof(old), "%s.old", path);
	unlink(sys_path(old));
	if (link(sys_path(path), sys_path(old)) && errno != ENOENT)
		return fail(1, "%s: %s", sys_path(old), strerror(errno));
	err = sys_write(path, text, mode, user);
	return err ? fail(1, "cannot write %s: %s", sys_path(path), strerror(-err)) : 0;
}

static int write_files(const struct join *j)
{
	char text[512], key[RGPU_KEY_TEXT_MAX], addr[RGPU_ADDR_TEXT_MAX];
	int r;

	mkdir(sys_path("/etc"), 0755);
	if (mkdir(sys_path("/etc/rgpu"), 0755) && errno != EEXIST)
		return fail(1, "%s: %s", sys_path("/etc/rgpu"), strerror(errno));
	rgpu_addr_text(&j->server, addr);
	snprintf(text, sizeof(text),
		 "; Written by rgpu join. rgpu-proxy.conf(5) has every setting; after a change: systemctl reload rgpu-proxy\n"
		 "[proxy]\nserver = %s\nkey = " KEY_FILE "\nweb = 7479\n",
		 addr);
	rgpu_key_text(&j->key, key);
	r = put(KEY_FILE, key, 0600, PROXY_USER);
	OPENSSL_cleanse(key, sizeof(key));
	return r ? r : put(PROXY_CONF, text, 0644, NULL);
}

/* How many of /dev/rgpuN have a GPU now. */
static unsigned online(bool print)
{
	DIR *d = opendir("/sys/class/rgpu");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		char path[320];
		const char *state, *name;

		if (strncmp(e->d_name, "rgpu", 4) || e->d_name[4] < '0' || e->d_name[4] > '9')
			continue;
		snprintf(path, sizeof(path), "/sys/class/rgpu/%s/state", e->d_name);
		state = sys_line(path);
		if (!state || strcmp(state, "online"))
			continue;
		n++;
		snprintf(path, sizeof(path), "/sys/class/rgpu/%s/name", e->d_name);
		name = sys_line(path);
		if (print)
			printf("/dev/%s: %s\n", e->d_name, name ? name : "");
	}
	if (d)
		closedir(d);
	return n;
}

static int step(const char *const argv[])
{
	char out[1024];
	int status = sys_run(argv, out, sizeof(out));

	if (!status)
		return 0;
	if (status == 127)
		return fail(1, "there is no %s here", argv[0]);
	fputs(out, stderr);
	return fail(1, "%s %s %s failed (above)", argv[0], argv[1], argv[2] ? argv[2] : "");
}

static int start(bool must_come)
{
	int64_t deadline = rgpu_deadline(ONLINE_MS);

	if (access("/sys/module/rgpu", F_OK) && step((const char *const[]){"modprobe", "rgpu", NULL})) {
		fail(1, "the files are written, but the module is not loaded; next: rgpu doctor");
		return 1;
	}
	if (!sys_has_systemd()) {
		printf("No systemd runs here: start \"rgpu-proxy\" as the user " PROXY_USER " or root.\n");
		return 0;
	}
	if (step((const char *const[]){"systemctl", "enable", "-q", "rgpu-proxy", NULL}) ||
	    step((const char *const[]){"systemctl", "restart", "rgpu-proxy", NULL}))
		return fail(1, "the files are written, but rgpu-proxy does not run; next: rgpu doctor");
	while (must_come && !online(false) && rgpu_ms_left(deadline))
		usleep(50000);
	if (!online(true) && must_come)
		return fail(1, "rgpu-proxy runs, but no device came within %d s; next: rgpu doctor", ONLINE_MS / 1000);
	printf("Members of the group " RGPU_GROUP " may use them: usermod -aG " RGPU_GROUP " USER\n");
	return 0;
}

int cmd_join(int argc, char **argv)
{
	static const struct option options[] = {
		{"no-check", no_argument, NULL, 'n'},
		{"root", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	char why[RGPU_WHY_MAX], line[512];
	struct join j = {.check = true};
	const char *text;
	int c, r;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			j.check = false;
			break;
		case 'r':
			sys_root = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs(help, stderr);
			return 2;
		}
	}
	if (optind + 1 != argc) {
		fputs(help, stderr);
		return 2;
	}
	text = argv[optind];
	if (!strcmp(text, "-")) {
		if (!fgets(line, sizeof(line), stdin))
			return fail(2, "stdin holds no HOST:PORT#TOKEN");
		for (size_t n = strlen(line); n && strchr(" \t\r\n", line[n - 1]);)
			line[--n] = 0;
		text = line;
	}
	r = parse(text, &j, why);
	OPENSSL_cleanse(line, sizeof(line));
	if (r)
		return fail(2, "%s", why);
	if (geteuid() && !*sys_root)
		return fail(
			1, "it writes to /etc/rgpu and starts a service: run it as root (sudo rgpu join -, then paste the line)");
	r = j.check ? ask(&j) : 0;
	if (!r)
		r = write_files(&j);
	rgpu_key_wipe(&j.key);
	if (r || *sys_root)
		return r;
	return start(j.check);
}
