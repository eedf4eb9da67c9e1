/* SPDX-License-Identifier: MIT */
/* The table of texture and surface objects: read without a lock by running kernels. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "softgpu/ptx/texture.h"

/* An object: generation above, slot + 1 below, so that garbage and what was destroyed name nothing. */
#define SLOT_BITS 20
#define CHUNK	  1024u
#define CHUNKS	  ((1u << SLOT_BITS) / CHUNK)

struct entry {
	struct ptx_texture t;
	u64 object;
	struct entry *next; /* of the dead */
};

struct chunk {
	_Atomic(struct entry *) slot[CHUNK];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all but reading slots */
static _Atomic(struct chunk *) chunks[CHUNKS];
static u32 used, nfree, room;
static u32 *free_slots;
static u64 generation;
static struct entry *dead;
static atomic_uint launches;

static _Atomic(struct entry *) *slot_of(u32 index)
{
	struct chunk *c = atomic_load(&chunks[index / CHUNK]);

	return c ? &c->slot[index % CHUNK] : NULL;
}

/* A slot that nobody uses, its chunk made; CHUNKS * CHUNK when there is none. */
static u32 take_slot(void)
{
	u32 index = used;

	if (nfree)
		return free_slots[--nfree];
	if (index == CHUNKS * CHUNK - 1)
		return CHUNKS * CHUNK;
	/* Room to give every slot back. */
	if (index == room) {
		u32 *p = realloc(free_slots, (room + CHUNK) * sizeof(*p));

		if (!p)
			return CHUNKS * CHUNK;
		free_slots = p;
		room += CHUNK;
	}
	if (!slot_of(index)) {
		struct chunk *c = calloc(1, sizeof(*c));

		if (!c)
			return CHUNKS * CHUNK;
		atomic_store(&chunks[index / CHUNK], c);
	}
	used++;
	return index;
}

u64 ptx_texture_enter(const struct ptx_texture *t)
{
	struct entry *e = malloc(sizeof(*e));
	u32 index;

	if (!e)
		return 0;
	e->t = *t;
	pthread_mutex_lock(&lock);
	index = take_slot();
	if (index < CHUNKS * CHUNK) {
		e->object = ++generation << SLOT_BITS | (index + 1);
		atomic_store(slot_of(index), e);
	}
	pthread_mutex_unlock(&lock);
	if (index < CHUNKS * CHUNK)
		return e->object;
	free(e);
	return 0;
}

/* A launch that begins later sees the empty slot, so whoever sees none running may free. */
void ptx_texture_leave(u64 object)
{
	u32 index = (u32)(object & ((1u << SLOT_BITS) - 1)) - 1;
	_Atomic(struct entry *) *slot;
	struct entry *e;

	pthread_mutex_lock(&lock);
	slot = index < used ? slot_of(index) : NULL;
	e = slot ? atomic_load(slot) : NULL;
	if (e && e->object == object) {
		atomic_store(slot, NULL);
		free_slots[nfree++] = index;
		e->next = dead;
		dead = e;
	}
	while (dead && !atomic_load(&launches)) {
		e = dead;
		dead = e->next;
		free(e);
	}
	pthread_mutex_unlock(&lock);
}

const struct ptx_texture *ptx_texture_find(u64 object)
{
	u32 index = (u32)(object & ((1u << SLOT_BITS) - 1)) - 1;
	_Atomic(struct entry *) *slot = index < CHUNKS * CHUNK ? slot_of(index) : NULL;
	struct entry *e = slot ? atomic_load(slot) : NULL;

	return e && e->object == object ? &e->t : NULL;
}

void ptx_texture_launches(int step)
{
	atomic_fetch_add(&launches, (unsigned int)step);
}
