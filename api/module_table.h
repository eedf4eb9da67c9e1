/* SPDX-License-Identifier: MIT */
/* The table of a module's kernels as LOAD_END sends it: entries one after the other, in the order of their indices. */
#ifndef RGPU_API_MODULE_TABLE_H
#define RGPU_API_MODULE_TABLE_H

#include <stdint.h>

#define RGPU_FUNC_ATTRS 16 /* CUfunction_attribute 0 … 15; what the driver does not know is INT32_MIN */

struct rgpu_func_param {
	uint32_t offset, bytes;
};

struct rgpu_func_entry {
	uint32_t bytes; /* of this entry with all that follows, multiple of 8 */
	uint32_t nparams;
	uint32_t name_bytes; /* without a NUL */
	uint32_t reserved;
	int32_t attrs[RGPU_FUNC_ATTRS];
	/* nparams × struct rgpu_func_param, the name, padding */
};
_Static_assert(sizeof(struct rgpu_func_entry) == 16 + 4 * RGPU_FUNC_ATTRS, "append-only");

#endif
