// SPDX-License-Identifier: MIT
/* Fuzz target: any bytes as a client's control connection: requests are answered or refused, and what is passed on is whole. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "lib/log.h"
#include "server/control.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/link.h"

/* The registry behind it: looks at all that it gets, and answers now this, now that. */
static unsigned turn;

static int touch(const void *p, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += ((const uint8_t *)p)[i];
	return ++turn % 3 ? 0 : -(int)(sum % 100) - 1;
}

int registry_start(struct registry *r, const struct asker *a, const struct rgpu_start *s, const void *data, bool resume,
		   struct rgpu_started *out, char why[RGPU_WHY_MAX])
{
	int err = touch(data, s->data_len);

	(void)r;
	(void)a;
	(void)resume;
	if (s->data_len > RGPU_CONTROL_MAX || s->flags & ~RGPU_START_DIRECT)
		abort();
	memset(out, 0, sizeof(*out));
	strcpy(why, err ? "not now" : "");
	return err;
}

int registry_join(struct registry *r, const struct asker *a, const struct rgpu_join *j, char why[RGPU_WHY_MAX])
{
	(void)r;
	(void)a;
	strcpy(why, "no");
	return touch(j, sizeof(*j));
}

int registry_end(struct registry *r, const struct asker *a, const uint8_t sid[RGPU_SID_LEN], char why[RGPU_WHY_MAX])
{
	(void)r;
	(void)a;
	strcpy(why, "no");
	return touch(sid, RGPU_SID_LEN);
}

ssize_t registry_stats(struct registry *r, const struct asker *a, uint8_t **out)
{
	(void)r;
	(void)a;
	*out = ++turn % 3 ? calloc(1, 64) : NULL;
	return *out ? 64 : -ENOMEM;
}

ssize_t registry_telemetry(struct registry *r, const struct asker *a, const struct rgpu_telemetry_ask *ask, uint8_t **out)
{
	(void)r;
	(void)a;
	touch(ask, sizeof(*ask));
	*out = ++turn % 3 ? calloc(1, 64) : NULL;
	return *out ? 64 : -ENOMEM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t list[sizeof(struct rgpu_device_entry)];
	static const struct server_opts opts;
	static struct devices devices = {.n = 1, .list = list, .len = sizeof(list), .driver = "fuzz"};
	static struct registry registry = {.opts = &opts, .devices = &devices};
	static struct control_server server = {.registry = &registry};

	rgpu_log_init("fuzz", RGPU_LOG_ERR);
	turn = 0;
	if (control_begin(&server, fuzz_link(data, size, size ? size : 1, false), "0123abcd", "nowhere"))
		return 0;
	while (server.threads)
		sched_yield();
	return 0;
}
