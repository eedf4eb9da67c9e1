/* SPDX-License-Identifier: MIT */
/* Channel descriptors: bits a channel and a kind, where the driver has one format with a number of channels. */
#include "shim/cudart/channel.h"
#include "lib/texel.h"

static const struct {
	CUarray_format format;
	enum cudaChannelFormatKind kind;
	int bits;
	unsigned int channels; /* 0: 1, 2 or 4 */
} formats[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8, 0},
	{CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16, 0},
	{CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32, 0},
	{CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8, 0},
	{CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16, 0},
	{CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32, 0},
	{CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16, 0},
	{CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32, 0},
	{CU_AD_FORMAT_UNORM_INT8X1, cudaChannelFormatKindUnsignedNormalized8X1, 8, 1},
	{CU_AD_FORMAT_UNORM_INT8X2, cudaChannelFormatKindUnsignedNormalized8X2, 8, 2},
	{CU_AD_FORMAT_UNORM_INT8X4, cudaChannelFormatKindUnsignedNormalized8X4, 8, 4},
	{CU_AD_FORMAT_UNORM_INT16X1, cudaChannelFormatKindUnsignedNormalized16X1, 16, 1},
	{CU_AD_FORMAT_UNORM_INT16X2, cudaChannelFormatKindUnsignedNormalized16X2, 16, 2},
	{CU_AD_FORMAT_UNORM_INT16X4, cudaChannelFormatKindUnsignedNormalized16X4, 16, 4},
	{CU_AD_FORMAT_SNORM_INT8X1, cudaChannelFormatKindSignedNormalized8X1, 8, 1},
	{CU_AD_FORMAT_SNORM_INT8X2, cudaChannelFormatKindSignedNormalized8X2, 8, 2},
	{CU_AD_FORMAT_SNORM_INT8X4, cudaChannelFormatKindSignedNormalized8X4, 8, 4},
	{CU_AD_FORMAT_SNORM_INT16X1, cudaChannelFormatKindSignedNormalized16X1, 16, 1},
	{CU_AD_FORMAT_SNORM_INT16X2, cudaChannelFormatKindSignedNormalized16X2, 16, 2},
	{CU_AD_FORMAT_SNORM_INT16X4, cudaChannelFormatKindSignedNormalized16X4, 16, 4},
};

cudaError_t cudart_format(const struct cudaChannelFormatDesc *d, CUarray_format *format, unsigned int *channels)
{
	const int bits[4] = {d->x, d->y, d->z, d->w};
	unsigned int n = 0;

	while (n < 4 && bits[n])
		n++;
	if (d->f == cudaChannelFormatKindNV12 || d->f > cudaChannelFormatKindSignedNormalized16X4)
		return cudaErrorNotSupported;
	for (unsigned int k = 0; k < 4; k++)
		if (bits[k] != (k < n ? bits[0] : 0))
			return cudaErrorInvalidChannelDescriptor;
	if (n != 1 && n != 2 && n != 4)
		return cudaErrorInvalidChannelDescriptor;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (formats[i].kind == d->f && formats[i].bits == bits[0] && (!formats[i].channels || formats[i].channels == n)) {
			*format = formats[i].format;
			*channels = n;
			return cudaSuccess;
		}
	return cudaErrorInvalidChannelDescriptor;
}

struct cudaChannelFormatDesc cudart_channel_desc(CUarray_format format, unsigned int channels)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (formats[i].format == format) {
			int b = formats[i].bits;

			return cudaCreateChannelDesc(b, channels > 1 ? b : 0, channels > 2 ? b : 0, channels > 3 ? b : 0,
						     formats[i].kind);
		}
	return cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindNone);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

cudaError_t cudart_array(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *d, size_t *texel)
{
	struct texel_format f;
	CUresult r = drv.cuArray3DGetDescriptor(d, (CUarray)array);

	if (r)
		return cudart_error(r);
	r = texel_format(d->Format, d->NumChannels, &f);
	*texel = r ? 0 : f.bytes;
	return cudart_error(r);
}
