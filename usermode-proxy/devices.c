// SPDX-License-Identifier: MIT
/* The server's GPUs as /dev/rgpuN: describes them to the module, and takes them offline and online as the server goes and comes.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/notify.h"
#include "usermode-proxy/devices.h"

#define MINORS	      64
#define RETRY_FIRST   200		      /* ms */
#define RETRY_MAX     2000		      /* while it is not reached */
#define RETRY_REFUSED 5000		      /* wrong key, other version: somebody must do something first */
#define STEADY_NS     (RETRY_MAX * 1000000LL) /* a connection that lasted so long is none that fails again and again */

static struct kern *kern;
static struct rgpu_ctl *ctl;
static char server_text[RGPU_ADDR_TEXT_MAX];

/* By minor: the server's index, −1 offline. Written by the thread. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int index;
	char name[RGPU_NAME_LEN];
} table[MINORS] = {[0 ... MINORS - 1] = {.index = -1}};

int devices_named(uint32_t minor, char name[RGPU_NAME_LEN])
{
	int index = -1;

	name[0] = 0;
	pthread_mutex_lock(&table_lock);
	if (minor < MINORS) {
		index = table[minor].index;
		memcpy(name, table[minor].name, RGPU_NAME_LEN);
	}
	pthread_mutex_unlock(&table_lock);
	return index;
}

int devices_index(uint32_t minor)
{
	char name[RGPU_NAME_LEN];

	return devices_named(minor, name);
}

static void set_index(uint32_t minor, int index, const char *name)
{
	pthread_mutex_lock(&table_lock);
	table[minor].index = index;
	snprintf(table[minor].name, RGPU_NAME_LEN, "%s", name);
	pthread_mutex_unlock(&table_lock);
}

static void all_offline(void)
{
	char why[RGPU_WHY_MAX];

	for (uint32_t i = 0; i < MINORS; i++) {
		if (devices_index(i) < 0)
			continue;
		set_index(i, -1, "");
		if (kern_dev_offline(kern, i, why))
			rgpu_err("/dev/rgpu%u: %s", i, why);
	}
}

/* One of @have for a GPU: the one that was it before, else one that never was any, else one that nobody uses any more. NULL:
 * none. */
static struct kern_device *choose(struct kern_device *have, unsigned n, const bool *taken, const uint8_t uuid[RGPU_UUID_LEN],
				  const struct rgpu_devices *all)
{
	struct kern_device *spare = NULL, *old = NULL;

	for (unsigned i = 0; i < n; i++) {
		bool still = false;

		if (taken[i] || have[i].minor >= MINORS)
			continue;
		if (have[i].has_uuid && !memcmp(have[i].uuid, uuid, RGPU_UUID_LEN))
			return &have[i];
		for (unsigned k = 0; k < all->n && !still; k++)
			still = have[i].has_uuid && !memcmp(have[i].uuid, all->entry[k]->uuid, RGPU_UUID_LEN);
		if (!have[i].has_uuid && !spare)
			spare = &have[i];
		else if (have[i].has_uuid && !still && !have[i].sessions && !old)
			old = &have[i];
	}
	return spare ? spare : old;
}

static int describe(const struct rgpu_welcome *w, const struct rgpu_devices *list, char why[RGPU_WHY_MAX])
{
	struct kern_device *have = NULL, *d;
	unsigned n = 0;
	bool *taken;
	int err;

	err = kern_devices(kern, &have, &n, why);
	if (err)
		return err;
	taken = calloc(n + 1, sizeof(*taken));
	if (!taken)
		err = rgpu_why(why, -ENOMEM, "no memory");
	for (unsigned i = 0; i < list->n && !err; i++) {
		const struct rgpu_device_entry *e = list->entry[i];
		uint32_t minor = MINORS;

		d = choose(have, n, taken, e->uuid, list);
		if (d) {
			minor = d->minor;
			taken[d - have] = true;
		} else {
			err = kern_dev_add(kern, &minor, why);
			if (!err && minor >= MINORS)
				err = rgpu_why(why, -ENOSPC, "there are more than %d devices", MINORS);
		}
		if (!err)
			err = kern_dev_online(kern, minor, e->name, e->uuid, w->server, e->mem_total, e + 1, e->props_len, why);
		if (!err)
			set_index(minor, i, e->name);
	}
	free(taken);
	free(have);
	return err;
}

static int come_online(char why[RGPU_WHY_MAX])
{
	struct rgpu_devices list;
	struct rgpu_welcome w;
	int err;

	err = rgpu_ctl_hello(ctl, &w, why);
	if (!err)
		err = rgpu_ctl_devices(ctl, &list, why);
	if (err)
		return err;
	err = describe(&w, &list, why);
	if (!err) {
		rgpu_note("%u GPU%s of %s online (%s, %s)", list.n, list.n == 1 ? "" : "s", server_text, w.agent, w.driver);
		rgpu_notify("STATUS=%u GPU%s of %s", list.n, list.n == 1 ? "" : "s", server_text);
	}
	rgpu_devices_free(&list);
	return err;
}

static void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

/* The connection is idle: that it is readable means that it ended. Whether it had lasted. */
static bool stay(void)
{
	struct pollfd p = {.fd = rgpu_ctl_fd(ctl), .events = POLLIN};
	int64_t began = rgpu_now_ns();

	while (p.fd >= 0 && poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	rgpu_ctl_drop(ctl);
	return rgpu_now_ns() - began >= STEADY_NS;
}

/* The pause before the next try. The one after it is longer. */
static int longer(int *wait_ms)
{
	int now = *wait_ms;

	*wait_ms = now * 2 < RETRY_MAX ? now * 2 : RETRY_MAX;
	return now;
}

static void *run(void *arg)
{
	char why[RGPU_WHY_MAX], said[RGPU_WHY_MAX] = "";
	int wait_ms = RETRY_FIRST, err;
	bool online = false;

	(void)arg;
	for (;;) {
		/* A listener that only restarts is back before anybody notices. */
		while (!(err = come_online(why))) {
			online = true;
			said[0] = 0;
			if (stay())
				wait_ms = RETRY_FIRST;
			else
				pause_ms(longer(&wait_ms));
		}
		rgpu_ctl_drop(ctl);
		all_offline();
		if (online)
			rgpu_warn("the server %s went away: its GPUs are offline until it is back", server_text);
		online = false;
		/* Once for each cause, not for each try. */
		if (strcmp(why, said)) {
			rgpu_err("%s", why);
			rgpu_notify("STATUS=No GPU: %s", why);
			memcpy(said, why, sizeof(said));
		}
		pause_ms(rgpu_ctl_retryable(err) ? longer(&wait_ms) : RETRY_REFUSED);
	}
	return NULL;
}

int devices_run(struct kern *k, struct rgpu_ctl *c, const struct rgpu_addr *server, char why[RGPU_WHY_MAX])
{
	pthread_t t;
	int err;

	kern = k;
	ctl = c;
	rgpu_addr_text(server, server_text);
	err = pthread_create(&t, NULL, run, NULL);
	return err ? rgpu_why(why, -err, "no thread for the devices: %s", strerror(err)) : 0;
}
