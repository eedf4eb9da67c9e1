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

static void lower_atomic(struct lower *lo, bool result)
{
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	const char *op = op_name(lo), *type;
	enum type t = mod_type(lo, 0);
	enum rclass c = type_class(t);
	u32 first = result ? 1 : 0;
	bool cas = !strcmp(op, "cas");
	struct address a;
	struct ins *i;
	s32 b, v = 0, d;

	mod(lo, "noftz");
	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, first + (cas ? 3 : 2), first + 4);
	if (c == RC_COUNT || c == RC_PRED)
		lower_unsupported(lo, NULL);
	if (sp == SP_LOCAL || sp == SP_CONST || sp == SP_PARAM)
		lower_unsupported(lo, "an atomic operation on this state space");
	a = lower_address(lo, &o[first], sp);
	b = src(lo, &o[first + 1], class_char(c));
	if (cas)
		v = src(lo, &o[first + 2], class_char(c));
	d = result ? dst(lo, &o[0], class_char(c)) : temp(lo, c);
	/* Bitwise forms and exchanges do not look at the type. */
	type = type_size(t) == 8 ? "b64" : type_size(t) == 4 ? "b32" : "b16";
	if (!strcmp(op, "add") || !strcmp(op, "min") || !strcmp(op, "max")) {
		static const struct {
			enum type t;
			const char *name;
		} typed[] = {{TY_U32, "u32"}, {TY_S32, "s32"}, {TY_U64, "u64"},	    {TY_S64, "s64"},   {TY_F32, "f32"},
			     {TY_F64, "f64"}, {TY_F16, "f16"}, {TY_F16X2, "f16x2"}, {TY_BF16, "bf16"}, {TY_BF16X2, "bf16x2"}};

		type = "";
		for (size_t k = 0; k < sizeof(typed) / sizeof(typed[0]); k++)
			if (typed[k].t == t)
				type = typed[k].name;
	}
	i = emit_op(lo, "atom:%s:%s", op, type);
	i->sub = (u8)a.space;
	i->size = a.wide ? 8 : 4;
	i->imm = a.off;
	set_use(lo, i, 1, b);
	if (cas)
		set_use(lo, i, 2, v);
	set_use(lo, i, 4, a.reg);
	set_def(lo, i, 0, d);
}

void lower_atom(struct lower *lo)
{
	lower_atomic(lo, true);
}

void lower_red(struct lower *lo)
{
	lower_atomic(lo, false);
}
