/* SPDX-License-Identifier: MIT */
/* Function bodies: declarations, labels, and instructions with their operands. */
#include <string.h>

#include "softgpu/ptx/ast.h"

static void declare_regs(struct load *ld)
{
	u32 lanes = accept_word(ld, ".v2") ? 2 : accept_word(ld, ".v4") ? 4 : 1;
	enum type type;

	if (ld->t.kind != T_WORD || ld->t.len < 2)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "register type expected");
	type = type_by_name(ld->t.s + 1, ld->t.len - 1);
	if (type == TY_NONE || (lanes > 1 && type == TY_PRED))
		load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' is not a register type", (int)ld->t.len, ld->t.s);
	next(ld);
	do {
		struct token name = ld->t;
		u64 n = 0;

		if (name.kind != T_WORD)
			load_fail(ld, PTX_SYNTAX, name.line, "register name expected");
		next(ld);
		if (accept(ld, '<')) {
			n = parse_u64(ld);
			expect(ld, '>');
			if (!n)
				load_fail(ld, PTX_UNSUPPORTED, name.line, "no registers");
		}
		sym_add_regs(ld, name.s, name.len, type, n, lanes);
	} while (accept(ld, ','));
	expect(ld, ';');
}

static void declare_vars(struct load *ld, enum space space)
{
	u32 first = ld->nstack;
	struct func_ast *f = ld->cur;

	parse_var(ld, space, false);
	expect(ld, ';');
	for (u32 i = first; i < ld->nstack; i++) {
		struct sym *v = ld->stack[i];

		if (space == SP_GLOBAL || space == SP_CONST) {
			*ld->vars_tail = v;
			ld->vars_tail = &v->next;
			continue;
		}
		v->next = f->locals;
		f->locals = v;
	}
}

static void parse_operand(struct load *ld, struct opnd *o);

static void parse_list(struct load *ld, struct opnd *o, char close)
{
	struct opnd *list = NULL;
	u32 cap = 0;

	while (!is_punct(ld, close)) {
		list = load_grow(ld, list, o->nlist, &cap, sizeof(*list));
		parse_operand(ld, &list[o->nlist++]);
		if (!accept(ld, ','))
			break;
	}
	expect(ld, close);
	o->list = list;
}

/* [reg], [reg+imm], [sym], [sym+imm], [sym+reg is not PTX], [imm] */
static void parse_mem(struct load *ld, struct opnd *o)
{
	struct opnd base = {0};

	parse_operand(ld, &base);
	o->kind = O_MEM;
	if (base.kind == O_REG && !base.inverted && !base.sel[0]) {
		o->has_base = true;
		o->reg = base.reg;
	} else if (base.kind == O_SYM) {
		o->sym = base.sym;
		o->val = base.val;
	} else if (base.kind == O_INT) {
		o->val = base.val;
	} else {
		load_fail(ld, PTX_SYNTAX, ld->t.line, "this is not an address");
	}
	if (accept(ld, ',')) {
		/* [ref, {coordinates}]: textures, surfaces and tensors; the list is what follows the reference */
		parse_list(ld, o, ']');
		return;
	}
	if (accept(ld, '+'))
		o->val += parse_u64(ld);
	else if (is_punct(ld, '-'))
		o->val += parse_u64(ld);
	expect(ld, ']');
}

/* A bare vector register is the list of its elements; "V.x" is one of them, "%r1.b0" a part of a register. */
static bool parse_reg(struct load *ld, struct opnd *o, const struct token *t)
{
	static const char names[] = "xyzwrgba";
	const char *dot = t->len > 2 ? memrchr(t->s + 1, '.', t->len - 1) : NULL;
	const char *pos;
	struct sym *s;
	u32 reg, n;

	s = sym_find_reg(ld, t->s, t->len, &reg);
	if (s && s->lanes > 1) {
		o->kind = O_VEC;
		o->nlist = s->lanes;
		o->list = load_alloc(ld, s->lanes * sizeof(*o->list));
		for (u32 k = 0; k < s->lanes; k++)
			o->list[k] = (struct opnd){.kind = O_REG, .reg = (s32)(reg + k)};
		return true;
	}
	o->kind = O_REG;
	if (s) {
		o->reg = (s32)reg;
		return true;
	}
	if (!dot)
		return false;
	s = sym_find_reg(ld, t->s, (u32)(dot - t->s), &reg);
	n = t->len - (u32)(dot + 1 - t->s);
	if (!s || !n || n >= sizeof(o->sel))
		return false;
	pos = n == 1 ? strchr(names, dot[1]) : NULL;
	if (s->lanes > 1) {
		if (!pos || (u32)(pos - names) % 4 >= s->lanes)
			return false;
		o->reg = (s32)reg + (pos - names) % 4;
		return true;
	}
	memcpy(o->sel, dot + 1, n);
	o->reg = (s32)reg;
	return true;
}

static void parse_word(struct load *ld, struct opnd *o)
{
	struct token t = ld->t;
	struct sym *s;
	int sr;

	next(ld);
	if (t.len == 1 && t.s[0] == '_') {
		o->kind = O_SINK;
		return;
	}
	if (parse_reg(ld, o, &t))
		return;
	sr = sreg_by_name(t.s, t.len);
	if (sr >= 0) {
		o->kind = O_SREG;
		o->sreg = (u8)sr;
		return;
	}
	if (t.s[0] == '%' && !sym_find(ld, t.s, t.len))
		load_fail(ld, PTX_SYNTAX, t.line, "register '%.*s' is not declared", (int)t.len, t.s);
	s = sym_find(ld, t.s, t.len);
	if (!s)
		s = sym_label(ld, t.s, t.len, t.line);
	o->kind = O_SYM;
	o->sym = s;
	if (s->kind == SYM_VAR) {
		if (!ld->cur->is_entry)
			s->used_in_func = true;
		if (accept(ld, '+'))
			o->val = parse_u64(ld);
		else if (is_punct(ld, '-'))
			o->val = parse_u64(ld);
	}
}

static void parse_operand(struct load *ld, struct opnd *o)
{
	*o = (struct opnd){.reg = -1};
	nest(ld);
	if (accept(ld, '!')) {
		if (ld->t.kind != T_WORD)
			load_fail(ld, PTX_SYNTAX, ld->t.line, "predicate expected after '!'");
		parse_word(ld, o);
		o->inverted = true;
	} else if (accept(ld, '{')) {
		o->kind = O_VEC;
		parse_list(ld, o, '}');
	} else if (accept(ld, '(')) {
		o->kind = O_LIST;
		parse_list(ld, o, ')');
	} else if (accept(ld, '[')) {
		parse_mem(ld, o);
	} else if (is_punct(ld, '-')) {
		next(ld);
		if (ld->t.kind == T_FLOAT) {
			o->kind = O_FLOAT;
			o->fbits = ld->t.fbits;
			o->val = ld->t.val ^ (1ull << (o->fbits - 1));
			next(ld);
		} else if (ld->t.kind == T_WORD) {
			parse_word(ld, o);
			o->negated = true;
		} else {
			o->kind = O_INT;
			o->val = -parse_u64(ld);
		}
	} else if (ld->t.kind == T_INT) {
		o->kind = O_INT;
		o->val = parse_u64(ld);
	} else if (ld->t.kind == T_FLOAT) {
		o->kind = O_FLOAT;
		o->fbits = ld->t.fbits;
		o->val = ld->t.val;
		next(ld);
	} else if (ld->t.kind == T_WORD) {
		parse_word(ld, o);
	} else if (ld->t.kind == T_EOF) {
		load_fail(ld, PTX_SYNTAX, ld->t.line, "the text ends inside an instruction");
	} else {
		load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' where an operand was expected", (int)ld->t.len, ld->t.s);
	}
	if (accept(ld, '|')) {
		o->second = load_alloc(ld, sizeof(*o->second));
		parse_operand(ld, o->second);
	}
	ld->depth--;
}

static void define_label(struct load *ld, const struct token *t)
{
	struct sym *s = sym_find(ld, t->s, t->len);

	if (!s || s->scope != ld->scope) {
		s = sym_add(ld, SYM_LABEL, t->s, t->len);
		s->line = t->line;
	}
	if (s->kind != SYM_LABEL || s->defined)
		load_fail(ld, PTX_SYNTAX, t->line, "label '%.*s' is defined twice", (int)t->len, t->s);
	s->defined = true;
	s->ins = ld->cur->nins;
}

/* name: .branchtargets L1, L2; or .calltargets f, g: the first tells the calls' type, and each call checks its target itself */
static void define_targets(struct load *ld, const struct token *t, bool branches)
{
	struct sym *s = sym_find(ld, t->s, t->len);
	u32 cap = 0;

	/* A brx.idx before its table has made a label of the name. */
	if (!s || s->scope != ld->scope || s->kind != SYM_LABEL || s->defined)
		s = sym_add(ld, SYM_TARGETS, t->s, t->len);
	s->kind = SYM_TARGETS;
	s->defined = true;
	do {
		if (ld->t.kind != T_WORD)
			load_fail(ld, PTX_SYNTAX, ld->t.line, "name expected");
		if (branches) {
			s->targets = load_grow(ld, s->targets, s->ntargets, &cap, sizeof(*s->targets));
			s->targets[s->ntargets++] = sym_label(ld, ld->t.s, ld->t.len, ld->t.line);
		} else if (!s->func) {
			struct sym *f = sym_find(ld, ld->t.s, ld->t.len);

			if (!f || f->kind != SYM_FUNC)
				load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' is not a declared function", (int)ld->t.len,
					  ld->t.s);
			s->func = f->func;
		}
		next(ld);
	} while (accept(ld, ','));
	expect(ld, ';');
}

static void parse_guard(struct load *ld, struct pins *p)
{
	u32 reg;

	p->guard = -1;
	if (!accept(ld, '@'))
		return;
	p->guard_inverted = accept(ld, '!');
	if (ld->t.kind != T_WORD || !sym_find_reg(ld, ld->t.s, ld->t.len, &reg) || ld->cur->regs[reg] != TY_PRED)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' is not a predicate register", (int)ld->t.len, ld->t.s);
	p->guard = (s32)reg;
	next(ld);
}

static void parse_instruction(struct load *ld, struct pins *p)
{
	struct opnd ops[MAX_OPNDS];
	struct func_ast *f = ld->cur;

	while (!is_punct(ld, ';')) {
		if (p->nops == MAX_OPNDS)
			load_fail(ld, PTX_UNSUPPORTED, p->line, "'%.*s' has more than %d operands", (int)p->len, p->op,
				  MAX_OPNDS);
		parse_operand(ld, &ops[p->nops++]);
		if (!accept(ld, ','))
			break;
	}
	expect(ld, ';');
	p->ops = load_alloc(ld, p->nops * sizeof(*ops));
	if (p->nops)
		memcpy(p->ops, ops, p->nops * sizeof(*ops));
	f->ins = load_grow(ld, f->ins, f->nins, &f->cins, sizeof(*f->ins));
	f->ins[f->nins++] = *p;
}

static void parse_statement(struct load *ld)
{
	struct token t = ld->t;
	struct pins p = {0};

	if (t.kind == T_WORD && t.s[0] == '.') {
		if (accept_word(ld, ".reg"))
			declare_regs(ld);
		else if (accept_word(ld, ".local"))
			declare_vars(ld, SP_LOCAL);
		else if (accept_word(ld, ".shared"))
			declare_vars(ld, SP_SHARED);
		else if (accept_word(ld, ".param"))
			declare_vars(ld, SP_PARAM);
		else if (accept_word(ld, ".global"))
			declare_vars(ld, SP_GLOBAL);
		else if (accept_word(ld, ".const"))
			declare_vars(ld, SP_CONST);
		else if (is_word(ld, ".loc") || is_word(ld, ".file")) {
			lex_skip_line(&ld->lx);
			next(ld);
		} else if (accept_word(ld, ".pragma")) {
			while (!is_punct(ld, ';') && ld->t.kind != T_EOF)
				next(ld);
			expect(ld, ';');
		} else {
			load_fail(ld, PTX_UNSUPPORTED, t.line, "directive '%.*s' is not supported", (int)t.len, t.s);
		}
		return;
	}
	p.line = t.line;
	parse_guard(ld, &p);
	t = ld->t;
	if (t.kind != T_WORD)
		load_fail(ld, PTX_SYNTAX, t.line,
			  t.kind == T_EOF ? "the text ends inside a function" : "'%.*s' where an instruction was expected",
			  (int)t.len, t.s);
	next(ld);
	if (p.guard < 0 && accept(ld, ':')) {
		if (accept_word(ld, ".callprototype"))
			parse_proto(ld, t.s, t.len);
		else if (accept_word(ld, ".branchtargets"))
			define_targets(ld, &t, true);
		else if (accept_word(ld, ".calltargets"))
			define_targets(ld, &t, false);
		else
			define_label(ld, &t);
		return;
	}
	p.op = t.s;
	p.len = t.len;
	parse_instruction(ld, &p);
}

void parse_body(struct load *ld)
{
	u32 depth = 0;

	expect(ld, '{');
	for (;;) {
		if (accept(ld, '{')) {
			depth++;
			scope_enter(ld);
		} else if (is_punct(ld, '}')) {
			if (!depth--) {
				ld->cur->line_end = ld->t.line;
				next(ld);
				return;
			}
			scope_leave(ld);
			next(ld);
		} else if (accept(ld, ';')) {
			/* empty */
		} else {
			parse_statement(ld);
		}
	}
}
