/* SPDX-License-Identifier: MIT */
/* A lane's staging buffer: a few slots of shared memory through which pageable bytes go to and from the server. */
#ifndef RGPU_SHIM_STAGING_H
#define RGPU_SHIM_STAGING_H

#include "shim/lane.h"

#define STAGING_SLOTS	  4 /* at first, and of each further part */
#define STAGING_SLOTS_MAX 64
#define STAGING_ALL_MAX	  (512ull << 20) /* bytes of the further parts of all lanes */
#define STAGING_SLOT	  RGPU_CHUNK_MAX

struct slot {
	uint32_t bo;
	uint64_t off; /* in the buffer object */
	uint8_t *mem; /* STAGING_SLOT bytes */
	uint64_t seq; /* of the record that sends it, 0 none: reusable once acknowledged */
	struct slot *next;
};

/*
 * How many slots to have under way: as many as the relay says that it takes to keep the link busy. Makes them, or does with fewer
 * where there is no memory. 0: *err.
 */
unsigned staging_slots(struct rgpu_lane *l, int *err);

/* The same number for a copy that uses the program's own memory. */
unsigned staging_wanted(const struct rgpu_lane *l);

/* The slot that was not used for longest, when its bytes have left. One that receives must have been waited for by its user.
 * NULL: *err. */
struct slot *staging_slot(struct rgpu_lane *l, int *err);

#endif
