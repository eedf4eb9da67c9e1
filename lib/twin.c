// SPDX-License-Identifier: MIT
/* Compares memory with its shadow, and writes changed words in whole words. */
#include "lib/twin.h"

#include <stdatomic.h>
#include <string.h>

#define PAGE  TWIN_PAGE
#define PAIRS (TWIN_LINE / 8)

/* What programs and kernels write meanwhile is looked at by right: what is missed is found the next time. */
#ifdef __SANITIZE_THREAD__
#define UNORDERED __attribute__((no_sanitize_thread, noinline))

UNORDERED static bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
	while (n && *a == *b)
		a++, b++, n--;
	return !n;
}
#else
#define UNORDERED

static bool same(const uint8_t *a, const uint8_t *b, size_t n)
{
	return !memcmp(a, b, n);
}
#endif

/* Somebody else may write it at this moment: each pair of words is read once. */
UNORDERED static uint64_t changed_words(const uint8_t *mem, const uint8_t *shadow, uint64_t *now)
{
	uint64_t mask = 0, old, differ;

	for (unsigned i = 0; i < PAIRS; i++) {
		now[i] = __atomic_load_n((const uint64_t *)mem + i, __ATOMIC_RELAXED);
		memcpy(&old, shadow + i * 8, sizeof(old));
		differ = now[i] ^ old;
		mask |= (uint64_t) !!(uint32_t)differ << 2 * i | (uint64_t) !!(differ >> 32) << (2 * i + 1);
	}
	return mask;
}

static atomic_ullong compared;

uint64_t twin_compared(void)
{
	return atomic_load_explicit(&compared, memory_order_relaxed);
}

size_t twin_changes(struct twin *t, uint64_t *at, struct twin_line *out, size_t room)
{
	size_t n = 0;

	while (*at < t->bytes) {
		uint64_t page = *at - *at % PAGE + PAGE, end = page < t->bytes ? page : t->bytes;

		atomic_fetch_add_explicit(&compared, end - *at, memory_order_relaxed);
		if (same(t->mem + *at, t->shadow + *at, end - *at)) {
			*at = end;
			continue;
		}
		for (; *at < end; *at += TWIN_LINE) {
			uint64_t now[PAIRS], mask = changed_words(t->mem + *at, t->shadow + *at, now);

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

size_t twin_pages(struct twin *t, uint64_t *bits, uint64_t *at, struct twin_line *out, size_t room)
{
	size_t n = 0;

	while (*at < t->bytes) {
		uint64_t page = *at / PAGE, end = (page + 1) * PAGE, *word = &bits[page / 64], bit = 1ull << page % 64;

		if (!(*word & bit)) {
			*at = *word ? end : (page / 64 + 1) * 64 * PAGE;
			continue;
		}
		for (; *at < end; *at += TWIN_LINE) {
			if (n == room)
				return n;
			out[n].head = (t->addr + *at) / TWIN_LINE << 16 | 0xffff;
			for (unsigned i = 0; i < PAIRS; i++) {
				uint64_t now = __atomic_load_n((const uint64_t *)(t->mem + *at) + i, __ATOMIC_RELAXED);

				memcpy(out[n].data + i * 8, &now, sizeof(now));
			}
			n++;
		}
		*word &= ~bit;
	}
	return n;
}

uint64_t twin_address(const struct twin_line *l)
{
	return (l->head >> 16) * TWIN_LINE;
}

/* Eight bytes that changed together arrive together, as a counter must that somebody polls. */
UNORDERED void twin_put(struct twin *t, const struct twin_line *l)
{
	uint64_t off = twin_address(l) - t->addr;
	uint8_t *mem = t->mem + off, *shadow = t->shadow ? t->shadow + off : NULL;

	for (unsigned i = 0; i < PAIRS; i++) {
		unsigned which = l->head >> 2 * i & 3;
		uint32_t word[2];
		uint64_t both;

		memcpy(word, l->data + i * 8, sizeof(word));
		memcpy(&both, word, sizeof(both));
		if (which == 3) {
			if (shadow)
				memcpy(shadow + i * 8, &both, sizeof(both));
			__atomic_store_n((uint64_t *)mem + i, both, __ATOMIC_RELEASE);
		} else if (which) {
			unsigned at = i * 8 + (which == 2 ? TWIN_WORD : 0);

			if (shadow)
				memcpy(shadow + at, &word[which - 1], TWIN_WORD);
			__atomic_store_n((uint32_t *)(mem + at), word[which - 1], __ATOMIC_RELEASE);
		}
	}
}
