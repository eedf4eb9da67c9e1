/* SPDX-License-Identifier: MIT */
/* Libraries and their kernels: what function.c needs to know of them. */
#ifndef SOFTGPU_LIBRARY_H
#define SOFTGPU_LIBRARY_H

#include "softgpu/softgpu.h"

struct library;

struct kernel_attr {
	CUfunction_attribute attr;
	int device, value;
};

struct kernel {
	struct obj obj;
	struct library *library; /* a reference */
	char *name;
	struct ptx_param *params;
	struct ptx_func_info info; /* with name and params of our own */
	struct kernel_attr *attr;  /* set by cuKernelSetAttribute; under the library's lock */
	size_t nattr;
};

CUresult kernel_get(CUkernel handle, struct kernel **out); /* with a reference */
/* The function that @k is in @c, loading the library there if it isn't; with a reference. */
CUresult kernel_function(struct kernel *k, struct ctx *c, struct function **out);
/* Remembers an attribute for @device, and sets it in the contexts of that device that have the kernel. */
CUresult kernel_set_attribute(struct kernel *k, CUfunction_attribute attr, int value, int device);
CUresult kernel_attribute(int *value, CUfunction_attribute attr, struct kernel *k, int device);
void library_close(struct library *l);
char *file_read(const char *name, size_t *len);

#endif
