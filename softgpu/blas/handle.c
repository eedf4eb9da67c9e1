// SPDX-License-Identifier: MIT
/* cuBLAS handles, and how a routine gets onto the handle's stream. */
#include "softgpu/blas/handle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 130000

struct cublasContext {
	struct cublasContext *next;
	struct blas_settings settings;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the list and all handles' settings */
static struct cublasContext *handles;

/* With the lock; compares addresses only, so that any value may be asked. */
static bool living(cublasHandle_t handle)
{
	for (struct cublasContext *h = handles; h; h = h->next)
		if (h == handle)
			return true;
	return false;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	struct cublasContext *h;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!softgpu_current_context() || !blas_backend())
		return CUBLAS_STATUS_NOT_INITIALIZED;
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUBLAS_STATUS_ALLOC_FAILED;
	pthread_mutex_lock(&lock);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&lock);
	*handle = h;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	struct cublasContext **p;

	pthread_mutex_lock(&lock);
	for (p = &handles; *p && *p != handle; p = &(*p)->next)
		;
	if (*p)
		*p = handle->next;
	else
		handle = NULL;
	pthread_mutex_unlock(&lock);
	free(handle);
	return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	(void)handle; /* the genuine one takes NULL, too */
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_settings(cublasHandle_t handle, struct blas_settings *s)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = living(handle);
	if (good)
		*s = handle->settings;
	pthread_mutex_unlock(&lock);
	return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = living(handle);
	if (good)
		handle->settings.stream = stream;
	pthread_mutex_unlock(&lock);
	return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
	struct blas_settings s;

	if (blas_settings(handle, &s) != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!stream)
		return CUBLAS_STATUS_INVALID_VALUE;
	*stream = s.stream;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
	bool good;

	if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
		return CUBLAS_STATUS_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	good = living(handle);
	if (good)
		handle->settings.mode = mode;
	pthread_mutex_unlock(&lock);
	return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
	struct blas_settings s;

	if (blas_settings(handle, &s) != CUBLAS_STATUS_SUCCESS)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = s.mode;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- Routines ---- */

cublasStatus_t blas_submit(const struct blas_settings *s, int (*fn)(void *work), const void *work, size_t bytes, bool wait)
{
	void *copy = malloc(bytes);
	int r;

	if (!copy)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(copy, work, bytes);
	r = wait ? softgpu_enqueue_wait(s->stream, fn, copy, free) : softgpu_enqueue(s->stream, fn, copy, free);
	return r ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_scalar(struct blas_scalar *out, const struct blas_settings *s, const float *p)
{
	if (!p)
		return CUBLAS_STATUS_INVALID_VALUE;
	out->device = s->mode == CUBLAS_POINTER_MODE_DEVICE ? p : NULL;
	out->value = out->device ? 0 : *p;
	return CUBLAS_STATUS_SUCCESS;
}

bool blas_scalar_read(const struct blas_scalar *in, float *value)
{
	if (in->device && !softgpu_accessible((uintptr_t)in->device, sizeof(float)))
		return false;
	*value = in->device ? *in->device : in->value;
	return true;
}

bool blas_matrix_there(const float *p, int rows, int columns, int ld)
{
	if (!rows || !columns)
		return true;
	return softgpu_accessible((uintptr_t)p, ((size_t)(columns - 1) * (size_t)ld + (size_t)rows) * sizeof(*p));
}

bool blas_vector_there(const float *p, int n, int inc)
{
	size_t step = inc < 0 ? -(size_t)inc : (size_t)inc;

	return n <= 0 || softgpu_accessible((uintptr_t)p, ((size_t)(n - 1) * step + 1) * sizeof(*p));
}
