/* SPDX-License-Identifier: MIT */
/* The blocks of uploads that a server keeps, by tenant, so that they need not be sent again: the listener's, one for all
 * sessions. */
#ifndef RGPU_SERVER_STORE_H
#define RGPU_SERVER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/digest.h"
#include "server/clients.h"

#define STORE_BLOCK_MAX (256u << 10)
#define STORE_NAME_MAX	(CLIENT_NAME_MAX + 32)
#define STORE_LIST_MAX	16384u /* hints that one session is told at its start: the latest used */

#define STORE_IDLE_MAX 64u

struct store;
struct store_tenant;

struct store_block {
	struct store_tenant *tenant;
	struct store_block *newer, *older; /* by use, in the tenant */
	struct store_block *same;	   /* in its bucket */
	uint64_t hint;
	uint8_t sha256[RGPU_SHA256_LEN]; /* as counted here, not as anybody said */
	unsigned refs;			 /* store's lock */
	uint32_t len;
	uint8_t bytes[];
};

struct store_stats {
	uint64_t limit, bytes, blocks;
	uint64_t hits, misses, saved; /* saved: bytes that did not travel */
	uint64_t admitted, evicted;
	unsigned idle; /* tenants whom nobody has */
};

/* @limit in bytes, of all tenants together. NULL: no memory. */
struct store *store_new(uint64_t limit);
void store_free(struct store *st); /* nobody uses it any more */

/*
 * Who shares blocks: sessions of one client's name and one user there. Each that is got is put: of those whom nobody has,
 * STORE_IDLE_MAX keep what they have. Beyond, the one goes that was put first, of the client that has most of them, as a client
 * may say that it is any user. NULL: no memory.
 */
struct store_tenant *store_tenant(struct store *st, const char *client, uint32_t uid);
void store_tenant_put(struct store_tenant *t);

/*
 * Whether a block that was just uploaded is to be kept: it is not there yet, and there is room, or it is of a kind that comes
 * again
 * (@at_once), or it was seen before. This counts as seeing it.
 */
bool store_wants(struct store_tenant *t, uint64_t hint, uint32_t len, bool at_once);
/* Takes a copy. What it is called is worked out here. false: it is not kept. */
bool store_put(struct store_tenant *t, const void *bytes, uint32_t len, bool at_once, uint64_t *hint);
/* With a reference. NULL: it is not there, or its bytes are others. */
struct store_block *store_get(struct store_tenant *t, uint64_t hint, const uint8_t sha256[RGPU_SHA256_LEN], uint32_t len);
void store_release(struct store *st, struct store_block *b);
/* Hints of what is there, the latest used first. */
uint32_t store_list(struct store_tenant *t, uint64_t *out, uint32_t room);

void store_stats(struct store *st, struct store_stats *out);

/* Answers a worker (server/cache_msg.h) in a thread of its own until the other end of the socket is closed. Takes it over. */
void store_serve(struct store *st, const char *client, uint32_t uid, int fd);

#endif
