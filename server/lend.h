/* SPDX-License-Identifier: MIT */
/* Reading in turns: which thread waits for the link's socket, and the time in which a lane's thread does. */
#ifndef RGPU_SERVER_LEND_H
#define RGPU_SERVER_LEND_H

#include <stdbool.h>
#include <stdint.h>

struct epoll_event;
struct worker;
struct srv_lane;

/*
 * All wait in one epoll. It tells of the link's bytes once, as they come (EPOLLET), and it wakes the thread that came last:
 * a lane's, if one waits, else the I/O thread. Nothing has to be armed or disarmed, and who reads must read until
 * rgpu_link_buffered() says that nothing is left. What must not be missed (wake_fd, a socket in its handshake) is told until
 * it is read, to one thread after the other.
 */

/* Has epoll look at @fd for EPOLL… events. 0 or -errno. */
int watch_fd(struct worker *w, int fd, uint32_t events);

/* Has epoll look at the link's socket, if it does not yet. The I/O thread's, input_lock is held. */
void watch_link(struct worker *w);

/* The connection is gone: forget its socket. input_lock is held. */
void forget_link(struct worker *w);

/* What epoll said of the link: its end must be read, and a full socket has room again. input_lock is held. */
void link_event(struct worker *w, const struct epoll_event *e);

/* Takes input_lock for the I/O thread: a lane's thread that waits gives it up. */
void take_reading(struct worker *w);

/*
 * Called by a lane's thread that has answered a fence or done what it read itself, and has nothing to do. If no other lane's does
 * it waits for the next call itself, and reads for all lanes meanwhile. Returns when its own lane has work, which is true, or
 * the calls are other lanes', or the I/O thread is needed.
 */
bool lend_reading(struct srv_lane *lane);

#endif
