/* SPDX-License-Identifier: MIT */
/* Whole-warp handlers that do what two or three others do one after the other: see whole_fuse.c. */
#include "softgpu/ptx/ops_memory.h"
#include "softgpu/ptx/whole_handlers.h"

/*
 * Row times column in shared memory, step by step: d = [a] · [b] + c with one address for all lanes and consecutive
 * ones. The two offsets are in imm.
 */
WHOLE(fma_shared)
{
	const u32 a = *WARG(const u32, 4) + (u32)i->imm, b = *WARG(const u32, 5) + (u32)(i->imm >> 32);
	f32 *D = VARG(f32, 0);
	const f32 *C = VARG(const f32, 3);

	if (!shared_ok(w, a, 4, 4) || !shared_ok(w, b, 4 * WARP, 4))
		LEAVE(WHOLE_SLOW);
	const f32 x = *(const f32 *)(w->shared + a), *y = (const f32 *)(w->shared + b);

	IVDEP LANES D[l] = __builtin_fmaf(x, y[l], C[l]);
	NEXT;
}

/* The thread's number in the grid: r[0] = r[4] · r[2] + r[5], with %ctaid in r[4] and %tid in r[5]. imm: x, y or z of both. */
WHOLE(thread_number)
{
	const u32 block = w->blk->id[i->imm & 3], thread = w->tid[i->imm >> 2][0];

	*WARG(u32, 4) = block;
	*WARG(u32, 5) = thread;
	*WARG(u32, 0) = block * *WARG(const u32, 2) + thread;
	NEXT;
}

/* r[0] = r[1] · r[2], wider than its sources; r[1] in lane 0, with steps that must not wrap. */
WHOLE(widen_mul_s)
{
	const s64 a = *WARG(const s32, 1), last = a + (s64)(WARP - 1) * i->step;

	if (last != (s32)last)
		LEAVE(WHOLE_SLOW);
	*WARG(s64, 0) = a * *WARG(const s32, 2);
	NEXT;
}

WHOLE(widen_mul_u)
{
	const s64 a = *WARG(const u32, 1), last = a + (s64)(WARP - 1) * i->step;

	if (last != (s64)(u32)last)
		LEAVE(WHOLE_SLOW);
	*WARG(u64, 0) = (u64)a * *WARG(const u32, 2);
	NEXT;
}

/* The address r[4] = r[5] + r[6], and the access there. */
#define SUM_ADDRESS(T)                                                                                                           \
	const u64 sum = *WARG(const u64, 5) + *WARG(const u64, 6), at = sum + i->imm;                                            \
	*WARG(u64, 4) = sum;                                                                                                     \
	if (!global_ok(at, WARP * sizeof(T), sizeof(T)))                                                                         \
	LEAVE(WHOLE_SLOW)

#define SUM_ACCESS(T)                                                                                                            \
	WHOLE(sum_load_##T)                                                                                                      \
	{                                                                                                                        \
		SUM_ADDRESS(T);                                                                                                  \
		const T *p = (const T *)at;                                                                                      \
		T *D = VARG(T, 0);                                                                                               \
		IVDEP LANES D[l] = p[l];                                                                                         \
		NEXT;                                                                                                            \
	}                                                                                                                        \
	WHOLE(sum_store_##T)                                                                                                     \
	{                                                                                                                        \
		SUM_ADDRESS(T);                                                                                                  \
		T *p = (T *)at;                                                                                                  \
		const T *V = VARG(const T, 0);                                                                                   \
		IVDEP LANES p[l] = V[l];                                                                                         \
		NEXT;                                                                                                            \
	}
SUM_ACCESS(u32)
SUM_ACCESS(u64)

#define FUSED(level) PASTE3(ptx_whole_, fused, level)

const whole_fn FUSED(LEVEL)[] = {
	[WF_FMA_SHARED] = fma_shared,	  [WF_THREAD_NUMBER] = thread_number, [WF_WIDEN_MUL_S] = widen_mul_s,
	[WF_WIDEN_MUL_U] = widen_mul_u,	  [WF_SUM_LOAD32] = sum_load_u32,     [WF_SUM_LOAD64] = sum_load_u64,
	[WF_SUM_STORE32] = sum_store_u32, [WF_SUM_STORE64] = sum_store_u64,
};
