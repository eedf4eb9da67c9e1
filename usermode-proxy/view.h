/* SPDX-License-Identifier: MIT */
/* What the proxy's page shows: the module's devices, the programs that use them, and the link to the server. */
#ifndef RGPU_PROXY_VIEW_H
#define RGPU_PROXY_VIEW_H

#include "usermode-proxy/control.h"
#include "usermode-proxy/kern.h"

/*
 * Serves it on this machine's loopback from a thread of its own, which has @ctl for itself. The port taken, or a negative errno
 * with @why.
 */
int view_serve(struct kern *kern, struct rgpu_ctl *ctl, const struct rgpu_addr *server, uint16_t port, char why[RGPU_WHY_MAX]);

#endif
