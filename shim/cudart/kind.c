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
