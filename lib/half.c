// SPDX-License-Identifier: MIT
/* Single precision as half and back, eight at a time where the processor can. */
#include <string.h>
#include "lib/half.h"

/* clang 14, which builds the fuzzers, knows neither _Float16 here nor "f16c". */
#ifdef __clang__
typedef __fp16 half_t;
#else
typedef _Float16 half_t;
#endif

#if defined(__x86_64__) && !defined(__clang__)
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

static int can(void)
{
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
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

void rgpu_half_from(void *half, const void *single, size_t n)
{
	size_t i = can() ? from_f16c(half, single, n) : 0;

	for (; i < n; i++) {
		half_t h;
		float f;

		memcpy(&f, (const char *)single + 4 * i, sizeof(f));
		h = f;
		memcpy((char *)half + 2 * i, &h, sizeof(h));
	}
}

void rgpu_half_to(void *single, const void *half, size_t n)
{
	size_t i = can() ? to_f16c(single, half, n) : 0;

	for (; i < n; i++) {
		half_t h;
		float f;

		memcpy(&h, (const char *)half + 2 * i, sizeof(h));
		f = h;
		memcpy((char *)single + 4 * i, &f, sizeof(f));
	}
}
