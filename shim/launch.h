/* SPDX-License-Identifier: MIT */
/* What CUDA refuses of a launch at the call. */
#ifndef RGPU_SHIM_LAUNCH_H
#define RGPU_SHIM_LAUNCH_H

#include <stdbool.h>
#include "shim/cuda_api.h"

struct device;

/* Shape and attributes of a launch of @f, a CUfunction or a CUkernel. A CUresult. */
int launch_check(const struct device *d, const void *f, const CUlaunchConfig *cfg);

/* CUDA_LAUNCH_BLOCKING=1: a launch returns when its work is done, and with what became of it. */
bool launches_block(void);

#endif
