/* SPDX-License-Identifier: MIT */
/* Libraries that the program loads itself, and their kernels. */
#include "shim/cudart/cudart.h"
#include <stdlib.h>

/* Options are the driver's, number for number. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *lib, const void *code, enum cudaJitOption *jit, void **jit_values,
				unsigned int njit, enum cudaLibraryOption *options, void **values, unsigned int noptions)
{
	TRY(cudart_init());
	if (!lib || !code)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuLibraryLoadData(lib, code, (CUjit_option *)jit, jit_values, njit, (CUlibraryOption *)options,
						 values, noptions));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *lib, const char *file, enum cudaJitOption *jit, void **jit_values,
				    unsigned int njit, enum cudaLibraryOption *options, void **values, unsigned int noptions)
{
	TRY(cudart_init());
	if (!lib || !file)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuLibraryLoadFromFile(lib, file, (CUjit_option *)jit, jit_values, njit, (CUlibraryOption *)options,
						     values, noptions));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t lib)
{
	unsigned int n = 0;
	CUkernel *kernels;

	TRY(cudart_init());
	/* Its kernels' handles may be given to others afterwards: they aren't ours any more. */
	if (!drv.cuLibraryGetKernelCount(&n, lib) && n) {
		kernels = malloc(n * sizeof(*kernels));
		if (kernels && !drv.cuLibraryEnumerateKernels(kernels, n, lib))
			for (unsigned int i = 0; i < n; i++)
				cudart_forget_kernel(kernels[i]);
		free(kernels);
	}
	return cudart_done(drv.cuLibraryUnload(lib));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t lib, const char *name)
{
	TRY(cudart_init());
	if (!kernel || !name)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuLibraryGetKernel(kernel, lib, name)));
	cudart_know_kernel(*kernel);
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *n, cudaLibrary_t lib)
{
	TRY(cudart_init());
	if (!n)
		return cudart_fail(cudaErrorInvalidValue);
	return cudart_done(drv.cuLibraryGetKernelCount(n, lib));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int n, cudaLibrary_t lib)
{
	TRY(cudart_init());
	if (!kernels)
		return cudart_fail(cudaErrorInvalidValue);
	TRY(cudart_error(drv.cuLibraryEnumerateKernels(kernels, n, lib)));
	for (unsigned int i = 0; i < n; i++)
		cudart_know_kernel(kernels[i]);
	return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *size, cudaLibrary_t lib, const char *name)
{
	TRY(cudart_context());
	return cudart_done(drv.cuLibraryGetGlobal((CUdeviceptr *)ptr, size, lib, name));
}

cudaError_t cudaLibraryGetManaged(void **ptr, size_t *size, cudaLibrary_t lib, const char *name)
{
	TRY(cudart_context());
	return cudart_done(drv.cuLibraryGetManaged((CUdeviceptr *)ptr, size, lib, name));
}

cudaError_t cudaLibraryGetUnifiedFunction(void **fn, cudaLibrary_t lib, const char *name)
{
	TRY(cudart_context());
	return cudart_done(drv.cuLibraryGetUnifiedFunction(fn, lib, name));
}
