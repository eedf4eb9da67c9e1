// SPDX-License-Identifier: MIT
/* Memory that is allocated and freed in stream order: the values come out right though nobody waits in between. */
#include <cuda_runtime_api.h>
#include "tests/e2e/e2e.h"

static __global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

/* Each round's memory is the last round's, while that still runs. */
static void rounds(cudaMemPool_t pool)
{
	enum { N = 3000, ROUNDS = 20 };
	static float a[N], b[N], c[ROUNDS][N];
	unsigned long long reserved = 0, used = 1, threshold = ~0ull;
	cudaStream_t s;

	for (int i = 0; i < N; i++)
		a[i] = i, b[i] = 2 * i;
	RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	RT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	for (int r = 0; r < ROUNDS; r++) {
		float *da, *db, *dc;

		a[0] = r;
		RT(cudaMallocAsync(&da, sizeof(a), s));
		RT(cudaMallocAsync(&db, sizeof(a), s));
		RT(cudaMallocAsync(&dc, sizeof(a), s));
		RT(cudaMemcpyAsync(da, a, sizeof(a), cudaMemcpyHostToDevice, s));
		RT(cudaMemcpyAsync(db, b, sizeof(a), cudaMemcpyHostToDevice, s));
		add<<<(N + 255) / 256, 256, 0, s>>>(da, db, dc, N);
		RT(cudaGetLastError());
		RT(cudaFreeAsync(da, s));
		RT(cudaFreeAsync(db, s));
		RT(cudaMemcpyAsync(c[r], dc, sizeof(a), cudaMemcpyDeviceToHost, s));
		RT(cudaFreeAsync(dc, s));
	}
	RT(cudaStreamSynchronize(s));
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < N; i++)
			if (c[r][i] != (i ? 3.0f * i : r))
				die("round %d, element %d: %g", r, i, c[r][i]);
	RT(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	RT(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	if (used || reserved < sizeof(a) * 3)
		die("%llu bytes are used and %llu reserved", used, reserved);
	RT(cudaStreamDestroy(s));
}

/* Device 1 works on memory of a pool of device 0. */
static void peer(void)
{
	struct cudaMemPoolProps props = {};
	struct cudaMemAccessDesc access = {};
	float out[256], *p, *q;
	int devices, can;
	cudaMemPool_t pool;
	cudaStream_t s;
	cudaEvent_t e;

	RT(cudaGetDeviceCount(&devices));
	if (devices < 2)
		return;
	RT(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		return;
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	RT(cudaMemPoolCreate(&pool, &props));
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = 1;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	RT(cudaMemPoolSetAccess(pool, &access, 1));
	RT(cudaMallocFromPoolAsync(&p, sizeof(out), pool, 0));
	RT(cudaMemsetAsync(p, 0, sizeof(out), 0));
	RT(cudaEventCreate(&e));
	RT(cudaEventRecord(e, 0));
	RT(cudaSetDevice(1));
	RT(cudaStreamCreate(&s));
	RT(cudaStreamWaitEvent(s, e, 0));
	RT(cudaMallocAsync(&q, sizeof(out), s));
	RT(cudaMemsetAsync(q, 0, sizeof(out), s));
	add<<<1, 256, 0, s>>>(p, q, p, 256);
	RT(cudaMemcpyAsync(out, p, sizeof(out), cudaMemcpyDefault, s));
	RT(cudaFreeAsync(q, s));
	RT(cudaFreeAsync(p, s));
	RT(cudaStreamSynchronize(s));
	for (int i = 0; i < 256; i++)
		if (out[i] != 0)
			die("the other device's element %d is %g", i, out[i]);
	RT(cudaMemPoolDestroy(pool));
	RT(cudaStreamDestroy(s));
	RT(cudaSetDevice(0));
}

int main(void)
{
	cudaMemPool_t pool;
	int yes = 0;

	RT(cudaDeviceGetAttribute(&yes, cudaDevAttrMemoryPoolsSupported, 0));
	if (!yes)
		die("the device has no memory pools");
	RT(cudaDeviceGetDefaultMemPool(&pool, 0));
	rounds(pool);
	peer();
	RT(cudaDeviceSynchronize());
	puts("ordered: ok");
	return 0;
}
