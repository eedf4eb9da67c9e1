/* SPDX-License-Identifier: MIT */
/* How every function of the interface begins. */
#ifndef RGPU_SHIM_NVML_CALL_H
#define RGPU_SHIM_NVML_CALL_H

#include "shim/nvml/lib.h"

typedef unsigned int nvml_return; /* an enum nvml_result */

/* Leaves the caller with the error when @expr is one. */
#define TRY(expr)                                                                                                                \
	do {                                                                                                                     \
		nvml_return try_ = (expr);                                                                                       \
		if (try_)                                                                                                        \
			return try_;                                                                                             \
	} while (0)

#define NEED(cond)                                                                                                               \
	do {                                                                                                                     \
		if (!(cond))                                                                                                     \
			return NVML_INVALID_ARGUMENT;                                                                            \
	} while (0)

/* The library is initialised and @h names a device: *g. */
static inline nvml_return nvml_enter(void *h, struct gpu **g)
{
	TRY(nvml_ready());
	*g = nvml_handle(h);
	return *g ? NVML_SUCCESS : NVML_INVALID_ARGUMENT;
}

/* @text into the caller's @length bytes. */
static inline nvml_return nvml_give(char *to, unsigned length, const char *text)
{
	NEED(to);
	if (strlen(text) >= length)
		return NVML_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NVML_SUCCESS;
}

#endif
