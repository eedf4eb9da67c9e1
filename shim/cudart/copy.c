/* SPDX-License-Identifier: MIT */
/* Linear copies, and fills. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"
#include <string.h>

static CUdeviceptr d(const void *p)
{
	return (CUdeviceptr)p;
}

static cudaError_t copy_async(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, CUstream s)
{
	if (!n)
		return cudaSuccess;
	switch (cudart_kind(dst, src, kind)) {
	case cudaMemcpyHostToDevice:
		return cudart_done(drv.cuMemcpyHtoDAsync(d(dst), src, n, s));
	case cudaMemcpyDeviceToHost:
		return cudart_done(drv.cuMemcpyDtoHAsync(dst, d(src), n, s));
	case cudaMemcpyDeviceToDevice:
		return cudart_done(drv.cuMemcpyDtoDAsync(d(dst), d(src), n, s));
	case cudaMemcpyHostToHost:
		return cudart_done(drv.cuMemcpyAsync(d(dst), d(src), n, s));
	default:
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	}
}

static cudaError_t copy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
#ifdef CUDART_PER_THREAD
	cudaError_t e = copy_async(dst, src, n, kind, DEFAULT_STREAM);

	return e ? e : cudart_done(drv.cuStreamSynchronize(DEFAULT_STREAM));
#else
	CUresult r;

	if (!n)
		return cudaSuccess;
	switch (cudart_kind(dst, src, kind)) {
	case cudaMemcpyHostToDevice:
		return cudart_done(drv.cuMemcpyHtoD(d(dst), src, n));
	case cudaMemcpyDeviceToHost:
		return cudart_done(drv.cuMemcpyDtoH(dst, d(src), n));
	case cudaMemcpyDeviceToDevice:
		return cudart_done(drv.cuMemcpyDtoD(d(dst), d(src), n));
	case cudaMemcpyHostToHost:
		/* The bytes are here: only the order after earlier work is the driver's. */
		r = drv.cuStreamSynchronize(DEFAULT_STREAM);
		if (!r)
			memmove(dst, src, n);
		return cudart_done(r);
	default:
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	}
#endif
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	TRY(cudart_context());
	return copy(dst, src, n, kind);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	TRY(cudart_context());
	return copy_async(dst, src, n, kind, stream_of(stream));
}

/* Where @n bytes at @offset of a variable lie; the copy must stay inside. */
static cudaError_t inside(const void *symbol, size_t n, size_t offset, CUdeviceptr *ptr)
{
	cudaError_t e = cudart_context();
	size_t size;

	if (!e)
		e = cudart_symbol(symbol, ptr, &size);
	if (!e && (offset > size || n > size - offset))
		e = cudaErrorInvalidValue;
	if (!e)
		*ptr += offset;
	return e;
}

/* A symbol is on the device, whatever else the program says. */
static bool good_kind(enum cudaMemcpyKind kind, enum cudaMemcpyKind with_host)
{
	return kind == with_host || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind)
{
	CUdeviceptr p;

	if (!good_kind(kind, cudaMemcpyHostToDevice))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	TRY(inside(symbol, n, offset, &p));
	return copy((void *)p, src, n, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind,
				    cudaStream_t stream)
{
	CUdeviceptr p;

	if (!good_kind(kind, cudaMemcpyHostToDevice))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	TRY(inside(symbol, n, offset, &p));
	return copy_async((void *)p, src, n, kind, stream_of(stream));
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind)
{
	CUdeviceptr p;

	if (!good_kind(kind, cudaMemcpyDeviceToHost))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	TRY(inside(symbol, n, offset, &p));
	return copy(dst, (void *)p, n, kind);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind,
				      cudaStream_t stream)
{
	CUdeviceptr p;

	if (!good_kind(kind, cudaMemcpyDeviceToHost))
		return cudart_fail(cudaErrorInvalidMemcpyDirection);
	TRY(inside(symbol, n, offset, &p));
	return copy_async(dst, (void *)p, n, kind, stream_of(stream));
}

cudaError_t cudaMemset(void *ptr, int value, size_t n)
{
	TRY(cudart_context());
	if (!n)
		return cudaSuccess;
#ifdef CUDART_PER_THREAD
	TRY(cudart_error(drv.cuMemsetD8Async(d(ptr), (unsigned char)value, n, DEFAULT_STREAM)));
	return cudart_fail(cudart_filled(ptr, DEFAULT_STREAM));
#else
	return cudart_done(drv.cuMemsetD8(d(ptr), (unsigned char)value, n));
#endif
}

cudaError_t cudaMemsetAsync(void *ptr, int value, size_t n, cudaStream_t stream)
{
	TRY(cudart_context());
	if (!n)
		return cudaSuccess;
	return cudart_done(drv.cuMemsetD8Async(d(ptr), (unsigned char)value, n, stream_of(stream)));
}

cudaError_t cudaMemset2DAsync(void *ptr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	TRY(cudart_context());
	if (!width || !height)
		return cudaSuccess;
	return cudart_done(drv.cuMemsetD2D8Async(d(ptr), pitch, (unsigned char)value, width, height, stream_of(stream)));
}

cudaError_t cudaMemset2D(void *ptr, size_t pitch, int value, size_t width, size_t height)
{
	cudaError_t e = cudaMemset2DAsync(ptr, pitch, value, width, height, DEFAULT_STREAM);

	return e || !width || !height ? e : cudart_fail(cudart_filled(ptr, DEFAULT_STREAM));
}
