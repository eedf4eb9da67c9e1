/* SPDX-License-Identifier: MIT */
/* Starts this executable again in a hidden mode, as a process group of its own. */
#ifndef RGPU_SERVER_SPAWN_H
#define RGPU_SERVER_SPAWN_H

#include <sys/types.h>

/*
 * rgpu-server @mode 3 @args…, with @fd as its descriptor 3 and no other of ours. @args ends with NULL; may be
 * NULL. 0 or -errno. The caller waits for the child.
 */
int spawn_self(const char *mode, int fd, const char *const *args, pid_t *pid);

#endif
