/* SPDX-License-Identifier: MIT */
/* Copies of rows and lines from and to arrays. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/channel.h"

/* A place in an array, or rows in memory; x counts bytes. */
struct end {
	cudaArray_const_t array;
	const void *memory;
	size_t pitch, x, y;
};

static CUmemorytype type_of(const struct end *e, bool host)
{
	return e->array ? CU_MEMORYTYPE_ARRAY : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/* @kind says which side is the host's: an array is the device's. */
static cudaError_t check_kind(const struct end *dst, const struct end *src, enum cudaMemcpyKind *kind)
{
	bool to = dst->array, from = src->array;

	if (*kind == cudaMemcpyDefault) {
		to = to || cudart_memory_type(dst->memory) != CU_MEMORYTYPE_HOST;
		from = from || cudart_memory_type(src->memory) != CU_MEMORYTYPE_HOST;
		*kind = to ? (from ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice) : cudaMemcpyDeviceToHost;
	}
	if ((to && (*kind == cudaMemcpyDeviceToHost || *kind == cudaMemcpyHostToHost)) ||
	    (from && (*kind == cudaMemcpyHostToDevice || *kind == cudaMemcpyHostToHost)) ||
	    (unsigned int)*kind > cudaMemcpyDeviceToDevice)
		return cudaErrorInvalidMemcpyDirection;
	return cudaSuccess;
}

/* Starts the copy; the errors are not remembered yet. */
static cudaError_t rows(const struct end *dst, const struct end *src, size_t width, size_t height, enum cudaMemcpyKind kind,
			CUstream stream, bool async)
{
	CUDA_MEMCPY2D c = {
		.srcXInBytes = src->x,
		.srcY = src->y,
		.srcHost = src->memory,
		.srcDevice = (CUdeviceptr)src->memory,
		.srcArray = (CUarray)src->array,
		.srcPitch = src->pitch,
		.dstXInBytes = dst->x,
		.dstY = dst->y,
		.dstHost = (void *)dst->memory,
		.dstDevice = (CUdeviceptr)dst->memory,
		.dstArray = (CUarray)dst->array,
		.dstPitch = dst->pitch,
		.WidthInBytes = width,
		.Height = height,
	};
	cudaError_t e = check_kind(dst, src, &kind);

	if (e || !width || !height)
		return e;
	if ((!src->array && width > src->pitch) || (!dst->array && width > dst->pitch))
		return cudaErrorInvalidPitchValue;
	c.srcMemoryType = type_of(src, kind == cudaMemcpyHostToDevice);
	c.dstMemoryType = type_of(dst, kind == cudaMemcpyDeviceToHost);
	if (async)
		return cudart_error(drv.cuMemcpy2DAsync(&c, stream));
#ifdef CUDART_PER_THREAD
	e = cudart_error(drv.cuMemcpy2DAsync(&c, DEFAULT_STREAM));
	return e ? e : cudart_error(drv.cuStreamSynchronize(DEFAULT_STREAM));
#else
	return cudart_error(drv.cuMemcpy2DUnaligned(&c));
#endif
}

static cudaError_t copy_rows(struct end dst, struct end src, size_t width, size_t height, enum cudaMemcpyKind kind,
			     CUstream stream, bool async)
{
	TRY(cudart_context());
	return cudart_fail(rows(&dst, &src, width, height, kind, stream, async));
}

/* Bytes of an array's row; memory has one without an end. */
static cudaError_t row_bytes(const struct end *e, size_t *bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	cudaError_t r;

	*bytes = SIZE_MAX;
	if (!e->array)
		return cudaSuccess;
	r = cudart_array(e->array, &d, bytes);
	*bytes *= r ? 0 : d.Width;
	return r ? r : e->x < *bytes ? cudaSuccess : cudaErrorInvalidValue;
}

static void advance(struct end *e, size_t n, size_t height, size_t row)
{
	e->x += e->array ? n : n * height;
	if (e->array && e->x == row) {
		e->x = 0;
		e->y += height;
	}
}

/* Memory that begins at x, its rows one behind the other. */
static struct end from_here(struct end e, size_t row)
{
	if (e.array)
		return e;
	return (struct end){.memory = (const char *)e.memory + e.x, .pitch = row};
}

/* @count bytes that go on at the beginning of the next row where one ends. */
static cudaError_t copy_line(struct end dst, struct end src, size_t count, enum cudaMemcpyKind kind, CUstream stream, bool async)
{
	size_t dst_row, src_row;

	TRY(cudart_context());
	if (!count)
		return cudaSuccess;
	TRY(row_bytes(&dst, &dst_row));
	TRY(row_bytes(&src, &src_row));
	while (count) {
		size_t n = count, height = 1;
		struct end d, s;

		if (n > dst_row - dst.x)
			n = dst_row - dst.x;
		if (n > src_row - src.x)
			n = src_row - src.x;
		/* Whole rows go together. */
		if ((!dst.array || n == dst_row) && (!src.array || n == src_row))
			height = count / n;
		d = from_here(dst, n);
		s = from_here(src, n);
		TRY(rows(&d, &s, n, height, kind, stream, async));
		advance(&dst, n, height, dst_row);
		advance(&src, n, height, src_row);
		count -= n * height;
	}
	return cudaSuccess;
}

static struct end in_array(cudaArray_const_t array, size_t x, size_t y)
{
	return (struct end){.array = array, .x = x, .y = y};
}

static struct end in_memory(const void *p, size_t pitch)
{
	return (struct end){.memory = p, .pitch = pitch};
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width, size_t height,
				enum cudaMemcpyKind kind)
{
	return copy_rows(in_array(dst, x, y), in_memory(src, spitch), width, height, kind, DEFAULT_STREAM, false);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
				     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(in_array(dst, x, y), in_memory(src, spitch), width, height, kind, stream_of(stream), true);
}

cudaError_t cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
				  size_t height, enum cudaMemcpyKind kind)
{
	return copy_rows(in_memory(dst, dpitch), in_array(src, x, y), width, height, kind, DEFAULT_STREAM, false);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
				       size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(in_memory(dst, dpitch), in_array(src, x, y), width, height, kind, stream_of(stream), true);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
				     size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return copy_rows(in_array(dst, dx, dy), in_array(src, sx, sy), width, height, kind, DEFAULT_STREAM, false);
}

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	return copy_line(in_array(dst, x, y), in_memory(src, 0), count, kind, DEFAULT_STREAM, false);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count, enum cudaMemcpyKind kind,
				   cudaStream_t stream)
{
	return copy_line(in_array(dst, x, y), in_memory(src, 0), count, kind, stream_of(stream), true);
}

cudaError_t cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y, size_t count, enum cudaMemcpyKind kind)
{
	return copy_line(in_memory(dst, 0), in_array(src, x, y), count, kind, DEFAULT_STREAM, false);
}

cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y, size_t count, enum cudaMemcpyKind kind,
				     cudaStream_t stream)
{
	return copy_line(in_memory(dst, 0), in_array(src, x, y), count, kind, stream_of(stream), true);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
				   size_t count, enum cudaMemcpyKind kind)
{
	return copy_line(in_array(dst, dx, dy), in_array(src, sx, sy), count, kind, DEFAULT_STREAM, false);
}
