/* SPDX-License-Identifier: MIT */
/* The module level of the PTX grammar: directives, variables with initialisers, function headers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/ast.h"

void load_fail(struct load *ld, enum ptx_status st, u32 line, const char *fmt, ...)
{
	va_list ap;
	int n = 0;

	ld->status = st;
	if (ld->log_size) {
		if (ld->where)
			n = snprintf(ld->log, ld->log_size, "%.300s: ", ld->where);
		if (line && n >= 0 && (size_t)n < ld->log_size)
			n += snprintf(ld->log + n, ld->log_size - (size_t)n, "line %u: ", line);
		va_start(ap, fmt);
		if (n >= 0 && (size_t)n < ld->log_size)
			vsnprintf(ld->log + n, ld->log_size - (size_t)n, fmt, ap);
		va_end(ap);
	}
	longjmp(*ld->fail, 1);
}

void *load_alloc(struct load *ld, size_t bytes)
{
	void *p = bump_alloc(&ld->mem, bytes ? bytes : 1);

	if (!p)
		load_fail(ld, PTX_NOMEM, 0, "out of host memory while loading PTX");
	return p;
}

char *load_strndup(struct load *ld, const char *s, size_t len)
{
	char *p = load_alloc(ld, len + 1);

	memcpy(p, s, len);
	return p;
}

void *load_grow(struct load *ld, void *p, u32 n, u32 *cap, size_t elem)
{
	void *q;

	if (n < *cap)
		return p;
	*cap = *cap ? *cap * 2 : 32;
	q = load_alloc(ld, *cap * elem);
	if (n)
		memcpy(q, p, n * elem);
	return q;
}

void nest(struct load *ld)
{
	if (++ld->depth > 64)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "nested too deeply");
}

void next(struct load *ld)
{
	lex_next(&ld->lx, &ld->t);
	if (ld->t.kind == T_BAD) {
		if (ld->t.len)
			load_fail(ld, PTX_SYNTAX, ld->t.line, "unexpected '%.*s'", (int)(ld->t.len > 40 ? 40 : ld->t.len),
				  ld->t.s);
		load_fail(ld, PTX_SYNTAX, ld->t.line, "comment or string without an end");
	}
}

static __attribute__((noreturn)) void unexpected(struct load *ld, const char *want)
{
	if (ld->t.kind == T_EOF)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "the text ends where %s was expected", want);
	load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' where %s was expected", (int)(ld->t.len > 60 ? 60 : ld->t.len), ld->t.s,
		  want);
}

bool is_punct(struct load *ld, char c)
{
	return ld->t.kind == T_PUNCT && ld->t.punct == c;
}

bool accept(struct load *ld, char c)
{
	if (!is_punct(ld, c))
		return false;
	next(ld);
	return true;
}

void expect(struct load *ld, char c)
{
	char want[4] = {'\'', c, '\'', 0};

	if (!accept(ld, c))
		unexpected(ld, want);
}

bool is_word(struct load *ld, const char *w)
{
	return ld->t.kind == T_WORD && ld->t.len == strlen(w) && !memcmp(ld->t.s, w, ld->t.len);
}

bool accept_word(struct load *ld, const char *w)
{
	if (!is_word(ld, w))
		return false;
	next(ld);
	return true;
}

/* An integer constant, possibly negative. */
u64 parse_u64(struct load *ld)
{
	bool neg = accept(ld, '-');
	u64 v = ld->t.val;

	if (ld->t.kind != T_INT)
		unexpected(ld, "an integer");
	next(ld);
	return neg ? -v : v;
}

static void put_scalar(struct sym *v, u64 offset, u64 val)
{
	memcpy(v->init + offset, &val, type_size(v->type));
}

static u64 init_float(struct load *ld, const struct sym *v, bool neg)
{
	u64 bits = ld->t.val;
	double d;
	float f;

	if (ld->t.fbits == 32) {
		u32 b = (u32)bits;

		memcpy(&f, &b, 4);
		d = (double)f;
	} else {
		memcpy(&d, &bits, 8);
	}
	if (neg)
		d = -d;
	if (v->type == TY_F32) {
		u32 b;

		f = (float)d;
		memcpy(&b, &f, 4);
		/* The bits as they are written: a signalling NaN's payload must not pass through the FPU. */
		return ld->t.fbits == 32 && !neg ? bits : b;
	}
	if (v->type == TY_F64) {
		if (ld->t.fbits == 64 && !neg)
			return bits;
		memcpy(&bits, &d, 8);
	}
	return bits;
}

/* name, name+off, generic(name), mask(name) */
static void init_reloc(struct load *ld, struct sym *v, u64 offset, u64 mask)
{
	struct init_reloc *r = load_alloc(ld, sizeof(*r));
	bool paren = false;

	r->line = ld->t.line;
	r->mask = mask;
	if (is_word(ld, "generic")) {
		next(ld);
		expect(ld, '(');
		paren = true;
	}
	if (ld->t.kind != T_WORD)
		unexpected(ld, "a symbol");
	r->sym = sym_find(ld, ld->t.s, ld->t.len);
	if (!r->sym || (r->sym->kind != SYM_VAR && r->sym->kind != SYM_FUNC))
		load_fail(ld, PTX_SYNTAX, r->line, "initialiser names '%.*s', which is not declared", (int)ld->t.len, ld->t.s);
	next(ld);
	if (paren)
		expect(ld, ')');
	if (accept(ld, '+'))
		r->add = parse_u64(ld);
	else if (is_punct(ld, '-'))
		r->add = parse_u64(ld);
	r->offset = (u32)offset;
	r->size = type_size(v->type);
	r->next = v->relocs;
	v->relocs = r;
}

static void init_values(struct load *ld, struct sym *v, u64 *at)
{
	u32 size = type_size(v->type);

	if (accept(ld, '{')) {
		nest(ld);
		while (!is_punct(ld, '}')) {
			init_values(ld, v, at);
			if (!accept(ld, ','))
				break;
		}
		expect(ld, '}');
		ld->depth--;
		return;
	}
	if (*at + size > v->size)
		load_fail(ld, PTX_SYNTAX, ld->t.line, "'%.*s' has more initialisers than elements", (int)v->len, v->name);

	bool neg = accept(ld, '-');

	if (ld->t.kind == T_FLOAT) {
		put_scalar(v, *at, init_float(ld, v, neg));
		next(ld);
	} else if (ld->t.kind == T_INT) {
		u64 val = ld->t.val;

		next(ld);
		if (accept(ld, '(')) {
			init_reloc(ld, v, *at, val);
			expect(ld, ')');
		} else if (v->type == TY_F32 || v->type == TY_F64) {
			double d = neg ? -(double)val : (double)val;
			float f = (float)d;

			memcpy(v->init + *at, v->type == TY_F32 ? (void *)&f : (void *)&d, size);
		} else {
			put_scalar(v, *at, neg ? -val : val);
		}
	} else if (ld->t.kind == T_WORD && !neg) {
		init_reloc(ld, v, *at, 0);
	} else {
		unexpected(ld, "an initialiser");
	}
	*at += size;
}

/* How many values the initialiser in braces that begins here has: one more than its commas. */
static u64 count_values(const struct load *ld)
{
	struct lexer lx = ld->lx;
	struct token t = ld->t;
	u32 braces = 0, parens = 0;
	bool comma = true;
	u64 n = 1;

	do {
		char c = t.kind == T_PUNCT ? t.punct : 0;

		braces += c == '{';
		braces -= c == '}';
		parens += c == '(';
		parens -= c == ')';
		if (c == '}' && comma)
			n--;
		comma = c == ',' && !parens;
		n += comma;
		lex_next(&lx, &t);
	} while (braces && t.kind != T_EOF && t.kind != T_BAD);
	return n;
}

/*
 * A variable after its state space: attributes, type, name, array dimensions, initialiser; and the list "a, b".
 * In a parameter list (@param_list) the caller deals with commas and the result is not entered by text order.
 */
struct sym *parse_var(struct load *ld, enum space space, bool param_list)
{
	u32 align = 0, lanes = 1;
	enum type type = TY_NONE;
	struct sym *v = NULL;
	bool managed = false;

	while (ld->t.kind == T_WORD && ld->t.s[0] == '.') {
		if (accept_word(ld, ".align")) {
			align = (u32)parse_u64(ld);
			if (!align || align > 4096 || (align & (align - 1)))
				load_fail(ld, PTX_SYNTAX, ld->t.line, "alignment %u is no power of two up to 4096", align);
		} else if (accept_word(ld, ".attribute")) {
			expect(ld, '(');
			while (!is_punct(ld, ')') && ld->t.kind != T_EOF) {
				managed = managed || is_word(ld, ".managed");
				next(ld);
			}
			expect(ld, ')');
		} else if (accept_word(ld, ".ptr")) {
			/* .ptr{.space}{.align n}: a hint on kernel pointers */
			if (is_word(ld, ".global") || is_word(ld, ".shared") || is_word(ld, ".const") || is_word(ld, ".local"))
				next(ld);
			if (accept_word(ld, ".align"))
				parse_u64(ld);
		} else if (accept_word(ld, ".v2")) {
			lanes = 2;
		} else if (accept_word(ld, ".v4")) {
			lanes = 4;
		} else if (is_word(ld, ".texref") || is_word(ld, ".samplerref") || is_word(ld, ".surfref")) {
			load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "%.*s variables are not supported", (int)ld->t.len, ld->t.s);
		} else {
			type = type_by_name(ld->t.s + 1, ld->t.len - 1);
			if (!type_size(type))
				unexpected(ld, "a type");
			next(ld);
		}
	}
	if (!type_size(type))
		unexpected(ld, "a type");
	do {
		u64 elems = lanes;

		if (ld->t.kind != T_WORD)
			unexpected(ld, "a name");
		v = sym_add(ld, SYM_VAR, ld->t.s, ld->t.len);
		v->type = type;
		v->space = space;
		v->managed = managed;
		v->align = align ? align : type_size(type) * lanes;
		next(ld);
		if (accept(ld, '<')) { /* name<n>: n variables; only registers are written so in practice */
			load_fail(ld, PTX_UNSUPPORTED, v->line, "parameterised variable names are for registers only");
		}
		while (accept(ld, '[')) {
			if (is_punct(ld, ']')) {
				v->unsized = true;
				elems = 0;
			} else {
				u64 n = parse_u64(ld);

				if (__builtin_mul_overflow(elems, n, &elems) || elems > (1ull << 40))
					load_fail(ld, PTX_SYNTAX, v->line, "'%.*s' is too large", (int)v->len, v->name);
			}
			expect(ld, ']');
		}
		v->size = elems * type_size(type);
		if (!param_list && accept(ld, '=')) {
			u64 at = 0;

			if (space != SP_GLOBAL && space != SP_CONST)
				load_fail(ld, PTX_SYNTAX, v->line, "only .global and .const variables have initialisers");
			if (v->unsized && is_punct(ld, '{')) {
				v->size = count_values(ld) * type_size(type);
				v->unsized = false;
			}
			if (v->unsized || v->size > (1u << 30))
				load_fail(ld, PTX_UNSUPPORTED, v->line, "initialiser of an array without or with a huge size");
			v->init = load_alloc(ld, v->size);
			init_values(ld, v, &at);
		}
	} while (!param_list && accept(ld, ','));
	return v;
}

static void skip_braces(struct load *ld)
{
	u32 depth = 0;

	do {
		depth += is_punct(ld, '{');
		depth -= is_punct(ld, '}');
		if (ld->t.kind == T_EOF)
			unexpected(ld, "'}'");
		next(ld);
	} while (depth);
}

static void parse_version(struct load *ld)
{
	u32 part[2] = {0, 0}, n = 0;

	/* The lexer takes 9.0 for a float; its text is what counts. */
	for (u32 i = 0; i < ld->t.len; i++) {
		char c = ld->t.s[i];

		if (c == '.' && !n)
			n++;
		else if (c >= '0' && c <= '9' && part[n] < 1000)
			part[n] = part[n] * 10 + (u32)(c - '0');
		else
			unexpected(ld, "a version like 9.0");
	}
	if (!n || !part[0])
		unexpected(ld, "a version like 9.0");
	/* Minor versions only add: what they add is refused where it is met. */
	if (part[0] > 9)
		load_fail(ld, PTX_VERSION, ld->t.line, "PTX %u.%u: 9 is the newest known", part[0], part[1]);
	ld->version = part[0] * 10 + part[1];
	next(ld);
}

static void parse_target(struct load *ld)
{
	do {
		if (ld->t.kind != T_WORD)
			unexpected(ld, "a target like sm_75");
		if (ld->t.len > 3 && !memcmp(ld->t.s, "sm_", 3)) {
			ld->target = 0;
			for (u32 i = 3; i < ld->t.len && ld->t.s[i] >= '0' && ld->t.s[i] <= '9'; i++)
				ld->target = ld->target * 10 + (u32)(ld->t.s[i] - '0');
		} else if (is_word(ld, "texmode_unified") || is_word(ld, "texmode_independent") || is_word(ld, "debug")) {
			/* no meaning here: texture forms are refused one by one */
		} else {
			load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "target '%.*s' is not supported", (int)ld->t.len, ld->t.s);
		}
		next(ld);
	} while (accept(ld, ','));
}

static void module_var(struct load *ld, enum space space, bool is_extern, bool weak)
{
	u32 first = ld->nstack;

	parse_var(ld, space, false);
	expect(ld, ';');
	for (u32 i = first; i < ld->nstack; i++) {
		struct sym *v = ld->stack[i];

		v->is_extern = is_extern;
		v->is_weak = weak;
		*ld->vars_tail = v;
		ld->vars_tail = &v->next;
	}
}

static struct sym *alias_name(struct load *ld)
{
	struct sym *s = ld->t.kind == T_WORD ? sym_find(ld, ld->t.s, ld->t.len) : NULL;

	if (!s || s->kind != SYM_FUNC)
		unexpected(ld, "a declared function");
	next(ld);
	return s;
}

/* .alias a, b: the declared function a is the function b */
static void parse_alias(struct load *ld)
{
	u32 line = ld->t.line;
	struct sym *a = alias_name(ld), *b;

	expect(ld, ',');
	b = alias_name(ld);
	expect(ld, ';');
	if (a->func->has_body || !b->func->has_body)
		load_fail(ld, PTX_SYNTAX, line, "an alias stands for a function with a body and has none itself");
	a->func = b->func;
}

void parse_module(struct load *ld)
{
	bool is_extern = false, weak = false;

	next(ld);
	if (!is_word(ld, ".version"))
		load_fail(ld, PTX_SYNTAX, ld->t.line, "this is not PTX: it does not begin with .version");
	while (ld->t.kind != T_EOF) {
		bool ext = is_extern, wk = weak;

		is_extern = weak = false;
		if (is_word(ld, ".version")) {
			next(ld);
			parse_version(ld);
		} else if (accept_word(ld, ".target")) {
			parse_target(ld);
		} else if (accept_word(ld, ".address_size")) {
			if (parse_u64(ld) != 64)
				load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "only .address_size 64 is supported");
		} else if (is_word(ld, ".file") || is_word(ld, ".loc")) {
			lex_skip_line(&ld->lx);
			next(ld);
		} else if (accept_word(ld, ".section")) {
			while (!is_punct(ld, '{') && ld->t.kind != T_EOF)
				next(ld);
			skip_braces(ld);
		} else if (is_word(ld, ".pragma")) {
			while (!is_punct(ld, ';') && ld->t.kind != T_EOF)
				next(ld);
			expect(ld, ';');
		} else if (accept_word(ld, ".extern")) {
			is_extern = true;
		} else if (accept_word(ld, ".weak") || accept_word(ld, ".common")) {
			is_extern = ext;
			weak = true;
		} else if (accept_word(ld, ".visible")) {
			is_extern = ext;
			weak = wk;
		} else if (accept_word(ld, ".entry")) {
			parse_func(ld, true, ext, wk);
		} else if (accept_word(ld, ".func")) {
			parse_func(ld, false, ext, wk);
		} else if (accept_word(ld, ".global")) {
			module_var(ld, SP_GLOBAL, ext, wk);
		} else if (accept_word(ld, ".const")) {
			module_var(ld, SP_CONST, ext, wk);
		} else if (accept_word(ld, ".shared")) {
			module_var(ld, SP_SHARED, ext, wk);
		} else if (accept_word(ld, ".alias")) {
			parse_alias(ld);
		} else if (accept(ld, ';')) {
			/* empty */
		} else if (ld->t.kind == T_WORD && ld->t.s[0] == '.') {
			load_fail(ld, PTX_UNSUPPORTED, ld->t.line, "directive '%.*s' is not supported", (int)ld->t.len, ld->t.s);
		} else {
			unexpected(ld, "a directive");
		}
	}
	if (is_extern || weak)
		unexpected(ld, "a declaration");
}
