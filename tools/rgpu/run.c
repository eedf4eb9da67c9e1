/* SPDX-License-Identifier: MIT */
/* rgpu run: sets what a CUDA program needs to find rgpu, and becomes that program. */
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/sys.h"
#include "lib/addr.h"
#include "lib/auth.h"
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
	"usage: rgpu run [--server HOST:PORT --key FILE] [--] CMD [ARG …]\n"
	"       rgpu run --server HOST:PORT --tls-cert FILE --tls-key FILE --tls-ca FILE [--] CMD [ARG …]\n\n"
	"Runs CMD with rgpu's libcuda, libcudart, libcublas, libnvrtc and libnvJitLink before all others: through\n"
	"/dev/rgpuN, or, with --server and a key or certificate, over a TLS connection of its own to an rgpu-server. --auth key\n"
	"or --auth cert says which is used when both are given; --auth plaintext goes without, and without TLS, to a server on\n"
	"this machine. The exit status is CMD's; 125 when rgpu itself failed, 126 when\n"
	"CMD can't be run, 127 when it isn't found.\n";

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

static const char *const names[RGPU_AUTH_SETTINGS] = {"--key", "--tls-cert", "--tls-key", "--tls-ca", "--auth"};

/* The libraries read these again; here a mistake in them gets its answer before the program starts. */
static int direct(const char *server, const char *const text[RGPU_AUTH_SETTINGS])
{
	static const char *const env[RGPU_AUTH_SETTINGS] = {"RGPU_KEY", "RGPU_TLS_CERT", "RGPU_TLS_KEY", "RGPU_TLS_CA", "RGPU_AUTH"};
	char why[RGPU_WHY_MAX], full[PATH_MAX];
	struct rgpu_addr addr;
	struct rgpu_auth auth;

	if (!server)
		return fail("a key or certificate is for --server HOST:PORT; without one the program goes through /dev/rgpu0 and "
			    "needs none");
	if (rgpu_addr_parse(server, false, &addr, why) || rgpu_auth_load(text, names, &auth, why) ||
	    rgpu_auth_fits(&auth, &addr, why))
		return fail("%s", why);
	rgpu_auth_free(&auth);
	if (setenv("RGPU_SERVER", server, 1))
		return fail("%s", strerror(errno));
	for (int i = 0; i < RGPU_AUTH_SETTINGS; i++) {
		bool file = i != RGPU_AUTH_SET_KIND;

		if (!text[i]) {
			unsetenv(env[i]); /* nor does another's come between */
			continue;
		}
		if (file && !realpath(text[i], full)) /* the program may change its directory first */
			return fail("%s: %s", text[i], strerror(errno));
		if (setenv(env[i], file ? full : text[i], 1))
			return fail("%s", strerror(errno));
	}
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
		{"tls-cert", required_argument, NULL, 't'},
		{"tls-key", required_argument, NULL, 'T'},
		{"tls-ca", required_argument, NULL, 'a'},
		{"auth", required_argument, NULL, 'A'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *server = NULL, *text[RGPU_AUTH_SETTINGS] = {NULL};
	bool any = false;
	char dir[PATH_MAX];
	int c, r;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			server = optarg;
			break;
		case 'k':
			text[RGPU_AUTH_SET_KEY] = optarg;
			break;
		case 't':
			text[RGPU_AUTH_SET_TLS_CERT] = optarg;
			break;
		case 'T':
			text[RGPU_AUTH_SET_TLS_KEY] = optarg;
			break;
		case 'a':
			text[RGPU_AUTH_SET_TLS_CA] = optarg;
			break;
		case 'A':
			text[RGPU_AUTH_SET_KIND] = optarg;
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
	for (int i = 0; i < RGPU_AUTH_SETTINGS; i++)
		any |= text[i] != NULL;
	if (server || any) {
		r = direct(server, text);
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
