// SPDX-License-Identifier: MIT
// Kernels of ptx_cluster.c: clusters, distributed shared memory, mbarriers of other blocks.
#include <cooperative_groups.h>
#include <cuda/std/cstdint>

namespace cg = cooperative_groups;

extern "C" __global__ void registers(int *out)
{
	cg::cluster_group c = cg::this_cluster();
	unsigned flat = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	int *o = out + flat * 16, v[3];

	o[0] = (int)c.block_rank();
	o[1] = (int)c.num_blocks();
	o[2] = (int)c.block_index().x;
	o[3] = (int)c.block_index().y;
	o[4] = (int)c.block_index().z;
	o[5] = (int)c.dim_blocks().x;
	o[6] = (int)c.dim_blocks().y;
	o[7] = (int)c.dim_blocks().z;
	asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%clusterid.y; mov.u32 %2, %%clusterid.z;" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]));
	o[8] = v[0];
	o[9] = v[1];
	o[10] = v[2];
	asm("mov.u32 %0, %%nclusterid.x; mov.u32 %1, %%nclusterid.y; mov.u32 %2, %%nclusterid.z;" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]));
	o[11] = v[0];
	o[12] = v[1];
	o[13] = v[2];
	asm("{.reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p;}" : "=r"(v[0]));
	o[14] = v[0];
}

extern "C" __global__ void __cluster_dims__(2, 2, 1) fixed_shape(int *out)
{
	out[blockIdx.y * gridDim.x + blockIdx.x] = (int)cg::this_cluster().block_rank();
}

// Each block sums what all others hold, through generic addresses, three times.
extern "C" __global__ void exchange(int *out)
{
	__shared__ int mine[64];
	cg::cluster_group c = cg::this_cluster();
	int sum = 0;

	for (int round = 0; round < 3; round++) {
		mine[threadIdx.x] = (int)(blockIdx.x * 1000 + threadIdx.x) + round;
		c.sync();
		for (unsigned r = 0; r < c.num_blocks(); r++) {
			int *p = c.map_shared_rank(mine, r);

			sum += p[threadIdx.x ^ 1];
			if (c.query_shared_rank(p) != r)
				sum = -1000000;
		}
		c.sync();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// A histogram spread over the cluster: remote atomics.
extern "C" __global__ void histogram(int *out, const int *in, int n)
{
	__shared__ int bin[16];
	cg::cluster_group c = cg::this_cluster();

	if (threadIdx.x < 16)
		bin[threadIdx.x] = 0;
	c.sync();
	for (int i = (int)(c.block_rank() * blockDim.x + threadIdx.x); i < n; i += (int)(c.num_blocks() * blockDim.x))
		atomicAdd(c.map_shared_rank(bin, in[i] / 16) + in[i] % 16, 1);
	c.sync();
	if (threadIdx.x < 16)
		out[c.block_rank() * 16 + threadIdx.x] = bin[threadIdx.x];
}

// Half of the threads leave before the barrier, some between arriving and waiting.
extern "C" __global__ void leavers(int *out)
{
	__shared__ int flag;

	if (threadIdx.x == 0)
		flag = (int)blockIdx.x + 1;
	if (threadIdx.x >= 40)
		return;
	asm volatile("barrier.cluster.arrive.release;" ::: "memory");
	if (threadIdx.x >= 20 && blockIdx.x == 0)
		return;
	asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
	int other = *cg::this_cluster().map_shared_rank(&flag, cg::this_cluster().block_rank() ^ 1);
	if (threadIdx.x == 0)
		out[blockIdx.x] = other;
	asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void stuck(int *out)
{
	if (blockIdx.x == 0)
		asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
	else
		asm volatile("bar.sync 1, 96;" ::: "memory");
	out[0] = 1;
}

// Whose memory an address in shared memory is of: the next block's, and the own.
extern "C" __global__ void whose(int *out)
{
	__shared__ int word;
	cg::cluster_group c = cg::this_cluster();
	unsigned at = (unsigned)__cvta_generic_to_shared(&word), next, rank;

	asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(next) : "r"(at), "r"((c.block_rank() + 1) % c.num_blocks()));
	asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(next));
	out[2 * blockIdx.x] = rank;
	asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(at));
	out[2 * blockIdx.x + 1] = rank;
}

// Rank 0 waits for words that the others send with st.async and red.async.
extern "C" __global__ void sends(int *out)
{
	__shared__ alignas(8) uint64_t bar;
	__shared__ alignas(16) int box[32];
	cg::cluster_group c = cg::this_cluster();
	unsigned rank = c.block_rank(), n = c.num_blocks(), b = (unsigned)__cvta_generic_to_shared(&bar);
	unsigned at = (unsigned)__cvta_generic_to_shared(box), rb, rat;

	if (threadIdx.x == 0)
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(b) : "memory");
	box[threadIdx.x] = 0;
	c.sync();
	asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(rb) : "r"(b));
	asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(rat) : "r"(at));
	if (threadIdx.x == 0 && rank) {
		asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, [%2];" ::"r"(
				     rat + 16 * rank),
			     "r"(rank * 10), "r"(rb)
			     : "memory");
		asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(rat),
			     "r"(rank), "r"(rb)
			     : "memory");
	}
	if (rank == 0) {
		unsigned done = 0;

		if (threadIdx.x == 0)
			asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(20 * (n - 1))
				     : "memory");
		while (!done)
			asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0, 1000; "
				     "selp.u32 %0, 1, 0, p;}"
				     : "=r"(done)
				     : "r"(b)
				     : "memory");
		out[threadIdx.x] = box[threadIdx.x];
	}
	c.sync();
}

// All blocks arrive at rank 0's mbarrier with a count.
extern "C" __global__ void remote_arrive(int *out)
{
	__shared__ alignas(8) uint64_t bar;
	cg::cluster_group c = cg::this_cluster();
	unsigned b = (unsigned)__cvta_generic_to_shared(&bar), rb, done = 0;

	if (threadIdx.x == 0 && c.block_rank() == 0)
		asm volatile("mbarrier.init.shared.b64 [%0], %1; fence.mbarrier_init.release.cluster;" ::"r"(b), "r"(2 * c.num_blocks()) : "memory");
	c.sync();
	asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(rb) : "r"(b));
	if (threadIdx.x == 0)
		asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 2;" ::"r"(rb) : "memory");
	if (c.block_rank() == 0) {
		while (!done)
			asm volatile("{.reg .pred p; mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0; "
				     "selp.u32 %0, 1, 0, p;}"
				     : "=r"(done)
				     : "r"(b)
				     : "memory");
		if (threadIdx.x == 0)
			out[0] = 7;
	}
	c.sync();
}

// isspacep of own and other blocks' memory.
extern "C" __global__ void spaces(int *out)
{
	__shared__ int x;
	cg::cluster_group c = cg::this_cluster();
	unsigned own = 0, cluster = 0;
	const void *p[3] = {&x, c.map_shared_rank(&x, c.block_rank()), c.map_shared_rank(&x, c.block_rank() ^ 1)};

	for (int k = 0; k < 3; k++) {
		unsigned a, b;

		asm("{.reg .pred p; isspacep.shared::cta p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(a) : "l"(p[k]));
		asm("{.reg .pred p; isspacep.shared::cluster p, %1; selp.u32 %0, 1, 0, p;}" : "=r"(b) : "l"(p[k]));
		own |= a << k;
		cluster |= b << k;
	}
	out[blockIdx.x * 2] = (int)own;
	out[blockIdx.x * 2 + 1] = (int)cluster;
	c.sync();
}
