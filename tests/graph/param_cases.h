/* SPDX-License-Identifier: MIT */
/* Parameters of nodes of each kind, read back and changed, in the graph and in what was made of it; other ways to make and to
 * capture. */
#ifndef TESTS_GRAPH_PARAM_CASES_H
#define TESTS_GRAPH_PARAM_CASES_H

static uint32_t after(CUgraphExec x, CUstream s, uint32_t begin)
{
	poke(gmem, begin);
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	return peek(gmem);
}

/* A kernel node by the call that serves all kinds. */
static void any_kind(CUstream s)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	CUgraphNode a, b, c, list[4];
	struct axpb_args args;
	CUgraphExec x;
	size_t n = 4;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	a = add_axpb(g, NULL, 0, gmem, 2, 1);
	b = add_axpb(g, &a, 1, gmem, 3, 0);
	c = add_axpb(g, &b, 1, gmem, 1, 0);
	is_cu(cuGraphNodeGetDependentNodes(a, list, NULL, &n), CUDA_SUCCESS);
	ok(n == 1 && list[0] == b && !list[1], "what depends on a node");
	is_cu(cuGraphNodeGetDependentNodes(c, NULL, NULL, &n), CUDA_SUCCESS);
	is_int(n, 0, "nothing on the last");
	is_cu(cuGraphInstantiateWithFlags(&x, g, 1ull << 40), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuGraphInstantiateWithFlags(&x, g, 0), CUDA_SUCCESS);
	is_int(after(x, s, 5), 33, "(5 × 2 + 1) × 3");
	kernel_params(&args, gmem, 10, 4);
	p.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = axpb,
						.gridDimX = 1,
						.gridDimY = 1,
						.gridDimZ = 1,
						.blockDimX = 1,
						.blockDimY = 1,
						.blockDimZ = 1,
						.kernelParams = args.list};
	is_cu(cuGraphExecNodeSetParams(x, b, &p), CUDA_SUCCESS);
	is_int(after(x, s, 5), 114, "(5 × 2 + 1) × 10 + 4");
	is_cu(cuGraphNodeSetParams(a, &p), CUDA_SUCCESS);
	is_int(after(x, s, 5), 114, "a node of the graph is not one of what was made of it");
	must(cuGraphExecDestroy(x));
	must(cuGraphInstantiate(&x, g, 0));
	is_int(after(x, s, 5), 162, "(5 × 10 + 4) × 3");
	p.type = CU_GRAPH_NODE_TYPE_MEMSET;
	is_cu(cuGraphNodeSetParams(a, &p), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
}

static void attributes(void)
{
	CUkernelNodeAttrValue v = {.priority = -1}, got = {0};
	CUgraphNode a, b;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	a = add_axpb(g, NULL, 0, gmem, 2, 1);
	b = add_axpb(g, &a, 1, gmem, 3, 0);
	is_cu(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v), CUDA_SUCCESS);
	is_cu(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got), CUDA_SUCCESS);
	is_int(got.priority, -1, "a kernel node's priority");
	is_cu(cuGraphKernelNodeCopyAttributes(b, a), CUDA_SUCCESS);
	got.priority = 0;
	must(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
	is_int(got.priority, -1, "copied to another");
	is_cu(cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphDestroy(g));
}

static void CUDA_CB add_up(void *arg)
{
	*(int *)arg += 1;
}

static void host_and_copy(CUstream s)
{
	CUDA_HOST_NODE_PARAMS h = {.fn = add_up}, got_h = {0};
	static uint32_t first[4] = {11}, second[4] = {22};
	CUDA_MEMCPY3D c, got_c = {0};
	int one = 0, two = 0;
	CUgraphNode up, host;
	CUgraphExec x;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	c = line_copy(first, gmem, 4, true);
	must(cuGraphAddMemcpyNode(&up, g, NULL, 0, &c, gctx));
	h.userData = &one;
	must(cuGraphAddHostNode(&host, g, &up, 1, &h));
	is_cu(cuGraphHostNodeGetParams(host, &got_h), CUDA_SUCCESS);
	ok(got_h.fn == add_up && got_h.userData == &one, "a host node's parameters");
	is_cu(cuGraphMemcpyNodeGetParams(up, &got_c), CUDA_SUCCESS);
	ok(got_c.srcHost == first && got_c.dstDevice == gmem && got_c.WidthInBytes == 4, "a copy's");
	is_cu(cuGraphHostNodeGetParams(up, &got_h), CUDA_ERROR_INVALID_VALUE);
	run_graph(g, s);
	ok(peek(gmem) == 11 && one == 1, "what they say is done");
	h.userData = &two;
	is_cu(cuGraphHostNodeSetParams(host, &h), CUDA_SUCCESS);
	c = line_copy(second, gmem, 4, true);
	is_cu(cuGraphMemcpyNodeSetParams(up, &c), CUDA_SUCCESS);
	h.fn = NULL;
	is_cu(cuGraphHostNodeSetParams(host, &h), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphInstantiate(&x, g, 0));
	ok(after(x, s, 0) == 22 && one == 1 && two == 1, "and what is said later");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
}

/* What graphs do with events and values, changed before and after they are made executable. */
static void other_signals(CUstream s)
{
	CUstreamBatchMemOpParams op = {.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, gmem, {5}, 0, 0}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = {gctx, 1, &op, 0}, got_p = {0};
	CUgraphNode wait, write, record;
	CUevent e[2], got = NULL;
	CUgraphExec x;
	CUgraph g;

	for (int i = 0; i < 2; i++)
		must(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
	must(cuGraphCreate(&g, 0));
	must(cuGraphAddEventWaitNode(&wait, g, NULL, 0, e[0]));
	must(cuGraphAddBatchMemOpNode(&write, g, &wait, 1, &p));
	must(cuGraphAddEventRecordNode(&record, g, &write, 1, e[0]));
	is_cu(cuGraphEventWaitNodeGetEvent(wait, &got), CUDA_SUCCESS);
	ok(got == e[0], "which event a node waits for");
	is_cu(cuGraphEventWaitNodeSetEvent(wait, e[1]), CUDA_SUCCESS);
	must(cuGraphEventWaitNodeGetEvent(wait, &got));
	ok(got == e[1], "another");
	is_cu(cuGraphEventRecordNodeSetEvent(record, e[1]), CUDA_SUCCESS);
	must(cuGraphEventRecordNodeGetEvent(record, &got));
	ok(got == e[1], "another that it records");
	is_cu(cuGraphBatchMemOpNodeGetParams(write, &got_p), CUDA_SUCCESS);
	ok(got_p.count == 1 && got_p.paramArray[0].writeValue.address == gmem && got_p.paramArray[0].writeValue.value == 5,
	   "what it writes");
	op.writeValue.value = 6;
	is_cu(cuGraphBatchMemOpNodeSetParams(write, &p), CUDA_SUCCESS);
	must(cuGraphInstantiate(&x, g, 0));
	is_int(after(x, s, 0), 6, "another value");
	op.writeValue.value = 7;
	is_cu(cuGraphExecBatchMemOpNodeSetParams(x, write, &p), CUDA_SUCCESS);
	is_int(after(x, s, 0), 7, "… in the executable graph");
	is_cu(cuGraphExecEventWaitNodeSetEvent(x, wait, e[0]), CUDA_SUCCESS);
	is_cu(cuGraphExecEventRecordNodeSetEvent(x, record, e[0]), CUDA_SUCCESS);
	is_cu(cuGraphExecEventRecordNodeSetEvent(x, wait, e[0]), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuEventQuery(e[0]), CUDA_SUCCESS);
	poke(gmem, 0);
	must(cuGraphLaunch(x, s));
	is_cu(cuEventSynchronize(e[0]), CUDA_SUCCESS);
	is_int(peek(gmem), 7, "its event is the one that was named last");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	for (int i = 0; i < 2; i++)
		must(cuEventDestroy(e[i]));
}

static void made_otherwise(CUstream s)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS p = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .hUploadStream = s, .result_out = 99};
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
						      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
					.bytesize = 1 << 16},
				   got = {0};
	cuuint64_t flags = 99, high = 1;
	CUgraphNode n;
	CUgraphExec x;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	add_axpb(g, NULL, 0, gmem, 3, 1);
	is_cu(cuGraphInstantiateWithParams(&x, g, &p), CUDA_SUCCESS);
	is_int(p.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS, "made executable and uploaded");
	is_cu(cuGraphExecGetFlags(x, &flags), CUDA_SUCCESS);
	is_int(flags, 0, "its flags, of which the upload is none");
	is_cu(cuGraphUpload(x, s), CUDA_SUCCESS);
	is_int(after(x, s, 4), 13, "4 × 3 + 1");
	must(cuGraphExecDestroy(x));
	must(cuGraphInstantiateWithFlags(&x, g, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	must(cuGraphExecGetFlags(x, &flags));
	is_int(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, "another's flags");
	must(cuGraphExecDestroy(x));
	p.flags = 1ull << 40;
	is_cu(cuGraphInstantiateWithParams(&x, g, &p), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphAddMemAllocNode(&n, g, NULL, 0, &a));
	is_cu(cuGraphMemAllocNodeGetParams(n, &got), CUDA_SUCCESS);
	ok(got.bytesize == 1 << 16 && got.dptr == a.dptr && got.dptr, "what a node allocates");
	must(cuGraphDestroy(g));
	is_cu(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	is_cu(cuDeviceGraphMemTrim(77), CUDA_ERROR_INVALID_DEVICE);
	high = 0;
	is_cu(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &high), CUDA_SUCCESS);
	must(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &high));
	is_int(high, 0, "the highest use, begun anew");
	is_cu(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &high), CUDA_ERROR_INVALID_VALUE);
}

static void let_go(void)
{
	CUuserObject o;
	int left = 1;
	CUgraph g;

	must(cuUserObjectCreate(&o, &left, count_down, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	must(cuGraphCreate(&g, 0));
	must(cuGraphRetainUserObject(g, o, 2, 0));
	is_cu(cuGraphReleaseUserObject(g, o, 1), CUDA_SUCCESS);
	must(cuUserObjectRelease(o, 1));
	is_int(left, 1, "a graph that has one of two left keeps the object");
	is_cu(cuGraphReleaseUserObject(g, o, 1), CUDA_SUCCESS);
	is_int(left, 0, "then it goes");
	must(cuGraphDestroy(g));
}

/* Captured into a graph that there is already, behind nodes of one's choice. */
static void captured_into(CUstream s)
{
	CUgraph g, got;
	CUgraphNode first, list[4];
	CUgraphExec x;
	size_t n = 4;

	must(cuGraphCreate(&g, 0));
	first = add_axpb(g, NULL, 0, gmem, 2, 0);
	is_cu(cuStreamBeginCaptureToGraph(s, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	launch_axpb(s, gmem, 1, 7);
	is_cu(cuStreamUpdateCaptureDependencies(s, &first, NULL, 1, 99), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuStreamUpdateCaptureDependencies(s, &first, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
	launch_axpb(s, gmem, 10, 0);
	is_cu(cuStreamEndCapture(s, &got), CUDA_SUCCESS);
	ok(got == g, "the graph that was given");
	must(cuGraphNodeGetDependentNodes(first, list, NULL, &n));
	is_int(n, 2, "both launches come after its node");
	must(cuGraphInstantiate(&x, g, 0));
	is_int(after(x, s, 4), 150, "(4 × 2 + 7) × 10");
	must(cuGraphExecDestroy(x));
	/* The dependencies set anew: two that do not depend on each other. */
	must(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch_axpb(s, gmem + 4, 1, 1);
	is_cu(cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
	launch_axpb(s, gmem + 8, 1, 1);
	/* As NVIDIA's examples do: the graph is known. */
	is_cu(cuStreamEndCapture(s, NULL), CUDA_SUCCESS);
	must(cuGraphGetRootNodes(g, NULL, &n));
	is_int(n, 3, "three nodes wait for nothing");
	must(cuGraphDestroy(g));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_cu(cuStreamEndCapture(s, NULL), CUDA_ERROR_INVALID_VALUE);
	must(cuStreamEndCapture(s, &got));
	must(cuGraphDestroy(got));
}

static void param_cases(void)
{
	CUstream s;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	any_kind(s);
	attributes();
	host_and_copy(s);
	other_signals(s);
	made_otherwise(s);
	let_go();
	captured_into(s);
	must(cuStreamDestroy(s));
}

#endif
