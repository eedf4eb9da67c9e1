/* SPDX-License-Identifier: MIT */
/* Reading in turns: which thread waits for the link's socket, and the time in which a lane's thread does. */
#ifndef RGPU_SERVER_LEND_H
#define RGPU_SERVER_LEND_H

#include <stdbool.h>

struct worker;
struct srv_lane;

/* Has the I/O thread's epoll look at @fd for POLL… events. 0 or -errno. */
int watch_fd(struct worker *w, int fd, short events);

/*
 * Lets the I/O thread be woken by the link's socket, or not while another reads. The socket; −1: there is no
 * connection. input_lock is held.
 */
int arm_link(struct worker *w, bool on);

/* The connection is gone: forget its socket. input_lock is held. */
void disarm_link(struct worker *w);

/*
 * Called by a lane's thread that has answered a fence and has nothing to do. If nobody reads just now it waits for
 * the next call itself, for a short while, and reads for all lanes meanwhile. Returns when its own lane has work, or
 * nothing came, or the I/O thread is needed.
 */
void lend_reading(struct srv_lane *lane);

#endif
