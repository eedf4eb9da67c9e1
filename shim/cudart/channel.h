/* SPDX-License-Identifier: MIT */
/* Channel descriptors of the runtime and formats of the driver, both ways. */
#ifndef RGPU_CUDART_CHANNEL_H
#define RGPU_CUDART_CHANNEL_H

#include "shim/cudart/cudart.h"

/* cudaErrorInvalidChannelDescriptor, or cudaErrorNotSupported for compressed and planar formats. */
cudaError_t cudart_format(const struct cudaChannelFormatDesc *d, CUarray_format *format, unsigned int *channels);
struct cudaChannelFormatDesc cudart_channel_desc(CUarray_format format, unsigned int channels);

/* What the runtime knows of an array through the driver; *texel: bytes. Not remembered yet. */
cudaError_t cudart_array(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *d, size_t *texel);

#endif
