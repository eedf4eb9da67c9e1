// SPDX-License-Identifier: MIT
/*
 * A driver that does nothing at a launch and keeps device memory on the host: benches measure the link to it. Its one real kernel
 * is null_busy(uint32_t us), which keeps a stream busy.
 */
#include "tests/nulldrv/nulldrv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Handles are not checked: the caller is a bench or a server that checks its own. Streams, events
 * and contexts are addresses of small objects; everything is complete when it is issued, but for null_busy().
 */
static struct device dev0 = {.threads = 16, .total = 64ull << 30, .name = "rgpu null driver"};

#define PRIMARY ((CUcontext)&dev0)

static _Thread_local CUcontext stack[16];
static _Thread_local int depth;

void log_line(const char *fmt, ...)
{
	va_list ap;

	fputs("nulldrv: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

CUresult cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = SOFTGPU_DRIVER_VERSION;
	return CUDA_SUCCESS;
}

/* ---- The device ---- */

CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = 0;
	return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	(void)dev;
	snprintf(name, (size_t)len, "%s", dev0.name);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	(void)dev;
	memcpy(uuid->bytes, "rgpu-null-driver", 16);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	(void)dev;
	*bytes = dev0.total;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
	(void)dev;
	return device_attribute(value, attr, &dev0);
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	(void)dev;
	snprintf(id, (size_t)len, "5f67:ff:00.0");
	return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
	(void)a;
	(void)b;
	*can = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr, CUdevice a, CUdevice b)
{
	(void)attr;
	(void)a;
	(void)b;
	*value = 0;
	return CUDA_ERROR_INVALID_DEVICE; /* there is one device only */
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	(void)peer;
	(void)flags;
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	(void)peer;
	return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

/* ---- Contexts: the primary one, whatever is created ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	(void)dev;
	*ctx = PRIMARY;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	(void)dev;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	(void)dev;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	(void)dev;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	(void)dev;
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (depth == ARRAY_SIZE(stack))
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (ctx)
		*ctx = stack[depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	if (depth)
		depth--;
	return ctx ? cuCtxPushCurrent_v2(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	(void)flags;
	(void)dev;
	*ctx = PRIMARY;
	return cuCtxPushCurrent_v2(PRIMARY);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	(void)params;
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	if (depth && stack[depth - 1] == ctx)
		depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	*dev = 0;
	return depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	(void)ctx;
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	*flags = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	*value = limit == CU_LIMIT_STACK_SIZE ? 1024 : 1 << 20;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	(void)limit;
	(void)value;
	return CUDA_SUCCESS;
}

/* ---- Streams and events ---- */

struct null_stream {
	unsigned int flags;
	_Atomic int64_t until; /* ns; busy before */
};

struct null_event {
	_Atomic int64_t at; /* ns: when it has happened, or will */
};

static struct null_stream legacy; /* and whoever has no object of its own */
static _Atomic int64_t last;	  /* the latest `until` of all streams */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static struct null_stream *of(CUstream stream)
{
	return (uintptr_t)stream > 2 ? (struct null_stream *)stream : &legacy;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	if (ns > now_ns())
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
			;
}

void null_busy(CUstream stream, uint32_t us)
{
	struct null_stream *s = of(stream);
	int64_t now = now_ns(), until = (s->until > now ? s->until : now) + us * 1000ll;

	s->until = until;
	if (until > last)
		last = until;
}

void null_wait(CUstream stream)
{
	sleep_until(stream ? of(stream)->until : last);
}

/* Nothing was ever busy: no clock is read. */
static CUresult query(int64_t until)
{
	return until && until > now_ns() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	sleep_until(last);
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	(void)priority;
	*stream = calloc(1, 64);
	if (!*stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	of(*stream)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	free(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
	return query(of(stream)->until);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	sleep_until(of(stream)->until);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	*flags = of(stream)->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	(void)stream;
	*priority = 0;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	*id = (uintptr_t)stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	(void)stream;
	*ctx = PRIMARY;
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	(void)stream;
	(void)event;
	(void)flags;
	return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *data)
{
	(void)stream;
	fn(data);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	(void)flags;
	*event = calloc(1, sizeof(struct null_event));
	return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	int64_t now = now_ns(), until = of(stream)->until;

	((struct null_event *)event)->at = until > now ? until : now;
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	(void)flags;
	return cuEventRecord(event, stream);
}

CUresult cuEventQuery(CUevent event)
{
	return query(((struct null_event *)event)->at);
}

CUresult cuEventSynchronize(CUevent event)
{
	sleep_until(((struct null_event *)event)->at);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	*ms = (float)((double)(((struct null_event *)end)->at - ((struct null_event *)start)->at) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime_v2(ms, start, end);
}
