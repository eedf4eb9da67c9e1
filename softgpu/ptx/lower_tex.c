/* SPDX-License-Identifier: MIT */
/* Lowering of texture fetches, surface accesses and their queries. */
#include <string.h>

#include "softgpu/ptx/lower.h"
#include "softgpu/ptx/tex_ins.h"

static const char *const cache_hints[] = {"ca", "cg", "cs", "cv", "wb", "wt", NULL};

struct geometry {
	u32 dims, vector; /* coordinates that count, and the operand's length with layer and padding */
	bool cube, layered;
};

static struct geometry geometry(struct lower *lo)
{
	static const struct {
		const char *name;
		struct geometry g;
	} known[] = {
		{"1d", {1, 1, false, false}},  {"2d", {2, 2, false, false}}, {"3d", {3, 4, false, false}},
		{"a1d", {1, 2, false, true}},  {"a2d", {2, 4, false, true}}, {"cube", {3, 4, true, false}},
		{"acube", {3, 4, true, true}},
	};

	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (mod(lo, known[k].name))
			return known[k].g;
	lower_unsupported(lo, "this geometry");
}

static u32 count(const struct opnd *o)
{
	return o->kind == O_VEC ? o->nlist : 1;
}

static const struct opnd *at(const struct opnd *o, u32 k)
{
	return o->kind == O_VEC ? &o->list[k] : o;
}

/* [object]: a 64-bit value; variables of texture types were refused where they are declared. */
static s32 object(struct lower *lo, const struct opnd *o)
{
	if (o->kind != O_MEM || !o->has_base || o->val || lo->cls[o->reg] != RC_64)
		lower_unsupported(lo, "the object is not in a 64-bit register");
	return o->reg;
}

static void add_uses(struct lower *lo, const struct opnd *o, u32 first, u32 n, char sig)
{
	if (count(o) < first + n)
		lower_unsupported(lo, "too few coordinates");
	for (u32 k = 0; k < n; k++)
		list_add(lo, src(lo, at(o, first + k), sig));
}

/* The layer first, as the operand has it. Sources may need instructions of their own, so this is before emit. */
static void add_coordinates(struct lower *lo, const struct opnd *mem, struct geometry g)
{
	const struct opnd *c = &mem->list[0];

	if (mem->nlist != 1)
		lower_unsupported(lo, "a separate sampler");
	if (count(c) != g.vector && count(c) != g.dims + g.layered)
		lower_unsupported(lo, "another number of coordinates");
	add_uses(lo, c, 0, g.dims + g.layered, 'w');
}

/* All that is here is resident. */
static void resident(struct lower *lo, const struct opnd *d)
{
	if (d->second && d->second->kind != O_SINK)
		emit_mov(lo, dst(lo, d->second, 'p'), const_reg(lo, RC_PRED, 1));
}

static u32 add_results(struct lower *lo, const struct opnd *d, u32 n, char sig)
{
	if (d->kind != O_VEC || d->nlist != n)
		lower_unsupported(lo, "another number of results");
	for (u32 k = 0; k < n; k++)
		list_add(lo, dst(lo, &d->list[k], sig));
	return n;
}

static u8 component(struct lower *lo)
{
	for (u32 k = 0; k < 4; k++) {
		const char name[2] = {"rgba"[k], 0};

		if (mod(lo, name))
			return (u8)(k + 1);
	}
	lower_unsupported(lo, "no component");
}

void lower_tex(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	bool gather = lo->mod[0].len == 4; /* tld4 */
	bool v4 = mod(lo, "v4"), v2 = mod(lo, "v2");
	struct geometry g;
	struct tex_ins t = {0};
	enum type dt, ct;
	u32 first, ndef, next = 2;
	s32 obj;
	struct ins *i;

	if (gather)
		t.gather = component(lo);
	else if (mod(lo, "base"))
		t.lod = LOD_BASE;
	else if (mod(lo, "level"))
		t.lod = LOD_LEVEL;
	else if (mod(lo, "grad"))
		t.lod = LOD_GRAD;
	g = geometry(lo);
	dt = mod_type(lo, 0);
	ct = mod_type(lo, 1);
	mods_done(lo);
	need_ops(lo, 2 + (t.lod == LOD_LEVEL) + 2 * (t.lod == LOD_GRAD), 5);
	if (v2 ? dt != TY_F16X2 : !v4 || (dt != TY_U32 && dt != TY_S32 && dt != TY_F32 && dt != TY_F16))
		lower_unsupported(lo, "this type of result");
	if (ct != TY_F32 && ct != TY_S32)
		lower_unsupported(lo, "this type of coordinates");
	if (ct == TY_S32 && (g.cube || gather))
		lower_unsupported(lo, "integer coordinates");
	if (o[1].kind != O_MEM || !o[1].list)
		lower_unsupported(lo, "no coordinates");
	t.dims = (u8)g.dims;
	t.cube = g.cube;
	t.layered = g.layered;
	t.integer = ct == TY_S32;
	t.result = v2 ? RESULT_F16X2 : dt == TY_F16 ? RESULT_F16 : RESULT_32;
	obj = object(lo, &o[1]);

	first = list_begin(lo);
	ndef = add_results(lo, &o[0], v2 ? 2 : 4, dt == TY_F16 ? 'h' : 'w');
	add_coordinates(lo, &o[1], g);
	if (t.lod == LOD_LEVEL)
		add_uses(lo, &o[next++], 0, 1, 'w');
	for (u32 k = 0; t.lod == LOD_GRAD && k < 2; k++)
		add_uses(lo, &o[next++], 0, g.dims, 'w');
	if (lo->p->nops > next) {
		if (g.cube || o[next].kind != O_VEC)
			lower_unsupported(lo, "depth comparison");
		t.offsets = (u8)g.dims;
		add_uses(lo, &o[next++], 0, g.dims, 'w');
	}
	if (lo->p->nops > next)
		lower_unsupported(lo, "depth comparison");
	i = emit_op(lo, "tex:");
	set_use(lo, i, 4, obj);
	list_end(lo, i, first, ndef);
	memcpy(&i->imm, &t, sizeof(t));
	resident(lo, &o[0]);
}

void lower_txq(struct lower *lo)
{
	static const char *const names[] = {
		[TXQ_WIDTH] = "width",
		[TXQ_HEIGHT] = "height",
		[TXQ_DEPTH] = "depth",
		[TXQ_LAYERS] = "array_size",
		[TXQ_LEVELS] = "num_mipmap_levels",
		[TXQ_NORMALIZED] = "normalized_coords",
		[TXQ_SAMPLES] = "num_samples",
	};
	const struct opnd *o = lo->p->ops;
	bool level = mod(lo, "level");
	u32 what = 0;
	s32 obj, lod;
	struct ins *i;

	while (what < sizeof(names) / sizeof(names[0]) && !mod(lo, names[what]))
		what++;
	if (what == sizeof(names) / sizeof(names[0]) || mod_type(lo, 0) != TY_B32)
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, 2 + level, 2 + level);
	obj = object(lo, &o[1]);
	lod = level ? src(lo, &o[2], 'w') : const_reg(lo, RC_32, 0);
	i = emit_op(lo, "txq:");
	i->imm = what;
	set_use(lo, i, 1, lod);
	set_use(lo, i, 4, obj);
	set_def(lo, i, 0, dst(lo, &o[0], 'w'));
}

static enum surf_op surface_op(struct lower *lo)
{
	static const char *const names[] = {"add", "min", "max", "and", "or"};

	if (!memcmp(lo->mod[0].s, "suld", 4))
		return SURF_LOAD;
	if (!memcmp(lo->mod[0].s, "sust", 4))
		return SURF_STORE;
	for (u32 k = 0; k < 5; k++)
		if (mod(lo, names[k]))
			return (enum surf_op)(SURF_ADD + k);
	lower_unsupported(lo, NULL);
}

void lower_surface(struct lower *lo)
{
	const struct opnd *o = lo->p->ops;
	struct surf_ins s = {.op = (u8)surface_op(lo), .count = mod(lo, "v4") ? 4 : mod(lo, "v2") ? 2 : 1};
	const struct opnd *mem = &o[s.op == SURF_LOAD ? 1 : 0], *data = &o[s.op == SURF_LOAD ? 0 : 1];
	bool bytes = mod(lo, "b"), zero = mod(lo, "zero"), clamp = mod(lo, "clamp");
	struct geometry g;
	enum rclass cls;
	u32 first, ndef = 0;
	enum type t;
	struct ins *i;
	s32 obj;

	s.formatted = mod(lo, "p");
	s.mode = zero ? SURF_ZERO : clamp ? SURF_CLAMP : SURF_TRAP;
	mod(lo, "trap");
	g = geometry(lo);
	t = mod_type(lo, 0);
	mods_ignore(lo, cache_hints);
	mods_done(lo);
	need_ops(lo, 2, 2);
	cls = type_class(t);
	if (bytes == s.formatted || g.cube || cls == RC_PRED || cls == RC_COUNT || mem->kind != O_MEM || !mem->list ||
	    (s.formatted && s.op <= SURF_STORE && cls != RC_32) || (s.formatted && s.op == SURF_LOAD) ||
	    (s.op > SURF_STORE && (cls < RC_32 || s.count > 1 || t == TY_F32 || t == TY_F64 || g.layered)))
		lower_unsupported(lo, NULL);
	if (count(data) != s.count)
		lower_unsupported(lo, "the vector has another number of elements");
	s.dims = (u8)g.dims;
	s.layered = g.layered;
	s.type = (u8)t;
	s.cls = (u8)cls;
	obj = object(lo, mem);
	first = list_begin(lo);
	for (u32 k = 0; s.op == SURF_LOAD && k < s.count; k++, ndef++)
		list_add(lo, dst(lo, at(data, k), class_char(cls)));
	add_coordinates(lo, mem, g);
	for (u32 k = 0; s.op != SURF_LOAD && k < s.count; k++)
		list_add(lo, src(lo, at(data, k), class_char(cls)));
	i = emit_op(lo, "surf:");
	set_use(lo, i, 4, obj);
	list_end(lo, i, first, ndef);
	memcpy(&i->imm, &s, sizeof(s));
}
