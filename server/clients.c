// SPDX-License-Identifier: MIT
/* What each client may use: "NAME devices=0,1 mem=MIB session-mem=MIB sessions=N priority=low", by the names of keys and
 * certificates. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rgpu_wire.h>
#include "api/props.h"
#include "server/clients.h"

#define LINE_MAX_BYTES 512
#define MIB_MAX	       (1ull << 40)

static int number(const char *text, uint64_t max, uint64_t *out, char **end)
{
	errno = 0;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	*out = strtoull(text, end, 10);
	return errno || *out > max ? -EINVAL : 0;
}

static int devices(const char *text, uint64_t *mask)
{
	*mask = 0;
	for (;; text++) {
		uint64_t d;
		char *end;

		if (number(text, 63, &d, &end))
			return -EINVAL;
		*mask |= 1ull << d;
		if (!*end)
			return 0;
		if (*end != ',')
			return -EINVAL;
		text = end;
	}
}

static int word(struct client_limits *l, const char *name, const char *value, char why[RGPU_WHY_MAX])
{
	uint64_t v = 0;
	char *end = "";
	int err = 0;

	if (!strcmp(name, "devices")) {
		if (devices(value, &l->devices))
			err = rgpu_why(why, -EINVAL, "devices=%.40s: expected numbers with commas between them, from 0 to 63",
				       value);
	} else if (!strcmp(name, "priority")) {
		l->low = !strcmp(value, "low");
		if (!l->low && strcmp(value, "normal"))
			err = rgpu_why(why, -EINVAL, "priority=%.40s: expected low or normal", value);
	} else if (number(value, MIB_MAX, &v, &end) || *end || !v) {
		err = rgpu_why(why, -EINVAL, "%.40s=%.40s: expected a number of at least 1", name, value);
	} else if (!strcmp(name, "mem")) {
		l->mem = v << 20;
	} else if (!strcmp(name, "session-mem")) {
		l->session_mem = v << 20;
	} else if (!strcmp(name, "sessions") && v <= 65536) {
		l->sessions = v;
	} else {
		err = rgpu_why(why, -EINVAL,
			       "\"%.40s\" is no limit of a client; there are devices, mem, session-mem, sessions and priority",
			       name);
	}
	return err;
}

int client_limits_parse(const char *text, struct client_limits *out, char why[RGPU_WHY_MAX])
{
	char line[LINE_MAX_BYTES], *save, *name, *w;
	int err = 0;

	*out = (struct client_limits){.devices = ~0ull};
	if (snprintf(line, sizeof(line), "%s", text) >= (int)sizeof(line))
		return rgpu_why(why, -EINVAL, "the line is too long");
	name = strtok_r(line, " \t", &save);
	if (!name || strchr(name, '=') || strlen(name) >= sizeof(out->name))
		return rgpu_why(why, -EINVAL, "expected a client's name first: a key's id, a certificate's name, or *");
	strcpy(out->name, name);
	while (!err && (w = strtok_r(NULL, " \t", &save))) {
		char *eq = strchr(w, '=');

		if (!eq)
			return rgpu_why(why, -EINVAL, "\"%.40s\": expected LIMIT=VALUE", w);
		*eq = 0;
		err = word(out, w, eq + 1, why);
	}
	return err;
}

struct client_limits client_limits_of(const struct client_limits *list, unsigned n, const char *name)
{
	struct client_limits found = {.devices = ~0ull};

	for (unsigned i = 0; i < n; i++) {
		if (!strcmp(list[i].name, name))
			return list[i];
		if (!strcmp(list[i].name, "*"))
			found = list[i];
	}
	return found;
}

uint64_t client_mem_total(const struct client_limits *l, uint64_t bytes)
{
	if (l->mem && l->mem < bytes)
		bytes = l->mem;
	if (l->session_mem && l->session_mem < bytes)
		bytes = l->session_mem;
	return bytes;
}

void client_limits_devices(uint8_t *list, uint32_t len, const struct client_limits *l)
{
	for (uint32_t at = 0; at < len;) {
		struct rgpu_device_entry e;
		struct rgpu_props p;

		memcpy(&e, list + at, sizeof(e));
		e.mem_total = client_mem_total(l, e.mem_total);
		memcpy(list + at, &e, sizeof(e));
		if (e.props_len >= offsetof(struct rgpu_props, granularity)) {
			size_t n = e.props_len < sizeof(p) ? e.props_len : sizeof(p);

			memcpy(&p, list + at + sizeof(e), n);
			p.mem_total = client_mem_total(l, p.mem_total);
			memcpy(list + at + sizeof(e), &p, n);
		}
		at += sizeof(e) + (e.props_len + 7) / 8 * 8;
	}
}
