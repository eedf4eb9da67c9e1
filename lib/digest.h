/* SPDX-License-Identifier: MIT */
/* Names for bytes: a strong one, and a quick one that only finds. */
#ifndef RGPU_LIB_DIGEST_H
#define RGPU_LIB_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RGPU_SHA256_LEN 32

/* false: OpenSSL refuses, or there is no memory. */
bool rgpu_sha256(const void *bytes, size_t len, uint8_t out[RGPU_SHA256_LEN]);

/* XXH3 of 64 bits. Anybody can make others with the same. */
uint64_t rgpu_hint(const void *bytes, size_t len);

/* Where a hint is looked for among @size places, a power of two: by the table's own @key, or who makes hints could make them
 * meet. */
static inline uint32_t rgpu_hint_place(uint64_t hint, uint64_t key, uint32_t size)
{
	return hint * key >> (33 + __builtin_clz(size));
}
uint64_t rgpu_hint_key(void); /* random, and odd */

#endif
