// SPDX-License-Identifier: MIT
/* Hints of a client's choice in the server's store, which all clients share: none of them makes a look long. */
#include "server/store.c"
#include "tests/tap.h"

static uint64_t high(uint64_t i)
{
	return i << 12 | 5;
}

static uint64_t low(uint64_t i)
{
	return 0x1234567800000000ull | i << 20;
}

static uint64_t step(uint64_t i)
{
	return i * 0x1000001000ull;
}

/* How many of so many hints are looked for in one place. */
static unsigned crowd(struct store_tenant *t, uint64_t (*choose)(uint64_t))
{
	static unsigned at[BUCKETS];
	unsigned most = 0;

	memset(at, 0, sizeof(at));
	for (uint64_t i = 1; i <= BUCKETS; i++) {
		unsigned n = ++at[slot(t, choose(i)) - t->bucket];

		most = n > most ? n : most;
	}
	return most;
}

int main(void)
{
	struct store *st = store_new(1 << 20);
	struct store_tenant *t = store_tenant(st, "a", 0);
	unsigned n;

	n = crowd(t, high);
	ok(n < 100, "of %u hints that end alike, at most %u lie together", BUCKETS, n);
	n = crowd(t, low);
	ok(n < 100, "of those that begin alike, %u", n);
	n = crowd(t, step);
	ok(n < 100, "of those at equal distances, %u", n);
	store_tenant_put(t);
	store_free(st);
	return tap_done();
}
