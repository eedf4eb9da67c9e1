/* SPDX-License-Identifier: MIT */
/* Two devices: whether one may reach the other's memory, and copies between them. */
#include "shim/cudart/cudart.h"

static cudaError_t check(int device)
{
	cudaError_t e = cudart_init();

	return e ? e : device < 0 || device >= cudart_ndevices() ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *yes, int device, int peer)
{
	TRY(check(device));
	TRY(check(peer));
	if (!yes)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuDeviceCanAccessPeer(yes, device, peer));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int src, int dst)
{
	TRY(check(src));
	TRY(check(dst));
	return cudart_done(drv.cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr, src, dst));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	CUcontext ctx;
	int own;

	TRY(check(peer));
	TRY(cudart_device(&own));
	if (peer == own)
		return cudart_fail(cudaErrorInvalidDevice);
	TRY(cudart_context());
	ctx = cudart_primary(peer);
	if (!ctx)
		return cudart_fail(cudaErrorDevicesUnavailable);
	return cudart_done(drv.cuCtxEnablePeerAccess(ctx, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;

	TRY(check(peer));
	TRY(cudart_context());
	ctx = cudart_primary(peer);
	if (!ctx)
		return cudart_fail(cudaErrorDevicesUnavailable);
	return cudart_done(drv.cuCtxDisablePeerAccess(ctx));
}

static cudaError_t contexts(int dst_device, int src_device, CUcontext *dst, CUcontext *src)
{
	cudaError_t e = check(dst_device);

	if (!e)
		e = check(src_device);
	if (!e)
		e = cudart_context();
	if (e)
		return e;
	*dst = cudart_primary(dst_device);
	*src = cudart_primary(src_device);
	return *dst && *src ? cudaSuccess : cudaErrorDevicesUnavailable;
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t n)
{
	CUcontext to, from;

	TRY(contexts(dst_device, src_device, &to, &from));
	return n ? cudart_done(drv.cuMemcpyPeer((CUdeviceptr)dst, to, (CUdeviceptr)src, from, n)) : cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t n, cudaStream_t stream)
{
	CUcontext to, from;

	TRY(contexts(dst_device, src_device, &to, &from));
	return n ? cudart_done(drv.cuMemcpyPeerAsync((CUdeviceptr)dst, to, (CUdeviceptr)src, from, n, stream_of(stream)))
		 : cudaSuccess;
}
