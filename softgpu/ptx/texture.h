/* SPDX-License-Identifier: MIT */
/* Texture and surface objects as kernels see them: the image in memory, how it is sampled, and the table of objects. */
#ifndef SOFTGPU_PTX_TEXTURE_H
#define SOFTGPU_PTX_TEXTURE_H

#include "softgpu/ptx/types.h"

#define PTX_LEVELS 18u /* of a mipmap of 131072 texels */

enum ptx_channel { CH_U8, CH_S8, CH_U16, CH_S16, CH_U32, CH_S32, CH_F16, CH_F32 };
enum ptx_address_mode { ADDR_WRAP, ADDR_CLAMP, ADDR_MIRROR, ADDR_BORDER };

/* One level in memory; what it has no dimension for is 1. Layers and faces are planes like slices. */
struct ptx_image {
	u64 base, pitch, plane; /* bytes */
	u32 width, height, depth;
};

struct ptx_texture {
	u8 surface;		     /* else a texture */
	u8 channel, channels, texel; /* enum ptx_channel, 1 to 4, bytes */
	u8 dims;		     /* 1 to 3, without layers and faces */
	u8 layered, cubemap;
	u8 linear_memory; /* texels out of range are zero */
	u8 stays;	  /* the memory lives as long as the object: no access needs a check */
	/* the sampler */
	u8 normalized, linear, linear_mips;
	u8 promote; /* integers of 8 and 16 bits become floats in [0, 1] or [-1, 1] */
	u8 srgb, seamless;
	u8 address[3];
	u32 nlevels;
	f32 bias, min_level, max_level;
	u32 border[4]; /* as read */
	struct ptx_image level[PTX_LEVELS];
};

/* The 64-bit value that kernels get for a copy of @t, 0 when there is no memory; and its end. */
u64 ptx_texture_enter(const struct ptx_texture *t);
void ptx_texture_leave(u64 object);
/* NULL when @object names none. What a launch found stays readable until it ends: see ptx_texture_launches(). */
const struct ptx_texture *ptx_texture_find(u64 object);
/* Called around each launch, with 1 and −1. */
void ptx_texture_launches(int step);

/* A fetch by the lanes of a warp: each pointer is to a value a lane. */
struct tex_fetch {
	const f32 *at[3];
	const s32 *texel[3];  /* instead of at */
	const s32 *offset[3]; /* in texels; NULL: none */
	const u32 *layer;
	const f32 *lod; /* NULL: 0 */
	u8 dims;	/* coordinates used */
	u8 integer;	/* texel, not at */
	u8 cube;	/* at is a direction */
	u8 layered;	/* layer counts */
	u8 base_level;	/* whatever lod, bias and clamps say */
	u8 gather;	/* 1 + component of the four texels around; 0: a fetch */
};

struct tex_fault {
	u32 lane;
	u64 addr;
};

/*
 * Four channels, or the gathered texels, for each lane in @mask: bits of floats where the texture reads as floats. False: there
 * is no memory.
 */
bool ptx_texture_fetch(const struct ptx_texture *t, const struct tex_fetch *q, u32 mask, u32 (*out)[4], struct tex_fault *bad);

/* A texel's channels to and from memory, as formatted surface accesses have them. */
void ptx_texel_read(const struct ptx_texture *t, const void *mem, u32 out[4]);
void ptx_texel_write(const struct ptx_texture *t, void *mem, const u32 in[4]);
bool ptx_reads_float(const struct ptx_texture *t);

#endif
