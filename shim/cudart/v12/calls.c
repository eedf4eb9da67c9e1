/* SPDX-License-Identifier: MIT */
/* Calls whose parameters CUDA 13 changed, and those that it dropped. */
#include "shim/cudart/v12/v12.h"

RT13(cudaMemAdvise, cudaMemAdvise_v2);
RT13(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2);
RT13(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2_ptsz);
RT13(cudaGraphAddDependencies, cudaGraphAddDependencies_v2);
RT13(cudaGraphRemoveDependencies, cudaGraphRemoveDependencies_v2);
RT13(cudaGraphAddNode, cudaGraphAddNode_v2);
RT13(cudaGraphGetEdges, cudaGraphGetEdges_v2);
RT13(cudaGraphNodeGetDependencies, cudaGraphNodeGetDependencies_v2);
RT13(cudaGraphNodeGetDependentNodes, cudaGraphNodeGetDependentNodes_v2);
RT13(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3);
RT13(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_v3_ptsz);
RT13(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_v2);
RT13(cudaStreamUpdateCaptureDependencies, cudaStreamUpdateCaptureDependencies_v2_ptsz);

/* A device by its number alone, and the host by −1. */
static struct cudaMemLocation location(int device)
{
	return (struct cudaMemLocation){.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice,
					.id = device == cudaCpuDeviceId ? 0 : device};
}

V12(cudaMemAdvise, (const void *p, size_t count, enum cudaMemoryAdvise advice, int device))
{
	return cudaMemAdvise_v2(p, count, advice, location(device));
}

V12(cudaMemPrefetchAsync, (const void *p, size_t count, int device, cudaStream_t s))
{
	return cudaMemPrefetchAsync_v2(p, count, location(device), 0, s);
}

V12(cudaMemPrefetchAsync_ptsz, (const void *p, size_t count, int device, cudaStream_t s))
{
	return cudaMemPrefetchAsync_v2_ptsz(p, count, location(device), 0, s);
}

/* Graphs without data on their edges. */
V12(cudaGraphAddDependencies, (cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t n))
{
	return cudaGraphAddDependencies_v2(g, from, to, NULL, n);
}

V12(cudaGraphRemoveDependencies, (cudaGraph_t g, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t n))
{
	return cudaGraphRemoveDependencies_v2(g, from, to, NULL, n);
}

V12(cudaGraphAddNode,
    (cudaGraphNode_t * node, cudaGraph_t g, const cudaGraphNode_t *deps, size_t n, struct cudaGraphNodeParams *params))
{
	return cudaGraphAddNode_v2(node, g, deps, NULL, n, params);
}

V12(cudaGraphGetEdges, (cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *n))
{
	return cudaGraphGetEdges_v2(g, from, to, NULL, n);
}

V12(cudaGraphNodeGetDependencies, (cudaGraphNode_t node, cudaGraphNode_t *deps, size_t *n))
{
	return cudaGraphNodeGetDependencies_v2(node, deps, NULL, n);
}

V12(cudaGraphNodeGetDependentNodes, (cudaGraphNode_t node, cudaGraphNode_t *deps, size_t *n))
{
	return cudaGraphNodeGetDependentNodes_v2(node, deps, NULL, n);
}

#define CAPTURE(suffix)                                                                                                          \
	V12(cudaStreamGetCaptureInfo##suffix, (cudaStream_t s, enum cudaStreamCaptureStatus * status, unsigned long long *id))   \
	{                                                                                                                        \
		return cudaStreamGetCaptureInfo_v3##suffix(s, status, id, NULL, NULL, NULL, NULL);                               \
	}                                                                                                                        \
	V12(cudaStreamGetCaptureInfo_v2##suffix, (cudaStream_t s, enum cudaStreamCaptureStatus * status, unsigned long long *id, \
						  cudaGraph_t *g, const cudaGraphNode_t **deps, size_t *n))                      \
	{                                                                                                                        \
		return cudaStreamGetCaptureInfo_v3##suffix(s, status, id, g, deps, NULL, n);                                     \
	}                                                                                                                        \
	V12(cudaStreamUpdateCaptureDependencies##suffix, (cudaStream_t s, cudaGraphNode_t * deps, size_t n, unsigned int flags)) \
	{                                                                                                                        \
		return cudaStreamUpdateCaptureDependencies_v2##suffix(s, deps, NULL, n, flags);                                  \
	}

CAPTURE()
CAPTURE(_ptsz)

V12(cudaEventElapsedTime_v2, (float *ms, cudaEvent_t start, cudaEvent_t end))
{
	return cudaEventElapsedTime(ms, start, end);
}

/* Batches say which copy failed: the driver's calls of that time do. NULL: it has none. */
static void *driver_call(const char *name)
{
	CUdriverProcAddressQueryResult found;
	void *fn = NULL;

	return drv.cuGetProcAddress(name, &fn, RUNTIME_12, 0, &found) ? NULL : fn;
}

static cudaError_t batch(void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs, size_t *idxs,
			 size_t nattrs, size_t *fail, CUstream s)
{
	CUresult (*fn)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *,
		       CUstream);

	TRY(cudart_context());
	fn = driver_call("cuMemcpyBatchAsync");
	return cudart_done(fn ? fn((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, sizes, count, (CUmemcpyAttributes *)attrs, idxs,
				   nattrs, fail, s)
			      : CUDA_ERROR_NOT_SUPPORTED);
}

static cudaError_t batch3d(size_t n, struct cudaMemcpy3DBatchOp *ops, size_t *fail, unsigned long long flags, CUstream s)
{
	CUresult (*fn)(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);

	TRY(cudart_context());
	fn = driver_call("cuMemcpy3DBatchAsync");
	return cudart_done(fn ? fn(n, (CUDA_MEMCPY3D_BATCH_OP *)ops, fail, flags, s) : CUDA_ERROR_NOT_SUPPORTED);
}

#define BATCH(suffix, own)                                                                                                       \
	V12(cudaMemcpyBatchAsync##suffix,                                                                                        \
	    (void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs, size_t *idxs,            \
	     size_t nattrs, size_t *fail, cudaStream_t s))                                                                       \
	{                                                                                                                        \
		return batch(dsts, srcs, sizes, count, attrs, idxs, nattrs, fail, s ? s : own);                                  \
	}                                                                                                                        \
	V12(cudaMemcpy3DBatchAsync##suffix,                                                                                      \
	    (size_t n, struct cudaMemcpy3DBatchOp * ops, size_t * fail, unsigned long long flags, cudaStream_t s))               \
	{                                                                                                                        \
		return batch3d(n, ops, fail, flags, s ? s : own);                                                                \
	}

BATCH(, CU_STREAM_LEGACY)
BATCH(_ptsz, CU_STREAM_PER_THREAD)

V12(cudaRuntimeGetVersion, (int *version))
{
	if (!version)
		return cudart_fail(cudaErrorInvalidValue);
	*version = RUNTIME_12;
	return cudaSuccess;
}

/* Driver functions as this runtime's header has them. */
V12(cudaGetDriverEntryPoint,
    (const char *symbol, void **fn, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status))
{
	return cudaGetDriverEntryPointByVersion(symbol, fn, RUNTIME_12, flags, status);
}

V12(cudaGetDriverEntryPoint_ptsz,
    (const char *symbol, void **fn, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status))
{
	extern __typeof__(cudaGetDriverEntryPointByVersion) cudaGetDriverEntryPointByVersion_ptsz;

	return cudaGetDriverEntryPointByVersion_ptsz(symbol, fn, RUNTIME_12, flags, status);
}

/* Dropped in 13: the device's names are what they stood for. */
V12(cudaThreadExit, (void))
{
	return cudaDeviceReset();
}

V12(cudaThreadSynchronize, (void))
{
	return cudaDeviceSynchronize();
}

V12(cudaThreadGetCacheConfig, (enum cudaFuncCache * config))
{
	return cudaDeviceGetCacheConfig(config);
}

V12(cudaThreadSetCacheConfig, (enum cudaFuncCache config))
{
	return cudaDeviceSetCacheConfig(config);
}

V12(cudaThreadGetLimit, (size_t * value, enum cudaLimit limit))
{
	return cudaDeviceGetLimit(value, limit);
}

V12(cudaThreadSetLimit, (enum cudaLimit limit, size_t value))
{
	return cudaDeviceSetLimit(limit, value);
}

/* Doubles are doubles on every device that is left. */
V12(cudaSetDoubleForDevice, (double *d))
{
	return d ? cudaSuccess : cudart_fail(cudaErrorInvalidValue);
}

V12(cudaSetDoubleForHost, (double *d))
{
	return d ? cudaSuccess : cudart_fail(cudaErrorInvalidValue);
}

/* cudaDevAttrCooperativeMultiDeviceLaunch is 0. */
V12(cudaLaunchCooperativeKernelMultiDevice, (void *list, unsigned int n, unsigned int flags))
{
	(void)list, (void)n, (void)flags;
	return cudart_fail(cudaErrorNotSupported);
}
