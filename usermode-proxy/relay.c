// SPDX-License-Identifier: MIT
/* A session's relay: its thread, its life from lease to end, and the way back to a server that was lost. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/clock.h"
#include "lib/text.h"
#include "usermode-proxy/relay_int.h"

#define MS	       1000000LL
#define TICK_MS	       1000	   /* nothing is due sooner, usually */
#define CREDIT_MS      2	   /* a program that reads its CQ says nothing: look again after that */
#define ACK_MS	       5	   /* an acknowledgement rides with a record that comes sooner */
#define NAP_MS	       2	   /* while program's threads receive for themselves */
#define PING_AFTER     (5000 * MS) /* of silence */
#define PING_TIMEOUT   (15000 * MS)
#define SWEEP_EVERY    (1000 * MS)
#define BACKOFF_MS     10 /* after a first try in vain, twice that after the next, and so on up to … */
#define BACKOFF_MAX_MS 1000
#define BYE_MS	       200
#define ATTACH_TRIES   4  /* of a session's first connection */
#define ROUNDS	       16 /* of the pump between two looks for kicks */

#ifdef RGPU_KILL_POINTS
void (*relay_kill_point)(const char *where);
#endif

struct rgpu_relay *rgpu_relay_new(const struct rgpu_relay_ops *ops, void *arg, const struct rgpu_addr *server, int event_fd)
{
	struct rgpu_relay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ops = ops;
	r->arg = arg;
	r->server = *server;
	r->event_fd = event_fd;
	r->fd = -1;
	r->poke_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->rx_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r->stage = malloc(STAGE_SIZE);
	r->rx = malloc(RX_SIZE);
	r->lost_at = rgpu_now_ns();
	pthread_mutex_init(&r->lock, NULL);
	if (r->poke_fd < 0 || r->rx_fd < 0 || !r->stage || !r->rx) {
		rgpu_relay_free(r, false);
		return NULL;
	}
	return r;
}

int relay_fail(struct rgpu_relay *r, int reason, const char *fmt, ...)
{
	va_list ap;

	/* The first cause is the one that counts. */
	if (!r->failed) {
		r->failed = reason;
		va_start(ap, fmt);
		vsnprintf(r->why, sizeof(r->why), fmt, ap);
		va_end(ap);
		/* The server's own words may be in it, and the program's terminal is where it goes. */
		text_printable(r->why, sizeof(r->why));
		if (!r->why[0])
			strcpy(r->why, "the server gave no reason");
		__atomic_store_n(&r->over, 1, __ATOMIC_SEQ_CST);
	}
	return r->failed;
}

int relay_lost(struct rgpu_relay *r, const char *why)
{
	if (r->lost_at)
		return -ENOTCONN;
	r->lost_at = rgpu_now_ns();
	snprintf(r->why, sizeof(r->why), "%s", why);
	/* Whoever polls the socket wakes; the thread closes it. */
	shutdown(rgpu_link_fd(r->link), SHUT_RDWR);
	relay_poke(r);
	return -ENOTCONN;
}

void relay_poke(struct rgpu_relay *r)
{
	uint64_t one = 1;

	(void)!write(r->poke_fd, &one, sizeof(one));
}

/* Wakes the program's threads whose channels changed. */
static void flush_kicks(struct rgpu_relay *r)
{
	bool fenced = false;

	for (unsigned i = 0; i < r->nchan; i++) {
		struct chan *c = r->chan[i];

		if (!c || !c->kick || c->state != CHAN_OPEN)
			continue;
		c->kick = false;
		if (!fenced)
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		fenced = true;
		if (__atomic_load_n(&c->m.a->cq_event, __ATOMIC_RELAXED) != RGPU_EVENT_AWAKE)
			r->ops->kick ? r->ops->kick(r->arg, c->id) : relay_wake_waiter(r, c);
	}
}

bool relay_pump(struct rgpu_relay *r)
{
	bool moved = false;

	if (r->failed || r->lost_at)
		return false;
	/* A kick only wants to send. */
	if (!r->inline_only)
		moved = relay_rx(r);
	if (!r->failed && !r->lost_at) {
		relay_rx_drain(r);
		moved |= relay_tx(r);
	}
	flush_kicks(r);
	return moved;
}

/* Tells everybody about the end, once. The lock is held, and dropped meanwhile. */
static void tell_failed(struct rgpu_relay *r)
{
	struct rgpu_error_frame bye = {.err = -r->failed};

	r->told = true;
	if (r->link && !r->lost_at) {
		/* Only between frames, and only if it goes at once: the server knows otherwise when the connection ends. */
		if (!r->stage_len && !r->bulk_bo) {
			snprintf(bye.text, sizeof(bye.text), "%.250s", r->why);
			rgpu_link_send_frame(r->link, RGPU_D_BYE, 0, &bye, sizeof(bye), 0);
		}
		shutdown(rgpu_link_fd(r->link), SHUT_RDWR);
		r->lost_at = rgpu_now_ns();
	}
	pthread_mutex_unlock(&r->lock);
	r->ops->failed(r->arg, r->failed, r->why);
	relay_wake_all(r);
	relay_poke(r);
	pthread_mutex_lock(&r->lock);
}

bool relay_unlock(struct rgpu_relay *r)
{
	if (r->failed && !r->told)
		tell_failed(r);
	pthread_mutex_unlock(&r->lock);
	if (!__atomic_load_n(&r->again, __ATOMIC_SEQ_CST) || pthread_mutex_trylock(&r->lock))
		return false;
	__atomic_store_n(&r->again, 0, __ATOMIC_SEQ_CST);
	relay_pump(r);
	return true;
}

static bool stopping(const struct rgpu_relay *r)
{
	return __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE);
}

/* The rings are looked at after this: who found us poked already counts on that. */
static void take_pokes(struct rgpu_relay *r)
{
	uint64_t count;

	(void)!read(r->poke_fd, &count, sizeof(count));
	__atomic_exchange_n(&r->poked, 0, __ATOMIC_SEQ_CST);
}

/* The pause between two tries, which only the end cuts short. The lock is held, and dropped meanwhile. */
static void back_off(struct rgpu_relay *r)
{
	struct pollfd p = {.fd = r->poke_fd, .events = POLLIN};
	int64_t deadline = rgpu_deadline(r->backoff_ms);

	r->backoff_ms = r->backoff_ms * 2 < BACKOFF_MAX_MS ? r->backoff_ms * 2 : BACKOFF_MAX_MS;
	pthread_mutex_unlock(&r->lock);
	while (!stopping(r) && rgpu_ms_left(deadline))
		if (poll(&p, 1, rgpu_ms_left(deadline)) > 0)
			take_pokes(r);
	pthread_mutex_lock(&r->lock);
}

/* One try. 0, -EAGAIN: try again (why says what was wrong), else the session failed. The lock is not held, but on return. */
static int reconnect(struct rgpu_relay *r, char why[RGPU_WHY_MAX])
{
	struct rgpu_lease lease;
	struct rgpu_link *link = NULL;
	int err;

	err = r->ops->lease(r->arg, &lease, why);
	if (err) {
		pthread_mutex_lock(&r->lock);
		return rgpu_ctl_retryable(err) ? -EAGAIN : relay_fail(r, err, "%s", why);
	}
	err = relay_connect(r, &lease, &link, why);
	pthread_mutex_lock(&r->lock);
	r->lease = lease;
	if (!err)
		err = relay_attach(r, link, why);
	/* A lease that was overtaken or a worker that was busy: another lease may do. */
	return !err || r->failed ? r->failed : -EAGAIN;
}

int rgpu_relay_attach(struct rgpu_relay *r, const struct rgpu_lease *lease, char why[RGPU_WHY_MAX])
{
	struct rgpu_link *link;
	int err;

	r->lease = *lease;
	err = relay_connect(r, lease, &link, why);
	pthread_mutex_lock(&r->lock);
	if (!err)
		err = relay_attach(r, link, why);
	/* Cut already: as later, another lease may do. */
	for (int i = 1; i < ATTACH_TRIES && err && !r->failed && r->ops->lease && rgpu_ctl_retryable(err); i++) {
		pthread_mutex_unlock(&r->lock);
		err = reconnect(r, why);
	}
	pthread_mutex_unlock(&r->lock);
	return err;
}

/* Called and returns with the lock held. */
static void recover(struct rgpu_relay *r)
{
	int64_t deadline = r->lost_at + r->lease.grace_ms * MS;
	char why[RGPU_WHY_MAX], cause[RGPU_WHY_MAX], server[RGPU_ADDR_TEXT_MAX];
	bool had = r->link; /* else it begins here */
	int err;

	rgpu_link_free(r->link);
	r->link = NULL;
	__atomic_store_n(&r->fd, -1, __ATOMIC_RELAXED);
	snprintf(cause, sizeof(cause), "%s", r->why);
	if (!r->ops->lease) {
		relay_fail(r, -ECONNRESET, "the connection to the server ended: %.200s", cause);
		return;
	}
	if (r->ops->down && had) {
		pthread_mutex_unlock(&r->lock);
		r->ops->down(r->arg, cause);
		pthread_mutex_lock(&r->lock);
	}
	/* A connection that brought nothing was a try in vain. */
	if (r->backoff_ms && r->count.received_bytes == r->recovered_at)
		back_off(r);
	else
		r->backoff_ms = BACKOFF_MS;
	for (;;) {
		pthread_mutex_unlock(&r->lock);
		err = reconnect(r, why);
		if (err != -EAGAIN || stopping(r))
			break;
		if (rgpu_now_ns() >= deadline) {
			rgpu_addr_text(&r->server, server);
			relay_fail(r, -ETIMEDOUT,
				   "the server %.60s was away for longer than %u s and the session is lost; last try: %.120s",
				   server, r->lease.grace_ms / 1000, why);
			break;
		}
		back_off(r);
	}
	r->recovered_at = r->count.received_bytes;
	if (!err && r->ops->live) {
		pthread_mutex_unlock(&r->lock);
		r->ops->live(r->arg);
		pthread_mutex_lock(&r->lock);
	}
	/* Program's threads that poll the old socket must see the new one. */
	relay_wake_receiver(r);
}

static void set_event(struct rgpu_relay *r, uint32_t event)
{
	for (unsigned i = 0; i < r->nchan; i++)
		if (r->chan[i] && r->chan[i]->state == CHAN_OPEN)
			__atomic_store_n(&r->chan[i]->m.p->sq_event, event, __ATOMIC_RELAXED);
}

/* Acknowledgements that found no record to ride with. */
static void ack_idle(struct rgpu_relay *r)
{
	for (unsigned i = 0; i < r->nchan; i++)
		if (r->chan[i] && r->chan[i]->state == CHAN_OPEN && r->chan[i]->acked_to != r->chan[i]->published)
			r->chan[i]->ack_now = true;
	r->ack_lazy = false;
}

/* What time brings: pings, a server that does not answer them, buffer objects that the program destroyed. */
static void tick(struct rgpu_relay *r)
{
	int64_t now = rgpu_now_ns();
	uint64_t stamp = now;

	if (now - r->swept_at > SWEEP_EVERY) {
		r->swept_at = now;
		if (r->ops->bo_alive)
			relay_bo_sweep(r, false);
		if (r->ops->channel_alive)
			relay_chan_look(r);
	}
	if (!r->link || r->lost_at)
		return;
	if (r->pinged_at && now - r->pinged_at > PING_TIMEOUT)
		relay_lost(r, "the server did not answer for 15 s");
	else if (!r->pinged_at && now - r->heard_at > PING_AFTER && relay_stage(r, RGPU_D_PING, 0, &stamp, sizeof(stamp)))
		r->pinged_at = now;
}

struct nap {
	uint32_t waits;	 /* program's waits when the thread last slept */
	bool deprived;	 /* they receive: the link is not polled */
	unsigned rounds; /* since kicks were last collected */
};

/* Whether the program's threads receive for themselves, or did a moment ago. */
static bool program_receives(struct rgpu_relay *r, const struct nap *nap)
{
	return __atomic_load_n(&r->receives, __ATOMIC_SEQ_CST) || __atomic_load_n(&r->waits, __ATOMIC_SEQ_CST) != nap->waits;
}

/* New channels, and ends of old ones. @gone: the descriptor says that the session is over. */
static void collect_kicks(struct rgpu_relay *r, struct nap *nap, bool gone)
{
	int err = gone ? -ENODEV : relay_kicks(r);

	nap->rounds = 0;
	if (err == -ENODEV) {
		r->gone = true;
		__atomic_store_n(&r->over, 1, __ATOMIC_SEQ_CST);
	} else if (err) {
		relay_fail(r, err, "reading kicks: %s", strerror(-err));
	}
}

/* Sleeps until something happens. The lock is held, and dropped meanwhile. */
static void sleep_until_event(struct rgpu_relay *r, struct nap *nap)
{
	uint32_t waits = __atomic_load_n(&r->waits, __ATOMIC_SEQ_CST);
	struct pollfd p[3] = {{.fd = r->poke_fd, .events = POLLIN}, {.fd = r->event_fd, .events = POLLIN}, {.fd = -1}};
	int ms = TICK_MS, n;

	__atomic_store_n(&r->sleeping, 1, __ATOMIC_SEQ_CST);
	set_event(r, RGPU_EVENT_ASLEEP);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	nap->deprived = program_receives(r, nap);
	nap->waits = waits;
	if (r->link && !r->lost_at) {
		p[2].fd = rgpu_link_fd(r->link);
		p[2].events = rgpu_link_events(r->link) | (r->blocked ? POLLOUT : 0);
		if (nap->deprived)
			p[2].events &= ~POLLIN;
		if (!p[2].events)
			p[2].fd = -1;
	}
	if (nap->deprived)
		ms = NAP_MS;
	else if (r->poll_credit)
		ms = CREDIT_MS;
	else if (r->ack_lazy)
		ms = ACK_MS;
	if ((!r->failed && (r->lost_at || (!r->blocked && relay_tx_work(r)))) || stopping(r) ||
	    __atomic_load_n(&r->again, __ATOMIC_SEQ_CST))
		ms = 0;
	if (!relay_unlock(r)) {
		n = poll(p, 3, ms);
		if (n > 0 && p[0].revents)
			take_pokes(r);
		pthread_mutex_lock(&r->lock);
		if (n > 0 && p[1].revents)
			collect_kicks(r, nap, p[1].revents & POLLHUP);
		if (!n && r->ack_lazy && ms)
			ack_idle(r);
	}
	__atomic_store_n(&r->sleeping, 0, __ATOMIC_SEQ_CST);
	set_event(r, RGPU_EVENT_AWAKE);
}

/*
 * Looks for more work for a short while after the last, as a wake-up costs more. Spins for less when that was in vain. Whether
 * there was some. The lock is held, and dropped between looks.
 */
static bool spin(struct rgpu_relay *r)
{
	int64_t until = rgpu_now_ns() + r->spin_ns;

	if (!r->spin_ns)
		return false;
	do {
		if (relay_unlock(r))
			continue;
		for (int i = 0; i < 20; i++)
			__builtin_ia32_pause();
		pthread_mutex_lock(&r->lock);
		if (relay_pump(r)) {
			__atomic_store_n(&r->spin_ns, rgpu_spin_more(r->spin_ns), __ATOMIC_RELAXED);
			return true;
		}
	} while (!r->failed && !r->lost_at && !stopping(r) && rgpu_now_ns() < until);
	__atomic_store_n(&r->spin_ns, rgpu_spin_less(r->spin_ns), __ATOMIC_RELAXED);
	return false;
}

static void *relay_main(void *arg)
{
	struct rgpu_relay *r = arg;
	struct nap nap = {0};
	uint32_t n;

	pthread_mutex_lock(&r->lock);
	n = r->ops->nchannels ? r->ops->nchannels(r->arg) : 0;
	for (uint32_t i = 0; i < n; i++)
		relay_chan_open(r, i);
	while (!stopping(r) && !r->gone) {
		if (r->lost_at && !r->failed)
			recover(r);
		tick(r);
		/* While the program receives for itself, we look after what it does not: sending, credit for what it read. */
		while (!r->gone && (relay_tx_work(r) || r->poll_credit || !program_receives(r, &nap)) &&
		       (relay_pump(r) || spin(r)))
			/* Without sleep, nobody polls: channels that are new must not wait. */
			if (++nap.rounds >= ROUNDS && r->ops->kicked)
				collect_kicks(r, &nap, false);
		if (!r->gone)
			sleep_until_event(r, &nap);
	}
	while (relay_unlock(r))
		;
	if (r->gone && r->ops->gone)
		r->ops->gone(r->arg);
	return NULL;
}

int rgpu_relay_run(struct rgpu_relay *r, unsigned grace_ms)
{
	sigset_t all, old;
	int err;

	if (!r->lease.grace_ms)
		r->lease.grace_ms = grace_ms;
	sigfillset(&all);
	/* It writes into memory that the program lent: a fault there is the program's, whatever thread it happens on. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&r->thread, NULL, relay_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	r->running = !err;
	return -err;
}

void rgpu_relay_bye(struct rgpu_relay *r)
{
	struct rgpu_error_frame end = {.text = "the program ended the session"};
	const struct timespec ms = {.tv_nsec = MS};

	/* For a second at most: the program is at its end. ThreadSanitizer sees no pthread_mutex_clocklock(). */
	for (int i = 0; pthread_mutex_trylock(&r->lock); i++) {
		if (i == 1000)
			return;
		nanosleep(&ms, NULL);
	}
	/* Not in the midst of another frame. */
	if (r->link && !r->lost_at && !r->failed)
		relay_tx(r);
	if (r->link && !r->lost_at && !r->failed && !r->stage_len && !r->bulk_bo) {
		rgpu_link_send_frame(r->link, RGPU_D_BYE, 0, &end, sizeof(end), BYE_MS);
		shutdown(rgpu_link_fd(r->link), SHUT_WR);
		r->lost_at = rgpu_now_ns();
	}
	relay_fail(r, -ECANCELED, "%s", end.text);
	while (relay_unlock(r))
		;
}

void rgpu_relay_free(struct rgpu_relay *r, bool bye)
{
	if (!r)
		return;
	__atomic_store_n(&r->stop, 1, __ATOMIC_SEQ_CST);
	if (r->running) {
		relay_poke(r);
		pthread_join(r->thread, NULL);
	}
	if (bye)
		rgpu_relay_bye(r);
	if (r->bulk_bo)
		relay_bo_put(r, r->bulk_bo);
	if (r->data_bo)
		relay_bo_put(r, r->data_bo);
	relay_chan_free_all(r);
	relay_bo_sweep(r, true);
	relay_known_clear(r);
	rgpu_packer_free(&r->pack);
	rgpu_link_free(r->link);
	if (r->poke_fd >= 0)
		close(r->poke_fd);
	if (r->rx_fd >= 0)
		close(r->rx_fd);
	pthread_mutex_destroy(&r->lock);
	free(r->stage);
	free(r->rx);
	free(r);
}

void rgpu_relay_forked(struct rgpu_relay *r)
{
	int fd = __atomic_load_n(&r->fd, __ATOMIC_RELAXED);

	if (fd >= 0)
		close(fd);
	close(r->poke_fd);
	close(r->rx_fd);
}

void rgpu_relay_compress(struct rgpu_relay *r, enum rgpu_pack_mode mode)
{
	rgpu_packer_init(&r->pack, mode);
}

void rgpu_relay_counters(struct rgpu_relay *r, struct rgpu_relay_counters *out)
{
	pthread_mutex_lock(&r->lock);
	*out = r->count;
	out->known = r->known.n;
	out->pack_in = r->pack.in;
	out->pack_out = r->pack.out;
	while (relay_unlock(r))
		;
}
