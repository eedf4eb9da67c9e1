// SPDX-License-Identifier: MIT
/* Tests of arrays, copies from and to them, surfaces, and what is refused. */
#include <sys/mman.h>
#include "tests/softgpu/texture.h"

/* Over a server (tests/api/texture.c) the driver's lines are in the server's log. */
#ifdef OVER_SERVER
#define SAID(line) NULL
#else
#define SAID(line) line
#endif

/* ---- Surfaces ---- */

static CUsurfObject surface(CUarray a)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
	CUsurfObject s = 0;

	must(cuSurfObjectCreate(&s, &r));
	return s;
}

static void run(const char *kernel, unsigned int x, unsigned int y, unsigned int z, void **params)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, module, kernel));
	must(cuLaunchKernel(f, 1, 1, 1, x, y, z, 0, NULL, params, NULL));
	must(cuCtxSynchronize());
}

static void read_back(CUarray a, void *to, size_t row, int h, int d)
{
	CUDA_MEMCPY3D c = {.dstMemoryType = CU_MEMORYTYPE_HOST,
			   .dstHost = to,
			   .dstPitch = row,
			   .dstHeight = h,
			   .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			   .srcArray = a,
			   .WidthInBytes = row,
			   .Height = h,
			   .Depth = d};

	must(cuMemcpy3D(&c));
}

static void test_surfaces(void)
{
	CUarray a = make(4, 3, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
	CUarray cube = make(5, 4, 3, CU_AD_FORMAT_UNSIGNED_INT16, 2, CUDA_ARRAY3D_SURFACE_LDST);
	CUarray layers = make(5, 4, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED);
	CUarray norm = make(2, 2, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, CUDA_ARRAY3D_SURFACE_LDST);
	CUarray plain = make(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	const int where[6][2] = {{0, 0}, {12, 2}, {-4, 1}, {16, 1}, {4, -1}, {4, 3}};
	const int clamped[6] = {0, 11, 4, 7, 1, 9};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = plain}, back;
	uint32_t texels[12], out[12];
	uint16_t box[60 * 2];
	uint8_t bytes[60];
	CUsurfObject s = surface(a), t;
	int count = 6, layer = 1, w = 5, h = 4, bad = 0;

	for (uint32_t i = 0; i < 12; i++)
		texels[i] = i + 100;
	fill(a, texels, 16, 3, 1);
	must(cuMemcpyHtoD(coords, where, sizeof(where)));
	run("surf_modes", 32, 1, 1, (void *[]){&s, &coords, &results, &count});
	must(cuMemcpyDtoH(out, results, sizeof(out)));
	for (int i = 0; i < 6; i++) {
		bad += out[i] != (uint32_t)clamped[i] + 100;
		bad += out[i + 6] != (i < 2 ? (uint32_t)clamped[i] + 100 : 0);
	}
	is_int(bad, 0, "boundary modes clamp and zero");
	read_back(a, out, 16, 3, 1);
	is_int(memcmp(out, texels, sizeof(out)), 0, "a store outside in mode zero stores nothing");
	run("surf_add", 32, 1, 1, (void *[]){&s});
	read_back(a, out, 16, 3, 1);
	ok(out[5] == texels[5] + 31 * 16 && out[6] == texels[6], "reductions add and max");
	works(cuSurfObjectGetResourceDesc(&back, s));
	ok(back.res.array.hArray == a, "the surface's array");

	t = surface(cube);
	run("surf_3d", 8, 4, 3, (void *[]){&t, &w, &h});
	read_back(cube, box, 20, 4, 3);
	for (int i = bad = 0; i < 60; i++)
		bad += box[i * 2] != 1 || box[i * 2 + 1] != i % 5 + i / 5 % 4 * 10 + i / 20 * 100;
	is_int(bad, 0, "three dimensions");
	must(cuSurfObjectDestroy(t));
	t = surface(layers);
	run("surf_layer", 5, 4, 1, (void *[]){&t, &layer});
	read_back(layers, bytes, 5, 4, 3);
	for (int i = bad = 0; i < 60; i++)
		bad += bytes[i] != (i / 20 == 1 ? i % 5 + i / 5 % 4 * 10 : 0);
	is_int(bad, 0, "layers");
	must(cuSurfObjectDestroy(t));
	t = surface(norm);
	run("surf_format", 1, 1, 1, (void *[]){&t});
	read_back(norm, bytes, 8, 2, 1);
	ok(bytes[4] == 128 && bytes[5] == 255 && bytes[6] == 0 && bytes[7] == 255, "a formatted store converts and saturates");
	must(cuSurfObjectDestroy(t));

	gives(cuSurfObjectCreate(&t, &r), CUDA_ERROR_INVALID_VALUE);
	r.res.array.hArray = NULL;
	gives(cuSurfObjectCreate(&t, &r), CUDA_ERROR_INVALID_HANDLE);
	works(cuSurfObjectDestroy(s));
	gives(cuSurfObjectDestroy(s), CUDA_ERROR_INVALID_VALUE);
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(cube));
	must(cuArrayDestroy(layers));
	must(cuArrayDestroy(norm));
	must(cuArrayDestroy(plain));
}

/* ---- Arrays and copies ---- */

static void test_arrays(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {10, 10, 0, CU_AD_FORMAT_FLOAT, 1, 0}, back;
	CUDA_ARRAY_DESCRIPTOR d2 = {10, 10, CU_AD_FORMAT_FLOAT, 1}, back2;
	uint8_t host[100], out[100];
	CUarray a, b;
	CUdeviceptr p;
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY, .dstMemoryType = CU_MEMORYTYPE_ARRAY};

	works(cuArrayCreate(&a, &d2));
	works(cuArray3DGetDescriptor(&back, a));
	ok(back.Width == 10 && back.Height == 10 && !back.Depth && back.Format == CU_AD_FORMAT_FLOAT, "its descriptor");
	works(cuArrayGetDescriptor(&back2, a));
	ok(back2.Width == 10 && back2.NumChannels == 1, "in the old form");
	works(cuArrayDestroy(a));
	gives(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	gives(cuArray3DGetDescriptor(&back, a), CUDA_ERROR_INVALID_HANDLE);
	d.NumChannels = 3;
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);
	d.NumChannels = 4;
	d.Format = CU_AD_FORMAT_BC7_UNORM;
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_NOT_SUPPORTED);
	d.Format = 0x77;
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);
	d.Format = CU_AD_FORMAT_HALF;
	d.Width = 0;
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){10, 8, 6, CU_AD_FORMAT_HALF, 4, CUDA_ARRAY3D_CUBEMAP};
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){10, 0, 6, CU_AD_FORMAT_HALF, 4, 0};
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){1 << 20, 1, 0, CU_AD_FORMAT_HALF, 4, 0};
	gives(cuArray3DCreate(&a, &d), CUDA_ERROR_INVALID_VALUE);

	for (int i = 0; i < 100; i++)
		host[i] = (uint8_t)i;
	a = make(100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	b = make(100, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	must(cuMemAlloc(&p, 100));
	works(cuMemcpyHtoA(a, 10, host, 90));
	gives(cuMemcpyHtoA(a, 11, host, 90), CUDA_ERROR_INVALID_VALUE);
	works(cuMemcpyAtoA(b, 0, a, 10, 90));
	works(cuMemcpyAtoD(p, b, 0, 50));
	works(cuMemcpyDtoA(b, 50, p, 50));
	works(cuMemcpyAtoH(out, b, 0, 100));
	ok(!memcmp(out, host, 50) && !memcmp(out + 50, host, 50), "to an array, to another, to memory and back");
	works(cuMemcpyHtoAAsync(a, 0, host, 100, NULL));
	works(cuMemcpyAtoHAsync(out, a, 0, 100, NULL));
	works(cuCtxSynchronize());
	is_int(memcmp(out, host, 100), 0, "the asynchronous ones");
	c.srcArray = a;
	c.dstArray = b;
	c.WidthInBytes = 101;
	c.Height = 1;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	c.WidthInBytes = 100;
	c.Height = 2;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
	c.Height = 1;
	works(cuMemcpy2D(&c));
	c.srcArray = NULL;
	gives(cuMemcpy2D(&c), CUDA_ERROR_INVALID_HANDLE);
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(b));
	must(cuMemFree(p));
}

static void test_refusals(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_READ_AS_INTEGER);
	CUarray a = make(4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
	CUDA_RESOURCE_VIEW_DESC v = {.format = CU_RES_VIEW_FORMAT_UINT_1X32, .width = 4, .height = 4};
	CUtexObject t;

	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	d.filterMode = CU_TR_FILTER_MODE_POINT;
	works(cuTexObjectCreate(&t, &r, &d, &v));
	works(cuTexObjectDestroy(t));
	v.format = CU_RES_VIEW_FORMAT_UINT_2X32;
	gives(cuTexObjectCreate(&t, &r, &d, &v), CUDA_ERROR_INVALID_VALUE);
	v.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
	gives(cuTexObjectCreate(&t, &r, &d, &v), CUDA_ERROR_NOT_SUPPORTED);
	d.flags = 0x1000;
	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	d.flags = 0;
	d.addressMode[1] = 4;
	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	gives(cuTexObjectCreate(&t, &r, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuArrayDestroy(a));
}

/* Each ends its context, so each has one of its own. @line: what is said of it, on stderr where the driver is in this process. */
static void fault(const char *kernel, CUresult want, const char *what, const char *line)
{
	int keep = dup(2), fd = memfd_create("stderr", 0);
	char said[512] = "";
	ssize_t n;
	CUcontext old, c;
	CUmodule m;
	CUfunction f;
	unsigned long long object = 0x123456789abcull;
	int x = 8, y = 3;
	CUdeviceptr out;
	CUarray a;

	must(cuCtxGetCurrent(&old));
	must(cuCtxCreate(&c, NULL, 0, 0));
	m = load_kernels();
	must(cuModuleGetFunction(&f, m, kernel));
	must(cuMemAlloc(&out, 64));
	a = make(4, 3, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST);
	if (want == CUDA_ERROR_ILLEGAL_ADDRESS)
		object = surface(a);
	fflush(stderr);
	dup2(fd, 2);
	if (!strcmp(kernel, "surf_trap"))
		must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&object, &x, &y, &out}, NULL));
	else
		must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&object, &out}, NULL));
	is_int(cuCtxSynchronize(), want, "%s", what);
	dup2(keep, 2);
	close(keep);
	n = pread(fd, said, sizeof(said) - 1, 0);
	close(fd);
	if (line && ok(n > 0 && strstr(said, line), "%s: said so", what) == false)
		printf("# %s\n", said);
	must(cuCtxDestroy(c));
	must(cuCtxSetCurrent(old));
}

static void array_tests(void)
{
	test_arrays();
	test_surfaces();
	test_refusals();
	fault("surf_trap", CUDA_ERROR_ILLEGAL_ADDRESS, "a surface access outside in mode trap",
	      SAID("surface access of 4 bytes at (8, 3, 0) of 16 bytes × 3 × 1"));
	fault("query", CUDA_ERROR_ILLEGAL_INSTRUCTION, "what is no object", SAID("0x123456789abc is no texture object"));
}

#ifndef OVER_SERVER
int main(void)
{
	begin();
	array_tests();
	return tap_done();
}
#endif
