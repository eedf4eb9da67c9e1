// SPDX-License-Identifier: MIT
/* Makes the staging buffer of a lane when it is first needed, and hands its slots out in turn. */
#include "shim/staging.h"

#include <stdlib.h>
#include "shim/cuda_api.h"
#include "shim/session.h"

/* Lives as long as its lane, that is, for good. */
struct staging {
	struct rgpu_bo bo;
	struct slot slot[STAGING_SLOTS];
	unsigned next;
};

static struct staging *make(struct rgpu_lane *l, int *err)
{
	struct staging *s = calloc(1, sizeof(*s));

	if (!s) {
		*err = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	if (rgpu_transport_bo_create(l->session->transport, (uint64_t)STAGING_SLOTS * STAGING_SLOT, &s->bo)) {
		*err = session_error(l->session, CUDA_ERROR_OUT_OF_MEMORY, "no memory for copies");
		free(s);
		return NULL;
	}
	for (unsigned i = 0; i < STAGING_SLOTS; i++) {
		s->slot[i].bo = s->bo.handle;
		s->slot[i].off = (uint64_t)i * STAGING_SLOT;
		s->slot[i].mem = (uint8_t *)s->bo.base + s->slot[i].off;
	}
	return s;
}

struct slot *staging_slot(struct rgpu_lane *l, int *err)
{
	struct slot *slot;

	if (!l->staging)
		l->staging = make(l, err);
	if (!l->staging)
		return NULL;
	slot = &l->staging->slot[l->staging->next++ % STAGING_SLOTS];
	*err = slot->seq ? lane_wait_acked(l, slot->seq) : 0;
	if (*err)
		return NULL;
	slot->seq = 0;
	return slot;
}
