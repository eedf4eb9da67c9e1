// SPDX-License-Identifier: MIT
/* The null driver's memory: host memory at host addresses, and virtual memory management on memory files. */
#include "tests/nulldrv/nulldrv.h"
#include "softgpu/copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	void *p = NULL;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (posix_memalign(&p, 512, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	free((void *)(uintptr_t)ptr);
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	(void)stream;
	return cuMemAlloc_v2(ptr, bytes);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	(void)stream;
	return cuMemFree_v2(ptr);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	*free_bytes = 60ull << 30;
	*total = 64ull << 30;
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned int flags)
{
	(void)flags;
	return posix_memalign(ptr, 4096, bytes) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **ptr, size_t bytes)
{
	return cuMemHostAlloc(ptr, bytes, 0);
}

CUresult cuMemFreeHost(void *ptr)
{
	free(ptr);
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dptr, void *ptr, unsigned int flags)
{
	(void)flags;
	*dptr = (uintptr_t)ptr;
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	(void)ptr;
	(void)bytes;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *ptr)
{
	(void)ptr;
	return CUDA_SUCCESS;
}

/* ---- Copies: softgpu/copyapi.c has the names ---- */

CUresult copy_any(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	if (!async)
		null_wait(stream);
	memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, bytes);
	return CUDA_SUCCESS;
}

CUresult copy_h2d(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream, bool async)
{
	return copy_any(dst, (uintptr_t)src, bytes, stream, async);
}

CUresult copy_d2h(void *dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	return copy_any((uintptr_t)dst, src, bytes, stream, async);
}

CUresult copy_d2d(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool async)
{
	return copy_any(dst, src, bytes, stream, async);
}

CUresult copy_peer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes, CUstream stream,
		   bool async)
{
	(void)dst_ctx;
	(void)src_ctx;
	return copy_any(dst, src, bytes, stream, async);
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
	(void)p;
	(void)stream;
	(void)async;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
	(void)p;
	(void)stream;
	(void)async;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
	(void)p;
	(void)stream;
	(void)async;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	(void)stream;
	memset((void *)(uintptr_t)dst, value, n);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
	return cuMemsetD8Async(dst, value, n, NULL);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
	(void)stream;
	for (size_t i = 0; i < n; i++)
		((unsigned short *)(uintptr_t)dst)[i] = value;
	return CUDA_SUCCESS;
}

CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n)
{
	return cuMemsetD16Async(dst, value, n, NULL);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	(void)stream;
	for (size_t i = 0; i < n; i++)
		((unsigned int *)(uintptr_t)dst)[i] = value;
	return CUDA_SUCCESS;
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
	return cuMemsetD32Async(dst, value, n, NULL);
}

static void *row(CUdeviceptr dst, size_t pitch, size_t y)
{
	return (void *)(uintptr_t)(dst + pitch * y);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream)
{
	for (size_t y = 0; y < height; y++)
		cuMemsetD8Async((uintptr_t)row(dst, pitch, y), value, width, stream);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream)
{
	for (size_t y = 0; y < height; y++)
		cuMemsetD16Async((uintptr_t)row(dst, pitch, y), value, width, stream);
	return CUDA_SUCCESS;
}

CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height, CUstream stream)
{
	for (size_t y = 0; y < height; y++)
		cuMemsetD32Async((uintptr_t)row(dst, pitch, y), value, width, stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	(void)flags;
	return cuMemsetD32Async(addr, value, 1, stream);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	(void)flags;
	return copy_any(addr, (uintptr_t)&value, sizeof(value), stream, true);
}

/* ---- Virtual memory: a handle is a memory file's descriptor plus one, and its size is the file's ---- */

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	(void)prop;
	(void)option;
	*granularity = 2 << 20;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t bytes, size_t align, CUdeviceptr addr, unsigned long long flags)
{
	const size_t unit = 2 << 20;
	void *p = MAP_FAILED;

	(void)flags;
	if (!bytes || bytes % unit)
		return CUDA_ERROR_INVALID_VALUE;
	if (addr) {
		p = mmap((void *)(uintptr_t)addr, bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (p != MAP_FAILED && (uintptr_t)p != addr) {
			munmap(p, bytes);
			p = MAP_FAILED;
		}
	}
	if (p == MAP_FAILED) {
		uintptr_t start;

		if (align < unit)
			align = unit;
		p = mmap(NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return CUDA_ERROR_OUT_OF_MEMORY;
		start = ((uintptr_t)p + align - 1) & ~(align - 1);
		if (start > (uintptr_t)p)
			munmap(p, start - (uintptr_t)p);
		munmap((void *)(start + bytes), (uintptr_t)p + align - start);
		p = (void *)start;
	}
	*ptr = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes)
{
	return munmap((void *)(uintptr_t)ptr, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
		     unsigned long long flags)
{
	int fd = memfd_create("nulldrv", MFD_CLOEXEC);

	(void)prop;
	(void)flags;
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (ftruncate(fd, (off_t)bytes)) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = (CUmemGenericAllocationHandle)fd + 1;
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return close((int)handle - 1) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)flags;
	if (mmap((void *)(uintptr_t)ptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, (int)handle - 1, (off_t)offset) ==
	    MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	if (mmap((void *)(uintptr_t)ptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count)
{
	(void)ptr;
	(void)bytes;
	(void)desc;
	(void)count;
	return CUDA_SUCCESS;
}
