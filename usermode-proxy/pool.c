// SPDX-License-Identifier: MIT
/* Control connections for several requests at once: a START that takes seconds holds nobody else up. */
#include <pthread.h>
#include <stdlib.h>
#include "usermode-proxy/pool.h"

#define POOL_MAX 8

/* Made whole at the start; a control object connects when it is first used. The free ones lie in free[0 … nfree − 1]. */
struct pool {
	pthread_mutex_t lock;
	pthread_cond_t came_back;
	struct rgpu_ctl *free[POOL_MAX];
	unsigned nfree;
};

struct pool *pool_new(const struct rgpu_addr *server, const struct rgpu_auth *auth, const char *agent)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->came_back, NULL);
	for (; p->nfree < POOL_MAX; p->nfree++) {
		p->free[p->nfree] = rgpu_ctl_new(server, auth, agent);
		if (!p->free[p->nfree]) {
			pool_free(p);
			return NULL;
		}
	}
	return p;
}

void pool_free(struct pool *p)
{
	while (p->nfree)
		rgpu_ctl_free(p->free[--p->nfree]);
	pthread_cond_destroy(&p->came_back);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct rgpu_ctl *pool_get(struct pool *p)
{
	struct rgpu_ctl *c;

	pthread_mutex_lock(&p->lock);
	while (!p->nfree)
		pthread_cond_wait(&p->came_back, &p->lock);
	c = p->free[--p->nfree];
	pthread_mutex_unlock(&p->lock);
	return c;
}

void pool_put(struct pool *p, struct rgpu_ctl *c)
{
	pthread_mutex_lock(&p->lock);
	p->free[p->nfree++] = c;
	pthread_cond_signal(&p->came_back);
	pthread_mutex_unlock(&p->lock);
}
