/* SPDX-License-Identifier: MIT */
/* The runtime's lazy start: driver, devices, each thread's device and the primary contexts behind it. */
#include "shim/cudart/cudart.h"
#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t outcome = cudaErrorInitializationError;
static int ndevices;

/* Guards primary[]; held over the driver's retain so that two threads don't both do it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext *primary;

static _Thread_local int thread_device;

static void start(void)
{
	CUresult r;

	outcome = drv_load();
	if (outcome)
		return;
	r = drv.cuInit(0);
	if (!r)
		r = drv.cuDeviceGetCount(&ndevices);
	if (r) {
		outcome = cudart_error(r);
		return;
	}
	if (!ndevices) {
		outcome = cudaErrorNoDevice;
		return;
	}
	primary = calloc(ndevices, sizeof(*primary));
	outcome = primary ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudart_init(void)
{
	pthread_once(&once, start);
	return outcome;
}

int cudart_ndevices(void)
{
	return ndevices;
}

static cudaError_t retain(int ordinal, CUcontext *ctx)
{
	CUresult r = CUDA_SUCCESS;
	CUdevice dev;

	pthread_mutex_lock(&lock);
	if (!primary[ordinal]) {
		r = drv.cuDeviceGet(&dev, ordinal);
		if (!r)
			r = drv.cuDevicePrimaryCtxRetain(&primary[ordinal], dev);
		if (r)
			primary[ordinal] = NULL;
	}
	*ctx = primary[ordinal];
	pthread_mutex_unlock(&lock);
	return cudart_error(r);
}

CUcontext cudart_primary(int ordinal)
{
	CUcontext ctx;

	return retain(ordinal, &ctx) ? NULL : ctx;
}

void cudart_drop_primary(int ordinal)
{
	pthread_mutex_lock(&lock);
	primary[ordinal] = NULL;
	pthread_mutex_unlock(&lock);
}

cudaError_t cudart_set_device(int ordinal)
{
	cudaError_t e = cudart_init();
	CUcontext ctx;

	if (e)
		return e;
	if (ordinal < 0 || ordinal >= ndevices)
		return cudaErrorInvalidDevice;
	e = retain(ordinal, &ctx);
	if (!e)
		e = cudart_error(drv.cuCtxSetCurrent(ctx));
	if (!e)
		thread_device = ordinal;
	return e;
}

cudaError_t cudart_context(void)
{
	cudaError_t e = cudart_init();
	CUcontext ctx = NULL;

	if (e)
		return e;
	e = cudart_error(drv.cuCtxGetCurrent(&ctx));
	if (!e && !ctx)
		e = cudart_set_device(thread_device);
	return e ? e : cudart_managed_again();
}

cudaError_t cudart_device(int *ordinal)
{
	cudaError_t e = cudart_init();
	CUcontext ctx = NULL;
	CUdevice dev;

	if (e)
		return e;
	*ordinal = thread_device;
	e = cudart_error(drv.cuCtxGetCurrent(&ctx));
	if (!e && ctx && !drv.cuCtxGetDevice(&dev))
		*ordinal = dev; /* a CUdevice is the ordinal */
	return e;
}
