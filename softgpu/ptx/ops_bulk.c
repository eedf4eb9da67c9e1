/* SPDX-License-Identifier: MIT */
/* Bulk copies and reductions, and tensor copies through a map. */
#include "softgpu/ptx/bulk.h"
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/tensormap.h"

static u16 half_op(u16 a, u16 b, enum bulk_op op, bool bf)
{
	f32 x = bf ? bf16_to_f32(a) : f16_to_f32(a), y = bf ? bf16_to_f32(b) : f16_to_f32(b), r = x + y;

	if (op != BULK_ADD) {
		/* of two numbers and a NaN the number; −0 is less than +0 */
		if (x != x || y != y)
			r = x != x ? y : x;
		else if (x == y)
			r = (f32_bits(x) >> 31) == (op == BULK_MIN) ? x : y;
		else
			r = (x < y) == (op == BULK_MIN) ? x : y;
	}
	return bf ? f32_to_bf16(r) : f32_to_f16(r);
}

static u64 combine(u64 a, u64 b, enum bulk_op op, enum type t)
{
	bool less;

	if (t == TY_F16 || t == TY_BF16)
		return half_op((u16)a, (u16)b, op, t == TY_BF16);
	if (t == TY_F32)
		return f32_bits(ftz(ftz(bits_f32((u32)a)) + ftz(bits_f32((u32)b))));
	if (t == TY_F64)
		return f64_bits(bits_f64(a) + bits_f64(b));
	switch (op) {
	case BULK_ADD:
		return a + b;
	case BULK_INC:
		return (u32)a >= (u32)b ? 0 : a + 1;
	case BULK_DEC:
		return !(u32)a || (u32)a > (u32)b ? b : a - 1;
	case BULK_AND:
		return a & b;
	case BULK_OR:
		return a | b;
	case BULK_XOR:
		return a ^ b;
	default:
		less = t == TY_S32 ? (s32)a < (s32)b : t == TY_S64 ? (s64)a < (s64)b : a < b;
		return less == (op == BULK_MIN) ? a : b;
	}
}

#define ELEMENTS(T)                                                                                                              \
	for (u32 k = 0; k < bytes; k += sizeof(T)) {                                                                             \
		T *p = (T *)(to + k), old = __atomic_load_n(p, __ATOMIC_RELAXED), v;                                             \
		T val;                                                                                                           \
		memcpy(&v, from + k, sizeof(v));                                                                                 \
		do                                                                                                               \
			val = (T)combine(old, v, op, t);                                                                         \
		while (!__atomic_compare_exchange_n(p, &old, val, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));                   \
	}

/* @to is aligned to its elements: other blocks may reduce there as well. */
static void reduce(u8 *to, const u8 *from, u32 bytes, enum bulk_op op, enum type t)
{
	switch (type_size(t)) {
	case 2:
		ELEMENTS(u16)
		break;
	case 4:
		ELEMENTS(u32)
		break;
	default:
		ELEMENTS(u64)
		break;
	}
}

static u64 reg64(const struct warp *w, const struct ins *i, u32 k, u32 l)
{
	return ((const u64 *)opnd_ptr(w, i->r[k]))[l];
}

/* The place in another rank's memory that has the same offset as @at in its own. */
static u64 in_rank(u64 at, u32 rank)
{
	return (at & ((1u << CLUSTER_SHIFT) - 1)) | (u64)(rank + 1) << CLUSTER_SHIFT;
}

/* Hands the finished bytes to every destination: into the lane's own address, or by mask into each rank's; then its mbarrier. */
static bool deliver(struct warp *w, const struct ins *i, u32 l, struct bulk b, const u8 *from, u32 bytes)
{
	u64 to = reg64(w, i, 1, l), mbar = reg64(w, i, 4, l);
	u32 mask = b.flags & BF_MULTICAST ? ((const u16 *)opnd_ptr(w, i->r[5]))[l] : 1;

	for (; mask; mask &= mask - 1) {
		u32 rank = (u32)__builtin_ctz(mask);
		bool many = b.flags & BF_MULTICAST;
		u8 *p = ptx_lane_range(w, i, l, SP_SHARED, many ? in_rank(to, rank) : to, bytes, 16);
		u64 *bar = p ? ptx_lane_addr(w, i, l, SP_SHARED, many ? in_rank(mbar, rank) : mbar, 8) : NULL;

		if (!bar)
			return false;
		if (b.op)
			reduce(p, from, bytes, b.op, b.type);
		else
			memmove(p, from, bytes);
		ptx_mbar_complete(bar, bytes);
	}
	return true;
}

HANDLER(bulk)
{
	const struct bulk b = bulk_unpack(i->imm);

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest), bytes = ((const u32 *)opnd_ptr(w, i->r[3]))[l];
		enum space other = b.flags & BF_FROM_SHARED ? SP_SHARED : SP_GLOBAL;
		u8 *p = ptx_lane_range(w, i, l, other, reg64(w, i, 2, l), bytes, 16), *q;

		if (!p)
			return;
		if (bytes & 15) {
			ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0,
				  "a bulk copy of %u bytes, no multiple of 16 (line %u)", bytes, i->line);
			return;
		}
		if (b.flags & BF_TO_SHARED) {
			if (!deliver(w, i, l, b, p, bytes))
				return;
			continue;
		}
		q = ptx_lane_range(w, i, l, SP_SHARED, reg64(w, i, 1, l), bytes, 16);
		if (!q)
			return;
		if (b.op)
			reduce(p, q, bytes, b.op, b.type);
		else if (!(b.flags & BF_BYTE_MASK))
			memcpy(p, q, bytes);
		else
			for (u32 k = 0; k < bytes; k++)
				if (((const u16 *)opnd_ptr(w, i->r[5]))[l] >> (k % 16) & 1)
					p[k] = q[k];
	}
}

/* ---- Tensors ---- */

static bool no_map(struct warp *w, const struct ins *i, u32 l, u64 at)
{
	ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, at, "no tensor map at 0x%llx (line %u)", (unsigned long long)at,
		  i->line);
	return false;
}

static bool good_map(const struct tensormap *m)
{
	return m->magic == TENSORMAP_MAGIC && m->rank && m->rank <= 5 && tensormap_type_size(m->type);
}

static bool read_map(struct warp *w, const struct ins *i, u32 l, struct tensormap *to)
{
	u64 at = reg64(w, i, 2, l);
	const struct tensormap *m = ptx_lane_range(w, i, l, SP_GENERIC, at, 128, 64);

	if (!m)
		return false;
	memcpy(to, m, sizeof(*to));
	return good_map(to) || no_map(w, i, l, at);
}

/* Where byte @at of shared memory goes: chunks trade places within 128 bytes, line by line. */
static u64 swizzle(u64 at, u32 mode)
{
	u64 line = at >> 7;

	switch (mode) {
	case 1: /* 32B */
		return at ^ (line & 1) << 4;
	case 2: /* 64B */
		return at ^ (line & 3) << 4;
	case 3: /* 128B */
		return at ^ (line & 7) << 4;
	case 4: /* 128B, atoms of 32 */
		return at ^ (line & 3) << 5;
	case 5: /* and halves of 16 bytes swapped in every other line */
		return at ^ (line & 3) << 5 ^ (line & 1) << 3;
	case 6: /* 128B, atoms of 64 */
		return at ^ (line & 1) << 6;
	default:
		return at;
	}
}

struct tile {
	struct tensormap m; /* a copy: the kernel may write to the map meanwhile, or have it in the box's memory */
	s32 at[5], rows[4];
	u32 count[5]; /* elements along each dimension */
	u32 size;     /* of one */
	bool four;    /* rows: the second coordinate of each */
};

/* Row @n of the box: the address of the tensor's element 0 along dimension 0 there; 0: outside the tensor. */
static u64 row_address(const struct tile *t, u32 n)
{
	u64 a = t->m.address;

	for (u32 d = 1; d < t->m.rank; d++) {
		s64 k = t->four ? t->rows[n] : t->at[d] + (s64)(n % t->count[d]) * t->m.step[d];

		n /= t->count[d];
		if (k < 0 || k > t->m.last[d])
			return 0;
		a += (u64)k * t->m.stride[d - 1];
	}
	return a;
}

static u64 fill(const struct tensormap *m)
{
	if (!m->fill_nan)
		return 0;
	return m->type == 6 || m->type == 9 ? 0x7fff : m->type == 8 ? 0x7fffffffffffffff : 0x7fffffff;
}

/* What a load does to elements of float32_ftz and tfloat32. */
static u32 loaded(u32 v, u32 type)
{
	if (type == 10 || type == 12)
		v = f32_bits(ftz(bits_f32(v)));
	if (type >= 11 && (v & 0x7f800000) != 0x7f800000)
		v = (v + 0x1000) & 0xffffe000;
	return v;
}

static const u8 reduced_as[TENSORMAP_TYPES] = {
	[2] = TY_U32, [3] = TY_S32, [4] = TY_U64, [5] = TY_S64, [6] = TY_F16, [7] = TY_F32, [8] = TY_F64, [9] = TY_BF16};

static bool can_reduce(u32 op, u32 type)
{
	switch (op) {
	case BULK_ADD:
		return type >= 2 && type <= 9 && type != 5;
	case BULK_MIN:
	case BULK_MAX:
		return (type >= 2 && type <= 6) || type == 9;
	case BULK_INC:
	case BULK_DEC:
		return type == 2;
	default:
		return type >= 2 && type <= 5;
	}
}

/* @n elements between global and shared memory. */
static void move(const struct tile *t, struct bulk b, u8 *global, u8 *shared, u32 n)
{
	if (!(b.flags & BF_TO_SHARED)) {
		if (b.op)
			reduce(global, shared, n * t->size, b.op, reduced_as[t->m.type]);
		else
			memcpy(global, shared, n * t->size);
	} else if (t->m.type < 10) {
		memcpy(shared, global, n * t->size);
	} else {
		for (u32 k = 0; k < n; k++) {
			u32 v = loaded(((const u32 *)global)[k], t->m.type);

			memcpy(shared + 4 * k, &v, 4);
		}
	}
}

/* The box at @shared, whose memory is @smem. False after a fault. */
static bool tensor_box(struct warp *w, const struct ins *i, u32 l, struct bulk b, const struct tile *t, u64 shared, u8 *smem)
{
	u32 rows = 1, unit = t->m.swizzle == 5 ? 8 : 16, row_bytes = t->count[0] * t->size, each = unit / t->size;
	u64 outside = fill(&t->m);

	for (u32 d = 1; d < t->m.rank; d++)
		rows *= t->count[d];
	for (u32 r = 0; r < rows; r++) {
		u64 row = row_address(t, r);

		for (u32 off = 0; off < row_bytes; off += unit) {
			/* the pattern is one of shared addresses, not of places in the box */
			u8 *s = smem + (swizzle(shared + (u64)r * row_bytes + off, t->m.swizzle) - shared);
			s64 first = t->at[0] + (s64)(off / t->size), end = (s64)t->m.last[0] + 1;
			s64 lo = !row ? each : first < 0 ? -first : 0, hi = !row ? 0 : end - first < each ? end - first : each;

			if (lo < hi) {
				u64 a = row + (u64)(first + lo) * t->size;
				u8 *p = ptx_lane_range(w, i, l, SP_GLOBAL, a, (u32)(hi - lo) * t->size, t->size);

				if (!p)
					return false;
				move(t, b, p, s + lo * t->size, (u32)(hi - lo));
			}
			for (s64 k = 0; (b.flags & BF_TO_SHARED) && k < each; k++)
				if (k < lo || k >= hi)
					memcpy(s + k * t->size, &outside, t->size);
		}
	}
	return true;
}

/* One lane's copy: to or from its own address, or by mask into each rank's memory; then the mbarrier of each. */
static bool tensor_copy(struct warp *w, const struct ins *i, u32 l, struct bulk b, const struct tile *t, u32 bytes)
{
	u32 mask = b.flags & BF_MULTICAST ? ((const u16 *)opnd_ptr(w, i->r[5]))[l] : 1;

	for (; mask; mask &= mask - 1) {
		u32 rank = (u32)__builtin_ctz(mask);
		bool many = b.flags & BF_MULTICAST;
		u64 shared = many ? in_rank(reg64(w, i, 1, l), rank) : reg64(w, i, 1, l), *bar;
		u8 *smem = ptx_lane_range(w, i, l, SP_SHARED, shared, t->m.swizzle ? (bytes + 127) & ~127u : bytes, 128);

		if (!smem || !tensor_box(w, i, l, b, t, shared, smem))
			return false;
		if (!(b.flags & BF_TO_SHARED))
			continue;
		bar = ptx_lane_addr(w, i, l, SP_SHARED, many ? in_rank(reg64(w, i, 4, l), rank) : reg64(w, i, 4, l), 8);
		if (!bar)
			return false;
		ptx_mbar_complete(bar, bytes);
	}
	return true;
}

HANDLER(bulk_tensor)
{
	const struct bulk b = bulk_unpack(i->imm);
	const s32 *list = w->frame->f->ops + i->target;

	for (u32 rest = em; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct tile t = {.four = b.flags & BF_ROWS};
		u64 bytes;

		if (!read_map(w, i, l, &t.m))
			return;
		t.size = tensormap_type_size(t.m.type);
		bytes = t.size;
		for (u32 d = 0; d < t.m.rank; d++) {
			u32 step = d && t.m.step[d] ? t.m.step[d] : 1;

			t.count[d] = t.four && d ? 4 : (t.m.box[d] + step - 1) / step;
			/* five dimensions of 16 bits would wrap */
			bytes = bytes > 1u << 20 ? bytes : bytes * t.count[d];
		}
		for (u32 d = 0; d < (t.four ? 5u : b.rank); d++) {
			s32 c = ((const s32 *)opnd_ptr(w, list[d]))[l];

			if (t.four && d)
				t.rows[d - 1] = c;
			else
				t.at[d] = c;
		}
		/* What the encoding promises may have been replaced. */
		if (b.rank != t.m.rank || !bytes || bytes > 1u << 20 || (t.count[0] * t.size & 15) ||
		    (b.op && !can_reduce(b.op, t.m.type))) {
			ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0,
				  "the tensor map does not go with the copy: rank %u, box of %llu bytes (line %u)", t.m.rank,
				  (unsigned long long)bytes, i->line);
			return;
		}
		if (!tensor_copy(w, i, l, b, &t, (u32)bytes))
			return;
	}
}

static void replace(struct warp *w, const struct ins *i, u32 em, bool wide)
{
	for (u32 rest = em; rest; rest &= rest - 1) {
		static const u8 swizzle_atoms[] = {3, 4, 5, 6};
		u32 l = (u32)__builtin_ctz(rest), n = (u32)i->imm >> 8;
		struct tensormap *m = ptx_lane_range(w, i, l, (enum space)i->sub, reg64(w, i, 1, l), 128, 64);
		u64 v = wide ? reg64(w, i, 2, l) : ((const u32 *)opnd_ptr(w, i->r[2]))[l];
		bool good = true;

		/* Whether it is a map by now shows when it is used. */
		if (!m)
			return;
		switch (i->imm & 255) {
		case 0:
			m->address = v;
			good = !(v & 15);
			break;
		case 1:
			good = v < 5;
			m->rank = good ? (u8)(v + 1) : m->rank;
			break;
		case 2:
			m->box[n] = (u16)v;
			good = v && v <= 256;
			break;
		case 3:
			m->last[n] = (u32)v - 1;
			break;
		case 4:
			good = n < 4 && !(v & 15) && v < 1ull << 40;
			if (good)
				m->stride[n] = v;
			break;
		case 5:
			m->step[n] = (u8)v;
			good = v && v <= 8;
			break;
		case 6:
			good = v < TENSORMAP_TYPES;
			m->type = good ? (u8)v : m->type;
			break;
		case 7:
			good = v <= 3;
			m->swizzle = good ? (u8)v : m->swizzle;
			break;
		case 8:
			good = !v; /* no interleaved layouts here */
			break;
		case 9:
			good = v <= 1;
			m->fill_nan = (u8)v;
			break;
		default:
			good = v <= 3 && (!v || m->swizzle >= 3);
			if (good && m->swizzle >= 3)
				m->swizzle = swizzle_atoms[v];
			break;
		}
		if (!good) {
			ptx_raise(w, i, (int)l, PTX_ILLEGAL_INSTRUCTION, 0, "tensormap.replace: no field takes %llu (line %u)",
				  (unsigned long long)v, i->line);
			return;
		}
	}
}

HANDLER(replace_w)
{
	replace(w, i, em, false);
}

HANDLER(replace_d)
{
	replace(w, i, em, true);
}

const struct op_row ptx_ops_bulk[] = {
	{"bulk:", "", bulk, 0},
	{"bulk:tensor", "", bulk_tensor, 0},
	{"tensormap:w", "", replace_w, 0},
	{"tensormap:d", "", replace_d, 0},
	{NULL, NULL, NULL, 0},
};
