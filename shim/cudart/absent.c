/* SPDX-License-Identifier: MIT */
/* Features that the devices here do not have, as the driver says: what a program is told that asks for them all the same. */
#include "shim/cudart/cudart.h"

#define ABSENT(name, ...)                                                                                                        \
	cudaError_t name(__VA_ARGS__)                                                                                            \
	{                                                                                                                        \
		TRY(cudart_init());                                                                                              \
		return cudart_fail(cudaErrorNotSupported);                                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

ABSENT(cudaDeviceRegisterAsyncNotification, int device, cudaAsyncCallback fn, void *data, cudaAsyncCallbackHandle_t *callback)
ABSENT(cudaDeviceUnregisterAsyncNotification, int device, cudaAsyncCallbackHandle_t callback)
ABSENT(cudaLogsRegisterCallback, cudaLogsCallback_t fn, void *data, cudaLogsCallbackHandle *out)
ABSENT(cudaLogsUnregisterCallback, cudaLogsCallbackHandle callback)
ABSENT(cudaLogsCurrent, cudaLogIterator *out, unsigned int flags)
ABSENT(cudaLogsDumpToFile, cudaLogIterator *it, const char *path, unsigned int flags)
ABSENT(cudaLogsDumpToMemory, cudaLogIterator *it, char *buffer, size_t *size, unsigned int flags)

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const enum cudaAtomicOperation *operations,
						unsigned int count, int device)
{
	TRY(cudart_init());
	return cudart_done(
		drv.cuDeviceGetHostAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count, device));
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const enum cudaAtomicOperation *operations,
					       unsigned int count, int srcDevice, int dstDevice)
{
	TRY(cudart_init());
	return cudart_done(drv.cuDeviceGetP2PAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count,
								srcDevice, dstDevice));
}

/* NVIDIA's own tables: the driver has none to give. */
cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
	TRY(cudart_init());
	return cudart_done(drv.cuGetExportTable(table, id));
}
