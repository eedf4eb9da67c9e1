/* SPDX-License-Identifier: MIT */
/* Texels in memory: all formats, read as integers or floats, and written from them. */
#include <math.h>

#include "softgpu/ptx/half.h"
#include "softgpu/ptx/texture.h"

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
