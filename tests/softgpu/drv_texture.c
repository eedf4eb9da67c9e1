// SPDX-License-Identifier: MIT
/* Tests of texture fetches: modes, filters, formats and all kinds of resources, against the reference in texture_ref.h. */
#include "tests/softgpu/texture_ref.h"

static void test_modes(void)
{
	static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
	static const struct {
		const char *kernel;
		int w, h, d, dims;
	} shapes[] = {{"fetch_1d", 13, 0, 0, 1}, {"fetch_2d", 12, 7, 0, 2}, {"fetch_3d", 6, 5, 4, 3}};

	for (size_t s = 0; s < 3; s++) {
		int h = shapes[s].h ? shapes[s].h : 1, d = shapes[s].d ? shapes[s].d : 1;
		CUarray a = make(shapes[s].w, shapes[s].h, shapes[s].d, CU_AD_FORMAT_FLOAT, 4, 0);
		struct image im = {shapes[s].w, h, d, pattern, {7, -1, 0, 0.25f}};

		fill(a, pattern, shapes[s].w * 16, h, d);
		for (int m = 0; m < 4; m++)
			for (int f = 0; f < 2; f++)
				for (int norm = 0; norm < 2; norm++) {
					CUDA_TEXTURE_DESC td = sampler(m, f, norm ? CU_TRSF_NORMALIZED_COORDINATES : 0);
					CUtexObject t = texture(a, &td);
					char what[80];

					choose(shapes[s].w, h, d, norm);
					snprintf(what, sizeof(what), "%s %s %s %s", shapes[s].kernel, modes[m],
						 f ? "linear" : "point", norm ? "normalised" : "unnormalised");
					compare(shapes[s].kernel, t, &im, &td, shapes[s].dims, what);
					must(cuTexObjectDestroy(t));
				}
		must(cuArrayDestroy(a));
	}
}

/* ---- Formats ---- */

static void expect(const float want[4], const char *what)
{
	bool same = true;

	for (int ch = 0; ch < 4; ch++)
		same = same && near(got[0][ch], want[ch]);
	if (!ok(same, "%s", what))
		printf("# got %.9g %.9g %.9g %.9g, want %.9g %.9g %.9g %.9g\n", got[0][0], got[0][1], got[0][2], got[0][3],
		       want[0], want[1], want[2], want[3]);
}

static void one_format(CUarray_format format, unsigned int channels, unsigned int flags, const void *texel, size_t bytes,
		       const float want[4], const char *what)
{
	CUarray a = make(2, 2, 0, format, channels, 0);
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, flags);
	uint8_t all[64];
	CUtexObject t;

	for (int i = 0; i < 4; i++)
		memcpy(all + (size_t)i * bytes, texel, bytes);
	fill(a, all, bytes * 2, 2, 1);
	t = texture(a, &d);
	n = 0;
	add(1.5f, 1.5f, 0);
	launch("fetch_2d", t);
	expect(want, what);
	must(cuTexObjectDestroy(t));
	must(cuArrayDestroy(a));
}

static float as_float(int32_t v)
{
	float f;

	memcpy(&f, &v, 4);
	return f;
}

static void test_formats(void)
{
	const uint8_t u8[4] = {0, 51, 255, 128};
	const int8_t s8[4] = {-128, 127, -64, 1};
	const uint16_t u16[2] = {65535, 13107};
	const int16_t s16[2] = {-32768, 16384};
	const uint16_t half[4] = {0x3c00, 0xc000, 0x0001, 0x7c00};
	const int32_t s32[2] = {-5, 1 << 30};
	const float f32[1] = {-3.5f};

	one_format(CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, u8, 4, (float[]){0, 0.2f, 1, 128 / 255.0f}, "bytes as floats");
	one_format(CU_AD_FORMAT_UNSIGNED_INT8, 4, CU_TRSF_SRGB, u8, 4,
		   (float[]){0, powf((0.2f + 0.055f) / 1.055f, 2.4f), 1, 128 / 255.0f}, "sRGB, alpha as it is");
	one_format(CU_AD_FORMAT_UNSIGNED_INT8, 4, CU_TRSF_READ_AS_INTEGER, u8, 4,
		   (float[]){0, as_float(51), as_float(255), as_float(128)}, "bytes as integers");
	one_format(CU_AD_FORMAT_SIGNED_INT8, 4, 0, s8, 4, (float[]){-1, 1, -64 / 127.0f, 1 / 127.0f}, "signed bytes as floats");
	one_format(CU_AD_FORMAT_UNSIGNED_INT16, 2, 0, u16, 4, (float[]){1, 0.2f, 0, 1}, "16 bits as floats");
	one_format(CU_AD_FORMAT_SIGNED_INT16, 2, 0, s16, 4, (float[]){-1, 16384 / 32767.0f, 0, 1}, "signed 16 bits as floats");
	one_format(CU_AD_FORMAT_HALF, 4, 0, half, 8, (float[]){1, -2, 5.9604645e-8f, INFINITY}, "half");
	one_format(CU_AD_FORMAT_SIGNED_INT32, 2, 0, s32, 8, (float[]){as_float(-5), as_float(1 << 30), 0, as_float(1)},
		   "32-bit integers are never floats");
	one_format(CU_AD_FORMAT_FLOAT, 1, 0, f32, 4, (float[]){-3.5f, 0, 0, 1}, "one float");
	one_format(CU_AD_FORMAT_UNORM_INT8X2, 2, CU_TRSF_READ_AS_INTEGER, u8, 2, (float[]){0, 0.2f, 0, 1},
		   "a normalised format is a float in any read mode");
	one_format(CU_AD_FORMAT_SNORM_INT16X2, 2, 0, s16, 4, (float[]){-1, 16384 / 32767.0f, 0, 1}, "snorm16");
}

/* ---- Linear memory, layers, cubes, mipmaps ---- */

static void test_linear(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR}, back;
	CUDA_TEXTURE_DESC dback;
	CUtexObject t = 0;
	CUdeviceptr p;
	size_t pitch;

	must(cuMemAlloc(&p, 1 << 16));
	must(cuMemcpyHtoD(p, pattern, 1 << 14));
	r.res.linear.devPtr = p;
	r.res.linear.format = CU_AD_FORMAT_FLOAT;
	r.res.linear.numChannels = 2;
	r.res.linear.sizeInBytes = 100 * 8;
	works(cuTexObjectCreate(&t, &r, &d, NULL));
	n = 0;
	add(99, 0, 0);
	launch("fetch_1d_int", t);
	expect((float[]){pattern[198], pattern[199], 0, 1}, "the last texel of linear memory");
	at[0].x = 100;
	launch("fetch_1d_int", t);
	expect((float[]){0, 0, 0, 0}, "behind the end of linear memory is 0");
	at[0].x = -1;
	launch("fetch_1d_int", t);
	expect((float[]){0, 0, 0, 0}, "before its start, too");
	works(cuTexObjectGetResourceDesc(&back, t));
	ok(back.resType == CU_RESOURCE_TYPE_LINEAR && back.res.linear.devPtr == p && back.res.linear.sizeInBytes == 800,
	   "the resource comes back");
	works(cuTexObjectGetTextureDesc(&dback, t));
	ok(dback.borderColor[0] == 7, "the sampler comes back");
	gives(cuTexObjectGetResourceViewDesc(&(CUDA_RESOURCE_VIEW_DESC){0}, t), CUDA_ERROR_INVALID_VALUE);
	works(cuTexObjectDestroy(t));
	gives(cuTexObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
	r.res.linear.devPtr = p + 4;
	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	r.res.linear.devPtr = p;
	r.res.linear.sizeInBytes = 1ull << 40;
	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));

	must(cuMemAllocPitch(&p, &pitch, 10 * 16, 6, 16));
	for (int y = 0; y < 6; y++)
		must(cuMemcpyHtoD(p + y * pitch, pattern + y * 40, 160));
	r = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_PITCH2D};
	r.res.pitch2D.devPtr = p;
	r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
	r.res.pitch2D.numChannels = 4;
	r.res.pitch2D.width = 10;
	r.res.pitch2D.height = 6;
	r.res.pitch2D.pitchInBytes = pitch;
	d.filterMode = CU_TR_FILTER_MODE_LINEAR;
	works(cuTexObjectCreate(&t, &r, &d, NULL));
	choose(10, 6, 1, false);
	compare("fetch_2d", t, &(struct image){10, 6, 1, pattern, {0}}, &d, 2, "pitched memory, linear");
	must(cuTexObjectDestroy(t));
	r.res.pitch2D.pitchInBytes = 100;
	gives(cuTexObjectCreate(&t, &r, &d, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
}

static void test_layers(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
	CUarray a = make(8, 4, 3, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_LAYERED), b = make(8, 0, 3, CU_AD_FORMAT_FLOAT, 4, 1);
	CUtexObject t = texture(a, &d), u = texture(b, &d);
	const size_t layer = 8 * 4 * 4;

	fill(a, pattern, 128, 4, 3);
	fill(b, pattern, 128, 1, 3);
	for (int l = 0; l < 5; l++) {
		const float *from = pattern + (size_t)(l > 2 ? 2 : l) * layer;
		struct image im = {8, 4, 1, from, {0}}, row = {8, 1, 1, pattern + (size_t)(l > 2 ? 2 : l) * 32, {0}};

		choose(8, 4, 1, true);
		for (int i = 0; i < n; i++)
			at[i].layer = l == 4 ? -1 : l;
		compare("fetch_2d_layer", t, &im, &d, 2, l > 2 ? "a layer behind the last" : "a layer");
		compare("fetch_1d_layer", u, &row, &d, 1, "a layer of rows");
	}
	must(cuTexObjectDestroy(t));
	must(cuTexObjectDestroy(u));
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(b));
}

static void test_cube(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
	CUarray a = make(4, 4, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
	CUarray one = make(4, 4, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
	static const float dir[][3] = {{1, 0.1f, 0.1f},	 {-1, 0.1f, 0.1f}, {0.1f, 1, 0.1f},
				       {0.1f, -1, 0.1f}, {0.1f, 0.1f, 1},  {0.1f, 0.1f, -1}};
	/* By the guide's table: face, and texel of s and t in fours of a texel. */
	static const int place[][2] = {{1, 1}, {2, 1}, {2, 2}, {2, 1}, {2, 1}, {1, 1}};
	float faces[12 * 16];
	CUtexObject t, u;
	int bad = 0;

	for (int i = 0; i < 12 * 16; i++)
		faces[i] = (float)i;
	fill(a, faces, 16, 4, 12);
	fill(one, faces, 16, 4, 6);
	t = texture(a, &d);
	u = texture(one, &d);
	n = 0;
	for (int f = 0; f < 6; f++)
		for (int l = 0; l < 2; l++) {
			add(dir[f][0] * 3, dir[f][1] * 3, dir[f][2] * 3);
			at[n - 1].layer = l;
		}
	launch("fetch_cube_layer", t);
	for (int i = 0; i < n; i++)
		bad += got[i][0] != faces[(i % 2 * 6 + i / 2) * 16 + place[i / 2][1] * 4 + place[i / 2][0]];
	is_int(bad, 0, "faces of a layered cubemap");
	launch("fetch_cube", u);
	for (int i = bad = 0; i < n; i++)
		bad += got[i][0] != faces[i / 2 * 16 + place[i / 2][1] * 4 + place[i / 2][0]];
	is_int(bad, 0, "faces of a cubemap");
	must(cuTexObjectDestroy(u));
	d.filterMode = CU_TR_FILTER_MODE_LINEAR;
	d.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
	u = texture(one, &d);
	n = 0;
	add(1, 0.25f, 1); /* the edge between +x and +z, at the centre of a row of texels */
	add(0.999f, 0.25f, 1);
	launch("fetch_cube", u);
	/* +x's first column and +z's last one, row 1 */
	is_int(got[0][0] * 2, faces[4] + faces[4 * 16 + 4 + 3], "a seamless edge blends both faces");
	ok(fabsf(got[0][0] - got[1][0]) < 0.5f, "and does so from both sides");
	must(cuTexObjectDestroy(t));
	must(cuTexObjectDestroy(u));
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(one));
}

static void test_mipmap(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {16, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0}, d2;
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
	CUDA_RESOURCE_VIEW_DESC v = {.width = 16, .height = 8, .firstMipmapLevel = 1, .lastMipmapLevel = 2};
	static const float lod[] = {-1, 0, 0.25f, 0.75f, 1, 2.4f, 9, NAN};
	static const float point[] = {0, 0, 0, 10, 10, 20, 30, 0}, linear[] = {0, 0, 2.5f, 7.5f, 10, 23.984375f, 30, 0};
	CUmipmappedArray m;
	CUtexObject t;
	CUarray level;
	float row[16 * 8];
	int bad = 0;

	works(cuMipmappedArrayCreate(&m, &desc, 4));
	for (int l = 0; l < 4; l++) {
		for (int i = 0; i < 16 * 8; i++)
			row[i] = (float)(10 * l);
		must(cuMipmappedArrayGetLevel(&level, m, l));
		must(cuArray3DGetDescriptor(&d2, level));
		is_int(d2.Width * 100 + d2.Height, (16 >> l) * 100 + (8 >> l), "the extents of level %d", l);
		fill(level, row, d2.Width * 4, (int)d2.Height, 1);
	}
	gives(cuMipmappedArrayGetLevel(&level, m, 4), CUDA_ERROR_INVALID_VALUE);
	gives(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	r.res.mipmap.hMipmappedArray = m;
	d.maxMipmapLevelClamp = 100;
	for (int f = 0; f < 2; f++) {
		d.mipmapFilterMode = f;
		must(cuTexObjectCreate(&t, &r, &d, NULL));
		for (n = 0; n < 8; n++)
			at[n] = (struct at){0.5f, 0.5f, 0, lod[n], 0};
		launch("fetch_2d_lod", t);
		for (int i = bad = 0; i < n; i++)
			if (!near(got[i][0], f ? linear[i] : point[i])) {
				printf("# lod %g: %g\n", lod[i], got[i][0]);
				bad++;
			}
		is_int(bad, 0, "levels, %s", f ? "blended" : "the nearest");
		must(cuTexObjectDestroy(t));
	}
	d.mipmapLevelBias = 1;
	d.minMipmapLevelClamp = 0.5f;
	d.maxMipmapLevelClamp = 1.5f;
	must(cuTexObjectCreate(&t, &r, &d, NULL));
	launch("fetch_2d_lod", t);
	ok(got[0][0] == 5 && got[1][0] == 10 && got[4][0] == 15, "bias and clamps");
	must(cuTexObjectDestroy(t));
	/* A step of 4 texels in x and 1 in y is level 2. */
	d.mipmapLevelBias = d.minMipmapLevelClamp = 0;
	d.maxMipmapLevelClamp = 100;
	must(cuTexObjectCreate(&t, &r, &d, NULL));
	n = 1;
	at[0] = (struct at){0.5f, 0.5f, 0.25f, 0.125f, 0};
	launch("fetch_2d_grad", t);
	is_int(got[0][0], 20, "the level of gradients");
	must(cuTexObjectDestroy(t));
	works(cuTexObjectCreate(&t, &r, &d, &v));
	for (n = 0; n < 8; n++)
		at[n] = (struct at){0.5f, 0.5f, 0, lod[n], 0};
	launch("fetch_2d_lod", t);
	ok(got[1][0] == 10 && got[6][0] == 20, "a view of two levels");
	must(cuTexObjectDestroy(t));
	works(cuMipmappedArrayDestroy(m));
	gives(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
}

/* Each lane of a warp with another object, coordinate and level than its neighbour, and some with none. */
static void test_mixed(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {32, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
	CUmipmappedArray m[2];
	CUtexObject t[2];
	static float texels[32 * 32];
	CUfunction f;
	int bad = 0;

	d.maxMipmapLevelClamp = 100;
	for (int k = 0; k < 2; k++) {
		must(cuMipmappedArrayCreate(&m[k], &desc, 6));
		for (int l = 0; l < 6; l++) {
			CUarray level;

			for (int i = 0; i < 32 * 32; i++)
				texels[i] = (float)(k * 100000 + l * 10000 + i % (32 >> l) * 100 + i / (32 >> l));
			must(cuMipmappedArrayGetLevel(&level, m[k], l));
			fill(level, texels, (size_t)(32 >> l) * 4, 32 >> l, 1);
		}
		r.res.mipmap.hMipmappedArray = m[k];
		must(cuTexObjectCreate(&t[k], &r, &d, NULL));
	}
	for (n = 0; n < 32; n++)
		at[n] = (struct at){((float)n + 0.5f) / 32, ((float)(n * 7 % 32) + 0.5f) / 32, 0, (float)(n * 5 % 6), 0};
	must(cuModuleGetFunction(&f, module, "fetch_mixed"));
	must(cuMemcpyHtoD(coords, at, sizeof(at[0]) * 32));
	must(cuMemsetD32(results, 0, 32 * 4));
	must(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&t[0], &t[1], &coords, &results, &n}, NULL));
	must(cuMemcpyDtoH(got, results, sizeof(got[0]) * 32));
	for (int i = 0; i < 32; i++) {
		int l = i * 5 % 6;

		bad += got[i][0] != (float)(i % 3 == 2 ? 0 : (i & 1) * 100000 + l * 10000 + (i >> l) * 100 + (i * 7 % 32 >> l));
	}
	is_int(bad, 0, "lanes with objects and levels of their own");
	for (int k = 0; k < 2; k++) {
		must(cuTexObjectDestroy(t[k]));
		must(cuMipmappedArrayDestroy(m[k]));
	}
}

static void test_more_forms(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	CUarray a = make(8, 8, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_TEXTURE_GATHER);
	CUtexObject t;
	uint16_t half[4];
	CUfunction f;
	unsigned int q[7];

	fill(a, pattern, 128, 8, 1);
	t = texture(a, &d);
	n = 1;
	at[0] = (struct at){2.5f, 3.5f, 0, 0, 2};
	launch("fetch_2d_offset", t);
	expect(pattern + (5 * 8 + 3) * 4, "an offset of (1, 2)");
	launch("fetch_2d_half", t);
	memcpy(half, got, 8);
	ok(!half[0] == !(pattern[(3 * 8 + 2) * 4]) && (half[0] >> 15) == (pattern[(3 * 8 + 2) * 4] < 0), "halves in pairs");
	at[0] = (struct at){3, 4, 0, 0, 0};
	launch("gather", t);
	expect((float[]){pattern[(4 * 8 + 2) * 4 + 1], pattern[(4 * 8 + 3) * 4 + 1], pattern[(3 * 8 + 3) * 4 + 1],
			 pattern[(3 * 8 + 2) * 4 + 1]},
	       "four texels, counter-clockwise from the lower left");
	must(cuModuleGetFunction(&f, module, "query"));
	must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&t, &results}, NULL));
	must(cuMemcpyDtoH(q, results, sizeof(q)));
	ok(q[0] == 8 && q[1] == 8 && q[2] == 1 && q[3] == 1 && q[4] == 1 && q[5] == 8 && q[6] == 8, "queries");
	must(cuTexObjectDestroy(t));
	must(cuArrayDestroy(a));
}

static void texture_tests(void)
{
	test_modes();
	test_formats();
	test_linear();
	test_layers();
	test_cube();
	test_mipmap();
	test_mixed();
	test_more_forms();
}

#ifndef OVER_SERVER
int main(void)
{
	begin();
	texture_tests();
	return tap_done();
}
#endif
