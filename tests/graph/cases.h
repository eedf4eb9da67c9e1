/* SPDX-License-Identifier: MIT */
/* What graphs and capture promise, whatever the driver below: run on softgpu itself, and on the client library over a server. */
#ifndef TESTS_GRAPH_CASES_H
#define TESTS_GRAPH_CASES_H

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

/* axpb: *p = *p × a + b. Values tell the order in which such steps ran. */
static const char graph_ptx[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".visible .entry axpb(.param .u64 p, .param .u32 a, .param .u32 b)\n{\n"
	".reg .u64 %rd<2>;\n.reg .u32 %r<5>;\n"
	"ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [a];\nld.param.u32 %r2, [b];\n"
	"ld.global.u32 %r3, [%rd1];\nmad.lo.u32 %r4, %r3, %r1, %r2;\nst.global.u32 [%rd1], %r4;\nret;\n}\n";

static CUfunction axpb;
static CUdeviceptr gmem; /* 4 KiB */
static CUcontext gctx;

static uint32_t peek(CUdeviceptr p)
{
	uint32_t v = 0xdeadbeef;

	must(cuMemcpyDtoH(&v, p, 4));
	return v;
}

static void poke(CUdeviceptr p, uint32_t v)
{
	must(cuMemsetD32(p, v, 1));
	must(cuCtxSynchronize());
}

struct axpb_args {
	CUdeviceptr p;
	uint32_t a, b;
	void *list[3];
};

static CUDA_KERNEL_NODE_PARAMS kernel_params(struct axpb_args *args, CUdeviceptr p, uint32_t a, uint32_t b)
{
	*args = (struct axpb_args){p, a, b, {&args->p, &args->a, &args->b}};
	return (CUDA_KERNEL_NODE_PARAMS){axpb, 1, 1, 1, 1, 1, 1, 0, args->list, NULL, NULL, NULL};
}

static CUgraphNode add_axpb(CUgraph g, const CUgraphNode *deps, size_t n, CUdeviceptr p, uint32_t a, uint32_t b)
{
	struct axpb_args args;
	CUDA_KERNEL_NODE_PARAMS k = kernel_params(&args, p, a, b);
	CUgraphNode node;

	must(cuGraphAddKernelNode(&node, g, deps, n, &k));
	return node;
}

static void launch_axpb(CUstream s, CUdeviceptr p, uint32_t a, uint32_t b)
{
	void *list[] = {&p, &a, &b};

	must(cuLaunchKernel(axpb, 1, 1, 1, 1, 1, 1, 0, s, list, NULL));
}

static void run_graph(CUgraph g, CUstream s)
{
	CUgraphExec x;

	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	must(cuGraphExecDestroy(x));
}

static void explicit_nodes(void)
{
	CUDA_MEMSET_NODE_PARAMS ms = {.dst = gmem, .value = 1, .elementSize = 4, .width = 1, .height = 1}, ms2;
	CUgraphNode n[4], list[8], from[8], to[8];
	CUDA_KERNEL_NODE_PARAMS k, got;
	struct axpb_args args;
	CUgraphNodeType type;
	CUgraphExec x;
	size_t count;
	unsigned on;
	CUgraph g;

	is_cu(cuGraphCreate(&g, 1), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddMemsetNode(&n[0], g, NULL, 0, &ms, gctx), CUDA_SUCCESS);
	n[1] = add_axpb(g, &n[0], 1, gmem, 2, 3);
	n[2] = add_axpb(g, &n[1], 1, gmem, 5, 7);
	count = 8;
	is_cu(cuGraphGetNodes(g, list, &count), CUDA_SUCCESS);
	ok(count == 3 && list[0] == n[0] && list[1] == n[1] && list[2] == n[2] && !list[3], "three nodes");
	is_cu(cuGraphGetRootNodes(g, NULL, &count), CUDA_SUCCESS);
	is_int(count, 1, "one root");
	count = 8;
	is_cu(cuGraphGetEdges(g, from, to, NULL, &count), CUDA_SUCCESS);
	ok(count == 2 && from[0] == n[0] && to[0] == n[1] && from[1] == n[1] && to[1] == n[2], "two edges");
	count = 8;
	is_cu(cuGraphNodeGetDependencies(n[2], list, NULL, &count), CUDA_SUCCESS);
	ok(count == 1 && list[0] == n[1], "what a node depends on");
	is_cu(cuGraphNodeGetType(n[1], &type), CUDA_SUCCESS);
	is_int(type, CU_GRAPH_NODE_TYPE_KERNEL, "a kernel node");
	is_cu(cuGraphKernelNodeGetParams(n[2], &got), CUDA_SUCCESS);
	ok(got.func == axpb && got.gridDimX == 1 && *(CUdeviceptr *)got.kernelParams[0] == gmem &&
		   *(uint32_t *)got.kernelParams[1] == 5 && *(uint32_t *)got.kernelParams[2] == 7,
	   "its parameters can be read back");
	is_cu(cuGraphMemsetNodeGetParams(n[0], &ms2), CUDA_SUCCESS);
	ok(ms2.dst == gmem && ms2.value == 1 && ms2.width == 1, "and a memset's");
	is_cu(cuGraphKernelNodeGetParams(n[0], &got), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphAddDependencies(g, &n[0], &n[1], NULL, 1), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphAddKernelNode(&n[3], (CUgraph)0x10, NULL, 0, &got), CUDA_ERROR_INVALID_VALUE);
	k = kernel_params(&args, gmem, 1, 1);
	k.blockDimX = 4096;
	is_cu(cuGraphAddKernelNode(&n[3], g, NULL, 0, &k), CUDA_ERROR_INVALID_VALUE);
	ms.elementSize = 3;
	is_cu(cuGraphAddMemsetNode(&n[3], g, NULL, 0, &ms, gctx), CUDA_ERROR_INVALID_VALUE);

	is_cu(cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
	is_cu(cuGraphLaunch(x, NULL), CUDA_SUCCESS);
	is_int(peek(gmem), 32, "(1 × 2 + 3) × 5 + 7");
	is_cu(cuGraphNodeSetEnabled(x, n[1], 0), CUDA_SUCCESS);
	is_cu(cuGraphNodeGetEnabled(x, n[1], &on), CUDA_SUCCESS);
	is_int(on, 0, "a node is switched off");
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 12, "1 × 5 + 7");
	must(cuGraphNodeSetEnabled(x, n[1], 1));
	k = kernel_params(&args, gmem, 10, 4);
	is_cu(cuGraphExecKernelNodeSetParams(x, n[2], &k), CUDA_SUCCESS);
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 54, "other parameters of the executable graph's node");
	run_graph(g, NULL);
	is_int(peek(gmem), 32, "the graph itself keeps its own");
	is_cu(cuGraphKernelNodeSetParams(n[2], &k), CUDA_SUCCESS);
	run_graph(g, NULL);
	is_int(peek(gmem), 54, "until they are changed there");
	is_cu(cuGraphRemoveDependencies(g, &n[1], &n[2], NULL, 1), CUDA_SUCCESS);
	is_cu(cuGraphAddDependencies(g, &n[2], &n[1], NULL, 1), CUDA_SUCCESS);
	is_cu(cuGraphAddDependencies(g, &n[0], &n[2], NULL, 1), CUDA_SUCCESS);
	run_graph(g, NULL);
	is_int(peek(gmem), 31, "(1 × 10 + 4) × 2 + 3: the other way round");
	is_cu(cuGraphAddDependencies(g, &n[1], &n[2], NULL, 1), CUDA_SUCCESS);
	is_cu(cuGraphInstantiate(&x, g, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphDestroyNode(n[1]), CUDA_SUCCESS);
	is_cu(cuGraphNodeGetType(n[1], &type), CUDA_ERROR_INVALID_VALUE);
	run_graph(g, NULL);
	is_int(peek(gmem), 14, "without the node in between");
	is_cu(cuGraphDestroy(g), CUDA_SUCCESS);
	is_cu(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphExecDestroy((CUgraphExec)g), CUDA_ERROR_INVALID_VALUE);
}

static void clones_and_children(void)
{
	CUgraphNode n, found, child, sub;
	CUgraph g, clone, outer, inside;
	struct axpb_args args;
	CUDA_KERNEL_NODE_PARAMS k;
	CUgraphExec x;
	size_t count = 1;

	must(cuGraphCreate(&g, 0));
	n = add_axpb(g, NULL, 0, gmem, 3, 1);
	is_cu(cuGraphClone(&clone, g), CUDA_SUCCESS);
	is_cu(cuGraphNodeFindInClone(&found, n, clone), CUDA_SUCCESS);
	ok(found && found != n, "the clone's node is another");
	is_cu(cuGraphNodeFindInClone(&found, n, g), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphNodeFindInClone(&found, n, clone));
	k = kernel_params(&args, gmem, 4, 2);
	must(cuGraphKernelNodeSetParams(found, &k));
	must(cuGraphCreate(&outer, 0));
	n = add_axpb(outer, NULL, 0, gmem, 1, 1);
	is_cu(cuGraphAddChildGraphNode(&child, outer, &n, 1, clone), CUDA_SUCCESS);
	n = add_axpb(outer, &child, 1, gmem, 10, 0);
	is_cu(cuGraphChildGraphNodeGetGraph(child, &inside), CUDA_SUCCESS);
	is_cu(cuGraphGetNodes(inside, &sub, &count), CUDA_SUCCESS);
	ok(count == 1 && sub != found, "a child graph is a copy");
	is_cu(cuGraphDestroy(inside), CUDA_ERROR_INVALID_VALUE);
	poke(gmem, 2);
	must(cuGraphInstantiate(&x, outer, 0));
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 140, "((2 + 1) × 4 + 2) × 10");
	k = kernel_params(&args, gmem, 1, 1);
	is_cu(cuGraphExecKernelNodeSetParams(x, sub, &k), CUDA_SUCCESS);
	poke(gmem, 2);
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 40, "a node inside of a child graph is changed");
	is_cu(cuGraphExecChildGraphNodeSetParams(x, child, g), CUDA_SUCCESS);
	poke(gmem, 2);
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 100, "a child graph's parameters are exchanged");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(outer));
	must(cuGraphDestroy(clone));
	must(cuGraphDestroy(g));
}

static struct {
	uint32_t in[1024], out[1024], seen;
	int calls;
} ghost;

static void CUDA_CB host_step(void *arg)
{
	(void)arg;
	/* Between a copy down and a copy up: sees the first, and the second sees what is written here. */
	ghost.seen = ghost.out[0];
	ghost.in[1] = ghost.out[0] + 1000;
	ghost.calls++;
}

static CUDA_MEMCPY3D line_copy(void *host, CUdeviceptr dev, size_t bytes, bool up)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = up ? host : NULL,
		.srcDevice = up ? 0 : dev,
		.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstHost = up ? NULL : host,
		.dstDevice = up ? dev : 0,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};
}

/* up → kernel → down → host function → up → kernel → down, all in memory that is nothing special. */
static void host_memory(void)
{
	CUDA_HOST_NODE_PARAMS h = {.fn = host_step};
	CUDA_MEMCPY3D c;
	int bad = 0, i;
	CUgraphNode n;
	CUgraphExec x;
	CUstream s;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	c = line_copy(ghost.in, gmem, 4, true);
	is_cu(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, gctx), CUDA_SUCCESS);
	n = add_axpb(g, &n, 1, gmem, 2, 1);
	c = line_copy(ghost.out, gmem, 4, false);
	is_cu(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, gctx), CUDA_SUCCESS);
	is_cu(cuGraphAddHostNode(&n, g, &n, 1, &h), CUDA_SUCCESS);
	c = line_copy(&ghost.in[1], gmem + 4, 4, true);
	must(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, gctx));
	n = add_axpb(g, &n, 1, gmem + 4, 3, 0);
	c = line_copy(&ghost.out[1], gmem + 4, 4, false);
	must(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, gctx));
	is_cu(cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
	for (i = 0; i < 20; i++) {
		ghost.in[0] = i * 7;
		must(cuGraphLaunch(x, s));
		must(cuStreamSynchronize(s));
		bad += ghost.seen != (uint32_t)i * 14 + 1 || ghost.out[1] != (ghost.seen + 1000) * 3;
	}
	ok(!bad && ghost.calls == 20, "20 replays take and give host memory as it is then (%d wrong, %d calls)", bad,
	   ghost.calls);
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
}

#include "tests/graph/capture_cases.h"

/* The graph of two steps, captured anew with other numbers. */
static CUgraph capture_two(CUstream s, uint32_t a, uint32_t b, bool three)
{
	CUgraph g;

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch_axpb(s, gmem, a, 0);
	launch_axpb(s, gmem, 1, b);
	if (three)
		launch_axpb(s, gmem, 1, b);
	must(cuStreamEndCapture(s, &g));
	return g;
}

static void updates(void)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph g, h, more;
	CUgraphNode n;
	CUgraphExec x;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	g = capture_two(s, 2, 1, false);
	h = capture_two(s, 3, 4, false);
	more = capture_two(s, 3, 4, true);
	must(cuGraphInstantiate(&x, g, 0));
	is_cu(cuGraphExecUpdate(x, h, &info), CUDA_SUCCESS);
	is_int(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS, "an update of the same shape");
	poke(gmem, 5);
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	is_int(peek(gmem), 19, "runs the new numbers");
	is_cu(cuGraphExecUpdate(x, more, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	is_int(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "another shape is refused");
	must(cuGraphDestroy(more));
	must(cuGraphCreate(&more, 0));
	n = add_axpb(more, NULL, 0, gmem, 1, 1);
	must(cuGraphAddEmptyNode(&n, more, &n, 1));
	is_cu(cuGraphExecUpdate(x, more, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	ok(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == n, "and so is another kind of node");
	poke(gmem, 5);
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	is_int(peek(gmem), 19, "which changed nothing");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(h));
	must(cuGraphDestroy(more));
	must(cuStreamDestroy(s));
}

static void CUDA_CB count_down(void *arg)
{
	--*(int *)arg;
}

static void user_objects(void)
{
	CUuserObject o;
	CUgraph g, c;
	CUgraphExec x;
	int left = 1;

	is_cu(cuUserObjectCreate(&o, &left, count_down, 1, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuUserObjectCreate(&o, &left, count_down, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
	must(cuGraphCreate(&g, 0));
	add_axpb(g, NULL, 0, gmem, 1, 1);
	is_cu(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
	is_cu(cuUserObjectRelease(o, 1), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphClone(&c, g));
	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(c));
	must(cuGraphLaunch(x, NULL));
	is_int(left, 1, "an executable graph keeps what its graph used");
	must(cuGraphExecDestroy(x));
	is_int(left, 0, "and the last one lets it go");
	is_cu(cuUserObjectRetain(o, 1), CUDA_ERROR_INVALID_VALUE);
}

static void memory_nodes(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 1 << 16};
	CUDA_MEMSET_NODE_PARAMS ms = {.value = 21, .elementSize = 4, .width = 4, .height = 1};
	CUgraphNode alloc, n;
	cuuint64_t used = 1;
	CUdeviceptr d = 0;
	CUgraph g, clone;
	CUgraphExec x;
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddMemAllocNode(&alloc, g, NULL, 0, &p), CUDA_SUCCESS);
	ok(p.dptr, "an address at once");
	ms.dst = p.dptr;
	must(cuGraphAddMemsetNode(&n, g, &alloc, 1, &ms, gctx));
	n = add_axpb(g, &n, 1, p.dptr, 2, 0);
	is_cu(cuGraphClone(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
	is_cu(cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	is_int(peek(p.dptr), 42, "memory of the graph's own");
	must(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	ok(used >= 1 << 16, "is accounted for");
	is_cu(cuGraphLaunch(x, s), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuMemFree(p.dptr), CUDA_SUCCESS);
	is_cu(cuMemFree(p.dptr), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphLaunch(x, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuMemFree(p.dptr));
	must(cuGraphExecDestroy(x));
	must(cuGraphInstantiate(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	must(cuGraphLaunch(x, s));
	is_cu(cuGraphLaunch(x, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuMemFree(p.dptr));
	must(cuGraphExecDestroy(x));
	is_cu(cuGraphAddMemFreeNode(&n, g, &n, 1, gmem), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphAddMemFreeNode(&n, g, &n, 1, p.dptr), CUDA_SUCCESS);
	must(cuGraphMemFreeNodeGetParams(n, &d));
	is_int(d, p.dptr, "what a node frees");
	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphLaunch(x, s));
	is_cu(cuGraphLaunch(x, s), CUDA_SUCCESS);
	must(cuStreamSynchronize(s));
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &used));
	is_int(used, 0, "and nothing stays");
	must(cuStreamDestroy(s));
}

/* Events of the outside, and values in memory. */
static void signals(void)
{
	CUstreamBatchMemOpParams op[2] = {{.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, 0, {99}, 0, 0}},
					  {.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, 0, {99}, CU_STREAM_WAIT_VALUE_EQ, 0}}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS mp = {gctx, 2, op, 0};
	CUgraphNode n;
	CUgraphExec x;
	CUevent e, got;
	CUstream s;
	CUgraph g;

	op[0].writeValue.address = op[1].waitValue.address = gmem + 16;
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddEventWaitNode(&n, g, NULL, 0, e), CUDA_SUCCESS);
	is_cu(cuGraphAddBatchMemOpNode(&n, g, &n, 1, &mp), CUDA_SUCCESS);
	is_cu(cuGraphAddEventRecordNode(&n, g, &n, 1, e), CUDA_SUCCESS);
	is_cu(cuGraphEventRecordNodeGetEvent(n, &got), CUDA_SUCCESS);
	ok(got == e, "the node's event");
	must(cuGraphInstantiate(&x, g, 0));
	poke(gmem + 16, 0);
	must(cuGraphLaunch(x, s));
	is_cu(cuEventSynchronize(e), CUDA_SUCCESS);
	is_int(peek(gmem + 16), 99, "an event that a graph records, behind a value that it writes and waits for");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
}

static void dot_file(void)
{
	char path[] = "/tmp/rgpu-graph.XXXXXX", text[4096] = "";
	int fd = mkstemp(path);
	CUgraphNode n;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	n = add_axpb(g, NULL, 0, gmem, 1, 1);
	must(cuGraphAddEmptyNode(&n, g, &n, 1));
	is_cu(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE), CUDA_SUCCESS);
	ok(read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "digraph") && strstr(text, "KERNEL") && strstr(text, "->"),
	   "a graph as a file");
	close(fd);
	unlink(path);
	must(cuGraphDestroy(g));
}

static void graph_cases(CUcontext ctx)
{
	CUmodule m;

	gctx = ctx;
	must(cuModuleLoadData(&m, graph_ptx));
	must(cuModuleGetFunction(&axpb, m, "axpb"));
	must(cuMemAlloc(&gmem, 4096));
	explicit_nodes();
	clones_and_children();
	host_memory();
	fork_and_join();
	capture_rules();
	updates();
	user_objects();
	memory_nodes();
	signals();
	dot_file();
}

#endif
