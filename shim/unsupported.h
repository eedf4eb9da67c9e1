/* SPDX-License-Identifier: MIT */
/* Says once what is missing. */
#ifndef RGPU_SHIM_UNSUPPORTED_H
#define RGPU_SHIM_UNSUPPORTED_H

/* One line on stderr for each @name, a string of static storage; @reason: why it can never work, or NULL.
 * CUDA_ERROR_NOT_SUPPORTED. */
int rgpu_unsupported(const char *name, const char *reason);

#endif
