// SPDX-License-Identifier: MIT
/* Occupancy: how many blocks fit on a multiprocessor of the compute capability that softgpu stands for. */
#include "softgpu/softgpu.h"

#include <string.h>
#include "lib/occupancy.h"

#define SMEM_UNIT 128u /* shared memory is given to blocks in these */

static const struct occupancy_device device = {
	.major = SOFTGPU_CC_MAJOR,
	.threads_block = THREADS_BLOCK,
	.threads_sm = THREADS_SM,
	.blocks_sm = BLOCKS_SM,
	.regs_block = REGS_SM,
	.regs_sm = REGS_SM,
	.shared_sm = SMEM_SM,
	.shared_reserved = SMEM_RESERVED,
};

static unsigned int min(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static struct occupancy_function needs(const struct function *f)
{
	return (struct occupancy_function){
		.threads_block = f->info->max_threads, .regs = f->info->regs, .shared = (unsigned int)f->info->shared_bytes};
}

unsigned int occupancy_blocks(const struct function *f, unsigned int threads, size_t dyn_shared)
{
	struct occupancy_function o = needs(f);

	return o.shared + dyn_shared > SMEM_BLOCK_OPTIN ? 0 : occupancy_of(&device, &o, threads, dyn_shared);
}

static CUresult enter(CUfunction handle, struct ctx **c, struct function **f)
{
	*f = NULL;
	TRY(ctx_enter(c));
	return function_resolve(handle, *c, f);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func, int threads, size_t dyn_shared,
							      unsigned int flags)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;

	TRY(enter(func, &c, &f));
	if (!blocks || threads <= 0 || flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = (int)occupancy_blocks(f, (unsigned int)threads, dyn_shared);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int threads, size_t dyn_shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, threads, dyn_shared, 0);
}

struct size_question {
	CUoccupancyB2DSize of_block;
	size_t dyn_shared;
};

static uint64_t shared_of(void *arg, unsigned int threads)
{
	const struct size_question *q = arg;
	size_t bytes = q->of_block ? q->of_block((int)threads) : q->dyn_shared;

	return bytes > SMEM_BLOCK_OPTIN ? SMEM_SM : bytes;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block, CUfunction func, CUoccupancyB2DSize of_block,
						   size_t dyn_shared, int limit, unsigned int flags)
{
	struct size_question q = {of_block, dyn_shared};
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;
	struct occupancy_function o;
	unsigned int fit;
	int most;

	TRY(enter(func, &c, &f));
	if (!min_grid || !block || limit < 0 || flags & ~CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_attribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	if (limit && limit < most)
		most = limit;
	o = needs(f);
	*block = (int)occupancy_best(&device, &o, (unsigned int)most, shared_of, &q, &fit);
	*min_grid = (int)(fit * c->dev->threads);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block, CUfunction func, CUoccupancyB2DSize of_block,
					  size_t dyn_shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block, func, of_block, dyn_shared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction func, int blocks, int threads)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;
	size_t share;

	TRY(enter(func, &c, &f));
	if (!bytes || blocks <= 0 || threads <= 0 || threads > (int)THREADS_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned int)blocks > occupancy_blocks(f, (unsigned int)threads, 0))
		return CUDA_ERROR_INVALID_VALUE;
	share = SMEM_SM / (unsigned int)blocks / SMEM_UNIT * SMEM_UNIT - SMEM_RESERVED;
	if (share > SMEM_BLOCK_OPTIN)
		share = SMEM_BLOCK_OPTIN;
	*bytes = share - f->info->shared_bytes;
	return CUDA_SUCCESS;
}

/* The shape that a configuration asks for, 0 when it asks for none. */
static CUresult asked_cluster(const CUlaunchConfig *config, uint32_t shape[3])
{
	memset(shape, 0, 3 * sizeof(*shape));
	if (config->numAttrs && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &config->attrs[i].value;

		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		if (!v->clusterDim.x || !v->clusterDim.y || !v->clusterDim.z)
			return CUDA_ERROR_INVALID_VALUE;
		shape[0] = v->clusterDim.x;
		shape[1] = v->clusterDim.y;
		shape[2] = v->clusterDim.z;
	}
	return CUDA_SUCCESS;
}

static CUresult config_blocks(const struct function *f, const CUlaunchConfig *c, unsigned int *blocks)
{
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY;

	if (!threads || threads > THREADS_BLOCK || !c->blockDimZ || threads * c->blockDimZ > THREADS_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = occupancy_blocks(f, (unsigned int)(threads * c->blockDimZ), c->sharedMemBytes);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction func, const CUlaunchConfig *config)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;
	const uint32_t none[3] = {0};
	unsigned int blocks, most;
	uint32_t shape[3];

	TRY(enter(func, &c, &f));
	if (!size || !config)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(config_blocks(f, config, &blocks));
	most = atomic_load(&f->nonportable) ? CLUSTER_MOST : CLUSTER_PORTABLE;
	if (f->info->max_cluster)
		most = min(most, f->info->max_cluster);
	if (atomic_load(&f->cluster[0])) {
		TRY(function_cluster(f, none, shape));
		most = shape[0] * shape[1] * shape[2];
	}
	*size = blocks ? (int)most : 0;
	return CUDA_SUCCESS;
}

/* A cluster runs on one multiprocessor here, whatever its size: each holds one at least. */
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction func, const CUlaunchConfig *config)
{
	AUTO_PUT struct ctx *c = NULL;
	AUTO_PUT struct function *f = NULL;
	uint32_t asked[3], shape[3];
	unsigned int blocks, each;

	TRY(enter(func, &c, &f));
	if (!n || !config)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(asked_cluster(config, asked));
	TRY(config_blocks(f, config, &blocks));
	if (!asked[0] && !atomic_load(&f->cluster[0]))
		return CUDA_ERROR_INVALID_VALUE;
	TRY(function_cluster(f, asked, shape));
	each = blocks / (shape[0] * shape[1] * shape[2]);
	*n = blocks ? (int)((each ? each : 1) * c->dev->threads) : 0;
	return CUDA_SUCCESS;
}
