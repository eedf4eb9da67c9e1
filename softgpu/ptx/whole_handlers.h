/* SPDX-License-Identifier: MIT */
/* What the files with whole-warp handlers share: the form of a handler, and both kinds made from the .def files. */
#ifndef SOFTGPU_PTX_WHOLE_HANDLERS_H
#define SOFTGPU_PTX_WHOLE_HANDLERS_H

#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/whole.h"

#define WHOLE(nm)                                                                                                                \
	static const struct wins *nm(struct warp *w __attribute__((unused)), const struct wins *i,                               \
				     u8 *regs __attribute__((unused)))
#define WARG(T, k) ((T *)(regs + i->r[k]))
#define VARG(T, k) ((T *)ALIGNED(WARG(T, k)))

#ifdef WHOLE_STEPS
#define GO(next) return (next)
#else
#define GO(next) return (next)->fn(w, (next), regs)
#endif
#define NEXT GO(i + 1)

/* The level with AVX-512 is compiled without vzeroupper, which its CPUs need only before long stretches of SSE code. */
#ifdef __AVX512F__
#define CLEAN_UPPER() _mm256_zeroupper()
#else
#define CLEAN_UPPER() (void)0
#endif

#define LEAVE(why)                                                                                                               \
	do {                                                                                                                     \
		CLEAN_UPPER();                                                                                                   \
		w->whole_exit = (why);                                                                                           \
		w->whole_at = i;                                                                                                 \
		return NULL;                                                                                                     \
	} while (0)

/* Ends a handler with the branch on @pred; a back-edge (@back) may leave, so that the scheduler looks around now and then. */
#define WHOLE_BRANCH(pred, back)                                                                                                 \
	do {                                                                                                                     \
		const u32 taken_ = (pred) ^ (u32)i->imm;                                                                         \
		if (!taken_)                                                                                                     \
			NEXT;                                                                                                    \
		if (taken_ != FULL)                                                                                              \
			LEAVE(WHOLE_SLOW);                                                                                       \
		if ((back) && __builtin_expect(!(++w->edges % EDGES_ROTATE), 0))                                                 \
			LEAVE(WHOLE_EDGE);                                                                                       \
		GO(i + i->r[6]);                                                                                                 \
	} while (0)

/* The .def files, read once more: OP lines become a handler of lane 0 and one of all lanes. */
#define WHOLE_FUNC(nm, forms, sig, DT, AT, BT, CT, ...)                                                                          \
	WHOLE(s_##nm)                                                                                                            \
	{                                                                                                                        \
		const AT a = *WARG(const AT, 1);                                                                                 \
		const BT b = *WARG(const BT, 2);                                                                                 \
		const CT c = *WARG(const CT, 3);                                                                                 \
		(void)a, (void)b, (void)c;                                                                                       \
		*WARG(DT, 0) = (DT)(__VA_ARGS__);                                                                                \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(v_##nm)                                                                                                            \
	{                                                                                                                        \
		DT *D = VARG(DT, 0);                                                                                             \
		const AT *A = VARG(const AT, 1);                                                                                 \
		const BT *B = VARG(const BT, 2);                                                                                 \
		const CT *C = VARG(const CT, 3);                                                                                 \
		IVDEP LANES                                                                                                      \
		{                                                                                                                \
			const AT a = A[l];                                                                                       \
			const BT b = B[l];                                                                                       \
			const CT c = C[l];                                                                                       \
			(void)a, (void)b, (void)c;                                                                               \
			D[l] = (DT)(__VA_ARGS__);                                                                                \
		}                                                                                                                \
		NEXT;                                                                                                            \
	}
#define WHOLE_ROW(nm, forms, sig, ...) {forms, s_##nm, v_##nm, NULL, NULL},

#define WHOLE_TABLE(t) const struct whole_row TABLE_NAME(whole_##t, LEVEL)[]

#endif
