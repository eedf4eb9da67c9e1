/* SPDX-License-Identifier: MIT */
/* Files of memory that other processes may open: what a descriptor of cuMemExportToShareableHandle is. */
#ifndef SOFTGPU_SHAREABLE_H
#define SOFTGPU_SHAREABLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A file of @bytes of memory of device @where, and what an importer has to know behind them. Its length is sealed, so that no
 * other process can take pages away. −1: there is none, and the log says why.
 */
int shareable_create(int where, uint64_t bytes);
/* A descriptor of our own for the same memory. −1: @fd is no such file. */
int shareable_open(int fd, int *where, uint64_t *bytes);

#endif
