// SPDX-License-Identifier: MIT
/* cuInit, the checks at every entry, the log, device printf's sink, and fork. */
#include "softgpu/softgpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_bool initialised, forked;

static struct {
	pthread_mutex_t lock;
	void (*print)(void *arg, const char *text, size_t len);
	void *arg;
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_line(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	n = snprintf(line, sizeof(line), "softgpu: ");
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	/* One write, so that lines of several threads and processes stay whole. */
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}

void softgpu_set_print(void (*print)(void *arg, const char *text, size_t len), void *arg)
{
	pthread_mutex_lock(&sink.lock);
	sink.print = print;
	sink.arg = arg;
	pthread_mutex_unlock(&sink.lock);
}

void print_device_text(void *arg, const char *text, size_t len)
{
	(void)arg;
	pthread_mutex_lock(&sink.lock);
	if (sink.print) {
		sink.print(sink.arg, text, len);
	} else {
		fwrite(text, 1, len, stdout);
		fflush(stdout);
	}
	pthread_mutex_unlock(&sink.lock);
}

/* Only the forking thread lives on in the child, so no stream would ever move: CUDA refuses there too. */
static void child(void)
{
	atomic_store(&forked, true);
}

static CUresult init_result;

static void init(void)
{
	init_result = devices_init();
	if (init_result != CUDA_SUCCESS)
		return;
	pthread_atfork(NULL, NULL, child);
	atomic_store(&initialised, true);
}

CUresult cuInit(unsigned int flags)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_once(&once, init);
	if (atomic_load(&forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	return init_result;
}

CUresult api_enter(void)
{
	if (!atomic_load_explicit(&initialised, memory_order_acquire) || atomic_load_explicit(&forked, memory_order_relaxed))
		return CUDA_ERROR_NOT_INITIALIZED;
	return softgpu_in_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = SOFTGPU_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void)
{
	AUTO_PUT struct ctx *c = NULL;

	return ctx_enter(&c);
}

CUresult cuProfilerStop(void)
{
	AUTO_PUT struct ctx *c = NULL;

	return ctx_enter(&c);
}

/* The private tables behind it are NVIDIA's: nothing to hand out. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
