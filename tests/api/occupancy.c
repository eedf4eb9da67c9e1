// SPDX-License-Identifier: MIT
/* Occupancy that the server's driver works out, with what the program's function says of shared memory. */
#include "tests/api/serve.h"

static size_t CUDA_CB quarter(int block)
{
	return (size_t)block * 100;
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
	ok(bytes > 0 && bytes < 1 << 20, "%zu bytes for each of two blocks", bytes);
	is_cu(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 0, 128), CUDA_ERROR_INVALID_VALUE);
	is_cu(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, (CUfunction)&bytes, 2, 128), CUDA_ERROR_INVALID_HANDLE);
	must(cuModuleUnload(m));
	return tap_done();
}
