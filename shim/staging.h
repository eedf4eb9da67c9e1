/* SPDX-License-Identifier: MIT */
/* A lane's staging buffer: a few slots of shared memory through which pageable bytes go to and from the server. */
#ifndef RGPU_SHIM_STAGING_H
#define RGPU_SHIM_STAGING_H

#include "shim/lane.h"

#define STAGING_SLOTS 4
#define STAGING_SLOT  RGPU_CHUNK_MAX

struct slot {
	uint32_t bo;
	uint64_t off; /* in the buffer object */
	uint8_t *mem; /* STAGING_SLOT bytes */
	uint64_t seq; /* of the record that sends it, 0 none: reusable once acknowledged */
};

/* The next slot, when its bytes have left. Slots that receive must have been waited for by their user. NULL: *err. */
struct slot *staging_slot(struct rgpu_lane *l, int *err);

#endif
