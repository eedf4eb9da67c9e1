/* SPDX-License-Identifier: MIT */
/* What the files of our CUDA runtime share: the public header with its names exported, and the helpers between the files. */
#ifndef RGPU_CUDART_H
#define RGPU_CUDART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "shim/cudart/drv.h"

/*
 * The runtime has two variants of each call that uses the default stream: NAME, where it's the legacy
 * one, and NAME_ptsz or NAME_ptds, where it's the thread's own. Their files are compiled twice; with
 * CUDART_PER_THREAD the public header renames the functions. It comes after cuda.h, which must not.
 */
#ifdef CUDART_PER_THREAD
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#define DEFAULT_STREAM			   CU_STREAM_PER_THREAD
#else
#define DEFAULT_STREAM CU_STREAM_LEGACY
#endif

/* Everything that the public header declares is visible, and nothing else. */
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#include <cuda_profiler_api.h>
#pragma GCC visibility pop

#define CUDART_API __attribute__((visibility("default")))

static inline CUstream stream_of(cudaStream_t s)
{
	return s ? s : DEFAULT_STREAM;
}

/* error.c. Every call that fails goes through one of these, on its way out. */
cudaError_t cudart_fail(cudaError_t e); /* remembers @e for cudaGetLastError, when it's an error, and returns it */
cudaError_t cudart_done(CUresult r);	/* the same for what the driver said */
cudaError_t cudart_error(CUresult r);	/* translates only */
void cudart_forget_sticky(void);	/* after cudaDeviceReset */

/*
 * init.c. cudart_init() makes the driver usable; cudart_context() also sees that the thread has a
 * current context, the primary one of its device unless the program chose another. Both return an error
 * that is not remembered yet: use TRY().
 */
cudaError_t cudart_init(void);
cudaError_t cudart_context(void);
cudaError_t cudart_device(int *ordinal); /* the thread's, without making a context */
cudaError_t cudart_set_device(int ordinal);
CUcontext cudart_primary(int ordinal); /* retained on first use; NULL on failure */
int cudart_ndevices(void);
void cudart_drop_primary(int ordinal); /* it was reset: retain it again when it's needed */

#define TRY(expr)                                                                                                                \
	do {                                                                                                                     \
		cudaError_t try_ = (expr);                                                                                       \
		if (try_)                                                                                                        \
			return cudart_fail(try_);                                                                                \
	} while (0)

/* register.c: what nvcc's constructors told us. All return an error that is not remembered yet. */
cudaError_t cudart_kernel(const void *func, CUkernel *k); /* a host stub's address, or a cudaKernel_t */
cudaError_t cudart_symbol(const void *host, CUdeviceptr *ptr, size_t *size);
cudaError_t cudart_why_null(void);     /* the cause of a launch with a NULL kernel */
void cudart_know_kernel(CUkernel k);   /* handed to the program as cudaKernel_t */
void cudart_forget_kernel(CUkernel k); /* its library was unloaded */
/* A device was reset, and the managed variables went with it: the next call that has a context there brings them back. */
void cudart_managed_gone(int device);
cudaError_t cudart_managed_again(void);

/* config.c: what the driver said of a launch; bad dimensions are a different error here. */
cudaError_t cudart_launched(CUresult r, dim3 grid, dim3 block);

/* func.c: what cudaFunction_t stands for, in the current context. */
cudaError_t cudart_function(const void *func, CUfunction *f);

const void *cudart_kernel_host(CUkernel k); /* the stub's address, or the handle itself */

/* box.c: errors that are not remembered yet */
cudaError_t cudart_describe3d(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p);
void cudart_show3d(struct cudaMemcpy3DParms *p, const CUDA_MEMCPY3D *c);

/* kind.c */
enum cudaMemcpyKind cudart_kind(const void *dst, const void *src, enum cudaMemcpyKind kind); /* resolves cudaMemcpyDefault */
CUmemorytype cudart_memory_type(const void *p);
/* A fill of memory at which the program may look has been done when it returns. Not remembered yet. */
cudaError_t cudart_filled(const void *p, CUstream stream);

#endif
