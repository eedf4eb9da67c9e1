/* SPDX-License-Identifier: MIT */
/* Modules, libraries and what is known of their kernels. */
#ifndef RGPU_SHIM_MODULE_H
#define RGPU_SHIM_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include "api/module_table.h"
#include "shim/call.h"
#include "shim/cuda_api.h"

/* One kernel. Lives as long as its module. */
struct func {
	struct module *module;
	uint32_t index; /* in the module, as the server counts */
	const char *name;
	uint32_t nparams, param_bytes; /* bytes of the packed parameters */
	bool holes;		       /* between them */
	const struct rgpu_func_param *params;
	int32_t attrs[RGPU_FUNC_ATTRS];
	bool own_cluster;		    /* compiled for clusters of one shape */
	struct rgpu_obj *function, *kernel; /* handles, minted when first asked for; module's lock */
	uint32_t hash_next;
};

struct module; /* a CUmodule or a CUlibrary */

/* What a CUfunction, or a CUkernel in its place, stands for, and the wire name of its module. A CUresult. */
int func_use(const void *handle, struct func **f, uint64_t *wire, struct rgpu_obj **context);
/* Only a CUkernel. */
int kernel_use(CUkernel kernel, struct func **f, uint64_t *wire);

void link_forget(struct rgpu_obj *link);	    /* its context died */
void module_drop_context(struct rgpu_obj *context); /* it died, and its modules with it */

/*
 * The image that the server's driver should get of what a program handed over: unwrapped, chosen, unpacked. *owned is to be
 * freed after use, or NULL. A CUresult.
 */
struct device;
int image_choose(const struct device *d, const void *code, const void **image, size_t *bytes, void **owned);
/* The same of a container of @len bytes at most, and no line is said when it has none for the device. */
int image_try_fatbin(const struct device *d, const void *data, size_t len, const void **image, size_t *bytes, void **owned);
/* A program's device code that was not linked when it was built: a list of containers that ends with NULL. NULL: another image.
 */
const void *const *image_prelinked(const struct device *d, const void *code);

/* cuLibraryGetGlobal of a variable that is managed: else NOT_FOUND. */
int library_managed(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name);

#endif
