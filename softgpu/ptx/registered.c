// SPDX-License-Identifier: MIT
/* The program's own memory that it registered: outside of the arena, and kernels reach it all the same. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/arena.h"

struct piece {
	uint64_t start, bytes;
};

unsigned int softgpu_nregistered;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct piece *pieces;
static unsigned int room;

bool softgpu_register(uint64_t addr, uint64_t bytes)
{
	bool done = true;

	pthread_rwlock_wrlock(&lock);
	if (softgpu_nregistered == room) {
		unsigned int more = room ? 2 * room : 16;
		struct piece *p = realloc(pieces, more * sizeof(*p));

		done = p;
		if (p) {
			pieces = p;
			room = more;
		}
	}
	if (done) {
		pieces[softgpu_nregistered] = (struct piece){addr, bytes};
		__atomic_fetch_add(&softgpu_nregistered, 1, __ATOMIC_RELEASE);
	}
	pthread_rwlock_unlock(&lock);
	return done;
}

void softgpu_unregister(uint64_t addr)
{
	pthread_rwlock_wrlock(&lock);
	for (unsigned int i = 0; i < softgpu_nregistered; i++)
		if (pieces[i].start == addr) {
			pieces[i] = pieces[softgpu_nregistered - 1];
			__atomic_fetch_sub(&softgpu_nregistered, 1, __ATOMIC_RELEASE);
			break;
		}
	pthread_rwlock_unlock(&lock);
}

bool softgpu_registered(uint64_t addr, uint64_t len)
{
	bool found = false;

	pthread_rwlock_rdlock(&lock);
	for (unsigned int i = 0; i < softgpu_nregistered && !found; i++)
		found = addr >= pieces[i].start && len <= pieces[i].bytes && addr - pieces[i].start <= pieces[i].bytes - len;
	pthread_rwlock_unlock(&lock);
	return found;
}
