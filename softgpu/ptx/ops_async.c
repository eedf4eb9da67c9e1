/* SPDX-License-Identifier: MIT */
/* cp.async and the mbarrier object. */
#include "softgpu/ptx/ops_memory.h"

/*
 * An mbarrier is 64 bits of shared memory, in a layout of our own: bits 0–19 pending arrivals, 20–39 arrivals
 * of each phase, 40–62 bytes still expected (a two's complement number), 63 the phase's parity. One host thread runs a block,
 * so plain accesses are enough.
 */
#define COUNT_BITS 20
#define COUNT_MASK ((1u << COUNT_BITS) - 1)
#define TX_BITS	   23
#define TX_MAX	   ((1 << 20) - 1) /* either way */

struct mbar {
	u32 pending, count;
	s32 tx;
	bool phase;
};

static struct mbar unpack(u64 v)
{
	return (struct mbar){(u32)v & COUNT_MASK, (u32)(v >> COUNT_BITS) & COUNT_MASK, (s32)((s64)(v << 1) >> (64 - TX_BITS)),
			     v >> 63};
}

static u64 pack(struct mbar b)
{
	return (b.pending & COUNT_MASK) | (u64)(b.count & COUNT_MASK) << COUNT_BITS |
	       ((u64)(u32)b.tx & ((1u << TX_BITS) - 1)) << (2 * COUNT_BITS) | (u64)b.phase << 63;
}

/* The phase ends when all have arrived and all bytes are there. */
static u64 settle(struct mbar b)
{
	if (!b.pending && !b.tx) {
		b.pending = b.count;
		b.phase = !b.phase;
	}
	return pack(b);
}

static u64 *object(struct warp *w, const struct ins *i, u32 l)
{
	u64 at = i->size == 8 ? ((const u64 *)opnd_ptr(w, i->r[4]))[l] + i->imm
			      : (u32)(((const u32 *)opnd_ptr(w, i->r[4]))[l] + (u32)i->imm);

	return ptx_lane_addr(w, i, l, (enum space)i->sub, at, 8);
}

#define FOR_OBJECTS                                                                                                              \
	for (u32 rest = em; rest; rest &= rest - 1) {                                                                            \
		u32 l = (u32)__builtin_ctz(rest);                                                                                \
		u64 *p = object(w, i, l);                                                                                        \
		if (!p)                                                                                                          \
			return;

HANDLER(mbar_init)
{
	FOR_OBJECTS
	u32 n = ARG(const u32, 1)[l];

	*p = pack((struct mbar){n, n, 0, false});
}
}

/* Source of the range: PTX ISA, "tx-count operations of mbarrier object". Returns false after raising a fault. */
static bool add_tx(struct warp *w, const struct ins *i, u32 l, struct mbar *b, s64 bytes)
{
	s64 tx = b->tx + bytes;

	if (tx < -TX_MAX || tx > TX_MAX) {
		ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0,
			  "mbarrier: %lld bytes expected where %d are the most (line %u)", (long long)tx, TX_MAX, i->line);
		return false;
	}
	b->tx = (s32)tx;
	return true;
}

enum { DROP = 1, TX = 2 };

/* Returns false after raising a fault: more arrivals than the phase has. */
static bool arrive(struct warp *w, const struct ins *i, u32 l, u64 *p, u32 what)
{
	u32 v = ARG(const u32, 1)[l], n = what & TX ? 1 : v;
	struct mbar b = unpack(*p);

	if (n > b.pending) {
		ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0, "mbarrier: %u arrivals where %u are pending (line %u)", n,
			  b.pending, i->line);
		return false;
	}
	if (what & TX && !add_tx(w, i, l, &b, (s32)v))
		return false;
	ARG(u64, 0)[l] = *p;
	if (what & DROP)
		b.count -= n;
	b.pending -= n;
	*p = settle(b);
	return true;
}

#define ARRIVE(nm, what)                                                                                                         \
	HANDLER(nm)                                                                                                              \
	{                                                                                                                        \
		FOR_OBJECTS                                                                                                      \
		if (!arrive(w, i, l, p, what))                                                                                   \
			return;                                                                                                  \
	}                                                                                                                        \
	}
ARRIVE(mbar_arrive, 0)
ARRIVE(mbar_arrive_tx, TX)
ARRIVE(mbar_drop, DROP)
ARRIVE(mbar_drop_tx, DROP | TX)

HANDLER(mbar_expect)
{
	FOR_OBJECTS
	struct mbar b = unpack(*p);

	if (!add_tx(w, i, l, &b, (s32)ARG(const u32, 1)[l]))
		return;
	*p = pack(b);
}
}

/* @bytes: of a copy into shared memory, so that no sum of them leaves the type. */
void ptx_mbar_complete(u64 *mbar, u32 bytes)
{
	struct mbar b = unpack(*mbar);

	b.tx -= (s32)bytes;
	*mbar = settle(b);
}

HANDLER(mbar_complete)
{
	FOR_OBJECTS
	struct mbar b = unpack(*p);

	if (!add_tx(w, i, l, &b, -(s64)(s32)ARG(const u32, 1)[l]))
		return;
	*p = settle(b);
}
}

HANDLER(mbar_test)
{
	FOR_OBJECTS
	set_pred(w, i->r[0], 1u << l, *p >> 63 != ARG(const u64, 1)[l] >> 63 ? FULL : 0);
}
}

HANDLER(mbar_parity)
{
	FOR_OBJECTS
	set_pred(w, i->r[0], 1u << l, *p >> 63 != (ARG(const u32, 1)[l] & 1) ? FULL : 0);
}
}

HANDLER(mbar_pending)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		ARG(u32, 0)[l] = unpack(ARG(const u64, 1)[l]).pending;
	}
}

/* Every check, for one lane; false after raising a fault. */
static bool copy_lane(struct warp *w, const struct ins *i, u32 l, u64 at, u64 source, u32 n)
{
	u8 *to = ptx_lane_addr(w, i, l, SP_SHARED, at, i->size);
	const u8 *from = to;

	if (n > i->size)
		n = i->size;
	if (to && n)
		from = ptx_lane_addr(w, i, l, SP_GLOBAL, source, i->size);
	if (!to || !from)
		return false;
	memcpy(to, n ? from : to, n);
	memset(to + n, 0, i->size - n);
	return true;
}

static inline void copy(struct warp *w, const struct ins *i, u32 em, bool wide, u32 size)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), n = ARG(const u32, 2)[l];
		u64 at = wide ? ARG(const u64, 1)[l] + i->target : (u32)(ARG(const u32, 1)[l] + i->target);
		u64 source = ARG(const u64, 4)[l] + i->imm;

		if (n >= size && shared_ok(w, at, size, size) && global_ok(source, size, size))
			memcpy(w->shared + at, (const void *)(uintptr_t)source, size);
		else if (!copy_lane(w, i, l, at, source, n))
			return;
	}
}

/* With the size known, a lane's copy is one move. */
static inline void copy_sized(struct warp *w, const struct ins *i, u32 em, bool wide)
{
	switch (i->size) {
	case 16:
		copy(w, i, em, wide, 16);
		break;
	case 8:
		copy(w, i, em, wide, 8);
		break;
	default:
		copy(w, i, em, wide, 4);
	}
}

HANDLER(copy_narrow)
{
	copy_sized(w, i, em, false);
}

HANDLER(copy_wide)
{
	copy_sized(w, i, em, true);
}

const struct op_row ptx_ops_async[] = {
	{"mbarrier:init", "", mbar_init, 0},
	{"mbarrier:arrive", "", mbar_arrive, 0},
	{"mbarrier:arrive_tx", "", mbar_arrive_tx, 0},
	{"mbarrier:drop", "", mbar_drop, 0},
	{"mbarrier:drop_tx", "", mbar_drop_tx, 0},
	{"mbarrier:expect_tx", "", mbar_expect, 0},
	{"mbarrier:complete_tx", "", mbar_complete, 0},
	{"mbarrier:test", "", mbar_test, 0},
	{"mbarrier:parity", "", mbar_parity, 0},
	{"mbarrier:pending", "", mbar_pending, 0},
	{"cp.async:s", "", copy_narrow, 0},
	{"cp.async:S", "", copy_wide, 0},
	{NULL, NULL, NULL, 0},
};
