/* SPDX-License-Identifier: MIT */
/* What the kernel relays to the proxy: programs' sessions that start, join, ask and end; and those that a predecessor left. */
#ifndef RGPU_PROXY_REQUESTS_H
#define RGPU_PROXY_REQUESTS_H

#include "usermode-proxy/kern.h"
#include "usermode-proxy/pool.h"

struct requests {
	struct kern *kern;
	int ctl_fd;
	uint32_t epoch;
	struct rgpu_addr server;
	struct pool *pool;
};

/* Takes over the sessions that were there before us; each resumes in its own thread. */
int requests_recover(struct requests *rq, char why[RGPU_WHY_MAX]);

/* Pulls until the queue is empty; each request is served in a thread. -errno: the proxy cannot go on. */
int requests_pull(struct requests *rq, char why[RGPU_WHY_MAX]);

#endif
