// SPDX-License-Identifier: MIT
/* Single precision as half and back, eight at a time where the processor can. */
#include <string.h>
#include "lib/half.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("avx,f16c"))) static size_t from_f16c(uint16_t *to, const float *from, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
	return i;
}

__attribute__((target("avx,f16c"))) static size_t to_f16c(float *to, const uint16_t *from, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
	return i;
}

/* avx: and that the system keeps its registers. */
static int can(void)
{
	unsigned a, b, c = 0, d;

	return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#else
static size_t from_f16c(uint16_t *to, const float *from, size_t n)
{
	return 0 * (n + !to + !from);
}

static size_t to_f16c(float *to, const uint16_t *from, size_t n)
{
	return 0 * (n + !to + !from);
}

static int can(void)
{
	return 0;
}
#endif

static uint16_t from_one(uint32_t f)
{
	uint32_t sign = f >> 16 & 0x8000, a = f & 0x7fffffff, m = (a & 0x7fffff) | 0x800000, shift, half, rest;

	if (a > 0x7f800000)
		return sign | 0x7e00 | (a >> 13 & 0x3ff);
	if (a >= 0x477ff000) /* 65520 */
		return sign | 0x7c00;
	if (a >= 0x38800000) /* 2^-14: as normal a number as half has */
		return sign | (((a + 0xfff + (a >> 13 & 1)) >> 13) - (112 << 10));
	if (a <= 0x33000000) /* 2^-25, half of the least */
		return sign;
	shift = 126 - (a >> 23);
	half = m >> shift;
	rest = m & ((1u << shift) - 1);
	half += rest > 1u << (shift - 1) || (rest == 1u << (shift - 1) && half & 1);
	return sign | half;
}

static uint32_t to_one(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff, up;

	if (e == 31)
		return sign | 0x7f800000 | m << 13 | (m ? 0x400000 : 0);
	if (e || !m)
		return e ? sign | (e + 112) << 23 | m << 13 : sign;
	up = __builtin_clz(m) - 21;
	return sign | (113 - up) << 23 | ((m << up) & 0x3ff) << 13;
}

void rgpu_half_from(void *half, const void *single, size_t n)
{
	size_t i = can() ? from_f16c(half, single, n) : 0;

	for (; i < n; i++) {
		uint32_t f;
		uint16_t h;

		memcpy(&f, (const char *)single + 4 * i, sizeof(f));
		h = from_one(f);
		memcpy((char *)half + 2 * i, &h, sizeof(h));
	}
}

void rgpu_half_to(void *single, const void *half, size_t n)
{
	size_t i = can() ? to_f16c(single, half, n) : 0;

	for (; i < n; i++) {
		uint32_t f;
		uint16_t h;

		memcpy(&h, (const char *)half + 2 * i, sizeof(h));
		f = to_one(h);
		memcpy((char *)single + 4 * i, &f, sizeof(f));
	}
}
