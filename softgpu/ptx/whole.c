/* SPDX-License-Identifier: MIT */
/* Builds the whole-warp form of a kernel: which registers are one value for all lanes, and the code that uses it. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/sreg.h"
#include "softgpu/ptx/whole_build.h"

/*
 * Whole-warp code runs only while all 32 lanes are alive and together in one split. There a register that was
 * computed from values that are equal in all lanes is equal in all lanes, whatever branches led there: no lane
 * took another way. So the facts below need data flow alone, and are sound for as long as the warp has not split.
 * They say nothing about a warp that has, and need not:
 *
 * - A branch that would split the warp, and anything else that the quick handlers do not clear, leaves whole-warp
 *   code (WHOLE_SLOW): every live register gets its 32 values, and the instruction runs again in the general form, which relies
 *   on no fact.
 * - Coming back, when the lanes have met again at the start of a block, the registers are compared with what that
 *   place assumes (ptx_whole_enter). Only if all of it holds, it is whole-warp code again. Neither reconvergence
 *   nor control dependence is ever assumed.
 *
 * So the invariant at each place of whole-warp code is: live == FULL, one split, and each live register is as its
 * fact says. It holds at the kernel's start (no register has a value yet, and special registers are as the launch's
 * shape says), each instruction keeps it, and entering checks it.
 *
 * The facts: a register is STEP when lane l has the value of lane 0 plus l · step, modulo its size; with step 0 it
 * is one value. Lane 0 is then the only element that must be up to date; `wide` says that a later reader
 * wants all 32, and the definition spreads them at once. Everything else is MANY. Widening a value with steps is
 * exact only if it does not wrap within the warp: that is checked when it happens (WS_NO_WRAP).
 *
 * What is computed from parameters and constants alone is the same in all warps of a launch. It is *hoisted*: computed
 * once for each frame and launch into a place of its own behind the registers, where its readers find it. The register itself is
 * written only where a reader cannot be led there, as after two ways that bring different values.
 */

/* ---- The values of facts ---- */

static const struct fact many = {.kind = MANY};

static struct fact one(void)
{
	return (struct fact){.kind = STEP};
}

static bool is_one(struct fact a)
{
	return a.kind != MANY && !a.step; /* UNSET: no value yet, so any will do */
}

static bool is_step(struct fact a)
{
	return a.kind != MANY;
}

static struct fact meet(struct fact a, struct fact b)
{
	if (a.kind == UNSET)
		return b;
	if (b.kind == UNSET)
		return a;
	if (a.kind == MANY || b.kind == MANY || a.step != b.step)
		return many;
	a.align = a.align < b.align ? a.align : b.align;
	a.hoisted = a.hoisted == b.hoisted ? a.hoisted : 0;
	return a;
}

static struct fact stepped(s64 step, u32 cls)
{
	if (cls == RC_32)
		step = (s32)step;
	if (step != (s32)step || (cls != RC_32 && cls != RC_64 && step))
		return many;
	return (struct fact){.kind = STEP, .step = (s32)step};
}

/* ---- Registers ---- */

u32 wb_slot(const struct build *b, s32 off, u32 *cls)
{
	static const u32 bytes[RC_COUNT] = {4, 2 * WARP, 4 * WARP, 8 * WARP};
	const struct ptx_func *f = b->f;

	for (u32 c = 0; c < RC_COUNT; c++)
		if ((u32)off >= f->reg_base[c] && (u32)off < f->reg_base[c + 1]) {
			*cls = c;
			return b->first[c] + ((u32)off - f->reg_base[c]) / bytes[c];
		}
	*cls = RC_PRED;
	return 0;
}

static struct fact get(const struct build *b, const struct fact *facts, s32 off)
{
	u32 cls;

	return off < 0 ? one() : facts[wb_slot(b, off, &cls)];
}

/* The value of a source that is a constant of the pool. */
static bool constant(const struct build *b, s32 off, u32 cls, s64 *v)
{
	if (off >= 0)
		return false;
	*v = cls == RC_64 ? *(const s64 *)(b->f->pool + off) : *(const s32 *)(b->f->pool + off);
	return true;
}

static bool aligned32(struct fact a)
{
	return a.kind == STEP && a.align >= 5;
}

static u32 class_of(const struct build *b, s32 off)
{
	u32 cls = RC_32;

	if (off >= 0)
		wb_slot(b, off, &cls);
	return cls;
}

/* The result of an operation with a source that has steps, all others being one value. MANY: none of the known kinds. */
static struct fact transfer(const struct build *b, const struct whole_op *o, const struct ins *i, const struct fact a[4])
{
	const u32 cls = class_of(b, i->r[0]);
	s64 k = 0, m = 1;

	switch ((enum transfer)o->transfer) {
	case TR_MOV:
		return a[1];
	case TR_TRUNC:
		return stepped(a[1].step, cls);
	case TR_ADD:
		return stepped((s64)a[1].step + a[2].step, cls);
	case TR_SUB:
		return stepped((s64)a[1].step - a[2].step, cls);
	case TR_MUL:
		if (constant(b, i->r[2], cls, &k) && k == (s32)k)
			return stepped(a[1].step * k, cls);
		if (constant(b, i->r[1], cls, &k) && k == (s32)k)
			return stepped(a[2].step * k, cls);
		return many;
	case TR_MAD:
		if (!a[1].step && !a[2].step)
			return stepped(a[3].step, cls);
		if (constant(b, i->r[2], cls, &k) && k == (s32)k)
			return stepped(a[1].step * k + a[3].step, cls);
		if (constant(b, i->r[1], cls, &k) && k == (s32)k)
			return stepped(a[2].step * k + a[3].step, cls);
		return many;
	case TR_SHL:
		if (!a[2].step && constant(b, i->r[2], RC_32, &k) && k >= 0 && k < 31)
			return stepped(a[1].step * (1ll << k), cls);
		return many;
	case TR_SHR: /* 32 consecutive numbers from a multiple of 32 differ in the low five bits only */
		if (aligned32(a[1]) && a[1].step == 1 && constant(b, i->r[2], RC_32, &k) && k >= 5 && k < 32)
			return one();
		return many;
	case TR_AND:
		if (!aligned32(a[1]) || a[1].step != 1 || !constant(b, i->r[2], RC_32, &k))
			return many;
		if ((k & 31) == 31)
			return (struct fact){.kind = STEP, .step = 1, .align = 5};
		return k & 31 ? many : one();
	case TR_WIDE_S:
	case TR_WIDE_U:
		/* cvt has one source, mul.wide a constant factor, mad.wide also a summand */
		if (o->general->sig[2]) {
			if (a[1].step && !a[2].step && constant(b, i->r[2], RC_32, &k))
				m = k;
			else if (a[2].step && !a[1].step && constant(b, i->r[1], RC_32, &k))
				m = k;
			else if (a[1].step || a[2].step)
				return many;
		}
		if (o->transfer == TR_WIDE_U && m != 1)
			m = (u32)m;
		return stepped((a[1].step ? a[1].step
				: o->general->sig[2]
					? a[2].step
					: 0) * m +
				       (o->general->sig[2] && o->general->sig[3] ? a[3].step : 0),
			       cls);
	default:
		return many;
	}
}

/* ---- What one instruction becomes ---- */

static struct fact sreg(const struct build *b, u32 sr)
{
	switch (sr) {
	case SR_TID_X:
		return b->shape == SHAPE_ROWS ? (struct fact){.kind = STEP, .step = 1, .align = 5} : many;
	case SR_TID_Y:
	case SR_TID_Z:
		return b->shape == SHAPE_ROWS ? one() : many;
	case SR_LANEID:
		return (struct fact){.kind = STEP, .step = 1, .align = 5};
	case SR_MASK_EQ:
	case SR_MASK_LE:
	case SR_MASK_LT:
	case SR_MASK_GE:
	case SR_MASK_GT:
		return many;
	default:
		return one();
	}
}

static bool all(const struct build *b, const struct ins *i, u32 regs, const struct fact *facts, bool (*test)(struct fact))
{
	for (u32 k = 0; k < NREGS; k++)
		if ((regs >> k & 1) && !test(get(b, facts, i->r[k])))
			return false;
	return true;
}

static struct choice memory(const struct build *b, const struct whole_op *o, const struct ins *i, const struct ins_info *in,
			    const struct fact *facts)
{
	struct choice c = {.form = FORM_GENERAL, .wide = in->use, .result = many};
	struct fact a = get(b, facts, i->r[4]);
	u32 n = i->size ? i->size : 1, values = in->use & ~(1u << 4);

	if (!is_step(a) || (n != 1 && n != 2 && n != 4))
		return c;
	if (a.step == (s32)(n * o->bytes) && o->row->vector) {
		c.fn = o->row->vector;
		c.form = FORM_LEAVES;
		c.wide = values;
		c.narrow = 1u << 4;
	} else if (!a.step && o->transfer == TR_LOAD) {
		c.fn = o->row->scalar;
		c.form = FORM_LEAVES;
		c.wide = 0;
		c.narrow = 0xff;
		c.result = one();
	} else if (!a.step && o->row->scalar && all(b, i, values, facts, is_one)) {
		c.fn = o->row->scalar;
		c.form = FORM_LEAVES;
		c.wide = 0;
		c.narrow = 0xff;
	}
	return c;
}

/* Pure: the result is a function of the lane's own operands, so equal operands give equal results. */
static struct choice pure(const struct build *b, const struct whole_op *o, const struct ins *i, const struct ins_info *in,
			  const struct fact *facts)
{
	struct choice c = {.form = FORM_GENERAL, .wide = in->use, .result = many};
	struct fact a[4] = {{0}, get(b, facts, i->r[1]), get(b, facts, i->r[2]), get(b, facts, i->r[3])};
	bool ones = all(b, i, in->use, facts, is_one), steps = all(b, i, in->use, facts, is_step);
	bool pred = class_of(b, i->r[0]) == RC_PRED;
	const char *sig = o->general->sig;

	if (in->def != 1) /* carry chains */
		return c;
	/* r[k] beyond the signature are not operands */
	for (size_t k = strlen(sig); k < 4; k++)
		a[k] = one();
	if (ones && o->row && o->row->scalar) {
		c.fn = o->row->scalar;
		c.form = FORM_FAST;
		c.wide = 0;
		c.narrow = 0xff;
		c.result = one();
		return c;
	}
	if (ones && !pred) {
		c.form = FORM_LANE0;
		c.wide = 0;
		c.narrow = 0xff;
		c.result = one();
		return c;
	}
	if (steps && o->transfer == TR_SETP && o->row->step) {
		c.fn = o->row->step;
		c.form = FORM_FAST;
		c.wide = 0;
		c.narrow = 0xff;
		c.step = a[1].step;
		c.step2 = a[2].step;
		return c;
	}
	if (steps && o->transfer != TR_PLAIN && o->transfer != TR_SETP && o->row && o->row->scalar) {
		c.result = transfer(b, o, i, a);
		if (c.result.kind != MANY) {
			c.fn = o->row->scalar;
			c.form = FORM_FAST;
			c.wide = 0;
			c.narrow = 0xff;
			c.narrow = 0xff;
			if ((o->transfer == TR_WIDE_S || o->transfer == TR_WIDE_U) && (a[1].step || (sig[2] && a[2].step))) {
				c.no_wrap = o->transfer == TR_WIDE_S ? WS_NO_WRAP_S : WS_NO_WRAP_U;
				c.checked = a[1].step ? 1 : 2;
				c.step = a[c.checked].step;
			}
			return c;
		}
	}
	if (ones)
		c.result = one();
	if (!o->row)
		return c;
	if (o->row->mixed && is_one(a[1])) {
		c.fn = o->row->mixed;
		c.form = FORM_FAST;
		c.wide = in->use & ~2u;
		c.narrow = 2;
	} else if (o->row->vector) {
		c.fn = o->row->vector;
		c.form = FORM_FAST;
	}
	return c;
}

static struct choice choose(const struct build *b, u32 at, const struct fact *facts)
{
	const struct ins *i = &b->f->code[at];
	const struct ins_info *in = &b->f->ins_info[at];
	struct choice c = {.form = FORM_GENERAL, .wide = in->use, .result = many};
	const struct whole_op *o = b->ops[at];

	switch (i->kind) {
	case K_PLAIN:
		break;
	case K_SYNC: /* all lanes are here */
		return c;
	case K_GUARD: /* what it defines keeps its old value in other lanes */
		c.form = FORM_GUARDED;
		c.wide |= in->def;
		return c;
	case K_BRA:
		c.form = FORM_BRANCH;
		return c;
	case K_NEXT:
		c.form = FORM_NONE;
		return c;
	case K_EXIT:
	case K_BAR:
	case K_CLUSTER:
	case K_YIELD:
		c.form = FORM_CONTROL;
		c.wide = i->kind == K_BAR ? 0 : in->use; /* number and count are read from lane 0, the rest are predicates */
		return c;
	default:
		c.form = FORM_SLOW;
		return c;
	}
	if (!o || in->list_def || in->list_use)
		return c;
	switch ((enum transfer)o->transfer) {
	case TR_LOAD:
	case TR_STORE:
		return memory(b, o, i, in, facts);
	case TR_SREG:
		c.result = sreg(b, (u32)i->imm);
		c.form = c.result.kind == MANY ? FORM_GENERAL : FORM_LANE0;
		if (c.form == FORM_LANE0 && i->imm <= SR_NCTAID_Z) {
			static const u8 of[] = {WS_TID, WS_NTID, WS_CTAID, WS_NCTAID};

			c.form = FORM_SPECIAL;
			c.special = of[i->imm / 3];
			c.imm = (u32)i->imm % 3;
		}
		return c;
	case TR_PARAM:
		c.form = FORM_SPECIAL;
		c.special = class_of(b, i->r[0]) == RC_64 ? WS_PARAM64 : WS_PARAM32;
		c.imm = (u32)i->imm;
		c.result = one();
		return c;
	case TR_SAME:
		c.form = FORM_LANE0;
		c.result = one();
		return c;
	default:
		return o->general ? pure(b, o, i, in, facts) : c;
	}
}

/* Adds to @c what is hoisted: the result, or sources, which are then read from where the hoisted values are. */
static void hoist(const struct build *b, u32 at, struct choice *c, const struct fact *facts)
{
	const struct ins *i = &b->f->code[at];
	const struct ins_info *in = &b->f->ins_info[at];
	bool same = true; /* in all warps */
	u32 cls;

	c->result.hoisted = 0;
	if (c->form == FORM_FAST || c->form == FORM_LEAVES)
		for (u32 k = 0; k < NREGS; k++) {
			if (!(in->use >> k & 1) || i->r[k] < 0)
				continue;
			if (facts[wb_slot(b, i->r[k], &cls)].hoisted)
				c->hoisted |= (u8)(1u << k);
			else
				same = false;
		}
	if (c->form == FORM_SPECIAL)
		same = c->special == WS_NTID || c->special == WS_NCTAID || c->special == WS_PARAM32 || c->special == WS_PARAM64;
	else
		same &= c->form == FORM_FAST && c->narrow == 0xff;
	if (same && in->def == 1 && is_one(c->result) && class_of(b, i->r[0]) != RC_PRED)
		c->result.hoisted = at + 1;
}

struct choice wb_choose(const struct build *b, u32 at, const struct fact *facts)
{
	struct choice c = choose(b, at, facts);

	hoist(b, at, &c, facts);
	return c;
}

/* The facts behind instruction @at. */
void wb_apply(const struct build *b, u32 at, const struct choice *c, struct fact *facts)
{
	const struct ins *i = &b->f->code[at];
	const struct ins_info *in = &b->f->ins_info[at];
	u32 cls;

	for (u32 k = 0; k < NREGS; k++)
		if (in->def >> k & 1)
			facts[wb_slot(b, i->r[k], &cls)] = c->result;
	for (u32 k = 0; k < in->list_def; k++)
		facts[wb_slot(b, b->f->ops[in->list + k], &cls)] = many;
}

bool wb_meet(struct fact *to, const struct fact *from, u32 n)
{
	bool changed = false;

	for (u32 k = 0; k < n; k++) {
		struct fact m = meet(to[k], from[k]);

		if (m.kind != to[k].kind || m.step != to[k].step || m.align != to[k].align || m.hoisted != to[k].hoisted) {
			to[k] = m;
			changed = true;
		}
	}
	return changed;
}
