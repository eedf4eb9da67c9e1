/* SPDX-License-Identifier: MIT */
/* What the null driver's files share. */
#ifndef NULLDRV_H
#define NULLDRV_H

#include "softgpu/softgpu.h"

/* Kernels take their layout from the PTX; every name is found, and one that the PTX doesn't have has no parameters. */
struct null_function {
	char *name;
	struct null_module *module;
	uint32_t nparams, param_bytes, room;
	struct ptx_param *params;
	struct null_function *next;
};

struct null_module {
	char *ptx;	      /* NULL when the image had none */
	pthread_mutex_t lock; /* functions */
	struct null_function *functions;
};

/* Reads the parameter list of .entry @f->name out of the module's PTX. */
void null_params(struct null_function *f);

#endif
