/* SPDX-License-Identifier: MIT */
/* Conditional nodes: behind cases.h. */
#ifndef TESTS_GRAPH_COND_CASES_H
#define TESTS_GRAPH_COND_CASES_H

/* *n counts down to 0, which ends the loop; each round adds b to *sum. */
static const char loop_ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			       ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
			       ".visible .entry down(.param .u64 h, .param .u64 n)\n{\n"
			       ".reg .u64 %rd<3>;\n.reg .u32 %r<4>;\n"
			       "ld.param.u64 %rd1, [h];\nld.param.u64 %rd2, [n];\n"
			       "ld.global.u32 %r1, [%rd2];\nsub.u32 %r2, %r1, 1;\nst.global.u32 [%rd2], %r2;\n"
			       "{\n.param .b64 p0;\nst.param.b64 [p0], %rd1;\n.param .b32 p1;\nst.param.b32 [p1], %r2;\n"
			       "call.uni cudaGraphSetConditional, (p0, p1);\n}\nret;\n}\n";

/* @again: of the same graph a second executable one may be made, after the first. */
static void conditions(bool again)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphConditionalHandle h, sw;
	CUgraph g, body, cases[2];
	CUgraphNode n, last;
	CUgraphExec x;
	CUfunction down;
	CUmodule m;

	must(cuModuleLoadData(&m, loop_ptx));
	must(cuModuleGetFunction(&down, m, "down"));
	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphConditionalHandleCreate(&h, g, gctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), CUDA_SUCCESS);
	p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = h, .type = CU_GRAPH_COND_TYPE_WHILE, .size = 1, .ctx = gctx};
	is_cu(cuGraphAddNode(&n, g, NULL, NULL, 0, &p), CUDA_SUCCESS);
	body = p.conditional.phGraph_out[0];
	{
		CUdeviceptr count = gmem + 4;
		void *list[] = {&h, &count};
		CUDA_KERNEL_NODE_PARAMS k = {down, 1, 1, 1, 1, 1, 1, 0, list, NULL, NULL, NULL};

		last = add_axpb(body, NULL, 0, gmem, 1, 3);
		must(cuGraphAddKernelNode(&last, body, &last, 1, &k));
	}
	is_cu(cuGraphConditionalHandleCreate(&sw, g, gctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), CUDA_SUCCESS);
	p.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){.handle = sw, .type = CU_GRAPH_COND_TYPE_SWITCH, .size = 2, .ctx = gctx};
	is_cu(cuGraphAddNode(&n, g, &n, NULL, 1, &p), CUDA_SUCCESS);
	cases[0] = p.conditional.phGraph_out[0];
	cases[1] = p.conditional.phGraph_out[1];
	add_axpb(cases[0], NULL, 0, gmem, 100, 0);
	add_axpb(cases[1], NULL, 0, gmem, 10, 0);
	poke(gmem, 0);
	poke(gmem + 4, 5);
	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 150, "five rounds of a loop, then one of two cases");
	poke(gmem, 1);
	poke(gmem + 4, 2);
	must(cuGraphLaunch(x, NULL));
	is_int(peek(gmem), 70, "and again from the beginning");
	must(cuGraphExecDestroy(x));
	is_cu(cuGraphInstantiate(&x, g, 0), again ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
	if (again)
		must(cuGraphExecDestroy(x));
	is_cu(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE);
	must(cuGraphDestroy(g));
}

#endif
