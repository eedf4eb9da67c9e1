/* SPDX-License-Identifier: MIT */
/* Regions of shared memory, between the file that makes them and the one that keeps them the same at both ends. */
#ifndef RGPU_SHIM_SHARED_INT_H
#define RGPU_SHIM_SHARED_INT_H

#include <pthread.h>
#include "lib/twin.h"
#include "shim/shared.h"
#include "shim/transport.h"

struct region {
	struct range range; /* first: device addresses, whole granules */
	struct twin twin;   /* of a mirror no more than there is of the program's memory; tracked memory by its second map */
	struct rgpu_bo bo;  /* handle 0: none. Tracked: the module knows what the program wrote, and there is no shadow */
	uint64_t *
		dirty; /* of tracked memory: a bit per page that was written and is not sent yet; behind it, as many as scratch */
	struct space *space; /* small pieces; NULL: one block has it all */
	unsigned blocks;
	bool managed, mirror, variable;
	bool borrowed;	 /* a mirror whose addresses are the program's own: they are given back by their owner */
	bool always;	 /* managed, and yet looked at before each piece of work */
	bool device_has; /* managed: devices have work since it was sent, so the program leaves it alone */
};

extern pthread_mutex_t shared_lock; /* all regions and their twins */
extern pthread_mutex_t shared_down; /* what comes down is put down in its order; outside of shared_lock */
extern struct range *shared_map;    /* the regions */
extern atomic_uint shared_mapped;   /* regions of mapped memory */

#endif
