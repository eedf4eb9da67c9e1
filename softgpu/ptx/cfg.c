/* SPDX-License-Identifier: MIT */
/* The control-flow graph of lowered code and Bourdoncle's weak topological order of its blocks. */
#include "softgpu/ptx/lower.h"

#define NO_ORDER  UINT32_MAX
#define MAX_STEPS (1u << 28)

static void find_blocks(struct lower *lo)
{
	u8 *lead = load_alloc(lo->ld, lo->n + 1);
	u32 cap;

	lead[0] = 1;
	for (u32 k = 0; k < lo->n; k++) {
		const struct ins *i = &lo->code[k];

		switch (i->kind) {
		case K_BRA:
			lead[i->target] = 1;
			lead[k + 1] = 1;
			break;
		case K_BRX:
			for (u32 t = 0; t < i->imm; t++)
				lead[lo->ops[i->target + t]] = 1;
			lead[k + 1] = 1;
			break;
		case K_NEXT:
		case K_RET:
		case K_EXIT:
			lead[k + 1] = 1;
			break;
		default:
			break;
		}
	}
	cap = 0;
	for (u32 k = 0; k < lo->n; k++)
		cap += lead[k];
	lo->blocks = load_alloc(lo->ld, cap * sizeof(*lo->blocks));
	lo->block_of = load_alloc(lo->ld, lo->n * sizeof(u32));
	for (u32 k = 0; k < lo->n; k++) {
		if (lead[k])
			lo->blocks[lo->nblocks++].first = k;
		lo->blocks[lo->nblocks - 1].end = k + 1;
		lo->block_of[k] = lo->nblocks - 1;
	}
}

static void link_blocks(struct lower *lo)
{
	for (u32 b = 0; b < lo->nblocks; b++) {
		struct block_info *bl = &lo->blocks[b];
		const struct ins *i = &lo->code[bl->end - 1];

		if (i->kind == K_BRA)
			bl->succ[bl->nsucc++] = lo->block_of[i->target];
		if (i->kind == K_BRX) {
			bl->table = i->target;
			bl->ntable = (u32)i->imm;
			continue;
		}
		if (i->kind == K_RET || i->kind == K_EXIT || (i->kind == K_BRA && i->guard == NO_GUARD))
			continue;
		bl->succ[bl->nsucc++] = b + 1;
	}
}

static u32 succ_count(const struct block_info *b)
{
	return b->nsucc + b->ntable;
}

static u32 succ(const struct lower *lo, const struct block_info *b, u32 k)
{
	return k < b->nsucc ? b->succ[k] : lo->block_of[lo->ops[b->table + k - b->nsucc]];
}

/*
 * Bourdoncle's algorithm with an explicit stack, since a function may have a million blocks. A component's
 * body is numbered as one piece right after its head, so that "lowest order first" runs a loop to its end,
 * also in irreducible graphs, before what follows it.
 */
struct visit {
	u32 block, next, head;
	bool loop, component;
};

static void weak_order(struct lower *lo)
{
	u32 n = lo->nblocks, num = 0, sp = 0, depth = 0, emitted = 0;
	u64 steps = 0;
	u32 *dfn = load_alloc(lo->ld, n * sizeof(u32));
	u32 *stack = load_alloc(lo->ld, (n + 1) * sizeof(u32));
	u32 *seq = load_alloc(lo->ld, n * sizeof(u32));
	struct visit *v = load_alloc(lo->ld, (2 * (size_t)n + 2) * sizeof(*v));

	v[0] = (struct visit){.block = 0, .head = dfn[0] = ++num};
	stack[sp++] = 0;
	for (;;) {
		struct visit *t = &v[depth];
		const struct block_info *b = &lo->blocks[t->block];

		/* Each level of loop nesting visits its body again. */
		if (++steps > MAX_STEPS)
			load_fail(lo->ld, PTX_UNSUPPORTED, lo->ast->line, "function '%s' has too many nested loops",
				  lo->ast->name);

		if (t->next < succ_count(b)) {
			u32 s = succ(lo, b, t->next++);

			if (!dfn[s]) {
				dfn[s] = ++num;
				stack[sp++] = s;
				v[++depth] = (struct visit){.block = s, .head = num};
			} else if (!t->component && dfn[s] <= t->head) {
				t->head = dfn[s];
				t->loop = true;
			}
			continue;
		}
		u32 head = t->head;

		if (t->component) {
			seq[emitted++] = t->block;
			head = NO_ORDER;
		} else if (head == dfn[t->block]) {
			u32 e = stack[--sp];

			dfn[t->block] = NO_ORDER;
			if (t->loop) {
				while (e != t->block) {
					dfn[e] = 0;
					e = stack[--sp];
				}
				t->component = true;
				t->next = 0;
				continue;
			}
			seq[emitted++] = t->block;
		}
		if (!depth)
			break;
		depth--;
		if (!v[depth].component && head <= v[depth].head && head != NO_ORDER) {
			v[depth].head = head;
			v[depth].loop = true;
		}
	}
	for (u32 k = 0; k < n; k++)
		lo->blocks[k].order = NO_ORDER;
	for (u32 k = 0; k < emitted; k++)
		lo->blocks[seq[k]].order = emitted - 1 - k;
}

void lower_cfg(struct lower *lo)
{
	find_blocks(lo);
	link_blocks(lo);
	weak_order(lo);
}
