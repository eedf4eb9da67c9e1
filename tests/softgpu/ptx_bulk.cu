// SPDX-License-Identifier: MIT
// Kernels of ptx_bulk.c: bulk copies and reductions, tensor copies. One warp a block; lane 0 copies.
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;
#define K extern "C" __global__ void

struct alignas(64) Map {
	char opaque[128];
};

static __device__ unsigned smem(const void *p)
{
	return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ void bar_init(uint64_t *bar, unsigned count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" ::"r"(smem(bar)), "r"(count) : "memory");
}

static __device__ void expect(uint64_t *bar, unsigned bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem(bar)), "r"(bytes) : "memory");
}

static __device__ void wait(uint64_t *bar, unsigned parity)
{
	asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}" ::"r"(smem(bar)), "r"(parity) : "memory");
}

#define COMMIT() asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;" ::: "memory")

// global → shared → global, a part of it
K plain(int *to, const int *from, unsigned bytes)
{
	__shared__ alignas(128) int box[1024];
	__shared__ uint64_t bar;

	if (threadIdx.x == 0) {
		bar_init(&bar, 1);
		expect(&bar, bytes);
		asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(smem(box)), "l"(from), "r"(bytes),
			     "r"(smem(&bar))
			     : "memory");
		wait(&bar, 0);
		box[1]++;
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(smem(box)), "r"(bytes) : "memory");
		COMMIT();
	}
}

// Rank 0 sends a line to all; then each sends its own to the next rank's second line.
K spread(int *out, const int *from)
{
	__shared__ alignas(128) int box[64];
	__shared__ uint64_t bar;
	cg::cluster_group c = cg::this_cluster();
	unsigned rank = c.block_rank(), n = c.num_blocks(), to, there;

	if (threadIdx.x == 0) {
		bar_init(&bar, 1);
		expect(&bar, 256);
	}
	c.sync();
	if (threadIdx.x == 0 && rank == 0)
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 128, [%2], %3;" ::"r"(smem(box)),
			     "l"(from), "r"(smem(&bar)), "h"((uint16_t)((1u << n) - 1))
			     : "memory");
	c.sync();
	if (threadIdx.x == 0) {
		box[0] += (int)rank;
		asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(smem(box + 32)), "r"((rank + 1) % n));
		asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(smem(&bar)), "r"((rank + 1) % n));
		asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(to), "r"(smem(box)), "r"(there)
			     : "memory");
	}
	wait(&bar, 0);
	for (unsigned k = threadIdx.x; k < 64; k += 32)
		out[blockIdx.x * 64 + k] = box[k];
	c.sync();
}

// cp.reduce in the operations and types: 16 bytes each, from `from` onto `to`
#define RED(n, what)                                                                                                   \
	asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." what " [%0], [%1], 16;" ::"l"(to + 16 * n), \
		     "r"(smem(box + 16 * n))                                                                           \
		     : "memory")
K reduce(char *to, const char *from)
{
	__shared__ alignas(128) char box[1024];

	for (unsigned k = threadIdx.x; k < 1024; k += 32)
		box[k] = from[k];
	__syncwarp();
	if (threadIdx.x == 0) {
		RED(0, "add.u32");
		RED(1, "add.s32");
		RED(2, "add.u64");
		RED(3, "add.f32");
		RED(4, "add.f64");
		RED(5, "add.noftz.f16");
		RED(6, "add.noftz.bf16");
		RED(7, "min.u32");
		RED(8, "max.s32");
		RED(9, "min.s64");
		RED(10, "max.u64");
		RED(11, "min.f16");
		RED(12, "max.bf16");
		RED(13, "inc.u32");
		RED(14, "dec.u32");
		RED(15, "and.b32");
		RED(16, "or.b64");
		RED(17, "xor.b32");
		COMMIT();
	}
}

// A box at the coordinates, out as it lies in shared memory; stored again at the second coordinates.
#define TENSOR(D, COORDS, ...)                                                                                                                        \
	K tensor##D(char *out, unsigned bytes, const __grid_constant__ Map map, int4 c, int c4, int4 to, int to4)                                     \
	{                                                                                                                                             \
		extern __shared__ __align__(1024) char box[];                                                                                         \
		__shared__ uint64_t bar;                                                                                                              \
		if (threadIdx.x == 0) {                                                                                                               \
			bar_init(&bar, 1);                                                                                                            \
			expect(&bar, bytes);                                                                                                          \
			asm volatile("cp.async.bulk.tensor." #D "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" COORDS      \
				     "}], [%2];" ::"r"(smem(box)),                                                                                    \
				     "l"(&map), "r"(smem(&bar)), "r"(c.x), "r"(c.y), "r"(c.z), "r"(c.w), "r"(c4)                                      \
				     : "memory");                                                                                                     \
			wait(&bar, 0);                                                                                                                \
			for (unsigned k = 0; k < bytes; k++)                                                                                          \
				out[k] = box[k];                                                                                                      \
			if (to4 != -1000)                                                                                                             \
				asm volatile("cp.async.bulk.tensor." #D "d.global.shared::cta.tile.bulk_group [%1, {" COORDS "}], [%0];" ::"r"(       \
						     smem(box)),                                                                                      \
					     "l"(&map), "r"(0), "r"(to.x), "r"(to.y), "r"(to.z), "r"(to.w), "r"(to4)                                  \
					     : "memory");                                                                                             \
			COMMIT();                                                                                                                     \
		}                                                                                                                                     \
	}
TENSOR(1, "%3")
TENSOR(2, "%3, %4")
TENSOR(3, "%3, %4, %5")
TENSOR(4, "%3, %4, %5, %6")
TENSOR(5, "%3, %4, %5, %6, %7")

// A map of one's own, made from another: its address and its box replaced; then adds a box of ones there.
K replaced(Map *own, const __grid_constant__ Map map, float *base, int x, int y)
{
	__shared__ alignas(128) float box[64];
	__shared__ alignas(128) Map copy;

	for (unsigned k = threadIdx.x; k < 128; k += 32)
		copy.opaque[k] = map.opaque[k];
	for (unsigned k = threadIdx.x; k < 64; k += 32)
		box[k] = 1;
	__syncwarp();
	if (threadIdx.x == 0) {
		asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(smem(&copy)), "l"(base) : "memory");
		asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(smem(&copy)), "r"(8) : "memory");
		asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(smem(&copy)), "r"(6) : "memory");
		asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(smem(&copy)) : "memory");
	}
	__syncwarp();
	asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(own), "r"(smem(&copy)) : "memory");
	if (threadIdx.x == 0) {
		asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(own) : "memory");
		asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(own), "r"(x), "r"(y), "r"(smem(box))
			     : "memory");
		COMMIT();
	}
}

// cp.async with its three ways to leave bytes out: all, some, none of the 16
K ignore(int *out, const int *in)
{
	__shared__ alignas(16) int box[12];

	for (int k = 0; k < 12; k++)
		box[k] = -1;
	asm volatile("{.reg .pred p, q; setp.eq.u32 p, 0, 0; setp.ne.u32 q, 0, 0;\n"
		     "cp.async.cg.shared.global [%0], [%1], 16, p; cp.async.cg.shared.global [%0+16], [%1], 16, q;\n"
		     "cp.async.ca.shared::cta.global.L2::128B [%0+32], [%1], 16, 4; cp.async.wait_all;}" ::"r"(smem(box)),
		     "l"(in)
		     : "memory");
	for (int k = 0; k < 12; k++)
		out[k] = box[k];
}
