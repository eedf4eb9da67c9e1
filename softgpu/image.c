// SPDX-License-Identifier: MIT
/* Finds the PTX for a soft device in whatever a program hands over as an image. */
#include "softgpu/softgpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/fatbin.h"

#define CC (SOFTGPU_CC_MAJOR * 10 + SOFTGPU_CC_MINOR)

static CUresult from_fatbin(const void *data, size_t len, char **text, size_t *bytes, char *log, size_t log_bytes)
{
	struct fatbin_entry e;
	int r;

	r = fatbin_pick(data, len, FATBIN_PTX, SOFTGPU_CC_MAJOR, SOFTGPU_CC_MINOR, &e);
	if (!r) {
		snprintf(log, log_bytes,
			 "the fat binary has no PTX for compute capability %d.%d or below; build with -gencode "
			 "arch=compute_75,code=compute_75 (or nvcc's default, which contains PTX)",
			 SOFTGPU_CC_MAJOR, SOFTGPU_CC_MINOR);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (r > 0)
		r = fatbin_unpack(&e, text, bytes);
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		snprintf(log, log_bytes, "the fat binary is corrupt: %s",
			 r == -EFBIG ? "an image is larger than 1 GiB" : "an image leaves its container or doesn't unpack");
		return CUDA_ERROR_INVALID_IMAGE;
	}
}

CUresult image_text(const void *image, size_t len, char **text, size_t *bytes, char *log, size_t log_bytes)
{
	const void *container;

	switch (image_kind(image, len)) {
	case IMAGE_PTX:
		*bytes = strnlen(image, len);
		*text = malloc(*bytes + 1);
		if (!*text)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(*text, image, *bytes);
		(*text)[*bytes] = 0;
		return CUDA_SUCCESS;
	case IMAGE_ELF:
		snprintf(log, log_bytes, "the image is a cubin (machine code of a GPU); softgpu runs PTX of compute_%d or below",
			 CC);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	case IMAGE_FATBIN:
		return from_fatbin(image, len, text, bytes, log, log_bytes);
	case IMAGE_WRAPPER:
		/* A pointer is followed for a program of this process only, which gives no length. */
		container = len == SIZE_MAX ? fatbin_unwrap(image) : NULL;
		if (container)
			return from_fatbin(container, SIZE_MAX, text, bytes, log, log_bytes);
		break;
	default:
		break;
	}
	snprintf(log, log_bytes, "the image is neither PTX nor a fat binary nor a cubin");
	return CUDA_ERROR_INVALID_IMAGE;
}
