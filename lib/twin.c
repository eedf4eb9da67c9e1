// SPDX-License-Identifier: MIT
/* Compares memory with its shadow, and writes changed words in whole words. */
#include "lib/twin.h"

#include <string.h>

#define PAGE  4096u
#define WORDS (TWIN_LINE / TWIN_WORD)

/* Somebody else may write it at this moment: each word is read once. */
static void read_line(const uint8_t *mem, uint32_t *out)
{
	for (unsigned i = 0; i < WORDS; i++)
		out[i] = __atomic_load_n((const uint32_t *)mem + i, __ATOMIC_RELAXED);
}

static uint64_t changed_words(const uint32_t *now, const uint8_t *shadow)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t old;

		memcpy(&old, shadow + i * TWIN_WORD, sizeof(old));
		mask |= (uint64_t)(now[i] != old) << i;
	}
	return mask;
}

size_t twin_changes(struct twin *t, uint64_t *at, struct twin_line *out, size_t room)
{
	size_t n = 0;

	while (*at < t->bytes) {
		uint64_t page = *at - *at % PAGE + PAGE, end = page < t->bytes ? page : t->bytes;

		if (!memcmp(t->mem + *at, t->shadow + *at, end - *at)) {
			*at = end;
			continue;
		}
		for (; *at < end; *at += TWIN_LINE) {
			uint32_t now[WORDS];
			uint64_t mask;

			read_line(t->mem + *at, now);
			mask = changed_words(now, t->shadow + *at);
			if (!mask)
				continue;
			if (n == room)
				return n;
			memcpy(t->shadow + *at, now, TWIN_LINE);
			out[n].head = (t->addr + *at) / TWIN_LINE << 16 | mask;
			memcpy(out[n].data, now, TWIN_LINE);
			n++;
		}
	}
	return n;
}

uint64_t twin_address(const struct twin_line *l)
{
	return (l->head >> 16) * TWIN_LINE;
}

/* Eight bytes that changed together arrive together, as a counter must that somebody polls. */
void twin_put(struct twin *t, const struct twin_line *l)
{
	uint64_t off = twin_address(l) - t->addr;
	uint32_t *mem = (uint32_t *)(t->mem + off);

	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t both;
		uint32_t one;

		if (!(l->head >> i & 1))
			continue;
		if (i % 2 == 0 && l->head >> i & 2) {
			memcpy(&both, l->data + i * TWIN_WORD, sizeof(both));
			memcpy(t->shadow + off + i * TWIN_WORD, &both, sizeof(both));
			__atomic_store_n((uint64_t *)(mem + i), both, __ATOMIC_RELEASE);
			i++;
		} else {
			memcpy(&one, l->data + i * TWIN_WORD, sizeof(one));
			memcpy(t->shadow + off + i * TWIN_WORD, &one, sizeof(one));
			__atomic_store_n(mem + i, one, __ATOMIC_RELEASE);
		}
	}
}
