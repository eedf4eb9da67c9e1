/* SPDX-License-Identifier: MIT */
/* m16n8k16 of 16-bit floats into f32 with AVX-512: columns of a in registers, elements of b broadcast from memory. */
#ifndef SOFTGPU_PTX_MMA_AVX512_H
#define SOFTGPU_PTX_MMA_AVX512_H

#include <immintrin.h>

#include "softgpu/ptx/types.h"

/*
 * A register is 32 words, lane 4g + t. Two columns of lanes t and t + 1, each of eight g, are taken together; then halves
 * of such pairs make a vector of rows 0 to 15.
 */
static inline __m512i mma_columns(const u32 *v, bool second)
{
	const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
	const __m512i at = second ? _mm512_add_epi32(first, _mm512_set1_epi32(2)) : first;

	return _mm512_permutex2var_epi32(_mm512_loadu_si512(v), at, _mm512_loadu_si512(v + 16));
}

static inline __m512i low_halves(__m512i a, __m512i b)
{
	return _mm512_shuffle_i64x2(a, b, 0x44);
}

static inline __m512i high_halves(__m512i a, __m512i b)
{
	return _mm512_shuffle_i64x2(a, b, 0xee);
}

/* The low or high 16 bits of each word as f32. */
static inline __m512 mma_float(__m512i v, u32 high, bool bf16)
{
	if (bf16)
		return _mm512_castsi512_ps(high ? _mm512_and_si512(v, _mm512_set1_epi32((s32)0xffff0000))
						: _mm512_slli_epi32(v, 16));
	return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(high ? _mm512_srli_epi32(v, 16) : v));
}

static inline void mma_b(const u32 *v, f32 *to, bool bf16)
{
	for (u32 k = 0; k < 32; k += 8) {
		const __m256i h = _mm256_loadu_si256((const __m256i *)(v + k));

		_mm512_storeu_ps(to + 2 * k, bf16 ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))
						  : _mm512_cvtph_ps(h));
	}
}

/* Products of f16 are exact in f32, so one rounding does; those of bf16 may leave the range, so they are rounded, too. */
static inline void mma_column(__m512 acc[8], __m512 a, const f32 *b, bool bf16)
{
	for (u32 j = 0; j < 8; j++) {
		const __m512 x = _mm512_set1_ps(b[8 * j]);

		acc[j] = bf16 ? _mm512_add_ps(acc[j], _mm512_mul_ps(a, x)) : _mm512_fmadd_ps(a, x, acc[j]);
	}
}

/* In the order of k, as the general handler sums. */
static inline __attribute__((always_inline)) void mma_16816(const u32 *const a[4], const u32 *const b[2], const u32 *const c[4],
							    u32 *const d[4], bool bf16)
{
	const __m512i back = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
	f32 fb[2][64];
	__m512 acc[8];

	for (u32 e = 0; e < 2; e++)
		for (u32 s = 0; s < 2; s++) {
			const __m512i top = mma_columns(c[e], s), bottom = mma_columns(c[2 + e], s);

			acc[4 * s + e] = _mm512_castsi512_ps(low_halves(top, bottom));
			acc[4 * s + 2 + e] = _mm512_castsi512_ps(high_halves(top, bottom));
		}
	mma_b(b[0], fb[0], bf16);
	mma_b(b[1], fb[1], bf16);
	for (u32 r = 0; r < 2; r++)
		for (u32 s = 0; s < 2; s++) {
			const __m512i top = mma_columns(a[2 * r], s), bottom = mma_columns(a[2 * r + 1], s);
			const __m512i x = low_halves(top, bottom), y = high_halves(top, bottom);

			mma_column(acc, mma_float(x, 0, bf16), &fb[r][4 * s], bf16);
			mma_column(acc, mma_float(x, 1, bf16), &fb[r][4 * s + 1], bf16);
			mma_column(acc, mma_float(y, 0, bf16), &fb[r][4 * s + 2], bf16);
			mma_column(acc, mma_float(y, 1, bf16), &fb[r][4 * s + 3], bf16);
		}
	for (u32 e = 0; e < 2; e++) {
		const __m512i c0 = _mm512_castps_si512(acc[e]), c1 = _mm512_castps_si512(acc[2 + e]),
			      c2 = _mm512_castps_si512(acc[4 + e]), c3 = _mm512_castps_si512(acc[6 + e]);

		for (u32 half = 0; half < 2; half++) {
			const __m512i x = half ? high_halves(c0, c1) : low_halves(c0, c1),
				      y = half ? high_halves(c2, c3) : low_halves(c2, c3);

			_mm512_storeu_si512(d[2 * half + e], _mm512_permutex2var_epi32(x, back, y));
			_mm512_storeu_si512(d[2 * half + e] + 16,
					    _mm512_permutex2var_epi32(x, _mm512_add_epi32(back, _mm512_set1_epi32(4)), y));
		}
	}
}

#endif
