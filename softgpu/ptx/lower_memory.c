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

static enum rclass natural_class(enum type t)
{
	enum rclass c = type_class(t);

	return c == RC_COUNT ? RC_64 : c;
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

static u32 vector_count(struct lower *lo)
{
	if (mod(lo, "v2"))
		return 2;
	if (mod(lo, "v4"))
		return 4;
	return 1;
}

static const struct opnd *element(struct lower *lo, const struct opnd *o, u32 n, u32 k)
{
	if (n == 1 && o->kind != O_VEC)
		return o;
	if (o->kind != O_VEC || o->nlist != n)
		lower_unsupported(lo, "the vector has another number of elements");
	return &o->list[k];
}

void lower_ld(struct lower *lo)
{
	bool acquire = mod(lo, "acquire");
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	u32 n = vector_count(lo);
	struct address a;
	s32 d[4];
	enum rclass c = RC_32, ck;
	struct ins *i;

	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 2, 3); /* a cache-policy operand may follow */
	if (!type_size(t))
		lower_unsupported(lo, "no type");
	a = lower_address(lo, &lo->p->ops[1], sp);
	for (u32 k = 0; k < n; k++) {
		d[k] = dst_any(lo, element(lo, &lo->p->ops[0], n, k), natural_class(t), &ck);
		if (k && ck != c)
			lower_unsupported(lo, "vector elements of different sizes");
		c = ck;
	}
	if (sp == SP_PARAM) {
		if (!a.fixed && !lo->ast->is_entry)
			lower_unsupported(lo, "ld.param through a register in a device function");
		if (a.fixed)
			check_param(lo, &a, type_size(t) * n);
		for (u32 k = 0; k < n; k++) {
			bool kp = kernel_param(lo, &a);

			i = emit_op(lo, "%s:%s:%c", a.fixed ? (kp ? "ldp" : "lda") : "ldpr", mem_type(lo, t, c), class_char(c));
			i->imm = a.off + k * type_size(t);
			if (!a.fixed)
				set_use(lo, i, 1, a.reg);
			set_def(lo, i, 0, d[k]);
		}
		return;
	}
	i = emit_op(lo, "%s:%c:%s:%c", n > 1 ? "ldv" : "ld", space_char(&a), mem_type(lo, t, c), class_char(c));
	i->imm = a.off;
	i->size = (u8)n;
	i->sub = (u8)a.space;
	for (u32 k = 0; k < n; k++)
		set_def(lo, i, k, d[k]);
	set_use(lo, i, 4, a.reg);
	if (acquire)
		emit_op(lo, "fence:acquire");
}

void lower_st(struct lower *lo)
{
	bool release = mod(lo, "release");
	enum space sp = mod_space(lo);
	enum type t = mod_type(lo, 0);
	u32 n = vector_count(lo), bits = type_size(t) * 8;
	struct address a;
	s32 v[4];
	enum rclass c = RC_32, ck;
	struct ins *i;

	mods_ignore(lo, hints);
	mods_done(lo);
	need_ops(lo, 2, 3);
	if (!bits)
		lower_unsupported(lo, "no type");
	a = lower_address(lo, &lo->p->ops[0], sp);
	for (u32 k = 0; k < n; k++) {
		const struct opnd *o = element(lo, &lo->p->ops[1], n, k);

		v[k] = src_any(lo, o, natural_class(t), &ck);
		if (k && ck != c) {
			/* constants take the type's own class; the registers beside them may be wider */
			lower_unsupported(lo, "vector elements of different sizes");
		}
		c = ck;
	}
	mem_type(lo, t, c);
	if (sp == SP_PARAM) {
		if (!a.fixed || kernel_param(lo, &a))
			lower_unsupported(lo, "a store into kernel parameters or through a register");
		check_param(lo, &a, type_size(t) * n);
		for (u32 k = 0; k < n; k++) {
			i = emit_op(lo, "sta:%u:%c", bits, class_char(c));
			i->imm = a.off + k * type_size(t);
			set_use(lo, i, 0, v[k]);
		}
		return;
	}
	if (sp == SP_CONST)
		lower_unsupported(lo, "a store into constant memory");
	if (release)
		emit_op(lo, "fence:release");
	i = emit_op(lo, "%s:%c:%u:%c", n > 1 ? "stv" : "st", space_char(&a), bits, class_char(c));
	i->imm = a.off;
	i->size = (u8)n;
	i->sub = (u8)a.space;
	for (u32 k = 0; k < n; k++)
		set_use(lo, i, k, v[k]);
	set_use(lo, i, 4, a.reg);
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
					 NULL};
	/* Maps are read where they lie, each time: the address and size of one are no matter. */
	bool map = mod(lo, "tensormap::generic");

	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, 0, map ? 2 : 0);
	emit_op(lo, "fence:sc");
}

/* A policy says how long lines should stay in a cache: any value will do. */
void lower_createpolicy(struct lower *lo)
{
	need_ops(lo, 1, 5);
	emit_mov(lo, dst(lo, &lo->p->ops[0], 'd'), const_reg(lo, RC_64, 0));
}

void lower_prefetch(struct lower *lo)
{
	(void)lo; /* only a hint: an unmapped address is no error either */
}
