/* SPDX-License-Identifier: MIT */
/* Function headers: parameters, return values, launch bounds, call prototypes. */
#include <string.h>

#include "softgpu/ptx/ast.h"

/* As the hardware has it since compute capability 7.0. */
#define KERNEL_PARAMS_MAX 32764u

/* A parameter declared .reg is passed as any other; the function's body has it in a register. */
static struct sym *reg_param(struct load *ld, bool declare)
{
	struct sym *v = load_alloc(ld, sizeof(*v));
	enum type type = ld->t.len > 1 ? type_by_name(ld->t.s + 1, ld->t.len - 1) : TY_NONE;

	if (ld->t.kind != T_WORD || !type_size(type) || type_size(type) > 8)
		load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "a register parameter of type '%.*s'", (int)ld->t.len, ld->t.s);
	next(ld);
	if (ld->t.kind != T_WORD)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "parameter name expected");
	*v = (struct sym){.kind = SYM_VAR,
			  .name = ld->t.s,
			  .len = ld->t.len,
			  .space = SP_PARAM,
			  .type = (u8)type,
			  .in_reg = true,
			  .line = ld->t.line,
			  .size = type_size(type),
			  .align = type_size(type)};
	if (declare)
		v->reg = sym_add_regs(ld, ld->t.s, ld->t.len, type, 0, 1)->reg;
	next(ld);
	return v;
}

/* A parenthesised parameter list; offsets are assigned as a C struct's. Returns the list's bytes. */
static u32 param_list(struct load *ld, struct sym **out, u32 *count, bool declare)
{
	struct sym **tail = out;
	u64 at = 0;

	*count = 0;
	expect(ld, '(');
	while (!is_punct(ld, ')')) {
		struct sym *v;

		if (accept_word(ld, ".reg"))
			v = reg_param(ld, declare);
		else if (accept_word(ld, ".param"))
			v = parse_var(ld, SP_PARAM, true);
		else
			load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' where .param was expected", (int)ld->t.len, ld->t.s);
		if (v->unsized)
			load_fail(ld, PTX_UNSUPPORTED, v->line, "variadic parameter arrays are not supported");
		at = (at + v->align - 1) & ~(u64)(v->align - 1);
		v->addr = at;
		at += v->size;
		if (at > 1u << 20)
			load_fail(ld, PTX_SYNTAX, v->line, "more than 1 MiB of parameters");
		*tail = v;
		tail = &v->next;
		++*count;
		if (!accept(ld, ','))
			break;
	}
	expect(ld, ')');
	*tail = NULL;
	return (u32)at;
}

void parse_proto(struct load *ld, const char *name, u32 len)
{
	struct sym *p = sym_add(ld, SYM_PROTO, name, len);
	struct func_ast *f = load_alloc(ld, sizeof(*f));

	p->func = f;
	scope_enter(ld);
	if (is_punct(ld, '('))
		f->ret_bytes = param_list(ld, &f->rets, &f->nrets, false);
	if (!accept_word(ld, "_"))
		load_fail(ld, PTX_SYNTAX, ld->t.line, "'_' expected in .callprototype");
	if (is_punct(ld, '('))
		f->param_bytes = param_list(ld, &f->params, &f->nparams, false);
	while (!is_punct(ld, ';') && ld->t.kind != T_EOF)
		next(ld); /* .noreturn, .abi_preserve n */
	expect(ld, ';');
	scope_leave(ld);
}

static u32 dims(struct load *ld)
{
	u64 n = 1;

	do
		n *= parse_u64(ld);
	while (n <= 1024 && accept(ld, ','));
	if (!n || n > 1024)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "a block has 1 to 1024 threads");
	return (u32)n;
}

static void cluster_dims(struct load *ld, u32 dim[3])
{
	u64 n = 1;

	dim[0] = dim[1] = dim[2] = 1;
	for (u32 d = 0; d < 3 && (!d || accept(ld, ',')); d++) {
		u64 v = parse_u64(ld);

		n = v > 65535 ? 0 : n * v;
		dim[d] = (u32)v;
	}
	if (!n || n > 65535)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "this is not a cluster's shape");
}

static void func_directives(struct load *ld, struct func_ast *f)
{
	while (ld->t.kind == T_WORD) {
		if (accept_word(ld, ".maxntid") || accept_word(ld, ".reqntid")) {
			f->max_threads = dims(ld);
		} else if (accept_word(ld, ".noreturn")) {
			/* nothing to do */
		} else if (accept_word(ld, ".blocksareclusters")) {
			f->blocks_are_clusters = true;
		} else if (accept_word(ld, ".explicitcluster")) {
			f->explicit_cluster = true;
		} else if (accept_word(ld, ".maxclusterrank")) {
			f->max_cluster = (u32)parse_u64(ld);
		} else if (accept_word(ld, ".maxnreg")) {
			f->max_regs = (u32)parse_u64(ld);
		} else if (accept_word(ld, ".minnctapersm") || accept_word(ld, ".maxnctapersm") ||
			   accept_word(ld, ".abi_preserve") || accept_word(ld, ".abi_preserve_control")) {
			parse_u64(ld);
		} else if (accept_word(ld, ".reqnctapercluster")) {
			cluster_dims(ld, f->cluster);
		} else if (accept_word(ld, ".pragma")) {
			while (!is_punct(ld, ';') && ld->t.kind != T_EOF)
				next(ld);
			expect(ld, ';');
		} else {
			load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "directive '%.*s' is not supported", (int)ld->t.len, ld->t.s);
		}
	}
}

void parse_func(struct load *ld, bool entry, bool is_extern, bool weak)
{
	struct func_ast *f = load_alloc(ld, sizeof(*f));
	struct sym *s;
	const char *name;
	u32 len, line;

	f->max_threads = 1024;
	f->is_entry = entry;
	f->is_extern = is_extern;
	if (accept_word(ld, ".attribute")) {
		expect(ld, '(');
		while (!is_punct(ld, ')') && ld->t.kind != T_EOF)
			next(ld);
		expect(ld, ')');
	}
	scope_enter(ld);
	ld->cur = f;
	if (is_punct(ld, '('))
		f->ret_bytes = param_list(ld, &f->rets, &f->nrets, !entry);
	if (ld->t.kind != T_WORD)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "function name expected");
	name = ld->t.s;
	len = ld->t.len;
	line = ld->t.line;
	next(ld);
	if (is_punct(ld, '('))
		f->param_bytes = param_list(ld, &f->params, &f->nparams, !entry);
	for (struct sym *v = entry ? f->params : NULL; v; v = v->next)
		if (v->in_reg)
			load_fail(ld, PTX_SYNTAX, v->line, "a kernel has its parameters in .param");
	if (entry && f->param_bytes > KERNEL_PARAMS_MAX)
		load_fail(ld, PTX_SYNTAX, line, "%u bytes of parameters, of at most %u", f->param_bytes, KERNEL_PARAMS_MAX);
	func_directives(ld, f);
	f->name = load_strndup(ld, name, len);
	f->line = line;

	/* The symbol lives in module scope: declarations and the definition share it. */
	s = sym_find(ld, name, len);
	if (s && s->scope == 0) {
		if (s->kind != SYM_FUNC)
			load_fail(ld, PTX_SYNTAX, line, "'%s' is declared twice", f->name);
	} else {
		struct sym **b;

		s = load_alloc(ld, sizeof(*s));
		*s = (struct sym){.kind = SYM_FUNC, .name = name, .len = len, .line = line};
		for (u32 h = 2166136261u, i = 0; i <= len; i++) {
			s->hash = h;
			if (i < len)
				h = (h ^ (u8)name[i]) * 16777619u;
		}
		b = &ld->bucket[s->hash % SYM_BUCKETS];
		while (*b && (*b)->scope)
			b = &(*b)->chain;
		s->chain = *b;
		*b = s;
	}
	f->sym = s;
	if (is_punct(ld, '{')) {
		if (s->func && s->func->has_body)
			load_fail(ld, weak ? PTX_UNSUPPORTED : PTX_SYNTAX, line, "'%s' is defined twice", f->name);
		f->has_body = true;
		s->func = f;
		ld->where = f->name;
		parse_body(ld);
		ld->where = NULL;
	} else {
		expect(ld, ';');
		if (!s->func)
			s->func = f;
	}
	*ld->funcs_tail = f;
	ld->funcs_tail = &f->next;
	ld->cur = NULL;
	scope_leave(ld);
}
