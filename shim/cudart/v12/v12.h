/* SPDX-License-Identifier: MIT */
/*
 * libcudart.so.12 is libcudart.so.13's objects, a few of their names changed (rename.txt), and what these files add: the calls
 * whose parameters or structures were others then. The public header here is 13's, so a function of 12 has a name of its own in
 * C.
 */
#ifndef RGPU_CUDART_V12_H
#define RGPU_CUDART_V12_H

#include "shim/cudart/cudart.h"

#define RUNTIME_12 12090

#define V12(name, params)                                                                                                        \
	CUDART_API cudaError_t v12_##name params __asm__(#name);                                                                 \
	cudaError_t v12_##name params

/* A function of 13, as it is called inside libcudart.so.12. */
#define RT13(name, as) extern __typeof__(name) as

#endif
