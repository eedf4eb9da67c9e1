/* SPDX-License-Identifier: MIT */
/* The JIT options that travel: client and server must agree on them. Included behind cuda.h, to which the shims give their
 * visibility. */
#ifndef RGPU_LIB_JIT_OPTION_H
#define RGPU_LIB_JIT_OPTION_H

#include <stdbool.h>
#include <stdint.h>

/* Whether @option's value is a number, and nothing is written there. CU_JIT_THREADS_PER_BLOCK's value is an answer, too. */
static inline bool jit_option_is_number(uint64_t option)
{
	switch (option) {
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_POSITION_INDEPENDENT_CODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES:
		return true;
	default:
		return false;
	}
}

#endif
