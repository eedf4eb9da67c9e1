// SPDX-License-Identifier: MIT
/* Hints of somebody else's choice in the relay's table: they lie apart, however they are chosen. */
#include "lib/digest.h"
#include "tests/tap.h"
#include "usermode-proxy/relay_int.h"

#define HINTS 500

static uint64_t high(uint64_t i)
{
	return 0x1234567800000000ull | i;
}

static uint64_t low(uint64_t i)
{
	return i << 40 | 7;
}

static uint64_t step(uint64_t i)
{
	return i * 0x400000001ull;
}

static uint64_t odd_tops(uint64_t i)
{
	return i << 50 | i << 17 | 1;
}

/* The longest row of places that are taken, one after the other: so many a look at one of them may take. */
static unsigned longest(const struct known *k)
{
	unsigned most = 0, row = 0;

	for (uint32_t i = 0; i < 2 * k->size; i++) {
		row = k->hint[i % k->size] ? row + 1 : 0;
		most = row > most && row <= k->size ? row : most;
	}
	return most;
}

static void lie_apart(uint64_t (*choose)(uint64_t), const char *what)
{
	static struct rgpu_relay r;
	uint64_t hint[HINTS];

	for (uint64_t i = 0; i < HINTS; i++)
		hint[i] = choose(i + 1);
	r.cached = true;
	is_int(relay_known_told(&r, RGPU_KNOWN_ALL, (uint8_t *)hint, sizeof(hint)), 0, "%s", what);
	is_int(r.known.n, HINTS, "all are remembered");
	ok(longest(&r.known) < HINTS / 3, "apart from each other: %u in a row", longest(&r.known));
	relay_known_clear(&r);
}

int main(void)
{
	lie_apart(high, "hints that begin alike");
	lie_apart(low, "hints that end alike");
	lie_apart(step, "hints at equal distances");
	lie_apart(odd_tops, "hints that differ in few bits");
	return tap_done();
}
