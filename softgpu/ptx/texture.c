/* SPDX-License-Identifier: MIT */
/* Texture fetching as the CUDA programming guide's appendix on it defines it: addressing, filters, formats, mipmaps. */
#include <math.h>

#include "softgpu/arena.h"
#include "softgpu/ptx/half.h"
#include "softgpu/ptx/texture.h"

/* ---- Formats ---- */

static bool promoted(const struct ptx_texture *t)
{
	return t->promote && t->channel <= CH_S16;
}

bool ptx_reads_float(const struct ptx_texture *t)
{
	return t->channel >= CH_F16 || promoted(t);
}

static u32 channel_size(u32 channel)
{
	return channel <= CH_S8 ? 1 : channel == CH_U32 || channel == CH_S32 || channel == CH_F32 ? 4 : 2;
}

static f32 srgb_to_linear(f32 v)
{
	return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

/* A channel's integer as it is, or as the float that it stands for. */
static inline u32 from_u8(const struct ptx_texture *t, u8 v, u32 k)
{
	f32 f = (f32)v / 255.0f;

	return !promoted(t) ? v : f32_bits(t->srgb && k < 3 ? srgb_to_linear(f) : f);
}

static inline u32 from_s8(const struct ptx_texture *t, s8 v)
{
	f32 f = (f32)v / 127.0f;

	return promoted(t) ? f32_bits(f < -1 ? -1 : f) : (u32)(s32)v;
}

static inline u32 from_u16(const struct ptx_texture *t, u16 v)
{
	return promoted(t) ? f32_bits((f32)v / 65535.0f) : v;
}

static inline u32 from_s16(const struct ptx_texture *t, s16 v)
{
	f32 f = (f32)v / 32767.0f;

	return promoted(t) ? f32_bits(f < -1 ? -1 : f) : (u32)(s32)v;
}

/* What a texel does not have is 0, and 1 for the fourth channel. */
void ptx_texel_read(const struct ptx_texture *t, const void *mem, u32 out[4])
{
	u16 h[4];
	u32 k, n = t->channels;

	out[0] = out[1] = out[2] = 0;
	out[3] = ptx_reads_float(t) ? f32_bits(1.0f) : 1;
	switch (t->channel) {
	case CH_U8:
		for (k = 0; k < n; k++)
			out[k] = from_u8(t, ((const u8 *)mem)[k], k);
		return;
	case CH_S8:
		for (k = 0; k < n; k++)
			out[k] = from_s8(t, ((const s8 *)mem)[k]);
		return;
	case CH_U16:
	case CH_S16:
	case CH_F16:
		memcpy(h, mem, n * 2);
		for (k = 0; k < n; k++)
			out[k] = t->channel == CH_U16	? from_u16(t, h[k])
				 : t->channel == CH_S16 ? from_s16(t, (s16)h[k])
							: f32_bits(f16_to_f32(h[k]));
		return;
	default:
		memcpy(out, mem, n * 4);
	}
}

static s64 clamp_int(s64 v, s64 lo, s64 hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* A float in [-1, 1] as a normalised integer, to nearest. */
static u32 to_norm(u32 bits, f32 scale, f32 lo)
{
	f32 f = bits_f32(bits);

	f = f > lo ? (f < 1 ? f : 1) : f == f ? lo : 0;
	return (u32)(s32)rintf(f * scale);
}

void ptx_texel_write(const struct ptx_texture *t, void *mem, const u32 in[4])
{
	u32 size = channel_size(t->channel);

	for (u32 k = 0; k < t->channels; k++) {
		u32 v = in[k];

		switch (t->channel) {
		case CH_U8:
			v = promoted(t) ? to_norm(v, 255, 0) : v > 255 ? 255 : v;
			break;
		case CH_S8:
			v = promoted(t) ? to_norm(v, 127, -1) : (u32)clamp_int((s32)v, -128, 127);
			break;
		case CH_U16:
			v = promoted(t) ? to_norm(v, 65535, 0) : v > 65535 ? 65535 : v;
			break;
		case CH_S16:
			v = promoted(t) ? to_norm(v, 32767, -1) : (u32)clamp_int((s32)v, -32768, 32767);
			break;
		case CH_F16:
			v = f32_to_f16(bits_f32(v));
			break;
		default:
			break;
		}
		memcpy((u8 *)mem + k * size, &v, size);
	}
}

/* ---- Coordinates ---- */

struct axis {
	s64 i[2]; /* texels */
	f32 a;	  /* weight of the second one */
};

/* Where texel @i is, -1: outside. */
static s64 place(s64 i, s64 n, enum ptx_address_mode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case ADDR_WRAP:
		i %= n;
		return i < 0 ? i + n : i;
	case ADDR_MIRROR:
		i %= 2 * n;
		i = i < 0 ? i + 2 * n : i;
		return i < n ? i : 2 * n - 1 - i;
	case ADDR_BORDER:
		return -1;
	default:
		return clamp_int(i, 0, n - 1);
	}
}

/* Wrapping and mirroring need normalised coordinates; without, these modes are clamping. */
static enum ptx_address_mode mode_of(const struct ptx_texture *t, u32 d)
{
	enum ptx_address_mode m = (enum ptx_address_mode)t->address[d];

	if (t->linear_memory)
		return ADDR_BORDER;
	return !t->normalized && (m == ADDR_WRAP || m == ADDR_MIRROR) ? ADDR_CLAMP : m;
}

/*
 * Texel space as a double, where a coordinate and a size multiply exactly. NaN is 0. What is far outside is held there: it
 * is the edge or the border all the same; for wrapping and mirroring the period is taken off.
 */
static f64 texel_space(bool normalized, f32 x, u32 n, enum ptx_address_mode mode, s32 offset)
{
	f64 u = (normalized ? (f64)x * n : (f64)x) + offset, period = mode == ADDR_MIRROR ? 2.0 * n : n;

	if (mode == ADDR_WRAP || mode == ADDR_MIRROR) {
		if (!(u >= 0 && u < period))
			u -= period * floor(u / period);
		if (mode == ADDR_MIRROR && u >= n)
			u = period - u;
	}
	if (u != u)
		u = 0;
	return u < -0x1p30 ? -0x1p30 : u > 0x1p30 ? 0x1p30 : u;
}

/* Filter weights have 8 bits of fraction. */
static f32 fraction(f64 v, s64 *whole)
{
	s64 fixed = (s64)floor(v * 256 + 0.5);

	*whole = fixed >> 8;
	return (f32)(fixed & 255) / 256.0f;
}

static inline void find_axis(const struct ptx_texture *t, const struct tex_fetch *q, f32 at, u32 d, u32 n, bool linear,
			     struct axis *ax)
{
	enum ptx_address_mode mode = mode_of(t, d);
	s64 i;

	ax->a = 0;
	if (q->integer) {
		i = (s64)q->texel[d] + q->offset[d];
	} else {
		f64 u = texel_space(t->normalized || q->cube, at, n, mode, q->offset[d]);

		if (linear)
			ax->a = fraction(u - 0.5, &i);
		else
			i = (s64)floor(u);
	}
	ax->i[0] = place(i, n, mode);
	if (linear)
		ax->i[1] = place(i + 1, n, mode);
}

/* ---- Cubes ---- */

/* The face that a direction meets, and where, in [-1, 1]. */
static u32 cube_face(const f32 v[3], f32 *s, f32 *t)
{
	f32 x = v[0], y = v[1], z = v[2], ax = fabsf(x), ay = fabsf(y), az = fabsf(z);

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
	*i = clamp_int((s64)floorf((s + 1) / 2 * (f32)n), 0, n - 1);
	*j = clamp_int((s64)floorf((t + 1) / 2 * (f32)n), 0, n - 1);
}

/* ---- Fetching ---- */

struct footprint {
	const struct ptx_texture *t;
	const struct ptx_image *im;
	struct axis ax[3];
	u64 *bad;
};

static inline bool texel(const struct footprint *f, s64 i, s64 j, s64 k, u32 out[4])
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
	if (!t->stays && !softgpu_mapped(addr, t->texel)) {
		*f->bad = addr;
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

/* The four texels around, [j][i], or those that have a weight. A cube's edges lead to its other faces; at a corner there are only
 * three texels. */
static bool quad(const struct footprint *f, s64 plane, bool all, bool seamless, u32 face, u32 q[2][2][4])
{
	s64 n = f->im->width, missing = -1;

	for (s64 c = 0; c < 4; c++) {
		s64 i = f->ax[0].i[c & 1], j = f->ax[1].i[c >> 1], k = plane;

		if (!all && (((c & 1) && !f->ax[0].a) || ((c >> 1) && !f->ax[1].a)))
			continue;
		if (seamless) {
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

/* From @x to @y, the first @n channels; at weight 0 the second one does not count, whatever it is. */
static inline void mix(const u32 x[4], const u32 y[4], f32 a, u32 n, u32 out[4])
{
	if (!a) {
		memmove(out, x, 16);
		return;
	}
	for (u32 ch = 0; ch < n; ch++)
		out[ch] = f32_bits((1 - a) * bits_f32(x[ch]) + a * bits_f32(y[ch]));
	for (u32 ch = n; ch < 4; ch++)
		out[ch] = x[ch];
}

static inline void blend(const u32 q[2][2][4], f32 a, f32 b, u32 n, u32 out[4])
{
	u32 below[4];

	mix(q[0][0], q[0][1], a, n, out);
	if (!b)
		return;
	mix(q[1][0], q[1][1], a, n, below);
	mix(out, below, b, n, out);
}

static bool fetch_level(const struct ptx_texture *t, const struct tex_fetch *q, u32 level, u32 out[4], u64 *bad)
{
	struct footprint f = {.t = t, .im = &t->level[level], .bad = bad};
	bool linear = (t->linear && ptx_reads_float(t) && !q->integer) || q->gather, seamless = false;
	const u32 size[3] = {f.im->width, f.im->height, f.im->depth};
	u32 face = 0, dims = q->dims < t->dims ? q->dims : t->dims, quads[2][2][2][4];
	/* A border has four channels of its own. */
	const u32 n = (t->address[0] | t->address[1] | t->address[2]) == ADDR_BORDER ? 4 : t->channels;
	f32 st[2];
	const f32 *at = q->at;
	s64 plane = 0;

	if (t->layered) {
		u32 layers = t->cubemap ? f.im->depth / 6 : f.im->depth;

		plane = q->layered ? (q->layer < layers ? q->layer : layers - 1) : 0;
	}
	if (q->cube) {
		face = cube_face(q->at, &st[0], &st[1]);
		plane = t->cubemap ? plane * 6 + face : plane;
		st[0] = (st[0] + 1) / 2;
		st[1] = (st[1] + 1) / 2;
		at = st;
		dims = 2;
		seamless = t->seamless && t->cubemap && linear;
	}
	for (u32 d = 0; d < dims; d++) {
		if (seamless && d < 2) {
			s64 i;

			f.ax[d].a = fraction(texel_space(true, at[d], size[d], ADDR_CLAMP, 0) - 0.5, &i);
			f.ax[d].i[0] = i;
			f.ax[d].i[1] = i + 1;
		} else {
			find_axis(t, q, at[d], d, size[d], linear, &f.ax[d]);
		}
	}
	if (!linear)
		return texel(&f, f.ax[0].i[0], f.ax[1].i[0], t->dims == 3 ? f.ax[2].i[0] : plane, out);
	if (q->gather) {
		static const u8 order[4][2] = {{1, 0}, {1, 1}, {0, 1}, {0, 0}}; /* row, column */

		if (!quad(&f, plane, true, seamless, face, quads[0]))
			return false;
		for (u32 c = 0; c < 4; c++)
			out[c] = quads[0][order[c][0]][order[c][1]][q->gather - 1];
		return true;
	}
	if (!quad(&f, t->dims == 3 ? f.ax[2].i[0] : plane, seamless, seamless, face, quads[0]))
		return false;
	blend(quads[0], f.ax[0].a, f.ax[1].a, n, out);
	if (t->dims == 3 && f.ax[2].a) {
		u32 far[4];

		if (!quad(&f, f.ax[2].i[1], false, false, 0, quads[1]))
			return false;
		blend(quads[1], f.ax[0].a, f.ax[1].a, n, far);
		mix(out, far, f.ax[2].a, n, out);
	}
	return true;
}

bool ptx_texture_fetch(const struct ptx_texture *t, const struct tex_fetch *q, u32 out[4], u64 *bad)
{
	f32 lod = q->lod + t->bias, top = (f32)(t->nlevels - 1);
	u32 level, next[4];
	f32 a = 0;

	if (q->base_level || t->nlevels == 1)
		return fetch_level(t, q, 0, out, bad);
	lod = lod > t->min_level ? lod : t->min_level; /* NaN is the least */
	lod = lod < t->max_level ? lod : t->max_level;
	lod = lod > 0 ? (lod < top ? lod : top) : 0;
	if (t->linear_mips) {
		s64 whole;

		a = fraction((f64)lod, &whole);
		level = (u32)whole;
	} else {
		level = (u32)floorf(lod + 0.5f);
	}
	if (!fetch_level(t, q, level, out, bad))
		return false;
	if (!a || !ptx_reads_float(t))
		return true;
	if (!fetch_level(t, q, level + 1, next, bad))
		return false;
	mix(out, next, a, 4, out);
	return true;
}
