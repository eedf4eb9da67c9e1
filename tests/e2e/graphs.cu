// SPDX-License-Identifier: MIT
/* A captured graph with two branches, and one put together by hand around a host function; replayed, updated and cloned. */
#include <cuda_runtime.h>
#include "tests/e2e/e2e.h"

#define N 1024

__global__ void scale(int *x, int n, int a, int b)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] = x[i] * a + b;
}

__global__ void add(int *out, const int *x, const int *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = x[i] + y[i];
}

static int in[N], out[N], seen[N];
static long total;

static void CUDART_CB look(void *arg)
{
	(void)arg;
	for (int i = 0; i < N; i++)
		total += seen[i];
	/* For the copy up behind it. */
	in[0] = seen[0] + 1;
}

/* in → (x = 2·in, y = 3·in + k) → out = x + y, the branches in two streams. */
static cudaGraph_t capture(cudaStream_t s, cudaStream_t t, int *x, int *y, int *z, int k)
{
	cudaStreamCaptureStatus status;
	cudaEvent_t fork, join;
	cudaGraph_t g;

	RT(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	RT(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	RT(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	RT(cudaMemcpyAsync(x, in, sizeof(in), cudaMemcpyHostToDevice, s));
	RT(cudaEventRecord(fork, s));
	RT(cudaStreamWaitEvent(t, fork, 0));
	RT(cudaMemcpyAsync(y, x, sizeof(in), cudaMemcpyDeviceToDevice, t));
	scale<<<N / 128, 128, 0, t>>>(y, N, 3, k);
	RT(cudaEventRecord(join, t));
	RT(cudaMemsetAsync(z, 0, sizeof(in), s));
	RT(cudaStreamWaitEvent(s, join, 0));
	scale<<<N / 128, 128, 0, s>>>(x, N, 2, 0);
	add<<<N / 128, 128, 0, s>>>(z, x, y, N);
	RT(cudaMemcpyAsync(out, z, sizeof(out), cudaMemcpyDeviceToHost, s));
	RT(cudaStreamIsCapturing(t, &status));
	if (status != cudaStreamCaptureStatusActive)
		die("capture did not spread");
	RT(cudaStreamEndCapture(s, &g));
	RT(cudaEventDestroy(fork));
	RT(cudaEventDestroy(join));
	return g;
}

static void check(int k, int add)
{
	for (int i = 0; i < N; i++)
		if (out[i] != 5 * in[i] + k + add)
			die("out[%d] is %d, want %d", i, out[i], 5 * in[i] + k + add);
}

static void captured(cudaStream_t s, cudaStream_t t, int *x, int *y, int *z)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraph_t g = capture(s, t, x, y, z, 7), h = capture(s, t, x, y, z, 11), c;
	cudaGraphExec_t e, f;
	size_t n = 0;

	RT(cudaGraphGetNodes(g, NULL, &n));
	if (n != 7)
		die("%zu nodes", n);
	RT(cudaGraphInstantiate(&e, g, 0));
	for (int i = 0; i < 100; i++) {
		in[i] = i * i;
		in[N - 1 - i] = -i;
		RT(cudaGraphLaunch(e, s));
		RT(cudaStreamSynchronize(s));
		check(7, 0);
	}
	RT(cudaGraphExecUpdate(e, h, &info));
	RT(cudaGraphLaunch(e, t));
	RT(cudaStreamSynchronize(t));
	check(11, 0);
	RT(cudaGraphClone(&c, g));
	RT(cudaGraphDestroy(g));
	RT(cudaGraphInstantiate(&f, c, 0));
	RT(cudaGraphLaunch(f, s));
	RT(cudaStreamSynchronize(s));
	check(7, 0);
	RT(cudaGraphExecDestroy(e));
	RT(cudaGraphExecDestroy(f));
	RT(cudaGraphDestroy(h));
	RT(cudaGraphDestroy(c));
}

/* up → kernel → down → host function → up → kernel → down */
static void by_hand(cudaStream_t s, int *x)
{
	int n = N, a = 2, b = 1;
	void *args[] = {&x, &n, &a, &b};
	cudaKernelNodeParams k = {}, got;
	cudaHostNodeParams h = {look, NULL};
	cudaGraphNode_t node, kernel;
	cudaGraphExec_t e;
	cudaGraph_t g;
	long want = 0;

	k.func = (void *)scale;
	k.gridDim = dim3(N / 128);
	k.blockDim = dim3(128);
	k.kernelParams = args;
	RT(cudaGraphCreate(&g, 0));
	RT(cudaGraphAddMemcpyNode1D(&node, g, NULL, 0, x, in, sizeof(in), cudaMemcpyHostToDevice));
	RT(cudaGraphAddKernelNode(&kernel, g, &node, 1, &k));
	RT(cudaGraphAddMemcpyNode1D(&node, g, &kernel, 1, seen, x, sizeof(seen), cudaMemcpyDeviceToHost));
	RT(cudaGraphAddHostNode(&node, g, &node, 1, &h));
	RT(cudaGraphAddMemcpyNode1D(&node, g, &node, 1, x, in, sizeof(int), cudaMemcpyHostToDevice));
	RT(cudaGraphAddKernelNode(&node, g, &node, 1, &k));
	RT(cudaGraphAddMemcpyNode1D(&node, g, &node, 1, out, x, sizeof(out), cudaMemcpyDeviceToHost));
	RT(cudaGraphKernelNodeGetParams(kernel, &got));
	if (got.func != k.func || got.gridDim.x != N / 128 || *(int *)got.kernelParams[2] != 2)
		die("a kernel node's parameters are not what was given");
	RT(cudaGraphInstantiate(&e, g, 0));
	for (int r = 0; r < 10; r++) {
		for (int i = 0; i < N; i++) {
			in[i] = i + r;
			want += in[i] * 2 + 1;
		}
		RT(cudaGraphLaunch(e, s));
		RT(cudaStreamSynchronize(s));
		if (total != want)
			die("the host function saw %ld, want %ld", total, want);
		if (seen[0] != r * 2 + 1 || out[0] != (seen[0] + 1) * 2 + 1 || out[9] != (2 * (9 + r) + 1) * 2 + 1)
			die("round %d: %d %d %d", r, seen[0], out[0], out[9]);
	}
	RT(cudaGraphExecDestroy(e));
	RT(cudaGraphDestroy(g));
}

int main(void)
{
	cudaStream_t s, t;
	int *x, *y, *z;

	RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	RT(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	RT(cudaMalloc(&x, sizeof(in)));
	RT(cudaMalloc(&y, sizeof(in)));
	RT(cudaMalloc(&z, sizeof(in)));
	captured(s, t, x, y, z);
	by_hand(s, x);
	printf("ok: 100 replays of a captured graph, 10 around a host function\n");
	return 0;
}
