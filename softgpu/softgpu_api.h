/* SPDX-License-Identifier: MIT */
/* What libsoftgpu.so exports beside the CUDA Driver API: device printf's sink, and stream work for the soft math libraries. */
#ifndef SOFTGPU_API_H
#define SOFTGPU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An opaque CUstream; NULL, CU_STREAM_LEGACY (1) and CU_STREAM_PER_THREAD (2) mean what they mean in CUDA. */
struct CUstream_st;
struct CUctx_st;

/*
 * Sends device printf text to @print instead of the process's stdout; NULL restores stdout. Text
 * comes in whole lines or pieces as kernels wrote it, from stream threads, one call at a time.
 */
void softgpu_set_print(void (*print)(void *arg, const char *text, size_t len), void *arg);

/*
 * Runs @fn(@arg) in stream order, on the stream's thread, as a kernel would run: it may read and
 * write device memory, and what it returns (a CUresult) fails the context when it is not 0. It must
 * not call the driver. When the context has failed, @fn is skipped. @drop(@arg), unless NULL, is called once in any
 * case, also when softgpu_enqueue fails. Returns a CUresult.
 */
int softgpu_enqueue(struct CUstream_st *stream, int (*fn)(void *arg), void *arg, void (*drop)(void *arg));

/* Like softgpu_enqueue, and returns when @fn has run: the status of the context afterwards. */
int softgpu_enqueue_wait(struct CUstream_st *stream, int (*fn)(void *arg), void *arg, void (*drop)(void *arg));

/* True when all of [addr, addr + len) is device-accessible now. */
bool softgpu_accessible(uint64_t addr, size_t len);

/* The calling thread's current context, or NULL. */
struct CUctx_st *softgpu_current_context(void);

#endif
