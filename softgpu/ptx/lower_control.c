/* SPDX-License-Identifier: MIT */
/* Lowering of branches, calls, returns, exits and traps. */
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

/* Device library functions that the engine provides: the handler reads its arguments from the caller's area. */
static const char *const builtins[] = {"vprintf", "malloc", "free", "__assertfail", "cudaGraphSetConditional"};

static bool is_builtin(const char *name)
{
	for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
		if (!strcmp(builtins[k], name))
			return true;
	return false;
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

static u32 arg_offset(struct lower *lo, const struct opnd *o, u32 *bytes)
{
	if (o->kind != O_SYM || o->sym->kind != SYM_VAR || o->sym->space != SP_PARAM || is_kernel_param(lo, o->sym))
		lower_unsupported(lo, "arguments must be .param variables of this function");
	*bytes = (u32)o->sym->size;
	return (u32)o->sym->addr;
}

static void lower_builtin(struct lower *lo, const char *name, const struct opnd *rets, const struct opnd *args)
{
	u32 first = list_begin(lo), bytes, n = 0;
	struct ins *i;

	/* The list is result's offset (or −1), then the arguments' offsets: none of them a register. */
	list_add(lo, rets && list_of(rets, 0) ? (s32)arg_offset(lo, list_of(rets, 0), &bytes) : -1);
	for (; args && list_of(args, n); n++)
		list_add(lo, (s32)arg_offset(lo, list_of(args, n), &bytes));
	i = emit_op(lo, "call:%s", name);
	i->target = first;
	i->sub = (u8)n;
	if ((!strcmp(name, "vprintf") && n != 2) || (!strcmp(name, "malloc") && n != 1) || (!strcmp(name, "free") && n != 1) ||
	    (!strcmp(name, "__assertfail") && n != 5) || (!strcmp(name, "cudaGraphSetConditional") && n != 2))
		lower_unsupported(lo, "a device library function with other arguments");
}

/* Pairs the call's argument variables with @target's parameters, which lie at the start of the callee's area. */
static void bind(struct lower *lo, struct call_site *c, const struct func_ast *target, const struct opnd *rets,
		 const struct opnd *args)
{
	struct sym *v = target->params;
	u32 at = 0;

	c->args = load_alloc(lo->ld, 2 * 128 * sizeof(*c->args));
	c->rets = c->args + 128;
	for (u32 k = 0; args && list_of(args, k); k++, v = v->next) {
		u32 bytes;

		if (!v || k == 128)
			lower_unsupported(lo, "the call passes more arguments than the function has");
		c->args[k].from = arg_offset(lo, list_of(args, k), &bytes);
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
		c->rets[k].to = arg_offset(lo, list_of(rets, k), &bytes);
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
	s32 addr = 0;

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
			if (!is_builtin(t->name))
				load_fail(lo->ld, PTX_UNSUPPORTED, lo->p->line, "call of '%s', which has no body here", t->name);
			lower_builtin(lo, t->name, rets, args);
			return;
		}
		if (t->is_entry)
			lower_unsupported(lo, "a call of a kernel");
		c.callee = t->out;
		bind(lo, &c, t, rets, args);
	} else {
		addr = src(lo, callee, 'd');
		if (proto && proto->kind == O_SYM && proto->sym->kind == SYM_PROTO)
			bind(lo, &c, proto->sym->func, rets, args);
		else
			lower_unsupported(lo, "an indirect call without a .callprototype");
		lo->f->indirect = true;
	}
	lo->calls = load_grow(lo->ld, lo->calls, lo->ncalls, &lo->ccalls, sizeof(*lo->calls));
	lo->calls[lo->ncalls] = c;
	i = emit(lo, NULL, K_CALL);
	i->imm = lo->ncalls++;
	if (!c.callee)
		set_use(lo, i, 0, addr);
}

void lower_ret(struct lower *lo)
{
	static const char *const hints[] = {"uni", NULL};

	mods_ignore(lo, hints);
	mods_done(lo);
	emit(lo, NULL, lo->ast->is_entry ? K_EXIT : K_RET);
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

void lower_nop(struct lower *lo)
{
	/* Hints about scheduling and registers: nothing here depends on them. */
	(void)lo;
}

void lower_nanosleep(struct lower *lo)
{
	if (mod_type(lo, 0) != TY_U32)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 1, 1);
	emit(lo, NULL, K_YIELD);
}
