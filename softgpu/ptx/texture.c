/* SPDX-License-Identifier: MIT */
/* Texture fetching as the CUDA programming guide's appendix on it defines it: addressing, filters, formats, mipmaps. */
#include <math.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/texture.h"

/* ---- Coordinates: for all lanes at once, since the arithmetic of one alone waits for itself ---- */

struct axis {
	s32 i[2][WARP]; /* texels */
	f32 a[WARP];	/* weight of the second one */
};

enum { ADDR_NONE = ADDR_BORDER + 1 }; /* as it is: who asks deals with the outside */

/* Where texel @i is, one step outside at most where the mode wraps or mirrors; -1: outside. */
static inline s32 place(s32 i, s32 n, u32 mode)
{
	switch (mode) {
	case ADDR_WRAP:
		return i < 0 ? i + n : i < n ? i : i - n;
	case ADDR_MIRROR:
		return i < 0 ? -1 - i : i < n ? i : 2 * n - 1 - i;
	case ADDR_BORDER:
		return i >= 0 && i < n ? i : -1;
	case ADDR_CLAMP:
		return i < 0 ? 0 : i < n ? i : n - 1;
	default:
		return i;
	}
}

/* Wrapping and mirroring need normalised coordinates; without, these modes are clamping. */
static u32 mode_of(const struct ptx_texture *t, u32 d)
{
	u32 m = t->address[d];

	if (t->linear_memory)
		return ADDR_BORDER;
	return !t->normalized && (m == ADDR_WRAP || m == ADDR_MIRROR) ? ADDR_CLAMP : m;
}

/*
 * In texel space as doubles, where a coordinate and a size multiply exactly. NaN is 0. What is far outside is held there: it
 * is the edge or the border all the same; for wrapping and mirroring the period is taken off. Filter weights have 8 bits of
 * fraction.
 */
static inline __attribute__((always_inline)) void span(const f32 *x, const s32 *offset, f64 scale, s32 n, u32 mode, bool linear,
						       struct axis *ax)
{
	const f64 size = n, period = mode == ADDR_MIRROR ? 2 * size : size, most = 0x1p22;

	for (u32 l = 0; l < WARP; l++) {
		f64 u = (f64)x[l] * scale + offset[l];
		s32 i, fixed;

		if (mode == ADDR_WRAP || mode == ADDR_MIRROR)
			u -= period * floor(u / period);
		/* a large coordinate and its offset do not divide exactly: no texel has a check behind this */
		if (mode == ADDR_WRAP || mode == ADDR_MIRROR)
			u = u < 0 ? 0 : u > period ? period : u;
		if (mode == ADDR_MIRROR)
			u = u >= size ? period - u : u;
		u = u == u ? u : 0;
		u = u < -most ? -most : u;
		u = u > most ? most : u;
		if (linear) {
			fixed = (s32)floor(u * 256 - 127.5);
			i = fixed >> 8;
			ax->a[l] = (f32)(fixed & 255) / 256.0f;
			ax->i[1][l] = place(i + 1, n, mode);
		} else {
			i = (s32)floor(u);
		}
		ax->i[0][l] = place(i, n, mode);
	}
}

static void integer_axis(const struct tex_fetch *q, u32 d, s64 n, u32 mode, struct axis *ax)
{
	for (u32 l = 0; l < WARP; l++) {
		s64 i = (s64)q->texel[d][l] + (q->offset[d] ? q->offset[d][l] : 0), period = mode == ADDR_MIRROR ? 2 * n : n;

		if (mode == ADDR_WRAP || mode == ADDR_MIRROR)
			i = (i % period + period) % period;
		i = i < -1 ? -1 : i > 2 * n ? 2 * n : i;
		ax->i[0][l] = place((s32)i, (s32)n, mode);
	}
}

static void find_axis(const struct ptx_texture *t, const struct tex_fetch *q, const f32 *at, u32 d, u32 n, bool linear, u32 mode,
		      struct axis *ax)
{
	static const s32 none[WARP];
	const s32 *offset = q->offset[d] ? q->offset[d] : none;
	f64 scale = t->normalized || q->cube ? n : 1;

#define SPAN(m)                                                                                                                  \
	case m:                                                                                                                  \
		if (linear)                                                                                                      \
			span(at, offset, scale, (s32)n, m, true, ax);                                                            \
		else                                                                                                             \
			span(at, offset, scale, (s32)n, m, false, ax);                                                           \
		break
	if (q->integer) {
		integer_axis(q, d, n, mode, ax);
		return;
	}
	switch (mode) {
		SPAN(ADDR_WRAP);
		SPAN(ADDR_MIRROR);
		SPAN(ADDR_BORDER);
		SPAN(ADDR_NONE);
	default:
		if (linear)
			span(at, offset, scale, (s32)n, ADDR_CLAMP, true, ax);
		else
			span(at, offset, scale, (s32)n, ADDR_CLAMP, false, ax);
	}
#undef SPAN
}

/* ---- Cubes ---- */

/* The face that a direction meets, and where, in [-1, 1]. */
static u32 cube_face(const f32 v[3], f32 *s, f32 *t)
{
	/* NaN is 0, as in span() */
	f32 x = v[0] == v[0] ? v[0] : 0, y = v[1] == v[1] ? v[1] : 0, z = v[2] == v[2] ? v[2] : 0;
	f32 ax = fabsf(x), ay = fabsf(y), az = fabsf(z);

	if (ax >= ay && ax >= az) {
		*s = ax ? (x < 0 ? z : -z) / ax : 0;
		*t = ax ? -y / ax : 0;
		return x < 0 ? 1 : 0;
	}
	if (ay >= az) {
		*s = x / ay;
		*t = (y < 0 ? -z : z) / ay;
		return y < 0 ? 3 : 2;
	}
	*s = (z < 0 ? -x : x) / az;
	*t = -y / az;
	return z < 0 ? 5 : 4;
}

static void cube_direction(u32 face, f32 m, f32 s, f32 t, f32 v[3])
{
	const f32 dir[6][3] = {{m, -t, -s}, {-m, -t, s}, {s, m, t}, {s, -m, -t}, {s, -t, m}, {-s, -t, -m}};

	memcpy(v, dir[face], sizeof(dir[0]));
}

/* The texel on the neighbouring face that (@i, @j), one step outside of @face, folds onto. */
static void fold(u32 n, u32 *face, s64 *i, s64 *j)
{
	f32 s = (f32)(2 * *i + 1) / (f32)n - 1, t = (f32)(2 * *j + 1) / (f32)n - 1, v[3];

	cube_direction(*face, 1 - 1 / (f32)n, s < -1 ? -1 : s > 1 ? 1 : s, t < -1 ? -1 : t > 1 ? 1 : t, v);
	*face = cube_face(v, &s, &t);
	*i = place((s32)floorf((s + 1) / 2 * (f32)n), (s32)n, ADDR_CLAMP);
	*j = place((s32)floorf((t + 1) / 2 * (f32)n), (s32)n, ADDR_CLAMP);
}

/* ---- Fetching ---- */

/* One lane's: texels on each axis, and the weight of the second. */
struct footprint {
	const struct ptx_texture *t;
	const struct ptx_image *im;
	s32 i[3][2];
	f32 a[3];
	bool mapped; /* all of the image is: no texel needs a check */
	u64 bad;
};

static inline bool texel(struct footprint *f, s64 i, s64 j, s64 k, u32 out[4])
{
	const struct ptx_texture *t = f->t;
	u64 addr = f->im->base + (u64)k * f->im->plane + (u64)j * f->im->pitch + (u64)i * t->texel;

	if (i < 0 || j < 0 || k < 0) {
		if (t->linear_memory)
			memset(out, 0, 16);
		else
			memcpy(out, t->border, 16);
		return true;
	}
	if (!f->mapped && !softgpu_mapped(addr, t->texel)) {
		f->bad = addr;
		return false;
	}
	if (t->channel == CH_F32 && t->channels == 1) { /* the most frequent one */
		memcpy(out, (const void *)(uintptr_t)addr, 4);
		out[1] = out[2] = 0;
		out[3] = f32_bits(1.0f);
	} else {
		ptx_texel_read(t, (const void *)(uintptr_t)addr, out);
	}
	return true;
}

/* The four texels around, [j][i], or those that have a weight. */
static inline bool quad(struct footprint *f, s64 plane, bool all, u32 q[2][2][4])
{
	bool right = all || f->a[0], below = all || f->a[1];

	return texel(f, f->i[0][0], f->i[1][0], plane, q[0][0]) && (!right || texel(f, f->i[0][1], f->i[1][0], plane, q[0][1])) &&
	       (!below || texel(f, f->i[0][0], f->i[1][1], plane, q[1][0])) &&
	       (!right || !below || texel(f, f->i[0][1], f->i[1][1], plane, q[1][1]));
}

/* All four, where a cube's edges lead to its other faces; at a corner there are only three texels. */
static bool seamless_quad(struct footprint *f, s64 plane, u32 face, u32 q[2][2][4])
{
	s64 n = f->im->width, missing = -1;

	for (s64 c = 0; c < 4; c++) {
		s64 i = f->i[0][c & 1], j = f->i[1][c >> 1], k = plane;
		bool oi = i < 0 || i >= n, oj = j < 0 || j >= n;
		u32 to = face;

		if (oi && oj) {
			missing = c;
			continue;
		}
		if (oi || oj) {
			fold((u32)n, &to, &i, &j);
			k = plane - face + to;
		}
		if (!texel(f, i, j, k, q[c >> 1][c & 1]))
			return false;
	}
	for (u32 ch = 0; missing >= 0 && ch < 4; ch++) {
		f32 sum = 0;

		for (s64 c = 0; c < 4; c++)
			sum += c == missing ? 0 : bits_f32(q[c >> 1][c & 1][ch]);
		q[missing >> 1][missing & 1][ch] = f32_bits(sum / 3);
	}
	return true;
}

/* The first @n channels from @x to @y; at weight 0 the second one does not count, whatever it is. */
static inline void mix(const u32 x[4], const u32 y[4], f32 a, u32 n, u32 out[4])
{
	for (u32 ch = 0; ch < n; ch++)
		out[ch] = a ? f32_bits((1 - a) * bits_f32(x[ch]) + a * bits_f32(y[ch])) : x[ch];
}

static inline void blend(const u32 q[2][2][4], f32 a, f32 b, u32 n, u32 out[4])
{
	u32 below[4];

	mix(q[0][0], q[0][1], a, n, out);
	if (b) {
		mix(q[1][0], q[1][1], a, n, below);
		mix(out, below, b, n, out);
	}
	for (u32 ch = n; ch < 4; ch++)
		out[ch] = q[0][0][ch];
}

/* One lane of fetch_level(). */
static inline bool fetch_lane(struct footprint *f, const struct tex_fetch *q, s64 plane, bool linear, bool seamless, u32 face,
			      u32 out[4])
{
	static const u8 order[4][2] = {{1, 0}, {1, 1}, {0, 1}, {0, 0}}; /* of gathered texels: row, column */
	const struct ptx_texture *t = f->t;
	/* A border has four channels of its own. */
	const u32 n = (t->address[0] | t->address[1] | t->address[2]) == ADDR_BORDER ? 4 : t->channels;
	u32 quads[2][2][2][4], far[4];

	if (t->dims == 3)
		plane = f->i[2][0];
	if (!linear)
		return texel(f, f->i[0][0], f->i[1][0], plane, out);
	if (seamless ? !seamless_quad(f, plane, face, quads[0]) : !quad(f, plane, q->gather, quads[0]))
		return false;
	if (q->gather) {
		for (u32 c = 0; c < 4; c++)
			out[c] = quads[0][order[c][0]][order[c][1]][q->gather - 1];
		return true;
	}
	blend(quads[0], f->a[0], f->a[1], n, out);
	if (t->dims == 3 && f->a[2]) {
		if (!quad(f, f->i[2][1], false, quads[1]))
			return false;
		blend(quads[1], f->a[0], f->a[1], n, far);
		mix(out, far, f->a[2], n, out);
	}
	return true;
}

/* Linear memory up to this is looked at as a whole: one look at each granule, where each lane's texels have one each. */
#define WHOLE_MAX (64ull << 20)

static bool fetch_level(const struct ptx_texture *t, const struct tex_fetch *q, u32 level, u32 mask, u32 (*out)[4],
			struct tex_fault *bad)
{
	const struct ptx_image *im = &t->level[level];
	const u32 size[3] = {im->width, im->height, im->depth}, layers = t->cubemap ? im->depth / 6 : im->depth;
	bool linear = (t->linear && ptx_reads_float(t) && !q->integer) || q->gather;
	bool seamless = q->cube && t->seamless && t->cubemap && linear;
	u32 dims = q->cube ? 2 : q->dims < t->dims ? q->dims : t->dims, face[WARP] = {0};
	_Alignas(64) f32 st[2][WARP] = {{0}};
	const f32 *at[3] = {q->at[0], q->at[1], q->at[2]};
	bool mapped = t->stays || (im->plane <= WHOLE_MAX && softgpu_mapped(im->base, im->plane));
	struct axis ax[3];

	for (u32 rest = q->cube ? mask : 0; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);

		face[l] = cube_face((f32[3]){q->at[0][l], q->at[1][l], q->at[2][l]}, &st[0][l], &st[1][l]);
		st[0][l] = (st[0][l] + 1) / 2;
		st[1][l] = (st[1][l] + 1) / 2;
		at[0] = st[0];
		at[1] = st[1];
	}
	for (u32 d = 0; d < dims; d++)
		find_axis(t, q, at[d], d, size[d], linear, seamless ? (u32)ADDR_NONE : mode_of(t, d), &ax[d]);
	for (u32 rest = mask; rest; rest &= rest - 1) {
		u32 l = (u32)__builtin_ctz(rest);
		struct footprint f = {.t = t, .im = im, .mapped = mapped};
		s64 plane = 0;

		for (u32 d = 0; d < dims; d++) {
			f.i[d][0] = ax[d].i[0][l];
			if (linear) {
				f.i[d][1] = ax[d].i[1][l];
				f.a[d] = ax[d].a[l];
			}
		}
		if (t->layered && q->layered)
			plane = q->layer[l] < layers ? q->layer[l] : layers - 1;
		if (q->cube && t->cubemap)
			plane = plane * 6 + face[l];
		if (!fetch_lane(&f, q, plane, linear, seamless, face[l], out[l])) {
			*bad = (struct tex_fault){l, f.bad};
			return false;
		}
	}
	return true;
}

/* The level of one lane, and the weight of the next one. */
static u32 level_of(const struct ptx_texture *t, f32 lod, f32 *a)
{
	f32 top = (f32)(t->nlevels - 1);
	u32 fixed;

	lod += t->bias;
	lod = lod > t->min_level ? lod : t->min_level; /* NaN is the least */
	lod = lod < t->max_level ? lod : t->max_level;
	lod = lod > 0 ? (lod < top ? lod : top) : 0;
	*a = 0;
	if (!t->linear_mips)
		return (u32)floorf(lod + 0.5f);
	fixed = (u32)floorf(lod * 256 + 0.5f);
	*a = ptx_reads_float(t) ? (f32)(fixed & 255) / 256.0f : 0;
	return fixed >> 8;
}

bool ptx_texture_fetch(const struct ptx_texture *t, const struct tex_fetch *q, u32 mask, u32 (*out)[4], struct tex_fault *bad)
{
	u32 level[WARP], next[WARP][4];
	f32 a[WARP];

	if (q->base_level || t->nlevels == 1)
		return fetch_level(t, q, 0, mask, out, bad);
	for (u32 l = 0; l < WARP; l++)
		level[l] = level_of(t, q->lod ? q->lod[l] : 0, &a[l]);
	while (mask) {
		u32 first = level[__builtin_ctz(mask)], same = 0, mixed = 0;

		for (u32 l = 0; l < WARP; l++) {
			same |= (u32)(level[l] == first) << l;
			mixed |= (u32)(level[l] == first && a[l] != 0) << l;
		}
		same &= mask;
		mixed &= mask;
		mask &= ~same;
		if (!fetch_level(t, q, first, same, out, bad) || (mixed && !fetch_level(t, q, first + 1, mixed, next, bad)))
			return false;
		for (; mixed; mixed &= mixed - 1) {
			u32 l = (u32)__builtin_ctz(mixed);

			mix(out[l], next[l], a[l], 4, out[l]);
		}
	}
	return true;
}
