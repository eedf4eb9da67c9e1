// SPDX-License-Identifier: MIT
/* What the listener's page shows: all devices and sessions of this server. */
#include <stdlib.h>
#include <string.h>
#include "lib/clock.h"
#include "lib/devlist.h"
#include "server/view.h"
#include "web/view.h"

static int64_t began;

static int devices(struct web_view *v, const struct devices *all)
{
	const struct rgpu_device_entry *e;
	size_t at = 0;

	for (int i = 0; (e = rgpu_devlist_next(all->list, all->len, &at)); i++) {
		struct web_device *d = web_view_device(v);

		if (!d)
			return -1;
		memcpy(d->name, e->name, sizeof(d->name) - 1);
		memcpy(d->uuid, e->uuid, sizeof(d->uuid));
		d->index = i;
		d->online = true;
	}
	return 0;
}

static void cache(struct web_cache *to, struct store *store)
{
	struct store_stats s;

	if (!store)
		return;
	store_stats(store, &s);
	*to = (struct web_cache){true, s.limit, s.bytes, s.blocks, s.hits, s.misses, s.saved, s.admitted, s.evicted};
}

static int fill(struct web_view *v, void *arg)
{
	struct registry *r = arg;
	uint8_t *stats = NULL;
	ssize_t n;

	v->role = "rgpu-server";
	v->up = true;
	v->uptime_s = (rgpu_now_ns() - began) / 1000000000;
	strcpy(v->version, RGPU_VERSION);
	rgpu_addr_text(&r->opts->listen, v->peer);
	memcpy(v->driver, r->devices->driver, sizeof(v->driver) - 1);
	if (devices(v, r->devices))
		return -1;
	cache(&v->cache, r->store);
	n = registry_stats(r, NULL, &stats);
	n = n < 0 ? n : web_view_stats(v, stats, n);
	free(stats);
	return n;
}

int view_serve(struct registry *r, uint16_t port, char why[RGPU_WHY_MAX])
{
	began = rgpu_now_ns();
	return web_serve(port, fill, r, why);
}
