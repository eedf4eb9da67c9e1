/* SPDX-License-Identifier: MIT */
/* rgpu run: sets what a CUDA program needs to find rgpu, and becomes that program. */
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"
#include "lib/addr.h"
#include "lib/key.h"
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
	"usage: rgpu run [--server HOST:PORT --key FILE] [--] CMD [ARG …]\n\n"
	"Runs CMD with rgpu's libcuda, libcudart, libcublas, libnvrtc and libnvJitLink before all others: through\n"
	"/dev/rgpuN, or, with --server and --key, over a TLS connection of its own to an rgpu-server. The exit status is CMD's; "
	"125 when\n"
	"rgpu itself failed, 126 when CMD can't be run, 127 when it isn't found.\n";

__attribute__((format(printf, 1, 2))) static int fail(const char *fmt, ...)
{
	va_list ap;

	fputs("rgpu run: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return CMD_FAILED;
}

/* NAME=FIRST:what it was. */
static int prepend(const char *name, const char *first, char sep)
{
	const char *old = getenv(name);
	char *value;
	int r;

	if (!old || !*old)
		return setenv(name, first, 1);
	if (asprintf(&value, "%s%c%s", first, sep, old) < 0)
		return -1;
	r = setenv(name, value, 1);
	free(value);
	return r;
}

static bool any_device(void)
{
	glob_t g;
	bool found = !glob("/dev/rgpu[0-9]*", GLOB_NOSORT, NULL, &g);

	globfree(&g);
	return found;
}

/* The libraries read these two again; here a mistake in them gets its answer before the program starts. */
static int direct(const char *server, const char *key)
{
	char why[RGPU_WHY_MAX], full[PATH_MAX];
	struct rgpu_addr addr;
	struct rgpu_key k;

	if (!key)
		return fail("--server needs --key FILE, the key that rgpu-server --pair wrote");
	if (!server)
		return fail("--key is for --server HOST:PORT; without one the program goes through /dev/rgpu0 and needs no key");
	if (rgpu_addr_parse(server, false, &addr, why) || rgpu_key_load(key, &k, why))
		return fail("%s", why);
	rgpu_key_wipe(&k);
	if (!realpath(key, full)) /* the program may change its directory first */
		return fail("%s: %s", key, strerror(errno));
	if (setenv("RGPU_SERVER", server, 1) || setenv("RGPU_KEY", full, 1))
		return fail("%s", strerror(errno));
	return 0;
}

/*
 * LD_LIBRARY_PATH finds libcuda and libcublas. A program's own run path (wheels have one to their copies) beats it, so the others
 * are loaded beforehand: the loader then takes them by their names. They are small, and do nothing until they are called.
 */
static int preload(const char *dir)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libnvrtc.so.13", "libnvJitLink.so.13"};
	char path[PATH_MAX + 32];

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (access(path, R_OK))
			return fail("%s: %s", path, strerror(errno));
		if (prepend("LD_PRELOAD", path, ':'))
			return fail("%s", strerror(errno));
	}
	return prepend("LD_LIBRARY_PATH", dir, ':') ? fail("%s", strerror(errno)) : 0;
}

int cmd_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"server", required_argument, NULL, 's'},
		{"key", required_argument, NULL, 'k'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *server = NULL, *key = NULL;
	char dir[PATH_MAX];
	int c, r;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			server = optarg;
			break;
		case 'k':
			key = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			fputs(help, stderr);
			return CMD_FAILED;
		}
	}
	if (optind == argc)
		return fail("no command; rgpu run --help says how");
	if (server || key) {
		r = direct(server, key);
		if (r)
			return r;
	} else if (!getenv("RGPU_SERVER") && !any_device()) {
		return fail("there is no /dev/rgpu0: modprobe rgpu, or name a server with --server HOST:PORT --key FILE");
	}
	if (!sys_libs(dir))
		return fail("no libcuda.so.1 of ours beside this program, in ../lib/rgpu or ../lib: build or install it");

	r = preload(dir);
	if (r)
		return r;
	execvp(argv[optind], argv + optind);
	r = errno;
	fail("%s: %s", argv[optind], strerror(r));
	return r == ENOENT ? CMD_MISSING : CMD_CANT_RUN;
}
