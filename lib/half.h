/* SPDX-License-Identifier: MIT */
/* Single precision as half and back: to nearest, ties to even; what is too large becomes infinite; NaNs stay NaNs. */
#ifndef RGPU_LIB_HALF_H
#define RGPU_LIB_HALF_H

#include <stddef.h>
#include <stdint.h>

/* @n numbers, which need not be aligned. The two do not overlap. */
void rgpu_half_from(void *half, const void *single, size_t n);
void rgpu_half_to(void *single, const void *half, size_t n);

#endif
