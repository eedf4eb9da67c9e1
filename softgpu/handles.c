// SPDX-License-Identifier: MIT
/* Handles: slots of one table with a generation, so that stale and invented ones are refused and never followed. */
#include "softgpu/softgpu.h"

#include <stdlib.h>

/*
 * A handle: kind in bits 56 to 59, generation in 28 to 55, slot in 4 to 27, and zeros below, as a pointer would have. The
 * stream sentinels 1 and 2 and (CUcontext)-1 can't be such.
 */
#define SLOT_SHIFT 4
#define SLOT_BITS  24
#define GEN_SHIFT  28
#define GEN_BITS   28
#define KIND_SHIFT 56

struct slot {
	struct obj *obj; /* NULL when free */
	uint32_t gen;
	uint32_t next_free;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below; taken last, never while calling out */
static struct slot *slots;
static uint32_t room, used, first_free = UINT32_MAX;

void obj_init(struct obj *o, enum obj_kind kind, struct ctx *ctx, void (*release)(struct obj *))
{
	atomic_init(&o->refs, 1);
	o->kind = kind;
	o->handle = 0;
	o->ctx = ctx;
	o->release = release;
}

void obj_ref(struct obj *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void obj_put(struct obj *o)
{
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		o->release(o);
}

bool obj_publish(struct obj *o)
{
	uint32_t i;

	pthread_mutex_lock(&lock);
	if (first_free != UINT32_MAX) {
		i = first_free;
		first_free = slots[i].next_free;
	} else {
		if (used == room) {
			uint32_t more = room ? room * 2 : 1024;
			struct slot *p = more > 1u << SLOT_BITS ? NULL : realloc(slots, more * sizeof(*slots));

			if (!p) {
				pthread_mutex_unlock(&lock);
				return false;
			}
			slots = p;
			room = more;
		}
		i = used++;
		slots[i].gen = 1;
	}
	slots[i].obj = o;
	obj_ref(o);
	o->handle = (uintptr_t)o->kind << KIND_SHIFT | (uintptr_t)slots[i].gen << GEN_SHIFT | (uintptr_t)i << SLOT_SHIFT;
	pthread_mutex_unlock(&lock);
	return true;
}

static struct slot *slot_of(uintptr_t handle)
{
	uint32_t i = handle >> SLOT_SHIFT & ((1u << SLOT_BITS) - 1);

	if (i >= used || !slots[i].obj || slots[i].obj->handle != handle)
		return NULL;
	return &slots[i];
}

void *obj_get(const void *handle, enum obj_kind kind)
{
	uintptr_t h = (uintptr_t)handle;
	struct obj *o = NULL;
	struct slot *s;

	if (h >> KIND_SHIFT != (uintptr_t)kind)
		return NULL;
	pthread_mutex_lock(&lock);
	s = slot_of(h);
	if (s) {
		o = s->obj;
		obj_ref(o);
	}
	pthread_mutex_unlock(&lock);
	return o;
}

bool obj_retire(struct obj *o)
{
	struct slot *s;

	pthread_mutex_lock(&lock);
	s = o->handle ? slot_of(o->handle) : NULL;
	if (s && s->obj == o) {
		s->obj = NULL;
		/* A slot whose generations are used up is not used again. */
		if (++s->gen < 1u << GEN_BITS) {
			s->next_free = first_free;
			first_free = s - slots;
		}
	} else {
		s = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (s)
		obj_put(o);
	return s;
}

struct obj *obj_first_of(struct ctx *ctx, enum obj_kind kind)
{
	struct obj *o = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < used && !o; i++)
		if (slots[i].obj && slots[i].obj->ctx == ctx && slots[i].obj->kind == kind) {
			o = slots[i].obj;
			obj_ref(o);
		}
	pthread_mutex_unlock(&lock);
	return o;
}
