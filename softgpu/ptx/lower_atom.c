/* SPDX-License-Identifier: MIT */
/* Lowering of atom and red. */
#include <string.h>

#include "softgpu/ptx/lower.h"

static const char *const hints[] = {"relaxed", "acquire", "release", "acq_rel",		  "cta",
				    "cluster", "gpu",	  "sys",     "level::cache_hint", NULL};

static const char *op_name(struct lower *lo)
{
	static const char *const ops[] = {"add", "exch", "cas", "min", "max", "inc", "dec", "and", "or", "xor", NULL};

	for (u32 k = 0; ops[k]; k++)
		if (mod(lo, ops[k]))
			return ops[k];
	lower_unsupported(lo, NULL);
}

/* The handler's suffix: bitwise forms and exchanges do not look at the type. */
static const char *type_name(const char *op, enum type t)
{
	static const struct {
		enum type t;
		const char *name;
	} typed[] = {{TY_U32, "u32"}, {TY_S32, "s32"}, {TY_U64, "u64"},	    {TY_S64, "s64"},   {TY_F32, "f32"},
		     {TY_F64, "f64"}, {TY_F16, "f16"}, {TY_F16X2, "f16x2"}, {TY_BF16, "bf16"}, {TY_BF16X2, "bf16x2"}};

	if (strcmp(op, "add") && strcmp(op, "min") && strcmp(op, "max"))
		return type_size(t) == 8 ? "b64" : type_size(t) == 4 ? "b32" : "b16";
	for (size_t k = 0; k < sizeof(typed) / sizeof(typed[0]); k++)
		if (typed[k].t == t)
			return typed[k].name;
	return "";
}

struct atomic {
	const char *op, *type;
	struct address a;
};

static struct ins *emit_atomic(struct lower *lo, const struct atomic *x, u32 offset, s32 d, s32 b)
{
	struct ins *i = emit_op(lo, "atom:%s:%s", x->op, x->type);

	i->sub = (u8)x->a.space;
	i->size = x->a.wide ? 8 : 4;
	i->imm = x->a.off + offset;
	set_use(lo, i, 1, b);
	set_use(lo, i, 4, x->a.reg);
	set_def(lo, i, 0, d);
	return i;
}

/* atom.v4.f32.add {d…}, [a], {b…}: each element is an atomic operation of its own, as the ISA has it. */
static void vector(struct lower *lo, struct atomic *x, enum type t, u32 n, const struct opnd *d, const struct opnd *b)
{
	enum rclass c = type_class(t);
	u32 size = type_size(t);
	s32 value[8], result[8], base;
	struct ins *i;

	if ((t != TY_F32 && t != TY_F16 && t != TY_BF16 && t != TY_F16X2 && t != TY_BF16X2) || n * size > 16 ||
	    (d && (d->kind != O_VEC || d->nlist != n)) || b->kind != O_VEC || b->nlist != n || x->a.space == SP_SHARED)
		lower_unsupported(lo, "a vector of this shape");
	for (u32 k = 0; k < n; k++)
		value[k] = src(lo, &b->list[k], class_char(c));
	/* Results go to temporaries first: they may be registers of the address or of later operands. */
	for (u32 k = 0; k < n; k++)
		result[k] = temp(lo, c);
	base = x->a.reg;
	i = emit_op(lo, "aligned:%c", x->a.wide ? 'd' : 'w');
	i->imm = x->a.off;
	i->size = (u8)(n * size);
	set_use(lo, i, 4, base);
	for (u32 k = 0; k < n; k++)
		emit_atomic(lo, x, k * size, result[k], value[k]);
	for (u32 k = 0; d && k < n; k++)
		if (d->list[k].kind != O_SINK)
			emit_mov(lo, dst(lo, &d->list[k], class_char(c)), result[k]);
}

static void atomic128(struct lower *lo, const struct atomic *x, bool cas, const struct opnd *o)
{
	s32 b = half128(lo, &o[2], false), d = half128(lo, &o[0], true), v = cas ? half128(lo, &o[3], false) : 0;
	struct ins *i = emit_op(lo, "atom:%s:b128", x->op);

	i->sub = (u8)x->a.space;
	i->size = x->a.wide ? 8 : 4;
	i->imm = x->a.off;
	set_def(lo, i, 0, d);
	set_def(lo, i, 1, d + 1);
	set_use(lo, i, 2, b);
	set_use(lo, i, 3, b + 1);
	set_use(lo, i, 4, x->a.reg);
	if (cas) {
		set_use(lo, i, 5, v);
		set_use(lo, i, 6, v + 1);
	}
}

static void lower_atomic(struct lower *lo, bool result)
{
	u32 n = mod(lo, "v2") ? 2 : mod(lo, "v4") ? 4 : mod(lo, "v8") ? 8 : 1;
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	struct atomic x = {.op = op_name(lo)};
	enum type t = mod_type(lo, 0);
	enum rclass c = type_class(t);
	u32 first = result ? 1 : 0;
	bool cas = !strcmp(x.op, "cas");
	struct ins *i;
	s32 b, v = 0;

	mod(lo, "noftz");
	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, first + (cas ? 3 : 2), first + 4);
	if (c == RC_PRED)
		lower_unsupported(lo, NULL);
	if (sp == SP_LOCAL || sp == SP_CONST || sp == SP_PARAM)
		lower_unsupported(lo, "an atomic operation on this state space");
	x.a = lower_address(lo, &o[first], sp);
	x.type = type_name(x.op, t);
	if (n > 1) {
		vector(lo, &x, t, n, result ? o : NULL, &o[first + 1]);
		return;
	}
	if (c == RC_COUNT) {
		if (!result)
			lower_unsupported(lo, NULL);
		atomic128(lo, &x, cas, o);
		return;
	}
	b = src(lo, &o[first + 1], class_char(c));
	if (cas)
		v = src(lo, &o[first + 2], class_char(c));
	i = emit_atomic(lo, &x, 0, result ? dst(lo, &o[0], class_char(c)) : temp(lo, c), b);
	if (cas)
		set_use(lo, i, 2, v);
}

void lower_atom(struct lower *lo)
{
	lower_atomic(lo, true);
}

void lower_red(struct lower *lo)
{
	lower_atomic(lo, false);
}
