// SPDX-License-Identifier: MIT
/* The soft driver's tests of arrays, textures and surfaces once more, through a server; and copies of boxes of all sizes. */
#include "tests/api/serve.h"

#undef must
#define OVER_SERVER
#include "tests/softgpu/drv_array.c"
#include "tests/softgpu/drv_texture.c"

#define W 1000u
#define H 700u
#define D 5u

static uint8_t *host, *other;

static uint8_t expected(unsigned int x, unsigned int y, unsigned int z)
{
	return (uint8_t)(x * 7 + y * 13 + z * 101 + (x >> 8) + (y >> 7));
}

static CUDA_MEMCPY3D box(CUarray a, bool up, void *mem, size_t pitch, size_t rows)
{
	CUDA_MEMCPY3D c = {0};

	if (up) {
		c.srcMemoryType = CU_MEMORYTYPE_HOST;
		c.srcHost = mem;
		c.srcPitch = pitch;
		c.srcHeight = rows;
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = a;
	} else {
		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = mem;
		c.dstPitch = pitch;
		c.dstHeight = rows;
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c.srcArray = a;
	}
	return c;
}

/* All of an array larger than a record's bytes, there and back, with rows that touch and rows that do not. */
static void whole(CUarray a, uint8_t *mem, size_t pitch, bool async, const char *what)
{
	CUDA_MEMCPY3D c = box(a, true, mem, pitch, H);
	unsigned int bad = 0;

	for (unsigned int z = 0; z < D; z++)
		for (unsigned int y = 0; y < H; y++)
			for (unsigned int x = 0; x < W; x++)
				mem[(z * H + y) * pitch + x] = expected(x, y, z);
	c.WidthInBytes = W;
	c.Height = H;
	c.Depth = D;
	must(async ? cuMemcpy3DAsync(&c, NULL) : cuMemcpy3D(&c));
	must(cuCtxSynchronize());
	memset(mem, 0, pitch * H * D);
	c = box(a, false, mem, pitch, H);
	c.WidthInBytes = W;
	c.Height = H;
	c.Depth = D;
	must(async ? cuMemcpy3DAsync(&c, NULL) : cuMemcpy3D(&c));
	must(cuCtxSynchronize());
	for (unsigned int z = 0; z < D; z++)
		for (unsigned int y = 0; y < H; y++)
			for (unsigned int x = 0; x < W; x++)
				bad += mem[(z * H + y) * pitch + x] != expected(x, y, z);
	is_int(bad, 0, "%s", what);
}

static void parts(CUarray a)
{
	CUDA_MEMCPY3D c = box(a, false, other, 50, 20);
	unsigned int bad = 0;
	CUdeviceptr p;

	c.srcXInBytes = 123;
	c.srcY = 45;
	c.srcZ = 1;
	c.WidthInBytes = 50;
	c.Height = 20;
	c.Depth = 3;
	must(cuMemcpy3D(&c));
	for (unsigned int z = 0; z < 3; z++)
		for (unsigned int y = 0; y < 20; y++)
			for (unsigned int x = 0; x < 50; x++)
				bad += other[(z * 20 + y) * 50 + x] != expected(x + 123, y + 45, z + 1);
	is_int(bad, 0, "a box from the middle");
	/* The same through device memory with a pitch of its own, in one record each. */
	must(cuMemAlloc(&p, 64 * 30 * 3));
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstDevice = p;
	c.dstPitch = 64;
	c.dstHeight = 30;
	must(cuMemcpy3D(&c));
	must(cuMemcpyDtoH(other, p, 64 * 30 * 3));
	for (unsigned int z = bad = 0; z < 3; z++)
		for (unsigned int y = 0; y < 20; y++)
			for (unsigned int x = 0; x < 50; x++)
				bad += other[(z * 30 + y) * 64 + x] != expected(x + 123, y + 45, z + 1);
	is_int(bad, 0, "into device memory with a pitch");
	c.dstHeight = 1 << 20;
	is_cu(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
	c = box(a, false, other, W, H);
	c.WidthInBytes = W + 1;
	c.Height = c.Depth = 1;
	is_cu(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	c.WidthInBytes = W;
	c.srcZ = D;
	is_cu(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
}

static void peers(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
	CUDA_MEMCPY3D_PEER p = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
				.dstMemoryType = CU_MEMORYTYPE_ARRAY,
				.WidthInBytes = 64,
				.Height = 4,
				.Depth = 1};
	CUcontext mine, second;
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = pattern,
			   .srcPitch = 64,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .WidthInBytes = 64,
			   .Height = 4};
	CUarray a, b;

	must(cuCtxGetCurrent(&mine));
	must(cuArrayCreate(&a, &d));
	c.dstArray = a;
	must(cuMemcpy2D(&c));
	must(cuDevicePrimaryCtxRetain(&second, 1));
	must(cuCtxSetCurrent(second));
	must(cuArrayCreate(&b, &d));
	must(cuCtxSetCurrent(mine));
	p.srcArray = a;
	p.srcContext = mine;
	p.dstArray = b;
	p.dstContext = second;
	is_cu(cuMemcpy3DPeer(&p), CUDA_SUCCESS);
	must(cuCtxSynchronize());
	must(cuCtxSetCurrent(second));
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			    .srcArray = b,
			    .dstMemoryType = CU_MEMORYTYPE_HOST,
			    .dstHost = other,
			    .dstPitch = 64,
			    .WidthInBytes = 64,
			    .Height = 4};
	must(cuMemcpy2D(&c));
	ok(!memcmp(other, pattern, 256), "from one device's array into another's");
	memset(other, 0, 256);
	c.srcMemoryType = CU_MEMORYTYPE_HOST;
	c.srcHost = other;
	c.srcPitch = 64;
	c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	c.dstArray = b;
	must(cuMemcpy2D(&c));
	is_cu(cuMemcpy3DPeerAsync(&p, NULL), CUDA_SUCCESS);
	must(cuCtxSynchronize());
	c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	c.srcArray = b;
	c.dstMemoryType = CU_MEMORYTYPE_HOST;
	c.dstHost = other;
	c.dstPitch = 64;
	must(cuMemcpy2D(&c));
	ok(!memcmp(other, pattern, 256), "in the order of a stream, too");
	must(cuArrayDestroy(b));
	must(cuDevicePrimaryCtxRelease(1));
	must(cuCtxSetCurrent(mine));
	is_cu(cuArrayDestroy(b), CUDA_ERROR_INVALID_HANDLE);
	must(cuArrayDestroy(a));
}

/* What an array of one plane, all of whose memory is there, is asked in vain; and how wide a line of texels may be. */
static void questions(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d3 = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUDA_ARRAY_DESCRIPTOR d = {64, 4, CU_AD_FORMAT_FLOAT, 1};
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	size_t width = 0;
	CUmipmappedArray m;
	CUarray a, plane;
	int most;

	must(cuArrayCreate(&a, &d));
	must(cuMipmappedArrayCreate(&m, &d3, 3));
	is_cu(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuArrayGetSparseProperties(&sparse, a), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuArrayGetMemoryRequirements(&needs, a, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMipmappedArrayGetSparseProperties(&sparse, m), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMipmappedArrayGetMemoryRequirements(&needs, m, 0), CUDA_ERROR_INVALID_VALUE);
	must(cuArrayDestroy(a));
	must(cuMipmappedArrayDestroy(m));
	is_cu(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuArrayGetSparseProperties(&sparse, a), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMipmappedArrayGetMemoryRequirements(&needs, m, 0), CUDA_ERROR_INVALID_HANDLE);
	must(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 0));
	is_cu(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0), CUDA_SUCCESS);
	is_int(width, most, "texels of a line of memory");
	is_cu(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_FLOAT, 4, 0), CUDA_ERROR_INVALID_VALUE);
}

/* A context takes its arrays and objects with it. */
static void contexts(void)
{
	CUDA_TEXTURE_DESC d = sampler(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	CUDA_ARRAY3D_DESCRIPTOR md = {8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUcontext mine, c;
	CUmipmappedArray m;
	CUtexObject t, kept;
	CUarray a, b, level;

	must(cuCtxGetCurrent(&mine));
	b = make(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	kept = texture(b, &d);
	must(cuCtxCreate(&c, NULL, 0, 0));
	a = make(4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	t = texture(a, &d);
	must(cuMipmappedArrayCreate(&m, &md, 9));
	must(cuMipmappedArrayGetLevel(&level, m, 3));
	is_cu(cuMipmappedArrayGetLevel(&level, m, 4), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexObjectDestroy(kept), CUDA_ERROR_INVALID_VALUE);
	must(cuCtxDestroy(c));
	must(cuCtxSetCurrent(mine));
	is_cu(cuTexObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuTexObjectDestroy(kept), CUDA_SUCCESS);
	is_cu(cuArrayDestroy(b), CUDA_SUCCESS);
}

/* Texture references of the program's own: what was set is told. */
static void references(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {16, 4, CU_AD_FORMAT_UNSIGNED_INT8, 4};
	CUDA_ARRAY3D_DESCRIPTOR md = {8, 8, 0, CU_AD_FORMAT_HALF, 2, 0};
	float border[4] = {1, 2, 3, 4}, told[4], least, most;
	CUmipmappedArray m, n;
	CUaddress_mode mode;
	CUarray_format format;
	CUfilter_mode filter;
	unsigned int flags;
	CUdeviceptr p, q;
	size_t off = 1;
	CUtexref t;
	CUarray a, b;
	int channels;

	must(cuArrayCreate(&a, &d));
	must(cuMipmappedArrayCreate(&m, &md, 2));
	must(cuMemAlloc(&p, 4096));
	is_cu(cuTexRefCreate(&t), CUDA_SUCCESS);
	is_cu(cuTexRefGetArray(&b, t), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetArray(t, a, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetArray(t, a, CU_TRSA_OVERRIDE_FORMAT), CUDA_SUCCESS);
	is_cu(cuTexRefGetArray(&b, t), CUDA_SUCCESS);
	is_cu(cuTexRefGetFormat(&format, &channels, t), CUDA_SUCCESS);
	ok(b == a && format == CU_AD_FORMAT_UNSIGNED_INT8 && channels == 4, "an array and its format");
	is_cu(cuTexRefSetMipmappedArray(t, m, CU_TRSA_OVERRIDE_FORMAT), CUDA_SUCCESS);
	is_cu(cuTexRefGetArray(&b, t), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefGetMipmappedArray(&n, t), CUDA_SUCCESS);
	is_cu(cuTexRefGetFormat(&format, &channels, t), CUDA_SUCCESS);
	ok(n == m && format == CU_AD_FORMAT_HALF && channels == 2, "a mipmapped array and its format");
	is_cu(cuTexRefSetAddress(NULL, t, p + 8, 64), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetAddress(&off, t, p + 8, 4096), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetAddress(&off, t, p + 8, 64), CUDA_SUCCESS);
	is_cu(cuTexRefGetAddress(&q, t), CUDA_SUCCESS);
	ok(off == 8 && q == p, "an address and how far it is from an aligned one");
	d.Height = 1000;
	is_cu(cuTexRefSetAddress2D(t, &d, p, 64), CUDA_ERROR_INVALID_VALUE);
	d.Height = 4;
	is_cu(cuTexRefSetAddress2D(t, &d, p, 64), CUDA_SUCCESS);
	is_cu(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 3), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetAddressMode(t, 3, CU_TR_ADDRESS_MODE_CLAMP), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefSetAddressMode(t, 1, CU_TR_ADDRESS_MODE_MIRROR), CUDA_SUCCESS);
	is_cu(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
	is_cu(cuTexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES), CUDA_SUCCESS);
	is_cu(cuTexRefSetBorderColor(t, border), CUDA_SUCCESS);
	is_cu(cuTexRefSetMipmapLevelClamp(t, 1, 7), CUDA_SUCCESS);
	{
		CUfilter_mode mode = CU_TR_FILTER_MODE_POINT;
		float bias = 0;
		int most = 0;

		is_cu(cuTexRefSetMipmapFilterMode(t, CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
		is_cu(cuTexRefGetMipmapFilterMode(&mode, t), CUDA_SUCCESS);
		is_int(mode, CU_TR_FILTER_MODE_LINEAR, "between levels it is linear");
		is_cu(cuTexRefSetMipmapLevelBias(t, 1.5f), CUDA_SUCCESS);
		is_cu(cuTexRefGetMipmapLevelBias(&bias, t), CUDA_SUCCESS);
		ok(bias == 1.5f, "the levels' bias");
		is_cu(cuTexRefSetMaxAnisotropy(t, 4), CUDA_SUCCESS);
		is_cu(cuTexRefGetMaxAnisotropy(&most, t), CUDA_SUCCESS);
		is_int(most, 4, "the most anisotropy");
	}
	must(cuTexRefGetAddressMode(&mode, t, 1));
	must(cuTexRefGetFilterMode(&filter, t));
	must(cuTexRefGetFlags(&flags, t));
	must(cuTexRefGetBorderColor(told, t));
	must(cuTexRefGetMipmapLevelClamp(&least, &most, t));
	ok(mode == CU_TR_ADDRESS_MODE_MIRROR && filter == CU_TR_FILTER_MODE_LINEAR && flags == CU_TRSF_NORMALIZED_COORDINATES &&
		   !memcmp(told, border, sizeof(told)) && least == 1 && most == 7,
	   "what was set is told");
	is_cu(cuTexRefDestroy(t), CUDA_SUCCESS);
	is_cu(cuTexRefDestroy(t), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuTexRefGetFlags(&flags, t), CUDA_ERROR_INVALID_VALUE);
	must(cuMemFree(p));
	must(cuMipmappedArrayDestroy(m));
	must(cuArrayDestroy(a));
}

int main(void)
{
	CUarray a;
	uint8_t *pinned;

	serve(NULL, 2);
	host = malloc(2048 * H * D);
	other = malloc(1 << 16);
	begin();
	a = make(W, H, D, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	whole(a, host, W, false, "an array of 3.5 MB, pageable");
	whole(a, host, 2048, false, "with a pitch");
	whole(a, host, W, true, "asynchronous");
	must(cuMemHostAlloc((void **)&pinned, 1100 * H * D, 0));
	whole(a, pinned, W, true, "page-locked and asynchronous");
	whole(a, pinned, W, false, "page-locked");
	whole(a, pinned, 1100, false, "page-locked with a pitch");
	parts(a);
	must(cuArrayDestroy(a));
	peers();
	questions();
	contexts();
	references();
	array_tests();
	texture_tests();
	return tap_done();
}
