/* SPDX-License-Identifier: MIT */
/* What a worker may not do any more once its driver is loaded and before it sees its client's first byte. */
#ifndef RGPU_SERVER_CONFINE_H
#define RGPU_SERVER_CONFINE_H

#include "lib/why.h"

/* At the process's begin: no core dumps, no new privileges, signals that are for the listener. */
void confine_early(void);

/*
 * The rest, for all threads: no capabilities, @user's rights when the server is root's and names one (empty: none), few
 * descriptors, and the system call filter. 0, or -errno with @why.
 */
int confine_worker(const char *user, char why[RGPU_WHY_MAX]);

#endif
