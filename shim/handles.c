// SPDX-License-Identifier: MIT
/* The tables of the client's handles: slots that are never given back to the system, looked up without a lock. */
#include "shim/handles.h"

#include <stdlib.h>

#define CHUNK HANDLE_CHUNK

struct handle_table handle_tables[KIND_MAX] = {[0 ... KIND_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

struct rgpu_obj *handle_new(enum rgpu_kind kind, struct rgpu_obj *context)
{
	struct handle_table *t = &handle_tables[kind];
	struct rgpu_obj *obj, *chunk;

	pthread_mutex_lock(&t->lock);
	obj = t->free;
	if (obj) {
		t->free = obj->next;
	} else if (t->used < HANDLE_INDEX_MAX) {
		chunk = atomic_load_explicit(&t->chunk[t->used / CHUNK], memory_order_relaxed);
		if (!chunk) {
			chunk = calloc(CHUNK, sizeof(*chunk));
			if (chunk)
				atomic_store_explicit(&t->chunk[t->used / CHUNK], chunk, memory_order_release);
		}
		if (chunk) {
			obj = &chunk[t->used % CHUNK];
			obj->index = t->used++;
		}
	}
	pthread_mutex_unlock(&t->lock);
	if (!obj)
		return NULL;
	obj->gen = (obj->gen + 1) & HANDLE_GEN_MASK;
	obj->context = context;
	obj->data = NULL;
	for (int i = 0; i < RGPU_OBJ_FIELDS; i++)
		obj->field[i] = 0;
	atomic_store_explicit(&obj->handle, HANDLE_MAKE(kind, obj->gen, obj->index), memory_order_release);
	return obj;
}

void handle_free(struct rgpu_obj *obj)
{
	uint64_t handle = atomic_exchange(&obj->handle, 0);
	struct handle_table *t = &handle_tables[HANDLE_KIND(handle)];

	if (!handle)
		return;
	pthread_mutex_lock(&t->lock);
	obj->next = t->free;
	t->free = obj;
	pthread_mutex_unlock(&t->lock);
}

void handle_each(enum rgpu_kind kind, void (*fn)(struct rgpu_obj *obj, void *arg), void *arg)
{
	struct handle_table *t = &handle_tables[kind];
	uint32_t used;

	pthread_mutex_lock(&t->lock);
	used = t->used;
	pthread_mutex_unlock(&t->lock);
	for (uint32_t i = 0; i < used; i++) {
		struct rgpu_obj *obj = &atomic_load_explicit(&t->chunk[i / CHUNK], memory_order_acquire)[i % CHUNK];

		if (atomic_load_explicit(&obj->handle, memory_order_acquire))
			fn(obj, arg);
	}
}
