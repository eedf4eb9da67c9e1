/* SPDX-License-Identifier: MIT */
/* Memory that program and kernels both reach: managed, and page-locked host memory that is mapped into the device. */
#ifndef RGPU_SHIM_SHARED_H
#define RGPU_SHIM_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "shim/call.h"
#include "shim/cuda_api.h"
#include "shim/heap.h"

/*
 * Such memory is ordinary memory here, at its device address where that can be, and has a twin at the server, which kernels use.
 * Before work is given to a device, what changed here goes up (shared_push); when a wait has ended, what changed there comes
 * down (shared_pull). While devices work, a thread does both all the time for mapped memory, for flags that somebody polls.
 * Managed memory is the program's only while devices are idle (CONCURRENT_MANAGED_ACCESS is 0), so it needs no such thread.
 *
 * Changes are found by comparing with a shadow, at both ends (lib/twin.h): write protection would make system calls into such
 * memory fail, must share the program's SIGSEGV handler, and sees nothing of a GPU's writes. Through /dev/rgpuN the module tells
 * which pages of managed memory the program wrote, and at this end there is neither shadow nor comparing for them.
 */
struct shared {
	struct block block; /* first. BLOCK_MANAGED or BLOCK_MAPPED, at the device address */
	struct region *region;
	unsigned flags; /* as they were given */
	/* Of the whole block, for cuMemRangeGetAttribute. */
	bool read_mostly;
	CUmemLocation preferred, prefetched;
	uint64_t accessed_by; /* bit per device ordinal; 63: the host */
};

extern atomic_uint shared_regions; /* how many there are: usually none, and then nobody looks */

static inline bool shared_any(void)
{
	return atomic_load_explicit(&shared_regions, memory_order_relaxed);
}

/* Memory at one address for both. 0, or a CUresult. */
int shared_alloc(struct device *d, struct rgpu_obj *context, uint64_t bytes, bool managed, unsigned flags, uint64_t *addr);
/* No device works with it any more. INVALID_VALUE: none of that kind begins there. */
int shared_free(uint64_t addr, bool managed);
/* Other memory of the program, which kernels reach at *addr: its own address where that lies in the window, with whole granules
 * to itself. */
int shared_mirror(struct device *d, struct rgpu_obj *context, void *host, uint64_t bytes, unsigned flags, uint64_t *addr);
void shared_unmirror(uint64_t addr);
/* A managed variable of a module: the program gets memory at its address. NOT_SUPPORTED: something else is there. */
int shared_variable(struct device *d, uint64_t addr, uint64_t bytes);
void shared_drop_variable(uint64_t addr, uint64_t bytes);
void shared_drop_context(struct rgpu_obj *context); /* its managed memory is gone */

/* Whether @addr is such memory's device address; and where the program has it. */
bool shared_has(uint64_t addr);
/* Operations on memory there that need not wait for the device do so before they return, unless they are asynchronous. */
static inline bool copies_end(uint64_t addr)
{
	return shared_has(addr) || allocs_synced(addr);
}

void *shared_host(uint64_t addr);
/* The program may touch the block's region while some stream works: it is looked at before each piece of work. */
void shared_attached(struct shared *m);

/*
 * Before work that a device is given by record @op. @unordered: for a thread that others may wait for while they block in the
 * driver (hostfunc.c): its records wait for nobody's.
 */
bool shared_before(uint16_t op);
int shared_push(struct rgpu_session *s, bool unordered);
int shared_push_for(struct rgpu_session *s, uint16_t op);
/* Whether devices have work is not known any more: a call failed. */
void shared_doubt(void);
/* A wait of the program has ended. */
bool shared_after(uint16_t op);
int shared_pull(struct rgpu_session *s, bool unordered);
/* A device was given work: mapped memory is kept the same at both ends until it is done. */
void shared_watch(struct rgpu_session *s);

#endif
