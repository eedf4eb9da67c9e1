/* SPDX-License-Identifier: MIT */
/* Modules and libraries in the worker: the image as it comes in, then the driver's handles of its kernels. */
#ifndef RGPU_SERVER_CALL_MODULE_H
#define RGPU_SERVER_CALL_MODULE_H

#include "api/module_table.h"
#include "server/session.h"

struct srv_func {
	void *real; /* CUfunction, or a library's CUkernel */
	uint32_t nparams, first_param;
	uint32_t param_bytes;
};

struct srv_module {
	bool library, ended;
	uint8_t *image;
	uint64_t bytes, got;
	unsigned noptions;
	CUjit_option option[24];
	void *value[24];
	CUresult status; /* of the parts before END */
	void *real;	 /* CUmodule or CUlibrary; NULL until END succeeded */
	uint32_t nfuncs, nparams;
	struct srv_func *func;
	struct rgpu_func_param *param;
	uint8_t *table; /* as the client gets it */
	uint64_t table_bytes;
};

/* A handle of either kind. NULL: the status is set. */
struct srv_module *srv_module(struct srv_call *c, uint64_t handle);
/* One that was loaded, and its @index'th kernel in the context that is current. NULL: the status is set. */
struct srv_func *srv_function(struct srv_call *c, uint64_t module, uint32_t index, struct srv_module **m, CUfunction *real);
/* Frees ours; the driver's part died with its context. */
void module_drop(struct srv_session *s, struct srv_module *m);

#endif
