// SPDX-License-Identifier: MIT
/* Copies and fills: sizes, pitches, bounds and alignment. */
#include "tests/fidelity/fidelity.h"

static CUdeviceptr a, b;
static unsigned int host[64];

static void flat(void)
{
	CUdeviceptr far = a;

	/* Driver API, cuMemcpy and its like: nothing to copy is no error */
	cu(CUDA_SUCCESS, cuMemcpyHtoD(a, host, 0));
	cu(CUDA_SUCCESS, cuMemcpyDtoH(host, a, 0));
	cu(CUDA_SUCCESS, cuMemcpyDtoD(a, b, 0));
	/* Driver API, cuMemcpyHtoD, cuMemcpyDtoH: an address that is no device memory */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(64, host, 16));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, 64, 16));
	/* Driver API, cuMemcpyDtoD: the same */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(64, far, 16));
	/* Driver API, cuMemcpyHtoD: no host memory */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, NULL, 16));
	/* Driver API, cuMemcpy: the kinds follow from the addresses */
	host[0] = 1234;
	cu(CUDA_SUCCESS, cuMemcpy(a, (CUdeviceptr)host, 16));
	cu(CUDA_SUCCESS, cuMemcpy(b, a, 16));
	host[0] = 0;
	cu(CUDA_SUCCESS, cuMemcpy((CUdeviceptr)host, b, 16));
	same(host[0], 1234, "up, across and down without naming a kind");
}

static CUDA_MEMCPY2D up(void)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = 32,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = a,
		.dstPitch = 32,
		.WidthInBytes = 16,
		.Height = 4,
	};
}

static void flat2d(void)
{
	CUDA_MEMCPY2D c = up();
	int max = 0;

	/* Driver API, cuMemcpy2D: a plain one */
	cu(CUDA_SUCCESS, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: no parameters */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(NULL));
	/* Driver API, cuMemcpy2D: srcPitch is at least srcXInBytes + WidthInBytes */
	c = up(), c.srcPitch = 8;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	c = up(), c.srcXInBytes = 20;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: dstPitch is at least dstXInBytes + WidthInBytes */
	c = up(), c.dstPitch = 8;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	c = up(), c.dstXInBytes = 20;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: no pitch above MAX_PITCH */
	must(cuDeviceGetAttribute(&max, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0));
	c = up(), c.dstPitch = (size_t)max + 512, c.Height = 1;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: a kind of memory that is not known */
	c = up(), c.srcMemoryType = 77;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: no rows or no columns is no error */
	c = up(), c.Height = 0;
	cu(CUDA_SUCCESS, cuMemcpy2D(&c));
	c = up(), c.WidthInBytes = 0;
	cu(CUDA_SUCCESS, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: MEMORYTYPE_UNIFIED takes the address of srcDevice, whatever it is */
	c = up(), c.srcMemoryType = CU_MEMORYTYPE_UNIFIED, c.srcDevice = (CUdeviceptr)host, c.srcHost = NULL;
	cu(CUDA_SUCCESS, cuMemcpy2D(&c));
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1}, got = {};
	CUDA_MEMCPY2D c = up();
	CUarray array;

	must(cuArrayCreate(&array, &d));
	/* Driver API, cuArrayGetDescriptor: what it was created with */
	cu(CUDA_SUCCESS, cuArrayGetDescriptor(&got, array));
	probe(got.Width == 8 && got.Height == 4 && got.NumChannels == 1 && got.Format == d.Format, "the array's descriptor");
	/* Driver API, cuMemcpy2D: an array takes what lies inside of it */
	c.dstMemoryType = CU_MEMORYTYPE_ARRAY, c.dstArray = array, c.WidthInBytes = 32;
	cu(CUDA_SUCCESS, cuMemcpy2D(&c));
	/* Driver API, cuMemcpy2D: and nothing beyond its rows or columns */
	c.dstY = 1;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	c.dstY = 0, c.dstXInBytes = 4;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&c));
	/* Driver API, cuMemcpyAtoH: beyond the array's row */
	must(cuArrayDestroy(array));
	d.Height = 0;
	must(cuArrayCreate(&array, &d));
	cu(CUDA_SUCCESS, cuMemcpyHtoA(array, 0, host, 32));
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH(host, array, 16, 32));
	must(cuArrayDestroy(array));
	/* Driver API, cuArrayCreate: 1, 2 or 4 channels; a width; a known format */
	d.NumChannels = 3;
	cu(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, &d));
	d.NumChannels = 1, d.Width = 0;
	cu(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, &d));
	d.Width = 8, d.Format = 0x7f;
	cu(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, &d));
}

static void copies3d(void)
{
	CUDA_MEMCPY3D c = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = 16,
		.srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = a,
		.dstPitch = 16,
		.dstHeight = 4,
		.WidthInBytes = 16,
		.Height = 4,
		.Depth = 2,
	};

	/* Driver API, cuMemcpy3D: a plain one */
	cu(CUDA_SUCCESS, cuMemcpy3D(&c));
	/* Driver API, cuMemcpy3D: srcHeight is at least Height + srcY */
	c.srcHeight = 3;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&c));
	/* Driver API, cuMemcpy3D: dstHeight is at least Height + dstY */
	c.srcHeight = 4, c.dstY = 1;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&c));
	/* Driver API, cuMemcpy3D: srcLOD and dstLOD must be 0 */
	c.dstY = 0, c.srcLOD = 1;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&c));
	/* Driver API, cuMemcpy3D: no pitch below the width */
	c.srcLOD = 0, c.dstPitch = 8;
	cu(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&c));
	/* Driver API, cuMemcpy3D: no depth is no error */
	c.dstPitch = 16, c.Depth = 0;
	cu(CUDA_SUCCESS, cuMemcpy3D(&c));
}

static void fills(void)
{
	/* Driver API, cuMemsetD16: aligned to 2 bytes */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(a + 1, 7, 4));
	/* Driver API, cuMemsetD32: aligned to 4 bytes */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 2, 7, 4));
	/* Driver API, cuMemsetD8: any address */
	cu(CUDA_SUCCESS, cuMemsetD8(a + 1, 7, 3));
	/* Driver API, cuMemsetD32: N counts values, not bytes; the value is whole */
	cu(CUDA_SUCCESS, cuMemsetD32(a, 0x01020304, 2));
	must(cuMemcpyDtoH(host, a, 8));
	probe(host[0] == 0x01020304 && host[1] == 0x01020304, "32-bit values are set");
	/* Driver API, cuMemsetD2D32: address and pitch aligned to 4 bytes */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(a, 18, 7, 4, 2));
	/* Driver API, cuMemsetD2D16: address and pitch aligned to 2 bytes */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D16(a + 1, 16, 7, 4, 2));
	/* Driver API, cuMemsetD2D8: the pitch is between rows; the bytes between are left */
	must(cuMemsetD8(a, 0, 64));
	cu(CUDA_SUCCESS, cuMemsetD2D8(a, 8, 0xff, 4, 3));
	must(cuMemcpyDtoH(host, a, 24));
	probe(host[0] == ~0u && !host[1] && host[2] == ~0u && !host[3], "rows are set, gaps are not");
	/* Driver API, cuMemsetD8: nothing to set is no error */
	cu(CUDA_SUCCESS, cuMemsetD8(a, 1, 0));
	/* Driver API, cuMemsetD8: an address that is no device memory */
	cu(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(64, 1, 4));
}

int main(void)
{
	primary();
	must(cuMemAlloc(&a, 4096));
	must(cuMemAlloc(&b, 4096));
	flat();
	flat2d();
	arrays();
	copies3d();
	fills();
	return tap_done();
}
