// SPDX-License-Identifier: MIT
/* The names of the per-thread default stream: each is its plain call with NULL meaning the calling thread's own stream. */
#include "softgpu/softgpu.h"

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
	return cuEventRecordWithFlags(event, own(stream), flags);
}

CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
	return cuEventRecord(event, own(stream));
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
					unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params)
{
	return cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, own(stream), params);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void *data)
{
	return cuLaunchHostFunc(own(stream), fn, data);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	CUlaunchConfig c;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	c = *config;
	c.hStream = own(c.hStream);
	return cuLaunchKernelEx(&c, f, params, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
			     unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, own(stream), params, extra);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return cuMemAllocAsync(ptr, bytes, own(stream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(ptr, bytes, pool, own(stream));
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	return cuMemFreeAsync(ptr, own(stream));
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream)
{
	return cuMemPrefetchAsync(ptr, bytes, dev, own(stream));
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned int flags, CUstream stream)
{
	return cuMemPrefetchAsync_v2(ptr, bytes, where, flags, own(stream));
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return cuMemcpy2DAsync_v2(copy, own(stream));
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return cuMemcpy3DAsync_v2(copy, own(stream));
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	return cuMemcpy3DPeerAsync(copy, own(stream));
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return cuMemcpyAsync(dst, src, bytes, own(stream));
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return cuMemcpyDtoDAsync_v2(dst, src, bytes, own(stream));
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes, CUstream stream)
{
	return cuMemcpyDtoHAsync_v2(dst, src, bytes, own(stream));
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream)
{
	return cuMemcpyHtoDAsync_v2(dst, src, bytes, own(stream));
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
				CUstream stream)
{
	return cuMemcpyPeerAsync(dst, dst_ctx, src, src_ctx, bytes, own(stream));
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
	return cuMemsetD16Async(dst, value, n, own(stream));
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
				 CUstream stream)
{
	return cuMemsetD2D16Async(dst, pitch, value, width, height, own(stream));
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream)
{
	return cuMemsetD2D32Async(dst, pitch, value, width, height, own(stream));
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream)
{
	return cuMemsetD2D8Async(dst, pitch, value, width, height, own(stream));
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return cuMemsetD32Async(dst, value, n, own(stream));
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return cuMemsetD8Async(dst, value, n, own(stream));
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)
{
	return cuStreamAddCallback(own(stream), callback, data, flags);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned int flags)
{
	return cuStreamAttachMemAsync(own(stream), ptr, bytes, flags);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp(own(stream), count, params, flags);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *params, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(own(stream), count, params, flags);
}

CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *ctx)
{
	return cuStreamGetCtx(own(stream), ctx);
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *ctx, CUgreenCtx *green)
{
	return cuStreamGetCtx_v2(own(stream), ctx, green);
}

CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *device)
{
	return cuStreamGetDevice(own(stream), device);
}

CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned int *flags)
{
	return cuStreamGetFlags(own(stream), flags);
}

CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *id)
{
	return cuStreamGetId(own(stream), id);
}

CUresult cuStreamGetPriority_ptsz(CUstream stream, int *priority)
{
	return cuStreamGetPriority(own(stream), priority);
}

CUresult cuStreamQuery_ptsz(CUstream stream)
{
	return cuStreamQuery(own(stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	return cuStreamSynchronize(own(stream));
}

CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
	return cuStreamWaitEvent(own(stream), event, flags);
}

CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32(own(stream), addr, value, flags);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2(own(stream), addr, value, flags);
}

CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64(own(stream), addr, value, flags);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2(own(stream), addr, value, flags);
}

CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32(own(stream), addr, value, flags);
}

CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(own(stream), addr, value, flags);
}

CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64(own(stream), addr, value, flags);
}

CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2(own(stream), addr, value, flags);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream)
{
	return cuMemcpyHtoAAsync_v2(dst, offset, src, bytes, own(stream));
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream)
{
	return cuMemcpyAtoHAsync_v2(dst, src, offset, bytes, own(stream));
}
