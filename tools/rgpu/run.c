/* SPDX-License-Identifier: MIT */
/* rgpu run: sets what a CUDA program needs to find rgpu, and becomes that program. */
#include "tools/rgpu/cmd.h"
#include "tools/rgpu/direct.h"
#include "tools/rgpu/sys.h"
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: rgpu run [--fp16-uploads] [--server HOST:PORT --key FILE] [--] CMD [ARG …]\n"
	"       rgpu run --server HOST:PORT --tls-cert FILE --tls-key FILE --tls-ca FILE [--] CMD [ARG …]\n\n"
	"Runs CMD with rgpu's libcuda, libcudart, libcublas, libnvrtc and libnvJitLink before all others: through\n"
	"/dev/rgpuN, or, with --server and a key or certificate, over a TLS connection of its own to an rgpu-server. --auth key\n"
	"or --auth cert says which is used when both are given; --auth plaintext goes without, and without TLS, to a server on\n"
	"this machine. The exit status is CMD's; 125 when rgpu itself failed, 126 when\n"
	"CMD can't be run, 127 when it isn't found.\n\n"
	"  --fp16-uploads  copies of more than 32 KiB from host to device memory, whose length divides by 4, are taken for "
	"single\n"
	"                  precision and rounded to half on their way, which halves what is sent: only for programs that copy\n"
	"                  nothing else\n";

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
		DIRECT_OPTIONS, {"fp16-uploads", no_argument, NULL, 'H'}, {"help", no_argument, NULL, 'h'}, {0}};
	char dir[PATH_MAX], why[RGPU_WHY_MAX];
	struct direct direct = {NULL};
	int c, r;

	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (direct_option(&direct, c, optarg))
			continue;
		if (c == 'H') {
			if (setenv("RGPU_FP16_UPLOADS", "1", 1))
				return fail("%s", strerror(errno));
			continue;
		}
		fputs(help, c == 'h' ? stdout : stderr);
		return c == 'h' ? 0 : CMD_FAILED;
	}
	if (optind == argc)
		return fail("no command; rgpu run --help says how");
	if (direct_set(&direct, why))
		return fail("%s", why);
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
