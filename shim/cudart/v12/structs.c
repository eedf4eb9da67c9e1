/* SPDX-License-Identifier: MIT */
/* Structures that are shorter, or otherwise laid out, in CUDA 12: never a byte behind their end is read or written. */
#include <string.h>
#include "shim/cudart/v12/v12.h"

RT13(cudaGetDeviceProperties, rt13_cudaGetDeviceProperties);
RT13(cudaPointerGetAttributes, rt13_cudaPointerGetAttributes);
RT13(cudaCreateTextureObject, rt13_cudaCreateTextureObject);
RT13(cudaGetTextureObjectResourceDesc, rt13_cudaGetTextureObjectResourceDesc);
RT13(cudaGetTextureObjectResourceViewDesc, rt13_cudaGetTextureObjectResourceViewDesc);
RT13(cudaCreateSurfaceObject, rt13_cudaCreateSurfaceObject);
RT13(cudaGetSurfaceObjectResourceDesc, rt13_cudaGetSurfaceObjectResourceDesc);

/* F(type, name, length) in both; G only here, from an attribute. */
/* clang-format off */
#define PROPERTIES \
	F(char, name, [256]) F(cudaUUID_t, uuid, ) F(char, luid, [8]) F(unsigned int, luidDeviceNodeMask, ) \
	F(size_t, totalGlobalMem, ) F(size_t, sharedMemPerBlock, ) F(int, regsPerBlock, ) F(int, warpSize, ) \
	F(size_t, memPitch, ) F(int, maxThreadsPerBlock, ) F(int, maxThreadsDim, [3]) F(int, maxGridSize, [3]) \
	G(clockRate, ClockRate) F(size_t, totalConstMem, ) F(int, major, ) F(int, minor, ) F(size_t, textureAlignment, ) \
	F(size_t, texturePitchAlignment, ) G(deviceOverlap, GpuOverlap) F(int, multiProcessorCount, ) \
	G(kernelExecTimeoutEnabled, KernelExecTimeout) F(int, integrated, ) F(int, canMapHostMemory, ) \
	G(computeMode, ComputeMode) F(int, maxTexture1D, ) F(int, maxTexture1DMipmap, ) \
	G(maxTexture1DLinear, MaxTexture1DLinearWidth) F(int, maxTexture2D, [2]) F(int, maxTexture2DMipmap, [2]) \
	F(int, maxTexture2DLinear, [3]) F(int, maxTexture2DGather, [2]) F(int, maxTexture3D, [3]) \
	F(int, maxTexture3DAlt, [3]) F(int, maxTextureCubemap, ) F(int, maxTexture1DLayered, [2]) \
	F(int, maxTexture2DLayered, [3]) F(int, maxTextureCubemapLayered, [2]) F(int, maxSurface1D, ) \
	F(int, maxSurface2D, [2]) F(int, maxSurface3D, [3]) F(int, maxSurface1DLayered, [2]) F(int, maxSurface2DLayered, [3]) \
	F(int, maxSurfaceCubemap, ) F(int, maxSurfaceCubemapLayered, [2]) F(size_t, surfaceAlignment, ) \
	F(int, concurrentKernels, ) F(int, ECCEnabled, ) F(int, pciBusID, ) F(int, pciDeviceID, ) F(int, pciDomainID, ) \
	F(int, tccDriver, ) F(int, asyncEngineCount, ) F(int, unifiedAddressing, ) G(memoryClockRate, MemoryClockRate) \
	F(int, memoryBusWidth, ) F(int, l2CacheSize, ) F(int, persistingL2CacheMaxSize, ) \
	F(int, maxThreadsPerMultiProcessor, ) F(int, streamPrioritiesSupported, ) F(int, globalL1CacheSupported, ) \
	F(int, localL1CacheSupported, ) F(size_t, sharedMemPerMultiprocessor, ) F(int, regsPerMultiprocessor, ) \
	F(int, managedMemory, ) F(int, isMultiGpuBoard, ) F(int, multiGpuBoardGroupID, ) F(int, hostNativeAtomicSupported, ) \
	G(singleToDoublePrecisionPerfRatio, SingleToDoublePrecisionPerfRatio) F(int, pageableMemoryAccess, ) \
	F(int, concurrentManagedAccess, ) F(int, computePreemptionSupported, ) F(int, canUseHostPointerForRegisteredMem, ) \
	F(int, cooperativeLaunch, ) G(cooperativeMultiDeviceLaunch, CooperativeMultiDeviceLaunch) \
	F(size_t, sharedMemPerBlockOptin, ) F(int, pageableMemoryAccessUsesHostPageTables, ) \
	F(int, directManagedMemAccessFromHost, ) F(int, maxBlocksPerMultiProcessor, ) F(int, accessPolicyMaxWindowSize, ) \
	F(size_t, reservedSharedMemPerBlock, ) F(int, hostRegisterSupported, ) F(int, sparseCudaArraySupported, ) \
	F(int, hostRegisterReadOnlySupported, ) F(int, timelineSemaphoreInteropSupported, ) F(int, memoryPoolsSupported, ) \
	F(int, gpuDirectRDMASupported, ) F(unsigned int, gpuDirectRDMAFlushWritesOptions, ) \
	F(int, gpuDirectRDMAWritesOrdering, ) F(unsigned int, memoryPoolSupportedHandleTypes, ) \
	F(int, deferredMappingCudaArraySupported, ) F(int, ipcEventSupported, ) F(int, clusterLaunch, ) \
	F(int, unifiedFunctionPointers, )
/* clang-format on */

/* 13 dropped its name. */
#define cudaDevAttrCooperativeMultiDeviceLaunch ((enum cudaDeviceAttr)CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH)

struct prop12 {
#define F(type, name, length) type name length;
#define G(name, attr)	      int name;
	PROPERTIES
#undef F
#undef G
	int reserved[63];
};
_Static_assert(sizeof(struct prop12) == 1032, "as CUDA 12 has it");

V12(cudaGetDeviceProperties_v2, (struct prop12 * out, int device))
{
	struct cudaDeviceProp p;
	cudaError_t r = out ? rt13_cudaGetDeviceProperties(&p, device) : cudart_fail(cudaErrorInvalidValue);

	if (r)
		return r;
	memset(out, 0, sizeof(*out));
#define F(type, name, length) memcpy(&out->name, &p.name, sizeof(out->name));
#define G(name, attr)	      cudaDeviceGetAttribute(&out->name, cudaDevAttr##attr, device);
	PROPERTIES
#undef F
#undef G
	return cudaSuccess;
}

/* The name without _v2 is older still: the structure ended here. */
V12(cudaGetDeviceProperties, (void *out, int device))
{
	struct prop12 p;
	cudaError_t r = out ? v12_cudaGetDeviceProperties_v2(&p, device) : cudart_fail(cudaErrorInvalidValue);

	if (!r)
		memcpy(out, &p, offsetof(struct prop12, hostRegisterSupported));
	return r;
}

V12(cudaPointerGetAttributes, (void *out, const void *ptr))
{
	struct cudaPointerAttributes a;
	cudaError_t r = out ? rt13_cudaPointerGetAttributes(&a, ptr) : cudart_fail(cudaErrorInvalidValue);

	if (!r)
		memcpy(out, &a, offsetof(struct cudaPointerAttributes, reserved));
	return r;
}

#define RESOURCE_12 64 /* bytes: the kind, and a union without room to grow */
#define VIEW_12	    offsetof(struct cudaResourceViewDesc, reserved)
_Static_assert(offsetof(struct cudaResourceDesc, res) + sizeof(((struct cudaResourceDesc *)0)->res.pitch2D) == RESOURCE_12,
	       "as CUDA 12 has it");

static const struct cudaResourceDesc *resource(const void *in, struct cudaResourceDesc *out)
{
	if (!in)
		return NULL;
	memset(out, 0, sizeof(*out));
	memcpy(out, in, RESOURCE_12);
	return out;
}

V12(cudaCreateTextureObject, (cudaTextureObject_t * tex, const void *res, const struct cudaTextureDesc *desc, const void *view))
{
	struct cudaResourceViewDesc v = {0};
	struct cudaResourceDesc d;

	if (view)
		memcpy(&v, view, VIEW_12);
	return rt13_cudaCreateTextureObject(tex, resource(res, &d), desc, view ? &v : NULL);
}

V12(cudaCreateSurfaceObject, (cudaSurfaceObject_t * surf, const void *res))
{
	struct cudaResourceDesc d;

	return rt13_cudaCreateSurfaceObject(surf, resource(res, &d));
}

V12(cudaGetTextureObjectResourceDesc, (void *out, cudaTextureObject_t tex))
{
	struct cudaResourceDesc d;
	cudaError_t r = rt13_cudaGetTextureObjectResourceDesc(out ? &d : NULL, tex);

	if (!r)
		memcpy(out, &d, RESOURCE_12);
	return r;
}

V12(cudaGetTextureObjectResourceViewDesc, (void *out, cudaTextureObject_t tex))
{
	struct cudaResourceViewDesc d;
	cudaError_t r = rt13_cudaGetTextureObjectResourceViewDesc(out ? &d : NULL, tex);

	if (!r)
		memcpy(out, &d, VIEW_12);
	return r;
}

V12(cudaGetSurfaceObjectResourceDesc, (void *out, cudaSurfaceObject_t surf))
{
	struct cudaResourceDesc d;
	cudaError_t r = rt13_cudaGetSurfaceObjectResourceDesc(out ? &d : NULL, surf);

	if (!r)
		memcpy(out, &d, RESOURCE_12);
	return r;
}
