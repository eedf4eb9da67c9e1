// SPDX-License-Identifier: MIT
/*
 * Names as they were before 64-bit addresses: device addresses and sizes of 32 bits. Old programs find them by dlsym. Our
 * addresses do not fit, so what gives one out has no memory, and what takes one finds nothing there; the rest works.
 */
#include <limits.h>
#include "shim/cuda_api.h"
#include "shim/unsupported.h"

/* An address or a size that the program's variable cannot hold. */
static CUresult narrow(CUresult r, unsigned int *out, size_t v)
{
	if (r)
		return r;
	if (out)
		*out = v > UINT_MAX ? UINT_MAX : v;
	return CUDA_SUCCESS;
}

static CUresult too_high(CUdeviceptr d)
{
	cuMemFree_v2(d);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	CUdeviceptr d;
	CUresult r = dptr ? cuMemAlloc_v2(&d, bytesize) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	return d > UINT_MAX ? too_high(d) : narrow(r, dptr, d);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes, unsigned int Height,
			 unsigned int ElementSizeBytes)
{
	CUdeviceptr d;
	size_t pitch;
	CUresult r = dptr && pPitch ? cuMemAllocPitch_v2(&d, &pitch, WidthInBytes, Height, ElementSizeBytes)
				    : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*pPitch = pitch;
	return d > UINT_MAX ? too_high(d) : narrow(r, dptr, d);
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
	return cuMemFree_v2(dptr);
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return cuMemAllocHost_v2(pp, bytesize);
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	size_t f, t;
	CUresult r = free && total ? cuMemGetInfo_v2(&f, &t) : CUDA_ERROR_INVALID_VALUE;

	return narrow(narrow(r, free, f), total, t);
}

CUresult cuMemGetAddressRange(CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
{
	CUdeviceptr base;
	size_t size;
	CUresult r = cuMemGetAddressRange_v2(&base, &size, dptr);

	return narrow(narrow(r, pbase, base), psize, size);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags)
{
	CUdeviceptr d;
	CUresult r = pdptr ? cuMemHostGetDevicePointer_v2(&d, p, Flags) : CUDA_ERROR_INVALID_VALUE;

	return !r && d > UINT_MAX ? CUDA_ERROR_INVALID_VALUE : narrow(r, pdptr, d);
}

CUresult cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod, const char *name)
{
	CUdeviceptr d;
	size_t n;
	CUresult r = cuModuleGetGlobal_v2(&d, &n, hmod, name);

	if (!r && dptr && d > UINT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return narrow(narrow(r, dptr, d), bytes, n);
}

CUresult cuMemcpyHtoD(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount)
{
	return cuMemcpyHtoD_v2(dstDevice, srcHost, ByteCount);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr_v1 dstDevice, const void *srcHost, unsigned int ByteCount, CUstream hStream)
{
	return cuMemcpyHtoDAsync_v2(dstDevice, srcHost, ByteCount, hStream);
}

CUresult cuMemcpyDtoH(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	return cuMemcpyDtoH_v2(dstHost, srcDevice, ByteCount);
}

CUresult cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
	return cuMemcpyDtoHAsync_v2(dstHost, srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyDtoD(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	return cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream)
{
	return cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream);
}

CUresult cuMemcpyDtoA(CUarray dstArray, unsigned int dstOffset, CUdeviceptr_v1 srcDevice, unsigned int ByteCount)
{
	return cuMemcpyDtoA_v2(dstArray, dstOffset, srcDevice, ByteCount);
}

CUresult cuMemcpyAtoD(CUdeviceptr_v1 dstDevice, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
	return cuMemcpyAtoD_v2(dstDevice, srcArray, srcOffset, ByteCount);
}

CUresult cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount)
{
	return cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount);
}

CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount,
			   CUstream hStream)
{
	return cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream);
}

CUresult cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
	return cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount);
}

CUresult cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount, CUstream hStream)
{
	return cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream);
}

CUresult cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
	return cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}

static const CUDA_MEMCPY2D *widen(const CUDA_MEMCPY2D_v1 *c, CUDA_MEMCPY2D *out)
{
	if (!c)
		return NULL;
	*out = (CUDA_MEMCPY2D){
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
	};
	return out;
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
{
	return cuMemcpy2D_v2(widen(pCopy, &(CUDA_MEMCPY2D){0}));
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
{
	return cuMemcpy2DUnaligned_v2(widen(pCopy, &(CUDA_MEMCPY2D){0}));
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
{
	return cuMemcpy2DAsync_v2(widen(pCopy, &(CUDA_MEMCPY2D){0}), hStream);
}

static const CUDA_MEMCPY3D *widen3(const CUDA_MEMCPY3D_v1 *c, CUDA_MEMCPY3D *out)
{
	if (!c)
		return NULL;
	*out = (CUDA_MEMCPY3D){
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcZ = c->srcZ,
		.srcLOD = c->srcLOD,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.srcHeight = c->srcHeight,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstZ = c->dstZ,
		.dstLOD = c->dstLOD,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.dstHeight = c->dstHeight,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = c->Depth,
	};
	return out;
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
{
	return cuMemcpy3D_v2(widen3(pCopy, &(CUDA_MEMCPY3D){0}));
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
{
	return cuMemcpy3DAsync_v2(widen3(pCopy, &(CUDA_MEMCPY3D){0}), hStream);
}

CUresult cuMemsetD8(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N)
{
	return cuMemsetD8_v2(dstDevice, uc, N);
}

CUresult cuMemsetD16(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N)
{
	return cuMemsetD16_v2(dstDevice, us, N);
}

CUresult cuMemsetD32(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N)
{
	return cuMemsetD32_v2(dstDevice, ui, N);
}

CUresult cuMemsetD2D8(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned char uc, unsigned int Width, unsigned int Height)
{
	return cuMemsetD2D8_v2(dstDevice, dstPitch, uc, Width, Height);
}

CUresult cuMemsetD2D16(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned short us, unsigned int Width,
		       unsigned int Height)
{
	return cuMemsetD2D16_v2(dstDevice, dstPitch, us, Width, Height);
}

CUresult cuMemsetD2D32(CUdeviceptr_v1 dstDevice, unsigned int dstPitch, unsigned int ui, unsigned int Width, unsigned int Height)
{
	return cuMemsetD2D32_v2(dstDevice, dstPitch, ui, Width, Height);
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	return cuArrayCreate_v2(
		pHandle, &(CUDA_ARRAY_DESCRIPTOR){
				 .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels});
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray hArray)
{
	CUDA_ARRAY_DESCRIPTOR d;
	CUresult r = out ? cuArrayGetDescriptor_v2(&d, hArray) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = (CUDA_ARRAY_DESCRIPTOR_v1){.Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels};
	return CUDA_SUCCESS;
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	return cuArray3DCreate_v2(pHandle, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
								      .Height = d->Height,
								      .Depth = d->Depth,
								      .Format = d->Format,
								      .NumChannels = d->NumChannels,
								      .Flags = d->Flags});
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUresult r = out ? cuArray3DGetDescriptor_v2(&d, hArray) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = (CUDA_ARRAY3D_DESCRIPTOR_v1){.Width = d.Width,
					    .Height = d.Height,
					    .Depth = d.Depth,
					    .Format = d.Format,
					    .NumChannels = d.NumChannels,
					    .Flags = d.Flags};
	return CUDA_SUCCESS;
}

/* The first edition's stream memory operations: the same calls, once the device said that it has them. */
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2_ptsz(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2_ptsz(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2_ptsz(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2_ptsz(stream, addr, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, params, flags);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp_v2_ptsz(stream, count, params, flags);
}
