// SPDX-License-Identifier: MIT
/* Kept blocks for workers: each has a socket, whose other end is one tenant's, whatever the worker says. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rgpu_wire.h>
#include "lib/log.h"
#include "server/cache_msg.h"
#include "server/store.h"

#define STACK_SIZE (128 << 10)

struct conn {
	struct store *store;
	struct store_tenant *tenant;
	int fd;
	union {
		uint8_t block[STORE_BLOCK_MAX];
		uint64_t hints[STORE_LIST_MAX];
	};
};

/* Nobody can name a smaller one, and millions of them would make the index slow for all. */
static bool fits(uint32_t len)
{
	return len >= RGPU_BLOCK_MIN && len <= STORE_BLOCK_MAX;
}

static bool get(struct conn *c, const struct cache_ask *q)
{
	struct store_block *b = store_get(c->tenant, q->hint, q->sha256, q->len);
	struct cache_answer a = {.yes = b != NULL, .len = b ? b->len : 0, .hint = q->hint};
	bool good = cache_write(c->fd, &a, sizeof(a)) && (!b || cache_write(c->fd, b->bytes, b->len));

	if (b)
		store_release(c->store, b);
	return good;
}

/* false: hang up. */
static bool answer(struct conn *c, const struct cache_ask *q)
{
	struct cache_answer a = {.hint = q->hint};

	switch (q->what) {
	case CACHE_LIST:
		a.len = store_list(c->tenant, c->hints, STORE_LIST_MAX) * sizeof(*c->hints);
		a.yes = 1;
		return cache_write(c->fd, &a, sizeof(a)) && cache_write(c->fd, c->hints, a.len);
	case CACHE_WANTS:
		a.yes = fits(q->len) && store_wants(c->tenant, q->hint, q->len, q->at_once);
		return cache_write(c->fd, &a, sizeof(a));
	case CACHE_PUT:
		if (!fits(q->len) || !cache_read(c->fd, c->block, q->len))
			return false;
		a.yes = store_put(c->tenant, c->block, q->len, q->at_once, &a.hint);
		return cache_write(c->fd, &a, sizeof(a));
	case CACHE_GET:
		return get(c, q);
	}
	return false;
}

static void *conn_main(void *arg)
{
	struct conn *c = arg;
	struct cache_ask q;

	while (cache_read(c->fd, &q, sizeof(q)) && answer(c, &q))
		;
	close(c->fd);
	store_tenant_put(c->tenant);
	free(c);
	return NULL;
}

void store_serve(struct store *st, const char *client, uint32_t uid, int fd)
{
	struct conn *c = malloc(sizeof(*c));
	pthread_attr_t attr;
	pthread_t t;
	int err = -1;

	if (c) {
		c->store = st;
		c->tenant = store_tenant(st, client, uid);
		c->fd = fd;
	}
	if (c && c->tenant) {
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK_SIZE);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		err = pthread_create(&t, &attr, conn_main, c);
		pthread_attr_destroy(&attr);
	}
	if (!err)
		return;
	/* Its worker sees the end of the socket, and keeps nothing. */
	rgpu_warn("no memory or thread for a session's repeated uploads: they are sent again");
	close(fd);
	if (c && c->tenant)
		store_tenant_put(c->tenant);
	free(c);
}
