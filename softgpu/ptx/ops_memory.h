/* SPDX-License-Identifier: MIT */
/* Loads and stores: the quick checks of addresses, and the kinds of accesses there are. */
#ifndef SOFTGPU_PTX_OPS_MEMORY_H
#define SOFTGPU_PTX_OPS_MEMORY_H

#include "softgpu/arena.h"
#include "softgpu/ptx/ops.h"

/* [addr, addr + size) is mapped and addr a multiple of @align, a power of two. */
static inline bool global_ok(u64 addr, u64 size, u64 align)
{
	const struct softgpu_arena *a = &softgpu_arena;
	u64 off = addr - (u64)(uintptr_t)a->base;

	if (off >= a->size || size > a->size - off || (addr & (align - 1)))
		return false;
	return a->state[off >> SOFTGPU_GRANULE_SHIFT] && a->state[(off + size - 1) >> SOFTGPU_GRANULE_SHIFT];
}

static inline bool shared_ok(const struct warp *w, u64 off, u64 size, u64 align)
{
	return off < w->shared_size && size <= w->shared_size - off && !(off & (align - 1));
}

#define GLOBAL_RUN(at, size, align) global_ok(at, size, align)
#define GLOBAL_ALL(a, imm, size)    all_global_ok(a, imm, size)
#define SHARED_RUN(at, size, align) shared_ok(w, at, size, align)
#define SHARED_ALL32(a, imm, size)  all_shared_ok_u32(w, a, imm, size)
#define SHARED_ALL64(a, imm, size)  all_shared_ok_u64(w, a, imm, size)
/* Global and generic accesses share a handler (sub says which): the arena's way first, the windows go lane by lane. */
#define FOR_SPACES(X, MT, RT, name)                                                                                              \
	X(g_##name, u64, MT, RT, (enum space)i->sub, GLOBAL_RUN, GLOBAL_ALL, )                                                   \
	X(s_##name, u32, MT, RT, SP_SHARED, SHARED_RUN, SHARED_ALL32, w->shared +)                                               \
	X(S_##name, u64, MT, RT, SP_SHARED, SHARED_RUN, SHARED_ALL64, w->shared +)

/* memory type (sign or zero extended to the register), register type, their names */
#define LOADS(X)                                                                                                                 \
	X(u8, u16, u8, h)                                                                                                        \
	X(s8, s16, s8, h)                                                                                                        \
	X(u16, u16, u16, h)                                                                                                      \
	X(u8, u32, u8, w)                                                                                                        \
	X(s8, s32, s8, w)                                                                                                        \
	X(u16, u32, u16, w)                                                                                                      \
	X(s16, s32, s16, w)                                                                                                      \
	X(u32, u32, u32, w)                                                                                                      \
	X(u8, u64, u8, d)                                                                                                        \
	X(s8, s64, s8, d)                                                                                                        \
	X(u16, u64, u16, d)                                                                                                      \
	X(s16, s64, s16, d)                                                                                                      \
	X(u32, u64, u32, d)                                                                                                      \
	X(s32, s64, s32, d)                                                                                                      \
	X(u64, u64, u64, d)
#define STORES(X)                                                                                                                \
	X(u8, u16, 8, h)                                                                                                         \
	X(u16, u16, 16, h)                                                                                                       \
	X(u8, u32, 8, w)                                                                                                         \
	X(u16, u32, 16, w)                                                                                                       \
	X(u32, u32, 32, w)                                                                                                       \
	X(u8, u64, 8, d)                                                                                                         \
	X(u16, u64, 16, d)                                                                                                       \
	X(u32, u64, 32, d)                                                                                                       \
	X(u64, u64, 64, d)

#endif
