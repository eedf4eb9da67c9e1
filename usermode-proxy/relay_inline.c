// SPDX-License-Identifier: MIT
/* The program's own threads as the relay (direct mode): sending at the kick, receiving during a wait. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/addr.h"
#include "lib/clock.h"
#include "usermode-proxy/relay_int.h"

/*
 * Kicks without a wait between them that are sent inline. A thread that launches and launches would pay a TLS record and a system
 * call each; then the relay's thread is woken instead, stays awake and sends many records at once. So it is after the first one
 * where the program did that between its last two waits.
 */
#define QUICK_KICKS 4

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void relay_wake_receiver(struct rgpu_relay *r)
{
	uint64_t one = 1;

	(void)!write(r->rx_fd, &one, sizeof(one));
}

void relay_wake_waiter(struct rgpu_relay *r, struct chan *c)
{
	__atomic_store_n(&c->latched, 1, __ATOMIC_SEQ_CST);
	switch (__atomic_load_n(&c->waiter, __ATOMIC_SEQ_CST)) {
	case WAITER_FUTEX:
		futex_wake(&c->latched);
		break;
	case WAITER_POLL:
		relay_wake_receiver(r);
		break;
	}
}

void relay_wake_all(struct rgpu_relay *r)
{
	for (unsigned i = 0; i < RGPU_CHANNELS_MAX; i++) {
		struct chan *c = __atomic_load_n(&r->chan[i], __ATOMIC_ACQUIRE);

		if (c)
			relay_wake_waiter(r, c);
	}
}

int rgpu_relay_open(struct rgpu_relay *r, uint32_t channel)
{
	int err;

	pthread_mutex_lock(&r->lock);
	err = relay_chan_open(r, channel);
	while (relay_unlock(r))
		;
	return err;
}

/* The rings were looked at by whoever holds the lock, or will be. */
static void pump_or_leave_it(struct rgpu_relay *r, bool inline_only)
{
	__atomic_store_n(&r->again, 1, __ATOMIC_SEQ_CST);
	if (pthread_mutex_trylock(&r->lock))
		return;
	do {
		bool left;

		__atomic_store_n(&r->again, 0, __ATOMIC_SEQ_CST);
		r->inline_only = inline_only;
		relay_pump(r);
		r->inline_only = false;
		/* What could not go at once is for the thread. */
		left = r->blocked || r->lost_at || relay_tx_work(r) || rgpu_link_buffered(r->link);
		if (left && __atomic_load_n(&r->sleeping, __ATOMIC_SEQ_CST))
			relay_poke(r);
	} while (relay_unlock(r));
}

void rgpu_relay_kick(struct rgpu_relay *r, uint32_t channel)
{
	struct chan *c = relay_chan(r, channel);

	if (!c || __atomic_load_n(&r->over, __ATOMIC_SEQ_CST))
		return;
	if (c->quick++ >= (c->bursts ? 1 : QUICK_KICKS)) {
		/* Until it runs, what comes needs no system call. The tail was published before, with a full barrier. */
		if (!__atomic_load_n(&r->poked, __ATOMIC_SEQ_CST) && !__atomic_exchange_n(&r->poked, 1, __ATOMIC_SEQ_CST))
			relay_poke(r);
		return;
	}
	pump_or_leave_it(r, true);
}

static int left_ts(int64_t deadline, struct timespec *ts)
{
	int64_t left = deadline - rgpu_now_ns();

	if (left < 0)
		left = 0;
	ts->tv_sec = left / 1000000000;
	ts->tv_nsec = left % 1000000000;
	return 0;
}

static int wait_futex(struct chan *c, int64_t deadline)
{
	struct timespec ts;
	int err = 0;

	__atomic_store_n(&c->waiter, WAITER_FUTEX, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&c->latched, __ATOMIC_SEQ_CST)) {
		if (deadline != RGPU_FOREVER)
			left_ts(deadline, &ts);
		if (syscall(SYS_futex, &c->latched, FUTEX_WAIT_PRIVATE, 0, deadline == RGPU_FOREVER ? NULL : &ts, NULL, 0))
			err = errno == EAGAIN ? 0 : -errno;
	}
	__atomic_store_n(&c->waiter, WAITER_NONE, __ATOMIC_SEQ_CST);
	return err;
}

/* Receives once; whether the channel was kicked by that or by somebody else. *p: what to poll for. */
static bool receive_once(struct rgpu_relay *r, struct chan *c, struct pollfd *p)
{
	bool link;

	pthread_mutex_lock(&r->lock);
	do {
		while (relay_pump(r) && !__atomic_load_n(&c->latched, __ATOMIC_SEQ_CST))
			;
		link = r->link && !r->lost_at;
		p->fd = link ? rgpu_link_fd(r->link) : -1;
		p->events = link ? rgpu_link_events(r->link) | (r->blocked ? POLLOUT : 0) : 0;
	} while (relay_unlock(r));
	return __atomic_load_n(&c->latched, __ATOMIC_SEQ_CST) || __atomic_load_n(&r->over, __ATOMIC_SEQ_CST);
}

/* Nothing lies about that poll() would not tell of: then there is nothing to read yet, most likely. *p as above. */
static bool may_poll_first(struct rgpu_relay *r, struct pollfd *p)
{
	bool may = false;

	if (pthread_mutex_trylock(&r->lock))
		return false;
	if (r->link && !r->lost_at && !r->blocked && !r->poll_credit && !rgpu_link_buffered(r->link) && !relay_tx_work(r)) {
		p->fd = rgpu_link_fd(r->link);
		p->events = rgpu_link_events(r->link);
		may = true;
	}
	while (relay_unlock(r))
		may = false;
	return may;
}

/* How long to look before sleeping where the server is on this machine. */
static int64_t near_spin(struct rgpu_relay *r)
{
	if (!__atomic_load_n(&r->near.may, __ATOMIC_RELAXED) ||
	    !rgpu_spin_apart(&r->near.apart, __atomic_load_n(&r->fd, __ATOMIC_RELAXED)))
		return 0;
	return r->near.ns ? r->near.ns : RGPU_SPIN_MAX;
}

/* @first: of this wait. Later ones come because something is there. */
static int wait_receiving(struct rgpu_relay *r, struct chan *c, int64_t deadline, bool first)
{
	struct pollfd p[2] = {{.fd = -1}, {.fd = r->rx_fd, .events = POLLIN}};
	int64_t spin_ns = __atomic_load_n(&r->spin_ns, __ATOMIC_RELAXED), until;
	bool idle = !spin_ns && first && may_poll_first(r, p);
	uint64_t count;
	int n, ms;

	/* Not beside the thread that sends much: it wants a processor, too. */
	if (idle)
		spin_ns = near_spin(r);
	until = spin_ns ? rgpu_now_ns() + spin_ns : 0;
	if (until || !idle)
		do
			if (receive_once(r, c, p))
				return 0;
		while (until && rgpu_now_ns() < until);
	__atomic_store_n(&c->waiter, WAITER_POLL, __ATOMIC_SEQ_CST);
	n = 0;
	if (!__atomic_load_n(&c->latched, __ATOMIC_SEQ_CST) && !__atomic_load_n(&r->over, __ATOMIC_SEQ_CST)) {
		ms = rgpu_ms_left(deadline);
		n = poll(p, 2, ms);
		if (n < 0)
			n = -errno;
		else if (!n)
			n = -ETIMEDOUT;
		else if (p[1].revents)
			(void)!read(r->rx_fd, &count, sizeof(count));
		if (idle && until)
			r->near.ns = rgpu_spin_next(spin_ns, rgpu_now_ns() - (until - spin_ns));
	}
	__atomic_store_n(&c->waiter, WAITER_NONE, __ATOMIC_SEQ_CST);
	return n < 0 ? n : 0;
}

int rgpu_relay_wait(struct rgpu_relay *r, uint32_t channel, int timeout_ms)
{
	int64_t deadline = rgpu_deadline(timeout_ms);
	struct chan *c = relay_chan(r, channel);
	bool mine = false, first = true;
	int err = 0;

	if (!c)
		return -EINVAL;
	/* One wait of the program's may be several of these. */
	if (c->quick)
		c->bursts = __atomic_exchange_n(&c->thick, 0, __ATOMIC_RELAXED);
	c->quick = 0;
	__atomic_add_fetch(&r->receiver, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&r->waits, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_exchange_n(&c->latched, 0, __ATOMIC_SEQ_CST) && !err && !__atomic_load_n(&r->over, __ATOMIC_SEQ_CST)) {
		uint32_t none = 0;

		if (!mine)
			mine = __atomic_compare_exchange_n(&r->receives, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		err = mine ? wait_receiving(r, c, deadline, first) : wait_futex(c, deadline);
		first = false;
	}
	__atomic_sub_fetch(&r->receiver, 1, __ATOMIC_SEQ_CST);
	if (mine) {
		__atomic_store_n(&r->receives, 0, __ATOMIC_SEQ_CST);
		/* Others wait on their channels and nobody receives: the thread takes over. */
		if (__atomic_load_n(&r->receiver, __ATOMIC_SEQ_CST))
			relay_poke(r);
	}
	return err;
}
