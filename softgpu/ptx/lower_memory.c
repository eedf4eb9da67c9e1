/* SPDX-License-Identifier: MIT */
/* Lowering of loads, stores, prefetches and fences. */
#include "softgpu/ptx/lower.h"

/* What changes neither the value nor its visibility here: caches are the host's and coherent. */
static const char *const hints[] = {"ca",
				    "cg",
				    "cs",
				    "lu",
				    "cv",
				    "wb",
				    "wt",
				    "nc",
				    "weak",
				    "volatile",
				    "relaxed",
				    "acquire",
				    "release",
				    "mmio",
				    "cta",
				    "cluster",
				    "gpu",
				    "sys",
				    "level::cache_hint",
				    NULL};

/* The handler's name of a memory type as seen by a register of class @c. */
static const char *mem_type(struct lower *lo, enum type t, enum rclass c)
{
	u32 size = type_size(t);
	bool sign = type_is_signed(t);

	if (c == RC_PRED || size > 8 || (size == 8 && c != RC_64) || (size == 4 && c == RC_16))
		lower_unsupported(lo, "the register is smaller than the memory operand");
	switch (size) {
	case 1:
		return sign ? "s8" : "u8";
	case 2:
		return sign && c != RC_16 ? "s16" : "u16";
	case 4:
		return sign && c == RC_64 ? "s32" : "u32";
	default:
		return "u64";
	}
}

/* The parameter at a fixed offset: of the launch in kernels, of the lane's area in device functions. */
static bool kernel_param(struct lower *lo, const struct address *a)
{
	if (!lo->ast->is_entry)
		return false;
	if (!a->sym)
		return true;
	for (const struct sym *p = lo->ast->params; p; p = p->next)
		if (p == a->sym)
			return true;
	return false;
}

static void check_param(struct lower *lo, const struct address *a, u32 bytes)
{
	u64 first = a->sym ? a->sym->addr : 0;
	u64 end = a->sym ? first + a->sym->size : lo->ast->param_bytes;

	if (a->off < first || a->off > end || bytes > end - a->off)
		lower_unsupported(lo, "the access is outside the parameter");
}

static char space_char(const struct address *a)
{
	switch (a->space) {
	case SP_SHARED:
		return a->wide ? 'S' : 's';
	case SP_LOCAL:
		return 'l';
	default:
		return 'g';
	}
}

#define ELEMENTS 8

/* A load or store, its elements as registers: at most four to an instruction, which has r[4] for the address. */
struct access {
	enum space space;
	enum type type; /* of an element; 128-bit ones are two of 64 */
	u32 n;
	s32 reg[ELEMENTS];
	enum rclass cls;
	struct address a;
};

static struct access access_of(struct lower *lo, const struct opnd *mem)
{
	struct access x = {.n = mod(lo, "v2") ? 2 : mod(lo, "v4") ? 4 : mod(lo, "v8") ? 8 : 1};

	x.space = mod_space(lo);
	x.type = mod_type(lo, 0);
	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 2, 3); /* a cache-policy operand may follow */
	if (!type_size(x.type) || x.n * type_size(x.type) > 32)
		lower_unsupported(lo, "no vector of this type");
	x.a = lower_address(lo, mem, x.space);
	return x;
}

static void access_registers(struct lower *lo, struct access *x, const struct opnd *o, bool result)
{
	bool single = x->n == 1 && o->kind != O_VEC;
	enum rclass c;

	if (!single && (o->kind != O_VEC || o->nlist != x->n))
		lower_unsupported(lo, "the vector has another number of elements");
	if (x->type == TY_B128) {
		if (x->n > 1)
			lower_unsupported(lo, "a vector of 128-bit elements");
		x->reg[0] = half128(lo, single ? o : o->list, result);
		x->reg[1] = x->reg[0] + 1;
		x->type = TY_B64;
		x->cls = RC_64;
		x->n = 2;
		return;
	}
	for (u32 k = 0; k < x->n; k++) {
		const struct opnd *e = single ? o : &o->list[k];

		/* constants take the type's own class */
		x->reg[k] = result ? dst_any(lo, e, type_class(x->type), &c) : src_any(lo, e, type_class(x->type), &c);
		if (k && c != x->cls)
			lower_unsupported(lo, "vector elements of different sizes");
		x->cls = c;
	}
}

/*
 * More than four elements are two instructions. The alignment of the whole is checked before them, and the first must not
 * overwrite the second's address.
 */
static u32 access_split(struct lower *lo, struct access *x)
{
	struct ins *i;
	s32 base;

	if (x->n <= 4)
		return x->n;
	i = emit_op(lo, "aligned:%c", x->a.wide ? 'd' : 'w');
	i->imm = x->a.off;
	i->size = (u8)(x->n * type_size(x->type));
	set_use(lo, i, 4, x->a.reg);
	base = temp(lo, x->a.wide ? RC_64 : RC_32);
	emit_mov(lo, base, x->a.reg);
	x->a.reg = base;
	return 4;
}

void lower_ld(struct lower *lo)
{
	bool acquire = mod(lo, "acquire");
	struct access x = access_of(lo, &lo->p->ops[1]);
	u32 step, size;
	struct ins *i;

	access_registers(lo, &x, &lo->p->ops[0], true);
	size = type_size(x.type);
	if (x.space == SP_PARAM) {
		if (!x.a.fixed && !lo->ast->is_entry)
			lower_unsupported(lo, "ld.param through a register in a device function");
		if (x.a.fixed)
			check_param(lo, &x.a, size * x.n);
		for (u32 k = 0; k < x.n; k++) {
			bool kp = kernel_param(lo, &x.a);

			i = emit_op(lo, "%s:%s:%c", x.a.fixed ? (kp ? "ldp" : "lda") : "ldpr", mem_type(lo, x.type, x.cls),
				    class_char(x.cls));
			i->imm = x.a.off + k * size;
			if (!x.a.fixed)
				set_use(lo, i, 1, x.a.reg);
			set_def(lo, i, 0, x.reg[k]);
		}
		return;
	}
	step = access_split(lo, &x);
	for (u32 k = 0; k < x.n; k += step) {
		i = emit_op(lo, "%s:%c:%s:%c", x.n > 1 ? "ldv" : "ld", space_char(&x.a), mem_type(lo, x.type, x.cls),
			    class_char(x.cls));
		i->imm = x.a.off + k * size;
		i->size = (u8)step;
		i->sub = (u8)x.a.space;
		for (u32 e = 0; e < step; e++)
			set_def(lo, i, e, x.reg[k + e]);
		set_use(lo, i, 4, x.a.reg);
	}
	if (acquire)
		emit_op(lo, "fence:acquire");
}

void lower_st(struct lower *lo)
{
	bool release = mod(lo, "release");
	struct access x = access_of(lo, &lo->p->ops[0]);
	u32 step, size;
	struct ins *i;

	access_registers(lo, &x, &lo->p->ops[1], false);
	size = type_size(x.type);
	mem_type(lo, x.type, x.cls);
	if (x.space == SP_PARAM) {
		if (!x.a.fixed || kernel_param(lo, &x.a))
			lower_unsupported(lo, "a store into kernel parameters or through a register");
		check_param(lo, &x.a, size * x.n);
		for (u32 k = 0; k < x.n; k++)
			lower_area_store(lo, x.reg[k], size, (u32)x.a.off + k * size);
		return;
	}
	if (x.space == SP_CONST)
		lower_unsupported(lo, "a store into constant memory");
	if (release)
		emit_op(lo, "fence:release");
	step = access_split(lo, &x);
	for (u32 k = 0; k < x.n; k += step) {
		i = emit_op(lo, "%s:%c:%u:%c", x.n > 1 ? "stv" : "st", space_char(&x.a), 8 * size, class_char(x.cls));
		i->imm = x.a.off + k * size;
		i->size = (u8)step;
		i->sub = (u8)x.a.space;
		for (u32 e = 0; e < step; e++)
			set_use(lo, i, e, x.reg[k + e]);
		set_use(lo, i, 4, x.a.reg);
	}
}

/* membar and fence order the lane's accesses for all others: a full fence of the host does that. */
void lower_fence(struct lower *lo)
{
	static const char *const ok[] = {"sc",
					 "acq_rel",
					 "acquire",
					 "release",
					 "cta",
					 "cluster",
					 "gl",
					 "gpu",
					 "sys",
					 "level",
					 "proxy",
					 "alias",
					 "async",
					 "async::generic",
					 "global",
					 "shared::cta",
					 "shared::cluster",
					 "sync_restrict::shared::cta",
					 "sync_restrict::shared::cluster",
					 "mbarrier_init",
					 "tensormap::generic",
					 "constant",
					 "texture",
					 "surface",
					 NULL};
	/* Maps are read where they lie, each time: the address and size of one are no matter. */
	bool map = mod(lo, "tensormap::generic");

	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, 0, map ? 2 : 0);
	emit_op(lo, "fence:sc");
}

/*
 * Hints about caches: an address that is not mapped is no error either, and the policies that createpolicy makes are nothing but
 * operands for other hints.
 */
void lower_prefetch(struct lower *lo)
{
	static const char *const ok[] = {"L1", "L2", NULL};
	enum space sp = mod_space(lo);
	bool sized = lo->mod[0].len == 7 || lo->mod[0].len == 13; /* discard, applypriority */

	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, sized ? 2 : 1, sized ? 2 : 1);
	if (sp != SP_GENERIC && sp != SP_GLOBAL && sp != SP_LOCAL && sp != SP_CONST && sp != SP_PARAM)
		lower_unsupported(lo, NULL);
	lower_address(lo, &lo->p->ops[0], sp);
}

void lower_createpolicy(struct lower *lo)
{
	static const char *const ok[] = {"fractional", "range", "cvt", "global", "L2", NULL};

	mods_ignore(lo, ok);
	if (mod_type(lo, 0) != TY_B64)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 1, 4);
	emit_mov(lo, dst(lo, &lo->p->ops[0], 'd'), const_reg(lo, RC_64, 0));
}

/* alloca.u64 d, bytes{, alignment}; stacksave.u64 d; stackrestore.u64 a */
void lower_alloca(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	enum type t = mod_type(lo, 0);
	char c = class_char(type_class(t));
	s32 bytes;
	struct ins *i;

	mods_done(lo);
	need_ops(lo, 2, 3);
	if ((t != TY_U64 && t != TY_U32) || (lo->p->nops == 3 && (o[2].kind != O_INT || !o[2].val || o[2].val > 16 * 1024)))
		lower_unsupported(lo, NULL);
	bytes = src(lo, &o[1], c);
	i = emit_op(lo, "alloca:%c", c);
	i->imm = lo->p->nops == 3 ? o[2].val : 8;
	set_use(lo, i, 1, bytes);
	set_def(lo, i, 0, dst(lo, &o[0], c));
	lo->f->allocas = true;
}

void lower_stacksave(struct lower *lo)
{
	bool save = lo->mod[0].len == 9;
	enum type t = mod_type(lo, 0);
	char c = class_char(type_class(t));
	struct ins *i;
	s32 r;

	mods_done(lo);
	need_ops(lo, 1, 1);
	if (t != TY_U64 && t != TY_U32)
		lower_unsupported(lo, NULL);
	r = save ? dst(lo, &lo->p->ops[0], c) : src(lo, &lo->p->ops[0], c);
	i = emit_op(lo, "%s:%c", save ? "stacksave" : "stackrestore", c);
	if (save)
		set_def(lo, i, 0, r);
	else
		set_use(lo, i, 1, r);
}
