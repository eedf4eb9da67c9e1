/* SPDX-License-Identifier: MIT */
/* atom and red: real atomics of the host, lane by lane in ascending order. */
#include "softgpu/ptx/half.h"

/*
 * Blocks run on different host threads, so global memory needs the host's atomics. Shared memory belongs to
 * one block and so to one host thread at a time: plain operations do.
 */
static u64 lane_address(const struct warp *w, const struct ins *i, u32 l)
{
	if (i->size == 8)
		return ((const u64 *)opnd_ptr(w, i->r[4]))[l] + i->imm;
	return (u32)(((const u32 *)opnd_ptr(w, i->r[4]))[l] + (u32)i->imm);
}

static inline void *lane_ptr(struct warp *w, const struct ins *i, u32 l, u32 size)
{
	u64 at = lane_address(w, i, l);

	if (i->sub == SP_SHARED && at < w->shared_size && size <= w->shared_size - at && !(at & (size - 1)))
		return w->shared + at;
	return ptx_lane_addr(w, i, l, (enum space)i->sub, at, size);
}

#define FOR_LANES(T)                                                                                                             \
	T *D = ARG(T, 0);                                                                                                        \
	const T *B = ARG(const T, 1), *C = ARG(const T, 2);                                                                      \
	(void)C;                                                                                                                 \
	for (u32 rest = em; rest; rest &= rest - 1) {                                                                            \
		u32 l = (u32)__builtin_ctz(rest);                                                                                \
		T *p = lane_ptr(w, i, l, sizeof(T));                                                                             \
		if (!p)                                                                                                          \
			return;

#define FETCH(nm, T, BUILTIN)                                                                                                    \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		FOR_LANES(T)                                                                                                     \
		if (i->sub == SP_SHARED) {                                                                                       \
			const T a = *p, b = B[l];                                                                                \
			*p = SHARED_##BUILTIN;                                                                                   \
			D[l] = a;                                                                                                \
		} else {                                                                                                         \
			D[l] = __atomic_##BUILTIN(p, B[l], __ATOMIC_SEQ_CST);                                                    \
		}                                                                                                                \
	}                                                                                                                        \
	}
#define SHARED_fetch_add  (a + b)
#define SHARED_fetch_and  (a & b)
#define SHARED_fetch_or	  (a | b)
#define SHARED_fetch_xor  (a ^ b)
#define SHARED_exchange_n b
FETCH(add_u32, u32, fetch_add)
FETCH(add_u64, u64, fetch_add)
FETCH(and_b32, u32, fetch_and)
FETCH(and_b64, u64, fetch_and)
FETCH(or_b32, u32, fetch_or)
FETCH(or_b64, u64, fetch_or)
FETCH(xor_b32, u32, fetch_xor)
FETCH(xor_b64, u64, fetch_xor)
FETCH(exch_b16, u16, exchange_n)
FETCH(exch_b32, u32, exchange_n)
FETCH(exch_b64, u64, exchange_n)

#define CAS(nm, T)                                                                                                               \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		FOR_LANES(T)                                                                                                     \
		T old = B[l];                                                                                                    \
		__atomic_compare_exchange_n(p, &old, C[l], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
		D[l] = old;                                                                                                      \
	}                                                                                                                        \
	}
CAS(cas_b16, u16)
CAS(cas_b32, u32)
CAS(cas_b64, u64)

/* Everything else is a loop around compare-and-exchange: UT the bits in memory, a the old value, b the operand. */
#define LOOP(nm, UT, DECODE_A, DECODE_B, ENCODE)                                                                                 \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		FOR_LANES(UT)                                                                                                    \
		UT old = __atomic_load_n(p, __ATOMIC_RELAXED), val;                                                              \
		do {                                                                                                             \
			DECODE_A;                                                                                                \
			DECODE_B;                                                                                                \
			val = (UT)(ENCODE);                                                                                      \
		} while (!__atomic_compare_exchange_n(p, &old, val, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));                 \
		D[l] = old;                                                                                                      \
	}                                                                                                                        \
	}
#define INT_LOOP(nm, UT, T, EXPR) LOOP(nm, UT, const T a = (T)old, const T b = (T)B[l], EXPR)
INT_LOOP(min_u32, u32, u32, a < b ? a : b)
INT_LOOP(min_s32, u32, s32, a < b ? a : b)
INT_LOOP(min_u64, u64, u64, a < b ? a : b)
INT_LOOP(min_s64, u64, s64, a < b ? a : b)
INT_LOOP(max_u32, u32, u32, a > b ? a : b)
INT_LOOP(max_s32, u32, s32, a > b ? a : b)
INT_LOOP(max_u64, u64, u64, a > b ? a : b)
INT_LOOP(max_s64, u64, s64, a > b ? a : b)
INT_LOOP(inc_b32, u32, u32, a >= b ? 0 : a + 1)
INT_LOOP(dec_b32, u32, u32, !a || a > b ? b : a - 1)

LOOP(add_f32, u32, const f32 a = bits_f32(old), const f32 b = bits_f32(B[l]), f32_bits(a + b))
LOOP(add_f64, u64, const f64 a = bits_f64(old), const f64 b = bits_f64(B[l]), f64_bits(a + b))

static u16 add_half(u16 a, u16 b)
{
	return f32_to_f16(f16_to_f32(a) + f16_to_f32(b));
}

static u16 add_bhalf(u16 a, u16 b)
{
	return f32_to_bf16(bf16_to_f32(a) + bf16_to_f32(b));
}

LOOP(add_f16, u16, const u16 a = old, const u16 b = B[l], add_half(a, b))
LOOP(add_bf16, u16, const u16 a = old, const u16 b = B[l], add_bhalf(a, b))
LOOP(add_f16x2, u32, const u32 a = old, const u32 b = B[l],
     add_half((u16)a, (u16)b) | (u32)add_half((u16)(a >> 16), (u16)(b >> 16)) << 16)
LOOP(add_bf16x2, u32, const u32 a = old, const u32 b = B[l],
     add_bhalf((u16)a, (u16)b) | (u32)add_bhalf((u16)(a >> 16), (u16)(b >> 16)) << 16)

static inline f32 pick(f32 a, f32 b, bool less)
{
	if (a != a || b != b)
		return a != a ? b : a;
	if (a == b)
		return less == (f32_bits(a) >> 31) ? a : b;
	return (a < b) == less ? a : b;
}

#define HALVES(nm, FROM, TO, LESS)                                                                                               \
	static u16 nm##_one(u16 a, u16 b)                                                                                        \
	{                                                                                                                        \
		return TO(pick(FROM(a), FROM(b), LESS));                                                                         \
	}                                                                                                                        \
	LOOP(nm, u16, const u16 a = old, const u16 b = B[l], nm##_one(a, b))                                                     \
	LOOP(nm##x2, u32, const u32 a = old, const u32 b = B[l],                                                                 \
	     nm##_one((u16)a, (u16)b) | (u32)nm##_one((u16)(a >> 16), (u16)(b >> 16)) << 16)
HALVES(min_f16, f16_to_f32, f32_to_f16, true)
HALVES(max_f16, f16_to_f32, f32_to_f16, false)
HALVES(min_bf16, bf16_to_f32, f32_to_bf16, true)
HALVES(max_bf16, bf16_to_f32, f32_to_bf16, false)

/* 128 bits: an old __sync built-in, because the newer ones call a library. */
#define WIDE(nm, CAS)                                                                                                            \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		u64 *D0 = ARG(u64, 0), *D1 = ARG(u64, 1);                                                                        \
		const u64 *B0 = ARG(const u64, 2), *B1 = ARG(const u64, 3), *V0 = ARG(const u64, 5), *V1 = ARG(const u64, 6);    \
		(void)V0, (void)V1;                                                                                              \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			unsigned __int128 *p = lane_ptr(w, i, l, 16), old, b = (unsigned __int128)B1[l] << 64 | B0[l];           \
			if (!p)                                                                                                  \
				return;                                                                                          \
			if (CAS) {                                                                                               \
				old = __sync_val_compare_and_swap(p, b, (unsigned __int128)V1[l] << 64 | V0[l]);                 \
			} else {                                                                                                 \
				unsigned __int128 seen = 0;                                                                      \
				while ((old = __sync_val_compare_and_swap(p, seen, b)) != seen)                                  \
					seen = old;                                                                              \
			}                                                                                                        \
			D0[l] = (u64)old;                                                                                        \
			D1[l] = (u64)(old >> 64);                                                                                \
		}                                                                                                                \
	}
WIDE(exch_b128, false)
WIDE(cas_b128, true)

const struct op_row ptx_ops_atomic[] = {
	{"atom:exch:b128", "", exch_b128, 0},
	{"atom:cas:b128", "", cas_b128, 0},
	{"atom:min:f16", "", min_f16, 0},
	{"atom:max:f16", "", max_f16, 0},
	{"atom:min:bf16", "", min_bf16, 0},
	{"atom:max:bf16", "", max_bf16, 0},
	{"atom:min:f16x2", "", min_f16x2, 0},
	{"atom:max:f16x2", "", max_f16x2, 0},
	{"atom:min:bf16x2", "", min_bf16x2, 0},
	{"atom:max:bf16x2", "", max_bf16x2, 0},
	{"atom:add:{u32,s32}", "", add_u32, 0},
	{"atom:add:{u64,s64}", "", add_u64, 0},
	{"atom:add:f32", "", add_f32, 0},
	{"atom:add:f64", "", add_f64, 0},
	{"atom:add:f16", "", add_f16, 0},
	{"atom:add:f16x2", "", add_f16x2, 0},
	{"atom:add:bf16", "", add_bf16, 0},
	{"atom:add:bf16x2", "", add_bf16x2, 0},
	{"atom:and:b32", "", and_b32, 0},
	{"atom:and:b64", "", and_b64, 0},
	{"atom:or:b32", "", or_b32, 0},
	{"atom:or:b64", "", or_b64, 0},
	{"atom:xor:b32", "", xor_b32, 0},
	{"atom:xor:b64", "", xor_b64, 0},
	{"atom:exch:b16", "", exch_b16, 0},
	{"atom:exch:b32", "", exch_b32, 0},
	{"atom:exch:b64", "", exch_b64, 0},
	{"atom:cas:b16", "", cas_b16, 0},
	{"atom:cas:b32", "", cas_b32, 0},
	{"atom:cas:b64", "", cas_b64, 0},
	{"atom:min:u32", "", min_u32, 0},
	{"atom:min:s32", "", min_s32, 0},
	{"atom:min:u64", "", min_u64, 0},
	{"atom:min:s64", "", min_s64, 0},
	{"atom:max:u32", "", max_u32, 0},
	{"atom:max:s32", "", max_s32, 0},
	{"atom:max:u64", "", max_u64, 0},
	{"atom:max:s64", "", max_s64, 0},
	{"atom:inc:b32", "", inc_b32, 0},
	{"atom:dec:b32", "", dec_b32, 0},
	{NULL, NULL, NULL, 0},
};
