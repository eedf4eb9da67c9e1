/* SPDX-License-Identifier: MIT */
/* Instructions in which lanes see each other: shuffles, votes, matches, reductions. */
#include "softgpu/ptx/ops.h"

/*
 * shfl: c holds the clamp in bits 0–4 and the segment mask in bits 8–12. A source lane out of bounds gives the
 * lane's own value and a false predicate; a source lane that does not take part is the program's error, and
 * its register's present value is what the hardware would give, too.
 */
enum shfl_mode { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };

static inline void shfl(struct warp *w, const struct ins *i, u32 em, enum shfl_mode mode)
{
	u32 *D = ARG(u32, 0);
	const u32 *A = ARG(const u32, 1), *B = ARG(const u32, 2), *C = ARG(const u32, 3);
	_Alignas(64) u32 v[WARP], from[WARP];
	_Alignas(64) s32 in[WARP];
	const s32 *m = lane_mask(w, em);
	u32 p = 0;

	IVDEP LANES
	{
		s32 lane = (s32)l, seg = (s32)(C[l] >> 8 & 31), clamp = (s32)(C[l] & 31), b = (s32)(B[l] & 31), j;
		s32 max = (lane & seg) | (clamp & ~seg), min = lane & seg;

		switch (mode) {
		case SHFL_UP:
			j = lane - b;
			in[l] = -(j >= max);
			break;
		case SHFL_DOWN:
			j = lane + b;
			in[l] = -(j <= max);
			break;
		case SHFL_BFLY:
			j = lane ^ b;
			in[l] = -(j <= max);
			break;
		default:
			j = min | (b & ~seg);
			in[l] = -(j <= max);
			break;
		}
		from[l] = (u32)(in[l] ? j : lane) & 31;
	}
	memcpy(v, A, sizeof(v));
#ifdef __AVX512F__
	__m512i lo = _mm512_load_si512(v), hi = _mm512_load_si512(v + 16);
	_Alignas(64) u32 got[WARP];

	_mm512_store_si512(got, _mm512_permutex2var_epi32(lo, _mm512_load_si512(from), hi));
	_mm512_store_si512(got + 16, _mm512_permutex2var_epi32(lo, _mm512_load_si512(from + 16), hi));
	IVDEP LANES D[l] = m[l] ? (s32)got[l] : (s32)D[l];
	p = (u32)_mm512_movepi32_mask(_mm512_load_si512(in)) | (u32)_mm512_movepi32_mask(_mm512_load_si512(in + 16)) << 16;
#else
	LANES D[l] = m[l] ? v[from[l]] : D[l];
	LANES p |= (u32)(in[l] & 1) << l;
#endif
	set_pred(w, i->r[4], em, p);
}

HANDLER(shfl_up)
{
	shfl(w, i, em, SHFL_UP);
}

HANDLER(shfl_down)
{
	shfl(w, i, em, SHFL_DOWN);
}

HANDLER(shfl_bfly)
{
	shfl(w, i, em, SHFL_BFLY);
}

HANDLER(shfl_idx)
{
	shfl(w, i, em, SHFL_IDX);
}

/* The lanes that lane @l works with: its member mask, or all present for the forms without .sync. */
static inline u32 members(const struct warp *w, const struct ins *i, u32 em, u32 l)
{
	return i->kind == K_SYNC ? ((const u32 *)opnd_ptr(w, i->r[7]))[l] & em : em;
}

/* Calls @fn once for each distinct member mask among the lanes. */
#define FOR_GROUPS(group, g)                                                                                                     \
	for (u32 rest_ = em, group, g;                                                                                           \
	     rest_ && (g = members(w, i, em, (u32)__builtin_ctz(rest_)), group = same_group(w, i, em, rest_, g), true);          \
	     rest_ &= ~group)

static inline u32 same_group(const struct warp *w, const struct ins *i, u32 em, u32 rest, u32 g)
{
	u32 same = 0;

	if (i->kind != K_SYNC || i->r[7] < 0)
		return rest;
	for (; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		same |= (u32)(members(w, i, em, l) == g) << l;
	}
	return same;
}

HANDLER(vote_all)
{
	u32 p = *pred_ptr(w, i->r[1]);

	FOR_GROUPS(lanes, g)
	set_pred(w, i->r[0], lanes, (p & g) == g ? FULL : 0);
}

HANDLER(vote_any)
{
	u32 p = *pred_ptr(w, i->r[1]);

	FOR_GROUPS(lanes, g)
	set_pred(w, i->r[0], lanes, p & g ? FULL : 0);
}

HANDLER(vote_uni)
{
	u32 p = *pred_ptr(w, i->r[1]);

	FOR_GROUPS(lanes, g)
	set_pred(w, i->r[0], lanes, (p & g) == g || !(p & g) ? FULL : 0);
}

static inline void put_u32(struct warp *w, const struct ins *i, u32 lanes, u32 v)
{
	u32 *D = ARG(u32, 0);

	if (lanes == FULL) {
		LANES D[l] = v;
		return;
	}
	for (; lanes; lanes &= lanes - 1)
		D[__builtin_ctz(lanes)] = v;
}

HANDLER(vote_ballot)
{
	u32 p = *pred_ptr(w, i->r[1]);

	FOR_GROUPS(lanes, g)
	put_u32(w, i, lanes, p & g);
}

HANDLER(activemask)
{
	put_u32(w, i, em, em);
}

HANDLER(elect)
{
	FOR_GROUPS(lanes, g)
	{
		u32 leader = g ? (u32)__builtin_ctz(g) : 0;

		put_u32(w, i, lanes, leader);
		set_pred(w, i->r[4], lanes, 1u << leader);
	}
}

HANDLER(warpsync)
{
	(void)w;
	(void)i;
	(void)em;
}

#define MATCH(nm, T)                                                                                                             \
	HANDLER(match_any_##nm)                                                                                                  \
	{                                                                                                                        \
		const T *A = ARG(const T, 1);                                                                                    \
		u32 *D = ARG(u32, 0);                                                                                            \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest), r = 0;                                                                 \
			for (u32 g = members(w, i, em, l); g; g &= g - 1)                                                        \
				r |= (u32)(A[__builtin_ctz(g)] == A[l]) << __builtin_ctz(g);                                     \
			D[l] = r;                                                                                                \
		}                                                                                                                \
	}                                                                                                                        \
	HANDLER(match_all_##nm)                                                                                                  \
	{                                                                                                                        \
		const T *A = ARG(const T, 1);                                                                                    \
		u32 *D = ARG(u32, 0);                                                                                            \
		u32 p = 0;                                                                                                       \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest), g = members(w, i, em, l);                                              \
			bool all = true;                                                                                         \
			for (u32 k = g; k; k &= k - 1)                                                                           \
				all = all && A[__builtin_ctz(k)] == A[l];                                                        \
			D[l] = all ? g : 0;                                                                                      \
			p |= (u32)all << l;                                                                                      \
		}                                                                                                                \
		set_pred(w, i->r[4], em, p);                                                                                     \
	}
MATCH(w, u32)
MATCH(d, u64)

#define REDUX(nm, T, INIT, EXPR)                                                                                                 \
	HANDLER(redux_##nm)                                                                                                      \
	{                                                                                                                        \
		const T *A = ARG(const T, 1);                                                                                    \
		FOR_GROUPS(lanes, g)                                                                                             \
		{                                                                                                                \
			T r = INIT;                                                                                              \
			for (u32 k = g; k; k &= k - 1) {                                                                         \
				const T a = A[__builtin_ctz(k)];                                                                 \
				r = EXPR;                                                                                        \
			}                                                                                                        \
			put_u32(w, i, lanes, (u32)r);                                                                            \
		}                                                                                                                \
	}
REDUX(add, u32, 0, r + a)
REDUX(and, u32, FULL, r &a)
REDUX(or, u32, 0, r | a)
REDUX(xor, u32, 0, r ^ a)
REDUX(min_u32, u32, FULL, a < r ? a : r)
REDUX(max_u32, u32, 0, a > r ? a : r)
REDUX(min_s32, s32, INT32_MAX, a < r ? a : r)
REDUX(max_s32, s32, INT32_MIN, a > r ? a : r)

/* imm: 1 for .abs, 2 for .NaN; without the latter a NaN counts only among NaNs */
static inline void redux_float(struct warp *w, const struct ins *i, u32 em, bool least)
{
	const u32 *A = ARG(const u32, 1);

	FOR_GROUPS(lanes, g)
	{
		u32 best = 0x7fffffff;
		bool nan = false;

		for (u32 k = g; k; k &= k - 1) {
			u32 v = A[__builtin_ctz(k)] & (i->imm & 1 ? 0x7fffffff : FULL);
			s32 order = (s32)(v ^ (u32)((s32)v >> 31) >> 1), seen = (s32)(best ^ (u32)((s32)best >> 31) >> 1);

			if ((v & 0x7fffffff) > 0x7f800000)
				nan = true;
			else if (best == 0x7fffffff || (least ? order < seen : order > seen))
				best = v;
		}
		put_u32(w, i, lanes, nan && (i->imm & 2) ? 0x7fffffff : best);
	}
}

HANDLER(redux_min_f32)
{
	redux_float(w, i, em, true);
}

HANDLER(redux_max_f32)
{
	redux_float(w, i, em, false);
}

TABLE(warp) = {
	{"redux:min:f32", "", redux_min_f32, 0},
	{"redux:max:f32", "", redux_max_f32, 0},
	{"shfl:up", "", shfl_up, 0},
	{"shfl:down", "", shfl_down, 0},
	{"shfl:bfly", "", shfl_bfly, 0},
	{"shfl:idx", "", shfl_idx, 0},
	{"vote:all", "", vote_all, 0},
	{"vote:any", "", vote_any, 0},
	{"vote:uni", "", vote_uni, 0},
	{"vote:ballot", "", vote_ballot, 0},
	{"activemask:", "", activemask, 0},
	{"elect:", "", elect, 0},
	{"warpsync:", "", warpsync, 0},
	{"match:any:w", "", match_any_w, 0},
	{"match:any:d", "", match_any_d, 0},
	{"match:all:w", "", match_all_w, 0},
	{"match:all:d", "", match_all_d, 0},
	{"redux:add", "", redux_add, 0},
	{"redux:and", "", redux_and, 0},
	{"redux:or", "", redux_or, 0},
	{"redux:xor", "", redux_xor, 0},
	{"redux:min:u32", "", redux_min_u32, 0},
	{"redux:max:u32", "", redux_max_u32, 0},
	{"redux:min:s32", "", redux_min_s32, 0},
	{"redux:max:s32", "", redux_max_s32, 0},
	{NULL, NULL, NULL, 0},
};
