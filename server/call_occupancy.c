// SPDX-License-Identifier: MIT
/* Occupancy questions that the driver answers with the help of a function of the program: its answers came along. */
#include "server/call_module.h"

static __thread const uint64_t *table;
static __thread uint32_t sizes;

/* The client asked the program's function for each number of warps, and for the largest block. */
static size_t CUDA_CB shared_of(int block)
{
	uint32_t i = block > 0 ? ((uint32_t)block - 1) / 32 : 0;

	return sizes ? table[i < sizes ? i : sizes - 1] : 0;
}

void srv_POTENTIAL(struct srv_call *c)
{
	uint32_t at = sizeof(struct rec_POTENTIAL);
	struct rep_POTENTIAL r = {0};
	struct rec_POTENTIAL a;
	MODULE_REF *m = NULL;
	CUfunction real;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (a.table_n != a.n || !(table = srv_bytes(c, &at, a.n * 8ull)) || !drv_cuda.cuOccupancyMaxPotentialBlockSizeWithFlags) {
		srv_fail(c, a.table_n == a.n && table ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE);
		return;
	}
	sizes = a.n;
	srv_fail(c, drv_cuda.cuOccupancyMaxPotentialBlockSizeWithFlags(&r.grid, &r.block, real, a.n ? shared_of : NULL, a.shared,
								       a.limit, a.flags));
	srv_answer(c, &r, sizeof(r));
}

void srv_SHARED_ROOM(struct srv_call *c)
{
	struct rep_SHARED_ROOM r = {0};
	struct rec_SHARED_ROOM a;
	MODULE_REF *m = NULL;
	CUfunction real;
	size_t bytes = 0;

	if (!srv_body(c, &a, sizeof(a)) || !srv_enter(c, a.ctx) || !srv_function(c, a.module, a.index, &m, &real))
		return;
	if (!drv_cuda.cuOccupancyAvailableDynamicSMemPerBlock) {
		srv_fail(c, CUDA_ERROR_NOT_SUPPORTED);
		return;
	}
	srv_fail(c, drv_cuda.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, real, a.blocks, a.threads));
	r.bytes = bytes;
	srv_answer(c, &r, sizeof(r));
}
