/* SPDX-License-Identifier: MIT */
/* Devices: count, choose, flags, limits, attributes by number, synchronise, reset; versions and the profiler's switches. */
#include "shim/cudart/channel.h"
#include <stdatomic.h>
#include <string.h>

static cudaError_t check(int device)
{
	cudaError_t e = cudart_init();

	return e ? e : device < 0 || device >= cudart_ndevices() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	if (!count)
		return cudart_fail(cudaErrorInvalidValue);
	*count = 0;
	TRY(cudart_init());
	/* The driver knows whether this is a child of fork, where there is nothing. */
	return cudart_done(drv.cuDeviceGetCount(count));
}

cudaError_t cudaSetDevice(int device)
{
	return cudart_fail(cudart_set_device(device));
}

cudaError_t cudaGetDevice(int *device)
{
	if (!device)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_fail(cudart_device(device));
}

/* Scheduling flags; the driver takes them for the primary context, active or not. */
static cudaError_t set_flags(int device, unsigned int flags)
{
	/* Mapped host memory is always there on devices of today: the driver doesn't know that bit for a primary context. */
	return cudart_error(drv.cuDevicePrimaryCtxSetFlags(device, flags & ~(cudaDeviceMapHost | cudaDeviceSyncMemops)));
}

cudaError_t cudaInitDevice(int device, unsigned int flags, unsigned int how)
{
	TRY(check(device));
	if (how & ~cudaInitDeviceFlagsAreValid)
		return cudart_fail(cudaErrorInvalidValue);
	if (how & cudaInitDeviceFlagsAreValid)
		TRY(set_flags(device, flags));
	return cudart_primary(device) ? cudaSuccess : cudart_fail(cudaErrorDevicesUnavailable);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	int device;

	if (flags & ~cudaDeviceMask)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_device(&device));
	return cudart_fail(set_flags(device, flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	int device, active;

	if (!flags)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_device(&device));
	TRY(cudart_error(drv.cuDevicePrimaryCtxGetState(device, flags, &active)));
	*flags |= cudaDeviceMapHost;
	return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *devices, int n)
{
	TRY(cudart_init());
	if (n < 0 || (n && !devices))
		return cudart_fail(cudaErrorInvalidValue);
	for (int i = 0; i < n; i++)
		TRY(check(devices[i]));
	/* Its first is what a thread that never chose uses; 0 devices mean the default list. */
	return n ? cudaSetDevice(devices[0]) : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	TRY(check(device));
	if (!value)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	CUdevice d;

	TRY(cudart_init());
	if (!device || !id)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuDeviceGetByPCIBusId(&d, id)));
	*device = d;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	TRY(check(device));
	if (!id || len < 1)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuDeviceGetPCIBusId(id, len, device));
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const struct cudaChannelFormatDesc *d, int device)
{
	CUarray_format format;
	unsigned int n;

	TRY(check(device));
	if (!width || !d)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_format(d, &format, &n));
	return cudart_done(drv.cuDeviceGetTexture1DLinearMaxWidth(width, format, n, device));
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
					       enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	TRY(cudart_context());
	return cudart_done(
		drv.cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)target, (CUflushGPUDirectRDMAWritesScope)scope));
}

cudaError_t cudaDeviceSynchronize(void)
{
	TRY(cudart_context());
	return cudart_done(drv.cuCtxSynchronize());
}

cudaError_t cudaDeviceReset(void)
{
	int device;

	TRY(cudart_device(&device));
	TRY(cudart_error(drv.cuDevicePrimaryCtxReset(device)));
	cudart_drop_primary(device);
	cudart_managed_gone(device);
	cudart_forget_sticky();
	return cudart_done(drv.cuCtxSetCurrent(NULL));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	TRY(cudart_context());
	if (!value)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuCtxGetLimit(value, (CUlimit)limit));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	TRY(cudart_context());
	return cudart_done(drv.cuCtxSetLimit((CUlimit)limit, value));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	CUfunc_cache c;

	TRY(cudart_context());
	if (!config)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuCtxGetCacheConfig(&c)));
	*config = (enum cudaFuncCache)c;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	TRY(cudart_context());
	return cudart_done(drv.cuCtxSetCacheConfig((CUfunc_cache)config));
}

/* As in cudaFuncSetSharedMemConfig: banks are four bytes wide on every device of today. */
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
	TRY(cudart_context());
	if (!config)
		return cudart_fail(cudaErrorInvalidValue);
	*config = cudaSharedMemBankSizeFourByte;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	TRY(cudart_context());
	return cudart_fail((unsigned int)config > cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	TRY(cudart_context());
	return cudart_done(drv.cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	TRY(cudart_context());
	return cudart_done(drv.cuCtxResetPersistingL2Cache());
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return cudart_fail(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return cudart_fail(cudaErrorInvalidValue);
	*version = 0; /* no driver: CUDA says 0 and success */
	return drv_load() ? cudaSuccess : cudart_done(drv.cuDriverGetVersion(version));
}

cudaError_t cudaProfilerStart(void)
{
	TRY(cudart_context());
	return cudart_done(drv.cuProfilerStart());
}

cudaError_t cudaProfilerStop(void)
{
	TRY(cudart_context());
	return cudart_done(drv.cuProfilerStop());
}
