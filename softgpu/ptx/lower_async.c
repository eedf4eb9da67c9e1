/* SPDX-License-Identifier: MIT */
/* Lowering of asynchronous copies, which are done at once, and of mbarrier objects. */
#include "softgpu/ptx/lower.h"

static const char *const hints[] = {"ca", "cg", "b64", "cta", "cluster", "relaxed", "acquire", "release", "level::cache_hint",
				    NULL};

static struct ins *object(struct lower *lo, const char *name, const struct opnd *o, enum space sp)
{
	struct address a = lower_address(lo, o, sp);
	struct ins *i = emit_op(lo, "%s", name);

	i->sub = (u8)a.space;
	i->size = a.wide ? 8 : 4;
	i->imm = a.off;
	set_use(lo, i, 4, a.reg);
	return i;
}

/* cp.async.ca.shared.global [to], [from], bytes{, bytes from the source, the rest zeros} */
static void copy(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	struct address to, from;
	s32 limit;
	struct ins *i;

	if (!(mod(lo, "shared") || mod(lo, "shared::cta")) || !mod(lo, "global"))
		lower_unsupported(lo, NULL);
	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 3, 5);
	if (o[2].kind != O_INT || (o[2].val != 4 && o[2].val != 8 && o[2].val != 16))
		lower_unsupported(lo, "the size is not 4, 8 or 16");
	if (lo->p->nops > 3 && o[3].kind == O_REG && lo->cls[o[3].reg] == RC_PRED)
		lower_unsupported(lo, "the form with ignore-src");
	to = lower_address(lo, &o[0], SP_SHARED);
	from = lower_address(lo, &o[1], SP_GLOBAL);
	if (lo->p->nops > 3 && (o[3].kind != O_REG || lo->cls[o[3].reg] == RC_32))
		limit = src(lo, &o[3], 'w');
	else
		limit = const_reg(lo, RC_32, o[2].val);
	i = emit_op(lo, "cp.async:%c", to.wide ? 'S' : 's');
	i->size = (u8)o[2].val;
	i->imm = from.off;
	i->target = (u32)to.off;
	set_use(lo, i, 1, to.reg);
	set_use(lo, i, 2, limit);
	set_use(lo, i, 4, from.reg);
}

void lower_cp_async(struct lower *lo)
{
	if (!mod(lo, "async"))
		lower_unsupported(lo, NULL);
	if (mod(lo, "commit_group") || mod(lo, "wait_group") || mod(lo, "wait_all")) {
		mods_done(lo); /* every copy was finished when it was issued */
		return;
	}
	if (mod(lo, "mbarrier")) {
		bool noinc = mod(lo, "noinc");
		enum space sp;

		mod(lo, "arrive");
		sp = mod_space(lo);
		mods_ignore(lo, hints);
		mods_done(lo);
		need_ops(lo, 1, 1);
		/* Without .noinc the pending count goes up by one before the finished copies take it down again. */
		if (noinc) {
			struct ins *i = object(lo, "mbarrier:arrive", &lo->p->ops[0], sp);

			set_use(lo, i, 1, const_reg(lo, RC_32, 1));
			set_def(lo, i, 0, temp(lo, RC_64));
		}
		return;
	}
	if (mod(lo, "bulk"))
		lower_unsupported(lo, "bulk and tensor copies");
	copy(lo);
}

static void arrive(struct lower *lo, enum space sp, const char *name)
{
	const struct opnd *o = lo->p->ops;
	bool result = o[0].kind != O_MEM;
	u32 at = result ? 1 : 0;
	s32 count, d = temp(lo, RC_64);
	struct ins *i;

	mods_done(lo);
	need_ops(lo, at + 1, at + 2);
	count = lo->p->nops > at + 1 ? src(lo, &o[at + 1], 'w') : const_reg(lo, RC_32, 1);
	if (result && o[0].kind != O_SINK)
		d = dst(lo, &o[0], 'd');
	i = object(lo, name, &o[at], sp);
	set_use(lo, i, 1, count);
	set_def(lo, i, 0, d);
}

static void wait(struct lower *lo, enum space sp, bool blocking)
{
	bool parity = mod(lo, "parity");
	const struct opnd *o = lo->p->ops;
	struct ins *i;
	s32 state;

	mods_done(lo);
	need_ops(lo, 3, 4); /* a time limit may follow */
	state = src(lo, &o[2], parity ? 'w' : 'd');
	if (blocking)
		emit(lo, NULL, K_YIELD); /* others may have to run before it can succeed */
	i = object(lo, parity ? "mbarrier:parity" : "mbarrier:test", &o[1], sp);
	set_use(lo, i, 1, state);
	set_def(lo, i, 0, dst(lo, &o[0], 'p'));
}

void lower_mbarrier(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	struct ins *i;
	s32 v;

	if (sp == SP_GENERIC && mod(lo, "shared::cluster"))
		sp = SP_SHARED;
	mods_ignore(lo, hints);
	if (mod(lo, "init")) {
		mods_done(lo);
		need_ops(lo, 2, 2);
		v = src(lo, &o[1], 'w');
		i = object(lo, "mbarrier:init", &o[0], sp);
		set_use(lo, i, 1, v);
	} else if (mod(lo, "inval")) {
		mods_done(lo);
	} else if (mod(lo, "arrive")) {
		bool no_complete = mod(lo, "noComplete"); /* a promise of the program: nothing to do */

		(void)no_complete;
		arrive(lo, sp, mod(lo, "expect_tx") ? "mbarrier:arrive_tx" : "mbarrier:arrive");
	} else if (mod(lo, "arrive_drop")) {
		mod(lo, "noComplete");
		arrive(lo, sp, mod(lo, "expect_tx") ? "mbarrier:drop_tx" : "mbarrier:drop");
	} else if (mod(lo, "test_wait")) {
		wait(lo, sp, false);
	} else if (mod(lo, "try_wait")) {
		wait(lo, sp, true);
	} else if (mod(lo, "expect_tx") || mod(lo, "complete_tx")) {
		bool expect = mod(lo, "expect_tx");

		mods_done(lo);
		need_ops(lo, 2, 2);
		v = src(lo, &o[1], 'w');
		i = object(lo, expect ? "mbarrier:expect_tx" : "mbarrier:complete_tx", &o[0], sp);
		set_use(lo, i, 1, v);
	} else if (mod(lo, "pending_count")) {
		mods_done(lo);
		need_ops(lo, 2, 2);
		v = src(lo, &o[1], 'd');
		i = emit_op(lo, "mbarrier:pending");
		set_use(lo, i, 1, v);
		set_def(lo, i, 0, dst(lo, &o[0], 'w'));
	} else {
		lower_unsupported(lo, NULL);
	}
}
