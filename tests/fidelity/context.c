// SPDX-License-Identifier: MIT
/* Contexts: the stack, primary contexts, flags, limits, peers, and what is left of a destroyed one. */
#include "tests/fidelity/fidelity.h"

static CUcontext create(unsigned int flags)
{
	CUcontext c;

	must(cuCtxCreate(&c, NULL, flags, 0));
	return c;
}

static void none(void)
{
	CUcontext c = (CUcontext)1;
	CUdeviceptr p;
	CUdevice d;

	/* Driver API, cuCtxGetCurrent: with no context current, NULL and SUCCESS */
	cu(CUDA_SUCCESS, cuCtxGetCurrent(&c));
	probe(!c, "no context is current at first");
	/* Driver API, cuMemAlloc: no context is current */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 16));
	/* Driver API, cuCtxGetDevice: no context is current */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&d));
	/* Driver API, cuCtxSynchronize: no context is current */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	/* Driver API, cuCtxPopCurrent: an empty stack */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&c));
	/* Driver API, cuCtxSetCurrent: NULL on an empty stack is no error */
	cu(CUDA_SUCCESS, cuCtxSetCurrent(NULL));
}

static void primary_rules(void)
{
	CUcontext a, b;
	unsigned int flags = 99;
	int active = 99, n;

	must(cuDeviceGetCount(&n));
	/* Driver API, cuDevicePrimaryCtxGetState: inactive, no flags, before the first retain */
	cu(CUDA_SUCCESS, cuDevicePrimaryCtxGetState(0, &flags, &active));
	probe(!active && !flags, "the primary context is not active at first");
	/* Driver API, cuDevicePrimaryCtxRelease: one that nobody retained */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
	/* Driver API, cuDevicePrimaryCtxRetain: a device that is not there */
	cu(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&a, n));
	/* Driver API, cuDevicePrimaryCtxSetFlags: two ways of waiting at once */
	cu(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
	/* Driver API, cuDevicePrimaryCtxSetFlags: kept for the next retain */
	cu(CUDA_SUCCESS, cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
	must(cuDevicePrimaryCtxRetain(&a, 0));
	must(cuDevicePrimaryCtxGetState(0, &flags, &active));
	probe(active == 1 && (flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_YIELD, "active, with the flags set before");
	/* Driver API, cuDevicePrimaryCtxRetain: unlike cuCtxCreate it does not push */
	must(cuCtxGetCurrent(&b));
	probe(!b, "retaining makes nothing current");
	/* Driver API, cuDevicePrimaryCtxRetain: one context a device */
	must(cuDevicePrimaryCtxRetain(&b, 0));
	probe(a == b, "the second retain gives the same context");
	/* Driver API, cuDevicePrimaryCtxRelease: the last release resets it */
	must(cuDevicePrimaryCtxRelease(0));
	must(cuDevicePrimaryCtxGetState(0, &flags, &active));
	same(active, 1, "active while one reference is left");
	must(cuDevicePrimaryCtxRelease(0));
	must(cuDevicePrimaryCtxGetState(0, &flags, &active));
	same(active, 0, "inactive when the last is gone");
	cuDevicePrimaryCtxSetFlags(0, 0);
}

static void stack(void)
{
	CUcontext a, b, c;
	unsigned long long ida = 0, idb = 0;
	unsigned int flags, version = 0;
	CUdevice d = -1;

	/* Driver API, cuCtxCreate: no place for the result, flags that are not known, a device that is not there */
	cu(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(NULL, NULL, 0, 0));
	cu(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&a, NULL, 1u << 30, 0));
	cu(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&a, NULL, 0, 12345));
	a = create(CU_CTX_SCHED_BLOCKING_SYNC);
	/* Driver API, cuCtxCreate: the new context is pushed */
	cuCtxGetCurrent(&c);
	probe(c == a, "a new context is current");
	/* Driver API, cuCtxGetFlags: what it was created with */
	must(cuCtxGetFlags(&flags));
	same(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC, "its flags");
	/* Driver API, cuCtxGetDevice */
	cu(CUDA_SUCCESS, cuCtxGetDevice(&d));
	same(d, 0, "its device");
	b = create(0);
	/* Driver API, cuCtxGetId: unique for the life of the program */
	must(cuCtxGetId(a, &ida));
	must(cuCtxGetId(b, &idb));
	probe(ida != idb, "two contexts have two ids");
	/* Driver API, cuCtxGetApiVersion */
	cu(CUDA_SUCCESS, cuCtxGetApiVersion(b, &version));
	/* Driver API, cuCtxPopCurrent: gives the popped one, the one below becomes current */
	cu(CUDA_SUCCESS, cuCtxPopCurrent(&c));
	probe(c == b, "popped is the youngest");
	cuCtxGetCurrent(&c);
	probe(c == a, "the one below is current");
	/* Driver API, cuCtxPushCurrent: one context may be there more than once */
	cu(CUDA_SUCCESS, cuCtxPushCurrent(a));
	must(cuCtxPopCurrent(&c));
	/* Driver API, cuCtxSetCurrent: takes the place of the top */
	cu(CUDA_SUCCESS, cuCtxSetCurrent(b));
	must(cuCtxPopCurrent(&c));
	cuCtxGetCurrent(&c);
	probe(!c, "cuCtxSetCurrent replaced the top, and pushed nothing");
	/* Driver API, cuCtxSetCurrent: NULL pops the top */
	must(cuCtxPushCurrent(a));
	must(cuCtxPushCurrent(b));
	cu(CUDA_SUCCESS, cuCtxSetCurrent(NULL));
	cuCtxGetCurrent(&c);
	probe(c == a, "cuCtxSetCurrent(NULL) pops one");
	/* Driver API, cuCtxDestroy: one that is current is popped, too */
	cu(CUDA_SUCCESS, cuCtxDestroy(a));
	cuCtxGetCurrent(&c);
	probe(!c, "a destroyed context is current no longer");
	/* Driver API, cuCtxDestroy: one that is not current may be destroyed */
	cu(CUDA_SUCCESS, cuCtxDestroy(b));
}

static pthread_barrier_t step;

static void *keeper(void *arg)
{
	CUdeviceptr p;

	must(cuCtxSetCurrent(arg));
	pthread_barrier_wait(&step);
	pthread_barrier_wait(&step);
	/* Driver API, cuCtxDestroy: it stays current to other threads, and using it there gives CONTEXT_IS_DESTROYED */
	cu(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&p, 16));
	return NULL;
}

static void destroyed(void)
{
	CUcontext c = create(0);
	pthread_t t;

	pthread_barrier_init(&step, NULL, 2);
	pthread_create(&t, NULL, keeper, c);
	pthread_barrier_wait(&step);
	must(cuCtxDestroy(c));
	pthread_barrier_wait(&step);
	pthread_join(t, NULL);
}

static void settings(void)
{
	CUcontext c = create(0);
	size_t v = 0;
	CUfunc_cache cache = 99;
	int least = 99, greatest = 99;

	/* Programming Guide, Formatted Output: printf's buffer is 1 MiB unless it was set */
	must(cuCtxGetLimit(&v, CU_LIMIT_PRINTF_FIFO_SIZE));
	probe(v >= 1u << 20, "printf's buffer begins with 1 MiB (%zu)", v);
	/* Programming Guide, Dynamic Global Memory Allocation: the heap is 8 MiB unless it was set */
	must(cuCtxGetLimit(&v, CU_LIMIT_MALLOC_HEAP_SIZE));
	same(v, 8u << 20, "the device's heap begins with 8 MiB");
	/* Driver API, cuCtxSetLimit: 2048 pending launches unless set */
	must(cuCtxGetLimit(&v, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
	same(v, 2048, "pending launches of the device runtime");
	/* Driver API, cuCtxSetLimit: taken, perhaps rounded up */
	cu(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	must(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
	probe(v >= 4096, "the stack has at least what was asked for (%zu)", v);
	/* Driver API, cuCtxGetLimit: no place for the result */
	cu(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
	/* Driver API, cuCtxSetCacheConfig: a preference that is not known */
	cu(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig((CUfunc_cache)77));
	/* Driver API, cuCtxGetCacheConfig: no preference unless set */
	must(cuCtxGetCacheConfig(&cache));
	same(cache, CU_FUNC_CACHE_PREFER_NONE, "no cache is preferred at first");
	/* Driver API, cuCtxGetStreamPriorityRange: lower numbers are higher priorities, the least is 0 */
	must(cuCtxGetStreamPriorityRange(&least, &greatest));
	probe(least == 0 && greatest <= least, "priorities from %d to %d", least, greatest);
	/* Driver API, cuCtxGetStreamPriorityRange: either may be NULL */
	cu(CUDA_SUCCESS, cuCtxGetStreamPriorityRange(NULL, NULL));
	/* Driver API, cuCtxEnablePeerAccess: the current context itself */
	cu(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(c, 0));
	/* Driver API, cuCtxSetFlags: two ways of waiting at once */
	cu(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD));
	must(cuCtxDestroy(c));
}

int main(void)
{
	must(cuInit(0));
	none();
	primary_rules();
	stack();
	destroyed();
	settings();
	return tap_done();
}
