/* SPDX-License-Identifier: MIT */
/* Lowering of tensor-core instructions and asynchronous copies. */
#include "softgpu/ptx/lower.h"

void lower_mma(struct lower *lo)
{
	lower_unsupported(lo, NULL);
}

void lower_wmma(struct lower *lo)
{
	lower_unsupported(lo, NULL);
}

void lower_ldmatrix(struct lower *lo)
{
	lower_unsupported(lo, NULL);
}

void lower_cp_async(struct lower *lo)
{
	lower_unsupported(lo, NULL);
}

void lower_mbarrier(struct lower *lo)
{
	lower_unsupported(lo, NULL);
}
