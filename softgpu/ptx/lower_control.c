/* SPDX-License-Identifier: MIT */
/* Lowering of branches, calls, returns, exits and traps. */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/lower.h"

static u32 label_target(struct lower *lo, struct sym *s)
{
	while (s->fwd)
		s = s->fwd;
	if (s->kind != SYM_LABEL || !s->defined)
		load_fail(lo->ld, PTX_SYNTAX, lo->p->line, "'%.*s' is not a label", (int)s->len, s->name);
	return s->ins;
}

void lower_bra(struct lower *lo)
{
	static const char *const hints[] = {"uni", NULL};
	struct ins *i;

	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 1, 1);
	if (lo->p->ops[0].kind != O_SYM)
		lower_unsupported(lo, "the target is not a label");
	i = emit(lo, NULL, K_BRA);
	i->target = label_target(lo, lo->p->ops[0].sym);
	i->guard = lo->p->guard >= 0 ? lo->p->guard : NO_GUARD;
	i->guard_inverted = lo->p->guard_inverted;
}

void lower_brx(struct lower *lo)
{
	static const char *const hints[] = {"uni", "idx", NULL};
	struct sym *s;
	struct ins *i;
	s32 index;
	u32 first;

	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 2, 2);
	s = lo->p->ops[1].kind == O_SYM ? lo->p->ops[1].sym : NULL;
	while (s && s->fwd)
		s = s->fwd;
	if (!s || s->kind != SYM_TARGETS || !s->ntargets)
		lower_unsupported(lo, "the operand is not a .branchtargets list");
	index = src(lo, &lo->p->ops[0], 'w');
	first = list_begin(lo);
	for (u32 k = 0; k < s->ntargets; k++)
		list_add(lo, (s32)label_target(lo, s->targets[k]));
	i = emit(lo, NULL, K_BRX);
	set_use(lo, i, 0, index);
	i->target = first;
	i->imm = s->ntargets;
}

/*
 * Device library functions that the engine provides: rows "call:NAME" of the handlers' table. The handler reads its arguments
 * from the caller's area; the row's signature has the sizes of the result and the parameters, s for a dim3.
 */
static const struct op_row *builtin(const char *name)
{
	char row[128];
	int n = snprintf(row, sizeof(row), "call:%s", name);

	return n > 0 && (size_t)n < sizeof(row) ? ptx_op_find(row, (size_t)n) : NULL;
}

static bool same_types(const struct func_ast *t, const char *sig)
{
	const struct sym *v = t->params;

	if (t->rets && (sig[0] == '-' || t->rets->size != (sig[0] == 'd' ? 8 : 4)))
		return false;
	for (sig++; *sig && v; sig++, v = v->next)
		if (v->size != (*sig == 's' ? 12 : *sig == 'd' ? 8 : 4))
			return false;
	return !*sig && !v;
}

static const struct opnd *list_of(const struct opnd *list, u32 k)
{
	return k < list->nlist ? &list->list[k] : NULL;
}

static bool is_kernel_param(struct lower *lo, const struct sym *v)
{
	if (lo->ast->is_entry)
		for (const struct sym *p = lo->ast->params; p; p = p->next)
			if (p == v)
				return true;
	return false;
}

/* Code that moves a register from or to a place in the lane's parameter area. */
void lower_area_load(struct lower *lo, s32 reg, u32 offset)
{
	enum rclass c = reg_class(lo, reg);
	struct ins *i = emit_op(lo, "lda:u%u:%c", c == RC_16 ? 16 : c == RC_32 ? 32 : 64, class_char(c));

	i->imm = offset;
	set_def(lo, i, 0, reg);
}

void lower_area_store(struct lower *lo, s32 reg, u32 bytes, u32 offset)
{
	struct ins *i = emit_op(lo, "sta:%u:%c", 8 * bytes, class_char(reg_class(lo, reg)));

	i->imm = offset;
	set_use(lo, i, 0, reg);
}

static u32 area_slot(struct lower *lo, u32 bytes)
{
	lo->area = (lo->area + bytes - 1) & ~(bytes - 1);
	lo->area += bytes;
	return lo->area - bytes;
}

/* Where an argument for the formal @v lies: a variable is there already, a register or a constant is put into a place of its own.
 */
static u32 arg_offset(struct lower *lo, const struct opnd *o, const struct sym *v, u32 *bytes)
{
	if (o->kind == O_REG || o->kind == O_INT || o->kind == O_FLOAT) {
		u32 at, size = (u32)v->size;
		s32 r;

		if (v->size != type_size(v->type) || size > 8)
			lower_unsupported(lo, "a register for this parameter");
		r = src(lo, o, class_char(type_class(v->type)));
		at = area_slot(lo, size);
		lower_area_store(lo, r, size, at);
		*bytes = size;
		return at;
	}
	if (o->kind != O_SYM || o->sym->kind != SYM_VAR || o->sym->space != SP_PARAM || is_kernel_param(lo, o->sym))
		lower_unsupported(lo, "arguments must be .param variables of this function");
	*bytes = (u32)o->sym->size;
	return (u32)o->sym->addr;
}

/* The same for a result; *@reg is a register that it must be loaded into after the call, −1 when there is none. */
static u32 result_offset(struct lower *lo, const struct opnd *o, const struct sym *v, u32 *bytes, s32 *reg)
{
	*reg = -1;
	if (o->kind != O_REG && o->kind != O_SINK)
		return arg_offset(lo, o, v, bytes);
	if (v->size != type_size(v->type) || v->size > 8)
		lower_unsupported(lo, "a register for this result");
	*bytes = (u32)v->size;
	if (o->kind == O_REG)
		*reg = dst(lo, o, class_char(type_class(v->type)));
	return area_slot(lo, *bytes);
}

static void lower_builtin(struct lower *lo, const struct func_ast *t, const struct op_row *row, const struct opnd *rets,
			  const struct opnd *args)
{
	const struct sym *v = t->params;
	u32 offset[16], ret = 0, first, bytes, n = 0;
	bool result = rets && list_of(rets, 0);
	struct ins *i;
	s32 reg = -1;

	for (; args && list_of(args, n); n++, v = v->next) {
		if (!v || n == 16)
			lower_unsupported(lo, "the call passes more arguments than the function has");
		offset[n] = arg_offset(lo, list_of(args, n), v, &bytes);
	}
	if (v || (result && !t->rets) || !same_types(t, row->sig))
		lower_unsupported(lo, "a device library function with other arguments");
	if (result)
		ret = result_offset(lo, list_of(rets, 0), t->rets, &bytes, &reg);
	first = list_begin(lo);

	/* The list is result's offset (or −1), then the arguments' offsets: none of them a register. */
	list_add(lo, result ? (s32)ret : -1);
	for (u32 k = 0; k < n; k++)
		list_add(lo, (s32)offset[k]);
	i = emit(lo, row->fn, K_PLAIN);
	i->target = first;
	i->sub = (u8)n;
	if (reg >= 0)
		lower_area_load(lo, reg, ret);
}

/* Pairs the call's argument variables with @target's parameters, which lie at the start of the callee's area. */
static void bind(struct lower *lo, struct call_site *c, const struct func_ast *target, const struct opnd *rets,
		 const struct opnd *args, s32 *regs)
{
	struct sym *v = target->params;
	u32 at = 0;

	c->args = load_alloc(lo->ld, 2 * 128 * sizeof(*c->args));
	c->rets = c->args + 128;
	for (u32 k = 0; args && list_of(args, k); k++, v = v->next) {
		u32 bytes;

		if (!v || k == 128)
			lower_unsupported(lo, "the call passes more arguments than the function has");
		c->args[k].from = arg_offset(lo, list_of(args, k), v, &bytes);
		at = (at + v->align - 1) & ~(v->align - 1);
		c->args[k].to = at;
		c->args[k].bytes = (u32)v->size;
		if (bytes < v->size)
			lower_unsupported(lo, "an argument is smaller than the parameter");
		at += (u32)v->size;
		c->nargs = k + 1;
	}
	if (v)
		lower_unsupported(lo, "the call passes fewer arguments than the function has");
	c->param_bytes = at;
	v = target->rets;
	at = 0;
	for (u32 k = 0; rets && list_of(rets, k); k++, v = v->next) {
		u32 bytes;

		if (!v || k == 128)
			lower_unsupported(lo, "the call takes more results than the function has");
		at = (at + v->align - 1) & ~(v->align - 1);
		c->rets[k].from = at; /* relative to the callee's ret_at */
		c->rets[k].to = result_offset(lo, list_of(rets, k), v, &bytes, &regs[k]);
		c->rets[k].bytes = (u32)v->size;
		if (bytes < v->size)
			lower_unsupported(lo, "a result variable is smaller than the result");
		at += (u32)v->size;
		c->nrets = k + 1;
	}
	c->ret_bytes = at;
}

void lower_call(struct lower *lo)
{
	static const char *const hints[] = {"uni", NULL};
	const struct opnd *ops = lo->p->ops, *rets = NULL, *args = NULL, *proto = NULL, *callee;
	u32 n = lo->p->nops, k = 0;
	struct call_site c = {0};
	struct ins *i;
	s32 addr = 0, regs[128];

	mods_ignore(lo, hints);
	mods_done(lo);
	if (k < n && ops[k].kind == O_LIST)
		rets = &ops[k++];
	if (k == n)
		lower_unsupported(lo, "a call without a function");
	callee = &ops[k++];
	if (k < n && ops[k].kind == O_LIST)
		args = &ops[k++];
	if (k < n)
		proto = &ops[k++];
	if (callee->kind == O_SYM && callee->sym->kind == SYM_FUNC) {
		struct func_ast *t = callee->sym->func;

		if (!t->has_body) {
			const struct op_row *row = builtin(t->name);

			if (!row)
				load_fail(lo->ld, PTX_UNSUPPORTED, lo->p->line, "call of '%s', which has no body here", t->name);
			lower_builtin(lo, t, row, rets, args);
			return;
		}
		if (t->is_entry)
			lower_unsupported(lo, "a call of a kernel");
		c.callee = t->out;
		bind(lo, &c, t, rets, args, regs);
	} else {
		addr = src(lo, callee, 'd');
		if (proto && proto->kind == O_SYM && proto->sym->func)
			bind(lo, &c, proto->sym->func, rets, args, regs);
		else
			lower_unsupported(lo, "an indirect call without a .callprototype or .calltargets");
		lo->f->indirect = true;
	}
	lo->calls = load_grow(lo->ld, lo->calls, lo->ncalls, &lo->ccalls, sizeof(*lo->calls));
	lo->calls[lo->ncalls] = c;
	i = emit(lo, NULL, K_CALL);
	i->imm = lo->ncalls++;
	if (!c.callee)
		set_use(lo, i, 0, addr);
	for (u32 r = 0; r < c.nrets; r++)
		if (regs[r] >= 0)
			lower_area_load(lo, regs[r], c.rets[r].to);
}

/* The end of a function: results that live in registers go to their places. */
void lower_return(struct lower *lo)
{
	for (const struct sym *v = lo->ast->rets; v; v = v->next)
		if (v->in_reg)
			lower_area_store(lo, (s32)v->reg, (u32)v->size, (u32)v->addr);
	emit(lo, NULL, lo->ast->is_entry ? K_EXIT : K_RET);
}

void lower_ret(struct lower *lo)
{
	static const char *const hints[] = {"uni", NULL};

	mods_ignore(lo, hints);
	mods_done(lo);
	lower_return(lo);
}

void lower_exit(struct lower *lo)
{
	mods_done(lo);
	emit(lo, NULL, K_EXIT);
}

void lower_trap(struct lower *lo)
{
	mods_done(lo);
	emit_op(lo, "trap:");
}

/* griddepcontrol and pmevent: nothing here depends on the order of grids or on counters. */
void lower_nop(struct lower *lo)
{
	static const char *const ok[] = {"launch_dependents", "wait", "mask", NULL};

	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, 0, 1);
}

void lower_nanosleep(struct lower *lo)
{
	if (mod_type(lo, 0) != TY_U32)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 1, 1);
	emit(lo, NULL, K_YIELD);
}
