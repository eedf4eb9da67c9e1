/* SPDX-License-Identifier: MIT */
/* Memory pools, and memory and events shared between processes: the runtime's names for the driver's calls. */
#include "shim/cudart/cudart.h"
#include <string.h>

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "pool properties differ between runtime and driver");
_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "IPC handles differ");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "IPC handles differ");

static cudaError_t check(int device)
{
	cudaError_t e = cudart_init();

	return e ? e : device < 0 || device >= cudart_ndevices() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	TRY(check(device));
	return cudart_done(drv.cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	TRY(check(device));
	return cudart_done(drv.cuDeviceGetMemPool(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	TRY(check(device));
	return cudart_done(drv.cuDeviceSetMemPool(device, pool));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolCreate(pool, (const CUmemPoolProps *)props));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolDestroy(pool));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolTrimTo(pool, keep));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value));
}

_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "access descriptions differ");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "locations differ");

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *desc, size_t count)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)desc, count));
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool, struct cudaMemLocation *where)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool, (CUmemLocation *)where));
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where, enum cudaMemAllocationType type)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemGetDefaultMemPool(pool, (CUmemLocation *)where, (CUmemAllocationType)type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where, enum cudaMemAllocationType type)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemGetMemPool(pool, (CUmemLocation *)where, (CUmemAllocationType)type));
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *where, enum cudaMemAllocationType type, cudaMemPool_t pool)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemSetMemPool((CUmemLocation *)where, (CUmemAllocationType)type, pool));
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
					       unsigned int flags)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolExportToShareableHandle(handle, pool, (CUmemAllocationHandleType)type, flags));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle, enum cudaMemAllocationHandleType type,
						 unsigned int flags)
{
	TRY(cudart_init());
	return cudart_done(drv.cuMemPoolImportFromShareableHandle(pool, handle, (CUmemAllocationHandleType)type, flags));
}

_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "what exports a pointer differs");

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *ptr)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, (CUdeviceptr)ptr));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data)
{
	TRY(cudart_context());
	return cudart_done(drv.cuMemPoolImportPointer((CUdeviceptr *)ptr, pool, (CUmemPoolPtrExportData *)data));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	TRY(cudart_context());
	return cudart_done(drv.cuIpcGetMemHandle((CUipcMemHandle *)handle, (CUdeviceptr)ptr));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle h;

	TRY(cudart_context());
	memcpy(&h, &handle, sizeof(h));
	return cudart_done(drv.cuIpcOpenMemHandle((CUdeviceptr *)ptr, h, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	TRY(cudart_context());
	return cudart_done(drv.cuIpcCloseMemHandle((CUdeviceptr)ptr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	TRY(cudart_context());
	return cudart_done(drv.cuIpcGetEventHandle((CUipcEventHandle *)handle, event));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle h;

	TRY(cudart_context());
	memcpy(&h, &handle, sizeof(h));
	return cudart_done(drv.cuIpcOpenEventHandle(event, h));
}
