/* SPDX-License-Identifier: MIT */
/* Control connections for several requests at once: a START that takes seconds holds nobody else up. */
#ifndef RGPU_PROXY_POOL_H
#define RGPU_PROXY_POOL_H

#include "usermode-proxy/control.h"

struct pool;

struct pool *pool_new(const struct rgpu_addr *server, const struct rgpu_auth *auth, const char *agent); /* NULL: no memory */
void pool_free(struct pool *p); /* all connections are back */
/* Never NULL; waits while all are in use. */
struct rgpu_ctl *pool_get(struct pool *p);
void pool_put(struct pool *p, struct rgpu_ctl *c);

#endif
