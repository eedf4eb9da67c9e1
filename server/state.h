/* SPDX-License-Identifier: MIT */
/* The state directory: the workers' sockets, the server's name, and the lock that one server has on it. */
#ifndef RGPU_SERVER_STATE_H
#define RGPU_SERVER_STATE_H

#include <stdint.h>
#include "lib/why.h"
#include "server/opts.h"

/*
 * Makes and locks it, mode 0700. Without --state-dir: rgpu-server-PORT in $RUNTIME_DIRECTORY, /run (root),
 * $XDG_RUNTIME_DIR, or the temporary directory with the uid in its name. 0 or -errno. The lock lasts as long as the process.
 */
int state_open(const struct server_opts *o, uint16_t port, char dir[STATE_DIR_MAX], uint8_t name[16], char why[RGPU_WHY_MAX]);

/* No session is left: removes a directory that we chose ourselves. */
void state_remove(const struct server_opts *o, const char *dir);

#endif
