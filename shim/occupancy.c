// SPDX-License-Identifier: MIT
/* Occupancy that needs more than one number: the server's driver answers, one round trip each. */
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
	return r ? r : func_use(func, f, wire, &context);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
						   int blockSizeLimit, unsigned int flags)
{
	uint64_t wire, table[SIZES];
	struct rgpu_call c;
	struct func *f;
	int n = 0, most, r = enter(&c, OP_POTENTIAL, func, &f, &wire);

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
	for (; blockSizeToDynamicSMemSize && n * 32 < most; n++)
		table[n] = blockSizeToDynamicSMemSize((n + 1) * 32 < most ? (n + 1) * 32 : most);
	return rpc_POTENTIAL(&c, wire, f->index, blockSizeLimit, flags, dynamicSMemSize, n, table, n, minGridSize, blockSize);
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
