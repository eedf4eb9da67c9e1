// SPDX-License-Identifier: MIT
/* cuGetProcAddress, and what the names lead to that softgpu does not implement. */
#include "softgpu/softgpu.h"
#include "softgpu/procaddr.h"

#include <string.h>

int api_unsupported(const char *name);

int api_unsupported(const char *name)
{
	log_line("%s is not supported yet", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The newest ABI that isn't newer than the caller's header; of the per-thread ones when asked, where there are such. */
static const struct procaddr *find(const char *name, int version, bool per_thread, bool *known)
{
	const struct procaddr *best = NULL;

	*known = false;
	for (unsigned int i = 0; i < procaddr_count; i++) {
		const struct procaddr *p = &procaddr_table[i];

		if (strcmp(p->name, name))
			continue;
		*known = true;
		if (p->version > version || (p->per_thread && !per_thread))
			continue;
		if (!best || p->per_thread > best->per_thread ||
		    (p->per_thread == best->per_thread && p->version > best->version))
			best = p;
	}
	return best;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const struct procaddr *p;
	bool known;

	if (!symbol || !fn || version > SOFTGPU_DRIVER_VERSION ||
	    flags & ~(cuuint64_t)(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	p = find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
	*fn = p ? (void *)p->fn : NULL;
	if (status)
		*status = p	  ? CU_GET_PROC_ADDRESS_SUCCESS
			  : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
				  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/* With a place for its status the caller reads that; without one the call's own says it. */
	return p || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **fn, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
