// SPDX-License-Identifier: MIT
/* rgpu-proxy's command line and configuration file. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "lib/conf.h"
#include "lib/log.h"
#include "usermode-proxy/config.h"

static const char usage[] =
	"usage: rgpu-proxy [--config FILE]\n"
	"       rgpu-proxy --server HOST[:PORT] {--key FILE | --tls-cert FILE --tls-key FILE --tls-ca FILE} "
	"[--ctl DEVICE]\n"
	"       rgpu-proxy --check-config [--config FILE]\n"
	"Serves /dev/rgpuN of this machine with the GPUs of the rgpu-server at HOST.\n"
	"  --server HOST[:PORT]  the server; default port %d\n"
	"  --key FILE            the key that rgpu-server --pair made there\n"
	"  --tls-cert FILE, --tls-key FILE\n"
	"                        this machine's certificate and its key, instead of the server's key\n"
	"  --tls-ca FILE         the authorities of which the server's certificate has to be\n"
	"  --auth key|cert       which of both is used when both are there; plaintext: neither, and no TLS, to a server "
	"on this machine\n"
	"  --config FILE         [proxy] and lines \"server = …\", \"key = …\", \"ctl = …\"; the command "
	"line comes first. Without\n"
	"                        this, --server and --key: " PROXY_CONF "\n"
	"  --check-config        tell what is wrong in the configuration, line by line, and end\n"
	"  --ctl DEVICE          default /dev/rgpu-ctl\n"
	"  --web PORT            a page and metrics at http://localhost:PORT/; 0 takes a free port\n"
	"  --compress MODE       auto (default: where it pays), off, lz4 or zstd: of what goes over the link\n"
	"  --foreground          stay in the foreground, which it always does\n"
	"SIGHUP reads the configuration again; running programs go on.\n";

static int put(char *dst, size_t room, const char *value, const char *name, char why[RGPU_WHY_MAX])
{
	if (strlen(value) >= room)
		return rgpu_why(why, -EINVAL, "%s is too long", name);
	strcpy(dst, value);
	return 0;
}

static int set(struct proxy_texts *t, const char *name, const char *value, bool over, char why[RGPU_WHY_MAX])
{
	const struct {
		const char *name;
		char *dst;
		size_t room;
	} at[] = {{"server", t->server, sizeof(t->server)},
		  {"key", t->key, sizeof(t->key)},
		  {"ctl", t->ctl, sizeof(t->ctl)},
		  {"web", t->web, sizeof(t->web)},
		  {"tls-cert", t->tls_cert, sizeof(t->tls_cert)},
		  {"tls-key", t->tls_key, sizeof(t->tls_key)},
		  {"tls-ca", t->tls_ca, sizeof(t->tls_ca)},
		  {"auth", t->auth, sizeof(t->auth)},
		  {"compress", t->compress, sizeof(t->compress)}};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (!strcmp(name, at[i].name))
			return over || !*at[i].dst ? put(at[i].dst, at[i].room, value, name, why) : 0;
	return rgpu_why(
		why, -EINVAL,
		"unknown setting \"%.40s\"; there are server, key, tls-cert, tls-key, tls-ca, auth, ctl, web and compress", name);
}

/* The page's: a number, or nothing. */
static int port(const char *text, int *out, char why[RGPU_WHY_MAX])
{
	char *end;
	long v = strtol(text, &end, 10);

	*out = *text ? (int)v : WEB_OFF;
	return *end || v < 0 || v > 65535 ? rgpu_why(why, -EINVAL, "web: \"%.8s\" is no port; 0 takes a free one", text) : 0;
}

static int conf_set(struct proxy_texts *t, const char *name, const char *value, char why[RGPU_WHY_MAX])
{
	struct proxy_texts trial = *t;
	struct rgpu_addr addr;
	enum rgpu_pack_mode mode;
	int web;
	int err = set(&trial, name, value, false, why);

	if (!err && !strcmp(name, "server"))
		err = rgpu_addr_parse(value, false, &addr, why);
	if (!err && !strcmp(name, "web"))
		err = port(value, &web, why);
	if (!err && !strcmp(name, "compress"))
		err = rgpu_pack_mode(value, &mode, why);
	if (!err)
		*t = trial;
	return err;
}

struct reading {
	struct proxy_texts *t;
	void (*bad)(struct proxy_texts *t, const char *path, int line, const char *why);
};

static int reading_set(void *arg, const char *name, const char *value, char why[RGPU_WHY_MAX])
{
	return conf_set(((struct reading *)arg)->t, name, value, why);
}

static void reading_bad(void *arg, const char *path, int line, const char *why)
{
	struct reading *r = arg;

	r->bad(r->t, path, line, why);
}

int proxy_conf_read(const char *path, struct proxy_texts *out,
		    void (*bad)(struct proxy_texts *out, const char *path, int line, const char *why), char why[RGPU_WHY_MAX])
{
	struct reading r = {out, bad};
	struct rgpu_conf conf = {.section = "proxy", .set = reading_set, .bad = reading_bad, .arg = &r};

	return rgpu_conf_read(&conf, path, why);
}

static void tell(struct proxy_texts *t, const char *path, int line, const char *why)
{
	(void)t;
	rgpu_err("%s:%d: %s", path, line, why);
}

static int read_file(struct proxy_texts *t, const char *path, char why[RGPU_WHY_MAX])
{
	int n = proxy_conf_read(path, t, tell, why);

	if (n > 0)
		return rgpu_why(why, -EINVAL, "%d line%s of %.150s cannot be used; mend %s and start again", n, n == 1 ? "" : "s",
				path, n == 1 ? "it" : "them");
	return n;
}

const char *const proxy_auth_names[RGPU_AUTH_SETTINGS] = {"--key", "--tls-cert", "--tls-key", "--tls-ca", "--auth"};

void proxy_auth_texts(const struct proxy_texts *t, const char *text[RGPU_AUTH_SETTINGS])
{
	text[RGPU_AUTH_SET_KEY] = t->key;
	text[RGPU_AUTH_SET_TLS_CERT] = t->tls_cert;
	text[RGPU_AUTH_SET_TLS_KEY] = t->tls_key;
	text[RGPU_AUTH_SET_TLS_CA] = t->tls_ca;
	text[RGPU_AUTH_SET_KIND] = t->auth;
}

static int take(const struct proxy_texts *t, struct proxy_config *out, char why[RGPU_WHY_MAX])
{
	const char *auth[RGPU_AUTH_SETTINGS];
	char inner[RGPU_WHY_MAX];
	int err;

	proxy_auth_texts(t, auth);
	if (!*t->server)
		return rgpu_why(why, -EINVAL, "no server: --server HOST:PORT says where rgpu-server listens");
	err = rgpu_addr_parse(t->server, false, &out->server, inner);
	if (!err && rgpu_auth_kind(auth, proxy_auth_names, why) < 0)
		return -EINVAL;
	if (err)
		return rgpu_why(why, err, "--server: %.200s", inner);
	err = port(t->web, &out->web, why);
	if (err)
		return err;
	out->compress = RGPU_PACK_AUTO;
	err = *t->compress ? rgpu_pack_mode(t->compress, &out->compress, why) : 0;
	if (err)
		return err;
	strcpy(out->ctl, *t->ctl ? t->ctl : "/dev/rgpu-ctl");
	err = rgpu_auth_load(auth, proxy_auth_names, &out->auth, why);
	return err ? err : rgpu_auth_fits(&out->auth, &out->server, why);
}

int proxy_config(int argc, char **argv, struct proxy_config *out, char why[RGPU_WHY_MAX])
{
	static const struct option options[] = {
		{"server", required_argument, NULL, 's'},
		{"key", required_argument, NULL, 'k'},
		{"config", required_argument, NULL, 'c'},
		{"ctl", required_argument, NULL, 'd'},
		{"web", required_argument, NULL, 'w'},
		{"foreground", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{"check-config", no_argument, NULL, 'C'},
		{"tls-cert", required_argument, NULL, 't'},
		{"tls-key", required_argument, NULL, 'T'},
		{"tls-ca", required_argument, NULL, 'a'},
		{"auth", required_argument, NULL, 'A'},
		{"compress", required_argument, NULL, 'z'},
		{NULL, 0, NULL, 0},
	};
	static const char *const names[] = {
		['s'] = "server",  ['k'] = "key",    ['d'] = "ctl",  ['w'] = "web",	['t'] = "tls-cert",
		['T'] = "tls-key", ['a'] = "tls-ca", ['A'] = "auth", ['z'] = "compress"};
	const char *file = NULL;
	bool check_only = false;
	struct proxy_texts t = {0};
	int c, err = 0;

	opterr = 0;
	optind = 1;
	while (!err && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
		case 'k':
		case 'd':
		case 'w':
		case 't':
		case 'T':
		case 'a':
		case 'A':
		case 'z':
			err = set(&t, names[c], optarg, true, why);
			break;
		case 'c':
			file = optarg;
			break;
		case 'C':
			check_only = true;
			break;
		case 'f':
			break;
		case 'h':
			printf(usage, RGPU_DEFAULT_PORT);
			return 1;
		case 'V':
			printf("rgpu-proxy " RGPU_VERSION ", protocol %d.%d, module interface %d.%d\n", RGPU_WIRE_MAJOR,
			       RGPU_WIRE_MINOR, RGPU_ABI_MAJOR, RGPU_ABI_MINOR);
			return 1;
		default:
			return rgpu_why(why, -EINVAL, "unknown option, or one without its value: %.60s; see rgpu-proxy --help",
					argv[optind - 1]);
		}
	}
	if (!err && optind < argc)
		err = rgpu_why(why, -EINVAL, "unexpected \"%.60s\"; see rgpu-proxy --help", argv[optind]);
	if (!file && !*t.server && !*t.key && !*t.tls_cert && !*t.auth && (check_only || !access(PROXY_CONF, F_OK)))
		file = PROXY_CONF;
	if (!err && file)
		err = read_file(&t, file, why);
	if (!err)
		err = take(&t, out, why);
	if (!err && check_only) {
		rgpu_auth_free(&out->auth);
		printf("%s is good\n", file ? file : "the command line");
		return 1;
	}
	return err;
}
