// SPDX-License-Identifier: MIT
/* Contexts: a stack for each thread, primary ones that come and go, and handles that die. */
#include <pthread.h>
#include "tests/api/serve.h"

/* An older ABI, which cuda.h no longer declares. */
CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev);

static void *other_thread(void *arg)
{
	CUcontext c = arg, now = arg;

	is_cu(cuCtxGetCurrent(&now), CUDA_SUCCESS);
	ok(!now, "another thread has no current context");
	is_cu(cuMemAlloc(&(CUdeviceptr){0}, 4), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxSetCurrent(c), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	return NULL;
}

static void stacks(CUcontext a, CUcontext b)
{
	CUcontext c = NULL;
	pthread_t t;

	is_cu(cuCtxPushCurrent(b), CUDA_SUCCESS);
	is_cu(cuCtxGetCurrent(&c), CUDA_SUCCESS);
	ok(c == b, "pushed, it is current");
	is_cu(cuCtxPopCurrent(&c), CUDA_SUCCESS);
	ok(c == b, "popped is what was pushed");
	cuCtxGetCurrent(&c);
	ok(c == a, "the one below is current again");
	is_cu(cuCtxSetCurrent(b), CUDA_SUCCESS);
	cuCtxGetCurrent(&c);
	ok(c == b, "set replaces the top");
	is_cu(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	is_cu(cuCtxGetCurrent(&c), CUDA_SUCCESS);
	ok(!c, "set to NULL pops it");
	is_cu(cuCtxGetDevice(&(CUdevice){0}), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxPopCurrent(&c), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxSetCurrent(a), CUDA_SUCCESS);
	is_cu(cuCtxSetCurrent((CUcontext)-1), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxSetCurrent((CUcontext)0x1234), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxSetCurrent((CUcontext)&t), CUDA_ERROR_INVALID_CONTEXT);
	pthread_create(&t, NULL, other_thread, a);
	pthread_join(t, NULL);
}

static void questions(void)
{
	unsigned flags = 77, version = 0;
	int least = 9, greatest = 9;
	unsigned long long id = 0;
	size_t v = 0, w = 0;
	CUdevice d = 9;
	CUfunc_cache cache;
	CUsharedconfig banks;
	long before = rgpuRoundTrips(NULL);

	is_cu(cuCtxGetDevice(&d), CUDA_SUCCESS);
	is_int(d, 0, "its device");
	is_cu(cuCtxGetFlags(&flags), CUDA_SUCCESS);
	is_int(flags, 0, "its flags");
	is_cu(cuCtxGetApiVersion(NULL, &version), CUDA_SUCCESS);
	ok(version >= 3010, "its API version, %u", version);
	is_cu(cuCtxGetId(NULL, &id), CUDA_SUCCESS);
	ok(id, "its id");
	is_cu(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
	ok(least == 0 && greatest == -5, "priorities from %d to %d", least, greatest);
	is_cu(cuCtxGetCacheConfig(&cache), CUDA_SUCCESS);
	is_cu(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_SUCCESS);
	cuCtxGetCacheConfig(&cache);
	is_int(cache, CU_FUNC_CACHE_PREFER_L1, "the cache preference is kept");
	is_cu(cuCtxSetCacheConfig(17), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuCtxGetSharedMemConfig(&banks), CUDA_SUCCESS);
	is_cu(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE), CUDA_SUCCESS);
	is_cu(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
	is_int(v, 1024, "the stack's size");
	is_int(rgpuRoundTrips(NULL), before, "no question took a round trip");
	is_cu(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20), CUDA_SUCCESS);
	is_cu(cuCtxGetLimit(&w, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
	is_int(w, 2 << 20, "a limit that was set is read back");
	is_cu(cuCtxGetLimit(&v, 1000), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuCtxSetLimit(1000, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
	is_cu(cuCtxSetFlags(CU_CTX_SCHED_YIELD), CUDA_SUCCESS);
	cuCtxGetFlags(&flags);
	is_int(flags, CU_CTX_SCHED_YIELD, "flags that were set");
}

static void created(CUcontext prim)
{
	char buf[100] = "";
	CUcontext c, now;
	CUdeviceptr p;
	size_t heap = 0;
	CUstream s;
	CUevent e;

	is_cu(cuCtxCreate_v2(&c, 3, 0), CUDA_ERROR_INVALID_VALUE); /* two ways to schedule at once */
	is_cu(cuCtxCreate_v2(&c, 0, 7), CUDA_ERROR_INVALID_DEVICE);
	is_cu(cuCtxCreate_v2(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuCtxCreate_v4(&c, NULL, CU_CTX_SCHED_SPIN, 0), CUDA_SUCCESS);
	cuCtxGetCurrent(&now);
	ok(now == c && c != prim, "a created context is current");
	is_cu(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE), CUDA_SUCCESS);
	is_int(heap, 8 << 20, "it has limits of its own");
	must(cuMemAlloc(&p, 100));
	must(cuStreamCreate(&s, 0));
	must(cuEventCreate(&e, 0));
	is_cu(cuEventRecord(e, s), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	/* Copies may be on their way when it dies. */
	for (int i = 0; i < 20; i++)
		must(cuMemcpyHtoDAsync(p, buf, 100, s));
	is_cu(cuCtxDestroy(c), CUDA_SUCCESS);
	cuCtxGetCurrent(&now);
	ok(now == prim, "destroyed, it is current no more");
	is_cu(cuCtxDestroy(c), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuMemsetD8(p, 0, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuCtxDestroy(prim), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS); /* none of it was left behind for a later call */
}

static void primary_state(CUcontext prim)
{
	CUcontext again;
	unsigned flags;
	CUstream s;
	int active;

	is_cu(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
	is_int(active, 1, "the primary context is active");
	is_cu(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	is_int(active, 0, "the other device's is not");
	is_cu(cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_BLOCKING_SYNC), CUDA_SUCCESS);
	cuDevicePrimaryCtxGetState(1, &flags, &active);
	is_int(flags, CU_CTX_SCHED_BLOCKING_SYNC, "flags can be set before");
	is_cu(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
	ok(again == prim, "retained twice, it is the same");
	is_cu(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuStreamCreate(&s, 0));
	is_cu(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
	is_cu(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	is_cu(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
	ok(again == prim, "made anew, it has its old name");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
	must(cuStreamCreate(&s, 0));
	is_cu(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
}

static void peers(CUcontext a)
{
	CUdeviceptr pa, pb;
	unsigned got = 0;
	CUcontext b;

	must(cuDevicePrimaryCtxRetain(&b, 1));
	is_cu(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_INVALID_CONTEXT); /* itself */
	is_cu(cuCtxDisablePeerAccess(b), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	is_cu(cuCtxEnablePeerAccess(b, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuCtxEnablePeerAccess(b, 0), CUDA_SUCCESS);
	is_cu(cuCtxEnablePeerAccess(b, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	must(cuMemAlloc(&pa, 4096));
	must(cuCtxPushCurrent(b));
	must(cuMemAlloc(&pb, 4096));
	must(cuMemsetD32(pb, 0x12345678, 1024));
	must(cuCtxSynchronize());
	must(cuCtxPopCurrent(NULL));
	is_cu(cuMemcpyPeer(pa, a, pb, b, 4096), CUDA_SUCCESS);
	is_cu(cuMemcpyDtoH(&got, pa + 4092, 4), CUDA_SUCCESS);
	is_int(got, 0x12345678, "a copy from the other device arrives");
	is_cu(cuMemcpyPeer(pa, a, pb + 4, b, 4096), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyPeer(pa, (CUcontext)5, pb, b, 4), CUDA_ERROR_INVALID_CONTEXT);
	is_cu(cuCtxDisablePeerAccess(b), CUDA_SUCCESS);
}

int main(void)
{
	CUcontext a, b;

	serve(NULL, 2);
	a = primary();
	must(cuCtxCreate_v2(&b, 0, 0));
	must(cuCtxPopCurrent(NULL));
	stacks(a, b);
	questions();
	is_cu(cuCtxResetPersistingL2Cache(), CUDA_SUCCESS);
	is_cu(cuCtxDestroy(b), CUDA_SUCCESS);
	created(a);
	primary_state(a);
	peers(a);
	return tap_done();
}
