/* SPDX-License-Identifier: MIT */
/* What the tests of arrays, textures and surfaces share: their kernels' arguments, and how things are made. */
#ifndef TESTS_SOFTGPU_TEXTURE_H
#define TESTS_SOFTGPU_TEXTURE_H

#include <math.h>
#include "tests/softgpu/drv.h"

struct at {
	float x, y, z, lod;
	int layer;
};

#define MOST 4096

static CUmodule module;
static CUdeviceptr coords, results;
static struct at at[MOST];
static float got[MOST][4];
static int n;

__attribute__((unused)) static void launch(const char *kernel, unsigned long long object)
{
	CUfunction f;
	void *params[] = {&object, &coords, &results, &n};

	must(cuModuleGetFunction(&f, module, kernel));
	must(cuMemcpyHtoD(coords, at, sizeof(at[0]) * (size_t)n));
	must(cuLaunchKernel(f, (n + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
	must(cuMemcpyDtoH(got, results, sizeof(got[0]) * (size_t)n));
}

__attribute__((unused)) static void add(float x, float y, float z)
{
	if (n < MOST)
		at[n++] = (struct at){x, y, z, 0, 0};
}

__attribute__((unused)) static bool near(float a, float b)
{
	return a == b || fabsf(a - b) <= 2e-6f * (1 + fabsf(b)) || (isnan(a) && isnan(b));
}

/* ---- Making things ---- */

__attribute__((unused)) static CUarray make(int w, int h, int d, CUarray_format format, unsigned int channels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, format, channels, flags};
	CUarray a;

	must(cuArray3DCreate(&a, &desc));
	return a;
}

__attribute__((unused)) static void fill(CUarray a, const void *from, size_t row, int h, int d)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = from,
			   .srcPitch = row,
			   .srcHeight = h,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .dstArray = a,
			   .WidthInBytes = row,
			   .Height = h,
			   .Depth = d};

	must(cuMemcpy3D(&c));
}

__attribute__((unused)) static CUtexObject texture(CUarray a, const CUDA_TEXTURE_DESC *d)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
	CUtexObject t = 0;

	must(cuTexObjectCreate(&t, &r, d, NULL));
	return t;
}

__attribute__((unused)) static CUDA_TEXTURE_DESC sampler(CUaddress_mode mode, CUfilter_mode filter, unsigned int flags)
{
	CUDA_TEXTURE_DESC d = {.addressMode = {mode, mode, mode}, .filterMode = filter, .flags = flags};

	d.borderColor[0] = 7;
	d.borderColor[1] = -1;
	d.borderColor[3] = 0.25f;
	return d;
}

static float pattern[64 * 64 * 4];

__attribute__((unused)) static void make_pattern(void)
{
	uint32_t s = 1;

	for (size_t i = 0; i < sizeof(pattern) / sizeof(pattern[0]); i++) {
		s = s * 1664525 + 1013904223;
		pattern[i] = (float)(s >> 8) / 16777216.0f * 4 - 2;
	}
}

/* The kernels of drv_texture.cu, in the current context. */
__attribute__((unused)) static CUmodule load_kernels(void)
{
	const char *build = getenv("B");
	char path[512];
	CUmodule m;

	snprintf(path, sizeof(path), "%s/tests/softgpu-drv_texture.ptx", build ? build : "build");
	must(cuModuleLoad(&m, path));
	return m;
}

__attribute__((unused)) static void begin(void)
{
	drv_start();
	module = load_kernels();
	must(cuMemAlloc(&coords, sizeof(at)));
	must(cuMemAlloc(&results, sizeof(got)));
	make_pattern();
}

#endif
