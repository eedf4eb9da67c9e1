/* SPDX-License-Identifier: MIT */
/* What the tests of whole-warp code share: a launch in either form of a kernel. */
#ifndef RGPU_TESTS_SOFTGPU_PTX_WHOLE_H
#define RGPU_TESTS_SOFTGPU_PTX_WHOLE_H

#include "tests/softgpu/test_arena.h"
#include "tests/tap.h"

/* @plain: in the general form only */
static enum ptx_status launch(struct ptx_func *k, const uint32_t *shape, uint32_t blocks, const void *params, bool plain)
{
	struct ptx_launch l = {
		.grid = {blocks, 1, 1},
		.block = {shape[0], shape[1], shape[2]},
		.params = params,
		.threads = 1,
		.plain = plain,
	};

	return ptx_launch(k, &l, &test_fault);
}

#endif
