// SPDX-License-Identifier: MIT
/* A pool of page-locked memory, by powers of two. */
#include <stdlib.h>
#include "server/locked.h"
#include "server/session.h"

#define SMALLEST 4096u

/* In the free memory itself. */
struct locked {
	struct locked *next;
};

_Static_assert(SMALLEST << (LOCKED_CLASSES - 1) == RGPU_CHUNK_MAX, "the largest is a record's");

void locked_init(struct srv_locked *l)
{
	pthread_mutex_init(&l->lock, NULL);
}

static unsigned class_of(uint64_t bytes)
{
	unsigned i = 0;

	while (i < LOCKED_CLASSES && bytes > (uint64_t)SMALLEST << i)
		i++;
	return i;
}

void *locked_get(struct srv_locked *l, uint64_t bytes)
{
	unsigned i = class_of(bytes);
	void *p;

	if (i == LOCKED_CLASSES)
		return NULL;
	pthread_mutex_lock(&l->lock);
	p = l->free[i];
	if (p)
		l->free[i] = l->free[i]->next;
	pthread_mutex_unlock(&l->lock);
	if (p)
		return p;
	p = aligned_alloc(SMALLEST, (uint64_t)SMALLEST << i);
	/* Memory that the driver will not lock serves, too, though a copy may then block. */
	if (p && drv_cuda.cuMemHostRegister_v2)
		drv_cuda.cuMemHostRegister_v2(p, (uint64_t)SMALLEST << i, 0);
	return p;
}

void locked_put(struct srv_locked *l, void *p, uint64_t bytes)
{
	struct locked *m = p;
	unsigned i = class_of(bytes);

	pthread_mutex_lock(&l->lock);
	if (l->closed) {
		free(p);
	} else {
		m->next = l->free[i];
		l->free[i] = m;
	}
	pthread_mutex_unlock(&l->lock);
}

void locked_close(struct srv_locked *l)
{
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	for (unsigned i = 0; i < LOCKED_CLASSES; i++) {
		struct locked *m;

		while ((m = l->free[i])) {
			l->free[i] = m->next;
			free(m);
		}
	}
	pthread_mutex_unlock(&l->lock);
}
