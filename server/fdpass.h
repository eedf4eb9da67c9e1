/* SPDX-License-Identifier: MIT */
/* Messages of fixed size between processes of one host, each with a descriptor or without. */
#ifndef RGPU_SERVER_FDPASS_H
#define RGPU_SERVER_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

/* @fd −1: none; the caller keeps it. What sendmsg() returns, or -errno; never a signal. */
ssize_t fdpass_send(int sock, const void *buf, size_t len, int fd, int flags);

/* Exactly @len bytes, else an error and no descriptor. *fd is −1 when none came. 0; -EPIPE at the end; -EPROTO for another size;
 * -errno. */
int fdpass_recv(int sock, void *buf, size_t len, int *fd);

#endif
