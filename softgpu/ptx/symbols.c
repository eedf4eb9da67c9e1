/* SPDX-License-Identifier: MIT */
/* Scoped symbols: a hash of names with an undo stack, and labels that may be used before they are defined. */
#include <string.h>

#include "softgpu/ptx/ast.h"

static u32 name_hash(const char *s, u32 len)
{
	u32 h = 2166136261u;

	for (u32 i = 0; i < len; i++)
		h = (h ^ (u8)s[i]) * 16777619u;
	return h;
}

static struct sym *find(struct load *ld, const char *name, u32 len, u32 hash)
{
	for (struct sym *s = ld->bucket[hash % SYM_BUCKETS]; s; s = s->chain)
		if (s->hash == hash && s->len == len && !memcmp(s->name, name, len))
			return s;
	return NULL;
}

struct sym *sym_find(struct load *ld, const char *name, u32 len)
{
	return find(ld, name, len, name_hash(name, len));
}

/* A register by name: "%r12" is register 12 of "%r<n>" unless it was declared by itself. */
struct sym *sym_find_reg(struct load *ld, const char *name, u32 len, u32 *reg)
{
	struct sym *s = sym_find(ld, name, len);
	u32 n = len, index = 0, scale = 1;

	if (s) {
		*reg = s->reg;
		return s->kind == SYM_REG && !s->nregs ? s : NULL;
	}
	while (n && name[n - 1] >= '0' && name[n - 1] <= '9' && len - n < 9) {
		index += scale * (u32)(name[n - 1] - '0');
		scale *= 10;
		n--;
		s = sym_find(ld, name, n);
		if (s && s->kind == SYM_REG && index < s->nregs) {
			*reg = s->reg + index * s->lanes;
			return s;
		}
	}
	return NULL;
}

struct sym *sym_add(struct load *ld, enum sym_kind kind, const char *name, u32 len)
{
	struct sym *s = load_alloc(ld, sizeof(*s));
	struct sym **b;

	s->kind = kind;
	s->name = name;
	s->len = len;
	s->hash = name_hash(name, len);
	s->scope = ld->scope;
	s->line = ld->t.line;
	b = &ld->bucket[s->hash % SYM_BUCKETS];
	s->chain = *b;
	*b = s;
	ld->stack = load_grow(ld, ld->stack, ld->nstack, &ld->cstack, sizeof(*ld->stack));
	ld->stack[ld->nstack++] = s;
	return s;
}

/* Registers of the current function: @n of @lanes elements each, or a single one by that name when @n is 0. */
struct sym *sym_add_regs(struct load *ld, const char *name, u32 len, enum type type, u64 n, u32 lanes)
{
	struct sym *s = sym_add(ld, SYM_REG, name, len);
	u64 total = (n ? n : 1) * lanes;
	struct func_ast *f = ld->cur;

	if (n > 1u << 20 || f->nregs + total > 1u << 21)
		load_fail(ld, PTX_UNSUPPORTED, s->line, "too many registers");
	s->nregs = (u32)n;
	s->reg = f->nregs;
	s->type = type;
	s->lanes = (u8)lanes;
	while (f->nregs + total > f->cregs)
		f->regs = load_grow(ld, f->regs, f->cregs, &f->cregs, 1);
	memset(f->regs + f->nregs, type, total);
	f->nregs += (u32)total;
	return s;
}

/* The label of that name visible from here, made undefined in this scope when there is none yet. */
struct sym *sym_label(struct load *ld, const char *name, u32 len, u32 line)
{
	struct sym *s = sym_find(ld, name, len);

	if (!s || s->scope == 0) {
		s = sym_add(ld, SYM_LABEL, name, len);
		s->line = line;
	}
	if (s->kind != SYM_LABEL && s->kind != SYM_TARGETS)
		load_fail(ld, PTX_SYNTAX, line, "'%.*s' is not a label", (int)len, name);
	return s;
}

void scope_enter(struct load *ld)
{
	ld->scope++;
}

/* Forgets the scope's names; labels not defined in it are looked for in the outer scope. */
void scope_leave(struct load *ld)
{
	u32 scope = ld->scope--;
	u32 n = ld->nstack;

	while (n && ld->stack[n - 1]->scope == scope)
		n--;
	for (u32 i = ld->nstack; i-- > n;) {
		struct sym *s = ld->stack[i];
		struct sym **b = &ld->bucket[s->hash % SYM_BUCKETS];

		*b = s->chain;
	}
	u32 end = ld->nstack;

	ld->nstack = n;
	for (u32 i = n; i < end; i++) {
		struct sym *s = ld->stack[i];

		if (s->kind != SYM_LABEL || s->defined)
			continue;
		if (scope == 1)
			load_fail(ld, PTX_SYNTAX, s->line, "label '%.*s' is not defined", (int)s->len, s->name);

		struct sym *outer = find(ld, s->name, s->len, s->hash);

		if (outer && outer->scope) {
			if (outer->kind != SYM_LABEL)
				load_fail(ld, PTX_SYNTAX, s->line, "'%.*s' is not a label", (int)s->len, s->name);
			s->fwd = outer;
			continue;
		}
		struct sym **b = &ld->bucket[s->hash % SYM_BUCKETS];

		s->scope = scope - 1;
		s->chain = *b;
		*b = s;
		ld->stack[ld->nstack++] = s; /* the stack only shrinks here: nstack ≤ i */
	}
}
