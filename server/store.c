// SPDX-License-Identifier: MIT
/* The blocks of uploads that a server keeps: an index by tenant, and what goes when there is no room. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "server/store.h"

#define BUCKETS 4096u
#define GHOSTS	16384u /* hints of blocks that were seen and not kept, by tenant: 4 GiB of uploads */

/* A client may say that it is any user: what it takes from others counts for all of its tenants. */
struct store_client {
	struct store_client *next;
	char name[STORE_NAME_MAX];
	unsigned tenants, idle;
	uint64_t bytes;
};

struct store_tenant {
	struct store_tenant *next;
	struct store *store;
	struct store_client *client;
	uint32_t uid;
	unsigned users;
	uint64_t bytes;
	struct store_block *newest, *oldest;
	struct store_block *bucket[BUCKETS];
	uint64_t ghost[GHOSTS]; /* a newer one takes an older one's place */
};

struct store {
	uint64_t key;	      /* of all tables: what is hard to find for one holds up all */
	pthread_mutex_t lock; /* of all below, and of the tenants */
	struct store_client *clients;
	struct store_tenant *tenants; /* those who were put last come first */
	struct store_stats stats;
};

struct store *store_new(uint64_t limit)
{
	struct store *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->stats.limit = limit;
	st->key = rgpu_hint_key();
	pthread_mutex_init(&st->lock, NULL);
	return st;
}

/* With the lock, as all below but the functions that others call. NULL: no memory. */
static struct store_client *client_of(struct store *st, const char *name)
{
	struct store_client *c = st->clients;

	while (c && strcmp(c->name, name))
		c = c->next;
	if (!c && strlen(name) < sizeof(c->name) && (c = calloc(1, sizeof(*c)))) {
		strcpy(c->name, name);
		c->next = st->clients;
		st->clients = c;
	}
	return c;
}

static void client_put(struct store *st, struct store_client *c)
{
	struct store_client **at = &st->clients;

	if (c->tenants)
		return;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	free(c);
}

static struct store_tenant *tenant_new(struct store *st, const char *client, uint32_t uid)
{
	struct store_client *c = client_of(st, client);
	struct store_tenant *t = c ? calloc(1, sizeof(*t)) : NULL;

	if (t) {
		t->store = st;
		t->client = c;
		t->uid = uid;
		t->next = st->tenants;
		st->tenants = t;
		c->tenants++;
		c->idle++;
		st->stats.idle++;
	} else if (c) {
		client_put(st, c);
	}
	return t;
}

struct store_tenant *store_tenant(struct store *st, const char *client, uint32_t uid)
{
	struct store_tenant *t;

	pthread_mutex_lock(&st->lock);
	for (t = st->tenants; t && (t->uid != uid || strcmp(t->client->name, client)); t = t->next)
		;
	if (!t)
		t = tenant_new(st, client, uid);
	if (t && !t->users++) {
		t->client->idle--;
		st->stats.idle--;
	}
	pthread_mutex_unlock(&st->lock);
	return t;
}

static uint64_t weight(uint32_t len)
{
	return sizeof(struct store_block) + len;
}

static struct store_block **slot(struct store_tenant *t, uint64_t hint)
{
	struct store_block **at = &t->bucket[rgpu_hint_place(hint, t->store->key, BUCKETS)];

	while (*at && (*at)->hint != hint)
		at = &(*at)->same;
	return at;
}

static void unlink_use(struct store_block *b)
{
	struct store_tenant *t = b->tenant;

	*(b->newer ? &b->newer->older : &t->newest) = b->older;
	*(b->older ? &b->older->newer : &t->oldest) = b->newer;
}

static void link_newest(struct store_block *b)
{
	struct store_tenant *t = b->tenant;

	b->newer = NULL;
	b->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = b;
	t->newest = b;
}

static void put(struct store_block *b)
{
	if (!--b->refs)
		free(b);
}

static void drop(struct store_block *b)
{
	struct store_tenant *t = b->tenant;

	*slot(t, b->hint) = b->same;
	unlink_use(b);
	t->bytes -= weight(b->len);
	t->client->bytes -= weight(b->len);
	t->store->stats.bytes -= weight(b->len);
	t->store->stats.blocks--;
	put(b);
}

/* The client that has most gives first, of its user who has, so that none can take all from another. */
static bool evict(struct store *st)
{
	struct store_client *rich = st->clients;
	struct store_tenant *most = NULL;

	for (struct store_client *c = rich; c; c = c->next)
		if (c->bytes > rich->bytes)
			rich = c;
	for (struct store_tenant *t = st->tenants; t; t = t->next)
		if (t->client == rich && t->oldest && (!most || t->bytes > most->bytes))
			most = t;
	if (!most)
		return false;
	drop(most->oldest);
	st->stats.evicted++;
	return true;
}

static void unlist(struct store_tenant *t)
{
	struct store_tenant **at = &t->store->tenants;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
}

static void forget_oldest_idle(struct store *st)
{
	struct store_client *most = st->clients;
	struct store_tenant *oldest = NULL;

	for (struct store_client *c = most; c; c = c->next)
		if (c->idle > most->idle)
			most = c;
	for (struct store_tenant *t = st->tenants; t; t = t->next)
		oldest = t->users || t->client != most ? oldest : t;
	while (oldest->oldest)
		drop(oldest->oldest);
	unlist(oldest);
	free(oldest);
	st->stats.idle--;
	most->idle--;
	most->tenants--;
	client_put(st, most);
}

void store_tenant_put(struct store_tenant *t)
{
	struct store *st = t->store;

	pthread_mutex_lock(&st->lock);
	if (!--t->users) {
		unlist(t);
		t->next = st->tenants;
		st->tenants = t;
		t->client->idle++;
		if (++st->stats.idle > STORE_IDLE_MAX)
			forget_oldest_idle(st);
	}
	pthread_mutex_unlock(&st->lock);
}

static bool has_room(const struct store *st, uint32_t len)
{
	return st->stats.bytes + weight(len) <= st->stats.limit;
}

void store_free(struct store *st)
{
	if (!st)
		return;
	while (evict(st))
		;
	while (st->tenants) {
		struct store_tenant *t = st->tenants;

		st->tenants = t->next;
		free(t);
	}
	while (st->clients) {
		struct store_client *c = st->clients;

		st->clients = c->next;
		free(c);
	}
	pthread_mutex_destroy(&st->lock);
	free(st);
}

bool store_wants(struct store_tenant *t, uint64_t hint, uint32_t len, bool at_once)
{
	uint64_t *ghost = &t->ghost[rgpu_hint_place(hint, t->store->key, GHOSTS)];
	struct store_block *b;
	bool wants = false;

	pthread_mutex_lock(&t->store->lock);
	b = *slot(t, hint);
	if (b) {
		unlink_use(b);
		link_newest(b);
	} else if (weight(len) <= t->store->stats.limit) {
		wants = at_once || *ghost == hint || has_room(t->store, len);
		*ghost = hint;
	}
	pthread_mutex_unlock(&t->store->lock);
	return wants;
}

bool store_put(struct store_tenant *t, const void *bytes, uint32_t len, bool at_once, uint64_t *hint)
{
	struct store_block *b = len && len <= STORE_BLOCK_MAX ? malloc(sizeof(*b) + len) : NULL;
	struct store *st = t->store;
	bool kept = false;

	if (!b)
		return false;
	*b = (struct store_block){.tenant = t, .refs = 1, .len = len};
	memcpy(b->bytes, bytes, len);
	/* Of the copy, which nobody else can change. */
	b->hint = *hint = rgpu_hint(b->bytes, len);
	if (!store_wants(t, b->hint, len, at_once) || !rgpu_sha256(b->bytes, len, b->sha256)) {
		free(b);
		return false;
	}
	pthread_mutex_lock(&st->lock);
	while (!has_room(st, len) && evict(st))
		;
	if (has_room(st, len) && !*slot(t, b->hint)) {
		*slot(t, b->hint) = b;
		link_newest(b);
		t->bytes += weight(len);
		t->client->bytes += weight(len);
		st->stats.bytes += weight(len);
		st->stats.blocks++;
		st->stats.admitted++;
		kept = true;
	}
	pthread_mutex_unlock(&st->lock);
	if (!kept)
		free(b);
	return kept;
}

struct store_block *store_get(struct store_tenant *t, uint64_t hint, const uint8_t sha256[RGPU_SHA256_LEN], uint32_t len)
{
	struct store *st = t->store;
	struct store_block *b;

	pthread_mutex_lock(&st->lock);
	b = *slot(t, hint);
	/* Another with this hint would stand in the way for good. */
	if (b && (b->len != len || memcmp(b->sha256, sha256, RGPU_SHA256_LEN))) {
		drop(b);
		b = NULL;
	}
	if (b) {
		unlink_use(b);
		link_newest(b);
		b->refs++;
		st->stats.hits++;
		st->stats.saved += len;
	} else {
		st->stats.misses++;
	}
	pthread_mutex_unlock(&st->lock);
	return b;
}

void store_release(struct store *st, struct store_block *b)
{
	pthread_mutex_lock(&st->lock);
	put(b);
	pthread_mutex_unlock(&st->lock);
}

uint32_t store_list(struct store_tenant *t, uint64_t *out, uint32_t room)
{
	uint32_t n = 0;

	pthread_mutex_lock(&t->store->lock);
	for (const struct store_block *b = t->newest; b && n < room; b = b->older)
		out[n++] = b->hint;
	pthread_mutex_unlock(&t->store->lock);
	return n;
}

void store_stats(struct store *st, struct store_stats *out)
{
	pthread_mutex_lock(&st->lock);
	*out = st->stats;
	pthread_mutex_unlock(&st->lock);
}
