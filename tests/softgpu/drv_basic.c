// SPDX-License-Identifier: MIT
/* Tests of the driver's start, devices, contexts, handles, names and look-ups. */
#include "tests/softgpu/drv.h"

#include <dlfcn.h>
#include <sys/wait.h>

static void before_init(void)
{
	CUcontext c;
	int n;

	gives(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	gives(cuCtxGetCurrent(&c), CUDA_ERROR_NOT_INITIALIZED);
	gives(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
	gives(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	works(cuDriverGetVersion(&n));
	is_int(n, 13000, "the driver says 13.0");
}

static void devices(void)
{
	CUuuid a, b;
	char name[64], bus[32], tiny[4];
	size_t total;
	int n, v, w;
	CUdevice d;

	works(cuDeviceGetCount(&n));
	is_int(n, 2, "RGPU_SOFTGPU_DEVICES=2 gives two devices");
	gives(cuDeviceGet(&d, 2), CUDA_ERROR_INVALID_DEVICE);
	gives(cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
	works(cuDeviceGet(&d, 1));
	works(cuDeviceGetName(name, sizeof(name), d));
	is_str(name, "rgpu softgpu (3 threads)", "the name says how many threads");
	works(cuDeviceGetName(tiny, sizeof(tiny), d));
	is_str(tiny, "rgp", "a short buffer gets a terminated prefix");
	works(cuDeviceTotalMem(&total, d));
	is_int(total, 512ll << 20, "RGPU_SOFTGPU_MEM_MIB=512 is the size");
	works(cuDeviceGetUuid(&a, 0));
	works(cuDeviceGetUuid(&b, 1));
	ok(memcmp(&a, &b, sizeof(a)), "two devices have two uuids");
	works(cuDeviceGetUuid(&b, 0));
	ok(!memcmp(&a, &b, sizeof(a)), "a device keeps its uuid");
	works(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	works(cuDeviceGetAttribute(&w, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
	is_int(v * 10 + w, 121, "compute capability 12.1");
	works(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	is_int(v, 3, "a multiprocessor for each thread");
	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		if (cuDeviceGetAttribute(&v, i, 0) != CUDA_SUCCESS)
			ok(false, "attribute %d", i);
	gives(cuDeviceGetAttribute(&v, 0, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuDeviceGetAttribute(&v, 100000, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuDeviceGetAttribute(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	gives(cuDeviceGetAttribute(&v, 1, 7), CUDA_ERROR_INVALID_DEVICE);
	works(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
	works(cuDeviceGetByPCIBusId(&d, bus));
	is_int(d, 1, "a bus id leads back to its device");
	gives(cuDeviceGetByPCIBusId(&d, "0000:00:1f.0"), CUDA_ERROR_INVALID_DEVICE);
	gives(cuDeviceGetByPCIBusId(&d, "nonsense"), CUDA_ERROR_INVALID_VALUE);
	works(cuDeviceCanAccessPeer(&v, 0, 1));
	is_int(v, 1, "peers reach each other");
	works(cuDeviceCanAccessPeer(&v, 1, 1));
	is_int(v, 0, "a device is not its own peer");
}

static void *other_thread(void *arg)
{
	CUcontext c = (CUcontext)1;

	(void)arg;
	works(cuCtxGetCurrent(&c));
	ok(!c, "a new thread has no current context");
	gives(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	return NULL;
}

static void contexts(void)
{
	CUcontext p, a, b, c;
	unsigned int flags, version;
	unsigned long long ida, idb;
	int active, lo, hi;
	CUdevice d;
	pthread_t t;
	size_t v;

	gives(cuCtxPopCurrent(&c), CUDA_ERROR_INVALID_CONTEXT);
	works(cuDevicePrimaryCtxGetState(0, &flags, &active));
	is_int(active, 0, "a primary context begins inactive");
	gives(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	works(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
	works(cuDevicePrimaryCtxRetain(&p, 0));
	works(cuDevicePrimaryCtxGetState(0, &flags, &active));
	is_int(flags, CU_CTX_SCHED_YIELD, "its flags were kept");
	is_int(active, 1, "and is active when retained");
	works(cuCtxSetCurrent(p));
	works(cuCtxCreate(&a, NULL, 0, 1));
	works(cuCtxGetCurrent(&c));
	ok(c == a, "a created context is current");
	works(cuCtxGetDevice(&d));
	is_int(d, 1, "its device is current");
	works(cuCtxCreate(&b, NULL, CU_CTX_MAP_HOST, 0));
	works(cuCtxGetApiVersion(b, &version));
	is_int(version, 3020, "a context of the second ABI");
	works(cuCtxGetId(a, &ida));
	works(cuCtxGetId(b, &idb));
	ok(ida != idb, "contexts have ids of their own");
	works(cuCtxPopCurrent(&c));
	ok(c == b, "pop gives the last one");
	works(cuCtxGetCurrent(&c));
	ok(c == a, "and the one before is current");
	works(cuCtxDestroy(b));
	gives(cuCtxDestroy(b), CUDA_ERROR_INVALID_CONTEXT);
	gives(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
	gives(cuCtxDestroy(p), CUDA_ERROR_INVALID_CONTEXT);
	works(cuCtxDestroy(a));
	works(cuCtxGetCurrent(&c));
	ok(c == p, "destroying the current context pops it");
	works(cuCtxGetStreamPriorityRange(&lo, &hi));
	ok(lo == 0 && hi < 0, "priorities go from 0 down");
	works(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	works(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
	is_int(v, 4096, "a limit is kept");
	gives(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1ull << 60), CUDA_ERROR_OUT_OF_MEMORY);
	gives(cuCtxGetLimit(&v, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH), CUDA_ERROR_UNSUPPORTED_LIMIT);
	gives(cuCtxGetLimit(&v, 99), CUDA_ERROR_INVALID_VALUE);
	works(cuCtxSynchronize());
	pthread_create(&t, NULL, other_thread, NULL);
	pthread_join(t, NULL);

	works(cuDevicePrimaryCtxRelease(0));
	gives(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	works(cuDevicePrimaryCtxRetain(&c, 0));
	ok(c == p, "a primary context keeps its handle");
	works(cuCtxSynchronize());
}

/* A context that another thread destroys stays on the stack, and says what it is. */
static void *destroyer(void *c)
{
	is_int(cuCtxDestroy(c), CUDA_SUCCESS, "destroy in another thread");
	return NULL;
}

static void destroyed_elsewhere(void)
{
	CUdeviceptr p;
	CUcontext c;
	CUstream s;
	pthread_t t;

	works(cuCtxCreate(&c, NULL, 0, 0));
	works(cuStreamCreate(&s, 0));
	works(cuMemAlloc(&p, 64));
	pthread_create(&t, NULL, destroyer, c);
	pthread_join(t, NULL);
	gives(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	gives(cuMemAlloc(&p, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	gives(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
	works(cuCtxPopCurrent(&c));
}

/* Values that are no handle of the kind that is wanted. */
static void garbage(void)
{
	uintptr_t bad[] = {3, 0x10, 0xdead, 0x7fffffff, 0x123456789abcdef0, (uintptr_t)&bad, UINTPTR_MAX, 1ull << 63, 0, 0, 0};
	CUdeviceptr ptr;
	CUcontext ctx;
	CUmodule mod;
	CUfunction fn;
	CUstream s;
	CUevent e;
	size_t n, m;
	int wrong = 0, v;

	must(cuStreamCreate(&s, 0));
	must(cuEventCreate(&e, 0));
	must(cuCtxGetCurrent(&ctx));
	bad[8] = (uintptr_t)ctx ^ 1ull << 40; /* another generation */
	bad[9] = (uintptr_t)ctx + 16;	      /* another slot */
	bad[10] = (uintptr_t)ctx;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		void *h = (void *)bad[i];

		wrong += cuStreamSynchronize(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuStreamDestroy(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuStreamWaitEvent(s, h, 0) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuEventRecord(h, s) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuEventQuery(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuEventDestroy(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuModuleUnload(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuModuleGetFunction(&fn, h, "f") != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuModuleGetGlobal(&ptr, &n, h, "f") != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuFuncGetAttribute(&v, 0, h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuFuncGetParamInfo(h, 0, &n, &m) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuLibraryUnload(h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuLibraryGetModule(&mod, h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuKernelGetFunction(&fn, h) != CUDA_ERROR_INVALID_HANDLE;
		wrong += cuMemRelease(bad[i]) != CUDA_ERROR_INVALID_VALUE;
		wrong += cuMemFree(bad[i]) != CUDA_ERROR_INVALID_VALUE;
		wrong += cuMemPoolDestroy(h) != CUDA_ERROR_INVALID_VALUE;
		if (h != (void *)ctx) {
			wrong += cuCtxDestroy(h) != CUDA_ERROR_INVALID_CONTEXT;
			wrong += cuCtxPushCurrent(h) != CUDA_ERROR_INVALID_CONTEXT;
		}
	}
	is_int(wrong, 0, "no invented handle is taken");
	gives(cuCtxSetCurrent((CUcontext)s), CUDA_ERROR_INVALID_CONTEXT);
	gives(cuEventQuery((CUevent)s), CUDA_ERROR_INVALID_HANDLE);
	works(cuStreamDestroy(s));
	gives(cuStreamDestroy(s), CUDA_ERROR_INVALID_HANDLE);
	works(cuEventDestroy(e));
	gives(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void names(void)
{
	const char *s;

	works(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &s));
	is_str(s, "CUDA_ERROR_ILLEGAL_ADDRESS", "an error's name");
	works(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &s));
	is_str(s, "invalid argument", "an error's text");
	gives(cuGetErrorName(12345, &s), CUDA_ERROR_INVALID_VALUE);
	ok(!s, "an unknown error has no name");
}

/* What the names resolve to, by the address of the exported symbol. */
static void lookups(void)
{
	static const struct {
		const char *name;
		int version;
		unsigned int flags;
		const char *symbol;
	} table[] = {
		{"cuMemAlloc", 2000, 0, "cuMemAlloc"},
		{"cuMemAlloc", 3010, 0, "cuMemAlloc"},
		{"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
		{"cuCtxCreate", 11030, 0, "cuCtxCreate_v2"},
		{"cuCtxCreate", 12000, 0, "cuCtxCreate_v3"},
		{"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
		{"cuEventElapsedTime", 12070, 0, "cuEventElapsedTime"},
		{"cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2"},
		{"cuCtxGetDevice", 12000, 0, "cuCtxGetDevice"},
		{"cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2"},
		{"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
		{"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
		{"cuMemcpyHtoD", 13000, 1, "cuMemcpyHtoD_v2"},
		{"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
		{"cuStreamWaitValue32", 8000, 2, "cuStreamWaitValue32_ptsz"},
		{"cuStreamWaitValue32", 13000, 2, "cuStreamWaitValue32_v2_ptsz"},
		{"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
		{"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
		{"cuLaunchKernel", 6000, 2, "cuLaunchKernel"},
		{"cuInit", 13000, 2, "cuInit"},
	};
	CUdriverProcAddressQueryResult found;
	void *fn;

	for (unsigned int i = 0; i < sizeof(table) / sizeof(*table); i++) {
		void *want = dlsym(RTLD_DEFAULT, table[i].symbol);

		ok(want && cuGetProcAddress_v2(table[i].name, &fn, table[i].version, table[i].flags, &found) == CUDA_SUCCESS &&
			   fn == want && found == CU_GET_PROC_ADDRESS_SUCCESS,
		   "%s at %d, flags %u, is %s", table[i].name, table[i].version, table[i].flags, table[i].symbol);
	}
	works(cuGetProcAddress_v2("cuNoSuchCall", &fn, 13000, 0, &found));
	gives(cuGetProcAddress_v2("cuNoSuchCall", &fn, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);
	is_int(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "an unknown name is not found");
	works(cuGetProcAddress_v2("cuLibraryLoadData", &fn, 11000, 0, &found));
	is_int(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "a name that was not there yet");
	gives(cuGetProcAddress_v2("", &fn, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);
}

static void unsupported(void)
{
	CUexternalMemory m;

	gives(cuImportExternalMemory(&m, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void forking(void)
{
	int status = -1, n;
	pid_t pid = fork();

	if (!pid)
		_exit(cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
	waitpid(pid, &status, 0);
	is_int(status, 0, "a forked child is told that it has no driver");
}

int main(void)
{
	setenv("RGPU_SOFTGPU_DEVICES", "2", 1);
	setenv("RGPU_SOFTGPU_THREADS", "3", 1);
	setenv("RGPU_SOFTGPU_MEM_MIB", "512", 1);
	before_init();
	works(cuInit(0));
	works(cuInit(0));
	devices();
	contexts();
	destroyed_elsewhere();
	garbage();
	names();
	lookups();
	unsupported();
	forking();
	return tap_done();
}
