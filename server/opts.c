// SPDX-License-Identifier: MIT
/* rgpu-server's command line. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "server/opts.h"

static const char usage[] =
	"Usage: rgpu-server {--softgpu | --driver LIB} [--listen ADDR:PORT] --key FILE [options]\n"
	"       rgpu-server --pair --key FILE [--listen ADDR:PORT]\n"
	"\n"
	"Runs the CUDA calls of client programs, each program in a worker process of its own.\n"
	"\n"
	"  --softgpu           answer with softgpu, a GPU on CPU threads, for trying out and tests\n"
	"  --driver LIB        answer with this CUDA driver (default: the genuine libcuda.so.1)\n"
	"  --blas LIB          forward cuBLAS to this library (default: libcublas.so.13, or softgpu's)\n"
	"  --listen ADDR:PORT  where clients connect (default 127.0.0.1:7478; port 0 takes a free one)\n"
	"  --key FILE          the key that clients must have; may be given for several keys\n"
	"  --pair              make the key file if there is none, and print what to set up at the client\n"
	"  --grace SECONDS     how long a session waits for a client that was cut off (default 120)\n"
	"  --max-sessions N    refuse more client programs than this (default 256)\n"
	"  --state-dir DIR     where the workers' sockets lie, so that a restarted server finds them again\n"
	"  --foreground        stay in the foreground: the default, for unit files that say so\n"
	"  --verbose           also log connections\n"
	"\n"
	"SIGTERM ends all sessions and the server; SIGUSR1 ends the server alone: its workers wait for the next one.\n";

enum {
	OPT_SOFTGPU = 256,
	OPT_DRIVER,
	OPT_BLAS,
	OPT_LISTEN,
	OPT_KEY,
	OPT_PAIR,
	OPT_GRACE,
	OPT_MAX,
	OPT_STATE,
	OPT_FG,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_WORKER,
	OPT_DEVICES
};

static const struct option longs[] = {
	{"softgpu", no_argument, NULL, OPT_SOFTGPU},
	{"driver", required_argument, NULL, OPT_DRIVER},
	{"blas", required_argument, NULL, OPT_BLAS},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"key", required_argument, NULL, OPT_KEY},
	{"pair", no_argument, NULL, OPT_PAIR},
	{"grace", required_argument, NULL, OPT_GRACE},
	{"max-sessions", required_argument, NULL, OPT_MAX},
	{"state-dir", required_argument, NULL, OPT_STATE},
	{"foreground", no_argument, NULL, OPT_FG},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"help", no_argument, NULL, OPT_HELP},
	{"worker", required_argument, NULL, OPT_WORKER},
	{"devices", required_argument, NULL, OPT_DEVICES},
	{0},
};

static int complain(const char *fmt, const char *what)
{
	fprintf(stderr, "rgpu-server: ");
	fprintf(stderr, fmt, what);
	fprintf(stderr, "; see rgpu-server --help\n");
	return 2;
}

/* A whole number from @min to @max, or −1. */
static long number(const char *text, long min, long max)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	return errno || end == text || *end || v < min || v > max ? -1 : v;
}

/* softgpu's libraries lie in ../lib beside the executable (as built) or in ../lib/rgpu (as installed), nowhere else. */
static int find_softgpu(struct server_opts *o)
{
	static const char *const where[] = {"lib", "lib/rgpu"};
	char exe[400], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return complain("cannot find my own executable in /proc%s", "");
	exe[n] = 0;
	for (int up = 0; up < 2; up++) {
		slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
	}
	for (unsigned i = 0; i < sizeof(where) / sizeof(*where); i++) {
		snprintf(o->driver, sizeof(o->driver), "%s/%s/libsoftgpu.so", exe, where[i]);
		if (access(o->driver, R_OK))
			continue;
		if (!*o->blas)
			snprintf(o->blas, sizeof(o->blas), "%s/%s/libsoftcublas.so", exe, where[i]);
		return 0;
	}
	return complain("there is no libsoftgpu.so in %s/lib or lib/rgpu: build or install softgpu, or give --driver LIB", exe);
}

static int check(struct server_opts *o)
{
	if (o->mode == MODE_WORKER || o->mode == MODE_DEVICES)
		return 0;
	if (!o->nkeys)
		return complain("no key: give --key FILE (rgpu-server --pair --key FILE makes one)%s", "");
	if (o->mode == MODE_PAIR)
		return 0;
	if (o->softgpu && *o->driver)
		return complain("--softgpu and --driver exclude each other%s", "");
	if (o->softgpu)
		return find_softgpu(o);
	if (!*o->driver)
		strcpy(o->driver, "libcuda.so.1");
	return 0;
}

static int one(struct server_opts *o, int opt, const char *arg)
{
	char why[RGPU_WHY_MAX];
	long v;

	switch (opt) {
	case OPT_SOFTGPU:
		o->softgpu = true;
		return 0;
	case OPT_DRIVER:
		if (snprintf(o->driver, sizeof(o->driver), "%s", arg) >= (int)sizeof(o->driver) || !*arg)
			return complain("--driver %s: not a usable name", arg);
		return 0;
	case OPT_BLAS:
		if (snprintf(o->blas, sizeof(o->blas), "%s", arg) >= (int)sizeof(o->blas) || !*arg)
			return complain("--blas %s: not a usable name", arg);
		return 0;
	case OPT_LISTEN:
		return rgpu_addr_parse(arg, true, &o->listen, why) ? complain("--listen: %s", why) : 0;
	case OPT_KEY:
		if (o->nkeys == SERVER_KEYS_MAX)
			return complain("too many keys at %s", arg);
		o->key_file[o->nkeys++] = arg;
		return 0;
	case OPT_PAIR:
		o->mode = MODE_PAIR;
		return 0;
	case OPT_GRACE:
		v = number(arg, 1, 86400);
		o->grace_s = v;
		return v < 0 ? complain("--grace %s: expected seconds from 1 to 86400", arg) : 0;
	case OPT_MAX:
		v = number(arg, 1, 65536);
		o->max_sessions = v;
		return v < 0 ? complain("--max-sessions %s: expected a number from 1 to 65536", arg) : 0;
	case OPT_STATE:
		if (snprintf(o->state_dir, sizeof(o->state_dir), "%s", arg) >= STATE_DIR_MAX || !*arg)
			return complain("--state-dir %s: at most 63 characters, sockets are made in it", arg);
		return 0;
	case OPT_FG:
		return 0;
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	case OPT_HELP:
		fputs(usage, stdout);
		return 1;
	case OPT_WORKER:
	case OPT_DEVICES:
		o->mode = opt == OPT_WORKER ? MODE_WORKER : MODE_DEVICES;
		v = number(arg, 0, INT_MAX);
		o->fd = v;
		return v < 0 ? complain("%s is no file descriptor", arg) : 0;
	}
	return complain("wrong option%s", "");
}

int server_opts_parse(int argc, char **argv, struct server_opts *o)
{
	int opt, rc;

	*o = (struct server_opts){.grace_s = 120, .max_sessions = 256, .listen = {"127.0.0.1", RGPU_DEFAULT_PORT}};
	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == '?')
			return complain("%s is no option, or its argument is missing", argv[optind - 1]);
		rc = one(o, opt, optarg);
		if (rc)
			return rc;
	}
	if (optind < argc)
		return complain("%s is not understood", argv[optind]);
	return check(o);
}

void server_opts_softgpu_line(const struct server_opts *o, char *line, unsigned size)
{
	char addr[RGPU_ADDR_TEXT_MAX];

	rgpu_addr_text(&o->listen, addr);
	snprintf(line, size, "rgpu-server --softgpu --listen %s --key %s", addr, o->key_file[0]);
}
