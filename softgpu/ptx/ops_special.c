/* SPDX-License-Identifier: MIT */
/* Special registers, fences, traps and local addresses. */
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "softgpu/ptx/ops.h"
#include "softgpu/ptx/sreg.h"

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

static u64 cycles(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	return now_ns();
#endif
}

/* The value all lanes share. */
static u64 uniform(const struct warp *w, u32 sr)
{
	const struct block *b = w->blk;
	const struct launch *l = b->l;

	switch (sr) {
	case SR_NTID_X:
	case SR_NTID_Y:
	case SR_NTID_Z:
		return l->p->block[sr - SR_NTID_X];
	case SR_CTAID_X:
	case SR_CTAID_Y:
	case SR_CTAID_Z:
		return b->id[sr - SR_CTAID_X];
	case SR_NCTAID_X:
	case SR_NCTAID_Y:
	case SR_NCTAID_Z:
		return l->p->grid[sr - SR_NCTAID_X];
	case SR_CLUSTERID_X:
	case SR_CLUSTERID_Y:
	case SR_CLUSTERID_Z:
		return b->id[sr - SR_CLUSTERID_X] / l->cluster[sr - SR_CLUSTERID_X];
	case SR_NCLUSTERID_X:
	case SR_NCLUSTERID_Y:
	case SR_NCLUSTERID_Z:
		return l->p->grid[sr - SR_NCLUSTERID_X] / l->cluster[sr - SR_NCLUSTERID_X];
	case SR_CLUSTER_CTARANK:
		return b->rank;
	case SR_CLUSTER_NCTARANK:
		return l->cluster_size;
	case SR_CLUSTER_CTAID_X:
	case SR_CLUSTER_CTAID_Y:
	case SR_CLUSTER_CTAID_Z:
		return b->id[sr - SR_CLUSTER_CTAID_X] % l->cluster[sr - SR_CLUSTER_CTAID_X];
	case SR_CLUSTER_NCTAID_X:
	case SR_CLUSTER_NCTAID_Y:
	case SR_CLUSTER_NCTAID_Z:
		return l->cluster[sr - SR_CLUSTER_NCTAID_X];
	case SR_IS_EXPLICIT_CLUSTER:
		return l->explicit_cluster;
	case SR_WARPID:
		return w->index;
	case SR_NWARPID:
		return WARP;
	case SR_SMID:
		return b->worker->smid;
	case SR_NSMID:
		return l->width;
	case SR_GRIDID:
		return l->grid_id;
	case SR_CLOCK:
		return (u32)cycles();
	case SR_CLOCK_HI:
		return cycles() >> 32;
	case SR_CLOCK64:
		return cycles();
	case SR_GLOBALTIMER:
		return now_ns();
	case SR_GLOBALTIMER_LO:
		return (u32)now_ns();
	case SR_GLOBALTIMER_HI:
		return now_ns() >> 32;
	case SR_ENVREG1:
		return l->coop >> 32;
	case SR_ENVREG2:
		return (u32)l->coop;
	case SR_DYN_SMEM:
		return l->p->dyn_shared;
	case SR_TOTAL_SMEM:
	case SR_AGGR_SMEM:
		return l->shared_bytes;
	default:
		return 0;
	}
}

static u32 by_lane(const struct warp *w, u32 sr, u32 l)
{
	switch (sr) {
	case SR_TID_X:
	case SR_TID_Y:
	case SR_TID_Z:
		return w->tid[sr - SR_TID_X][l];
	case SR_MASK_EQ:
		return 1u << l;
	case SR_MASK_LE:
		return (2u << l) - 1;
	case SR_MASK_LT:
		return (1u << l) - 1;
	case SR_MASK_GE:
		return FULL << l;
	case SR_MASK_GT:
		return ~((2u << l) - 1);
	default:
		return l;
	}
}

static bool varies(u32 sr)
{
	return sr <= SR_TID_Z || sr == SR_LANEID || (sr >= SR_MASK_EQ && sr <= SR_MASK_GT);
}

HANDLER(sreg32)
{
	u32 *D = ARG(u32, 0), sr = (u32)i->imm;

	if (sr <= SR_TID_Z && em == FULL) {
		memcpy(D, w->tid[sr - SR_TID_X], WARP * 4);
	} else if (varies(sr)) {
		for (u32 rest = em; rest; rest &= rest - 1)
			D[__builtin_ctz(rest)] = by_lane(w, sr, (u32)__builtin_ctz(rest));
	} else {
		u32 v = (u32)uniform(w, sr);

		if (em == FULL)
			LANES D[l] = v;
		else
			for (u32 rest = em; rest; rest &= rest - 1)
				D[__builtin_ctz(rest)] = v;
	}
}

HANDLER(sreg64)
{
	u64 *D = ARG(u64, 0), v = uniform(w, (u32)i->imm);

	for (u32 rest = em; rest; rest &= rest - 1)
		D[__builtin_ctz(rest)] = v;
}

HANDLER(local_addr)
{
	u64 *D = ARG(u64, 0), v = w->frame->local + i->imm;

	for (u32 rest = em; rest; rest &= rest - 1)
		D[__builtin_ctz(rest)] = v;
}

/*
 * Dynamic local memory: the lanes of a frame share one level, so that an alloca takes what the lane with the largest wish needs,
 * and only all lanes of the frame together give it back.
 */
#define ALLOCA(nm, T)                                                                                                            \
	HANDLER(alloca_##nm)                                                                                                     \
	{                                                                                                                        \
		struct frame *fr = w->frame;                                                                                     \
		u64 at = fr->local + fr->f->local_own + fr->allocated, most = 0;                                                 \
		const T *A = ARG(const T, 1);                                                                                    \
		T *D = ARG(T, 0);                                                                                                \
		at = (at + i->imm - 1) / i->imm * i->imm;                                                                        \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest);                                                                        \
			most = A[l] > most ? A[l] : most;                                                                        \
			D[l] = (T)at;                                                                                            \
		}                                                                                                                \
		if (at > w->local_stride || most > w->local_stride - at) {                                                       \
			ptx_raise(w, i, (int)__builtin_ctz(em), PTX_STACK, 0, "stack overflow: alloca of %llu bytes (line %u)",  \
				  (unsigned long long)most, i->line);                                                            \
			return;                                                                                                  \
		}                                                                                                                \
		fr->allocated = (u32)((at + most + 15) & ~15ull) - fr->local - fr->f->local_own;                                 \
	}                                                                                                                        \
	HANDLER(stacksave_##nm)                                                                                                  \
	{                                                                                                                        \
		T *D = ARG(T, 0), v = (T)(w->frame->local + w->frame->f->local_own + w->frame->allocated);                       \
		for (u32 rest = em; rest; rest &= rest - 1)                                                                      \
			D[__builtin_ctz(rest)] = v;                                                                              \
	}                                                                                                                        \
	HANDLER(stackrestore_##nm)                                                                                               \
	{                                                                                                                        \
		struct frame *fr = w->frame;                                                                                     \
		const T *A = ARG(const T, 1);                                                                                    \
		u64 base = fr->local + fr->f->local_own, top = base;                                                             \
		for (u32 rest = em; rest; rest &= rest - 1)                                                                      \
			top = A[__builtin_ctz(rest)] > top ? A[__builtin_ctz(rest)] : top;                                       \
		if (em == fr->lanes && top - base < fr->allocated)                                                               \
			fr->allocated = (u32)(top - base);                                                                       \
	}
ALLOCA(w, u32)
ALLOCA(d, u64)

/* The alignment of an access that is made in parts. */
HANDLER(aligned_d)
{
	const u64 *A = ARG(const u64, 4);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		if ((A[l] + i->imm) & (i->size - 1u)) { /* raises the fault */
			ptx_lane_addr(w, i, l, SP_GENERIC, A[l] + i->imm, i->size);
			return;
		}
	}
}

HANDLER(aligned_w)
{
	const u32 *A = ARG(const u32, 4);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		if ((A[l] + i->imm) & (i->size - 1u)) { /* raises the fault */
			ptx_lane_addr(w, i, l, SP_SHARED, (u32)(A[l] + i->imm), i->size);
			return;
		}
	}
}

HANDLER(fence_sc)
{
	(void)w;
	(void)i;
	(void)em;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

HANDLER(fence_acquire)
{
	(void)w;
	(void)i;
	(void)em;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

HANDLER(fence_release)
{
	(void)w;
	(void)i;
	(void)em;
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The address keeps its window, if it is generic. */
#define CLUSTER_ADDRESS(c, T)                                                                                                    \
	HANDLER(mapa_##c)                                                                                                        \
	{                                                                                                                        \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest), rank = ARG(const u32, 2)[l];                                           \
			T a = ARG(const T, 1)[l];                                                                                \
			if (rank >= w->blk->cluster->size) {                                                                     \
				ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0,                                              \
					  "mapa: rank %u in a cluster of %u (line %u)", rank, w->blk->cluster->size, i->line);   \
				return;                                                                                          \
			}                                                                                                        \
			ARG(T, 0)[l] = (a & ~((T)0xff << CLUSTER_SHIFT)) | (T)(rank + 1) << CLUSTER_SHIFT;                       \
		}                                                                                                                \
	}                                                                                                                        \
	HANDLER(getctarank_##c)                                                                                                  \
	{                                                                                                                        \
		for (u32 rest = em; rest; rest &= rest - 1) {                                                                    \
			u32 l = (u32)__builtin_ctz(rest), at = ARG(const T, 1)[l] >> CLUSTER_SHIFT & 0xff;                       \
			ARG(u32, 0)[l] = at ? at - 1 : w->blk->rank;                                                             \
		}                                                                                                                \
	}
CLUSTER_ADDRESS(w, u32)
CLUSTER_ADDRESS(d, u64)

HANDLER(trap)
{
	ptx_raise(w, i, (int)__builtin_ctz(em), PTX_ILLEGAL_INSTRUCTION, 0, "trap at line %u of the PTX", i->line);
}

const struct op_row ptx_ops_special[] = {
	{"sreg:w", "", sreg32, 0},
	{"sreg:d", "", sreg64, 0},
	{"localaddr", "", local_addr, 0},
	{"alloca:w", "", alloca_w, 0},
	{"alloca:d", "", alloca_d, 0},
	{"stacksave:w", "", stacksave_w, 0},
	{"stacksave:d", "", stacksave_d, 0},
	{"stackrestore:w", "", stackrestore_w, 0},
	{"stackrestore:d", "", stackrestore_d, 0},
	{"aligned:w", "", aligned_w, 0},
	{"aligned:d", "", aligned_d, 0},
	{"fence:sc", "", fence_sc, 0},
	{"fence:acquire", "", fence_acquire, 0},
	{"fence:release", "", fence_release, 0},
	{"mapa:w", "", mapa_w, 0},
	{"mapa:d", "", mapa_d, 0},
	{"getctarank:w", "", getctarank_w, 0},
	{"getctarank:d", "", getctarank_d, 0},
	{"trap:", "", trap, 0},
	{NULL, NULL, NULL, 0},
};
