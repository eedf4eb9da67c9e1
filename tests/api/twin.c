// SPDX-License-Identifier: MIT
/* Two ends of shared memory without anything between them. */
#include <stdlib.h>
#include <string.h>
#include "lib/twin.h"
#include "tests/tap.h"

#define BYTES (64u << 10)
#define ADDR  0x200000400000ull

static _Alignas(64) uint8_t here[BYTES], there[BYTES], shadow_here[BYTES], shadow_there[BYTES];
static struct twin a = {here, shadow_here, ADDR, BYTES}, b = {there, shadow_there, ADDR, BYTES};

/* All that changed at @from goes to @to, @room lines at a time. Returns how many. */
static size_t carry(struct twin *from, struct twin *to, size_t room)
{
	struct twin_line line[64];
	size_t all = 0, n;
	uint64_t at = 0;

	do {
		n = twin_changes(from, &at, line, room);
		for (size_t i = 0; i < n; i++)
			twin_put(to, &line[i]);
		all += n;
	} while (at < from->bytes);
	return all;
}

static void changes(void)
{
	struct twin_line line[4];
	uint64_t at = 0;

	is_int(carry(&a, &b, 64), 0, "nothing has changed");
	here[5000] = 1;
	is_int(twin_changes(&a, &at, line, 4), 1, "one byte is one line");
	is_int(at, BYTES, "and all was seen");
	is_int(twin_address(&line[0]), ADDR + 5000 / 64 * 64, "that of its address");
	is_int(line[0].head & 0xffff, 1 << 5000 % 64 / 4, "with one word");
	twin_put(&b, &line[0]);
	is_int(there[5000], 1, "it is put down");
	is_int(carry(&a, &b, 64) + carry(&b, &a, 64), 0, "then both know of it");
	here[0] = here[BYTES - 1] = 9;
	is_int(carry(&a, &b, 64), 2, "the first and the last byte");
	ok(there[0] == 9 && there[BYTES - 1] == 9, "are there");
	for (unsigned i = 0; i < BYTES; i++)
		here[i] = i * 7 + 1;
	is_int(carry(&a, &b, 3), BYTES / 64, "all lines, three at a time");
	ok(!memcmp(here, there, BYTES), "nothing is left out between two pieces");
}

/* Neighbouring words that change at both ends before either hears of the other. */
static void both(void)
{
	struct twin_line up[4], down[4];
	uint64_t at = 0, back = 0;

	memset(here, 0, BYTES);
	carry(&a, &b, 64);
	((uint32_t *)here)[10] = 111;
	((uint32_t *)there)[11] = 222;
	is_int(twin_changes(&a, &at, up, 4) + twin_changes(&b, &back, down, 4), 2, "a line changed at both ends");
	twin_put(&b, &up[0]);
	twin_put(&a, &down[0]);
	ok(((uint32_t *)here)[10] == 111 && ((uint32_t *)here)[11] == 222, "here are both words");
	ok(((uint32_t *)there)[10] == 111 && ((uint32_t *)there)[11] == 222, "there, too");
	is_int(carry(&a, &b, 64) + carry(&b, &a, 64), 0, "and nobody takes the other's for a change of his own");
}

static void random_changes(void)
{
	unsigned seed = 1, bad = 0;

	for (int round = 0; round < 300; round++) {
		for (unsigned k = rand_r(&seed) % 50; k; k--)
			((uint32_t *)(k % 2 ? here : there))[rand_r(&seed) % (BYTES / 8) * 2 + k % 2] = rand_r(&seed);
		carry(&a, &b, 1 + rand_r(&seed) % 60);
		carry(&b, &a, 1 + rand_r(&seed) % 60);
		bad += memcmp(here, there, BYTES) || memcmp(here, shadow_here, BYTES) || memcmp(there, shadow_there, BYTES);
	}
	is_int(bad, 0, "random changes at both ends: always the same in the end");
}

int main(void)
{
	changes();
	both();
	random_changes();
	return tap_done();
}
