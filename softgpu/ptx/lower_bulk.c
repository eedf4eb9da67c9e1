/* SPDX-License-Identifier: MIT */
/* Lowering of bulk and tensor copies, which are done at once, and of what replaces fields of tensor maps. */
#include <string.h>

#include "softgpu/ptx/bulk.h"
#include "softgpu/ptx/lower.h"

/* The whole address in 64 bits. */
static s32 address64(struct lower *lo, const struct opnd *o, enum space sp)
{
	struct address a = lower_address(lo, o, sp);
	s32 reg = widen64(lo, a.reg), t;
	struct ins *i;

	if (!a.off || a.fixed)
		return reg;
	t = temp(lo, RC_64);
	i = emit_op(lo, "add.u64");
	set_use(lo, i, 1, reg);
	set_use(lo, i, 2, const_reg(lo, RC_64, a.off));
	set_def(lo, i, 0, t);
	return t;
}

/* [map, {c0, c1 …}]: the map's generic address. */
static s32 map_address(struct lower *lo, const struct opnd *o)
{
	struct opnd map = *o;

	if (o->kind != O_MEM || o->nlist != 1 || o->list[0].kind != O_VEC)
		lower_unsupported(lo, "the operand is not a tensor and its coordinates");
	map.list = NULL;
	map.nlist = 0;
	return address64(lo, &map, SP_GENERIC);
}

/* Which space the copy goes to and which it comes from, by the order of the modifiers. */
static void direction(struct lower *lo, struct bulk *b)
{
	u32 n = 0;
	bool shared[2] = {false, false};

	for (u32 k = 1; k < lo->nmod; k++) {
		u32 len = lo->mod[k].len;
		const char *s = lo->mod[k].s;
		bool global = len == 6 && !memcmp(s, "global", 6);
		bool sh = (len == 11 && !memcmp(s, "shared::cta", 11)) || (len == 15 && !memcmp(s, "shared::cluster", 15));

		if (!global && !sh)
			continue;
		lo->used_mods |= 1u << k;
		if (n < 2)
			shared[n] = sh;
		n++;
	}
	if (n != 2 || (!shared[0] && !shared[1]))
		lower_unsupported(lo, "a copy between these state spaces");
	b->flags |= shared[0] ? BF_TO_SHARED : 0;
	b->flags |= shared[0] && shared[1] ? BF_FROM_SHARED : 0;
	if (!mod(lo, shared[0] ? "mbarrier::complete_tx::bytes" : "bulk_group"))
		lower_unsupported(lo, "this completion mechanism");
}

static void reduction(struct lower *lo, struct bulk *b)
{
	static const char *const ops[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

	for (u32 k = 0; k < 8 && !b->op; k++)
		if (mod(lo, ops[k]))
			b->op = (u8)(BULK_ADD + k);
	if (!b->op)
		lower_unsupported(lo, NULL);
}

/* The combinations of the manual; what goes to shared memory has fewer. */
static bool reduces(enum bulk_op op, enum type t, bool to_shared)
{
	switch (op) {
	case BULK_ADD:
		if (!to_shared && (t == TY_F16 || t == TY_BF16 || t == TY_F32 || t == TY_F64))
			return true;
		return t == TY_U32 || t == TY_S32 || t == TY_U64;
	case BULK_MIN:
	case BULK_MAX:
		if (!to_shared && (t == TY_F16 || t == TY_BF16 || t == TY_U64 || t == TY_S64))
			return true;
		return t == TY_U32 || t == TY_S32;
	case BULK_INC:
	case BULK_DEC:
		return t == TY_U32;
	default:
		return t == TY_B32 || (t == TY_B64 && !to_shared);
	}
}

/* cp{.reduce}.async.bulk [to], [from], bytes, then an mbarrier, masks and a cache policy */
static void plain(struct lower *lo, struct bulk b)
{
	const struct opnd *o = lo->p->ops;
	s32 shared, other, bytes, mbar = 0, mask = 0;
	enum type t = TY_NONE;
	struct ins *i;
	u32 n = 3;

	direction(lo, &b);
	if (b.op) {
		bool noftz = mod(lo, "noftz");

		t = mod_type(lo, 0);
		if (!reduces(b.op, t, b.flags & BF_TO_SHARED) || (b.flags & BF_TO_SHARED && !(b.flags & BF_FROM_SHARED)) ||
		    (noftz && t != TY_F16 && t != TY_BF16))
			lower_unsupported(lo, "a reduction of this kind");
		b.type = (u8)t;
	}
	if (!b.op && (b.flags & BF_TO_SHARED) && mod(lo, "multicast::cluster"))
		b.flags |= BF_MULTICAST;
	if (!b.op && !(b.flags & BF_TO_SHARED) && mod(lo, "cp_mask"))
		b.flags |= BF_BYTE_MASK;
	n += mod(lo, "L2::cache_hint");
	n += (b.flags & BF_TO_SHARED) ? 1 : 0;
	n += (b.flags & (BF_MULTICAST | BF_BYTE_MASK)) ? 1 : 0;
	mods_done(lo);
	need_ops(lo, n, n);
	shared = address64(lo, &o[b.flags & BF_TO_SHARED ? 0 : 1], SP_SHARED);
	other = address64(lo, &o[b.flags & BF_TO_SHARED ? 1 : 0], b.flags & BF_FROM_SHARED ? SP_SHARED : SP_GLOBAL);
	bytes = src(lo, &o[2], 'w');
	if (b.flags & BF_TO_SHARED)
		mbar = address64(lo, &o[3], SP_SHARED);
	if (b.flags & BF_MULTICAST)
		mask = src(lo, &o[4], 'h');
	if (b.flags & BF_BYTE_MASK)
		mask = src(lo, &o[n - 1], 'h');
	i = emit_op(lo, "bulk:");
	i->imm = bulk_pack(b);
	set_use(lo, i, 1, shared);
	set_use(lo, i, 2, other);
	set_use(lo, i, 3, bytes);
	if (b.flags & BF_TO_SHARED)
		set_use(lo, i, 4, mbar);
	if (b.flags & (BF_MULTICAST | BF_BYTE_MASK))
		set_use(lo, i, 5, mask);
}

/* cp{.reduce}.async.bulk.tensor.Nd: [to], [map, {coordinates}], [mbarrier] …, or [map, {coordinates}], [from] */
static void tensor(struct lower *lo, struct bulk b)
{
	static const char *const im2col[] = {"im2col",	       "im2col::w",    "im2col::w::128",
					     "im2col_no_offs", "cta_group::1", "cta_group::2"};
	const struct opnd *o = lo->p->ops, *coords;
	s32 shared, map, mbar = 0, mask = 0, c[5];
	u32 first, n = 2, ncoords;
	struct ins *i;

	for (u32 k = 0; k < 6; k++)
		if (mod(lo, im2col[k]))
			lower_unsupported(lo, "tensor copies in the tile modes only, and without CTA groups");
	for (char d = '1'; d <= '5'; d++) {
		char dim[3] = {d, 'd', 0};

		if (mod(lo, dim))
			b.rank = (u8)(d - '0');
	}
	direction(lo, &b);
	if (!b.rank || (b.flags & BF_FROM_SHARED))
		lower_unsupported(lo, NULL);
	mod(lo, "tile");
	if (!b.op && mod(lo, b.flags & BF_TO_SHARED ? "tile::gather4" : "tile::scatter4")) {
		b.flags |= BF_ROWS;
		if (b.rank != 2)
			lower_unsupported(lo, "four rows of a tensor of another rank than 2");
	}
	if ((b.flags & BF_TO_SHARED) && mod(lo, "multicast::cluster"))
		b.flags |= BF_MULTICAST;
	n += mod(lo, "L2::cache_hint");
	n += (b.flags & BF_TO_SHARED) ? 1 : 0;
	n += (b.flags & BF_MULTICAST) ? 1 : 0;
	mods_done(lo);
	need_ops(lo, n, n);
	coords = &o[b.flags & BF_TO_SHARED ? 1 : 0];
	map = map_address(lo, coords);
	coords = &coords->list[0];
	ncoords = b.flags & BF_ROWS ? 5 : b.rank;
	if (coords->nlist != ncoords)
		lower_unsupported(lo, "another number of coordinates");
	shared = address64(lo, &o[b.flags & BF_TO_SHARED ? 0 : 1], SP_SHARED);
	if (b.flags & BF_TO_SHARED)
		mbar = address64(lo, &o[2], SP_SHARED);
	if (b.flags & BF_MULTICAST)
		mask = src(lo, &o[3], 'h');
	for (u32 k = 0; k < ncoords; k++)
		c[k] = src(lo, &coords->list[k], 'w');
	first = list_begin(lo);
	for (u32 k = 0; k < ncoords; k++)
		list_add(lo, c[k]);
	i = emit_op(lo, "bulk:tensor");
	i->imm = bulk_pack(b);
	list_end(lo, i, first, 0);
	set_use(lo, i, 1, shared);
	set_use(lo, i, 2, map);
	if (b.flags & BF_TO_SHARED)
		set_use(lo, i, 4, mbar);
	if (b.flags & BF_MULTICAST)
		set_use(lo, i, 5, mask);
}

void lower_cp_bulk(struct lower *lo, bool reduce)
{
	struct bulk b = {0};

	if (mod(lo, "commit_group")) {
		mods_done(lo);
		need_ops(lo, 0, 0);
		return; /* every copy was finished when it was issued */
	}
	if (mod(lo, "wait_group")) {
		mod(lo, "read");
		mods_done(lo);
		need_ops(lo, 1, 1);
		return;
	}
	if (mod(lo, "prefetch"))
		return; /* a hint, of any form */
	if (reduce)
		reduction(lo, &b);
	if (mod(lo, "tensor"))
		tensor(lo, b);
	else
		plain(lo, b);
}

/* tensormap.replace.tile.field{.ss}.b1024.type [map], {ordinal,} value */
static void replace(struct lower *lo)
{
	static const char *const fields[] = {"global_address",	  "rank",	    "box_dim",		 "global_dim",
					     "global_stride",	  "element_stride", "elemtype",		 "swizzle_mode",
					     "interleave_layout", "fill_mode",	    "swizzle_atomicity", NULL};
	const struct opnd *o = lo->p->ops;
	enum space sp = mod_space(lo);
	bool ordinal, wide;
	s32 map, value;
	struct ins *i;
	u32 f = 0;

	while (fields[f] && !mod(lo, fields[f]))
		f++;
	ordinal = f >= 2 && f <= 5;
	wide = f == 0 || f == 4;
	if (!fields[f] || !mod(lo, "tile") || !mod(lo, "b1024") || mod_type(lo, 0) != (wide ? TY_B64 : TY_B32))
		lower_unsupported(lo, NULL);
	mods_done(lo);
	need_ops(lo, ordinal ? 3 : 2, ordinal ? 3 : 2);
	if ((ordinal && (o[1].kind != O_INT || o[1].val > 4)) || (f >= 6 && o[1].kind != O_INT))
		lower_unsupported(lo, "an ordinal or a value that is no constant");
	map = address64(lo, &o[0], sp);
	value = src(lo, &o[ordinal ? 2 : 1], wide ? 'd' : 'w');
	i = emit_op(lo, "tensormap:%c", wide ? 'd' : 'w');
	i->imm = f | (ordinal ? o[1].val << 8 : 0);
	i->sub = (u8)sp;
	set_use(lo, i, 1, map);
	set_use(lo, i, 2, value);
}

void lower_tensormap(struct lower *lo)
{
	static const char *const ok[] = {
		"global",  "shared::cta", "tensormap::generic", "release", "cta", "cluster", "gpu", "sys", "sync",
		"aligned", NULL};
	const struct opnd *o = lo->p->ops;
	s32 to, from;
	struct ins *i;

	if (mod(lo, "replace")) {
		replace(lo);
		return;
	}
	if (!mod(lo, "cp_fenceproxy"))
		lower_unsupported(lo, NULL);
	mods_ignore(lo, ok);
	mods_done(lo);
	need_ops(lo, 3, 3);
	if (o[2].kind != O_INT || o[2].val != 128)
		lower_unsupported(lo, "the size is not 128");
	to = address64(lo, &o[0], SP_GLOBAL);
	from = address64(lo, &o[1], SP_SHARED);
	i = emit_op(lo, "bulk:");
	i->imm = bulk_pack((struct bulk){0});
	set_use(lo, i, 1, from);
	set_use(lo, i, 2, to);
	set_use(lo, i, 3, const_reg(lo, RC_32, 128));
	emit_op(lo, "fence:sc");
}
