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
	bool busy; /* named null_busy(uint32_t us): its stream is busy for so long */
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

/* Work for a stream: it is not idle before @us from the end of what it has. */
void null_busy(CUstream stream, uint32_t us);
/* Blocks until the stream is idle; NULL: until all are. */
void null_wait(CUstream stream);

#endif
