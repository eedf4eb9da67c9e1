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
	to = lower_address(lo, &o[0], SP_SHARED);
	from = lower_address(lo, &o[1], SP_GLOBAL);
	if (lo->p->nops > 3 && o[3].kind == O_REG && lo->cls[o[3].reg] == RC_PRED) { /* ignore-src: zeros only */
		s32 ignore = pred_src(lo, &o[3]);

		limit = temp(lo, RC_32);
		i = emit_op(lo, "selp.b32");
		set_use(lo, i, 1, const_reg(lo, RC_32, 0));
		set_use(lo, i, 2, const_reg(lo, RC_32, o[2].val));
		set_use(lo, i, 3, ignore);
		set_def(lo, i, 0, limit);
	} else if (lo->p->nops > 3 && (o[3].kind != O_REG || lo->cls[o[3].reg] == RC_32))
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
	bool reduce = mod(lo, "reduce");

	if (!mod(lo, "async"))
		lower_unsupported(lo, NULL);
	if (mod(lo, "bulk")) {
		lower_cp_bulk(lo, reduce);
		return;
	}
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
	copy(lo);
}

/* The bytes of a finished asynchronous operation go to the mbarrier of the last operand. */
static void complete(struct lower *lo, const struct opnd *o, u32 bytes)
{
	struct ins *i = object(lo, "mbarrier:complete_tx", o, SP_SHARED);

	set_use(lo, i, 1, const_reg(lo, RC_32, bytes));
}

static void async_mods(struct lower *lo, bool *mbarrier)
{
	static const char *const ok[] = {"weak", "relaxed", "release", "mmio", "cta", "cluster", "gpu", "sys", NULL};

	mod(lo, "async");
	*mbarrier = mod(lo, "mbarrier::complete_tx::bytes");
	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, *mbarrier ? 3 : 2, *mbarrier ? 3 : 2);
}

/* st.async{.v2,.v4}.type [to], value, [mbarrier] */
void lower_st_async(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	u32 n = mod(lo, "v2") ? 2 : mod(lo, "v4") ? 4 : 1, size = type_size(t);
	struct address a;
	bool mbarrier;
	struct ins *i;
	s32 v[4];

	async_mods(lo, &mbarrier);
	if (size < (mbarrier ? 4u : 1u) || size > 8 || (sp != (mbarrier ? SP_SHARED : SP_GLOBAL) && sp != SP_GENERIC) ||
	    (n > 1) != (o[1].kind == O_VEC) || (n > 1 && o[1].nlist != n))
		lower_unsupported(lo, NULL);
	for (u32 k = 0; k < n; k++)
		v[k] = src(lo, n > 1 ? &o[1].list[k] : &o[1], class_char(type_class(t)));
	a = lower_address(lo, &o[0], sp);
	if (!mbarrier)
		emit_op(lo, "fence:release");
	i = emit_op(lo, "%s:%c:%u:%c", n > 1 ? "stv" : "st", a.space == SP_SHARED ? (a.wide ? 'S' : 's') : 'g', size * 8,
		    class_char(type_class(t)));
	i->imm = a.off;
	i->size = (u8)n;
	i->sub = (u8)a.space;
	for (u32 k = 0; k < n; k++)
		set_use(lo, i, k, v[k]);
	set_use(lo, i, 4, a.reg);
	if (mbarrier)
		complete(lo, &o[2], n * size);
}

/* red.async.op.type [to], value, [mbarrier] */
void lower_red_async(struct lower *lo)
{
	static const char *const ops[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor", NULL};
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	u32 size = type_size(t), k = 0;
	struct address a;
	bool mbarrier;
	struct ins *i;
	s32 v;

	while (ops[k] && !mod(lo, ops[k]))
		k++;
	async_mods(lo, &mbarrier);
	if (!ops[k] || (size != 4 && size != 8) || (sp != (mbarrier ? SP_SHARED : SP_GLOBAL) && sp != SP_GENERIC))
		lower_unsupported(lo, NULL);
	v = src(lo, &o[1], class_char(type_class(t)));
	a = lower_address(lo, &o[0], sp);
	if (!mbarrier)
		emit_op(lo, "fence:release");
	if (k < 3)
		i = emit_op(lo, "atom:%s:%c%u", ops[k], type_is_signed(t) ? 's' : 'u', size * 8);
	else
		i = emit_op(lo, "atom:%s:b%u", ops[k], size * 8);
	i->sub = (u8)a.space;
	i->size = a.wide ? 8 : 4;
	i->imm = a.off;
	set_use(lo, i, 1, v);
	set_use(lo, i, 4, a.reg);
	set_def(lo, i, 0, temp(lo, type_class(t)));
	if (mbarrier)
		complete(lo, &o[2], size);
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
