// SPDX-License-Identifier: MIT
/* Makes the staging buffer of a lane when it is first needed, and hands its slots out in turn. */
#include "shim/staging.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "shim/cuda_api.h"
#include "shim/session.h"

/* Lives as long as its lane, that is, for good. */
struct staging {
	struct rgpu_bo bo[STAGING_SLOTS_MAX / STAGING_SLOTS];
	struct slot slot[STAGING_SLOTS_MAX];
	unsigned n;
	struct slot *first, *last; /* in the order of their next use */
	bool refused;		   /* no memory for more */
};

static _Atomic uint64_t further; /* bytes of all lanes' further parts */

static bool grow(struct rgpu_lane *l, struct staging *s)
{
	struct rgpu_bo *bo = &s->bo[s->n / STAGING_SLOTS];

	if (rgpu_transport_bo_create(l->session->transport, (uint64_t)STAGING_SLOTS * STAGING_SLOT, bo))
		return false;
	for (unsigned i = 0; i < STAGING_SLOTS; i++) {
		struct slot *slot = &s->slot[s->n++];

		slot->bo = bo->handle;
		slot->off = (uint64_t)i * STAGING_SLOT;
		slot->mem = (uint8_t *)bo->base + slot->off;
		slot->next = s->first;
		s->first = slot;
		if (!s->last)
			s->last = slot;
	}
	return true;
}

static struct staging *made(struct rgpu_lane *l, int *err)
{
	struct staging *s = l->staging;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s) {
		*err = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	if (!grow(l, s)) {
		*err = session_error(l->session, CUDA_ERROR_OUT_OF_MEMORY, "no memory for copies");
		free(s);
		return NULL;
	}
	l->staging = s;
	return s;
}

/* A further part, if all of them together do not become too large. */
static bool grow_further(struct rgpu_lane *l, struct staging *s)
{
	uint64_t part = (uint64_t)STAGING_SLOTS * STAGING_SLOT;

	if (s->refused)
		return false;
	if (atomic_fetch_add(&further, part) + part <= STAGING_ALL_MAX && grow(l, s))
		return true;
	atomic_fetch_sub(&further, part);
	s->refused = true;
	return false;
}

unsigned staging_wanted(const struct rgpu_lane *l)
{
	uint64_t want = lane_ahead(l) / STAGING_SLOT;

	return want > STAGING_SLOTS_MAX ? STAGING_SLOTS_MAX : want > STAGING_SLOTS ? (unsigned)want : STAGING_SLOTS;
}

unsigned staging_slots(struct rgpu_lane *l, int *err)
{
	unsigned want = staging_wanted(l);
	struct staging *s = made(l, err);

	if (!s)
		return 0;
	while (s->n < want && grow_further(l, s))
		;
	return want > s->n ? s->n : want;
}

struct slot *staging_slot(struct rgpu_lane *l, int *err)
{
	struct staging *s = made(l, err);
	struct slot *slot;

	if (!s)
		return NULL;
	slot = s->first;
	s->first = slot->next;
	slot->next = NULL;
	s->last->next = slot;
	s->last = slot;
	*err = slot->seq ? lane_wait_acked(l, slot->seq) : 0;
	if (*err)
		return NULL;
	slot->seq = 0;
	return slot;
}
