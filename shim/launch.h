/* SPDX-License-Identifier: MIT */
/* What CUDA refuses of a launch at the call. */
#ifndef RGPU_SHIM_LAUNCH_H
#define RGPU_SHIM_LAUNCH_H

#include "shim/cuda_api.h"

struct device;

/* Shape and attributes of a launch of @f, a CUfunction or a CUkernel. A CUresult. */
int launch_check(const struct device *d, const void *f, const CUlaunchConfig *cfg);

#endif
