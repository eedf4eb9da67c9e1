// SPDX-License-Identifier: MIT
/* rgpu-proxy's command line and configuration file. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rgpu.h>
#include <rgpu_wire.h>
#include "usermode-proxy/config.h"

static const char usage[] =
	"usage: rgpu-proxy --server HOST[:PORT] --key FILE [--config FILE] [--ctl DEVICE]\n"
	"Serves /dev/rgpuN of this machine with the GPUs of the rgpu-server at HOST.\n"
	"  --server HOST[:PORT]  the server; default port %d\n"
	"  --key FILE            the key that rgpu-server --pair made there\n"
	"  --config FILE         lines \"server = …\", \"key = …\", \"ctl = …\"; the command line comes first\n"
	"  --ctl DEVICE          default /dev/rgpu-ctl\n"
	"  --foreground          stay in the foreground, which it always does\n";

struct texts {
	char server[300], key[300], ctl[256];
};

static int put(char *dst, size_t room, const char *value, const char *name, char why[RGPU_WHY_MAX])
{
	if (strlen(value) >= room)
		return rgpu_why(why, -EINVAL, "%s is too long", name);
	strcpy(dst, value);
	return 0;
}

static int set(struct texts *t, const char *name, const char *value, bool over, char why[RGPU_WHY_MAX])
{
	const struct {
		const char *name;
		char *dst;
		size_t room;
	} at[] = {{"server", t->server, sizeof(t->server)}, {"key", t->key, sizeof(t->key)}, {"ctl", t->ctl, sizeof(t->ctl)}};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		if (!strcmp(name, at[i].name))
			return over || !*at[i].dst ? put(at[i].dst, at[i].room, value, name, why) : 0;
	return rgpu_why(why, -EINVAL, "unknown setting \"%.40s\"; there are server, key and ctl", name);
}

static char *trim(char *s)
{
	char *end;

	s += strspn(s, " \t");
	end = s + strlen(s);
	while (end > s && strchr(" \t\r\n", end[-1]))
		*--end = 0;
	return s;
}

static int read_file(struct texts *t, const char *path, char why[RGPU_WHY_MAX])
{
	char line[1024], inner[RGPU_WHY_MAX], *eq;
	FILE *f = fopen(path, "re");
	int err = 0;

	if (!f)
		return rgpu_why(why, -errno, "cannot read %s: %s", path, strerror(errno));
	for (int n = 1; !err && fgets(line, sizeof(line), f); n++) {
		char *name = trim(line);

		if (!*name || *name == '#')
			continue;
		eq = strchr(name, '=');
		if (!eq) {
			err = rgpu_why(why, -EINVAL, "%.120s, line %d: expected NAME = VALUE", path, n);
			break;
		}
		*eq = 0;
		err = set(t, trim(name), trim(eq + 1), false, inner);
		if (err)
			rgpu_why(why, err, "%.100s, line %d: %.120s", path, n, inner);
	}
	fclose(f);
	return err;
}

static int take(const struct texts *t, struct proxy_config *out, char why[RGPU_WHY_MAX])
{
	char inner[RGPU_WHY_MAX];
	int err;

	if (!*t->server)
		return rgpu_why(why, -EINVAL, "no server: --server HOST:PORT says where rgpu-server listens");
	if (!*t->key)
		return rgpu_why(why, -EINVAL, "no key: --key FILE is what rgpu-server --pair made");
	err = rgpu_addr_parse(t->server, false, &out->server, inner);
	if (err)
		return rgpu_why(why, err, "--server: %.200s", inner);
	strcpy(out->ctl, *t->ctl ? t->ctl : "/dev/rgpu-ctl");
	return rgpu_key_load(t->key, &out->key, why);
}

int proxy_config(int argc, char **argv, struct proxy_config *out, char why[RGPU_WHY_MAX])
{
	static const struct option options[] = {
		{"server", required_argument, NULL, 's'}, {"key", required_argument, NULL, 'k'},
		{"config", required_argument, NULL, 'c'}, {"ctl", required_argument, NULL, 'd'},
		{"foreground", no_argument, NULL, 'f'},	  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
	};
	static const char *const names[] = {['s'] = "server", ['k'] = "key", ['d'] = "ctl"};
	const char *file = NULL;
	struct texts t = {0};
	int c, err = 0;

	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
		case 'k':
		case 'd':
			err = set(&t, names[c], optarg, true, why);
			break;
		case 'c':
			file = optarg;
			break;
		case 'f':
			break;
		case 'h':
			printf(usage, RGPU_DEFAULT_PORT);
			return 1;
		case 'V':
			printf("rgpu-proxy 0.1, protocol %d.%d, module interface %d.%d\n", RGPU_WIRE_MAJOR, RGPU_WIRE_MINOR,
			       RGPU_ABI_MAJOR, RGPU_ABI_MINOR);
			return 1;
		default:
			return rgpu_why(why, -EINVAL, "unknown option, or one without its value: %.60s; see rgpu-proxy --help",
					argv[optind - 1]);
		}
	}
	if (!err && optind < argc)
		err = rgpu_why(why, -EINVAL, "unexpected \"%.60s\"; see rgpu-proxy --help", argv[optind]);
	if (!err && file)
		err = read_file(&t, file, why);
	return err ? err : take(&t, out, why);
}
