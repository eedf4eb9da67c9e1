/* SPDX-License-Identifier: MIT */
/* Shuffles, votes, matches and reductions whose lanes come to the same operation at different places of the code. */
#include <string.h>

#include "softgpu/ptx/exec.h"

/*
 * PTX wants the lanes of a member mask at "the same operation with the same mask", not at one instruction: one in each
 * arm of a branch will do. The operands are gathered from where each lane has them into registers of this meeting, and
 * the results go back.
 */
#define SLOT (8 * WARP) /* bytes of a register of any class */

static const u32 lane_bytes[] = {[RC_PRED] = 0, [RC_16] = 2, [RC_32] = 4, [RC_64] = 8};

static void *operand(const struct split *s, s32 off)
{
	return (off < 0 ? (u8 *)(uintptr_t)s->frame->f->pool : s->frame->mem) + off;
}

static void move(void *to, const void *from, enum rclass c, u32 lanes)
{
	u32 n = lane_bytes[c];

	if (c == RC_PRED) {
		u32 *t = to;

		*t = (*t & ~lanes) | (*(const u32 *)from & lanes);
		return;
	}
	for (; lanes; lanes &= lanes - 1) {
		u32 l = (u32)__builtin_ctz(lanes);

		memcpy((u8 *)to + l * n, (const u8 *)from + l * n, n);
	}
}

static bool same_operation(const struct split *a, const struct split *b)
{
	return b->state == ST_SYNC && b->pc->kind == K_SYNC && a->pc->fn == b->pc->fn && a->pc->sub == b->pc->sub &&
	       a->pc->imm == b->pc->imm;
}

/* Moves the operands that are read (@out: results that are written) of the lanes @go between their own places and @mem. */
static void exchange(struct warp *w, const struct split *first, u32 go, u8 *mem, bool out)
{
	u32 shape = first->pc->sub;

	for (u32 k = 0; k < w->nsplit; k++) {
		const struct split *s = &w->split[k];
		u32 lanes = s->mask & go;

		if (!lanes || !same_operation(first, s))
			continue;
		if (out) {
			move(operand(s, s->pc->r[0]), mem, MEET_RESULT(shape), lanes);
			if (shape & MEET_PRED)
				move(operand(s, s->pc->r[4]), mem + 4 * SLOT, RC_PRED, lanes);
			continue;
		}
		move(mem + 7 * SLOT, operand(s, s->pc->r[7]), RC_32, lanes);
		if (shape & MEET_SOURCE)
			move(mem + SLOT, operand(s, s->pc->r[1]), MEET_CLASS(shape), lanes);
		for (u32 r = 2; r <= 3 && shape & MEET_SHFL; r++)
			move(mem + r * SLOT, operand(s, s->pc->r[r]), RC_32, lanes);
	}
}

/* The lanes of all splits at this operation whose member mask is complete. */
static u32 complete(const struct warp *w, const struct split *first)
{
	u32 arrived = 0, go = 0;

	for (u32 k = 0; k < w->nsplit; k++)
		if (same_operation(first, &w->split[k]))
			arrived |= w->split[k].mask;
	for (u32 k = 0; k < w->nsplit; k++) {
		const struct split *s = &w->split[k];

		for (u32 rest = same_operation(first, s) ? s->mask : 0; rest; rest &= rest - 1) {
			u32 l = (u32)__builtin_ctz(rest);

			if (!(((const u32 *)operand(s, s->pc->r[7]))[l] & w->live & ~arrived))
				go |= 1u << l;
		}
	}
	return go;
}

bool ptx_meet(struct warp *w)
{
	_Alignas(64) u8 mem[8 * SLOT];
	struct split first;
	struct ins i;
	u32 go = 0, n;
	u8 *regs = w->regs;

	for (u32 k = 0; k < w->nsplit && !go; k++) {
		first = w->split[k];
		if (first.state == ST_SYNC && first.pc->kind == K_SYNC && (first.pc->sub & MEET))
			go = complete(w, &first);
	}
	if (!go)
		return false;
	memset(mem, 0, sizeof(mem));
	exchange(w, &first, go, mem, false);
	i = *first.pc;
	for (u32 r = 0; r < NREGS; r++)
		i.r[r] = (s32)(r * SLOT);
	w->regs = mem;
	i.fn(w, &i, go);
	w->regs = regs;
	exchange(w, &first, go, mem, true);
	/* A split of which only a part went on becomes two. */
	n = w->nsplit;
	for (u32 k = 0; k < n; k++) {
		struct split *s = &w->split[k];
		struct split on = {.pc = s->pc + 1, .frame = s->frame, .mask = s->mask & go, .state = ST_READY};

		if (!on.mask || !same_operation(&first, s))
			continue;
		if (on.mask == s->mask) {
			*s = on;
		} else {
			s->mask &= ~go;
			w->split[w->nsplit++] = on;
		}
	}
	return true;
}
