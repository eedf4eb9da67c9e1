/* SPDX-License-Identifier: MIT */
/* What a CUarray_format means for memory and for reading. Whoever includes this has cuda.h. */
#ifndef RGPU_LIB_TEXEL_H
#define RGPU_LIB_TEXEL_H

#include <stdbool.h>
#include <stddef.h>

enum texel_channel { TEXEL_U8, TEXEL_S8, TEXEL_U16, TEXEL_S16, TEXEL_U32, TEXEL_S32, TEXEL_F16, TEXEL_F32 };

struct texel_format {
	enum texel_channel channel;
	unsigned int bytes; /* of a texel */
	bool norm;	    /* always reads as normalised floats */
};

/* INVALID_VALUE for no format, NOT_SUPPORTED for the compressed, planar and packed ones. */
static inline CUresult texel_format(CUarray_format format, unsigned int channels, struct texel_format *out)
{
	static const struct {
		CUarray_format format;
		enum texel_channel channel;
		unsigned int bytes, channels;
	} known[] = {
		{CU_AD_FORMAT_UNSIGNED_INT8, TEXEL_U8, 1, 0},	{CU_AD_FORMAT_UNSIGNED_INT16, TEXEL_U16, 2, 0},
		{CU_AD_FORMAT_UNSIGNED_INT32, TEXEL_U32, 4, 0}, {CU_AD_FORMAT_SIGNED_INT8, TEXEL_S8, 1, 0},
		{CU_AD_FORMAT_SIGNED_INT16, TEXEL_S16, 2, 0},	{CU_AD_FORMAT_SIGNED_INT32, TEXEL_S32, 4, 0},
		{CU_AD_FORMAT_HALF, TEXEL_F16, 2, 0},		{CU_AD_FORMAT_FLOAT, TEXEL_F32, 4, 0},
		{CU_AD_FORMAT_UNORM_INT8X1, TEXEL_U8, 1, 1},	{CU_AD_FORMAT_UNORM_INT8X2, TEXEL_U8, 1, 2},
		{CU_AD_FORMAT_UNORM_INT8X4, TEXEL_U8, 1, 4},	{CU_AD_FORMAT_UNORM_INT16X1, TEXEL_U16, 2, 1},
		{CU_AD_FORMAT_UNORM_INT16X2, TEXEL_U16, 2, 2},	{CU_AD_FORMAT_UNORM_INT16X4, TEXEL_U16, 2, 4},
		{CU_AD_FORMAT_SNORM_INT8X1, TEXEL_S8, 1, 1},	{CU_AD_FORMAT_SNORM_INT8X2, TEXEL_S8, 1, 2},
		{CU_AD_FORMAT_SNORM_INT8X4, TEXEL_S8, 1, 4},	{CU_AD_FORMAT_SNORM_INT16X1, TEXEL_S16, 2, 1},
		{CU_AD_FORMAT_SNORM_INT16X2, TEXEL_S16, 2, 2},	{CU_AD_FORMAT_SNORM_INT16X4, TEXEL_S16, 2, 4},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].format != format)
			continue;
		if ((channels != 1 && channels != 2 && channels != 4) || (known[i].channels && known[i].channels != channels))
			return CUDA_ERROR_INVALID_VALUE;
		*out = (struct texel_format){known[i].channel, known[i].bytes * channels, known[i].channels != 0};
		return CUDA_SUCCESS;
	}
	if ((format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar) ||
	    format == CU_AD_FORMAT_UNORM_INT_101010_2)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Levels of a mipmap down to one texel; layers and faces have no levels of their own. */
static inline unsigned int mipmap_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t most = d->Width > d->Height ? d->Width : d->Height;
	unsigned int n = 1;

	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > most)
		most = d->Depth;
	while (n < 64 && most >> n)
		n++;
	return n;
}

static inline CUDA_ARRAY3D_DESCRIPTOR mipmap_level(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR l = *d;

	l.Width = d->Width && !(d->Width >> level) ? 1 : d->Width >> level;
	l.Height = d->Height && !(d->Height >> level) ? 1 : d->Height >> level;
	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		l.Depth = d->Depth && !(d->Depth >> level) ? 1 : d->Depth >> level;
	return l;
}

#endif
