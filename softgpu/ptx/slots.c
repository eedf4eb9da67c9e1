/* SPDX-License-Identifier: MIT */
/* Liveness and linear-scan placement of registers into a frame's slots. */
#include <string.h>

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/regs.h"

/*
 * A slot holds one element for each lane, and slots of different element sizes never share memory: lanes of
 * a split warp are at different places, each with other registers live, and each owns just its element.
 * A result never takes the slot of a source that ends in the same instruction, so handlers may write a
 * result while they still read sources of another size.
 */
#define NONE UINT32_MAX

struct live {
	struct lower *lo;
	u32 *start, *end; /* interval of each register, in instructions */
	u32 *global;	  /* number among the registers live across blocks, NONE for the others */
	u32 *global_reg;  /* and back */
	u32 nglobal, words;
	u64 *gen, *kill, *in, *out; /* per block, words each */
};

static void visit_regs(struct lower *lo, u32 k, void (*fn)(struct live *, u32 at, u32 reg, bool def), struct live *lv)
{
	const struct ins *i = &lo->code[k];
	const struct ins_info *in = &lo->info[k];

	for (u32 r = 0; r < NREGS; r++)
		if (in->use >> r & 1)
			fn(lv, k, (u32)i->r[r], false);
	for (u32 r = 0; r < in->list_use; r++)
		if (lo->ops[in->list + in->list_def + r] >= 0)
			fn(lv, k, (u32)lo->ops[in->list + in->list_def + r], false);
	if (i->guard != NO_GUARD)
		fn(lv, k, (u32)i->guard, false);
	for (u32 r = 0; r < NREGS; r++)
		if (in->def >> r & 1)
			fn(lv, k, (u32)i->r[r], true);
	for (u32 r = 0; r < in->list_def; r++)
		fn(lv, k, (u32)lo->ops[in->list + r], true);
}

/* Only a definition for all lanes of the split ends what came before. */
static bool kills(const struct lower *lo, u32 k)
{
	return lo->code[k].kind != K_GUARD;
}

static void note(struct live *lv, u32 at, u32 reg, bool def)
{
	u32 block = lv->lo->block_of[at] + 1;

	if (lv->start[reg] > at)
		lv->start[reg] = at;
	lv->end[reg] = at;
	/* out[] serves as "block of the last full definition" in this first walk. */
	if (def && kills(lv->lo, at))
		lv->out[reg] = block;
	else if (lv->out[reg] != block && lv->global[reg] == NONE) {
		lv->global_reg[lv->nglobal] = reg;
		lv->global[reg] = lv->nglobal++;
	}
}

static void gen_kill(struct live *lv, u32 at, u32 reg, bool def)
{
	u32 g = lv->global[reg], block = lv->lo->block_of[at];
	u64 bit = 1ull << (g % 64);
	u64 *kill, *gen;

	if (g == NONE)
		return;
	kill = &lv->kill[(size_t)block * lv->words + g / 64];
	gen = &lv->gen[(size_t)block * lv->words + g / 64];
	if (def && kills(lv->lo, at))
		*kill |= bit;
	else if (!(*kill & bit) && !def)
		*gen |= bit;
}

static void flow_into(struct live *lv, u64 *out, u32 s)
{
	const u64 *in = &lv->in[(size_t)s * lv->words];

	for (u32 w = 0; w < lv->words; w++)
		out[w] |= in[w];
}

static void solve(struct live *lv)
{
	struct lower *lo = lv->lo;
	u64 work = 0;
	bool changed;

	do {
		changed = false;
		work += (u64)lo->nblocks * (lv->words + 1);
		if (work > 1ull << 32)
			load_fail(lo->ld, PTX_UNSUPPORTED, lo->ast->line, "function '%s' has too many nested loops",
				  lo->ast->name);
		for (u32 b = lo->nblocks; b-- > 0;) {
			const struct block_info *bl = &lo->blocks[b];
			size_t at = (size_t)b * lv->words;
			u64 *out = &lv->out[at];

			for (u32 k = 0; k < bl->nsucc; k++)
				flow_into(lv, out, bl->succ[k]);
			for (u32 k = 0; k < bl->ntable; k++)
				flow_into(lv, out, lo->block_of[lo->ops[bl->table + k]]);
			for (u32 w = 0; w < lv->words; w++) {
				u64 in = lv->gen[at + w] | (out[w] & ~lv->kill[at + w]);

				if (in != lv->in[at + w]) {
					lv->in[at + w] = in;
					changed = true;
				}
			}
		}
	} while (changed);
}

static void extend(struct live *lv)
{
	struct lower *lo = lv->lo;

	for (u32 b = 0; b < lo->nblocks; b++) {
		size_t at = (size_t)b * lv->words;

		for (u32 w = 0; w < lv->words; w++) {
			for (u64 m = lv->in [at + w]; m; m &= m - 1) {
				u32 r = lv->global_reg[w * 64 + (u32)__builtin_ctzll(m)];

				if (lv->start[r] > lo->blocks[b].first)
					lv->start[r] = lo->blocks[b].first;
				if (lv->end[r] < lo->blocks[b].first)
					lv->end[r] = lo->blocks[b].first;
			}
			for (u64 m = lv->out[at + w]; m; m &= m - 1) {
				u32 r = lv->global_reg[w * 64 + (u32)__builtin_ctzll(m)];

				if (lv->end[r] < lo->blocks[b].end - 1)
					lv->end[r] = lo->blocks[b].end - 1;
				if (lv->start[r] > lo->blocks[b].end - 1)
					lv->start[r] = lo->blocks[b].end - 1;
			}
		}
	}
}

static void liveness(struct live *lv)
{
	struct lower *lo = lv->lo;
	u64 cells;

	lv->start = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	lv->end = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	lv->global = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	lv->global_reg = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	lv->out = load_alloc(lo->ld, lo->nregs * sizeof(u64));
	memset(lv->start, 0xff, lo->nregs * sizeof(u32));
	memset(lv->global, 0xff, lo->nregs * sizeof(u32));
	for (u32 k = 0; k < lo->n; k++)
		visit_regs(lo, k, note, lv);
	lv->words = (lv->nglobal + 63) / 64;
	cells = (u64)lv->words * lo->nblocks;
	if (cells > 1u << 25)
		load_fail(lo->ld, PTX_UNSUPPORTED, lo->ast->line, "function '%s' is too large", lo->ast->name);
	lv->gen = load_alloc(lo->ld, cells * 8);
	lv->kill = load_alloc(lo->ld, cells * 8);
	lv->in = load_alloc(lo->ld, cells * 8);
	lv->out = load_alloc(lo->ld, cells * 8);
	for (u32 k = 0; k < lo->n; k++)
		visit_regs(lo, k, gen_kill, lv);
	solve(lv);
	extend(lv);
}

/* slot[reg] = number within the register's class; used[class] = how many slots the class needs */
static void scan(struct live *lv, u32 *slot, u32 used[RC_COUNT])
{
	struct lower *lo = lv->lo;
	u32 *first_start = load_alloc(lo->ld, (lo->n + 1) * sizeof(u32));
	u32 *first_end = load_alloc(lo->ld, (lo->n + 1) * sizeof(u32));
	u32 *next_start = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	u32 *next_end = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	u32 *free_slots[RC_COUNT], nfree[RC_COUNT] = {0};

	for (u32 c = 0; c < RC_COUNT; c++)
		free_slots[c] = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	for (u32 r = lo->nregs; r-- > 0;) {
		if (lv->start[r] == NONE)
			continue;
		next_start[r] = first_start[lv->start[r]];
		first_start[lv->start[r]] = r + 1;
		next_end[r] = first_end[lv->end[r]];
		first_end[lv->end[r]] = r + 1;
	}
	for (u32 k = 0; k < lo->n; k++) {
		for (u32 r = first_start[k]; r; r = next_start[r - 1]) {
			u32 c = lo->cls[r - 1];

			slot[r - 1] = nfree[c] ? free_slots[c][--nfree[c]] : used[c]++;
		}
		for (u32 r = first_end[k]; r; r = next_end[r - 1]) {
			u32 c = lo->cls[r - 1];

			free_slots[c][nfree[c]++] = slot[r - 1];
		}
	}
}

#define FEWEST_REGS 16u /* a smaller limit counts as this one */

static u32 limited(u32 regs, u32 limit)
{
	if (limit && limit < FEWEST_REGS)
		limit = FEWEST_REGS;
	return limit && regs > limit ? limit : regs;
}

/*
 * What a compiler for a GPU might need, from our slots, which are more than that: its classes of registers share one file, and it
 * spills rather than keep a block of the size that the kernel allows from running. So no launch fails for registers here.
 */
static u32 estimate(const u32 used[RC_COUNT], u32 max_threads, u32 max_regs)
{
	u32 want = used[RC_32] + 2 * used[RC_64] + (used[RC_16] + 1) / 2 + 2;
	u32 warps = (max_threads + 31) / 32;
	u32 cap = warps ? 65536 / (warps * 32) & ~7u : 255;

	cap = cap < 255 ? cap : 255;
	return limited(want < cap ? want : cap, max_regs);
}

void ptx_module_limit_registers(struct ptx_module *m, u32 n)
{
	for (u32 k = 0; k < m->nfuncs; k++)
		m->funcs[k]->info.regs = limited(m->funcs[k]->info.regs, n);
}

void lower_slots(struct lower *lo)
{
	static const u32 bytes[RC_COUNT] = {4, 2 * WARP, 4 * WARP, 8 * WARP};
	struct live lv = {.lo = lo};
	u32 *slot = load_alloc(lo->ld, lo->nregs * sizeof(u32));
	u32 used[RC_COUNT] = {0};
	u64 base[RC_COUNT], at = 0;

	liveness(&lv);
	scan(&lv, slot, used);
	for (u32 c = 0; c < RC_COUNT; c++) {
		base[c] = at;
		lo->f->reg_base[c] = (u32)at;
		at += ((u64)used[c] * bytes[c] + 63) & ~63ull;
	}
	if (at > 1u << 28)
		load_fail(lo->ld, PTX_UNSUPPORTED, lo->ast->line, "function '%s' needs too many registers", lo->ast->name);
	lo->f->reg_base[RC_COUNT] = (u32)at;
	lo->f->frame_regs = at ? (u32)at : 64;
	lo->f->info.regs = estimate(used, lo->ast->max_threads, lo->ast->max_regs);
	for (u32 r = 0; r < lo->nregs; r++)
		if (lo->cls[r] < RC_COUNT)
			slot[r] = (u32)(base[lo->cls[r]] + (u64)slot[r] * bytes[lo->cls[r]]);
	for (u32 k = 0; k < lo->n; k++) {
		struct ins *i = &lo->code[k];
		const struct ins_info *in = &lo->info[k];

		for (u32 r = 0; r < NREGS; r++)
			if ((in->def | in->use) >> r & 1)
				i->r[r] = (s32)slot[i->r[r]];
		for (u32 r = 0; r < (u32)in->list_def + in->list_use; r++)
			if (lo->ops[in->list + r] >= 0)
				lo->ops[in->list + r] = (s32)slot[lo->ops[in->list + r]];
		if (i->guard != NO_GUARD)
			i->guard = (s32)slot[i->guard];
	}
}
