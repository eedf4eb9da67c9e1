// SPDX-License-Identifier: MIT
/*
 * Occupancy: worked out here from what is known of the function and its device. The server's driver is asked where that is not
 * sure to be what it says: shared memory beyond what a block has without asking, a carveout, devices before 7.0.
 */
#include "lib/occupancy.h"
#include "rgpu_rpc.h"
#include "shim/ctx.h"
#include "shim/module.h"
#include "shim/session.h"

#define SIZES 32 /* block sizes in warps */

static int enter(struct rgpu_call *c, uint16_t op, CUfunction func, struct func **f, uint64_t *wire)
{
	struct rgpu_obj *context;
	int r = rgpu_enter(c, op);

	if (!r)
		r = ctx_use(c, NULL);
	if (!r)
		r = func_use(func, f, wire, &context);
	return r ? r : ctx_of(c->context)->fault;
}

/* Facts of the call's device and of the function. false: they do not say it all, ask the driver. */
static bool known(const struct rgpu_call *c, const struct func *f, struct occupancy_device *d, struct occupancy_function *o)
{
	const struct device *dev = ctx_of(c->context)->device;
	const struct {
		CUdevice_attribute attribute;
		unsigned *at;
	} want[] = {
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &d->major},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &d->threads_block},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &d->threads_sm},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &d->blocks_sm},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &d->regs_block},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &d->regs_sm},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &d->shared_sm},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &d->shared_reserved},
	};
	const int32_t *a = f->attrs;

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		int v = device_attribute(dev, want[i].attribute);

		if (v < 0)
			return false;
		*want[i].at = (unsigned)v;
	}
	o->threads_block = (unsigned)a[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
	o->regs = (unsigned)a[CU_FUNC_ATTRIBUTE_NUM_REGS];
	o->shared = (unsigned)a[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
	return d->major >= 7 && d->blocks_sm && a[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] > 0 &&
	       a[CU_FUNC_ATTRIBUTE_NUM_REGS] > 0 && a[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] >= 0 &&
	       a[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] == -1;
}

/* As much as a block may have without an attribute set. */
static bool modest(const struct rgpu_call *c, const struct occupancy_function *o, uint64_t dynamic)
{
	int most = device_attribute(ctx_of(c->context)->device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);

	return most > 0 && dynamic <= (uint64_t)most && o->shared + dynamic <= (uint64_t)most;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func, int blockSize,
							      size_t dynamicSMemSize, unsigned int flags)
{
	struct occupancy_function o;
	struct occupancy_device d;
	struct rgpu_call c;
	struct func *f;
	uint64_t wire;
	int r = enter(&c, OP_OCCUPANCY, func, &f, &wire);

	if (!r && (!numBlocks || blockSize <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (!known(&c, f, &d, &o) || !modest(&c, &o, dynamicSMemSize))
		return rpc_OCCUPANCY(&c, wire, f->index, blockSize, dynamicSMemSize, flags, numBlocks);
	*numBlocks = (int)occupancy_of(&d, &o, (unsigned)blockSize, dynamicSMemSize);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

/* What the program's function said of each number of warps, or one number for all. */
struct sizes {
	uint64_t table[SIZES], all;
	int n;
};

static uint64_t size_of(void *arg, unsigned threads)
{
	const struct sizes *s = arg;

	return s->n ? s->table[(threads - 1) / 32] : s->all;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
						   int blockSizeLimit, unsigned int flags)
{
	struct sizes s = {.all = dynamicSMemSize};
	struct occupancy_function o;
	struct occupancy_device d;
	struct rgpu_call c;
	struct func *f;
	unsigned fit;
	uint64_t wire;
	bool sure;
	int most, r = enter(&c, OP_POTENTIAL, func, &f, &wire);

	if (!r && (!minGridSize || !blockSize || blockSizeLimit < 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	/* The program's function is asked here, for every size that the driver may ask about there. */
	most = f->attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
	if (most <= 0 || most > SIZES * 32)
		most = SIZES * 32;
	if (blockSizeLimit && blockSizeLimit < most)
		most = blockSizeLimit;
	for (; blockSizeToDynamicSMemSize && s.n * 32 < most; s.n++)
		s.table[s.n] = blockSizeToDynamicSMemSize((s.n + 1) * 32 < most ? (s.n + 1) * 32 : most);
	sure = known(&c, f, &d, &o) && modest(&c, &o, s.n ? 0 : s.all);
	for (int i = 0; i < s.n && sure; i++)
		sure = modest(&c, &o, s.table[i]);
	if (!sure)
		return rpc_POTENTIAL(&c, wire, f->index, blockSizeLimit, flags, dynamicSMemSize, s.n, s.table, s.n, minGridSize,
				     blockSize);
	*blockSize = (int)occupancy_best(&d, &o, (unsigned)most, size_of, &s, &fit);
	*minGridSize = (int)fit * device_attribute(ctx_of(c.context)->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
					  CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
					  int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	struct rgpu_call c;
	uint64_t wire, bytes;
	struct func *f;
	int r = enter(&c, OP_SHARED_ROOM, func, &f, &wire);

	if (!r && (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = rpc_SHARED_ROOM(&c, wire, f->index, numBlocks, blockSize, &bytes);
	if (!r)
		*dynamicSmemSize = bytes;
	return r;
}
