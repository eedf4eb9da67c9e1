/* SPDX-License-Identifier: MIT */
/* Copies of any size as records of at most RGPU_CHUNK_MAX bytes. */
#ifndef RGPU_SHIM_COPY_H
#define RGPU_SHIM_COPY_H

#include "shim/call.h"

/*
 * The call is entered, its context known, and device ranges are checked. @stream is a wire name. @sync: the host's side is
 * done with on return: the source may be overwritten, the target can be read. Without it that holds for pageable memory
 * only. All return CUresults.
 */
int copy_to_device(struct rgpu_call *c, uint64_t dst, const void *src, uint64_t bytes, uint64_t stream, bool sync);
int copy_to_host(struct rgpu_call *c, void *dst, uint64_t src, uint64_t bytes, uint64_t stream, bool sync);

#endif
