// SPDX-License-Identifier: MIT
/* Reading in turns: which thread waits for the link's socket, and the time in which a lane's thread does. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/link.h"
#include "lib/spin.h"
#include "server/lane.h"
#include "server/lend.h"

#define LEND_ROUNDS 16		/* that brought nothing for the lane: another one's thread should read */
#define LEND_BYTES  (64u << 10) /* more than that is no small call */
#define MISSES	    4		/* that many times in vain, then only now and then */
#define TRY_EVERY   16

int watch_fd(struct worker *w, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	if (!epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, fd, &e))
		return 0;
	return errno == ENOENT && !epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? 0 : -errno;
}

void watch_link(struct worker *w)
{
	struct output *o = &w->output;

	if (w->link_fd >= 0)
		return;
	pthread_mutex_lock(&o->lock);
	if (o->link && !watch_fd(w, rgpu_link_fd(o->link), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET))
		w->link_fd = rgpu_link_fd(o->link);
	pthread_mutex_unlock(&o->lock);
}

void forget_link(struct worker *w)
{
	w->link_fd = -1; /* closing it took it out of epoll */
}

void link_event(struct worker *w, const struct epoll_event *e)
{
	struct output *o = &w->output;

	if (e->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		w->input.hung_up = true;
	if (!(e->events & EPOLLOUT))
		return;
	pthread_mutex_lock(&o->lock);
	/* An error comes back with the next read. */
	if (o->want_out && o->link && !rgpu_link_flush(o->link))
		o->want_out = false;
	pthread_mutex_unlock(&o->lock);
}

void take_reading(struct worker *w)
{
	uint64_t count;

	w->io_wants = true;
	if (pthread_mutex_trylock(&w->input_lock)) {
		worker_kick(w);
		pthread_mutex_lock(&w->input_lock);
		(void)!read(w->wake_fd, &count, sizeof(count)); /* others' kicks, too: everything is looked at next */
	}
	w->io_wants = false;
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

/* Spinning takes no processor from a client on this machine that has another one. */
static bool spins(struct srv_lane *lane)
{
	const struct worker *w = lane->w;

	return w->may_spin && (!w->same_host || rgpu_spin_apart(&lane->apart, w->link_fd));
}

/* Waits for events, first by looking for a short while, and for less when that was in vain. */
static int wait_for_events(struct srv_lane *lane, struct epoll_event *e, int room)
{
	struct worker *w = lane->w;
	int64_t began = spins(lane) ? rgpu_now_ns() : 0;
	int n;

	while (began && rgpu_now_ns() < began + lane->spin_ns && !w->io_wants) {
		n = epoll_wait(w->epoll_fd, e, room, 0);
		if (n) {
			lane->spin_ns = rgpu_spin_more(lane->spin_ns);
			return n;
		}
	}
	if (!w->same_host)
		lane->spin_ns = rgpu_spin_less(lane->spin_ns);
	/* No short timeout: to set the processor's timer for one costs a virtual machine more than all the rest. */
	n = epoll_wait(w->epoll_fd, e, room, w->input.lazy_grant ? LAZY_MS : -1);
	if (began && w->same_host)
		lane->spin_ns = rgpu_spin_next(lane->spin_ns, rgpu_now_ns() - began);
	return n;
}

enum lent { LENT_WORK, LENT_OTHERS, LENT_BACK };

/* Reads until the lane has work, or for so long that others should, or until the I/O thread is needed. */
static enum lent read_for(struct srv_lane *lane)
{
	struct worker *w = lane->w;

	for (int i = 0; i < LEND_ROUNDS; i++) {
		bool link = false, other = false;
		struct epoll_event e[4];
		int n;

		if (w->broken || w->io_wants)
			return LENT_BACK;
		n = wait_for_events(lane, e, 4);
		/* Time to tell what was received, or a signal. */
		if (n <= 0) {
			worker_kick(w);
			return LENT_BACK;
		}
		for (int k = 0; k < n; k++) {
			if (e[k].data.fd == w->link_fd) {
				link = true;
				link_event(w, &e[k]);
			} else {
				other = true; /* the I/O thread is told, too */
			}
		}
		if (link && input_read(w, LEND_BYTES)) {
			worker_kick(w); /* a long read, or the connection's end */
			other = true;
		}
		if (link)
			send_due(w);
		if (lane_has_work(lane))
			return LENT_WORK;
		if (other)
			return LENT_BACK;
	}
	return LENT_OTHERS;
}

bool lend_reading(struct srv_lane *lane)
{
	struct worker *w = lane->w;
	bool work = false;

	if (lane->misses >= MISSES && ++lane->tries % TRY_EVERY)
		return false;
	if (pthread_mutex_trylock(&w->input_lock))
		return false;
	if (w->input.attached && w->link_fd >= 0) {
		switch (read_for(lane)) {
		case LENT_WORK:
			lane->misses = 0;
			work = true;
			break;
		case LENT_OTHERS:
			lane->misses++;
			if (w->input.lazy_grant)
				worker_kick(w);
			break;
		case LENT_BACK:
			break;
		}
	}
	pthread_mutex_unlock(&w->input_lock);
	return work;
}
