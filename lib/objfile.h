/* SPDX-License-Identifier: MIT */
/* Finds the fat binaries in what a host compiler makes: object files, and archives of them. */
#ifndef RGPU_LIB_OBJFILE_H
#define RGPU_LIB_OBJFILE_H

#include <stdbool.h>
#include <stddef.h>

bool objfile_is(const void *data, size_t bytes); /* of this machine, and no cubin */

/* Calls @fn for each container until it returns non-zero, which is returned. −1: the file leads outside itself. */
int objfile_each(const void *data, size_t bytes, int (*fn)(void *arg, const void *fatbin, size_t bytes), void *arg);

#endif
