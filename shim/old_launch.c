// SPDX-License-Identifier: MIT
/* Launches as they were before cuLaunchKernel: a function remembers its block's shape and its parameters. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "shim/cuda_api.h"
#include "shim/module.h"

#define PARAMS_MAX 4096u

/* Handles are never used again for another function, so what is remembered of one that is gone does no harm. */
struct remembered {
	struct remembered *next;
	CUfunction f;
	int x, y, z;
	unsigned int shared, bytes;
	uint8_t params[PARAMS_MAX] __attribute__((aligned(16)));
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct remembered *all;

/* With the lock. NULL: *r. */
static struct remembered *of(CUfunction f, CUresult *r)
{
	struct rgpu_obj *context;
	struct remembered *m;
	struct func *func;
	uint64_t wire;

	*r = func_use(f, &func, &wire, &context);
	if (*r)
		return NULL;
	for (m = all; m; m = m->next)
		if (m->f == f)
			return m;
	m = calloc(1, sizeof(*m));
	if (!m) {
		*r = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	m->f = f;
	m->x = m->y = m->z = 1;
	m->next = all;
	all = m;
	return m;
}

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct remembered *m;
	CUresult r;

	pthread_mutex_lock(&lock);
	m = of(hfunc, &r);
	if (m && (x < 1 || y < 1 || z < 1)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (m) {
		m->x = x;
		m->y = y;
		m->z = z;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct remembered *m;
	CUresult r;

	pthread_mutex_lock(&lock);
	m = of(hfunc, &r);
	if (m)
		m->shared = bytes;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	struct remembered *m;
	CUresult r;

	pthread_mutex_lock(&lock);
	m = of(hfunc, &r);
	if (m && numbytes > PARAMS_MAX)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (m)
		m->bytes = numbytes;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	struct remembered *m;
	CUresult r;

	pthread_mutex_lock(&lock);
	m = of(hfunc, &r);
	if (m && (!ptr || offset < 0 || numbytes > PARAMS_MAX || (unsigned int)offset > PARAMS_MAX - numbytes))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (m)
		memcpy(m->params + offset, ptr, numbytes);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	struct remembered now, *m;
	size_t bytes;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	CUresult r;

	if (grid_width < 1 || grid_height < 1)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	m = of(f, &r);
	if (m)
		now = *m;
	pthread_mutex_unlock(&lock);
	if (r)
		return r;
	bytes = now.bytes;
	return cuLaunchKernel(f, grid_width, grid_height, 1, now.x, now.y, now.z, now.shared, hStream, NULL, extra);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	return cuLaunchGridAsync(f, grid_width, grid_height, NULL);
}

CUresult cuLaunch(CUfunction f)
{
	return cuLaunchGrid(f, 1, 1);
}
