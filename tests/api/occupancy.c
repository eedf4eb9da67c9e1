// SPDX-License-Identifier: MIT
/* Occupancy: worked out by the client, or by the server's driver with what the program's function says of shared memory. */
#include <cuda_occupancy.h>
#include "lib/occupancy.h"
#include "tests/api/serve.h"

static size_t CUDA_CB quarter(int block)
{
	return (size_t)block * 100;
}

/* By hand, for a multiprocessor of compute capability 9.0. */
static void rules(void)
{
	struct occupancy_device d = {9, 1024, 2048, 32, 65536, 65536, 233472, 1024};
	struct occupancy_function f = {1024, 32, 0};

	is_int(occupancy_of(&d, &f, 256, 0), 8, "2048 threads in blocks of 256");
	is_int(occupancy_of(&d, &f, 32, 0), 32, "no more than 32 blocks");
	is_int(occupancy_of(&d, &f, 1025, 0), 0, "no block is larger than a block can be");
	is_int(occupancy_of(&d, &f, 256, 100 << 10), 2, "228 KiB hold two blocks of 101");
	f.regs = 80; /* 2560 a warp: 6 of them in a quarter of the registers */
	is_int(occupancy_of(&d, &f, 128, 0), 6, "24 warps by registers, not 25");
	f.regs = 255;
	is_int(occupancy_of(&d, &f, 128, 0), 2, "8 warps of the largest kind");
	is_int(occupancy_of(&d, &f, 512, 0), 0, "but no block of 16 of them");
	f.threads_block = 64;
	is_int(occupancy_of(&d, &f, 128, 0), 0, "the function's own bound");
}

static uint64_t always(void *arg, unsigned threads)
{
	(void)threads;
	return *(const uint64_t *)arg;
}

/* What the toolkit's header works out for these, which is for programs that want to know without a driver. */
static bool alike(const cudaOccDeviceProp *p, const struct occupancy_device *d, int regs, uint64_t fixed, uint64_t dynamic)
{
	const cudaOccFuncAttributes attributes = {.maxThreadsPerBlock = 1024,
						  .numRegs = regs,
						  .sharedSizeBytes = fixed,
						  .maxDynamicSharedSizeBytes = p->sharedMemPerBlock - fixed,
						  .numBlockBarriers = 1};
	const struct occupancy_function f = {1024, regs, fixed};
	const cudaOccDeviceState state = {.carveoutConfig = -1};
	int grid, block;
	unsigned fit;

	for (int threads = 1; threads <= 1024; threads += threads < 66 ? 1 : 31) {
		cudaOccResult r;

		if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, p, &attributes, &state, threads, dynamic) ||
		    r.activeBlocksPerMultiprocessor != (int)occupancy_of(d, &f, threads, dynamic))
			return false;
	}
	return !cudaOccMaxPotentialOccupancyBlockSize(&grid, &block, p, &attributes, &state, NULL, dynamic) &&
	       block == (int)occupancy_best(d, &f, 1024, always, &dynamic, &fit) && grid == (int)fit * p->numSms;
}

static void as_the_toolkit(void)
{
	static const struct {
		int major, minor, threads, blocks, shared, most, reserved;
	} devices[] = {
		{7, 0, 2048, 32, 98304, 98304, 0},	 {7, 5, 1024, 16, 65536, 65536, 0},
		{8, 0, 2048, 32, 167936, 166912, 1024},	 {8, 6, 1536, 16, 102400, 101376, 1024},
		{8, 9, 1536, 24, 102400, 101376, 1024},	 {9, 0, 2048, 32, 233472, 232448, 1024},
		{10, 0, 2048, 32, 233472, 232448, 1024}, {12, 0, 1536, 24, 102400, 101376, 1024},
	};
	static const uint64_t shared[][2] = {{0, 0}, {1, 0}, {0, 1024}, {4096, 1}, {16384, 10000}, {20000, 20000}, {49152, 0}};

	for (unsigned i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		const cudaOccDeviceProp p = {.computeMajor = devices[i].major,
					     .computeMinor = devices[i].minor,
					     .maxThreadsPerBlock = 1024,
					     .maxThreadsPerMultiprocessor = devices[i].threads,
					     .regsPerBlock = 65536,
					     .regsPerMultiprocessor = 65536,
					     .warpSize = 32,
					     .sharedMemPerBlock = 49152,
					     .sharedMemPerMultiprocessor = devices[i].shared,
					     .numSms = 7,
					     .sharedMemPerBlockOptin = devices[i].most,
					     .reservedSharedMemPerBlock = devices[i].reserved};
		const struct occupancy_device d = {
			devices[i].major,   1024, devices[i].threads, devices[i].blocks, 65536, 65536, devices[i].shared,
			devices[i].reserved};
		unsigned differ = 0;

		for (int regs = 1; regs < 256; regs++)
			for (unsigned n = 0; n < sizeof(shared) / sizeof(*shared); n++)
				differ += !alike(&p, &d, regs, shared[n][0], shared[n][1]);
		is_int(differ, 0, "compute capability %d.%d: what cuda_occupancy.h has", devices[i].major, devices[i].minor);
	}
}

/* The devices here: 1536 threads, 24 blocks, 100 KiB. */
static void local(CUfunction f)
{
	static const struct {
		int threads;
		size_t shared;
		int want;
	} cases[] = {{128, 0, 12}, {32, 0, 24}, {1024, 0, 1}, {1000, 0, 1}, {128, 40 << 10, 2}, {64, 48 << 10, 2}, {1025, 0, 0}};
	int blocks, grid, block, units;
	long before;

	must(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	before = rgpuRoundTrips(NULL);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, cases[i].threads, cases[i].shared));
		is_int(blocks, cases[i].want, "blocks of %d threads and %zu bytes", cases[i].threads, cases[i].shared);
	}
	must(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	ok(block == 768 && grid == 2 * units, "two blocks of 768 fill a multiprocessor: %d of %d", grid, block);
	is_int(rgpuRoundTrips(NULL), before, "no round trip for any of it");
	/* Where only the driver knows: more than a block has without asking, a wish for how the memory is shared out. */
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 60 << 10));
	is_int(blocks, 1, "the driver says what fits of 60 KiB");
	is_int(rgpuRoundTrips(NULL), before + 1, "asked once");
	must(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
	is_int(rgpuRoundTrips(NULL), before + 2, "asked with a carveout");
	must(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
}

/* How many clusters run at once, and how large they may be. */
static void clusters(CUfunction f)
{
	CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}};
	CUlaunchConfig c = {.gridDimX = 64,
			    .gridDimY = 1,
			    .gridDimZ = 1,
			    .blockDimX = 128,
			    .blockDimY = 1,
			    .blockDimZ = 1,
			    .attrs = &a,
			    .numAttrs = 1};
	int four = 0, two = 0, most = 0, units, ways;

	must(cuDeviceGetAttribute(&ways, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0));
	must(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	is_int(ways, 1, "the device has clusters");
	is_cu(cuOccupancyMaxActiveClusters(&four, f, &c), CUDA_SUCCESS);
	a.value.clusterDim.x = 2;
	is_cu(cuOccupancyMaxActiveClusters(&two, f, &c), CUDA_SUCCESS);
	ok(four > 0 && two >= 2 * four && two <= 12 * units / 2, "%d clusters of four blocks, %d of two", four, two);
	is_cu(cuOccupancyMaxPotentialClusterSize(&most, f, &c), CUDA_SUCCESS);
	ok(most == 8, "a cluster of %d blocks may be launched anywhere", most);
	is_cu(cuOccupancyMaxActiveClusters(NULL, f, &c), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyMaxPotentialClusterSize(&most, f, NULL), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyMaxActiveClusters(&two, (CUfunction)&two, &c), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
	int grid = 0, block = 0, blocks = 0, limited = 0;
	size_t bytes = 0;
	CUfunction f;
	CUmodule m;

	serve(NULL, 1);
	primary();
	must(cuModuleLoadData(&m, ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n	ret;\n}\n"));
	must(cuModuleGetFunction(&f, m, "k"));
	rules();
	as_the_toolkit();
	local(f);
	clusters(f);
	is_cu(cuOccupancyMaxPotentialBlockSize(NULL, &block, f, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0), CUDA_SUCCESS);
	ok(grid > 0 && block > 0 && block <= 1024 && block % 32 == 0, "%d blocks of %d threads", grid, block);
	is_cu(cuOccupancyMaxPotentialBlockSize(&grid, &limited, f, NULL, 0, 96), CUDA_SUCCESS);
	ok(limited > 0 && limited <= 96, "within a limit: %d", limited);
	is_cu(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &limited, f, quarter, 0, 0, CU_OCCUPANCY_DEFAULT), CUDA_SUCCESS);
	is_cu(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, limited, quarter(limited)), CUDA_SUCCESS);
	ok(blocks > 0 && limited % 32 == 0, "with memory by the thread: %d threads, of which %d blocks fit", limited, blocks);
	is_cu(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 0, 8), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128), CUDA_SUCCESS);
	is_int(bytes, 50176, "bytes for each of two blocks: 100 KiB, of which each keeps one back");
	is_cu(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 0, 128), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, (CUfunction)&bytes, 2, 128), CUDA_ERROR_INVALID_HANDLE);
	must(cuModuleUnload(m));
	return tap_done();
}
