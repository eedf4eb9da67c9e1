// SPDX-License-Identifier: MIT
/* A mutator that knows PTX's tokens and statements, beside libFuzzer's own that knows bytes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static const char *const words[] = {
#include "tests/fuzz/ptx_words.h"
};
#define WORDS (sizeof(words) / sizeof(words[0]))

static unsigned int state;

static unsigned int rnd(unsigned int n)
{
	state = state * 1664525u + 1013904223u;
	return n ? (state >> 8) % n : 0;
}

static bool is_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
	       c == '.';
}

struct piece {
	size_t at, len;
};

/* A token around a random place; with @dots also the parts of an opcode count as tokens. */
static struct piece token(const uint8_t *d, size_t size, bool dots)
{
	size_t at = rnd((unsigned int)size), end;

	while (at < size && !is_word(d[at]))
		at++;
	if (at == size)
		return (struct piece){rnd((unsigned int)size), 0};
	end = at;
	while (at && is_word(d[at - 1]) && !(dots && d[at] == '.'))
		at--;
	while (end < size && is_word(d[end]) && !(dots && d[end] == '.' && end > at))
		end++;
	return (struct piece){at, end - at};
}

/* A statement: from behind one ; { or } to behind the next. */
static struct piece statement(const uint8_t *d, size_t size)
{
	size_t at = rnd((unsigned int)size), end = at;

	while (at && !memchr(";{}", d[at - 1], 3))
		at--;
	while (end < size && !memchr(";{}", d[end], 3))
		end++;
	return (struct piece){at, (end < size ? end + 1 : end) - at};
}

/* Puts @n bytes in place of the piece @p; the new size, 0 when there is no room. */
static size_t put(uint8_t *d, size_t size, size_t max, struct piece p, const void *with, size_t n)
{
	if (size - p.len + n > max)
		return 0;
	memmove(d + p.at + n, d + p.at + p.len, size - p.at - p.len);
	memcpy(d + p.at, with, n);
	return size - p.len + n;
}

static size_t mutate(uint8_t *d, size_t size, size_t max)
{
	uint8_t copy[512];
	struct piece p, q;
	bool dots = rnd(2);
	const char *w;

	switch (rnd(7)) {
	case 0: /* a token becomes a known word */
	case 1:
		w = words[rnd(WORDS)];
		return put(d, size, max, token(d, size, w[0] == '.'), w, strlen(w));
	case 2: /* a token becomes another of this text */
		p = token(d, size, dots);
		q = token(d, size, dots);
		if (q.len > sizeof(copy))
			return 0;
		memcpy(copy, d + q.at, q.len);
		return put(d, size, max, p, copy, q.len);
	case 3: /* a part of an opcode goes or is doubled */
		p = token(d, size, true);
		if (rnd(2) || p.len > sizeof(copy))
			return put(d, size, max, p, "", 0);
		memcpy(copy, d + p.at, p.len);
		return put(d, size, max, (struct piece){p.at, 0}, copy, p.len);
	case 4: /* a statement goes */
		return put(d, size, max, statement(d, size), "", 0);
	case 5: /* a statement appears a second time elsewhere */
		q = statement(d, size);
		p = statement(d, size);
		if (q.len > sizeof(copy))
			return 0;
		memcpy(copy, d + q.at, q.len);
		return put(d, size, max, (struct piece){p.at, 0}, copy, q.len);
	default: /* a number changes */
		p = token(d, size, false);
		w = (const char *[]){"0",
				     "1",
				     "-1",
				     "255",
				     "4294967295",
				     "0x7fffffffffffffff",
				     "18446744073709551615",
				     "0f7fc00000",
				     "0d8000000000000000",
				     "3.5"}[rnd(10)];
		return put(d, size, max, p, w, strlen(w));
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	size_t n = 0;

	state = seed;
	if (size > 16 && rnd(4))
		for (unsigned int k = rnd(3) + 1; k--; size = n ? n : size)
			n = mutate(data, size, max);
	return n ? n : LLVMFuzzerMutate(data, size, max);
}
