// SPDX-License-Identifier: MIT
/* rgpu-server's command line, and its configuration file: the same settings by the same names. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/conf.h"
#include "lib/log.h"
#include "server/opts.h"

static const char usage[] =
	"Usage: rgpu-server [--config FILE] [options]\n"
	"       rgpu-server {--softgpu | --driver LIB} [--listen ADDR:PORT] {--key FILE | --tls-cert FILE …} [options]\n"
	"       rgpu-server --pair [--config FILE | --key FILE [--listen ADDR:PORT]]\n"
	"       rgpu-server --check-config [--config FILE]\n"
	"\n"
	"Runs the CUDA calls of client programs, each program in a worker process of its own.\n"
	"\n"
	"  --config FILE       [server] and lines NAME = VALUE, named as the options below; those on the command line come\n"
	"                      first. Without this and without --key: " SERVER_CONF "\n"
	"  --check-config      tell what is wrong in the configuration, line by line, and end\n"
	"  --softgpu           answer with softgpu, a GPU on CPU threads, for trying out and tests\n"
	"  --driver LIB        answer with this CUDA driver (default: the genuine libcuda.so.1)\n"
	"  --blas LIB          forward cuBLAS to this library (default: libcublas.so.13, or softgpu's)\n"
	"  --nvml LIB          read temperature, power and the like from this NVML (default: libnvidia-ml.so.1)\n"
	"  --listen ADDR:PORT  where clients connect (default 127.0.0.1:7478; port 0 takes a free one)\n"
	"  --key FILE          the key that clients must have; may be given for several keys\n"
	"  --tls-cert FILE     the server's certificate, for clients with certificates, beside or instead of keys\n"
	"  --tls-key FILE      its key\n"
	"  --tls-ca FILE       the authorities of which the clients' certificates have to be\n"
	"  --tls-crl FILE      lists of revoked ones, of each of these authorities (default: none is revoked)\n"
	"  --plaintext         also take clients on this machine's loopback addresses without TLS or any proof: every user of\n"
	"                      this machine\n"
	"  --pair              make the key file if there is none, and print the line for the client: rgpu join …\n"
	"  --grace SECONDS     how long a session waits for a client that was cut off (default 120)\n"
	"  --direct-grace SECONDS\n"
	"                      the same for a direct program whose connection was closed, as by its end (default 2)\n"
	"  --cache-mib MIB     memory for uploads that come again, so that they need not be sent (default 512; 0: none)\n"
	"  --drain SECONDS     how long running programs have to end by themselves when the server is stopped (default 5)\n"
	"  --compress MODE     auto (default: where it pays), off, lz4 or zstd: of what goes over the link\n"
	"  --max-sessions N    refuse more client programs than this (default 256)\n"
	"  --client \"NAME devices=0,2 mem=MIB session-mem=MIB sessions=N priority=low\"\n"
	"                      what a client may use, named by its key's id or its certificate's name, or *: of\n"
	"                      those without a line of their own\n"
	"  --worker-user USER  whose rights the workers have when the server is root's (default: root's, without capabilities)\n"
	"  --state-dir DIR     where the workers' sockets lie, so that a restarted server finds them again\n"
	"  --foreground        stay in the foreground: the default, for unit files that say so\n"
	"  --verbose           also log connections\n"
	"  --web PORT          a page and metrics at http://localhost:PORT/ (0 takes a free port; default: none)\n"
	"\n"
	"SIGHUP reads the configuration again; running programs go on. SIGTERM lets running programs end (see\n"
	"--drain), then ends all sessions and the server; a second one does so at once, and so does SIGINT. SIGUSR1 ends the "
	"server\n"
	"alone: its workers wait for the next one.\n";

/* From OPT_SOFTGPU up to OPT_PAIR they are settings of the configuration file, too. */
enum {
	OPT_CONFIG = 256,
	OPT_CHECK,
	OPT_SOFTGPU,
	OPT_DRIVER,
	OPT_BLAS,
	OPT_NVML,
	OPT_LISTEN,
	OPT_KEY,
	OPT_TLS_CERT,
	OPT_TLS_KEY,
	OPT_TLS_CA,
	OPT_TLS_CRL,
	OPT_PLAINTEXT,
	OPT_GRACE,
	OPT_DIRECT_GRACE,
	OPT_DRAIN,
	OPT_MAX,
	OPT_CACHE,
	OPT_COMPRESS,
	OPT_CLIENT,
	OPT_USER,
	OPT_STATE,
	OPT_VERBOSE,
	OPT_WEB,
	OPT_PAIR,
	OPT_FG,
	OPT_HELP,
	OPT_WORKER,
	OPT_DEVICES,
	OPT_TELEMETRY
};

static const struct option longs[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"softgpu", no_argument, NULL, OPT_SOFTGPU},
	{"driver", required_argument, NULL, OPT_DRIVER},
	{"blas", required_argument, NULL, OPT_BLAS},
	{"listen", required_argument, NULL, OPT_LISTEN},
	{"key", required_argument, NULL, OPT_KEY},
	{"tls-cert", required_argument, NULL, OPT_TLS_CERT},
	{"tls-key", required_argument, NULL, OPT_TLS_KEY},
	{"tls-ca", required_argument, NULL, OPT_TLS_CA},
	{"tls-crl", required_argument, NULL, OPT_TLS_CRL},
	{"plaintext", no_argument, NULL, OPT_PLAINTEXT},
	{"pair", no_argument, NULL, OPT_PAIR},
	{"grace", required_argument, NULL, OPT_GRACE},
	{"direct-grace", required_argument, NULL, OPT_DIRECT_GRACE},
	{"drain", required_argument, NULL, OPT_DRAIN},
	{"max-sessions", required_argument, NULL, OPT_MAX},
	{"compress", required_argument, NULL, OPT_COMPRESS},
	{"cache-mib", required_argument, NULL, OPT_CACHE},
	{"client", required_argument, NULL, OPT_CLIENT},
	{"worker-user", required_argument, NULL, OPT_USER},
	{"state-dir", required_argument, NULL, OPT_STATE},
	{"foreground", no_argument, NULL, OPT_FG},
	{"verbose", no_argument, NULL, OPT_VERBOSE},
	{"web", required_argument, NULL, OPT_WEB},
	{"help", no_argument, NULL, OPT_HELP},
	{"worker", required_argument, NULL, OPT_WORKER},
	{"devices", required_argument, NULL, OPT_DEVICES},
	{"telemetry", required_argument, NULL, OPT_TELEMETRY},
	{"nvml", required_argument, NULL, OPT_NVML},
	{0},
};

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
static int find_softgpu(struct server_opts *o, char why[RGPU_WHY_MAX])
{
	static const char *const where[] = {"lib", "lib/rgpu"};
	char exe[400], *slash;
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return rgpu_why(why, -ENOENT, "cannot find my own executable in /proc");
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
	return rgpu_why(why, -ENOENT,
			"there is no libsoftgpu.so in %.100s/lib or lib/rgpu: build or install softgpu, or give --driver LIB",
			exe);
}

static int check(struct server_opts *o, char why[RGPU_WHY_MAX])
{
	if (o->mode == MODE_WORKER || o->mode == MODE_DEVICES || o->mode == MODE_TELEMETRY)
		return 0;
	if (!o->nkeys && ((!o->tls.cert && !o->plaintext) || o->mode == MODE_PAIR))
		return rgpu_why(why, -EINVAL, "no key: give --key FILE (rgpu-server --pair --key FILE makes one)%s",
				o->mode == MODE_PAIR ? "" : ", or a certificate with --tls-cert");
	if ((o->tls.cert || o->tls.key || o->tls.ca || o->tls.crl) && !(o->tls.cert && o->tls.key && o->tls.ca))
		return rgpu_why(why, -EINVAL, "--tls-cert, --tls-key and --tls-ca belong together, and one of them is missing");
	if (o->mode == MODE_PAIR)
		return 0;
	if (o->softgpu && *o->driver)
		return rgpu_why(why, -EINVAL, "--softgpu and --driver exclude each other");
	if (o->softgpu)
		return find_softgpu(o, why);
	if (!*o->driver)
		strcpy(o->driver, "libcuda.so.1");
	return 0;
}

static int text(char *to, size_t room, const char *arg, const char *wrong, char why[RGPU_WHY_MAX])
{
	if (*arg && snprintf(to, room, "%s", arg) < (int)room)
		return 0;
	return rgpu_why(why, -EINVAL, "%.100s: %s", arg, wrong);
}

static int seconds(int *to, const char *arg, int min, char why[RGPU_WHY_MAX])
{
	*to = number(arg, min, 86400);
	return *to < 0 ? rgpu_why(why, -EINVAL, "%.40s: expected seconds from %d to 86400", arg, min) : 0;
}

/* What may stand in the configuration file, too. */
static int setting(struct server_opts *o, int opt, const char *arg, char why[RGPU_WHY_MAX])
{
	char inner[RGPU_WHY_MAX];
	unsigned i;
	long v;

	switch (opt) {
	case OPT_SOFTGPU:
		o->softgpu = true;
		return 0;
	case OPT_DRIVER:
		return text(o->driver, sizeof(o->driver), arg, "not a usable name", why);
	case OPT_BLAS:
		return text(o->blas, sizeof(o->blas), arg, "not a usable name", why);
	case OPT_NVML:
		return text(o->nvml, sizeof(o->nvml), arg, "not a usable name", why);
	case OPT_LISTEN:
		return rgpu_addr_parse(arg, true, &o->listen, inner) ? rgpu_why(why, -EINVAL, "%.230s", inner) : 0;
	case OPT_KEY:
		if (o->nkeys == SERVER_KEYS_MAX)
			return rgpu_why(why, -EINVAL, "%.100s is one key too many: %d at most", arg, SERVER_KEYS_MAX);
		o->key_file[o->nkeys++] = arg;
		return 0;
	case OPT_TLS_CERT:
		o->tls.cert = arg;
		return 0;
	case OPT_TLS_KEY:
		o->tls.key = arg;
		return 0;
	case OPT_TLS_CA:
		o->tls.ca = arg;
		return 0;
	case OPT_TLS_CRL:
		o->tls.crl = arg;
		return 0;
	case OPT_PLAINTEXT:
		o->plaintext = true;
		return 0;
	case OPT_GRACE:
		return seconds(&o->grace_s, arg, 1, why);
	case OPT_DIRECT_GRACE:
		return seconds(&o->direct_grace_s, arg, 1, why);
	case OPT_DRAIN:
		return seconds(&o->drain_s, arg, 0, why);
	case OPT_MAX:
		v = number(arg, 1, 65536);
		o->max_sessions = v;
		return v < 0 ? rgpu_why(why, -EINVAL, "%.40s: expected a number from 1 to 65536", arg) : 0;
	case OPT_COMPRESS:
		return rgpu_pack_mode(arg, &o->compress, why);
	case OPT_CACHE:
		v = number(arg, 0, 1 << 20);
		o->cache_mib = v;
		return v < 0 ? rgpu_why(why, -EINVAL, "%.40s: expected MiB from 0 to 1048576", arg) : 0;
	case OPT_CLIENT:
		if (o->nclients == CLIENTS_MAX)
			return rgpu_why(why, -EINVAL, "%.100s is one client too many: %d at most", arg, CLIENTS_MAX);
		if (client_limits_parse(arg, &o->client[o->nclients], inner))
			return rgpu_why(why, -EINVAL, "%.230s", inner);
		/* One that is known already is replaced, as by the command line. */
		for (i = 0; i < o->nclients && strcmp(o->client[i].name, o->client[o->nclients].name); i++)
			;
		o->client[i] = o->client[o->nclients];
		o->nclients += i == o->nclients;
		return 0;
	case OPT_USER:
		return text(o->worker_user, sizeof(o->worker_user), arg, "not a user's name", why);
	case OPT_STATE:
		return text(o->state_dir, STATE_DIR_MAX, arg, "at most 63 characters, sockets are made in it", why);
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	case OPT_WEB:
		v = number(arg, 0, 65535);
		o->web = v;
		return v < 0 ? rgpu_why(why, -EINVAL, "%.40s: expected a port, or 0 for a free one", arg) : 0;
	}
	return -ENOENT;
}

/* Of the command line alone. 0; 1 done; a negative errno. */
static int one(struct server_opts *o, int opt, const char *arg, char why[RGPU_WHY_MAX])
{
	char inner[RGPU_WHY_MAX];
	int err = setting(o, opt, arg, inner);

	if (!err)
		return 0;
	switch (opt) {
	case OPT_CONFIG: /* read beforehand */
	case OPT_CHECK:
	case OPT_FG:
		return 0;
	case OPT_PAIR:
		o->mode = MODE_PAIR;
		return 0;
	case OPT_HELP:
		fputs(usage, stdout);
		return 1;
	case OPT_WORKER:
	case OPT_DEVICES:
	case OPT_TELEMETRY:
		o->mode = opt == OPT_WORKER ? MODE_WORKER : opt == OPT_DEVICES ? MODE_DEVICES : MODE_TELEMETRY;
		o->fd = number(arg, 0, INT_MAX);
		return o->fd < 0 ? rgpu_why(why, -EINVAL, "%.40s is no file descriptor", arg) : 0;
	}
	for (const struct option *l = longs; l->name; l++)
		if (l->val == opt)
			return rgpu_why(why, err, "--%s: %.220s", l->name, inner);
	return rgpu_why(why, err, "%.250s", inner);
}

/* For the process's life, and known to belong to somebody. */
static char *keep(const char *value)
{
	static struct kept {
		struct kept *next;
		char text[];
	} * all;
	struct kept *k = malloc(sizeof(*k) + strlen(value) + 1);

	if (!k)
		return NULL;
	k->next = all;
	all = k;
	return strcpy(k->text, value);
}

/* One line of the configuration file: an option's name, and yes or no where the option has no argument. */
static int conf_set(void *arg, const char *name, const char *value, char why[RGPU_WHY_MAX])
{
	struct server_opts *o = arg, trial = *o;
	const struct option *l = longs;
	char *kept, inner[RGPU_WHY_MAX] = "";
	int on = 1, err;

	while (l->name && strcmp(l->name, name))
		l++;
	if (!l->name || l->val < OPT_SOFTGPU || l->val >= OPT_PAIR)
		return rgpu_why(why, -EINVAL, "unknown setting \"%.40s\"; man rgpu-server.conf lists them", name);
	if (l->has_arg == no_argument)
		on = rgpu_conf_bool(value);
	if (on < 0)
		return rgpu_why(why, -EINVAL, "%s = %.40s: expected yes or no", name, value);
	if (!on)
		return 0;
	kept = keep(value);
	err = kept ? setting(&trial, l->val, kept, inner) : -ENOMEM;
	if (err)
		return rgpu_why(why, err, "%s: %.200s", name, kept ? inner : strerror(ENOMEM));
	if (l->val == OPT_CLIENT && trial.nclients == o->nclients)
		return rgpu_why(why, -EEXIST, "client: %.63s has a line already; put both into one", value);
	*o = trial;
	return 0;
}

static void conf_bad(void *arg, const char *path, int line, const char *why)
{
	(void)arg;
	rgpu_err("%s:%d: %s", path, line, why);
}

/* The file, before the command line: that comes on top. The default one need not exist. 0, or a status for the process. */
static int read_conf(struct server_opts *o, const char *path, bool must)
{
	static const char *const many[] = {"key", "client", NULL};
	struct rgpu_conf conf = {.section = "server", .many = many, .set = conf_set, .bad = conf_bad, .arg = o};
	char why[RGPU_WHY_MAX];
	int n;

	if (!must && access(path, F_OK))
		return 0;
	n = rgpu_conf_read(&conf, path, why);
	if (!n) {
		o->conf = path;
		return 0;
	}
	if (n < 0)
		fprintf(stderr, "rgpu-server: %s\n", why);
	else
		fprintf(stderr, "rgpu-server: %d line%s of %s cannot be used; mend %s and start again\n", n, n == 1 ? "" : "s",
			path, n == 1 ? "it" : "them");
	return 2;
}

static int wrong(const char *why)
{
	fprintf(stderr, "rgpu-server: %s; see rgpu-server --help\n", why);
	return 2;
}

int server_opts_parse(int argc, char **argv, struct server_opts *o)
{
	const char *conf = NULL;
	bool key = false, check_only = false, hidden = false;
	char why[RGPU_WHY_MAX];
	int opt, rc;

	*o = (struct server_opts){.argc = argc,
				  .argv = argv,
				  .nvml = "libnvidia-ml.so.1",
				  .grace_s = 120,
				  .direct_grace_s = 2,
				  .drain_s = 5,
				  .web = WEB_OFF,
				  .max_sessions = 256,
				  .cache_mib = 512,
				  .listen = {"127.0.0.1", RGPU_DEFAULT_PORT}};
	opterr = 0;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == '?') {
			rgpu_why(why, -EINVAL, "%.100s is no option, or its argument is missing", argv[optind - 1]);
			return wrong(why);
		}
		if (opt == OPT_CONFIG)
			conf = optarg;
		check_only |= opt == OPT_CHECK;
		key |= opt == OPT_KEY || opt == OPT_TLS_CERT || opt == OPT_PLAINTEXT;
		hidden |= opt == OPT_WORKER || opt == OPT_DEVICES || opt == OPT_TELEMETRY || opt == OPT_HELP;
	}
	if (optind < argc) {
		rgpu_why(why, -EINVAL, "%.100s is not understood", argv[optind]);
		return wrong(why);
	}
	rc = 0;
	if (!hidden && (conf || !key))
		rc = read_conf(o, conf ? conf : SERVER_CONF, conf || check_only);
	if (rc)
		return rc;
	optind = 1;
	while (!rc && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1)
		rc = one(o, opt, optarg, why);
	if (!rc)
		rc = check(o, why);
	if (rc < 0)
		return wrong(why);
	if (!rc && check_only) {
		rc = server_opts_keys(o);
		if (!rc)
			printf("%s is good\n", o->conf ? o->conf : "the command line");
		return rc ? 2 : 1;
	}
	return rc;
}

int server_opts_keys(const struct server_opts *o)
{
	char why[RGPU_WHY_MAX];
	struct rgpu_cert *cert = NULL;
	struct rgpu_key key;
	int bad = 0;

	for (unsigned i = 0; i < o->nkeys; i++) {
		if (!rgpu_key_load(o->key_file[i], &key, why)) {
			rgpu_key_wipe(&key);
			continue;
		}
		fprintf(stderr, "rgpu-server: %s%s%s\n", why,
			access(o->key_file[i], F_OK) ? "; make a key with: rgpu-server --pair --key " : "",
			access(o->key_file[i], F_OK) ? o->key_file[i] : "");
		bad++;
	}
	if (o->tls.cert && rgpu_cert_load(&o->tls, true, &cert, why)) {
		fprintf(stderr, "rgpu-server: %s\n", why);
		bad++;
	} else if (o->tls.cert && rgpu_cert_days_left(cert) < 0) {
		fprintf(stderr, "rgpu-server: the certificate %s expired on %s: clients refuse it\n", o->tls.cert,
			rgpu_cert_until(cert));
		bad++;
	}
	rgpu_cert_free(cert);
	return bad;
}

void server_opts_softgpu_line(const struct server_opts *o, char *line, unsigned size)
{
	char addr[RGPU_ADDR_TEXT_MAX];

	rgpu_addr_text(&o->listen, addr);
	if (o->nkeys)
		snprintf(line, size, "rgpu-server --softgpu --listen %s --key %s", addr, o->key_file[0]);
	else if (!o->tls.cert)
		snprintf(line, size, "rgpu-server --softgpu --listen %s --plaintext", addr);
	else
		snprintf(line, size, "rgpu-server --softgpu --listen %s --tls-cert %s --tls-key %s --tls-ca %s", addr,
			 o->tls.cert, o->tls.key, o->tls.ca);
}
