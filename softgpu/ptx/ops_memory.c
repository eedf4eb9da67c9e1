/* SPDX-License-Identifier: MIT */
/* Loads and stores of all state spaces. */
#include "softgpu/ptx/ops_memory.h"

/*
 * Whole half-warps are classified: consecutive addresses are one copy, equal ones one load. Everything else,
 * and everything that a quick check does not clear, goes lane by lane through ptx_lane_addr, which raises
 * the faults. Addresses are in r[4], the constant offset in imm.
 */
enum pattern { CONSECUTIVE, EQUAL, SCATTERED };

#if defined(__AVX512F__)
static inline enum pattern classify_u64(const u64 *a, u64 step)
{
	__m512i first = _mm512_set1_epi64((s64)a[0]), lo = _mm512_loadu_si512(a), hi = _mm512_loadu_si512(a + 8);
	__m512i lin = _mm512_add_epi64(
		first, _mm512_mullo_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64((s64)step)));

	if (!(_mm512_cmpneq_epi64_mask(lo, lin) |
	      _mm512_cmpneq_epi64_mask(hi, _mm512_add_epi64(lin, _mm512_set1_epi64((s64)(8 * step))))))
		return CONSECUTIVE;
	return (_mm512_cmpneq_epi64_mask(lo, first) | _mm512_cmpneq_epi64_mask(hi, first)) ? SCATTERED : EQUAL;
}

static inline enum pattern classify_u32(const u32 *a, u32 step)
{
	__m512i first = _mm512_set1_epi32((s32)a[0]), v = _mm512_loadu_si512(a);
	__m512i lin = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
					 _mm512_set1_epi32((s32)step));

	if (!_mm512_cmpneq_epi32_mask(v, _mm512_add_epi32(first, lin)))
		return CONSECUTIVE;
	return _mm512_cmpneq_epi32_mask(v, first) ? SCATTERED : EQUAL;
}
#elif defined(__AVX2__)
static inline enum pattern classify_u64(const u64 *a, u64 step)
{
	__m256i first = _mm256_set1_epi64x((s64)a[0]), next4 = _mm256_set1_epi64x((s64)(4 * step));
	__m256i lin = _mm256_add_epi64(first, _mm256_set_epi64x((s64)(3 * step), (s64)(2 * step), (s64)step, 0));
	__m256i differs = _mm256_setzero_si256(), varies = differs;

	for (u32 k = 0; k < 4; k++) {
		__m256i v = _mm256_loadu_si256((const __m256i *)(a + 4 * k));

		differs = _mm256_or_si256(differs, _mm256_xor_si256(v, lin));
		varies = _mm256_or_si256(varies, _mm256_xor_si256(v, first));
		lin = _mm256_add_epi64(lin, next4);
	}
	return _mm256_testz_si256(differs, differs) ? CONSECUTIVE : _mm256_testz_si256(varies, varies) ? EQUAL : SCATTERED;
}

static inline enum pattern classify_u32(const u32 *a, u32 step)
{
	__m256i first = _mm256_set1_epi32((s32)a[0]), v0 = _mm256_loadu_si256((const __m256i *)a);
	__m256i v1 = _mm256_loadu_si256((const __m256i *)(a + 8));
	__m256i lin = _mm256_add_epi32(
		first, _mm256_mullo_epi32(_mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0), _mm256_set1_epi32((s32)step)));
	__m256i lin1 = _mm256_add_epi32(lin, _mm256_set1_epi32((s32)(8 * step)));
	__m256i d = _mm256_or_si256(_mm256_xor_si256(v0, lin), _mm256_xor_si256(v1, lin1));

	if (_mm256_testz_si256(d, d))
		return CONSECUTIVE;
	d = _mm256_or_si256(_mm256_xor_si256(v0, first), _mm256_xor_si256(v1, first));
	return _mm256_testz_si256(d, d) ? EQUAL : SCATTERED;
}
#else
#define CLASSIFY(T)                                                                                                              \
	static inline enum pattern classify_##T(const T *a, T step)                                                              \
	{                                                                                                                        \
		T differs = 0, varies = 0;                                                                                       \
		for (u32 k = 0; k < 16; k++) {                                                                                   \
			differs |= a[k] ^ (a[0] + k * step);                                                                     \
			varies |= a[k] ^ a[0];                                                                                   \
		}                                                                                                                \
		return !differs ? CONSECUTIVE : !varies ? EQUAL : SCATTERED;                                                     \
	}
CLASSIFY(u64)
CLASSIFY(u32)
#endif

/* All 32 addresses at once, lying anywhere in one granule of the arena or in shared memory. */
static inline bool all_global_ok(const u64 *a, u64 imm, u64 size)
{
	u64 base = (u64)(uintptr_t)softgpu_arena.base, first = a[0] + imm - base, spread = 0, low = 0;

	LANES
	{
		u64 off = a[l] + imm - base;

		spread |= (off ^ first) | ((off + size - 1) ^ first);
		low |= off;
	}
	return !(spread >> SOFTGPU_GRANULE_SHIFT) && !(low & (size - 1)) && first < softgpu_arena.size &&
	       softgpu_arena.state[first >> SOFTGPU_GRANULE_SHIFT];
}

#define ALL_SHARED_OK(T)                                                                                                         \
	static inline bool all_shared_ok_##T(const struct warp *w, const T *a, T imm, u32 size)                                  \
	{                                                                                                                        \
		T most = 0, low = 0;                                                                                             \
		LANES                                                                                                            \
		{                                                                                                                \
			T off = a[l] + imm;                                                                                      \
			most = off > most ? off : most;                                                                          \
			low |= off;                                                                                              \
		}                                                                                                                \
		return most < w->shared_size && size <= w->shared_size - most && !(low & (size - 1));                            \
	}
ALL_SHARED_OK(u32)
ALL_SHARED_OK(u64)

/*
 * nm, address type, value in memory, register, space, and: is a run of addresses good, are all 32, what is added
 * to an address to get a host pointer.
 */
#define LOAD(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                        \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const AT *A = ARG(const AT, 4);                                                                                  \
		RT *D = ARG(RT, 0);                                                                                              \
		const AT imm = (AT)i->imm;                                                                                       \
		u32 todo = em;                                                                                                   \
		for (u32 h = 0; h < WARP; h += 16) {                                                                             \
			const AT at = A[h] + imm;                                                                                \
			if ((em >> h & 0xffff) != 0xffff)                                                                        \
				continue;                                                                                        \
			switch (classify_##AT(A + h, sizeof(MT))) {                                                              \
			case CONSECUTIVE:                                                                                        \
				if (!RUN_OK(at, 16 * sizeof(MT), sizeof(MT)))                                                    \
					break;                                                                                   \
				{                                                                                                \
					const MT *p = (const MT *)(BASE + at);                                                   \
					MT t[16];                                                                                \
					for (u32 l = 0; l < 16; l++)                                                             \
						t[l] = p[l];                                                                     \
					for (u32 l = 0; l < 16; l++)                                                             \
						D[h + l] = (RT)t[l];                                                             \
				}                                                                                                \
				todo &= ~(0xffffu << h);                                                                         \
				break;                                                                                           \
			case EQUAL:                                                                                              \
				if (!RUN_OK(at, sizeof(MT), sizeof(MT)))                                                         \
					break;                                                                                   \
				{                                                                                                \
					const RT v = (RT) * (const MT *)(BASE + at);                                             \
					for (u32 l = 0; l < 16; l++)                                                             \
						D[h + l] = v;                                                                    \
				}                                                                                                \
				todo &= ~(0xffffu << h);                                                                         \
				break;                                                                                           \
			default:                                                                                                 \
				break;                                                                                           \
			}                                                                                                        \
		}                                                                                                                \
		if (!todo)                                                                                                       \
			return;                                                                                                  \
		if (em == FULL && ALL_OK(A, imm, sizeof(MT))) {                                                                  \
			LANES D[l] = (RT) * (const MT *)(BASE + (AT)(A[l] + imm));                                               \
			return;                                                                                                  \
		}                                                                                                                \
		for (; todo; todo &= todo - 1) {                                                                                 \
			u32 l = (u32)__builtin_ctz(todo);                                                                        \
			const AT at = A[l] + imm;                                                                                \
			const MT *p = RUN_OK(at, sizeof(MT), sizeof(MT)) ? (const MT *)(BASE + at)                               \
									 : ptx_lane_addr(w, i, l, SPACE, at, sizeof(MT));        \
			if (!p)                                                                                                  \
				return;                                                                                          \
			D[l] = (RT)*p;                                                                                           \
		}                                                                                                                \
	}

#define STORE(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                       \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const AT *A = ARG(const AT, 4);                                                                                  \
		const RT *V = ARG(const RT, 0);                                                                                  \
		const AT imm = (AT)i->imm;                                                                                       \
		u32 todo = em;                                                                                                   \
		for (u32 h = 0; h < WARP; h += 16) {                                                                             \
			const AT at = A[h] + imm;                                                                                \
			if ((em >> h & 0xffff) != 0xffff || classify_##AT(A + h, sizeof(MT)) != CONSECUTIVE ||                   \
			    !RUN_OK(at, 16 * sizeof(MT), sizeof(MT)))                                                            \
				continue;                                                                                        \
			MT *p = (MT *)(BASE + at);                                                                               \
			MT t[16];                                                                                                \
			for (u32 l = 0; l < 16; l++)                                                                             \
				t[l] = (MT)V[h + l];                                                                             \
			for (u32 l = 0; l < 16; l++)                                                                             \
				p[l] = t[l];                                                                                     \
			todo &= ~(0xffffu << h);                                                                                 \
		}                                                                                                                \
		if (!todo)                                                                                                       \
			return;                                                                                                  \
		if (todo == FULL && ALL_OK(A, imm, sizeof(MT))) {                                                                \
			for (u32 l = 0; l < WARP; l++)                                                                           \
				*(MT *)(BASE + (AT)(A[l] + imm)) = (MT)V[l];                                                     \
			return;                                                                                                  \
		}                                                                                                                \
		for (; todo; todo &= todo - 1) {                                                                                 \
			u32 l = (u32)__builtin_ctz(todo);                                                                        \
			const AT at = A[l] + imm;                                                                                \
			MT *p = RUN_OK(at, sizeof(MT), sizeof(MT)) ? (MT *)(BASE + at)                                           \
								   : ptx_lane_addr(w, i, l, SPACE, at, sizeof(MT));              \
			if (!p)                                                                                                  \
				return;                                                                                          \
			*p = (MT)V[l];                                                                                           \
		}                                                                                                                \
	}

/* A lane's own memory; the lanes never meet there. */
static inline u8 *local_ptr(struct warp *w, const struct ins *i, u32 l, u64 at, u32 size)
{
	if (at <= w->local_stride && size <= w->local_stride - at && !(at & (size - 1)))
		return w->local + (size_t)l * w->local_stride + at;
	return ptx_lane_addr(w, i, l, SP_LOCAL, at, size);
}

#define LOAD_LOCAL(nm, MT, RT)                                                                                                   \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const u64 *A = ARG(const u64, 4);                                                                                \
		RT *D = ARG(RT, 0);                                                                                              \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			const MT *p = (const MT *)local_ptr(w, i, l, A[l] + i->imm, sizeof(MT));                                 \
			if (!p)                                                                                                  \
				return;                                                                                          \
			D[l] = (RT)*p;                                                                                           \
		}                                                                                                                \
	}
#define STORE_LOCAL(nm, MT, RT)                                                                                                  \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		const u64 *A = ARG(const u64, 4);                                                                                \
		const RT *V = ARG(const RT, 0);                                                                                  \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			MT *p = (MT *)local_ptr(w, i, l, A[l] + i->imm, sizeof(MT));                                             \
			if (!p)                                                                                                  \
				return;                                                                                          \
			*p = (MT)V[l];                                                                                           \
		}                                                                                                                \
	}

#define LOAD_FUNCS(MT, RT, name, c)  FOR_SPACES(LOAD, MT, RT, ld_##name##_##c) LOAD_LOCAL(l_ld_##name##_##c, MT, RT)
#define STORE_FUNCS(MT, RT, name, c) FOR_SPACES(STORE, MT, RT, st_##name##_##c) STORE_LOCAL(l_st_##name##_##c, MT, RT)
LOADS(LOAD_FUNCS)
STORES(STORE_FUNCS)

/* Host pointers of all lanes in em for vectors of i->size elements; false after a fault. */
static bool vector_ptrs(struct warp *w, const struct ins *i, u32 em, enum space sp, bool wide, u32 size, u8 *ptr[WARP])
{
	const u64 *A = ARG(const u64, 4);
	const u32 *A32 = ARG(const u32, 4);

	if ((sp == SP_GLOBAL || sp == SP_GENERIC) && em == FULL && all_global_ok(A, i->imm, size)) {
		LANES ptr[l] = (u8 *)(uintptr_t)(A[l] + i->imm);
		return true;
	}
	if (sp == SP_SHARED && !wide && em == FULL && all_shared_ok_u32(w, A32, (u32)i->imm, size)) {
		LANES ptr[l] = w->shared + (u32)(A32[l] + (u32)i->imm);
		return true;
	}
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		u64 at = wide ? A[l] + i->imm : (u32)(A32[l] + (u32)i->imm);

		ptr[l] = ptx_lane_addr(w, i, l, sp, at, size);
		if (!ptr[l])
			return false;
	}
	return true;
}

#define VLOAD(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                       \
	HANDLER(v##nm)                                                                                                           \
	{                                                                                                                        \
		u8 *p[WARP];                                                                                                     \
		if (!vector_ptrs(w, i, em, SPACE, sizeof(AT) == 8, i->size * sizeof(MT), p))                                     \
			return;                                                                                                  \
		for (u32 k = 0; k < i->size; k++) {                                                                              \
			RT *D = ARG(RT, k);                                                                                      \
			if (em == FULL) {                                                                                        \
				LANES D[l] = (RT)((const MT *)p[l])[k];                                                          \
				continue;                                                                                        \
			}                                                                                                        \
			for (u32 rest = em; rest; rest &= rest - 1) {                                                            \
				u32 l = (u32)__builtin_ctz(rest);                                                                \
				D[l] = (RT)((const MT *)p[l])[k];                                                                \
			}                                                                                                        \
		}                                                                                                                \
	}

#define VSTORE(nm, AT, MT, RT, SPACE, RUN_OK, ALL_OK, BASE)                                                                      \
	HANDLER(v##nm)                                                                                                           \
	{                                                                                                                        \
		u8 *p[WARP];                                                                                                     \
		if (!vector_ptrs(w, i, em, SPACE, sizeof(AT) == 8, i->size * sizeof(MT), p))                                     \
			return;                                                                                                  \
		for (u32 k = 0; k < i->size; k++) {                                                                              \
			const RT *V = ARG(const RT, k);                                                                          \
			for (u32 rest = em; rest; rest &= rest - 1) {                                                            \
				u32 l = (u32)__builtin_ctz(rest);                                                                \
				((MT *)p[l])[k] = (MT)V[l];                                                                      \
			}                                                                                                        \
		}                                                                                                                \
	}
#define VLOAD_FUNCS(MT, RT, name, c)                                                                                             \
	FOR_SPACES(VLOAD, MT, RT, ld_##name##_##c) VLOAD(l_ld_##name##_##c, u64, MT, RT, SP_LOCAL, , , )
#define VSTORE_FUNCS(MT, RT, name, c)                                                                                            \
	FOR_SPACES(VSTORE, MT, RT, st_##name##_##c) VSTORE(l_st_##name##_##c, u64, MT, RT, SP_LOCAL, , , )
LOADS(VLOAD_FUNCS)
STORES(VSTORE_FUNCS)

/* Kernel parameters: the same for all lanes. The offset was checked at load. */
#define PARAM(MT, RT, name, c)                                                                                                   \
	HANDLER(ldp_##name##_##c)                                                                                                \
	{                                                                                                                        \
		RT *D = ARG(RT, 0);                                                                                              \
		MT v;                                                                                                            \
		memcpy(&v, w->blk->l->params + i->imm, sizeof(v));                                                               \
		if (em == FULL) {                                                                                                \
			LANES D[l] = (RT)v;                                                                                      \
			return;                                                                                                  \
		}                                                                                                                \
		for (u32 rest = em; rest; rest &= rest - 1)                                                                      \
			D[__builtin_ctz(rest)] = (RT)v;                                                                          \
	}                                                                                                                        \
	HANDLER(ldpr_##name##_##c)                                                                                               \
	{                                                                                                                        \
		const u64 *A = ARG(const u64, 1);                                                                                \
		RT *D = ARG(RT, 0);                                                                                              \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			const void *p = ptx_lane_addr(w, i, l, SP_PARAM, A[l] + i->imm, sizeof(MT));                             \
			MT v;                                                                                                    \
			if (!p)                                                                                                  \
				return;                                                                                          \
			memcpy(&v, p, sizeof(v));                                                                                \
			D[l] = (RT)v;                                                                                            \
		}                                                                                                                \
	}                                                                                                                        \
	HANDLER(lda_##name##_##c)                                                                                                \
	{                                                                                                                        \
		const struct ptx_func *f = w->frame->f;                                                                          \
		RT *D = ARG(RT, 0);                                                                                              \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			MT v;                                                                                                    \
			memcpy(&v, w->regs + f->frame_regs + (size_t)l * f->area + i->imm, sizeof(v));                           \
			D[l] = (RT)v;                                                                                            \
		}                                                                                                                \
	}
LOADS(PARAM)

#define STORE_AREA(MT, RT, name, c)                                                                                              \
	HANDLER(sta_##name##_##c)                                                                                                \
	{                                                                                                                        \
		const struct ptx_func *f = w->frame->f;                                                                          \
		const RT *V = ARG(const RT, 0);                                                                                  \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			MT v = (MT)V[l];                                                                                         \
			memcpy(w->regs + f->frame_regs + (size_t)l * f->area + i->imm, &v, sizeof(v));                           \
		}                                                                                                                \
	}
STORES(STORE_AREA)

#define ROWS(s, name, sep, c, kind)                                                                                              \
	{kind ":" #s ":" sep ":" #c, "", s##_##name, 0}, {kind "v:" #s ":" sep ":" #c, "", v##s##_##name, 0},
#define LOAD_ROWS(MT, RT, name, c)                                                                                               \
	ROWS(g, ld_##name##_##c, #name, c, "ld")                                                                                 \
	ROWS(s, ld_##name##_##c, #name, c, "ld")                                                                                 \
	ROWS(S, ld_##name##_##c, #name, c, "ld")                                                                                 \
	ROWS(l, ld_##name##_##c, #name, c, "ld"){"ldp:" #name ":" #c, "", ldp_##name##_##c, 0},                                  \
		{"ldpr:" #name ":" #c, "", ldpr_##name##_##c, 0}, {"lda:" #name ":" #c, "", lda_##name##_##c, 0},
#define STORE_ROWS(MT, RT, name, c)                                                                                              \
	ROWS(g, st_##name##_##c, #name, c, "st")                                                                                 \
	ROWS(s, st_##name##_##c, #name, c, "st")                                                                                 \
	ROWS(S, st_##name##_##c, #name, c, "st")                                                                                 \
	ROWS(l, st_##name##_##c, #name, c, "st"){"sta:" #name ":" #c, "", sta_##name##_##c, 0},

TABLE(memory) = {
	LOADS(LOAD_ROWS) STORES(STORE_ROWS){NULL, NULL, NULL, 0},
};
