/* SPDX-License-Identifier: MIT */
/* Errors of the runtime: from the driver's numbers to cudaError_t, the thread's last error, names and texts. */
#include "shim/cudart/cudart.h"
#include <stdatomic.h>

static const struct {
	cudaError_t code;
	const char *name, *text;
} table[] = {
#define E(code, text) {code, #code, text},
#include "shim/cudart/errors.h"
#undef E
};

static int find(cudaError_t e)
{
	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == e)
			return i;
	return -1;
}

const char *cudaGetErrorName(cudaError_t e)
{
	int i = find(e);

	return i < 0 ? "unrecognized error code" : table[i].name;
}

const char *cudaGetErrorString(cudaError_t e)
{
	int i = find(e);

	return i < 0 ? "unrecognized error code" : table[i].text;
}

/* Since CUDA 10.1 both enums use the same numbers for the same causes; what the runtime's enum lacks is unknown. */
cudaError_t cudart_error(CUresult r)
{
	cudaError_t e = (cudaError_t)r;

	return find(e) < 0 ? cudaErrorUnknown : e;
}

/*
 * The last error is the thread's. One that killed the context (sticky) stays until cudaDeviceReset, told
 * by the generation, because every later call would return it again anyway.
 */
static _Thread_local cudaError_t last;
static _Thread_local unsigned int last_generation;
static atomic_uint generation;

static bool sticky(cudaError_t e)
{
	switch (e) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContained:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
	case cudaErrorMpsClientTerminated:
		return true;
	default:
		return false;
	}
}

static bool stuck(void)
{
	return sticky(last) && last_generation == atomic_load_explicit(&generation, memory_order_relaxed);
}

void cudart_forget_sticky(void)
{
	atomic_fetch_add(&generation, 1);
}

cudaError_t cudart_fail(cudaError_t e)
{
	/* Not ready is an answer, no error. */
	if (e != cudaSuccess && e != cudaErrorNotReady && !stuck()) {
		last = e;
		last_generation = atomic_load_explicit(&generation, memory_order_relaxed);
	}
	return e;
}

cudaError_t cudart_done(CUresult r)
{
	return r == CUDA_SUCCESS ? cudaSuccess : cudart_fail(cudart_error(r));
}

cudaError_t cudaPeekAtLastError(void)
{
	if (sticky(last) && !stuck())
		last = cudaSuccess;
	return last;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t e = cudaPeekAtLastError();

	if (!stuck())
		last = cudaSuccess;
	return e;
}
