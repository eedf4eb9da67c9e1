// SPDX-License-Identifier: MIT
/* Primary contexts: one per device, counted, with a handle that stays the same over release and retain. */
#include "softgpu/softgpu.h"

CUresult primary_init(struct device *d)
{
	pthread_mutex_init(&d->lock, NULL);
	/* The device keeps the reference: never freed. */
	return ctx_create(d, 0, true, &d->primary);
}

static CUresult device_enter(CUdevice dev, struct device **d)
{
	TRY(api_enter());
	*d = device_get(dev);
	return *d ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult r = CUDA_SUCCESS;
	struct device *d;

	TRY(device_enter(dev, &d));
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	if (!atomic_load(&d->primary->alive)) {
		d->primary->flags = d->primary_flags;
		r = ctx_activate(d->primary);
	}
	if (r == CUDA_SUCCESS) {
		d->retained++;
		*pctx = (CUcontext)d->primary->obj.handle;
	}
	pthread_mutex_unlock(&d->lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult r = CUDA_SUCCESS;
	struct device *d;

	TRY(device_enter(dev, &d));
	pthread_mutex_lock(&d->lock);
	if (!d->retained)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--d->retained)
		ctx_teardown(d->primary);
	pthread_mutex_unlock(&d->lock);
	return r;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct device *d;

	TRY(device_enter(dev, &d));
	pthread_mutex_lock(&d->lock);
	d->retained = 0;
	ctx_teardown(d->primary);
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct device *d;

	TRY(device_enter(dev, &d));
	if (!ctx_flags_ok(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	d->primary_flags = d->primary->flags = flags;
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *d;

	TRY(device_enter(dev, &d));
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&d->lock);
	*flags = d->primary_flags;
	*active = atomic_load(&d->primary->alive);
	pthread_mutex_unlock(&d->lock);
	return CUDA_SUCCESS;
}
