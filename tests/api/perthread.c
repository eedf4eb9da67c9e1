// SPDX-License-Identifier: MIT
/* Threads' own default streams: each is another one, though all have one name. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "tests/api/serve.h"

#define OWN   CU_STREAM_PER_THREAD
#define BYTES (1u << 20)

static CUcontext ctx;
static CUstream other;
static CUdeviceptr flags; /* a word each that holds a thread's stream */

static void hold(unsigned i)
{
	must(cuMemsetD32Async(flags + 4 * i, 0, 1, other));
	must(cuStreamSynchronize(other));
}

static void release(unsigned i)
{
	must(cuStreamWriteValue32(other, flags + 4 * i, 1, 0));
}

static void behind(unsigned i)
{
	must(cuStreamWaitValue32(OWN, flags + 4 * i, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void wait_until(const atomic_int *step, int n)
{
	while (atomic_load(step) < n)
		usleep(1000);
}

/* ---- Captured ---- */

static void captured(void)
{
	static const CUgraphNodeType want[] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY,
					       CU_GRAPH_NODE_TYPE_MEM_FREE};
	CUgraphNode node[8];
	CUgraphNodeType type;
	CUdeviceptr p = 0, out;
	CUgraphExec exec;
	CUgraph g;
	size_t n = 8;
	int got = 0;

	must(cuMemAlloc(&out, 16));
	must(cuStreamBeginCapture(OWN, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	is_cu(cuMemAllocAsync(&p, 1024, OWN), CUDA_SUCCESS);
	must(cuMemsetD32Async(p, 77, 4, OWN));
	must(cuMemcpyDtoDAsync(out, p, 16, OWN));
	is_cu(cuMemFreeAsync(p, OWN), CUDA_SUCCESS);
	must(cuStreamEndCapture(OWN, &g));
	must(cuGraphGetNodes(g, node, &n));
	is_int(n, 4, "memory that a captured thread's stream allocates and frees is in the graph");
	for (unsigned i = 0; i < n && i < 4; i++) {
		must(cuGraphNodeGetType(node[i], &type));
		is_int(type, want[i], "node %u", i);
	}
	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	is_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE); /* it is the graph's */
	must(cuGraphLaunch(exec, OWN));
	must(cuStreamSynchronize(OWN));
	must(cuMemcpyDtoH(&got, out, 4));
	is_int(got, 77, "and is there when it runs");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuMemFree(out));
}

/* ---- Memory that a thread left behind in its stream ---- */

static CUdeviceptr left, taken;

static void *leaves(void *arg)
{
	(void)arg;
	must(cuCtxSetCurrent(ctx));
	must(cuMemAllocAsync(&left, BYTES, OWN));
	behind(3);
	must(cuMemsetD8Async(left, 0x11, BYTES, OWN));
	must(cuMemFreeAsync(left, OWN));
	return NULL;
}

static void *takes(void *arg)
{
	(void)arg;
	must(cuCtxSetCurrent(ctx));
	must(cuMemAllocAsync(&taken, BYTES, OWN));
	must(cuMemsetD8Async(taken, 0x22, BYTES, OWN));
	must(cuStreamSynchronize(OWN));
	return NULL;
}

static void left_behind(void)
{
	uint32_t got = 0;
	pthread_t t;

	hold(3);
	pthread_create(&t, NULL, leaves, NULL);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, takes, NULL);
	pthread_join(t, NULL);
	release(3);
	must(cuCtxSynchronize());
	must(cuMemcpyDtoH(&got, taken + BYTES - 4, 4));
	ok(got == 0x22222222,
	   "what a thread that has ended freed in its stream is not another's before that stream's work is done: %x", got);
	must(cuMemFree(taken));
}

/* ---- Page-locked memory handed from one thread to another, in the order of their streams ---- */

static struct handed {
	uint32_t *buf;
	CUdeviceptr from, to;
	CUevent arrived;
	atomic_int step;
	bool ends; /* the first thread, before the second begins */
	uint32_t got;
} h;

static void *brings_down(void *arg)
{
	(void)arg;
	must(cuCtxSetCurrent(ctx));
	behind(0);
	must(cuMemcpyDtoHAsync(h.buf, h.from, BYTES, OWN));
	must(cuEventRecord(h.arrived, OWN));
	atomic_store(&h.step, 1);
	if (h.ends)
		return NULL;
	wait_until(&h.step, 3);
	must(cuStreamSynchronize(OWN));
	return NULL;
}

static void *takes_up(void *arg)
{
	(void)arg;
	must(cuCtxSetCurrent(ctx));
	wait_until(&h.step, 1);
	must(cuStreamSynchronize(OWN)); /* its own has nothing to do: that says nothing of the other's */
	must(cuStreamWaitEvent(OWN, h.arrived, 0));
	atomic_store(&h.step, 2);
	must(cuMemcpyHtoDAsync(h.to, h.buf, BYTES, OWN));
	must(cuStreamSynchronize(OWN));
	must(cuMemcpyDtoH(&h.got, h.to + BYTES - 4, 4));
	atomic_store(&h.step, 3);
	return NULL;
}

static void handed_on(bool ends)
{
	pthread_t t[2];

	h = (struct handed){.ends = ends};
	hold(0);
	must(cuMemAllocHost((void **)&h.buf, BYTES));
	must(cuMemAlloc(&h.from, BYTES));
	must(cuMemAlloc(&h.to, BYTES));
	must(cuEventCreate(&h.arrived, CU_EVENT_DISABLE_TIMING));
	memset(h.buf, 0x11, BYTES);
	must(cuMemsetD8(h.from, 0x22, BYTES));
	must(cuMemsetD8(h.to, 0, BYTES));
	must(cuCtxSynchronize());
	pthread_create(&t[0], NULL, brings_down, NULL);
	if (ends)
		pthread_join(t[0], NULL);
	pthread_create(&t[1], NULL, takes_up, NULL);
	wait_until(&h.step, 2);
	usleep(20000); /* so that the copy up is asked for before there is anything; it need not for the result to be right */
	release(0);
	if (!ends)
		pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	ok(h.got == 0x22222222, "a copy up takes what %s thread's stream brings down before it: %x",
	   ends ? "an ended" : "another", h.got);
	must(cuEventDestroy(h.arrived));
	must(cuMemFree(h.from));
	must(cuMemFree(h.to));
	must(cuMemFreeHost(h.buf));
}

/* ---- What graphs bring into ordinary memory ---- */

static uint8_t small[4096], large[1500000];
static CUdeviceptr mem;
static atomic_int step;

static CUgraphExec brings(void *to, size_t bytes)
{
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcDevice = mem,
			   .dstMemoryType = CU_MEMORYTYPE_HOST,
			   .dstHost = to,
			   .WidthInBytes = bytes,
			   .Height = 1,
			   .Depth = 1};
	CUgraphExec exec;
	CUgraphNode n;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, ctx));
	must(cuGraphInstantiateWithFlags(&exec, g, 0));
	must(cuGraphDestroy(g));
	return exec;
}

static void *one_graph(void *arg)
{
	CUgraphExec x;

	(void)arg;
	must(cuCtxSetCurrent(ctx));
	x = brings(small, sizeof(small));
	behind(1);
	must(cuGraphLaunch(x, OWN));
	atomic_store(&step, 1);
	wait_until(&step, 3);
	must(cuStreamSynchronize(OWN));
	must(cuGraphExecDestroy(x));
	return NULL;
}

/* So large that only two are on their way at once: the third launch waits for the first. */
static void *many_graphs(void *arg)
{
	CUgraphExec x;

	(void)arg;
	must(cuCtxSetCurrent(ctx));
	wait_until(&step, 1);
	x = brings(large, sizeof(large));
	behind(2);
	atomic_store(&step, 2);
	for (int i = 0; i < 3; i++)
		must(cuGraphLaunch(x, OWN));
	must(cuStreamSynchronize(OWN));
	atomic_store(&step, 3);
	must(cuGraphExecDestroy(x));
	return NULL;
}

static void landed(void)
{
	pthread_t t[2];
	int bad = 0;

	hold(1);
	hold(2);
	must(cuMemAlloc(&mem, sizeof(large)));
	must(cuMemsetD8(mem, 0x5a, sizeof(large)));
	must(cuCtxSynchronize());
	pthread_create(&t[0], NULL, one_graph, NULL);
	pthread_create(&t[1], NULL, many_graphs, NULL);
	wait_until(&step, 2);
	usleep(20000);
	release(2);
	wait_until(&step, 3);
	release(1);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	for (unsigned i = 0; i < sizeof(small); i++)
		bad += small[i] != 0x5a;
	is_int(bad, 0, "what a graph brings down in one thread's stream is not lost where another waits for its own");
	is_int(large[sizeof(large) - 1], 0x5a, "nor is the other's");
	must(cuMemFree(mem));
}

int main(void)
{
	serve(NULL, 1);
	ctx = primary();
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&flags, 16));
	captured();
	left_behind();
	handed_on(false);
	handed_on(true);
	landed();
	return tap_done();
}
