// SPDX-License-Identifier: MIT
/* Graphs and capture over a server: what all drivers promise, and what a replay costs. */
#include "tests/api/serve.h"

#include "tests/graph/cases.h"
#include "tests/graph/cond_cases.h"
#include "tests/graph/param_cases.h"

/* Replays with everything that a graph may ask of host memory, and no round trip but the wait. */
static void replays_cost_nothing(void)
{
	static uint32_t in[256], out[256];
	uint32_t *pinned;
	CUDA_MEMCPY3D up, down;
	CUstream s, other;
	CUgraphNode n;
	CUgraphExec x;
	long before;
	int bad = 0;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	must(cuMemHostAlloc((void **)&pinned, 4096, 0));
	must(cuGraphCreate(&g, 0));
	up = line_copy(in, gmem, sizeof(in), true);
	must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &up, gctx));
	n = add_axpb(g, &n, 1, gmem, 3, 1);
	down = line_copy(out, gmem, sizeof(out), false);
	must(cuGraphAddMemcpyNode(&n, g, &n, 1, &down, gctx));
	down = line_copy(pinned, gmem, 64, false);
	must(cuGraphAddMemcpyNode(&n, g, &n, 1, &down, gctx));
	before = rgpuRoundTrips(NULL);
	is_cu(cuGraphInstantiate(&x, g, 0), CUDA_SUCCESS);
	is_int(rgpuRoundTrips("GRAPH_MAKE"), rgpuRoundTrips(NULL) - before + rgpuRoundTrips("GRAPH_MAKE") - 1,
	       "one round trip makes it executable");
	must(cuStreamSynchronize(s));
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < 100; i++) {
		in[0] = i;
		in[255] = i + 7;
		must(cuGraphLaunch(x, i % 2 ? s : other));
	}
	is_int(rgpuRoundTrips(NULL), before, "100 replays: no round trip");
	must(cuStreamSynchronize(s));
	ok(out[0] == 298 && out[255] == 106 && pinned[0] == 298, "the last one's values: %u %u %u", out[0], out[255], pinned[0]);
	before = rgpuRoundTrips(NULL);
	for (int i = 0; i < 20; i++) {
		in[0] = i;
		must(cuGraphLaunch(x, s));
		must(cuStreamSynchronize(s));
		bad += out[0] != (uint32_t)i * 3 + 1 || pinned[0] != out[0];
	}
	is_int(bad, 0, "each replay takes what the memory holds then, and brings its own");
	is_int(rgpuRoundTrips(NULL) - before, 20, "one round trip each, for the wait");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuMemFreeHost(pinned));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(other));
}

/* Copies that do not fit into one record, rows with gaps, and other memory later. */
static void large_and_pitched(void)
{
	enum { N = 5 << 20, W = 48, H = 10, P = 64 };
	uint8_t *src = malloc(N), *dst = malloc(N), *rows = malloc(P * H), *moved = malloc(N);
	CUDA_MEMCPY3D c;
	CUgraphNode up, n, down;
	CUdeviceptr d;
	CUgraphExec x;
	CUgraph g;
	int bad = 0;

	must(cuMemAlloc(&d, N));
	for (int i = 0; i < N; i++)
		src[i] = (uint8_t)(i * 31 >> 3), moved[i] = (uint8_t)(i * 17 >> 2);
	must(cuGraphCreate(&g, 0));
	c = line_copy(src, d, N, true);
	must(cuGraphAddMemcpyNode(&up, g, NULL, 0, &c, gctx));
	c = line_copy(dst, d, N, false);
	must(cuGraphAddMemcpyNode(&down, g, &up, 1, &c, gctx));
	c = line_copy(rows, d, W, false);
	c.Height = H;
	c.dstPitch = P;
	c.srcPitch = W;
	must(cuGraphAddMemcpyNode(&n, g, &up, 1, &c, gctx));
	must(cuGraphInstantiate(&x, g, 0));
	memset(rows, 0xee, P * H);
	must(cuGraphLaunch(x, NULL));
	must(cuStreamSynchronize(NULL));
	ok(!memcmp(src, dst, N), "5 MiB up and down");
	for (int y = 0; y < H; y++)
		bad += memcmp(rows + y * P, src + y * W, W) || rows[y * P + W] != 0xee;
	is_int(bad, 0, "rows come into their places, and nothing between them");
	c = line_copy(moved, d, N, true);
	is_cu(cuGraphExecMemcpyNodeSetParams(x, up, &c, gctx), CUDA_SUCCESS);
	must(cuGraphLaunch(x, NULL));
	must(cuStreamSynchronize(NULL));
	ok(!memcmp(moved, dst, N), "from other memory than before");
	c = line_copy(src, d, N, false);
	is_cu(cuGraphExecMemcpyNodeSetParams(x, down, &c, gctx), CUDA_SUCCESS);
	must(cuGraphLaunch(x, NULL));
	must(cuStreamSynchronize(NULL));
	ok(!memcmp(moved, src, N), "and to other memory");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuMemFree(d));
	free(src);
	free(dst);
	free(rows);
	free(moved);
}

static void see(void *at)
{
	uint32_t *v = at;

	v[1] = v[0];
}

/* A copy's host side moves between memory that kernels reach, too, and memory that they do not; but not to the device's. */
static void with_and_without_twin(void)
{
	enum { KINDS = 3 }; /* ordinary, mapped, registered */
	static uint32_t plain[3], own[3];
	uint32_t *mem[KINDS] = {plain, NULL, own}, *at;
	CUDA_MEMCPY3D up, down;
	CUgraphNode u, d, h;
	CUDA_HOST_NODE_PARAMS hp = {.fn = see};
	CUgraphExec x;
	CUdeviceptr p;
	int bad = 0;
	CUgraph g;

	must(cuMemHostAlloc((void **)&mem[1], 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostRegister(own, sizeof(own), CU_MEMHOSTREGISTER_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&p, own, 0));
	for (int from = 0; from < KINDS; from++)
		for (int to = 0; to < KINDS; to++) {
			uint32_t seed = 100u * from + 10u * to;

			/* Up from the one, later the other; down to a third place. */
			must(cuGraphCreate(&g, 0));
			up = line_copy(mem[from], gmem, 4, true);
			must(cuGraphAddMemcpyNode(&u, g, NULL, 0, &up, gctx));
			down = line_copy(mem[from] + 1, gmem, 4, false);
			must(cuGraphAddMemcpyNode(&d, g, &u, 1, &down, gctx));
			hp.userData = mem[to] + 1;
			must(cuGraphInstantiate(&x, g, 0));
			up = line_copy(mem[to], gmem, 4, true);
			down = line_copy(mem[to] + 1, gmem, 4, false);
			bad += cuGraphExecMemcpyNodeSetParams(x, u, &up, gctx) != CUDA_SUCCESS;
			bad += cuGraphExecMemcpyNodeSetParams(x, d, &down, gctx) != CUDA_SUCCESS;
			mem[from][0] = mem[from][1] = 1;
			mem[to][0] = seed + 5;
			mem[to][1] = 2;
			must(cuGraphLaunch(x, NULL));
			must(cuStreamSynchronize(NULL));
			at = mem[to];
			bad += at[0] != seed + 5 || at[1] != seed + 5 || (to != from && mem[from][1] != 1);
			must(cuGraphExecDestroy(x));

			/* A host function behind it finds the bytes where they come down now. */
			must(cuGraphAddHostNode(&h, g, &d, 1, &hp));
			must(cuGraphInstantiate(&x, g, 0));
			bad += cuGraphExecMemcpyNodeSetParams(x, d, &down, gctx) != CUDA_SUCCESS;
			mem[from][0] = seed + 7;
			mem[to][1] = mem[to][2] = 0;
			must(cuGraphLaunch(x, NULL));
			must(cuStreamSynchronize(NULL));
			bad += mem[to][1] != seed + 7 || mem[to][2] != seed + 7;
			must(cuGraphExecDestroy(x));
			must(cuGraphDestroy(g));
		}
	is_int(bad, 0, "from and to ordinary, mapped and registered memory, each changed to each");

	must(cuGraphCreate(&g, 0));
	up = line_copy(plain, gmem, 4, true);
	up.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	up.srcDevice = (CUdeviceptr)plain;
	must(cuGraphAddMemcpyNode(&u, g, NULL, 0, &up, gctx));
	must(cuGraphInstantiate(&x, g, 0));
	up.srcDevice = gmem + 64;
	is_cu(cuGraphExecMemcpyNodeSetParams(x, u, &up, gctx), CUDA_ERROR_INVALID_VALUE);
	plain[0] = 4711;
	plain[1] = 0;
	must(cuGraphLaunch(x, NULL));
	must(cuMemcpyDtoH(plain + 1, gmem, 4));
	is_int(plain[1], 4711, "what was refused changed nothing");
	up.srcDevice = (CUdeviceptr)mem[1];
	mem[1][0] = 4712;
	is_cu(cuGraphExecMemcpyNodeSetParams(x, u, &up, gctx), CUDA_SUCCESS);
	must(cuGraphLaunch(x, NULL));
	must(cuMemcpyDtoH(plain + 1, gmem, 4));
	is_int(plain[1], 4712, "mapped memory is the host's, whatever its address says");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuMemHostUnregister(own));
	must(cuMemFreeHost(mem[1]));
}

static void count(void *n)
{
	++*(int *)n;
}

static void write_late(void *at)
{
	usleep(20000); /* the launch has returned long since */
	*(uint32_t *)at = 4711;
}

/* What a function before it in its stream writes is there for a replay's copy. */
static void behind_function(void)
{
	static uint32_t in, out;
	CUDA_MEMCPY3D c;
	CUgraphNode n;
	CUgraphExec x;
	CUstream s;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	c = line_copy(&in, gmem, 4, true);
	must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, gctx));
	must(cuGraphInstantiate(&x, g, 0));
	in = 1;
	must(cuLaunchHostFunc(s, write_late, &in));
	must(cuGraphLaunch(x, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoH(&out, gmem, 4));
	is_int(out, 4711, "a replay behind a host function takes what that one wrote");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
}

/* Each launch calls what the node called when it was given, whatever was said since. */
static void changed_functions(void)
{
	enum { N = 300 };
	static int calls[N];
	CUDA_HOST_NODE_PARAMS p = {.fn = count};
	CUgraphNode n;
	CUgraphExec x;
	CUstream s;
	CUgraph g;
	int bad = 0;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	p.userData = &calls[0];
	must(cuGraphAddHostNode(&n, g, NULL, 0, &p));
	must(cuGraphInstantiate(&x, g, 0));
	for (int i = 0; i < N; i++) {
		p.userData = &calls[i];
		bad += cuGraphExecHostNodeSetParams(x, n, &p) || cuGraphLaunch(x, s);
		if (i % 50 == 49)
			bad += cuStreamSynchronize(s) != CUDA_SUCCESS;
	}
	for (int i = 0; i < N; i++)
		bad += calls[i] != 1;
	is_int(bad, 0, "a host node that is changed before each launch");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
}

/* Contexts that go while a graph's last launch was, or is, in them. */
static void contexts(void)
{
	enum { N = 5 << 20 };
	static uint32_t in[64], out[64];
	uint8_t *src = calloc(1, N);
	CUstream mine, theirs;
	CUDA_MEMCPY3D c;
	CUcontext other;
	CUgraphExec x;
	CUgraphNode n;
	CUdeviceptr d;
	CUgraph g;

	must(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	must(cuGraphCreate(&g, 0));
	c = line_copy(in, gmem, sizeof(in), true);
	must(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, gctx));
	c = line_copy(out, gmem, sizeof(out), false);
	must(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, gctx));
	must(cuGraphInstantiate(&x, g, 0));
	must(cuCtxCreate(&other, NULL, 0, 0));
	must(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
	in[5] = 1;
	is_cu(cuGraphLaunch(x, theirs), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(theirs), CUDA_SUCCESS);
	is_int(out[5], 1, "a launch in another context's stream");
	must(cuCtxDestroy(other));
	must(cuCtxSetCurrent(gctx));
	in[5] = 2;
	is_cu(cuGraphLaunch(x, mine), CUDA_SUCCESS);
	is_cu(cuStreamSynchronize(mine), CUDA_SUCCESS);
	is_int(out[5], 2, "after that one went, in a stream of its own");
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));

	must(cuCtxCreate(&other, NULL, 0, 0));
	must(cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&d, N));
	must(cuGraphCreate(&g, 0));
	c = line_copy(src, d, N, true);
	n = NULL;
	for (int i = 0; i < 20; i++)
		must(cuGraphAddMemcpyNode(&n, g, n ? &n : NULL, n ? 1 : 0, &c, other));
	must(cuGraphInstantiate(&x, g, 0));
	must(cuGraphLaunch(x, theirs));
	is_cu(cuCtxDestroy(other), CUDA_SUCCESS);
	must(cuCtxSetCurrent(gctx));
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS);
	must(cuGraphExecDestroy(x));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(mine));
	free(src);
}

int main(void)
{
	serve(NULL, 1);
	graph_cases(primary());
	param_cases();
	replays_cost_nothing();
	large_and_pitched();
	with_and_without_twin();
	behind_function();
	changed_functions();
	contexts();
	conditions(false);
	return tap_done();
}
