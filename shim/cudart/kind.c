/* SPDX-License-Identifier: MIT */
/* Tells host from device pointers, for copies whose direction the program leaves to the runtime. */
#include "shim/cudart/cudart.h"

CUmemorytype cudart_memory_type(const void *p)
{
	CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
	CUmemorytype type = 0;
	void *out = &type;

	/* A pointer that the driver doesn't know is ordinary host memory: it answers with type 0. */
	if (drv.cuPointerGetAttributes(1, &which, &out, (CUdeviceptr)p) || !type)
		return CU_MEMORYTYPE_HOST;
	return type;
}

cudaError_t cudart_filled(const void *p, CUstream stream)
{
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	unsigned int managed = 0;
	CUmemorytype type = 0;
	void *out[] = {&type, &managed};
	CUresult r = drv.cuPointerGetAttributes(2, which, out, (CUdeviceptr)p);

	if (!r && (type == CU_MEMORYTYPE_HOST || managed))
		r = drv.cuStreamSynchronize(stream);
	return cudart_error(r);
}

enum cudaMemcpyKind cudart_kind(const void *dst, const void *src, enum cudaMemcpyKind kind)
{
	bool to, from;

	if (kind != cudaMemcpyDefault)
		return kind;
	to = cudart_memory_type(dst) != CU_MEMORYTYPE_HOST;
	from = cudart_memory_type(src) != CU_MEMORYTYPE_HOST;
	if (to)
		return from ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
	return from ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}
