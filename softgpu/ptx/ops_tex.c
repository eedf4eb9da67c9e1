/* SPDX-License-Identifier: MIT */
/* Texture fetches, surface loads, stores and reductions, and the queries, lane by lane. */
#include <math.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/tex_ins.h"
#include "softgpu/ptx/texture.h"

#define MAX_LIST 20u /* four results, layer, three coordinates, six of gradients, three offsets */

/* The list's registers, looked up once for all lanes. */
static inline void find_list(const struct warp *w, const struct ins *i, u32 n, void *list[MAX_LIST])
{
	const s32 *ops = w->frame->f->ops + i->target;

	for (u32 k = 0; k < n; k++)
		list[k] = opnd_ptr(w, ops[k]);
}

static inline u32 get_u32(void *const *list, u32 k, u32 lane)
{
	return ((const u32 *)list[k])[lane];
}

static inline f32 get_f32(void *const *list, u32 k, u32 lane)
{
	return bits_f32(get_u32(list, k, lane));
}

/* Lanes mostly have the same object: it is looked up when it changes. */
struct object {
	u64 value;
	const struct ptx_texture *t;
};

static bool find(struct warp *w, const struct ins *i, u32 lane, bool surface, struct object *o)
{
	u64 value = ((const u64 *)opnd_ptr(w, i->r[4]))[lane];

	if (o->t && o->value == value)
		return true;
	o->value = value;
	o->t = ptx_texture_find(value);
	if (o->t && o->t->surface == surface)
		return true;
	ptx_raise(w, i, (int)lane, PTX_ILLEGAL_INSTRUCTION, value, "0x%llx is no %s object", (unsigned long long)value,
		  surface ? "surface" : "texture");
	return false;
}

/* The level at which a texel is as large as a step on the screen; directions of a cube are taken as they are. */
static f32 lod_of(void *const *list, u32 first, u32 lane, const struct tex_ins *t, const struct ptx_texture *x)
{
	const u32 size[3] = {x->level[0].width, x->level[0].height, x->level[0].depth};
	f32 longest = 0;

	for (u32 axis = 0; axis < 2; axis++) {
		f32 sum = 0;

		for (u32 d = 0; d < t->dims; d++) {
			f32 step = get_f32(list, first + axis * t->dims + d, lane);

			step *= t->cube ? (f32)size[0] / 2 : x->normalized ? (f32)size[d] : 1;
			sum += step * step;
		}
		longest = sum > longest ? sum : longest;
	}
	return log2f(longest) / 2; /* of 0: −∞, the least level */
}

static inline void put_result(void *const *list, u32 lane, const struct tex_ins *t, const struct ptx_texture *x, const u32 v[4])
{
	u16 h[4];

	if (t->result == RESULT_32) {
		for (u32 k = 0; k < 4; k++)
			((u32 *)list[k])[lane] = v[k];
		return;
	}
	for (u32 k = 0; k < 4; k++)
		h[k] = ptx_reads_float(x) ? f32_to_f16(bits_f32(v[k])) : (u16)v[k];
	for (u32 k = 0; k < 4; k++)
		if (t->result == RESULT_F16)
			((u16 *)list[k])[lane] = h[k];
		else if (k < 2)
			((u32 *)list[k])[lane] = h[2 * k] | (u32)h[2 * k + 1] << 16;
}

static u32 list_length(const struct tex_ins *t)
{
	u32 coordinates = t->layered + t->dims, level = t->lod == LOD_LEVEL ? 1 : t->lod == LOD_GRAD ? 2u * t->dims : 0;

	return (t->result == RESULT_F16X2 ? 2 : 4) + coordinates + level + t->offsets;
}

HANDLER(tex)
{
	const u64 *objects = ARG(const u64, 4);
	_Alignas(64) f32 lod[WARP];
	void *list[MAX_LIST];
	struct tex_fetch q;
	struct tex_ins t;
	u32 k, rest = em, v[WARP][4];

	memcpy(&t, &i->imm, sizeof(t));
	find_list(w, i, list_length(&t), list);
	k = t.result == RESULT_F16X2 ? 2 : 4;
	q = (struct tex_fetch){.dims = t.dims,
			       .integer = t.integer,
			       .cube = t.cube,
			       .layered = t.layered,
			       .base_level = t.lod == LOD_BASE,
			       .gather = t.gather};
	if (t.layered)
		q.layer = list[k++];
	for (u32 d = 0; d < t.dims; d++, k++) {
		q.at[d] = list[k];
		q.texel[d] = list[k];
	}
	if (t.lod == LOD_LEVEL)
		q.lod = list[k];
	for (u32 d = 0; d < t.offsets; d++)
		q.offset[d] = list[list_length(&t) - t.offsets + d];
	/* Lanes with the same object fetch together; mostly that is all. */
	while (rest) {
		u32 first = (u32)__builtin_ctz(rest), same = 0;
		struct object o = {0};
		struct tex_fault bad;

		if (!find(w, i, first, false, &o))
			return;
		LANES same |= (u32)(objects[l] == o.value) << l;
		same &= rest;
		rest &= ~same;
		if (t.lod == LOD_GRAD) {
			LANES lod[l] = same >> l & 1 ? lod_of(list, k, l, &t, o.t) : 0;
			q.lod = lod;
		}
		if (!ptx_texture_fetch(o.t, &q, same, v, &bad)) {
			ptx_raise(w, i, (int)bad.lane, PTX_ILLEGAL_ADDRESS, bad.addr, "a texture's memory is gone");
			return;
		}
		for (; same; same &= same - 1) {
			u32 l = (u32)__builtin_ctz(same);

			put_result(list, l, &t, o.t, v[l]);
		}
	}
}

HANDLER(txq)
{
	struct object o = {0};

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), level = ((const u32 *)opnd_ptr(w, i->r[1]))[l], v = 0;
		u64 value = ((const u64 *)opnd_ptr(w, i->r[4]))[l];
		const struct ptx_image *im;

		if (!o.t || o.value != value) {
			o.t = ptx_texture_find(value);
			o.value = value;
		}
		if (!o.t) {
			find(w, i, l, false, &o); /* raises */
			return;
		}
		im = &o.t->level[level < o.t->nlevels ? level : o.t->nlevels - 1];
		switch ((enum tex_query)i->imm) {
		case TXQ_WIDTH:
			v = im->width;
			break;
		case TXQ_HEIGHT:
			v = im->height;
			break;
		case TXQ_DEPTH:
			v = o.t->dims == 3 ? im->depth : 1;
			break;
		case TXQ_LAYERS:
			v = o.t->layered ? im->depth / (o.t->cubemap ? 6 : 1) : 1;
			break;
		case TXQ_LEVELS:
			v = o.t->nlevels;
			break;
		case TXQ_NORMALIZED:
			v = o.t->normalized;
			break;
		case TXQ_SAMPLES:
			v = 1;
			break;
		}
		((u32 *)opnd_ptr(w, i->r[0]))[l] = v;
	}
}

/* ---- Surfaces ---- */

enum place { PLACE_OK, PLACE_SKIP, PLACE_FAULT };

/* Where a lane's access of @bytes goes; x counts bytes, or texels when formatted. */
static inline enum place place(struct warp *w, const struct ins *i, u32 l, void *const *list, const struct surf_ins *s,
			       const struct ptx_texture *t, u32 bytes, u8 **mem)
{
	const struct ptx_image *im = &t->level[0];
	s64 c[3] = {0}, size[3] = {im->width, im->height, im->depth};
	bool outside;
	u64 addr;

	if (s->layered)
		c[2] = get_u32(list++, 0, l);
	for (u32 d = 0; d < s->dims; d++)
		c[d] = (s32)get_u32(list, d, l);
	c[0] *= s->formatted ? t->texel : 1;
	size[0] *= t->texel;
	outside = c[0] < 0 || c[0] + bytes > size[0] || c[1] < 0 || c[1] >= size[1] || c[2] < 0 || c[2] >= size[2];
	if (outside && s->mode == SURF_ZERO)
		return PLACE_SKIP;
	if (outside && s->mode == SURF_CLAMP && bytes <= size[0]) {
		const s64 top[3] = {size[0] - bytes, size[1] - 1, size[2] - 1};

		for (u32 d = 0; d < 3; d++)
			c[d] = c[d] < 0 ? 0 : c[d] > top[d] ? top[d] : c[d];
		outside = false;
	}
	addr = im->base + (u64)c[2] * im->plane + (u64)c[1] * im->pitch + (u64)c[0];
	if (!outside && c[0] & (bytes - 1)) {
		ptx_raise(w, i, (int)l, PTX_MISALIGNED, addr, "surface access of %u bytes at x %lld", bytes, (long long)c[0]);
		return PLACE_FAULT;
	}
	if (outside || !softgpu_mapped(addr, bytes)) {
		ptx_raise(w, i, (int)l, PTX_ILLEGAL_ADDRESS, addr,
			  "surface access of %u bytes at (%lld, %lld, %lld) of %lld bytes × %lld × %lld", bytes, (long long)c[0],
			  (long long)c[1], (long long)c[2], (long long)size[0], (long long)size[1], (long long)size[2]);
		return PLACE_FAULT;
	}
	*mem = (u8 *)(uintptr_t)addr;
	return PLACE_OK;
}

static u64 reg_get(const void *p, u32 cls, u32 l)
{
	return cls == RC_16 ? ((const u16 *)p)[l] : cls == RC_32 ? ((const u32 *)p)[l] : ((const u64 *)p)[l];
}

static void reg_put(void *p, u32 cls, u32 l, u64 v)
{
	if (cls == RC_16)
		((u16 *)p)[l] = (u16)v;
	else if (cls == RC_32)
		((u32 *)p)[l] = (u32)v;
	else
		((u64 *)p)[l] = v;
}

static u64 combine(u64 old, u64 v, enum surf_op op, enum type t)
{
	bool narrow = type_size(t) == 4, less;

	if (op == SURF_ADD)
		return old + v;
	if (op == SURF_AND)
		return old & v;
	if (op == SURF_OR)
		return old | v;
	if (type_is_signed(t))
		less = narrow ? (s32)v < (s32)old : (s64)v < (s64)old;
	else
		less = v < old;
	return less == (op == SURF_MIN) ? v : old;
}

static void reduce(void *mem, u64 v, enum surf_op op, enum type t)
{
	if (type_size(t) == 4) {
		u32 old = __atomic_load_n((u32 *)mem, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n((u32 *)mem, &old, (u32)combine(old, v, op, t), true, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
	} else {
		u64 old = __atomic_load_n((u64 *)mem, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n((u64 *)mem, &old, combine(old, v, op, t), true, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
	}
}

HANDLER(surf)
{
	void *list[MAX_LIST];
	struct object o = {0};
	struct surf_ins s;
	u32 first, data, size;

	memcpy(&s, &i->imm, sizeof(s));
	size = type_size((enum type)s.type);
	first = s.op == SURF_LOAD ? s.count : 0;
	data = s.op == SURF_LOAD ? 0 : s.dims + s.layered;
	find_list(w, i, s.dims + s.layered + s.count, list);
	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), texel[4] = {0};
		u8 *mem = NULL;
		u64 v = 0;

		if (!find(w, i, l, true, &o))
			return;
		switch (place(w, i, l, list + first, &s, o.t, s.formatted && s.op == SURF_STORE ? o.t->texel : size * s.count,
			      &mem)) {
		case PLACE_FAULT:
			return;
		case PLACE_SKIP:
			for (u32 k = 0; s.op == SURF_LOAD && k < s.count; k++)
				reg_put(list[k], s.cls, l, 0);
			continue;
		default:
			break;
		}
		if (s.op > SURF_STORE) {
			reduce(mem, reg_get(list[data], s.cls, l), (enum surf_op)s.op, (enum type)s.type);
		} else if (s.formatted) {
			for (u32 k = 0; k < s.count; k++)
				texel[k] = get_u32(list, data + k, l);
			ptx_texel_write(o.t, mem, texel);
		} else {
			for (u32 k = 0; k < s.count; k++) {
				if (s.op == SURF_STORE) {
					v = reg_get(list[data + k], s.cls, l);
					memcpy(mem + k * size, &v, size);
				} else {
					memcpy(&v, mem + k * size, size);
					reg_put(list[k], s.cls, l, v);
				}
			}
		}
	}
}

const struct op_row ptx_ops_tex[] = {
	{"tex:", "", tex, 0},
	{"txq:", "", txq, 0},
	{"surf:", "", surf, 0},
	{NULL, NULL, NULL, 0},
};
