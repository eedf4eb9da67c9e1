/* SPDX-License-Identifier: MIT */
/* What the listener's page shows: all devices and sessions of this server. */
#ifndef RGPU_SERVER_VIEW_H
#define RGPU_SERVER_VIEW_H

#include "server/registry.h"

/* Serves it on this machine's loopback from a thread of its own. The port taken, or a negative errno with @why. */
int view_serve(struct registry *r, uint16_t port, char why[RGPU_WHY_MAX]);

#endif
