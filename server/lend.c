// SPDX-License-Identifier: MIT
/* Reading in turns: which thread waits for the link's socket, and the time in which a lane's thread does. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include "lib/clock.h"
#include "lib/link.h"
#include "server/lane.h"
#include "server/lend.h"

#define LEND_NS	    200000	  /* a program that calls again later than that waits for a thread to wake */
#define LEND_ROUNDS 64		  /* then the I/O thread has its turn, if only to see the time */
#define LEND_BYTES  (64u << 10)	  /* more than that is no small call */
#define SPIN_MAX    (30 * 1000ll) /* of looking for the next call before sleeping: a wake-up costs more */
#define SPIN_MIN    500ll
#define MISSES	    4 /* that many times in vain, then only now and then */
#define TRY_EVERY   16

int watch_fd(struct worker *w, int fd, short events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	if (!epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, fd, &e))
		return 0;
	return errno == ENOENT && !epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? 0 : -errno;
}

int arm_link(struct worker *w, bool on)
{
	struct output *o = &w->output;
	short events = 0;
	int fd = -1;

	pthread_mutex_lock(&o->lock);
	if (o->link) {
		fd = rgpu_link_fd(o->link);
		events = on ? rgpu_link_events(o->link) : 0;
		if ((fd != w->armed_fd || events != w->armed) && watch_fd(w, fd, events))
			fd = -1;
		w->armed_fd = fd;
		w->armed = events;
	}
	pthread_mutex_unlock(&o->lock);
	return fd;
}

void disarm_link(struct worker *w)
{
	w->armed_fd = -1; /* closing it took it out of epoll */
}

static void send_due(struct worker *w)
{
	struct output *o = &w->output;

	pthread_mutex_lock(&o->lock);
	/* Replies too: an acknowledgement that was just read may be what they waited for. */
	if (o->link && !o->want_out && output_more(w)) {
		output_pump(w, LEND_BYTES);
		if (o->failed || o->want_out || output_more(w))
			worker_kick(w);
	}
	pthread_mutex_unlock(&o->lock);
}

/* Looks at the socket for a short while, and for less when that was in vain. Whether something is there. */
static bool spin(struct srv_lane *lane, struct pollfd p[2])
{
	int64_t until = rgpu_now_ns() + lane->spin_ns;

	if (!lane->w->may_spin)
		return false;
	while (rgpu_now_ns() < until) {
		if (poll(p, 2, 0) > 0) {
			lane->spin_ns = lane->spin_ns * 2 < SPIN_MAX ? lane->spin_ns * 2 : SPIN_MAX;
			return true;
		}
		if (lane->w->io_wants)
			return false;
	}
	lane->spin_ns = lane->spin_ns / 2 > SPIN_MIN ? lane->spin_ns / 2 : SPIN_MIN;
	return false;
}

/* Whether the lane got work. */
static bool read_for(struct srv_lane *lane, int fd)
{
	struct worker *w = lane->w;

	for (int i = 0; i < LEND_ROUNDS && !w->broken && !w->io_wants; i++) {
		struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = w->wake_fd, .events = POLLIN}};
		struct timespec t = {.tv_nsec = LEND_NS};

		if ((!spin(lane, p) && ppoll(p, 2, &t, NULL) <= 0) || p[1].revents)
			return false;
		if (input_read(w, LEND_BYTES)) {
			worker_kick(w); /* a long read, or the connection's end */
			return lane_has_work(lane);
		}
		send_due(w);
		if (lane_has_work(lane))
			return true;
	}
	return false;
}

void lend_reading(struct srv_lane *lane)
{
	struct worker *w = lane->w;
	int fd;

	if (lane->misses >= MISSES && ++lane->tries % TRY_EVERY)
		return;
	if (pthread_mutex_trylock(&w->input_lock))
		return;
	fd = w->input.attached ? arm_link(w, false) : -1;
	if (fd >= 0) {
		if (read_for(lane, fd)) {
			lane->misses = 0;
		} else {
			lane->misses++;
			if (w->input.lazy_grant)
				worker_kick(w);
		}
		arm_link(w, true);
	}
	pthread_mutex_unlock(&w->input_lock);
}
