/* SPDX-License-Identifier: MIT */
/* Memory: allocate and free on the device and the host, register, advise, look at a pointer. */
#include "shim/cudart/cudart.h"
#include <string.h>

cudaError_t cudaMalloc(void **ptr, size_t n)
{
	TRY(cudart_context());
	if (!ptr)
		return cudart_fail(cudaErrorInvalidValue);
	*ptr = NULL;
	if (!n)
		return cudaSuccess; /* the driver refuses 0 bytes, the runtime gives NULL */
	return cudart_done(drv.cuMemAlloc((CUdeviceptr *)ptr, n));
}

cudaError_t cudaFree(void *ptr)
{
	TRY(cudart_context()); /* cudaFree(0) is the customary way to start the runtime */
	return ptr ? cudart_done(drv.cuMemFree((CUdeviceptr)ptr)) : cudaSuccess;
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	TRY(cudart_context());
	if (!ptr || !pitch)
		return cudart_fail(cudaErrorInvalidValue);
	*ptr = NULL;
	*pitch = 0;
	if (!width || !height)
		return cudaSuccess;
	return cudart_done(drv.cuMemAllocPitch((CUdeviceptr *)ptr, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *at, struct cudaExtent extent)
{
	size_t pitch;
	void *ptr;
	cudaError_t e;

	if (!at || (extent.depth && extent.height > SIZE_MAX / extent.depth))
		return cudart_fail(cudaErrorInvalidValue);
	e = cudaMallocPitch(&ptr, &pitch, extent.width, extent.height * extent.depth);
	if (!e)
		*at = (struct cudaPitchedPtr){.ptr = ptr, .pitch = pitch, .xsize = extent.width, .ysize = extent.height};
	return e;
}

cudaError_t cudaMallocManaged(void **ptr, size_t n, unsigned int flags)
{
	TRY(cudart_context());
	if (!ptr || !n)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuMemAllocManaged((CUdeviceptr *)ptr, n, flags));
}

cudaError_t cudaHostAlloc(void **ptr, size_t n, unsigned int flags)
{
	TRY(cudart_context());
	if (!ptr)
		return cudart_fail(cudaErrorInvalidValue);
	*ptr = NULL;
	if (!n)
		return cudaSuccess;
	return cudart_done(drv.cuMemHostAlloc(ptr, n, flags)); /* the flags are the driver's */
}

cudaError_t cudaMallocHost(void **ptr, size_t n)
{
	return cudaHostAlloc(ptr, n, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *ptr)
{
	TRY(cudart_context());
	return ptr ? cudart_done(drv.cuMemFreeHost(ptr)) : cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **dev, void *host, unsigned int flags)
{
	TRY(cudart_context());
	if (!dev)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuMemHostGetDevicePointer((CUdeviceptr *)dev, host, flags));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
	TRY(cudart_context());
	if (!flags)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuMemHostGetFlags(flags, host));
}

cudaError_t cudaHostRegister(void *ptr, size_t n, unsigned int flags)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemHostRegister(ptr, n, flags));
}

cudaError_t cudaHostUnregister(void *ptr)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemHostUnregister(ptr));
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	size_t f, t;

	TRY(cudart_context());
	TRY(cudart_error(drv.cuMemGetInfo(&f, &t)));
	if (free)
		*free = f;
	if (total)
		*total = t;
	return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *ptr, size_t n, enum cudaMemoryAdvise advice, struct cudaMemLocation where)
{
	CUmemLocation at = {.type = (CUmemLocationType)where.type, .id = where.id};

	TRY(cudart_context());
	return cudart_done(drv.cuMemAdvise((CUdeviceptr)ptr, n, (CUmem_advise)advice, at));
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attr, const void *ptr, size_t n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemRangeGetAttribute(data, size, (CUmem_range_attribute)attr, (CUdeviceptr)ptr, n));
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes, enum cudaMemRangeAttribute *attrs, size_t nattrs,
				      const void *ptr, size_t n)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemRangeGetAttributes(data, sizes, (CUmem_range_attribute *)attrs, nattrs, (CUdeviceptr)ptr, n));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attr, const void *ptr)
{
	CUmemorytype type = 0;
	CUdeviceptr dev = 0;
	void *host = NULL;
	int ordinal = -1;
	unsigned int managed = 0;
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
				       CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
				       CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *out[] = {&type, &dev, &host, &ordinal, &managed};

	TRY(cudart_context());
	if (!attr)
		return cudart_fail(cudaErrorInvalidValue);
	memset(attr, 0, sizeof(*attr));
	TRY(cudart_error(drv.cuPointerGetAttributes(5, which, out, (CUdeviceptr)ptr)));
	if (!type) {
		attr->type = cudaMemoryTypeUnregistered;
		attr->device = -2; /* cudaInvalidDeviceId: no device knows this memory */
		attr->hostPointer = (void *)ptr;
		return cudaSuccess;
	}
	attr->type = managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
	attr->device = ordinal;
	attr->devicePointer = (void *)dev;
	attr->hostPointer = host;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol)
{
	CUdeviceptr p;
	size_t size;

	if (!ptr)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_context());
	TRY(cudart_symbol(symbol, &p, &size));
	*ptr = (void *)p;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	CUdeviceptr p;

	if (!size)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_context());
	return cudart_fail(cudart_symbol(symbol, &p, size));
}
