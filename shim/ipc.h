/* SPDX-License-Identifier: MIT */
/* Allocations that processes share: exported as a piece of their lease, opened where that lease is mapped, too. */
#ifndef RGPU_SHIM_IPC_H
#define RGPU_SHIM_IPC_H

#include <stdbool.h>
#include "shim/heap.h"
#include "shim/token.h"

/* The server offers the lease that @b, a block of the heap, is in. A CUresult. */
int ipc_export(const struct block *b, struct token *t);

/*
 * Opens a piece for the call's context, for the devices of @access (by bit of their session's index); one that is open already
 * is counted. @pool: the imported pool that it is of; 0: it was cuMemAlloc's. A CUresult.
 */
int ipc_open(struct rgpu_call *c, const struct token *t, uint64_t pool, uint32_t access, CUdeviceptr *ptr);
/* INVALID_VALUE: nothing that is open, and of a pool or not as said, begins there. Waits for the devices first. */
int ipc_close(struct rgpu_call *c, CUdeviceptr ptr, bool of_pool);
/* Devices that the pool is made visible to see its open pieces. */
int ipc_give(uint64_t pool, uint32_t access);
void ipc_drop_context(struct rgpu_obj *context); /* what it opened is closed; nothing works there any more */

#endif
