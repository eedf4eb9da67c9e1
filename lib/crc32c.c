// SPDX-License-Identifier: MIT
/* CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#include <pthread.h>
#include <string.h>
#include "lib/crc32c.h"

#define POLYNOMIAL 0x82f63b78u /* with its bits mirrored */

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? POLYNOMIAL : 0);
	}
}

uint32_t rgpu_crc32c_table(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	pthread_once(&once, fill);
	crc = ~crc;
	while (len--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t c = ~crc, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; len; len--)
		c = __builtin_ia32_crc32qi(c, *p++);
	return ~(uint32_t)c;
}
#endif

uint32_t rgpu_crc32c(uint32_t crc, const void *buf, size_t len)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return by_instruction(crc, buf, len);
#endif
	return rgpu_crc32c_table(crc, buf, len);
}
