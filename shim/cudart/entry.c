/* SPDX-License-Identifier: MIT */
/* Ways for a program to the driver's own functions. Compiled twice: see CUDART_PER_THREAD in cudart.h. */
#include "shim/cudart/cudart.h"

/* The version of a driver call that a program means when it doesn't say: the one of this runtime. */
static cudaError_t lookup(const char *symbol, void **fn, int version, unsigned long long flags,
			  enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found;
	CUresult r;

	if (drv_load())
		return cudart_fail(cudaErrorInsufficientDriver);
	if (!symbol || !fn)
		return cudart_fail(cudaErrorInvalidValue);
#ifdef CUDART_PER_THREAD
	if (flags == cudaEnableDefault)
		flags = cudaEnablePerThreadDefaultStream;
#endif
	*fn = NULL;
	r = drv.cuGetProcAddress(symbol, fn, version, flags, &found);
	/* What a driver hasn't got is an answer where the program has room for it. */
	if (r == CUDA_ERROR_NOT_FOUND && status) {
		*status = found == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT ? cudaDriverEntryPointVersionNotSufficent
									      : cudaDriverEntryPointSymbolNotFound;
		return cudaSuccess;
	}
	if (!r && status)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	return cudart_done(r);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **fn, unsigned int version, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	return lookup(symbol, fn, (int)version, flags, status);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **fn, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return lookup(symbol, fn, CUDART_VERSION, flags, status);
}
