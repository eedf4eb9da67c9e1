/* SPDX-License-Identifier: MIT */
/* Fuses whole-warp instructions that often follow each other into one, which spares the way from one to the next. */
#include <string.h>

#include "softgpu/ptx/whole_build.h"

/*
 * A fused instruction does what its parts did, in their order, and writes the results of all of them, so nothing need be
 * known about who reads these. It may leave for the general form only at its last part, whose instruction and list
 * of registers it has then. fuse_fma is the exception: it skips the loaded values, which have no other reader.
 */
struct tail {
	struct emit *e;
	struct wins *w; /* the last instruction */
	struct whole_list *slow;
	u32 n;	  /* instructions of the block */
	u32 dies; /* r[] that the last one reads last */
};

static bool is(const struct tail *t, u32 back, whole_fn fn)
{
	return fn && t->n > back && t->w[-(s32)back].fn == fn;
}

/* The last @parts instructions become @fused. */
static bool replace(struct tail *t, u32 parts, struct wins fused, struct whole_list slow)
{
	t->w[-(s32)(parts - 1)] = fused;
	t->slow[-(s32)(parts - 1)] = slow;
	t->e->ncode -= parts - 1;
	return true;
}

/* Two loads from shared memory and the multiply-add that is their only reader. */
static bool fuse_fma(struct tail *t)
{
	const struct known *k = &t->e->known;
	struct wins *w = t->w, f = *w, *one, *run;

	if (!is(t, 0, k->fma_mixed) || t->n < 3 || (t->dies & 6) != 6)
		return false;
	one = is(t, 1, k->load_one) ? w - 1 : w - 2;
	run = one == w - 1 ? w - 2 : w - 1;
	if (one->fn != k->load_one || run->fn != k->load_run || one->r[0] != f.r[1] || run->r[0] != f.r[2] ||
	    w[-1].r[4] == w[-2].r[0] || f.r[3] == f.r[1] || f.r[3] == f.r[2])
		return false;
	f.fn = k->fused[WF_FMA_SHARED];
	f.r[4] = one->r[4];
	f.r[5] = run->r[4];
	f.imm = (u32)one->imm | (run->imm << 32);
	f.i = w[-2].i; /* to be run again from the first of the three */
	return replace(t, 3, f, t->slow[-2]);
}

/* %ctaid · a + %tid */
static bool fuse_thread_number(struct tail *t)
{
	const struct known *k = &t->e->known;
	struct wins *w = t->w, f = *w, *block, *thread;

	if (!is(t, 0, k->mad) || t->n < 3)
		return false;
	block = is(t, 1, k->special[WS_CTAID]) ? w - 1 : w - 2;
	thread = block == w - 1 ? w - 2 : w - 1;
	if (block->fn != k->special[WS_CTAID] || thread->fn != k->special[WS_TID] || block->r[0] == thread->r[0] ||
	    f.r[3] != thread->r[0])
		return false;
	if (f.r[1] != block->r[0]) {
		f.r[1] = w->r[2];
		f.r[2] = w->r[1];
	}
	if (f.r[1] != block->r[0] || f.r[2] == block->r[0] || f.r[2] == thread->r[0])
		return false;
	f.fn = k->fused[WF_THREAD_NUMBER];
	f.r[4] = block->r[0];
	f.r[5] = thread->r[0];
	f.imm = block->imm | thread->imm << 2;
	return replace(t, 3, f, t->slow[0]);
}

static bool fuse_widening(struct tail *t)
{
	const struct known *k = &t->e->known;
	bool s = is(t, 0, k->mul_wide_s), u = is(t, 0, k->mul_wide_u);
	struct wins f = *t->w;

	if (!(s && is(t, 1, k->special[WS_NO_WRAP_S])) && !(u && is(t, 1, k->special[WS_NO_WRAP_U])))
		return false;
	if (t->w[-1].i != f.i)
		return false;
	f.fn = k->fused[s ? WF_WIDEN_MUL_S : WF_WIDEN_MUL_U];
	f.step = t->w[-1].step;
	if (t->w[-1].r[1] != f.r[1]) { /* the factor came first */
		f.r[2] = f.r[1];
		f.r[1] = t->w[-1].r[1];
	}
	return replace(t, 2, f, t->slow[0]);
}

static bool fuse_address(struct tail *t)
{
	const struct known *k = &t->e->known;
	const struct wins *sum = t->w - 1;
	struct wins f = *t->w;

	if (!is(t, 1, k->add64) || sum->r[0] != f.r[4])
		return false;
	for (u32 n = 0; n < sizeof(k->access) / sizeof(k->access[0]); n++)
		if (is(t, 0, k->access[n])) {
			f.fn = k->fused[WF_SUM_LOAD32 + n];
			f.r[5] = sum->r[1];
			f.r[6] = sum->r[2];
			return replace(t, 2, f, t->slow[0]);
		}
	return false;
}

/* A comparison and the branch on it. */
static bool fuse_branch(struct tail *t)
{
	const struct known *k = &t->e->known;
	struct wins f = *t->w;

	if (!(is(t, 0, k->special[WS_BRANCH]) || is(t, 0, k->special[WS_BRANCH_BACK])) || t->n < 2 || t->w[-1].r[0] != f.r[7])
		return false;
	for (const struct whole_pair *p = k->branches; p->first; p++)
		if (t->w[-1].fn == p->first) {
			f.fn = p->fused;
			f.r[0] = t->w[-1].r[0];
			f.r[1] = t->w[-1].r[1];
			f.r[2] = t->w[-1].r[2];
			f.r[5] = is(t, 0, k->special[WS_BRANCH_BACK]);
			f.step = t->w[-1].step;
			f.step2 = t->w[-1].step2;
			return replace(t, 2, f, t->slow[0]);
		}
	return false;
}

void wb_fuse(struct emit *e, u32 block_at, u32 at)
{
	struct tail t = {e, &e->out->code[e->ncode - 1], &e->out->slow[e->ncode - 1], e->ncode - block_at, e->dies[at]};

	if (t.n < 2)
		return;
	(void)(fuse_fma(&t) || fuse_thread_number(&t) || fuse_widening(&t) || fuse_address(&t) || fuse_branch(&t));
}

static const struct whole_row *row_of(const char *name)
{
	static const struct whole_row none;
	const struct op_row *r = ptx_op_row(name, strlen(name));
	const struct whole_op *o = r ? ptx_whole_op(r->fn) : NULL;

	return o && o->row ? o->row : &none;
}

void wb_known(struct known *k)
{
	static const whole_fn *const special[] = {ptx_whole_special_v2, ptx_whole_special_v3, ptx_whole_special_v4};
	static const whole_fn *const fused[] = {ptx_whole_fused_v2, ptx_whole_fused_v3, ptx_whole_fused_v4};
	static const struct whole_pair *const branches[] = {ptx_whole_branches_v2, ptx_whole_branches_v3, ptx_whole_branches_v4};
	u32 level = ptx_op_level_index();

	k->special = special[level];
	k->fused = fused[level];
	k->branches = branches[level];
	k->load_one = row_of("ld:s:u32:w")->scalar;
	k->load_run = row_of("ld:s:u32:w")->vector;
	k->fma_mixed = row_of("fma.rn.f32")->mixed;
	k->mad = row_of("mad.lo.u32")->scalar;
	k->mul_wide_s = row_of("mul.wide.s32")->scalar;
	k->mul_wide_u = row_of("mul.wide.u32")->scalar;
	k->add64 = row_of("add.u64")->scalar;
	k->access[0] = row_of("ld:g:u32:w")->vector;
	k->access[1] = row_of("ld:g:u64:d")->vector;
	k->access[2] = row_of("st:g:32:w")->vector;
	k->access[3] = row_of("st:g:64:d")->vector;
}
