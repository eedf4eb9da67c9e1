// SPDX-License-Identifier: MIT
/* What costs a round trip and what does not, by count, over a wire of 5 ms each way: laws 5 and 12. */
#include <pthread.h>
#include "tests/api/delay.h"

#define AWAY_MS 5

static CUmodule m;
static CUdeviceptr d;

static long trips(void)
{
	return rgpuRoundTrips(NULL);
}

static CUfunction kernel(const char *name)
{
	CUfunction f;

	must(cuModuleGetFunction(&f, m, name));
	return f;
}

static void devices(void)
{
	int n, v, bad = 0, asked = 0;
	size_t bytes;
	char name[64];

	must(cuInit(0));
	must(cuDeviceGetCount(&n));
	for (int i = 0; i < n; i++) {
		for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
			asked += cuDeviceGetAttribute(&v, a, i) == CUDA_SUCCESS;
		bad += cuDeviceGetName(name, sizeof(name), i) || cuDeviceTotalMem(&bytes, i);
	}
	is_int(bad, 0, "every device's name and memory");
	ok(asked > 100 * n, "… and %d attributes", asked);
	is_int(trips(), 0, "no round trip for devices and their attributes");
}

static void modules(void)
{
	int n = 0, v, blocks, bad = 0;
	unsigned count;
	size_t off, size;
	CUfunction f[64];
	long before = trips();

	must(cuModuleLoad(&m, built("tests/api/kernels.fatbin")));
	must(cuModuleGetFunctionCount(&count, m));
	must(cuModuleEnumerateFunctions(f, count > 64 ? 64 : count, m));
	for (unsigned i = 0; i < count && i < 64; i++) {
		for (size_t k = 0; !cuFuncGetParamInfo(f[i], k, &off, &size); k++)
			n++;
		for (int a = 0; a <= CU_FUNC_ATTRIBUTE_BINARY_VERSION; a++)
			bad += cuFuncGetAttribute(&v, a, f[i]) != 0;
		bad += cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f[i], 32, 0) || blocks < 1;
	}
	ok(count > 5 && n > (int)count, "%u kernels with %d parameters", count, n);
	is_int(bad, 0, "their attributes and occupancy");
	is_int(trips() - before, 1, "one round trip for the module and all of that");
}

static void made(void)
{
	enum { N = 100 };
	static CUstream s[N];
	static CUevent e[N];
	static CUdeviceptr p[N];
	int on = -1, bad = 0;
	unsigned flags = 0;
	CUdeviceptr base;
	size_t size;
	long before;

	/* What is leased now is cut below. */
	must(cuMemAlloc(&d, 1 << 20));
	must(cuMemAllocAsync(&p[0], 4096, NULL));
	must(cuMemFreeAsync(p[0], NULL));
	before = trips();
	for (int i = 0; i < N; i++) {
		bad += cuStreamCreate(&s[i], i % 2) || cuEventCreate(&e[i], 0) || cuMemAllocAsync(&p[i], 4096, s[i]);
		bad += cuMemGetAddressRange(&base, &size, p[i]) || base != p[i];
		bad += cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[i]) || on;
		bad += cuStreamGetFlags(s[i], &flags) || (int)flags != i % 2;
	}
	for (int i = 0; i < N; i++)
		bad += cuEventRecord(e[i], s[i]) || cuStreamWaitEvent(s[(i + 1) % N], e[i], 0) || cuMemFreeAsync(p[i], s[i]);
	for (int i = 0; i < N; i++)
		bad += cuEventDestroy(e[i]) || cuStreamDestroy(s[i]);
	is_int(bad, 0, "streams, events and allocations of a pool: made, recorded, waited for, asked about and ended");
	is_int(trips() - before, 0, "… without a round trip");
	must(cuCtxSynchronize());
}

static void steady(void)
{
	enum { N = 1 << 14 };
	CUfunction f = kernel("times3");
	unsigned k = 1, bad = 0, *host;
	void *p[] = {&d, &k};
	CUstream s;
	long before;

	must(cuMemAllocHost((void **)&host, N * sizeof(*host)));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	before = trips();
	for (unsigned i = 0; i < 10; i++) {
		unsigned want = i;

		host[0] = i;
		host[N - 1] = i + 7;
		bad += cuMemcpyHtoDAsync(d, host, N * sizeof(*host), s) != 0;
		for (int n = 0; n < 20; n++, want = want * 3 + 1)
			bad += cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, p, NULL) != 0;
		bad += cuMemcpyDtoHAsync(host, d, N * sizeof(*host), s) || cuStreamSynchronize(s);
		bad += host[0] != want || host[N - 1] != i + 7;
		bad += cuStreamQuery(s) != CUDA_SUCCESS;
	}
	is_int(bad, 0, "ten rounds of a copy up, 20 launches, a copy down, a wait and a question");
	is_int(trips() - before, 10, "one round trip each");
	must(cuStreamDestroy(s));
	must(cuMemFreeHost(host));
}

/* Work that does not end before release(). */
static CUdeviceptr flag;
static CUstream other;

static void hold(CUstream s)
{
	must(cuMemsetD32Async(flag, 0, 1, other));
	must(cuStreamSynchronize(other));
	must(cuStreamWaitValue32(s, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void release(void)
{
	must(cuStreamWriteValue32(other, flag, 1, 0));
}

/*
 * A loop that asks at once. On a busy machine the first question may come so late that it counts as one of a program that asks
 * only once: then the round is played again.
 */
static void polling(void)
{
	CUstream s[3] = {NULL, CU_STREAM_PER_THREAD};
	const char *const name[] = {"the legacy stream", "the thread's own stream", "a stream"};
	unsigned bad = 0;

	must(cuStreamCreate(&s[2], 0));
	for (int i = 0; i < 3; i++) {
		int asked = 0, tries;
		long before = 0;
		CUevent e;

		must(cuStreamQuery(s[i]));
		for (tries = 0; tries < 200; tries++) {
			int64_t begin;
			bool late;

			must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
			hold(s[i]);
			begin = delay_now();
			must(cuEventRecord(e, s[i]));
			before = trips();
			bad += cuStreamQuery(s[i]) != CUDA_ERROR_NOT_READY || cuEventQuery(e) != CUDA_ERROR_NOT_READY;
			late = delay_now() - begin > 4;
			for (int n = 0; n < 1000; n++)
				bad += cuStreamQuery(s[i]) != CUDA_ERROR_NOT_READY || cuEventQuery(e) != CUDA_ERROR_NOT_READY;
			release();
			for (asked = 0; cuStreamQuery(s[i]) == CUDA_ERROR_NOT_READY || cuEventQuery(e) == CUDA_ERROR_NOT_READY;
			     asked++)
				;
			is_cu(cuStreamQuery(s[i]), CUDA_SUCCESS);
			must(cuEventDestroy(e));
			if (!late)
				break;
		}
		printf("# %s: told after %d questions more\n", name[i], asked);
		is_int(trips() - before, 0, "%s: a new event and the stream polled until they are ready, for no round trip",
		       name[i]);
	}
	is_int(bad, 0, "no answer was early");
	must(cuStreamDestroy(s[2]));
}

/* Waits that saw the stream's work done: the next question knows. */
static void after_waits(void)
{
	enum { WAYS = 8 };
	static const char *const how[WAYS] = {"a wait for the stream",
					      "a wait for the context",
					      "a wait for an event",
					      "polling an event",
					      "a wait for another stream's event that came later",
					      "a copy of the legacy stream",
					      "polling another stream that waited for it",
					      "polling an event of another stream that waited for it"};
	long cost[WAYS] = {0};
	unsigned bad[WAYS] = {0}, x;
	CUstream s, t, plain;
	CUevent e, f;

	must(cuStreamCreate(&plain, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuEventCreate(&f, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 5 * WAYS; i++) {
		int way = i % WAYS;
		CUstream asked = way == 5 ? plain : s;
		long before;

		for (int n = 0; n < 5; n++)
			must(cuMemsetD32Async(d, i, 1 << 16, asked));
		must(cuEventRecord(e, asked));
		must(cuStreamWaitEvent(t, e, 0));
		must(cuEventRecord(f, t));
		if (way == 0)
			must(cuStreamSynchronize(s));
		if (way == 1)
			must(cuCtxSynchronize());
		if (way == 2)
			must(cuEventSynchronize(e));
		while (way == 3 && cuEventQuery(e) == CUDA_ERROR_NOT_READY)
			;
		if (way == 4)
			must(cuEventSynchronize(f));
		if (way == 5)
			must(cuMemcpyDtoH(&x, d, sizeof(x)));
		while (way == 6 && cuStreamQuery(t) == CUDA_ERROR_NOT_READY)
			;
		while (way == 7 && cuEventQuery(f) == CUDA_ERROR_NOT_READY)
			;
		before = trips();
		bad[way] += cuStreamQuery(asked) != CUDA_SUCCESS || cuEventQuery(e) != CUDA_SUCCESS;
		cost[way] += trips() - before;
		must(cuCtxSynchronize());
	}
	for (int way = 0; way < WAYS; way++) {
		is_int(bad[way], 0, "%s: then the stream and its event are ready", how[way]);
		ok(cost[way] <= (way < 4 ? 0 : 10), "… for %ld round trips in five rounds", cost[way]);
	}
	must(cuEventDestroy(e));
	must(cuEventDestroy(f));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuStreamDestroy(plain));
}

static void set(void *arg)
{
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

/* A host function that runs says that what came before it is done. */
static void after_function(void)
{
	unsigned bad = 0;
	CUstream s;
	CUevent e;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 10; i++) {
		int ran = 0;

		must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
		must(cuMemsetD32Async(d, i, 1 << 16, s));
		must(cuEventRecord(e, s));
		must(cuLaunchHostFunc(s, set, &ran));
		while (!__atomic_load_n(&ran, __ATOMIC_ACQUIRE))
			sched_yield();
		bad += cuEventQuery(e) != CUDA_SUCCESS;
		must(cuStreamSynchronize(s));
		must(cuEventDestroy(e));
	}
	is_int(bad, 0, "what an event recorded is done when a host function behind it runs");
	must(cuStreamDestroy(s));
}

/* Who asks long after the work was given asks perhaps only once. */
static void late(void)
{
	CUstream s;
	long before;
	CUevent e;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	hold(s);
	must(cuEventRecord(e, s));
	usleep(100000);
	before = rgpuRoundTrips("cuStreamQuery");
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
	is_int(rgpuRoundTrips("cuStreamQuery") - before, 1, "a question that comes late is asked");
	for (int i = 0; i < 100; i++)
		cuStreamQuery(s);
	is_int(rgpuRoundTrips("cuStreamQuery") - before, 1, "… once");
	release();
	must(cuStreamSynchronize(s));
	is_cu(cuEventQuery(e), CUDA_SUCCESS);
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
}

/* One question for each piece of work, soon after it: a program that does not come back must not be told "not ready" for ever. */
static void one_by_one(void)
{
	int ready = 0;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 50; i++) {
		must(cuMemsetD32Async(d, i, 1, s));
		usleep(2000);
		ready += cuStreamQuery(s) == CUDA_SUCCESS;
	}
	ok(ready > 10, "of 50 pieces of work, each asked about once, %d were ready", ready);
	must(cuStreamDestroy(s));
}

static void memory(void)
{
	size_t a = 0, b = 0, total;
	long before;

	must(cuMemGetInfo(&a, &total));
	before = trips();
	for (int i = 0; i < 100; i++)
		must(cuMemGetInfo(&b, &total));
	is_int(trips() - before, 0, "how much memory is free: no round trip while nothing changes");
	is_int(b, a, "it is the same");
}

/*
 * Memory that no device was given access to is refused at the call. A graph whose memory has gone since fails at the server
 * alone, after its launch has returned: that is told to who polls, once.
 */
static void refused(CUcontext ctx)
{
	CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUDA_MEMSET_NODE_PARAMS fill = {.value = 1, .elementSize = 4, .width = 1, .height = 1};
	CUmemGenericAllocationHandle h;
	CUgraphNode n;
	CUdeviceptr va;
	CUgraphExec x;
	size_t unit;
	char host[100];
	CUstream s;
	CUgraph g;
	CUresult r;
	CUevent e;

	must(cuMemGetAllocationGranularity(&unit, &p, 0));
	must(cuMemCreate(&h, unit, &p, 0));
	must(cuMemAddressReserve(&va, unit, 0, 0, 0));
	must(cuMemMap(va, unit, 0, h, 0));
	is_cu(cuMemsetD8Async(va, 1, 100, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyHtoDAsync(va, host, 100, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemcpyDtoH(host, va, 100), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemSetAccess(va, unit, &access, 1), CUDA_SUCCESS);
	is_cu(cuMemcpyHtoDAsync(va, host, 100, NULL), CUDA_SUCCESS);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuGraphCreate(&g, 0));
	fill.dst = va;
	must(cuGraphAddMemsetNode(&n, g, NULL, 0, &fill, ctx));
	must(cuGraphInstantiate(&x, g, 0));
	must(cuMemUnmap(va, unit));
	for (int i = 0; i < 10; i++) {
		is_cu(cuGraphLaunch(x, s), CUDA_SUCCESS);
		must(cuEventRecord(e, s));
		do
			r = i % 2 ? cuEventQuery(e) : cuStreamQuery(s);
		while (r == CUDA_ERROR_NOT_READY);
		is_int(r, CUDA_ERROR_INVALID_VALUE, "a launch that has failed is told to who polls %s",
		       i % 2 ? "an event" : "the stream");
		is_cu(cuStreamSynchronize(s), CUDA_SUCCESS);
	}
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
	must(cuMemAddressFree(va, unit));
	must(cuMemRelease(h));
}

/* A kernel's fault, told by polling alone. */
static void fault(void)
{
	CUfunction f = kernel("wild");
	void *p[] = {&d};
	CUresult r;
	CUstream s;
	CUevent e;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, p, NULL), CUDA_SUCCESS);
	must(cuEventRecord(e, s));
	while ((r = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY)
		;
	is_int(r, CUDA_ERROR_ILLEGAL_ADDRESS, "who polls the stream is told of the fault");
	is_cu(cuEventQuery(e), CUDA_ERROR_ILLEGAL_ADDRESS);
	is_cu(cuStreamQuery(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
	CUcontext ctx;

	serve(NULL, 2);
	serve_from_afar(AWAY_MS);
	devices();
	ctx = primary();
	modules();
	made();
	steady();
	must(cuMemAlloc(&flag, 16));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	polling();
	after_waits();
	after_function();
	late();
	one_by_one();
	memory();
	refused(ctx);
	fault();
	return tap_done();
}
