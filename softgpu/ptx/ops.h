/* SPDX-License-Identifier: MIT */
/* What the handler files share. They are compiled once for each x86-64 level; LEVEL is v2, v3 or v4. */
#ifndef SOFTGPU_PTX_OPS_H
#define SOFTGPU_PTX_OPS_H

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "softgpu/ptx/exec.h"

#define PASTE3(a, b, c)	     a##b##_##c
#define TABLE_NAME(t, level) PASTE3(ptx_ops_, t, level)
/* The exported table of this file, for this level. */
#define TABLE(t) const struct op_row TABLE_NAME(t, LEVEL)[]

#define LANES for (u32 l = 0; l < WARP; l++)
/* Results never overlap sources except where both are the same register, lane for lane: see slots.c. */
#define IVDEP	    _Pragma("GCC ivdep")
#define HANDLER(nm) static void nm(struct warp *w, const struct ins *i, u32 em)

static inline const s32 *lane_mask(struct warp *w, u32 em)
{
	if (w->lane_mask_for != em) {
		w->lane_mask_for = em;
		LANES w->lane_mask[l] = -(s32)(em >> l & 1);
	}
	return w->lane_mask;
}

#define ALIGNED(p) __builtin_assume_aligned(p, 64)
#define ARG(T, k)  ((T *)ALIGNED(opnd_ptr(w, i->r[k])))

/* d[l] = the expression in a, b, c (the lane's operands), for the lanes in em. */
#define ELEMENTWISE(DT, AT, BT, CT, ...)                                                                                         \
	DT *D = ARG(DT, 0);                                                                                                      \
	const AT *A = ARG(const AT, 1);                                                                                          \
	const BT *B = ARG(const BT, 2);                                                                                          \
	const CT *C = ARG(const CT, 3);                                                                                          \
	if (em == FULL) {                                                                                                        \
		IVDEP LANES                                                                                                      \
		{                                                                                                                \
			const AT a = A[l];                                                                                       \
			const BT b = B[l];                                                                                       \
			const CT c = C[l];                                                                                       \
			(void)a, (void)b, (void)c;                                                                               \
			D[l] = (DT)(__VA_ARGS__);                                                                                \
		}                                                                                                                \
	} else {                                                                                                                 \
		const s32 *m = lane_mask(w, em);                                                                                 \
		IVDEP LANES                                                                                                      \
		{                                                                                                                \
			const AT a = A[l];                                                                                       \
			const BT b = B[l];                                                                                       \
			const CT c = C[l];                                                                                       \
			(void)a, (void)b, (void)c;                                                                               \
			const DT r = (DT)(__VA_ARGS__);                                                                          \
			D[l] = m[l] ? r : D[l];                                                                                  \
		}                                                                                                                \
	}

/* The .def files hold one OP line for each handler; they are read twice, for functions and for table rows. */
#define OP_FUNC(nm, forms, sig, DT, AT, BT, CT, ...)                                                                             \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		ELEMENTWISE(DT, AT, BT, CT, __VA_ARGS__)                                                                         \
	}
#define OP_ROW(nm, forms, sig, ...) {forms, sig, nm, 0},

/* The same lane by lane: for expressions that call functions or that must not run for idle lanes. */
#define OP_LANE_FUNC(nm, forms, sig, DT, AT, BT, CT, ...)                                                                        \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		DT *D = ARG(DT, 0);                                                                                              \
		const AT *A = ARG(const AT, 1);                                                                                  \
		const BT *B = ARG(const BT, 2);                                                                                  \
		const CT *C = ARG(const CT, 3);                                                                                  \
		const u64 flags = i->imm;                                                                                        \
		(void)flags;                                                                                                     \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			const u32 l = (u32)__builtin_ctz(rest);                                                                  \
			const AT a = A[l];                                                                                       \
			const BT b = B[l];                                                                                       \
			const CT c = C[l];                                                                                       \
			(void)a, (void)b, (void)c;                                                                               \
			D[l] = (DT)(__VA_ARGS__);                                                                                \
		}                                                                                                                \
	}
#define OP_MODS_ROW(nm, forms, sig, ...) {forms, sig, nm, OP_MODS},

static inline void set_pred(struct warp *w, s32 off, u32 em, u32 val)
{
	u32 *p = pred_ptr(w, off);

	*p = (*p & ~em) | (val & em);
}

static inline u32 f32_bits(f32 f)
{
	u32 u;

	memcpy(&u, &f, 4);
	return u;
}

static inline f32 bits_f32(u32 u)
{
	f32 f;

	memcpy(&f, &u, 4);
	return f;
}

static inline u64 f64_bits(f64 f)
{
	u64 u;

	memcpy(&u, &f, 8);
	return u;
}

static inline f64 bits_f64(u64 u)
{
	f64 f;

	memcpy(&f, &u, 8);
	return f;
}

/* .ftz: a denormal counts as zero of its sign. */
static inline f32 ftz(f32 f)
{
	u32 u = f32_bits(f);

	return bits_f32((u & 0x7f800000) ? u : u & 0x80000000);
}

static inline f32 sat(f32 f)
{
	return f > 0 ? (f < 1 ? f : 1.0f) : 0.0f; /* NaN becomes 0 */
}

#endif
