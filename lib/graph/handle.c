// SPDX-License-Identifier: MIT
/* Handles of graphs, nodes and user objects: slots with a generation, so that stale and invented ones are refused, not followed.
 */
#include "lib/graph/graph.h"

#include <stdlib.h>

/* 63 … 48 a tag, which makes it no address; 47 … 44 the kind; 43 … 24 the generation; 23 … 0 the slot. */
#define TAG	 0x4752ull
#define SLOTS	 (1u << 24)
#define GEN_MASK 0xfffffu

static struct slot {
	void *object;
	uint32_t gen, next_free;
} * slots;
static uint32_t room, used, first_free = UINT32_MAX;

pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER; /* all above, too */

CUresult ghandle_new(struct ghandle *h, enum gkind kind)
{
	uint32_t i = first_free;

	if (i != UINT32_MAX) {
		first_free = slots[i].next_free;
	} else {
		if (used == room) {
			uint32_t more = room ? room * 2 : 1024;
			struct slot *p = more > SLOTS ? NULL : realloc(slots, more * sizeof(*slots));

			if (!p)
				return CUDA_ERROR_OUT_OF_MEMORY;
			slots = p;
			room = more;
		}
		i = used++;
		slots[i].gen = 0;
	}
	slots[i].gen = (slots[i].gen + 1) & GEN_MASK;
	slots[i].object = h;
	h->value = TAG << 48 | (uint64_t)kind << 44 | (uint64_t)slots[i].gen << 24 | i;
	return CUDA_SUCCESS;
}

void ghandle_drop(struct ghandle *h)
{
	uint32_t i = h->value & (SLOTS - 1);

	if (!h->value)
		return;
	h->value = 0;
	slots[i].object = NULL;
	slots[i].next_free = first_free;
	first_free = i;
}

void *ghandle_find(const void *handle, enum gkind kind)
{
	uint64_t v = (uint64_t)(uintptr_t)handle;
	uint32_t i = v & (SLOTS - 1);
	struct ghandle *h;

	if (v >> 48 != TAG || (v >> 44 & 0xf) != (uint64_t)kind || i >= used)
		return NULL;
	h = slots[i].object;
	return h && h->value == v ? h : NULL;
}
