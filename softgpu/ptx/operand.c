/* SPDX-License-Identifier: MIT */
/* Operands of an instruction being lowered: registers, pool constants, temporaries, addresses. */
#include <string.h>

#include "softgpu/ptx/lower.h"

enum rclass type_class(enum type t)
{
	switch (type_size(t)) {
	case 0:
		return RC_PRED;
	case 1:
	case 2:
		return RC_16;
	case 4:
		return RC_32;
	case 8:
		return RC_64;
	default:
		return RC_COUNT;
	}
}

char class_char(enum rclass c)
{
	return "phwdq"[c];
}

static enum rclass sig_class(char sig)
{
	switch (sig) {
	case 'p':
		return RC_PRED;
	case 'h':
		return RC_16;
	case 'w':
	case 'f':
		return RC_32;
	default:
		return RC_64;
	}
}

s32 temp(struct lower *lo, enum rclass cls)
{
	lo->cls = load_grow(lo->ld, lo->cls, lo->nregs, &lo->cregs, 1);
	lo->cls[lo->nregs] = (u8)cls;
	return (s32)lo->nregs++;
}

s32 half128(struct lower *lo, const struct opnd *o, bool result)
{
	s32 r;

	if (o->kind == O_SINK && result) {
		r = temp(lo, RC_64);
		temp(lo, RC_64);
		return r;
	}
	if (o->kind != O_REG || o->inverted || o->sel[0] || lo->cls[o->reg] != RC_COUNT)
		lower_unsupported(lo, "the operand is not a 128-bit register");
	return lo->pair[o->reg];
}

void set_def(struct lower *lo, struct ins *i, u32 k, s32 reg)
{
	i->r[k] = reg;
	lo->info[i - lo->code].def |= (u8)(1u << k);
}

void set_use(struct lower *lo, struct ins *i, u32 k, s32 reg)
{
	i->r[k] = reg;
	if (reg >= 0)
		lo->info[i - lo->code].use |= (u8)(1u << k);
}

/* The pool grows downwards; its offsets are final at once and, being negative, no register's number. */
s32 const_reg(struct lower *lo, enum rclass cls, u64 val)
{
	static const u32 bytes[] = {[RC_PRED] = 64, [RC_16] = 64, [RC_32] = 128, [RC_64] = 256};
	struct pool_const *c, **b;

	if (cls == RC_16)
		val = (u16)val;
	else if (cls == RC_32)
		val = (u32)val;
	else if (cls == RC_PRED)
		val = val ? FULL : 0;
	b = &lo->consts[(val * 0x9e3779b97f4a7c15ull >> 56) % CONST_BUCKETS];
	for (c = *b; c; c = c->chain)
		if (c->val == val && c->cls == cls)
			return c->off;
	if (lo->pool_bytes > 1u << 30)
		lower_unsupported(lo, "too many constants in one function");
	c = load_alloc(lo->ld, sizeof(*c));
	lo->pool_bytes += bytes[cls];
	*c = (struct pool_const){.chain = *b, .val = val, .cls = (u8)cls, .off = -(s32)lo->pool_bytes};
	*b = c;
	lo->const_list = load_grow(lo->ld, lo->const_list, lo->nconsts, &lo->cconsts, sizeof(*lo->const_list));
	lo->const_list[lo->nconsts++] = c;
	return c->off;
}

enum rclass reg_class(struct lower *lo, s32 reg)
{
	if (reg >= 0)
		return lo->cls[reg];
	for (u32 k = 0; k < lo->nconsts; k++)
		if (lo->const_list[k]->off == reg)
			return lo->const_list[k]->cls;
	return RC_64;
}

u64 sym_address(struct lower *lo, const struct sym *s)
{
	if (s->kind == SYM_FUNC) {
		if (!s->func || !s->func->out)
			lower_unsupported(lo, "the address of a function without a body");
		return WINDOW_FUNC << WINDOW_SHIFT | ((u64)s->func->out->index + 1) * 16;
	}
	if (s->kind != SYM_VAR)
		lower_unsupported(lo, "this operand has no address");
	return s->addr;
}

static s32 float_const(struct lower *lo, const struct opnd *o, enum rclass cls)
{
	u64 bits = o->val;

	if (cls == RC_32 && o->fbits == 64) {
		double d;
		float f;
		u32 b;

		memcpy(&d, &bits, 8);
		f = (float)d;
		memcpy(&b, &f, 4);
		bits = b;
	} else if (cls == RC_64 && o->fbits == 32) {
		double d;
		float f;
		u32 b = (u32)bits;

		memcpy(&f, &b, 4);
		d = (double)f;
		memcpy(&bits, &d, 8);
	} else if (cls == RC_16 || cls == RC_PRED) {
		lower_unsupported(lo, "a float literal of this size");
	}
	return const_reg(lo, cls, bits);
}

static s32 sreg_src(struct lower *lo, const struct opnd *o, enum rclass cls)
{
	bool is64 = o->sreg == SR_CLOCK64 || o->sreg == SR_GLOBALTIMER;
	s32 t = temp(lo, is64 ? RC_64 : RC_32);
	struct ins *i;

	if (o->sreg == SR_WARPSZ)
		return const_reg(lo, cls, WARP);
	if (o->sreg == SR_GRIDID && cls == RC_64)
		is64 = true, t = temp(lo, RC_64);
	i = emit_op(lo, "sreg:%c", is64 ? 'd' : 'w');
	i->imm = o->sreg;
	set_def(lo, i, 0, t);
	if (cls == RC_16 && !is64) { /* %tid in a 16-bit register: PTX 1 code does this */
		s32 h = temp(lo, RC_16);

		i = emit_op(lo, "trunc:hw");
		set_use(lo, i, 1, t);
		set_def(lo, i, 0, h);
		return h;
	}
	if (cls == RC_64 && !is64)
		return widen64(lo, t);
	if (cls != (is64 ? RC_64 : RC_32))
		lower_unsupported(lo, "this special register has another size");
	return t;
}

s32 src_any(struct lower *lo, const struct opnd *o, enum rclass want, enum rclass *cls)
{
	*cls = want;
	switch (o->kind) {
	case O_REG:
		if (o->inverted || o->sel[0])
			break;
		*cls = lo->cls[o->reg];
		return o->reg;
	case O_INT:
		return const_reg(lo, want, o->val);
	case O_FLOAT:
		return float_const(lo, o, want);
	case O_SREG:
		return sreg_src(lo, o, want);
	case O_SYM:
		if (o->sym->kind == SYM_VAR && o->sym->space == SP_LOCAL) {
			s32 t = temp(lo, RC_64);
			struct ins *i = emit_op(lo, "localaddr");

			i->imm = o->sym->addr + o->val;
			set_def(lo, i, 0, t);
			if (want == RC_64)
				return t;
			i = emit_op(lo, "trunc:wd");
			set_use(lo, i, 1, t);
			t = temp(lo, RC_32);
			set_def(lo, &lo->code[lo->n - 1], 0, t);
			return t;
		}
		if (o->sym->kind == SYM_VAR && o->sym->space == SP_PARAM && !lo->ast->is_entry)
			lower_unsupported(lo, "the address of a device function's parameter");
		return const_reg(lo, want, sym_address(lo, o->sym) + o->val);
	default:
		break;
	}
	lower_unsupported(lo, "an operand of this kind");
}

s32 src(struct lower *lo, const struct opnd *o, char sig)
{
	enum rclass want = sig_class(sig), cls;
	s32 r;

	if (want == RC_PRED)
		return pred_src(lo, o);
	r = src_any(lo, o, want, &cls);
	if (cls != want)
		lower_unsupported(lo, "a source register of another size");
	return r;
}

s32 dst_any(struct lower *lo, const struct opnd *o, enum rclass want, enum rclass *cls)
{
	*cls = want;
	if (o->kind == O_SINK)
		return temp(lo, want);
	if (o->kind != O_REG || o->inverted || o->sel[0])
		lower_unsupported(lo, "the result is not a register");
	*cls = lo->cls[o->reg];
	return o->reg;
}

s32 dst(struct lower *lo, const struct opnd *o, char sig)
{
	enum rclass want = sig_class(sig), cls;
	s32 r = dst_any(lo, o, want, &cls);

	if (cls != want || o->second)
		lower_unsupported(lo, "a result register of another size");
	return r;
}

s32 pred_src(struct lower *lo, const struct opnd *o)
{
	if (o->kind == O_INT)
		return const_reg(lo, RC_PRED, o->val);
	if (o->kind == O_SREG && o->sreg == SR_IS_EXPLICIT_CLUSTER) { /* the one special register that is a predicate */
		s32 v = sreg_src(lo, o, RC_32), t = temp(lo, RC_PRED);
		struct ins *i = emit_op(lo, "setp.ne.u32");

		set_use(lo, i, 1, v);
		set_use(lo, i, 2, const_reg(lo, RC_32, 0));
		set_def(lo, i, 0, t);
		return t;
	}
	if (o->kind != O_REG || o->sel[0] || lo->cls[o->reg] != RC_PRED)
		lower_unsupported(lo, "the operand is not a predicate");
	if (o->inverted) {
		s32 t = temp(lo, RC_PRED);
		struct ins *i = emit_op(lo, "not.pred");

		set_use(lo, i, 1, o->reg);
		set_def(lo, i, 0, t);
		return t;
	}
	return o->reg;
}

s32 widen64(struct lower *lo, s32 reg)
{
	enum rclass c = reg_class(lo, reg);
	struct ins *i;
	s32 t;

	if (c == RC_64)
		return reg;
	i = emit_op(lo, c == RC_32 ? "cvt.u64.u32" : "cvt.u64.u16");
	set_use(lo, i, 1, reg);
	t = temp(lo, RC_64);
	set_def(lo, i, 0, t);
	return t;
}

void emit_mov(struct lower *lo, s32 to, s32 from)
{
	struct ins *i = emit_op(lo, "mov:%c", class_char(reg_class(lo, to)));

	set_use(lo, i, 1, from);
	set_def(lo, i, 0, to);
}

u32 list_begin(struct lower *lo)
{
	return lo->nops;
}

void list_add(struct lower *lo, s32 reg)
{
	lo->ops = load_grow(lo->ld, lo->ops, lo->nops, &lo->cops, sizeof(*lo->ops));
	lo->ops[lo->nops++] = reg;
}

/* The list's first @ndef registers are written, the others read. */
void list_end(struct lower *lo, struct ins *i, u32 first, u32 ndef)
{
	struct ins_info *in = &lo->info[i - lo->code];

	i->target = first;
	in->list = first;
	in->list_def = (u16)ndef;
	in->list_use = (u16)(lo->nops - first - ndef);
}

enum space mod_space(struct lower *lo)
{
	if (mod(lo, "global"))
		return SP_GLOBAL;
	if (mod(lo, "shared") || mod(lo, "shared::cta") || mod(lo, "shared::cluster"))
		return SP_SHARED;
	if (mod(lo, "local"))
		return SP_LOCAL;
	if (mod(lo, "const"))
		return SP_CONST;
	if (mod(lo, "param") || mod(lo, "param::entry") || mod(lo, "param::func"))
		return SP_PARAM;
	return SP_GENERIC;
}

struct address lower_address(struct lower *lo, const struct opnd *o, enum space space)
{
	struct address a = {.space = space, .off = o->val, .sym = o->sym};
	enum rclass cls = RC_64;

	if (o->kind != O_MEM || o->list)
		lower_unsupported(lo, "the operand is not an address");
	if (space == SP_CONST)
		a.space = SP_GLOBAL; /* constants lie in the arena like any global */
	if (o->has_base) {
		a.reg = o->reg;
		cls = reg_class(lo, a.reg);
		a.wide = cls == RC_64;
		if (cls == RC_32 && space != SP_SHARED) {
			if (space == SP_GLOBAL || space == SP_CONST || space == SP_GENERIC)
				lower_unsupported(lo, "a 32-bit address where addresses have 64 bits");
			a.reg = widen64(lo, a.reg);
			a.wide = true;
		} else if (cls != RC_32 && cls != RC_64) {
			lower_unsupported(lo, "the base register is no address");
		}
		return a;
	}
	a.fixed = true;
	a.wide = true;
	if (o->sym) {
		if (o->sym->kind != SYM_VAR)
			lower_unsupported(lo, "the operand has no address");
		if (space == SP_PARAM) {
			if (o->sym->space != SP_PARAM)
				lower_unsupported(lo, "the variable is no parameter");
			a.off += o->sym->addr;
			if (a.off > 1u << 26)
				lower_unsupported(lo, "the offset is outside the parameters");
			return a;
		}
		if (o->sym->space == SP_LOCAL) {
			struct opnd v = {.kind = O_SYM, .sym = o->sym};

			a.reg = src_any(lo, &v, RC_64, &cls);
			if (space == SP_GENERIC)
				lower_unsupported(lo, "a .local variable without .local");
			return a;
		}
		a.off += sym_address(lo, o->sym);
		/* A variable named without its space: the generic address of its place. */
		if (space == SP_GENERIC) {
			if (o->sym->space == SP_SHARED)
				a.off += WINDOW_SHARED << WINDOW_SHIFT;
			else if (o->sym->space == SP_PARAM)
				a.off += WINDOW_PARAM << WINDOW_SHIFT;
		}
	}
	if (space == SP_PARAM)
		return a;
	a.reg = const_reg(lo, RC_64, a.off);
	a.off = 0;
	return a;
}
